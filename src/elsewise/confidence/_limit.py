"""What a limit is, the levels it is read at, and the largest or best of several limits."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from scipy.special import betaincinv

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


@dataclass(frozen=True, slots=True, kw_only=True)
class UpperLimit:
    """An upper confidence limit of a distance, at every level.

    ``upper(level) <= bound`` holds exactly when ``probability(bound) >= level``.
    """

    method: str
    """Short name of the method."""
    assumption: str
    """One sentence: what has to be true for the limit to hold."""
    estimate: float
    """The trimmed distance of the samples themselves."""
    doubt: str = ""
    """Why the limit may be too small; nothing if there is no reason."""

    def upper(self, level: float) -> float:
        """Return the one-sided upper limit at a level in (0, 1); never below the estimate."""
        raise NotImplementedError

    def probability(self, bound: float) -> float:
        """Return the largest level at which the limit is at most ``bound``; 0 if there is none.

        For U_x and U_y it is what the paper's eq. (3) asks P to stay under, on the root scale.
        """
        raise NotImplementedError

    def doubted(self, doubt: str) -> Self:
        """Return the limit with a reason to doubt it, where no other can take its place."""
        said = f"{self.assumption} Here {doubt}, so that it may be too small."
        return replace(self, doubt=doubt, assumption=said)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLimit(UpperLimit):
    """A distance that is known, not estimated, as its own limit.

    Examples
    --------
    >>> KnownLimit(estimate=2.0).upper(0.95)
    2.0
    """

    method: str = "exact"
    assumption: str = "The rows are the whole population, so that the distance is known."

    def upper(self, level: float) -> float:
        checked_level(level)
        return self.estimate

    def probability(self, bound: float) -> float:
        return 1.0 if bound >= self.estimate else 0.0


class ContinuousLimit(UpperLimit):
    """A limit with a value at every level: `at` gives it, and is inverted by bisection."""

    __slots__ = ()

    def at(self, level: float) -> float:
        """Return the limit at a level of the grid in (0, 1]; it never falls with the level."""
        raise NotImplementedError

    def upper(self, level: float) -> float:
        return self.at(level_on_grid(level))

    def probability(self, bound: float) -> float:
        if self.at(1.0) <= bound:
            return 1.0
        # At so many levels of the grid the limit is within the bound: all up to the last of them.
        met = bisect_right(range(1, GRID), bound, key=lambda level: self.at(level / GRID))
        return met / GRID


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


def share_above(count: float, rows: float, level: float) -> float:
    """Return the Clopper-Pearson limit of the share of which ``count`` of ``rows`` are.

    Examples
    --------
    >>> round(share_above(0, 100, 0.95), 4)
    0.0295
    """
    # Counts need not be whole: rows in clusters count as fewer. Of all rows no share is too large.
    return float(betaincinv(count + 1, rows - count, level)) if count < rows else 1.0


def smallest_meeting(meets: Callable[[float], bool], largest: float) -> float:
    """Return the smallest number up to ``largest`` that meets a level, by bisection.

    Examples
    --------
    >>> smallest_meeting(lambda number: number >= 0.3, 1.0)
    0.3
    """
    missed, met = 0.0, largest
    # Down to neighbouring numbers, of which the larger meets the level.
    while missed < (middle := (missed + met) / 2.0) < met:
        if meets(middle):
            met = middle
        else:
            missed = middle
    return met


@dataclass(frozen=True, slots=True, kw_only=True)
class _Largest(UpperLimit):
    """The maximum of several limits for the same distance."""

    limits: tuple[UpperLimit, ...]

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
    estimate = max(limit.estimate for limit in limits)
    return _Largest(limits=limits, estimate=estimate, **_named("max", limits))


@dataclass(frozen=True, slots=True, kw_only=True)
class _BestOfTwo(UpperLimit):
    """The smaller of two limits for the same distance, each at half of the error."""

    limits: tuple[UpperLimit, ...]

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
    limits = first, second
    return _BestOfTwo(limits=limits, estimate=first.estimate, **_named("min", limits))


def _named(chosen: str, limits: tuple[UpperLimit, ...]) -> dict[str, str]:
    """Return how the largest or the smallest of several limits is called, and what it assumes."""
    methods = ", ".join(limit.method for limit in limits)
    assumptions = dict.fromkeys(limit.assumption for limit in limits)
    return {"method": f"{chosen}({methods})", "assumption": " ".join(assumptions)}
