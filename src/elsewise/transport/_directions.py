"""Directions, projections, and how both are cut into parts that fit in a cache."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from elsewise._arrays import Array, namespace, on_device

__all__ = ["DEVICE_PART", "PART", "direction_blocks", "direction_parts", "project", "row_tiles"]

PART, FEWEST = 1 << 18, 8
"""Projections handled at once, so that they stay in the cache, and directions at least."""
DEVICE_PART = 1 << 28
"""The same on an accelerator, which has to be kept busy."""
MINIMUM_DIRECTIONS = 64
"""Directions are drawn in complete blocks until there are at least this many."""


def direction_blocks(
    dimension: int, rng: np.random.Generator, minimum: int = MINIMUM_DIRECTIONS
) -> np.ndarray:
    """Draw complete orthonormal blocks of directions, uniform on the sphere.

    Complete blocks satisfy ``directions @ directions.T / N = I / d`` exactly: no null space in
    which rows could move unseen, and a far smaller variance than independent directions.

    Parameters
    ----------
    dimension
        d, the number of coordinates.
    rng
        Source of randomness.
    minimum
        The fewest directions wanted; N is the next multiple of d.

    Returns
    -------
    ndarray (d, N)

    Examples
    --------
    >>> theta = direction_blocks(3, np.random.default_rng(0))
    >>> theta.shape, bool(np.allclose(theta @ theta.T / 66, np.eye(3) / 3))
    ((3, 66), True)
    """
    blocks = -(-minimum // dimension) if dimension > 1 else 1
    gaussian = rng.standard_normal((blocks, dimension, dimension))
    q, r = np.linalg.qr(gaussian)
    # The sign of R's diagonal makes Q uniform on the orthogonal group.
    q = q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]
    return np.ascontiguousarray(q.transpose(1, 0, 2).reshape(dimension, blocks * dimension))


def project(points: Array, directions: Array) -> Array:
    """Project points (n, d) on directions (d, N); returns (N, n), one contiguous row a direction.

    Examples
    --------
    >>> project(np.array([[1.0, 2.0], [3.0, 4.0]]), np.eye(2))
    array([[1., 3.],
           [2., 4.]])
    """
    xp = namespace(points, directions)
    return xp.matmul(xp.matrix_transpose(directions), xp.matrix_transpose(points))


def direction_parts(directions: Array, rows: int) -> list[Array]:
    """Split directions (d, N) so that one part's projections fit in a cache, not only in memory.

    The parts depend on the sizes alone, never on threads or memory, so results do not either.

    Examples
    --------
    >>> [part.shape for part in direction_parts(np.eye(23), 100_000)]
    [(23, 6), (23, 6), (23, 6), (23, 5)]
    """
    count = int(directions.shape[-1])
    size = max(FEWEST, (DEVICE_PART if on_device(directions) else PART) // rows)
    # An even number of pieces is shared by two threads without one waiting for the other.
    pieces = 1 if count <= size else min(count, 2 * -(-count // (2 * size)))
    ends = [-(-count * k // pieces) for k in range(pieces + 1)]
    return [directions[:, low:high] for low, high in pairwise(ends)]


def row_tiles(n: int, size: int) -> list[slice]:
    """Cut n rows into slices of at most ``size``.

    Examples
    --------
    >>> row_tiles(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]
