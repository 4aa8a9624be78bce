"""The one file that knows several array libraries exist.

Kernels are written on the array API standard; NumPy, torch (CPU or GPU) and array-api-strict all
work. What the standard lacks (a scatter along an axis) is filled in here.
"""

from __future__ import annotations

from typing import Any

import array_api_compat as compat
import numpy as np

Array = Any
"""An array of any library that follows the array API standard."""

__all__ = [
    "Array",
    "asarray_like",
    "inverse_permutation",
    "namespace",
    "take_ranked",
    "to_numpy",
    "unsort",
]


def namespace(*arrays: Array) -> Any:
    """Return the array API namespace that ``arrays`` share."""
    return compat.array_namespace(*arrays)


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
    xp = namespace(reference)
    values = np.asarray(array) if not compat.is_array_api_obj(array) else array
    if compat.is_numpy_array(values) and compat.is_numpy_array(reference):
        return values.astype(reference.dtype, copy=False) if values.dtype.kind == "f" else values
    device = compat.device(reference)
    moved = xp.asarray(to_numpy(values), device=device, copy=True)
    if xp.isdtype(moved.dtype, "real floating") and xp.isdtype(reference.dtype, "real floating"):
        moved = xp.astype(moved, reference.dtype, copy=False)
    return moved


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
