"""Which cells of a table changed: the one definition of it."""

from __future__ import annotations

from elsewise._arrays import Array, namespace

__all__ = ["changed_cells"]


def changed_cells(before: Array, after: Array) -> Array:
    """Return, bool and of the same shape, the cells that differ; one missing in both does not.

    Examples
    --------
    >>> import numpy as np
    >>> changed_cells(np.array([[1.0, np.nan]]), np.array([[2.0, np.nan]]))
    array([[ True, False]])
    """
    xp = namespace(before)
    return (before != after) & ~(xp.isnan(before) & xp.isnan(after))
