"""Directions, projections, and how both are cut into parts that fit in a cache."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from elsewise._arrays import Array, asarray_like, namespace, on_device

PART, FEWEST = 1 << 18, 8
"""Projections handled at once, so that they stay in the cache, and directions at least."""
DEVICE_PART = 1 << 28
"""The same on an accelerator, which has to be kept busy."""
# Directions are drawn in complete blocks until there are at least this many.
MINIMUM_DIRECTIONS = 64
# In more dimensions each direction looks at about so many coordinates, not at all of them.
WIDE, WIDE_BLOCK = 1024, 128


def direction_blocks(
    dimension: int, rng: np.random.Generator, minimum: int = MINIMUM_DIRECTIONS
) -> Any:
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
    ndarray (d, N), or scipy.sparse.csc_array in more than 1024 dimensions

    Examples
    --------
    >>> theta = direction_blocks(3, np.random.default_rng(0))
    >>> theta.shape, bool(np.allclose(theta @ theta.T / 66, np.eye(3) / 3))
    ((3, 66), True)
    """
    if dimension > WIDE:
        return _grouped_directions(dimension, rng)
    # In one dimension directions are 1 and -1, which give the same distance.
    blocks = -(-minimum // dimension) if dimension > 1 else 1
    q = _orthonormal(blocks, dimension, rng)
    return np.ascontiguousarray(q.transpose(1, 0, 2).reshape(dimension, blocks * dimension))


def _orthonormal(blocks: int, dimension: int, rng: np.random.Generator) -> np.ndarray:
    """Draw orthogonal matrices (blocks, d, d), uniform on the orthogonal group."""
    gaussian = rng.standard_normal((blocks, dimension, dimension))
    q, r = np.linalg.qr(gaussian)
    # The sign of R's diagonal makes Q uniform on the orthogonal group.
    signed: np.ndarray = q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]
    return signed


def _grouped_directions(dimension: int, rng: np.random.Generator) -> Any:
    """Draw a complete orthonormal block (d, d), each direction inside one group of coordinates."""
    groups = -(-dimension // WIDE_BLOCK)
    dealt = np.array_split(rng.permutation(dimension), groups)
    size = len(dealt[0])
    # Every direction has as many entries, so that packing is reshaping; a few of them are zeros.
    values, rows = np.zeros((dimension, size)), np.zeros((dimension, size), dtype=np.int32)
    first = 0
    for group in dealt:
        part = slice(first, first + len(group))
        values[part, : len(group)] = _orthonormal(1, len(group), rng)[0].T
        rows[part, : len(group)] = group
        first += len(group)
    return _sparse_directions(values, rows)


def _sparse_directions(values: np.ndarray, rows: np.ndarray) -> Any:
    starts = np.arange(len(rows) + 1) * rows.shape[1]
    return sparse.csc_array((values.ravel(), rows.ravel(), starts), shape=(len(rows), len(rows)))


def pack_directions(directions: Any) -> Array:
    """Return directions as one plain array: as they are, or (size, N, 2) of values and rows.

    Examples
    --------
    >>> pack_directions(direction_blocks(1100, np.random.default_rng(0))).shape
    (123, 1100, 2)
    """
    if not sparse.issparse(directions):
        return directions
    count = directions.shape[1]
    # Row numbers as floats, to share one array with the values: exact up to 2^53.
    parts = directions.data, directions.indices
    return np.stack([part.reshape(count, -1).T.astype(np.float64) for part in parts], axis=-1)


def unpack_directions(packed: np.ndarray) -> Any:
    """Return the directions that `pack_directions` packed."""
    if packed.ndim == 2:
        return packed
    found = _sparse_directions(packed[..., 0].T, packed[..., 1].T.astype(np.int32))
    # A file may be anybody's: rows beyond the end would be read from memory that is not ours.
    found.check_format(full_check=True)
    return found


def directions_like(directions: Any, reference: Array) -> Any:
    """Return directions in the library and dtype of ``reference``; sparse ones stay so in NumPy."""
    if not sparse.issparse(directions):
        return asarray_like(directions, reference)
    if type(reference) is np.ndarray:
        return directions.astype(reference.dtype)
    return asarray_like(directions.toarray(), reference)


def project(points: Array, directions: Array) -> Array:
    """Project points (n, d) on directions (d, N); returns (N, n), one contiguous row a direction.

    Examples
    --------
    >>> project(np.array([[1.0, 2.0], [3.0, 4.0]]), np.eye(2))
    array([[1., 3.],
           [2., 4.]])
    """
    if sparse.issparse(directions):
        return directions.T @ np.ascontiguousarray(points.T)
    xp = namespace(points, directions)
    return xp.matmul(xp.matrix_transpose(directions), xp.matrix_transpose(points))


def lift(values: Array, directions: Array) -> Array:
    """Return the sum over directions (d, N) of each times its values (N, n), as points (n, d).

    Examples
    --------
    >>> lift(np.array([[1.0, 3.0], [2.0, 4.0]]), np.eye(2))
    array([[1., 2.],
           [3., 4.]])
    """
    if sparse.issparse(directions):
        return np.asarray((directions @ np.ascontiguousarray(values)).T)
    xp = namespace(values, directions)
    return xp.matmul(xp.matrix_transpose(values), xp.matrix_transpose(directions))


def part_size(array: Array) -> int:
    """Return how many projections are handled at once where an array is."""
    return DEVICE_PART if on_device(array) else PART


def direction_parts(directions: Array, rows: int) -> list[Array]:
    """Split directions (d, N) so that one part's projections fit in a cache, not only in memory.

    The parts depend on the sizes alone, never on threads or memory, so results do not either.

    Examples
    --------
    >>> [part.shape for part in direction_parts(np.eye(23), 100_000)]
    [(23, 6), (23, 6), (23, 6), (23, 5)]
    """
    count = int(directions.shape[-1])
    size = max(FEWEST, part_size(directions) // rows)
    # An even number of pieces is shared by two threads without one waiting for the other.
    pieces = 1 if count <= size else min(count, 2 * -(-count // (2 * size)))
    # Pieces differ by one direction at most.
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
