"""How a search ends."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from elsewise.search._loop import State


class Outcome(StrEnum):
    """How a search for small distances ended; the certificate has the last word."""

    MET = "bounds met on the rows of the fit"
    NOTHING_TO_DO = "bounds met by the factual rows"
    CHOSEN = "no bounds given: chosen at the knee of the frontier"
    NOT_FEASIBLE = "bounds not met"
    NOTHING_MOVES = "no row could move"
    OUT_OF_TIME = "out of time"


class Solution(NamedTuple):
    """The chosen iterate and why it was chosen."""

    state: State
    outcome: Outcome
    binding: str | None = None
    """The side whose limit cannot be met, "inputs" or "outputs"."""
    reachable: float | None = None
    """The smallest upper limit found on the binding side with the other side's limit met."""
    reason: str = ""
    """Why this iterate, where no limit decided."""
