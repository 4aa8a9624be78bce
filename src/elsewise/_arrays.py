"""The one file that knows several array libraries exist.

Kernels are written on the array API standard; NumPy, torch (CPU or GPU) and array-api-strict all
work. What the standard lacks (a scatter along an axis, a search in every row) is filled in here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import array_api_compat as compat
import array_api_compat.numpy
import numpy as np

# NumPy follows the standard by itself since 2.1; what stands between costs small arrays dearly.
NUMPY: Any = np if hasattr(np, "cumulative_sum") else array_api_compat.numpy

Array = Any
"""An array of any library that follows the array API standard."""

__all__ = [
    "Array",
    "asarray_like",
    "device_of",
    "index_range",
    "inverse_permutation",
    "locator",
    "namespace",
    "on_device",
    "squared_norms",
    "take_ranked",
    "take_rows",
    "to_numpy",
    "unsort",
]


def namespace(*arrays: Array) -> Any:
    """Return the array API namespace that ``arrays`` share."""
    # Asked for at every turn: the usual case is answered at once.
    for array in arrays:
        if type(array) is not np.ndarray:
            return compat.array_namespace(*arrays)
    return NUMPY


def device_of(array: Array) -> Any:
    """Return the device of ``array``, as its library names it.

    Examples
    --------
    >>> device_of(np.ones(2))
    'cpu'
    """
    return compat.device(array)


def on_device(array: Array) -> bool:
    """Tell whether ``array`` lives on an accelerator.

    Examples
    --------
    >>> on_device(np.ones(2))
    False
    """
    return bool(compat.is_torch_array(array) and array.device.type != "cpu")


def to_numpy(array: Array) -> np.ndarray:
    """Return ``array`` as NumPy, copying from a device where needed.

    Examples
    --------
    >>> to_numpy(np.ones(2))
    array([1., 1.])
    """
    if compat.is_torch_array(array):
        return np.asarray(array.detach().cpu().numpy())
    return np.asarray(array)


def asarray_like(array: Array, reference: Array) -> Array:
    """Return ``array`` in the library and on the device of ``reference``; floats take its dtype."""
    values: Array = np.asarray(array) if not compat.is_array_api_obj(array) else array
    if type(values) is np.ndarray and type(reference) is np.ndarray:
        return values.astype(reference.dtype, copy=False) if values.dtype.kind == "f" else values
    xp = namespace(reference)
    device = compat.device(reference)
    if compat.is_torch_array(reference):
        # From device to device never through the host.
        moved = values if compat.is_torch_array(values) else xp.asarray(to_numpy(values), copy=True)
        moved = moved.to(device)
    else:
        moved = xp.asarray(to_numpy(values), device=device, copy=True)
    if xp.isdtype(moved.dtype, "real floating") and xp.isdtype(reference.dtype, "real floating"):
        moved = xp.astype(moved, reference.dtype, copy=False)
    return moved


Locate = Callable[[Array], Array]
"""Points (N, n) to the flat place, int (N, n), of the knot each is at or after."""

BUCKETS = 4
"""Buckets per knot, so that few of them hold more than one."""
FEW_ROUNDS = 8
"""With more knots than this in one bucket, a binary search is quicker."""


def locator(knots: Array) -> Locate:
    """Return a function that finds, row by row, the interval of ``knots`` each point lies in.

    Parameters
    ----------
    knots
        Array (N, K), K >= 2, non-decreasing along the last axis.

    Returns
    -------
    callable
        Points (N, n) to the place, in the flattened table, of the last knot at or before each;
        the first where there is none, the last but one at most.

    Examples
    --------
    >>> locator(np.array([[0.0, 1.0, 2.0], [5.0, 6.0, 7.0]]))(np.array([[-1.0, 1.5], [6.0, 9.0]]))
    array([[0, 1],
           [4, 4]])
    """
    if type(knots) is np.ndarray:
        return _numpy_locator(knots)
    xp = namespace(knots)
    rows, size = knots.shape
    inner = knots[:, 1:-1]
    base = xp.arange(rows, dtype=xp.int64, device=compat.device(knots))[:, None] * size
    if compat.is_torch_array(knots):
        inner = inner.contiguous()
        return lambda points: xp.searchsorted(inner, points.contiguous(), side="right") + base

    def search(points: Array) -> Array:
        found = [
            xp.searchsorted(inner[k, :], points[k, :], side="right") for k in range(points.shape[0])
        ]
        return xp.stack(found) + base

    return search


def _numpy_locator(knots: np.ndarray) -> Locate:
    """Look points up in buckets of equal width, then go on knot by knot: no binary search.

    The bucket of a value never falls as the value rises, rounding included, so every knot in an
    earlier bucket is below the point.
    """
    rows, size = knots.shape
    first = knots[:, :1]
    count = BUCKETS * size
    with np.errstate(divide="ignore", over="ignore"):
        scale = count / (knots[:, -1:] - first)
    scale[~np.isfinite(scale)] = 0.0
    offset = np.arange(rows)[:, None]

    def bucket(values: np.ndarray) -> np.ndarray:
        places = (values - first) * scale
        np.clip(places, 0, count - 1, out=places)
        return np.asarray(places.astype(np.int64) + offset * count)

    filled = np.bincount(bucket(knots).ravel(), minlength=rows * count).reshape(rows, count)
    rounds = int(filled.max())
    if rounds > FEW_ROUNDS:
        inner = knots[:, 1:-1]
        return lambda points: np.stack(
            [
                np.searchsorted(inner[k], points[k], side="right") + k * size
                for k in range(len(points))
            ]
        )
    before = np.clip(np.cumsum(filled, axis=1) - filled - 1, 0, size - 2)
    start = (before + offset * size).ravel()
    following = np.full_like(knots, np.inf)
    following[:, : size - 2] = knots[:, 1:-1]
    following = following.ravel()

    def search(points: np.ndarray) -> np.ndarray:
        found: np.ndarray = start[bucket(points)]
        for _ in range(rounds):
            found += following[found] <= points
        return found

    return search


def squared_norms(rows: Array) -> Array:
    """Return the sum of squares of each row, along the last axis.

    Examples
    --------
    >>> squared_norms(np.array([[3.0, 4.0]]))
    array([25.])
    """
    if type(rows) is np.ndarray:
        return np.vecdot(rows, rows)  # no array of squares in between
    return namespace(rows).sum(rows * rows, axis=-1)


def index_range(n: int, like: Array) -> Array:
    """Return 0 .. n - 1 as int64, made where ``like`` is.

    Examples
    --------
    >>> index_range(3, np.ones(1))
    array([0, 1, 2])
    """
    xp = namespace(like)
    return xp.arange(n, dtype=xp.int64, device=compat.device(like))


def take_rows(array: Array, index: np.ndarray) -> Array:
    """Return the rows of ``array`` at a NumPy index, without leaving its device.

    Examples
    --------
    >>> take_rows(np.array([[1.0], [2.0], [3.0]]), np.array([2, 0]))
    array([[3.],
           [1.]])
    """
    return namespace(array).take(array, asarray_like(index, array), axis=0)


def take_ranked(rows: Array, order: Array) -> Array:
    """Put ``rows`` (N, n) in the order ``order`` (N, n), along the last axis.

    Examples
    --------
    >>> take_ranked(np.array([[3.0, 1.0, 2.0]]), np.array([[1, 2, 0]]))
    array([[1., 2., 3.]])
    """
    if compat.is_numpy_array(order):
        # One flat gather is several times faster than take_along_axis.
        return np.take(rows, order + _offsets(order))
    return namespace(rows, order).take_along_axis(rows, order, axis=-1)


def unsort(values: Array, order: Array) -> Array:
    """Put ``values``, given in sorted order, back to their rows along the last axis.

    Parameters
    ----------
    values
        Array (N, n) in sorted order.
    order
        Array (N, n), the argsort that produced that order.

    Examples
    --------
    >>> x = np.array([[3.0, 1.0, 2.0]])
    >>> unsort(np.sort(x), np.argsort(x))
    array([[3., 1., 2.]])
    """
    xp = namespace(values, order)
    if compat.is_numpy_array(order):
        rows = np.empty(values.shape, dtype=values.dtype)
        rows.reshape(-1)[order + _offsets(order)] = values
        return rows
    if compat.is_torch_array(order):
        return xp.empty_like(values).scatter_(-1, order, values)
    return xp.take_along_axis(values, xp.argsort(order, axis=-1), axis=-1)


def _offsets(order: np.ndarray) -> np.ndarray:
    """Where each row begins in the flattened array, (N, 1)."""
    return np.arange(0, order.size, order.shape[-1])[:, None]


def inverse_permutation(order: Array) -> Array:
    """Return ranks such that ``sorted[ranks] == unsorted``, along the last axis.

    Examples
    --------
    >>> inverse_permutation(np.array([[2, 0, 1]]))
    array([[1, 2, 0]])
    """
    xp = namespace(order)
    places = xp.arange(order.shape[-1], dtype=order.dtype, device=compat.device(order))
    return unsort(xp.broadcast_to(places, order.shape), order)
