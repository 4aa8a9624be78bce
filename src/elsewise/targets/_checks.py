"""What the targets accept, and how their numbers are written."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from elsewise._arrays import LARGEST, to_numpy
from elsewise.errors import InvalidInput
from elsewise.text import figure

Level = float | tuple[float, ...]
"""A number for all output columns, or one number per column."""


def numbers(argument: str, values: Any) -> np.ndarray:
    """Return finite float64 numbers, or refuse."""
    array = to_numpy(values)
    numeric = array.dtype.kind in "biuf" or (
        array.dtype == object and all(isinstance(value, Real) for value in array.flat)
    )
    if not numeric or not np.all(np.abs(array.astype(np.float64)) <= LARGEST):
        raise InvalidInput(
            argument,
            expected="finite numbers",
            received=f"{array.dtype} values, some not finite or beyond {LARGEST:g}"
            if numeric
            else array.dtype,
            fix="drop missing and infinite values, and convert text to numbers",
        )
    return array.astype(np.float64)


def rows_of(argument: str, values: Any) -> np.ndarray:
    """Return values as read-only rows (m, K)."""
    array = numbers(argument, values)
    if array.ndim not in (1, 2) or array.size == 0:
        expected = "at least one row, as an array (m,) or (m, K)"
        fix = "pass one output per row, or one row of outputs per row"
        raise InvalidInput(argument, expected=expected, received=f"shape {array.shape}", fix=fix)
    rows = array.reshape(array.shape[0], -1)
    rows.setflags(write=False)
    return rows


def level_of(argument: str, value: Any, nobody: float | None = None) -> Level:
    """Return a number, or one number per output column; ``nobody`` in the place of each None."""
    # None says that a column does not matter: only the other numbers are checked.
    if nobody is not None and isinstance(value, list | tuple) and None in value:
        cared = [part for part in value if part is not None]
        if cared:
            rest = iter(numbers(argument, cared).tolist())
            return tuple(nobody if part is None else next(rest) for part in value)
    array = numbers(argument, value)
    if array.ndim > 1 or array.size == 0:
        expected, fix = "a number, or one number per output column", "pass a scalar"
        raise InvalidInput(argument, expected=expected, received=f"shape {array.shape}", fix=fix)
    return tuple(array.tolist()) if array.ndim else float(array)


def columns_of(level: Level) -> int | None:
    return len(level) if isinstance(level, tuple) else None


def text(level: Level) -> str:
    if isinstance(level, tuple):
        return f"[{', '.join(map(text, level))}]"
    return figure(level, 6).replace(",", "") if np.isfinite(level) else "any"
