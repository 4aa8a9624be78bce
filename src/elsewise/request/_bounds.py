"""How far each side may be, what a certificate speaks of, and what it comes to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import inf, isfinite

from elsewise._arrays import LARGEST
from elsewise.confidence import Method
from elsewise.errors import Check, check_fields, share_fix


def _distance(name: str) -> Check:
    expected = "a positive number, or None for 'as small as possible'"
    fix = f"leave {name} out, or give a distance such as 0.2"
    return Check(lambda bound: 0 < bound < inf, expected, fix)


SHARE = Check(
    lambda share: 0 < share <= 1,
    "a share in (0, 1]",
    lambda share: share_fix(share, "0.95 means 95% of rows"),
)
CHECKS = {
    "inputs": _distance("inputs"),
    "outputs": _distance("outputs"),
    "moves": _distance("moves"),
    "reach": SHARE,
    "rows_moved": SHARE,
    "cells_per_row": Check(
        lambda cells: cells >= 1, "a whole number >= 1", "2 lets each row change two features"
    ),
    "confidence": Check(
        lambda level: 0 < level < 1, "a number strictly between 0 and 1", "0.95 is usual"
    ),
    "trim": Check(
        lambda trim: 0 <= trim < 0.5, "a number in [0, 0.5)", "0.05 leaves out 5% at either end"
    ),
    "method": Check(
        lambda method: method in list(Method),
        ", ".join(repr(kind.value) for kind in Method),
        "'auto' chooses",
    ),
    "support": Check(
        lambda ends: -LARGEST <= ends[0] < ends[1] <= LARGEST,
        "two finite numbers, lower < upper, or None",
        "give the ends that no output can leave, such as (0, 100)",
    ),
    "cutoff": Check(
        isfinite,
        "a finite number, or None",
        "give the output from which on a row counts as passing",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How far the counterfactual may be from the factual inputs and from the target outputs.

    Distances are 2-Wasserstein distances on the root scale: inputs sliced, in standard deviations
    of the background; outputs in the model's own units. ``None`` means "as small as possible".

    Examples
    --------
    >>> Bounds(inputs=0.2, outputs=0.1).side_level
    0.95
    """

    inputs: float | None = None
    """Bound on the upper limit of the input distance."""
    outputs: float | None = None
    """Bound on the upper limit of the output distance."""
    moves: float | None = None
    """Bound on the upper limit of a row's root mean square move, in standard deviations: a bound of
    the unsliced distance of the inputs, too."""
    reach: float | None = None
    """Share of rows that is to arrive where the target wants every row: at_most, at_least, a
    constant with a tolerance, a label."""
    rows_moved: float | None = None
    """Largest share of rows that may move, of a question answered row by row."""
    cells_per_row: int | None = None
    """Most features that one row may change, of a question answered row by row."""
    confidence: float = 0.95
    """Confidence that each bound and each ask is tested at. All of them must hold for the verdict,
    so that no level is divided (intersection-union)."""
    trim: float = 0.05
    """Share of mass at either end about which nothing is certified."""
    method: str = "auto"
    """Kind of the upper limits: "auto" (asymptotic; finite-sample where few rows moved, or where
    nothing is trimmed and rows are few), "asymptotic", "finite-sample", or "exact" (the rows are
    the population and no limit is claimed, see ``population="all"`` of `explain`)."""
    support: tuple[float, float] | None = None
    """Ends that no output can leave; known to be 0 and 1 for probabilities."""
    cutoff: float | None = None
    """The output that counts as passing in the certificate's shares; None: 0.5 for probabilities,
    else what the target names, or the median output."""

    def __post_init__(self) -> None:
        check_fields(self, "bounds", CHECKS)

    @property
    def side_level(self) -> float:
        """Level of each side: all must hold for the verdict, so each is tested at the whole one."""
        return self.confidence


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
