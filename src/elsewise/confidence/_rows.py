"""How many rows a limit needs to come under its bound."""

from __future__ import annotations

import math

import numpy as np

from elsewise.confidence._bootstrap import bootstrap_distances
from elsewise.confidence._comparison import Comparison
from elsewise.errors import InvalidInput

__all__ = ["debiased_distance", "suggested_rows"]


def debiased_distance(comparison: Comparison, draws: int, rng: np.random.Generator) -> float:
    """Return the distance less what sampling alone adds to it.

    Samples differ more than their populations do. By how much, resamples show: they differ more
    than the samples, by about as much again in the square.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> comparison = Comparison.independent(rng.normal(size=(1, 50)), rng.normal(size=(1, 50)), 0.1)
    >>> debiased_distance(comparison, 99, rng) < comparison.distance
    True
    """
    resampled = bootstrap_distances(comparison, draws, rng)
    return math.sqrt(max(0.0, 2.0 * comparison.distance**2 - float(np.mean(resampled**2))))


def suggested_rows(
    limit: float, estimate: float, bound: float, rows: int, debiased: float | None = None
) -> int:
    """Return about how many rows bring a limit down to its bound.

    What a limit adds to its estimate shrinks like one over the root of the number of rows, the bias
    of the estimate like one over their number; what is left is taken for the truth.

    It is a guide: right for a typical sample, but as uncertain as the room between estimate and
    bound, so several times too small or too large for a lucky or an unlucky sample.

    Parameters
    ----------
    limit, estimate
        The limit from ``rows`` rows, and the distance it is a limit of.
    bound
        What the limit is wanted to stay under.
    rows
        Number of rows the limit was computed from.
    debiased
        The distance without its bias, see `debiased_distance`; None if the bias does not matter.

    Examples
    --------
    >>> suggested_rows(0.5, 0.2, 0.35, 100)
    400
    >>> suggested_rows(0.5, 0.2, 0.35, 100, debiased=0.15)
    273
    """
    truth = estimate if debiased is None else min(debiased, estimate)
    if not truth < bound:
        raise InvalidInput(
            "bound",
            expected=f"a number above the distance itself, {truth:.6g}",
            received=bound,
            fix="raise the bound or come closer to the target: more rows alone do not help",
        )
    if not limit < math.inf:
        raise InvalidInput(
            "limit",
            expected="a finite number",
            received=limit,
            fix="give the support, or trim more",
        )
    # With r the root of rows / wanted: bias r^2 + excess r = room.
    excess, bias, room = limit - estimate, estimate - truth, bound - truth
    root = (excess + math.sqrt(excess * excess + 4.0 * bias * room)) / (2.0 * room)
    return max(rows, math.ceil(rows * root * root - 1e-9 * rows))
