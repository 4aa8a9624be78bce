"""The one file that knows several array libraries exist.

Kernels are written on the array API standard; NumPy, torch (CPU or GPU) and array-api-strict all
work. What the standard lacks (a scatter along an axis, a search in every row) is filled in here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

import array_api_compat as compat
import array_api_compat.numpy
import numpy as np

# NumPy follows the standard by itself since 2.1; what stands between costs small arrays dearly.
NUMPY: Any = np if hasattr(np, "cumulative_sum") else array_api_compat.numpy

Array = Any
"""An array of any library that follows the array API standard."""
Record = TypeVar("Record")

# Largest number that is computed with: the product of two, squared, is a float64. Numbers whose
# spread is below its reciprocal are refused for the same reason.
LARGEST = 1e75


def namespace(*arrays: Array) -> Any:
    """Return the array API namespace that ``arrays`` share."""
    kinds = tuple(map(type, arrays))
    found = _namespaces.get(kinds)
    if found is None:
        found = compat.array_namespace(*arrays)
        _namespaces[kinds] = found = NUMPY if set(kinds) == {np.ndarray} else found
    return found


_namespaces: dict[tuple[type, ...], Any] = {}
"""Answers given before: the question comes up at every turn."""


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


def to_double(array: Array) -> np.ndarray:
    """Return a copy of ``array`` as NumPy in double precision.

    Examples
    --------
    >>> to_double(np.ones(2, dtype=np.float32))
    array([1., 1.])
    """
    return to_numpy(array).astype(np.float64)


def asarray_like(array: Array, reference: Array) -> Array:
    """Return ``array`` in the library and on the device of ``reference``; floats take its dtype."""
    values: Array = np.asarray(array) if not compat.is_array_api_obj(array) else array
    if type(values) is np.ndarray and type(reference) is np.ndarray:
        return values.astype(reference.dtype, copy=False) if values.dtype.kind == "f" else values
    device = compat.device(reference)
    same = type(values) is type(reference) and compat.device(values) == device
    if same and values.dtype == reference.dtype:
        return values
    xp = namespace(reference)
    if compat.is_torch_array(reference):
        # From device to device never through the host.
        moved = values if compat.is_torch_array(values) else xp.asarray(to_numpy(values), copy=True)
        # To an accelerator without waiting for what it is doing.
        moved = moved.to(device, non_blocking=device.type != "cpu")
    else:
        moved = xp.asarray(to_numpy(values), device=device, copy=True)
    if xp.isdtype(moved.dtype, "real floating") and xp.isdtype(reference.dtype, "real floating"):
        moved = xp.astype(moved, reference.dtype, copy=False)
    return moved


def cached_asarray_like(
    like: Array, make: Callable[..., tuple[np.ndarray, ...]], *arguments: Any
) -> Any:
    """Return the arrays of ``make(*arguments)`` as `asarray_like` does, made only once.

    Examples
    --------
    >>> (one,) = cached_asarray_like(np.ones(1), lambda n: (np.arange(n),), 2)
    >>> one
    array([0, 1])
    """
    return _kept(make, arguments, (namespace(like), compat.device(like), like.dtype))


@lru_cache(maxsize=32)
def _kept(make: Callable[..., Any], arguments: tuple[Any, ...], kind: tuple[Any, Any, Any]) -> Any:
    xp, device, dtype = kind
    like = xp.empty(0, dtype=dtype, device=device)
    return tuple(asarray_like(array, like) for array in make(*arguments))


def row_products(rows: Array, others: Array) -> Array:
    """Return the inner product of each row with another, along the last axis.

    Examples
    --------
    >>> row_products(np.array([[3.0, 4.0]]), np.array([[1.0, 2.0]]))
    array([11.])
    """
    if type(rows) is np.ndarray:
        return np.vecdot(rows, others)  # no array of products in between
    xp = namespace(rows, others)
    products = rows * others
    if on_device(products):
        # Rows are short: as a product with ones their sums take half the time.
        return products @ products.new_ones(products.shape[-1])
    return xp.sum(products, axis=-1)


def multiply_add(start: Array, factors: Array, others: Array) -> Array:
    """Return ``start + factors * others``, in torch without an array of products in between.

    Examples
    --------
    >>> multiply_add(np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([5.0, 6.0]))
    array([16., 26.])
    """
    if type(start) is not np.ndarray and compat.is_torch_array(start):
        return start.addcmul(factors, others)
    total = factors * others
    total += start
    return total


def clamped(values: Array, lower: Array, upper: Array) -> Array:
    """Return the numbers nearest to ``values`` that are in the ranges; NaN where any is NaN.

    Examples
    --------
    >>> clamped(np.array([-1.0, 9.0]), np.array([0.0, 0.0]), np.array([1.0, 1.0]))
    array([0., 1.])
    """
    if type(values) is not np.ndarray and compat.is_torch_array(values):
        return values.clamp(lower, upper)
    xp = namespace(values, lower, upper)
    return xp.minimum(xp.maximum(values, lower), upper)


# Values summed in their own precision.
BLOCK = 1024


def double_sums(values: Array) -> Array:
    """Return the sums of rows (N, n) in float64: of short blocks first, in their own precision.

    Examples
    --------
    >>> double_sums(np.ones((1, 3000), dtype=np.float32))
    array([3000.])
    """
    xp = namespace(values)
    rows, n = values.shape
    whole = n - n % BLOCK
    blocks = xp.sum(xp.reshape(values[:, :whole], (rows, whole // BLOCK, BLOCK)), axis=-1)
    rest = xp.sum(values[:, whole:], axis=-1)
    return xp.sum(xp.astype(blocks, xp.float64), axis=-1) + xp.astype(rest, xp.float64)


def sort_with_order(rows: Array) -> tuple[Array, Array]:
    """Return rows (N, n) sorted along the last axis, and the place each value had, int (N, n).

    Examples
    --------
    >>> sort_with_order(np.array([[3.0, 1.0, 2.0]]))
    (array([[1., 2., 3.]]), array([[1, 2, 0]]))
    """
    if compat.is_torch_array(rows):
        found = rows.sort(dim=-1)
        return found.values, found.indices
    order = namespace(rows).argsort(rows, axis=-1, stable=False)
    return take_ranked(rows, order), order


def count_before(knots: Array, points: Array) -> Array:
    """Return how many of its row's sorted ``knots`` (N, K) are at or before each of ``points``.

    Examples
    --------
    >>> count_before(np.array([[0.0, 1.0], [5.0, 6.0]]), np.array([[-1.0, 1.5], [5.0, 9.0]]))
    array([[0, 2],
           [1, 2]])
    """
    xp = namespace(knots, points)
    if compat.is_torch_array(knots):
        return xp.searchsorted(knots.contiguous(), points.contiguous(), side="right")
    rows = range(points.shape[0])
    return xp.stack([xp.searchsorted(knots[k, :], points[k, :], side="right") for k in rows])


def running_maximum(values: Array) -> Array:
    """Return the largest value so far, along the last axis.

    Examples
    --------
    >>> running_maximum(np.array([[1.0, 3.0, 2.0]]))
    array([[1., 3., 3.]])
    """
    if compat.is_torch_array(values):
        return values.cummax(-1).values
    return asarray_like(np.maximum.accumulate(to_numpy(values), axis=-1), values)


def index_range(n: int, like: Array) -> Array:
    """Return 0 .. n - 1 as int64, made where ``like`` is.

    Examples
    --------
    >>> index_range(3, np.ones(1))
    array([0, 1, 2])
    """
    xp = namespace(like)
    return xp.arange(n, dtype=xp.int64, device=compat.device(like))


def take(array: Array, index: Array, axis: int = 0) -> Array:
    """Take parts of an array along an axis, at places, int, none of which is negative.

    A flat array may be taken at places of any shape.

    Examples
    --------
    >>> take(np.array([1.0, 2.0, 3.0]), np.array([[2, 0], [1, 1]]))
    array([[3., 1.],
           [2., 2.]])
    """
    if type(array) is np.ndarray:
        return array.take(index, axis=axis)
    if compat.is_torch_array(array):
        # Without the passes over the index that make negative places work.
        flat = array.index_select(axis, index.reshape(-1))
        return flat if index.ndim == 1 else flat.reshape(index.shape)
    return namespace(array, index).take(array, index, axis=axis)


def take_rows(array: Array, index: np.ndarray) -> Array:
    """Return the rows of ``array`` at a NumPy index, without leaving its device.

    Examples
    --------
    >>> take_rows(np.array([[1.0], [2.0], [3.0]]), np.array([2, 0]))
    array([[3.],
           [1.]])
    """
    return take(array, asarray_like(index, array))


def with_arrays(record: Record, change: Callable[[Array], Array], *names: str) -> Record:
    """Return a dataclass with the named arrays changed, those that are not None.

    Examples
    --------
    >>> from elsewise.features import Legal
    >>> legal = Legal(factual=np.ones((1, 1)), lower=np.zeros((1, 1)), upper=np.ones((1, 1)),
    ...               integer=np.array([False]), broken=np.array([False]))
    >>> with_arrays(legal, lambda array: array + 1.0, "lower", "upper").upper
    array([[2.]])
    """
    given = {name: getattr(record, name) for name in names}
    changed = {name: change(array) for name, array in given.items() if array is not None}
    return replace(record, **changed)  # type: ignore[type-var]


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
    if compat.is_torch_array(rows):
        # Without the passes that make negative places work.
        return rows.gather(-1, order)
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


def in_row_order(function: Callable[[Any], Any], make: Callable[[], Any]) -> tuple[Any, bool]:
    """Call a function of rows, and put the pandas Series it returns in the order of the rows.

    Labels that are the frame's in another order may be those of an id column by accident. Then the
    function is asked again about the same rows under other labels: only if these come back, too,
    does the index speak of the rows.

    Returns
    -------
    tuple of the answer and bool
        Whether the answer has an index of its own, so that it is in the order it came in.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [3, 1, 2]})
    >>> in_row_order(lambda frame: frame["a"].sort_values(), frame.copy)[0].tolist()
    [3, 1, 2]
    """
    frame = make()
    rows = getattr(frame, "index", None)
    answer = function(frame)
    if rows is None or not hasattr(answer, "reindex") or answer.index.equals(rows):
        return answer, False
    if not _same_labels(answer.index, rows):
        return answer, True
    frame = make().set_axis(rows + len(rows))
    rows = frame.index
    again = function(frame)
    if isinstance(again, type(answer)) and _same_labels(again.index, rows):
        return again.reindex(rows), False
    return answer, True


def _same_labels(index: Any, rows: Any) -> bool:
    return len(index) == len(rows) and index.is_unique and bool(index.isin(rows).all())


def changed_cells(before: Array, after: Array) -> Array:
    """Return, bool and of the same shape, the cells that differ; one missing in both does not.

    Examples
    --------
    >>> changed_cells(np.array([[1.0, np.nan]]), np.array([[2.0, np.nan]]))
    array([[ True, False]])
    """
    xp = namespace(before)
    return (before != after) & ~(xp.isnan(before) & xp.isnan(after))
