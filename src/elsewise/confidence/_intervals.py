"""Intervals for what people decide on: a mean, and a share past a cut-off."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from elsewise.confidence._betting import Bets, place_bets
from elsewise.confidence._doubt import FEW_MOVERS, NUDGE, ROUNDING
from elsewise.confidence._limit import UpperLimit, checked_level, share_above, smallest_meeting
from elsewise.errors import InvalidInput

INDEPENDENT = "Rows are independent draws; holds for every number of rows."
# Past this skewness, divided by the root of the number of rows, a mean carries a notice; squared
# moves, of which the farthest counts twice, past the second number.
SKEWED, SKEWED_MOVES = 0.25, 0.4
# Student's t does not know how few clusters stand behind a spread: 95 % limits of normal numbers
# held in 85 % of samples of two, 92 % of five and 94 % of ten clusters.
FEWEST_CLUSTERS = 10
SUPPORT = "give the range of the outputs (support), or more rows"
KNOWN = "The rows are the whole population, so that the number is known."


@dataclass(frozen=True, slots=True)
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

    @property
    def at_most(self) -> float:
        """The upper limit, or the number itself where it is known."""
        return self.estimate if self.upper is None else self.upper

    @classmethod
    def known(cls, value: float) -> Interval:
        """Return a number that is known, because the rows are the population.

        Examples
        --------
        >>> Interval.known(0.25).level is None
        True
        """
        return cls(value, None, None, None, "exact", KNOWN)


def mean_interval(
    values: np.ndarray,
    level: float,
    rng: np.random.Generator,
    support: tuple[float, float] | None = None,
    clusters: np.ndarray | None = None,
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
    clusters
        Which values belong together (n,); None: they are independent.

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
    if support is None:
        return _clustered(_skew_corrected(values, level), values, clusters)
    mean, (low, high) = float(np.mean(values)), support
    # Outputs may pass an end by their rounding, those in single precision too.
    slack = 1e-6 * (high - low)
    if not (low < high and low - slack <= np.min(values) and np.max(values) <= high + slack):
        expected = "lower < upper, with every value between them"
        received = f"{support} for values from {np.min(values):g} to {np.max(values):g}"
        fix = "widen the support to all values that can occur"
        raise InvalidInput("support", expected=expected, received=received, fix=fix)
    unit = np.clip((values - low) / (high - low), 0.0, 1.0)
    # Either side has half of the error. Bets give upper limits, so the lower one is 1 minus the
    # upper limit of 1 - numbers.
    above = _upper_mean(place_bets(unit, side, rng), side)
    below = 1.0 - _upper_mean(place_bets(1.0 - unit, side, rng), side)
    found = Interval(
        estimate=mean,
        # The bets depend on their order: in very small samples a side may fall short of the mean.
        lower=min(mean, low + (high - low) * below),
        upper=max(mean, low + (high - low) * above),
        level=level,
        method="betting",
        assumption=f"No value can leave [{low:g}, {high:g}]. {INDEPENDENT}",
    )
    return _clustered(found, values, clusters, support)


def _skew_corrected(
    values: np.ndarray, level: float, most: float = SKEWED, remedy: str = SUPPORT
) -> Interval:
    """Return Student's interval of a mean after Hall's transform of its statistic.

    With W = (mean - truth) / deviation and g the skewness,
    ``W + g W^2 / 3 + g^2 W^3 / 27 + g / (6 n)`` is nearly Student's t over the root of n.
    """
    n, mean, side = values.size, float(np.mean(values)), (1.0 + level) / 2.0
    deviation = float(np.std(values, ddof=1))
    skewness = 0.0
    # Of numbers that are equal but for rounding, the third moment is noise over noise.
    if deviation > 1e-12 * abs(mean):
        skewness = float(np.mean(((values - mean) / deviation) ** 3))
    reach = float(stdtrit(n - 1, side)) / math.sqrt(n)
    ends = np.array([reach, -reach])
    if abs(skewness) > 1e-6:
        # The transform is ((1 + g W / 3)^3 - 1) / g + g / (6 n), so that a cube root inverts it.
        cubic = 1.0 + skewness * (ends - skewness / (6.0 * n))
        ends = 3.0 / skewness * (np.cbrt(cubic) - 1.0)
    # W is (mean - truth) / deviation: its upper end gives the lower limit of the truth.
    lower, upper = mean - deviation * ends
    notice = ""
    if abs(skewness) > most * math.sqrt(n):
        reason = f"values are skewed (skewness {skewness:.2g})"
        notice = f"the interval may be too short, because {reason}: {remedy}"
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
        notice=notice,
    )


def move_interval(
    squares: np.ndarray,
    confidence: float,
    cap: float | None = None,
    clusters: np.ndarray | None = None,
) -> Interval:
    """Return the root mean square move of a row, with its limits; the upper one is one-sided.

    The farthest mover counts once more in the limits, because a sample shows little of a tail. If
    fewer than ten rows moved at all, the share that moves has a Clopper-Pearson limit, and the
    farthest move stands for all of them, or the cap if no row moved. Where many rows moved, but
    fewer than ten by more than a nudge, a notice says that large moves may have been missed.

    Parameters
    ----------
    squares
        ndarray (n,), squared moves of the rows, in squared standard deviations.
    confidence
        Level of the upper limit.
    cap
        Largest squared move that a row can make; None where it is unknown.
    clusters
        Which rows belong together (n,); None: they are independent.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = move_interval(rng.uniform(size=400), 0.95)
    >>> round(found.estimate, 2), round(found.upper, 2), found.notice
    (0.73, 0.75, '')
    """
    labels = np.arange(squares.size) if clusters is None else clusters
    # How many clusters there are, how many with a row that moved at all, and how many with one that
    # moved by more than a nudge. Thresholds are squared like the moves; no square is below -1.
    thresholds = -1.0, ROUNDING**2, NUDGE**2
    n, moved, clearly = (np.unique(labels[squares > least]).size for least in thresholds)
    mean, farthest = float(np.mean(squares)), float(np.max(squares))
    if moved < FEW_MOVERS and (moved or cap is not None):
        found = Interval(
            estimate=mean,
            lower=0.0,
            # The mean is at most the share that moves times the farthest squared move.
            upper=(farthest if moved else cap or 0.0) * share_above(moved, n, confidence),
            level=confidence,
            method="farthest move, Clopper-Pearson",
            assumption=(
                "Rows are independent draws, and those that move go as far as the farthest seen at "
                "most in root mean square, or as ranges let them where none was seen."
            ),
        )
        found = found if clusters is None else replace(found, **by_cluster(found))
    else:
        # Two-sided at 2c - 1: its upper end is the one-sided limit at c.
        level = max(2.0 * confidence - 1.0, 0.5)
        twice = np.append(squares, farthest)
        found = _skew_corrected(twice, level, SKEWED_MOVES, "more rows help")
        found = _clustered(replace(found, estimate=mean), squares, clusters)
        if clearly < FEW_MOVERS:
            said = "the limit may be too small, because fewer than ten rows clearly moved: more"
            found = replace(found, notice=f"{said} rows help")
    lower = math.sqrt(min(max(found.lower or 0.0, 0.0), mean))
    upper = math.sqrt(max(found.upper or 0.0, mean))
    return replace(found, estimate=math.sqrt(mean), lower=lower, upper=upper)


def share_interval(
    values: np.ndarray, cutoff: float, level: float, clusters: np.ndarray | None = None
) -> Interval:
    """Return the Clopper-Pearson interval of the share of values (n,) at or above a cut-off.

    Values in clusters (n,) count as so many independent ones as say as much (Korn and Graubard).

    Examples
    --------
    >>> found = share_interval(np.array([0.2, 0.6, 0.7, 0.9]), 0.5, 0.95)
    >>> found.estimate, round(found.lower, 3), round(found.upper, 3)
    (0.75, 0.194, 0.994)
    """
    side, past = (1.0 + checked_level(level)) / 2.0, values >= cutoff
    share, n = float(np.mean(past)), float(values.size)
    if clusters is not None:
        n /= design_factor(past - share, clusters) ** 2
    hits = float(np.sum(past)) * (n / values.size)
    lower, upper = 1.0 - share_above(n - hits, n, side), share_above(hits, n, side)
    found = Interval(share, lower, upper, level, "Clopper-Pearson", INDEPENDENT)
    return (
        found if clusters is None else _few_doubted(replace(found, **by_cluster(found)), clusters)
    )


def _few_doubted(found: Interval, clusters: np.ndarray) -> Interval:
    """Return an interval with a notice where there are too few clusters for it."""
    count = len(np.unique(clusters))
    if count >= FEWEST_CLUSTERS or found.notice:
        return found
    said = f"the interval may be too short, because there are only {count} clusters"
    return replace(found, notice=f"{said}: more clusters help")


def _clustered(
    interval: Interval,
    values: np.ndarray,
    clusters: np.ndarray | None,
    support: tuple[float, float] | None = None,
) -> Interval:
    """Return the interval of a mean of values (n,) in clusters, from that of independent rows.

    Without clusters it is the interval given. It does not leave the ends of a known support.
    """
    if clusters is None or interval.lower is None or interval.upper is None:
        return interval
    factor = design_factor(values - np.mean(values), clusters)
    low, high = support or (-math.inf, math.inf)
    lower = max(low, interval.estimate - factor * (interval.estimate - interval.lower))
    upper = min(high, interval.estimate + factor * (interval.upper - interval.estimate))
    found = replace(interval, lower=lower, upper=upper, **by_cluster(interval))
    return _few_doubted(found, clusters)


def design_factor(influences: np.ndarray, clusters: np.ndarray) -> float:
    """Return the root of the design effect of centred influences (n,) in clusters, at least 1.

    Where no influence varies, it is taken as if rows of a cluster were copies of each other.
    """
    _, labels = np.unique(clusters, return_inverse=True)
    sizes = np.bincount(labels)
    single = float(np.sum(influences**2))
    if single == 0.0:
        return math.sqrt(float(np.sum(sizes**2)) / float(np.sum(sizes)))
    sums = np.bincount(labels, influences)
    # Sums by cluster vary about a mean that was estimated: one degree of freedom, as in a variance.
    together = float(np.sum(sums**2)) * sizes.size / max(1, sizes.size - 1)
    # At least 1: clusters that are more even than chance are luck, and must not shorten a limit.
    return math.sqrt(max(1.0, together / single))


def by_cluster(independent: UpperLimit | Interval) -> dict[str, Any]:
    """Return how the limit or interval of clusters is called, and what it assumes."""
    assumption = independent.assumption.replace("Rows are", "Clusters of rows are", 1)
    return {"method": f"{independent.method}, by cluster", "assumption": assumption}


def _upper_mean(bets: Bets, level: float) -> float:
    """Return the smallest mean that the bets reject at a level, by bisection."""
    return smallest_meeting(lambda mean: bets.level(mean) >= level, 1.0)
