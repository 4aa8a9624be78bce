"""How many rows a limit needs to come under its bound."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr, ndtri

from elsewise.confidence._bootstrap import bootstrap_distances
from elsewise.confidence._choice import allowed_draws, certificate_limit, count_movers
from elsewise.confidence._clt import clt_limit
from elsewise.confidence._comparison import Comparison
from elsewise.confidence._doubt import FEW_MOVERS
from elsewise.confidence._limit import Method, UpperLimit

# Share of those who follow the advice whose limit is to come under the bound.
SUCCESS = 0.8
# At least this share of the room that the rows show is counted on.
ROOM = 0.1
# Resamples behind the bias of an estimate.
DRAWS = 199


def debiased_distance(comparison: Comparison, draws: int, rng: np.random.Generator) -> float:
    """Return the distance less what sampling alone adds to it.

    Samples differ more than their populations do. By how much, resamples show: they differ more
    than the samples, by about as much again in the square. The median of them is taken, so that a
    typical sample is right even where the distance is small.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> comparison = Comparison.independent(rng.normal(size=(1, 50)), rng.normal(size=(1, 50)), 0.1)
    >>> debiased_distance(comparison, 99, rng) < comparison.distance
    True
    """
    resampled = float(np.median(bootstrap_distances(comparison, draws, rng)))
    return math.sqrt(max(0.0, 2.0 * comparison.distance**2 - resampled**2))


def suggested_rows(
    limit: float, estimate: float, bound: float, rows: int, debiased: float | None = None
) -> int:
    """Return about how many rows bring a limit down to its bound.

    What a limit adds to its estimate shrinks like one over the root of the number of rows, the bias
    of the squared estimate like one over their number; what is left is taken for the truth.

    It is a guide: right for a typical sample, but as uncertain as the room between estimate and
    bound, so several times too small or too large for a lucky or an unlucky sample.

    Parameters
    ----------
    limit, estimate
        The limit, finite, from ``rows`` rows, and the distance it is a limit of.
    bound
        What the limit is wanted to stay under; above the distance without its bias.
    rows
        Number of rows the limit was computed from.
    debiased
        The distance without its bias, see `debiased_distance`; None if the bias does not matter.

    Examples
    --------
    >>> suggested_rows(0.5, 0.2, 0.35, 100)
    400
    >>> suggested_rows(0.5, 0.2, 0.35, 100, debiased=0.15)
    278
    """
    truth = estimate if debiased is None else min(debiased, estimate)
    # With root^2 = wanted / rows: sqrt(truth^2 + bias / root^2) + excess / root = bound.
    excess, bias, room = limit - estimate, estimate**2 - truth**2, bound**2 - truth**2
    # Squared, that is a quadratic equation; the larger solution keeps excess / root under the
    # bound.
    root = (bound * excess + math.sqrt((excess * truth) ** 2 + bias * room)) / room
    return max(rows, math.ceil(rows * root * root - 1e-9 * rows))


def rows_needed(
    comparison: Comparison,
    limit: UpperLimit,
    bound: float,
    level: float,
    rng: np.random.Generator,
    method: Method | str = Method.AUTO,
) -> tuple[float, int | None]:
    """Return the distance less its bias, and how many rows bring its limit under a bound.

    The number is meant to do for four in five who follow it: it leaves room for the luck of the new
    rows and for that of the old ones, whose room under the bound is taken at its lower fifth, given
    that there is some.

    Where few rows moved, more rows also bring more movers: it is the number that brings ten of
    them, and with them the default limit, which is narrower, under the bound. There is no number
    where the distance itself is probably not under the bound.

    Parameters
    ----------
    comparison
        What is compared.
    limit
        Its limit, as `certificate_limit` returns it.
    bound
        What the limit is wanted to stay under.
    level
        The level of the limit.
    rng
        Source of randomness.
    method
        How the limit was chosen.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(1, 100))
    >>> comparison = Comparison.paired(x + 0.2 * np.abs(x), x, 0.05)
    >>> limit = certificate_limit(comparison, 199, rng)
    >>> debiased, rows = rows_needed(comparison, limit, 0.175, 0.975, rng)
    >>> 0.15 < debiased < 0.175, 200 < rows < 2000
    (True, True)
    >>> rows_needed(comparison, limit, 0.1, 0.975, rng)[1] is None
    True
    """
    # Of very many rows the bias is nothing to speak of.
    draws = min(DRAWS, allowed_draws(comparison))
    debiased = debiased_distance(comparison, draws, rng) if draws >= 20 else limit.estimate
    if not debiased < bound:
        return debiased, None
    rows = comparison.shape[1]
    luck = clt_limit(comparison).standard_error

    def enough(upper: float) -> int:
        # What old rows (of this number) and new ones may be off adds up like errors do.
        old, needed = _unlucky(debiased, bound, luck), math.inf
        # How lucky new rows may be depends on how many there are: a fixed point, reached in a few
        # rounds.
        for _ in range(10):
            new = float(ndtri(SUCCESS)) * luck * math.sqrt(rows / needed)
            # Luck takes half of what room is left at most, or no number of rows would do.
            nearer = max(bound - math.hypot(old, new), debiased + (bound - old - debiased) / 2.0)
            needed = suggested_rows(upper, limit.estimate, nearer, rows, debiased)
        return int(needed)

    needed = enough(limit.upper(level))
    movers = count_movers(comparison)
    if method == Method.AUTO and movers is not None and 0 < movers < FEW_MOVERS:
        default = certificate_limit(comparison, DRAWS, rng, level=level, method=Method.ASYMPTOTIC)
        # A Poisson count of mean 13 reaches ten with probability 0.83, so in four samples of five.
        needed = max(math.ceil(1.3 * rows * FEW_MOVERS / movers), enough(default.upper(level)))
    return debiased, needed


def _unlucky(truth: float, bound: float, error: float) -> float:
    """Return by how much the room under the bound may be smaller: at its lower fifth, if any."""
    if error == 0.0:
        return 0.0
    none = float(ndtr((truth - bound) / error))
    fifth = error * float(ndtri(none + (1.0 - SUCCESS) * (1.0 - none)))
    return min(-fifth, (1.0 - ROOM) * (bound - truth))
