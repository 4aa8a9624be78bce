"""Reading a schema off a frame: one feature per column."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from enum import Enum
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from elsewise._arrays import LARGEST
from elsewise._resources import parallel
from elsewise.errors import InvalidInput, bad_column
from elsewise.features._feature import CONSTANT, IDENTIFIER, RARE, Feature, Kind
from elsewise.features._sources import FIX, WANTED, to_pandas

WHOLE = "whole numbers: kept whole unless made continuous"
# Categories of more levels are not moved unless the user frees them.
MOST_LEVELS = 50
# Columns of so many rows are read in threads.
MANY = 100_000
# Of numbers that are not whole, these many usually tell.
FIRST = 1000
# Names of identifiers; so many rows that all differ have one.
CALLED = r"(?i:(^|[^a-z])(id|uuid|guid|identifier)$|^unnamed: \d+$|^index$)|[a-z]I[dD]$"
MANY_ROWS = 20
# Levels of fewer rows are no targets, where there are at least so many rows.
FEWEST_SEEN, COUNTED_FROM = 5, 100
# Numbers with more decimals than this have no step.
DECIMALS = 6
# Integers up to here are exact in float64.
EXACT = 2.0**53


class Role(Enum):
    """How the cells of a column are read."""

    AMOUNT = "numbers"
    LEVEL = "categories, booleans or text"
    OTHER = "other objects"


def check_frame(frame: Any, argument: str = "frame") -> None:
    """Refuse what is not a DataFrame with unique column names and at least one column."""
    if not isinstance(frame, pd.DataFrame):
        raise InvalidInput(argument, expected=WANTED, received=type(frame).__name__, fix=FIX)
    if frame.shape[1] == 0:
        expected, fix = "at least one column", "pass the features"
        raise InvalidInput(argument, expected=expected, received="none", fix=fix)
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        expected, received = "unique column names", f"{twice!r} more than once"
        fix = "rename or drop one of them"
        raise InvalidInput(argument, expected=expected, received=received, fix=fix)


def infer_features(
    frame: Any, background: Any, names: Sequence[Hashable] | None = None
) -> tuple[Feature, ...]:
    """Return one feature per column of ``frame``; ``background`` gives scales and ranges.

    Examples
    --------
    >>> [f.kind.value for f in infer_features(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), None)]
    ['integer', 'category']
    """
    frame = to_pandas(frame, names=names)[0]
    background = to_pandas(background, "background", names)[0]
    check_frame(frame)
    if len(frame) < 2:
        fix = "infer the schema from a larger frame, such as the training data"
        raise InvalidInput("frame", expected="at least 2 rows", received=f"{len(frame)}", fix=fix)
    if background is not None:
        check_frame(background, "background")
        if lacking := [name for name in frame.columns if name not in background.columns]:
            expected, received = "every column of the frame", f"no column {lacking[0]!r}"
            fix = "pass rows of the same table"
            raise InvalidInput("background", expected=expected, received=received, fix=fix)
    each = parallel if len(frame) >= MANY else map

    def infer(name: Hashable) -> Feature:
        return _infer(name, frame[name], None if background is None else background[name])

    return tuple(each(infer, frame.columns))


def amounts(column: pd.Series[Any]) -> np.ndarray:
    """Return a numeric column as float64, missing cells as NaN; refuse infinities.

    Examples
    --------
    >>> amounts(pd.Series([1, None], dtype="Int64"))
    array([ 1., nan])
    """
    values = np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if np.isinf(values).any():
        fix = "replace infinities by NaN or drop those rows"
        raise bad_column(column.name, "finite or missing values", "an infinite one", fix)
    return values


def role_of(column: pd.Series[Any]) -> Role:
    """Return how the column is read.

    Examples
    --------
    >>> role_of(pd.Series([True, False]))
    <Role.LEVEL: 'categories, booleans or text'>
    """
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype) or types.is_bool_dtype(dtype):
        return Role.LEVEL
    if types.is_object_dtype(dtype):
        return _object_role(column)
    if types.is_string_dtype(dtype):
        return Role.LEVEL
    if types.is_numeric_dtype(dtype) and dtype.kind in "iuf" and _exact(column):
        return Role.AMOUNT
    return Role.OTHER


def _exact(column: pd.Series[Any]) -> bool:
    """Whether every value of the numeric column is a float64."""
    if column.dtype.kind == "f":
        return getattr(column.dtype, "itemsize", 8) <= 8
    values = column.dropna()
    return values.empty or (int(values.max()) <= EXACT and int(values.min()) >= -EXACT)


def _object_role(column: pd.Series[Any]) -> Role:
    found = set(map(type, column.dropna()))
    if len(found) > 1 and any(issubclass(kind, str | Number) for kind in found):
        names = " and ".join(sorted(kind.__name__ for kind in found))
        fix = "convert it with pandas.to_numeric or .astype(str)"
        raise bad_column(column.name, "cells of one type", f"a mixture of {names}", fix)
    return Role.LEVEL if found <= {str} or found <= {bool, np.bool_} else Role.OTHER


def _infer(name: Hashable, column: pd.Series[Any], background: pd.Series[Any] | None) -> Feature:
    role = role_of(column)
    pool = [column]
    if background is not None and background.notna().any():
        pool.append(background)
        theirs = role_of(background)
        if column.dtype.kind in "iu" and background.dtype.kind in "iu" and role is not theirs:
            role = Role.OTHER  # integers past 2**53 in one of the two frames
        elif role is not theirs:
            expected = f"{role.value}, as in the frame"
            fix = "give the column one dtype in both frames"
            raise bad_column(name, expected, theirs.value, fix, "background column")
    if all(part.isna().all() for part in pool):
        return _fixed(name, "all missing")
    if role is Role.AMOUNT:
        return _infer_amount(name, pool)
    if role is Role.LEVEL:
        return _infer_level(name, pool)
    try:
        column.nunique()
    except (TypeError, ValueError, NotImplementedError) as error:
        fix = "drop the column or turn its cells into text"
        raise bad_column(name, "hashable cells", str(error), fix) from error
    if column.dtype.kind in "iu":
        return _fixed(name, "integers beyond 2**53: never moved; divide or use floats to free it")
    how = "never moved; convert it to numbers or categories to free it"
    return _fixed(name, f"dtype {column.dtype}: {how}")


def _fixed(name: Hashable, notice: str) -> Feature:
    return Feature(name=name, kind=Kind.FIXED, free=False, observed=(0.0, 0.0), notice=notice)


def _infer_amount(name: Hashable, pool: list[pd.Series[Any]]) -> Feature:
    parts = [values[~np.isnan(values)] for values in map(amounts, pool)]
    values = parts[0] if len(parts) == 1 else np.concatenate(parts)
    low, high = float(values.min()) + 0.0, float(values.max()) + 0.0  # no negative zero
    whole = max(-low, high) <= EXACT and _all_whole(values[:FIRST]) and _all_whole(values)
    # The background's own spread; where it has none, that of all rows.
    center, scale = _moments(parts[-1])
    if scale == 0.0:
        center, scale = _moments(values)
    if max(-low, high) > LARGEST or 0.0 < scale < 1.0 / LARGEST:
        return _fixed(name, f"numbers from {low:g} to {high:g}: never moved; change their unit")
    resolution = None if whole else _resolution(values, pool)
    notice = ""
    if low == high:
        notice = CONSTANT
    elif whole and _tells_apart(name, parts, counts=pool[0].dtype.kind in "iu"):
        notice = IDENTIFIER
    elif whole and pool[0].dtype.kind == "f":
        notice = WHOLE
    return Feature(
        name=name,
        kind=Kind.INTEGER if whole else Kind.NUMBER,
        free=low < high and notice != IDENTIFIER,
        observed=(low, high),
        center=center,
        scale=scale or 1.0,
        resolution=resolution,
        notice=notice,
    )


def _all_whole(values: np.ndarray) -> bool:
    return bool((values == np.rint(values)).all())


def _tells_apart(name: Hashable, parts: Sequence[Any], *, counts: bool) -> bool:
    """Whether cells differ in all rows of each frame, and are called an identifier or look so.

    Few cells differ by chance: without such a name there have to be many, and integers have to
    count the rows.
    """
    last = parts[-1]
    looks = counts and len(last) >= MANY_ROWS
    if looks and isinstance(last, np.ndarray):
        looks = last.min() in (0.0, 1.0) and np.ptp(last) == len(last) - 1
    called = re.search(CALLED, str(name)) is not None
    return bool(called or looks) and all(pd.Series(part).is_unique for part in parts)


def _resolution(values: np.ndarray, pool: list[pd.Series[Any]]) -> float | None:
    """The last decimal of values that have few of them, in the precision they are kept in."""
    single = any(getattr(part.dtype, "itemsize", 8) < 8 for part in pool)

    def have(values: np.ndarray, digits: int) -> bool:
        rounded = np.round(values, digits)
        if single:
            rounded, values = rounded.astype(np.float32), values.astype(np.float32)
        return bool(np.array_equal(rounded, values))

    for digits in range(1, DECIMALS + 1):
        if have(values[:FIRST], digits) and have(values, digits):
            return float(f"1e-{digits}")
    return None


def _moments(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation, free of overflow; no spread is a deviation of 0."""
    unit = float(np.abs(values).max(initial=0.0)) or 1.0
    parts = values / unit
    center = unit * float(parts.mean()) if values.size else 0.0
    if values.size < 2 or parts.min() == parts.max():
        return center, 0.0
    return center, unit * float(parts.std(ddof=1))


def _infer_level(name: Hashable, pool: list[pd.Series[Any]]) -> Feature:
    dtype = pool[0].dtype
    seen = {value for part in pool for value in part.dropna().unique()}
    ordered = False
    if isinstance(dtype, pd.CategoricalDtype):
        levels = dtype.categories.tolist()
        ordered = bool(dtype.ordered)
        stray = seen.difference(levels)
        if stray:
            expected = "values among the frame's categories"
            fix = "give both frames one category dtype: frame[c].astype(background[c].dtype)"
            raise bad_column(name, expected, f"{min(stray, key=repr)!r}", fix, "background column")
    elif all(isinstance(value, bool | np.bool_) for value in seen):
        levels = [False, True]
    else:
        levels = sorted(seen)
        if len(levels) > MOST_LEVELS:
            how = f"to free it, make it a category: frame[{name!r}].astype('category')"
            return _fixed(name, f"text with {len(levels)} values: never moved; {how}")
    notice, allowed = "", None
    if len(seen) == 1:
        notice = CONSTANT
    elif not isinstance(dtype, pd.CategoricalDtype) and _tells_apart(
        name, [part.dropna() for part in pool], counts=True
    ):
        notice = IDENTIFIER
    elif len(levels) > MOST_LEVELS:
        how = f"not moved unless freed by schema.free({name!r})"
        notice = f"category of {len(levels)} levels: {how}"
    else:
        allowed = _common(levels, pool[-1])
    return Feature(
        name=name,
        kind=Kind.CATEGORY,
        free=not notice,
        allowed=allowed,
        observed=(0.0, float(len(levels) - 1)),
        levels=tuple(levels),
        ordered=ordered,
        notice=RARE if allowed else notice,
    )


def _common(levels: list[Any], background: pd.Series[Any]) -> tuple[Any, ...] | None:
    """Levels that enough rows have; None where that says nothing, or none is rare."""
    counts = background.value_counts()
    counts = counts[counts > 0]
    often = counts[counts >= FEWEST_SEEN]
    tells = len(often) < len(counts) and counts.sum() >= COUNTED_FROM
    if not tells or 2 * often.sum() < counts.sum():
        return None
    return tuple(level for level in levels if level in often.index)
