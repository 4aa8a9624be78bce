"""What a certificate speaks of, and what it comes to."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What the rows behind a certificate allow it to speak of."""

    IN_SAMPLE = "in-sample"
    """Computed on the rows the map was fitted to: descriptive, as in the paper."""
    HELD_OUT = "held-out"
    """Computed on rows the fit never saw: speaks of the population they were drawn from."""
    POPULATION = "whole population"
    """The rows are the population: distances are exact, and no limit is claimed."""


class Verdict(StrEnum):
    """What an answer comes to: the same words in status, headline, report, CLI and JSON."""

    CERTIFIED = "certified"
    """Every bound and ask holds at the stated confidence on unseen rows, or exactly for a whole
    population."""
    REACHED = "reached, not certified"
    """The rows reach what was asked; their limits do not, or none was asked to."""
    DESCRIBED = "described"
    """What these rows show; no claim beyond them."""
    NOT_REACHED = "not reached"
    NOT_FOUND = "not found in the budget"
    NOT_POSSIBLE = "not possible"
    NOTHING_TO_DO = "nothing to do"

    @property
    def mark(self) -> str:
        """How it is shown: "good", "bad" or "unsure"."""
        if self in (Verdict.CERTIFIED, Verdict.DESCRIBED, Verdict.NOTHING_TO_DO):
            return "good"
        return "unsure" if self is Verdict.REACHED else "bad"

    @property
    def remedy(self) -> str:
        """What to do about it; nothing where all is well.

        Examples
        --------
        >>> Verdict.NOT_FOUND.remedy
        'raise settings.seconds or settings.iterations'
        """
        return _REMEDIES.get(self, "")


_REMEDIES = {
    Verdict.REACHED: "give more rows or looser bounds",
    Verdict.NOT_REACHED: "loosen the binding bound, or free features",
    Verdict.NOT_FOUND: "raise settings.seconds or settings.iterations",
    Verdict.NOT_POSSIBLE: "free features or widen ranges",
}
