"""Intervals for what people decide on: a mean, and a share past a cut-off."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, stdtrit

from elsewise.confidence._betting import Bets, place_bets
from elsewise.confidence._limit import checked_level, smallest_meeting
from elsewise.errors import InvalidInput

INDEPENDENT = "Rows are independent draws; holds for every number of rows."
# Past this skewness, divided by the root of the number of rows, a mean carries a notice.
SKEWED = 0.25
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
    notice: str = ""
    """Why the interval may be too short; nothing if there is no reason."""

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

    With a known support it holds for every number of rows, by betting from either side. Without
    one it is Student's, corrected for the skewness of the values by Hall's cubic transform [1]_:
    the mean of skewed values misses to one side. Strong skewness carries a notice.

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

    References
    ----------
    .. [1] P. Hall, "On the removal of skewness by transformation", Journal of the Royal
       Statistical Society B 54, 1992.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> found = mean_interval(rng.uniform(size=500), 0.95, rng, support=(0.0, 1.0))
    >>> found.method, bool(found.lower < 0.5 < found.upper)
    ('betting', True)
    """
    side = (1.0 + checked_level(level)) / 2.0
    mean = float(np.mean(values))
    if support is None:
        return _skew_corrected(values, mean, level, side)
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


def _skew_corrected(values: np.ndarray, mean: float, level: float, side: float) -> Interval:
    """Return Student's interval of a mean after Hall's transform of its statistic.

    With W = (mean - truth) / deviation and g the skewness,
    ``W + g W^2 / 3 + g^2 W^3 / 27 + g / (6 n)`` is nearly Student's t over the root of n.
    """
    n, deviation = values.size, float(np.std(values, ddof=1))
    skewness = 0.0
    if deviation > 1e-12 * abs(mean):
        skewness = float(np.mean(((values - mean) / deviation) ** 3))
    reach = float(stdtrit(n - 1, side)) / math.sqrt(n)
    ends = np.array([reach, -reach])
    if abs(skewness) > 1e-6:
        cubic = 1.0 + skewness * (ends - skewness / (6.0 * n))
        ends = 3.0 / skewness * (np.cbrt(cubic) - 1.0)
    lower, upper = mean - deviation * ends
    heavy = abs(skewness) > SKEWED * math.sqrt(n)
    return Interval(
        estimate=mean,
        lower=min(mean, float(lower)),
        upper=max(mean, float(upper)),
        level=level,
        method="skew-corrected t",
        assumption=(
            "Rows are independent draws, numerous enough for their mean, corrected for skewness, "
            "to be nearly normal; values that are all equal give an interval of length 0, which is "
            "no guarantee."
        ),
        notice=(
            f"the interval may be too short, because values are skewed (skewness {skewness:.2g}, "
            f"{n} rows): give the range of the outputs (support), or more rows"
            if heavy
            else ""
        ),
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
    return smallest_meeting(lambda mean: bets.level(mean) >= level, 1.0)
