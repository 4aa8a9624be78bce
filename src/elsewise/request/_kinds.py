"""What a certificate speaks of, and what it comes to."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Kind", "Verdict"]


class Kind(StrEnum):
    """What the rows behind a certificate allow it to speak of."""

    IN_SAMPLE = "in-sample"
    """Computed on the rows the map was fitted to: descriptive, as in the paper."""
    HELD_OUT = "held-out"
    """Computed on rows the fit never saw: speaks of the population they were drawn from."""
    POPULATION = "whole population"
    """The rows are the population: distances are exact, and no limit is claimed."""


class Verdict(StrEnum):
    """What a certificate comes to."""

    MET = "met"
    NOT_MET = "not met"
    NOT_CERTIFIABLE = "not certifiable"
    """A limit misses its bound, but more rows would bring every such limit under it."""
    NOT_ASKED = "no bound asked for"
