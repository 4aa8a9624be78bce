"""Distances that are known, not estimated, as their own limits."""

from __future__ import annotations

from dataclasses import dataclass

from elsewise.confidence._comparison import Comparison
from elsewise.confidence._limit import UpperLimit, checked_level


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLimit:
    """A distance that is known, not estimated."""

    method: str
    assumption: str
    estimate: float

    def upper(self, level: float) -> float:
        checked_level(level)
        return self.estimate

    def probability(self, bound: float) -> float:
        return 1.0 if bound >= self.estimate else 0.0


def exact_limit(comparison: Comparison) -> UpperLimit:
    """Return the distance itself as the limit: right where the rows are the whole population.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(5.0)[None, :]
    >>> exact_limit(Comparison.paired(x + 2.0, x, 0.0)).upper(0.95)
    2.0
    """
    return known_limit(comparison.distance)


def known_limit(distance: float) -> UpperLimit:
    """Return a distance that is known, not estimated, as its own limit.

    Examples
    --------
    >>> known_limit(2.0).upper(0.95)
    2.0
    """
    return KnownLimit(
        method="exact",
        assumption="The rows are the whole population, so that the distance is known.",
        estimate=distance,
    )
