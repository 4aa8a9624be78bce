"""Intervals for what people decide on: a mean, and a share past a cut-off."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, stdtrit

from elsewise.confidence._betting import Bets, place_bets
from elsewise.confidence._limit import checked_level
from elsewise.errors import InvalidInput

__all__ = ["Interval", "mean_interval", "share_interval"]

INDEPENDENT = "Rows are independent draws; holds for every number of rows."
KNOWN = "The rows are the whole population, so that the number is known."


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A number with its two-sided confidence interval."""

    estimate: float
    lower: float | None
    """None where the number is known and needs no interval."""
    upper: float | None
    level: float | None
    """Confidence that the interval holds the population's number, for this interval alone."""
    method: str
    assumption: str

    @classmethod
    def known(cls, value: float) -> Interval:
        """Return a number that is known, because the rows are the population.

        Examples
        --------
        >>> Interval.known(0.25).level is None
        True
        """
        return cls(
            estimate=value, lower=None, upper=None, level=None, method="exact", assumption=KNOWN
        )


def mean_interval(
    values: np.ndarray,
    level: float,
    rng: np.random.Generator,
    support: tuple[float, float] | None = None,
) -> Interval:
    """Return a confidence interval of the mean of what values (n,) were drawn from.

    With a known support it holds for every number of rows, by betting from either side; without
    one it is Student's, which needs a mean that is nearly normal.

    Parameters
    ----------
    values
        ndarray (n,), independent draws.
    level
        Two-sided confidence.
    rng
        Decides the order of the bets.
    support
        The ends that no value can leave.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> found = mean_interval(rng.uniform(size=500), 0.95, rng, support=(0.0, 1.0))
    >>> found.method, bool(found.lower < 0.5 < found.upper)
    ('betting', True)
    """
    side = (1.0 + checked_level(level)) / 2.0
    mean, n = float(np.mean(values)), values.size
    if support is None:
        error = float(np.std(values, ddof=1)) / math.sqrt(n)
        reach = float(stdtrit(n - 1, side)) * error
        return Interval(
            estimate=mean,
            lower=mean - reach,
            upper=mean + reach,
            level=level,
            method="Student's t",
            assumption=(
                "Rows are independent draws, numerous enough for their mean to be nearly normal; "
                "values that are all equal give an interval of length 0, which is no guarantee."
            ),
        )
    low, high = support
    # Outputs may pass an end by their rounding, those in single precision too.
    slack = 1e-6 * (high - low)
    if not (low < high and low - slack <= np.min(values) and np.max(values) <= high + slack):
        raise InvalidInput(
            "support",
            expected="lower < upper, with every value between them",
            received=f"{support} for values from {np.min(values):g} to {np.max(values):g}",
            fix="widen the support to all values that can occur",
        )
    unit = np.clip((values - low) / (high - low), 0.0, 1.0)
    above = _upper_mean(place_bets(unit, side, rng), side)
    below = 1.0 - _upper_mean(place_bets(1.0 - unit, side, rng), side)
    return Interval(
        estimate=mean,
        # The bets depend on their order: in very small samples a side may fall short of the mean.
        lower=min(mean, low + (high - low) * below),
        upper=max(mean, low + (high - low) * above),
        level=level,
        method="betting",
        assumption=f"No value can leave [{low:g}, {high:g}]. {INDEPENDENT}",
    )


def share_interval(values: np.ndarray, cutoff: float, level: float) -> Interval:
    """Return the Clopper-Pearson interval of the share of values (n,) at or above a cut-off.

    Examples
    --------
    >>> found = share_interval(np.array([0.2, 0.6, 0.7, 0.9]), 0.5, 0.95)
    >>> found.estimate, round(found.lower, 3), round(found.upper, 3)
    (0.75, 0.194, 0.994)
    """
    tail = (1.0 - checked_level(level)) / 2.0
    n = values.size
    hits = int(np.sum(values >= cutoff))
    return Interval(
        estimate=hits / n,
        lower=float(betaincinv(hits, n - hits + 1, tail)) if hits > 0 else 0.0,
        upper=float(betaincinv(hits + 1, n - hits, 1.0 - tail)) if hits < n else 1.0,
        level=level,
        method="Clopper-Pearson",
        assumption=INDEPENDENT,
    )


def _upper_mean(bets: Bets, level: float) -> float:
    """Return the smallest mean that the bets reject at a level, by bisection."""
    missed, met = 0.0, 1.0
    while missed < (middle := (missed + met) / 2.0) < met:
        if bets.level(middle) >= level:
            met = middle
        else:
            missed = middle
    return met
