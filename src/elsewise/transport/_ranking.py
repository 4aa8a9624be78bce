"""Sorting projections while keeping which row is where.

In NumPy an argsort of many values is slow: it looks values up all over memory. Value and row are
packed into one integer instead and sorted together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from elsewise._arrays import Array, sort_with_order, take_ranked, unsort

# From so many rows on packing pays.
PACKED_ROWS = 1 << 15
# What packing left in the wrong order is put right in so many passes, if it is no larger share.
PASSES, FEW = 8, 1e-3


class Ranked(NamedTuple):
    """Projections with their sort: done once, used by distances, plans and limits alike."""

    sorted: Array
    """Array (N, n), ascending along the last axis."""
    order: Array
    """int Array (N, n): the row at each rank."""

    @property
    def rows(self) -> Array:
        """The projections (N, n) in row order."""
        return unsort(self.sorted, self.order)


def rank(projections: Array) -> Ranked:
    """Sort projections (N, n), keeping which row is at which rank.

    Examples
    --------
    >>> rank(np.array([[3.0, 1.0, 2.0]])).order
    array([[1, 2, 0]])
    """
    if type(projections) is np.ndarray and projections.shape[-1] >= PACKED_ROWS:
        found = _packed(projections)
        if found is not None:
            return found
    return Ranked(*sort_with_order(projections))


def _packed(projections: np.ndarray) -> Ranked | None:
    """Rank by one sort of integers; None where values are so close that it will not do."""
    n = projections.shape[-1]
    if projections.dtype not in (np.float32, np.float64) or n > 2**31:
        return None
    # Integers of the same size.
    integer: np.dtype[Any] = np.dtype(np.int32 if projections.dtype == np.float32 else np.int64)
    bits = np.ascontiguousarray(projections).view(integer)
    # In the order of the values: what is negative has all bits but its sign turned round.
    keys = bits >> (8 * integer.itemsize - 1)
    keys &= np.iinfo(integer).max
    keys ^= bits
    # As many of the lowest bits as it takes to number n rows.
    room = (n - 1).bit_length()
    # A single and the number of its row fit side by side in 64 bits. Of a double the last digits
    # give way, and `_put_right` mends the order of values that differed only there.
    if integer.itemsize == 4:
        keys, room = keys.astype(np.int64) << 32, 32
    else:
        keys >>= room
        keys <<= room
    keys |= np.arange(n)
    keys.sort(axis=-1)
    keys &= (1 << room) - 1
    # The keys have lost digits, so values are read from the projections.
    found = Ranked(take_ranked(projections, keys), keys)
    return found if _put_right(found) else None


def _put_right(found: Ranked) -> bool:
    """Swap neighbours, in place, that differ only in digits the row's number took the place of."""
    values, order = found
    for _ in range(PASSES):
        row, place = np.nonzero(values[:, :-1] > values[:, 1:])
        if row.size == 0:
            return True
        if row.size > FEW * values.size:
            return False
        # Of two that overlap, the second waits for the next pass.
        alone = np.append(True, (np.diff(place) != 1) | (np.diff(row) != 0))
        row, place = row[alone], place[alone]
        for part in (values, order):
            part[row, place], part[row, place + 1] = part[row, place + 1], part[row, place]
    return False
