"""How fast the sliced distance of samples comes to that of their populations."""

from __future__ import annotations

import math

import numpy as np

from elsewise.transport import direction_blocks, sliced_squared_distance

__all__ = ["DIMENSIONS", "REPETITIONS", "ROWS", "errors"]

DIMENSIONS = (2, 10, 23, 100)
ROWS = (50, 100, 200, 500, 1000, 2000, 5000)
REPETITIONS = 40
DIRECTIONS = 20
"""At least so many, in complete blocks."""
SHIFT, STRETCH = 0.3, 1.2


def errors(
    dimension: int,
    *,
    apart: bool,
    rows: tuple[int, ...] = ROWS,
    repetitions: int = REPETITIONS,
    seed: int = 0,
) -> list[float]:
    """Mean of |SW - SW_hat| for each number of rows, of two independent samples.

    The populations are N(0, I) and, if they are apart, N(0.3, 1.2^2 I). On complete blocks of
    directions their distance is the root of 0.3^2 + 0.2^2 in every dimension.
    """
    shift, stretch = (SHIFT, STRETCH) if apart else (0.0, 1.0)
    truth = math.hypot(shift, stretch - 1.0)
    rng = np.random.default_rng([seed, dimension, apart])
    means = []
    for count in rows:
        gaps = []
        for _ in range(repetitions):
            theta = direction_blocks(dimension, rng, DIRECTIONS)
            x = shift + stretch * rng.standard_normal((count, dimension))
            y = rng.standard_normal((count, dimension))
            gaps.append(abs(math.sqrt(sliced_squared_distance(x, y, theta)) - truth))
        means.append(float(np.mean(gaps)))
    return means
