"""How a search ends."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from elsewise.search._loop import State

__all__ = ["Outcome", "Solution"]


class Outcome(StrEnum):
    """How a search ended; the text says what to do."""

    CERTIFIED = "certified"
    NOTHING_TO_DO = "nothing to do: the factual population already meets the limits"
    CHOSEN = "no limits given: chosen at the knee of the frontier; give limits to certify a bound"
    MADE_ELSEWHERE = "made by another method: its distances are described, not searched for"
    NOT_FEASIBLE = "not feasible: loosen the binding limit to what is reachable, or free features"
    NOT_CERTIFIED = "not certified: the certificate misses a limit; give more rows or looser limits"
    NOTHING_MOVES = "nothing could move: free features or widen ranges"
    OUT_OF_TIME = "out of time: raise settings.seconds"


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
