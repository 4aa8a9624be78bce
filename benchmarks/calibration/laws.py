"""Laws given by their quantile functions, and the distances between populations."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import betaincinv, expit, ndtr, ndtri

Quantile = Callable[[np.ndarray], np.ndarray]
"""Levels in (0, 1) to values."""

POINTS = 400_000
"""Levels of the midpoint rule: errors near 1e-6, far below any Monte-Carlo error here."""


def beta(a: float, b: float) -> Quantile:
    """Scores with a beta distribution."""
    return lambda levels: betaincinv(a, b, levels)


def saturated(mean: float) -> Quantile:
    """Scores of a model that is nearly always sure: most are near 0 or near 1."""
    return lambda levels: expit(mean + 6.0 * ndtri(levels))


def labels(share: float) -> Quantile:
    """Hard labels, of which this share is 1."""
    return lambda levels: np.where(levels > 1.0 - share, 1.0, 0.0)


def with_failures(share: float) -> Quantile:
    """Scores close below 1, but for a share of failures near 0."""
    return lambda levels: np.interp(levels, [0.0, share, share, 1.0], [0.0, 0.1, 0.9, 1.0])


def constant(value: float) -> Quantile:
    """The same score for every row."""
    return lambda levels: np.full_like(levels, value)


def quantile_distance(first: Quantile, second: Quantile, trim: float) -> float:
    """Trimmed distance of two laws on the line, by a midpoint rule over levels."""
    levels = trim + (1.0 - 2.0 * trim) * (np.arange(POINTS) + 0.5) / POINTS
    return math.sqrt(float(np.mean((first(levels) - second(levels)) ** 2)))


def normal_gap_distance(
    shifts: np.ndarray, stretch: float, trim: float, points: int = 20_000
) -> float:
    """Distance of N(shift_k, stretch^2) to N(0, 1), sliced: the root mean square over shifts."""
    levels = trim + (1.0 - 2.0 * trim) * (np.arange(points) + 0.5) / points
    gaps = shifts[:, None] + (stretch - 1.0) * ndtri(levels)
    return math.sqrt(float(np.mean(gaps * gaps)))


def moved_normal_quantiles(
    slope: float, push: float, move: Callable[[np.ndarray], np.ndarray], breaks: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles of ``slope * X + push * move(X) + sqrt(1 - slope^2) * Z``, X and Z normal.

    That is a projection of normal rows of which the first feature decides how far the others move.
    Its distribution function is an integral over X, by Gauss-Legendre between the breaks of
    ``move``.

    Returns
    -------
    tuple of ndarray
        Normal scores (G,) and the quantiles (G,) at those levels.
    """
    nodes, weights = np.polynomial.legendre.leggauss(200)
    ends = np.unique(np.concatenate([np.linspace(-8.0, 8.0, 9), breaks]))
    half, middle = np.diff(ends) / 2.0, (ends[1:] + ends[:-1]) / 2.0
    x = (middle[:, None] + half[:, None] * nodes).ravel()
    mass = (half[:, None] * weights).ravel() * np.exp(-x * x / 2.0) / math.sqrt(2.0 * math.pi)
    centres = slope * x + push * move(x)
    spread = math.sqrt(1.0 - slope * slope)
    values = np.linspace(-6.5, 6.5, 2001) + push * float(np.mean(move(x)))
    below = np.concatenate(
        [ndtr((part[:, None] - centres) / spread) @ mass for part in np.array_split(values, 20)]
    )
    inside = (below > 1e-9) & (below < 1.0 - 1e-9)
    return ndtri(below[inside]), values[inside]


def moved_normal_distance(
    directions: np.ndarray,
    push: np.ndarray,
    move: Callable[[np.ndarray], np.ndarray],
    breaks: tuple[float, ...],
    trim: float,
) -> float:
    """Sliced distance of normal rows X to ``X + push * move(X_1)``, with push_1 = 0.

    Parameters
    ----------
    directions
        ndarray (d, N).
    push
        ndarray (d,): how the rows move, times ``move`` of their first feature.
    move
        Vectorized function, smooth between ``breaks``.
    breaks
        Where ``move`` jumps.
    trim
        Share left out at either end.
    """
    levels = trim + (1.0 - 2.0 * trim) * (np.arange(20_000) + 0.5) / 20_000
    scores = ndtri(levels)
    squares = []
    for theta in directions.T:
        at, quantiles = moved_normal_quantiles(float(theta[0]), float(theta @ push), move, breaks)
        # The gap is smooth in the normal score, so that interpolating it is accurate.
        squares.append(np.mean(np.interp(scores, at, quantiles - at) ** 2))
    return math.sqrt(float(np.mean(squares)))
