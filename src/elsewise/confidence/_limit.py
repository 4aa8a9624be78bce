"""What a limit is, the levels it is read at, and the largest or best of several limits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from elsewise.errors import InvalidInput

# Continuous limits are read at multiples of 1 / GRID, far apart for rounding errors, so that the
# limit is exactly monotone and its inverse by bisection exact.
GRID = 2**40


# What the CLT and the bootstrap assume, said once.
ASYMPTOTIC = (
    "Rows are independent draws, numerous enough for their average influence to be nearly normal "
    "and for resampled rows to vary as new ones would."
)


class Method(StrEnum):
    """Which kind of limit is wanted."""

    AUTO = "auto"
    """Asymptotic where that is safe, finite-sample where it is not and can be had."""
    ASYMPTOTIC = "asymptotic"
    """The larger of bootstrap and CLT, always."""
    FINITE_SAMPLE = "finite-sample"
    """A limit that holds for every number of rows, or a refusal."""
    EXACT = "exact"
    """None: the rows are the whole population, the distance is known."""


class UpperLimit(Protocol):
    """An upper confidence limit of a distance, at every level.

    ``upper(level) <= bound`` holds exactly when ``probability(bound) >= level``.
    """

    @property
    def method(self) -> str:
        """Short name of the method."""

    @property
    def assumption(self) -> str:
        """One sentence: what has to be true for the limit to hold."""

    @property
    def estimate(self) -> float:
        """The trimmed distance of the samples themselves."""

    def upper(self, level: float) -> float:
        """Return the one-sided upper limit at a level in (0, 1); never below the estimate."""

    def probability(self, bound: float) -> float:
        """Return the largest level at which the limit is at most ``bound``; 0 if there is none."""


def level_on_grid(level: float) -> float:
    """Round a level in (0, 1) up to the grid, which keeps a limit on the safe side."""
    return math.ceil(checked_level(level) * GRID) / GRID


def level_below(level: float) -> float:
    """Round a level down to the grid: the largest level of the grid that it attains, or 0."""
    return math.floor(max(level, 0.0) * GRID) / GRID


def checked_level(level: float) -> float:
    """Refuse a level outside (0, 1)."""
    if not 0.0 < level < 1.0:
        raise InvalidInput(
            "level", expected="a number in (0, 1)", received=level, fix="try 0.95 for 95%"
        )
    return level


def attained_level(upper: Callable[[float], float], bound: float) -> float:
    """Return the largest level of the grid with ``upper(level) <= bound``, by bisection.

    Parameters
    ----------
    upper
        Non-decreasing function of a level of the grid in (0, 1].
    bound
        What the limit is compared with.

    Examples
    --------
    >>> attained_level(lambda level: 2.0 * level, 1.5)
    0.75
    """
    if upper(1.0) <= bound:
        return 1.0
    met, missed = 0, GRID
    while missed - met > 1:
        middle = (met + missed) // 2
        if upper(middle / GRID) <= bound:
            met = middle
        else:
            missed = middle
    return met / GRID


@dataclass(frozen=True, slots=True, kw_only=True)
class _Largest:
    """The maximum of several limits for the same distance."""

    limits: tuple[UpperLimit, ...]

    @property
    def method(self) -> str:
        return f"max({', '.join(limit.method for limit in self.limits)})"

    @property
    def assumption(self) -> str:
        return " ".join(dict.fromkeys(limit.assumption for limit in self.limits))

    @property
    def estimate(self) -> float:
        return max(limit.estimate for limit in self.limits)

    def upper(self, level: float) -> float:
        return max(limit.upper(level) for limit in self.limits)

    def probability(self, bound: float) -> float:
        return min(limit.probability(bound) for limit in self.limits)


def largest(*limits: UpperLimit) -> UpperLimit:
    """Return the limit that is the largest of ``limits`` at every level.

    Its probability is the smallest of theirs.

    Examples
    --------
    >>> import numpy as np
    >>> from elsewise.confidence import Comparison, band_limit, clt_limit
    >>> comparison = Comparison.paired(np.eye(1, 30), np.zeros((1, 30)), 0.0)
    >>> largest(clt_limit(comparison), band_limit(comparison)).upper(0.95)
    inf
    """
    if not limits:
        raise InvalidInput(
            "limits", expected="at least one limit", received="none", fix="pass clt_limit(...)"
        )
    return _Largest(limits=limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class _BestOfTwo:
    """The smaller of two limits for the same distance, each at half of the error."""

    limits: tuple[UpperLimit, UpperLimit]

    @property
    def method(self) -> str:
        return f"min({', '.join(limit.method for limit in self.limits)})"

    @property
    def assumption(self) -> str:
        return " ".join(dict.fromkeys(limit.assumption for limit in self.limits))

    @property
    def estimate(self) -> float:
        return self.limits[0].estimate

    def upper(self, level: float) -> float:
        # Halves of levels of the grid are rounded up to it, so that `probability` inverts this.
        half = min(level_on_grid((1.0 + level_on_grid(level)) / 2.0), 1.0 - 1.0 / GRID)
        return min(limit.upper(half) for limit in self.limits)

    def probability(self, bound: float) -> float:
        attained = level_below(max(limit.probability(bound) for limit in self.limits))
        return max(0.0, 2.0 * attained - 1.0)


def best_of_two(first: UpperLimit, second: UpperLimit) -> UpperLimit:
    """Return the smaller of two limits, each at half of the error (Bonferroni).

    Examples
    --------
    >>> import numpy as np
    >>> from elsewise.confidence import Comparison, band_limit, clt_limit
    >>> comparison = Comparison.paired(np.eye(1, 30), np.zeros((1, 30)), 0.1)
    >>> both = best_of_two(clt_limit(comparison), band_limit(comparison))
    >>> both.upper(0.9) == clt_limit(comparison).upper(0.95)
    True
    """
    return _BestOfTwo(limits=(first, second))
