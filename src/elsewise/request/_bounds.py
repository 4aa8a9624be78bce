"""The question: a population, a model, a target, and how far each side may be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from elsewise._arrays import LARGEST
from elsewise.confidence import Method
from elsewise.errors import InvalidInput, check_fields

if TYPE_CHECKING:
    pass


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
        for name in ("inputs", "outputs"):
            bound = getattr(self, name)
            if bound is not None and not (_is_number(bound) and 0 < bound < math.inf):
                raise InvalidInput(
                    f"bounds.{name}",
                    expected="a positive number, or None for 'as small as possible'",
                    received=repr(bound),
                    fix=f"leave {name} out, or give a distance such as 0.2",
                )
        for name in ("reach", "rows_moved"):
            share = getattr(self, name)
            if share is not None and not (_is_number(share) and 0 < share <= 1):
                percent = _is_number(share) and 2 <= share <= 100
                raise InvalidInput(
                    f"bounds.{name}",
                    expected="a share in (0, 1]",
                    received=repr(share),
                    fix=f"did you mean {share / 100:g}" if percent else "0.95 means 95 % of rows",
                )
        cells = self.cells_per_row
        if cells is not None and not (isinstance(cells, int | np.integer) and cells >= 1):
            raise InvalidInput(
                "bounds.cells_per_row",
                expected="a whole number >= 1",
                received=repr(cells),
                fix="2 lets each row change two features",
            )
        self._check_statistics()
        check_fields(self, "bounds")

    def _check_statistics(self) -> None:
        """Refuse what no limit could be computed with."""
        if not (_is_number(self.confidence) and 0 < self.confidence < 1):
            raise InvalidInput(
                "bounds.confidence",
                expected="a number strictly between 0 and 1",
                received=repr(self.confidence),
                fix="0.95 is usual",
            )
        if not (_is_number(self.trim) and 0 <= self.trim < 0.5):
            raise InvalidInput(
                "bounds.trim",
                expected="a number in [0, 0.5)",
                received=repr(self.trim),
                fix="0.05 leaves out 5 % at either end",
            )
        if self.method not in list(Method):
            raise InvalidInput(
                "bounds.method",
                expected=", ".join(repr(kind.value) for kind in Method),
                received=repr(self.method),
                fix="'auto' chooses",
            )
        if self.support is not None and not _is_range(self.support):
            raise InvalidInput(
                "bounds.support",
                expected="two finite numbers, lower < upper, or None",
                received=repr(self.support),
                fix="give the ends that no output can leave, such as (0, 100)",
            )
        if self.cutoff is not None and not (_is_number(self.cutoff) and math.isfinite(self.cutoff)):
            raise InvalidInput(
                "bounds.cutoff",
                expected="a finite number, or None",
                received=repr(self.cutoff),
                fix="give the output from which on a row counts as passing",
            )

    @property
    def side_level(self) -> float:
        """Level of each side: all must hold for the verdict, so each is tested at the whole one."""
        return self.confidence


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_range(ends: object) -> bool:
    if not (isinstance(ends, tuple | list) and len(ends) == 2 and all(map(_is_number, ends))):
        return False
    low, high = ends
    return -LARGEST <= float(low) < float(high) <= LARGEST
