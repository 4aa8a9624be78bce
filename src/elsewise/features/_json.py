"""Cells, dtypes and labels as JSON-able values, tagged where JSON has no such type."""

from __future__ import annotations

from datetime import date, datetime
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from elsewise.errors import InvalidInput


def pack(value: Any, argument: str = "cell") -> Any:
    """Return one cell as JSON-able values, or refuse it in the name of an argument.

    Examples
    --------
    >>> pack(1.5), pack(pd.Timestamp("2024-01-02"))
    (1.5, {'timestamp': '2024-01-02T00:00:00'})
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else {"float": repr(value)}
    for tag, kind in _TIMES.items():
        if isinstance(value, kind):
            return {tag: value.isoformat()}
    if isinstance(value, pd.Interval):
        ends = [pack(end, argument) for end in (value.left, value.right)]
        return {"interval": [*ends, value.closed]}
    if isinstance(value, tuple):
        return {"tuple": [pack(part, argument) for part in value]}
    expected = "text, a number, a boolean or a date, which can be saved"
    received = f"{value!r} of type {type(value).__name__}"
    fix = "drop the column or turn its cells into text"
    raise InvalidInput(argument, expected=expected, received=received, fix=fix)


# The narrower of two types comes first: a Timestamp is a datetime, which is a date.
_TIMES: dict[str, Any] = {
    "timestamp": pd.Timestamp,
    "timedelta": pd.Timedelta,
    "datetime": datetime,
    "date": date,
}
_UNPACK: dict[str, Any] = {
    **_TIMES,
    "float": float,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "interval": lambda parts: pd.Interval(unpack(parts[0]), unpack(parts[1]), closed=parts[2]),
    "tuple": lambda parts: tuple(map(unpack, parts)),
}


def unpack(value: Any) -> Any:
    """Return the cell that :func:`pack` described.

    Examples
    --------
    >>> unpack({"date": "2024-01-02"})
    datetime.date(2024, 1, 2)
    """
    if not isinstance(value, dict):
        return value
    ((tag, content),) = value.items()
    return _UNPACK[tag](content)


def pack_dtype(dtype: Any, argument: str = "dtype") -> Any:
    """Return a dtype as JSON-able values, or refuse it in the name of an argument.

    Examples
    --------
    >>> pack_dtype(pd.Int64Dtype())
    'Int64'
    """
    if isinstance(dtype, pd.CategoricalDtype):
        categories = dtype.categories
        return {"categories": pack_index(categories), "ordered": dtype.ordered}
    if isinstance(dtype, pd.StringDtype):
        return {"storage": dtype.storage, "missing": repr(dtype.na_value)}
    try:
        known = types.pandas_dtype(str(dtype)) == dtype
    except (TypeError, ValueError, NotImplementedError):
        known = False
    if not known:
        expected = "a dtype that its name describes"
        fix = "convert the column to a NumPy or a nullable pandas dtype"
        raise InvalidInput(argument, expected=expected, received=repr(dtype), fix=fix)
    return str(dtype)


def unpack_dtype(data: Any) -> Any:
    """Return the dtype that :func:`pack_dtype` described.

    Examples
    --------
    >>> unpack_dtype("Int64")
    Int64Dtype()
    """
    if isinstance(data, str):
        if "dateutil" in data:  # followed by the path of any file, which would be opened
            raise ValueError(f"dtype {data}")
        # NumPy's one-letter codes are no names that `pack_dtype` writes, and some of them warn.
        dtype = types.pandas_dtype(data if data[1:2].isalpha() else f"dtype {data}")
        # Others ("S1000000000", records) are no cells of a frame, and can be of any size.
        if isinstance(dtype, np.dtype) and dtype.kind not in "biufcOmM":
            raise ValueError(f"dtype {data}")
        return dtype
    if "categories" in data:
        return pd.CategoricalDtype(unpack_index(data["categories"]), ordered=data["ordered"])
    if data["missing"] == "nan":
        return pd.StringDtype(data["storage"], na_value=np.nan)
    return pd.StringDtype(data["storage"])


def pack_index(index: pd.Index[Any]) -> dict[str, Any]:
    """Return labels with their dtype and names as JSON-able values.

    Examples
    --------
    >>> pack_index(pd.Index([1, 2]))
    {'labels': [1, 2], 'dtype': 'int64', 'names': [None]}
    """
    several = isinstance(index, pd.MultiIndex)
    return {
        "labels": [pack(label) for label in index.tolist()],
        "dtype": None if several else pack_dtype(index.dtype),
        "names": [pack(name) for name in index.names],
    }


def unpack_index(data: dict[str, Any]) -> pd.Index[Any]:
    """Return the labels that :func:`pack_index` described.

    Examples
    --------
    >>> unpack_index({"labels": ["a"], "dtype": "object", "names": [None]})
    Index(['a'], dtype='object')
    """
    labels = [unpack(label) for label in data["labels"]]
    names = [unpack(name) for name in data["names"]]
    if data["dtype"] is None:
        return pd.MultiIndex.from_tuples(labels, names=names)
    # Tuples stay labels: only a MultiIndex, above, makes levels of them.
    dtype = unpack_dtype(data["dtype"])
    index: pd.Index[Any] = pd.Index(labels, dtype=dtype, name=names[0], tupleize_cols=False)
    return index


def check_savable(argument: str, values: Any, dtype: Any = None) -> None:
    """Refuse values, as many as there are types of them, that :func:`pack` cannot describe."""
    try:
        if not isinstance(values, pd.MultiIndex):
            pack_dtype(values.dtype if dtype is None else dtype, argument)
        plain = isinstance(values.dtype, np.dtype) and values.dtype.kind in "biufmM"
        cells = values[:1].tolist() if plain else values.tolist()  # of one type, all alike
        "".join(cell for cell in cells if isinstance(cell, str)).encode()
        for value in {type(value): value for value in cells}.values():
            pack(value, argument)
    except UnicodeEncodeError as error:
        expected, letter = "text that is Unicode", error.object[error.start]
        received = f"a lone surrogate ({letter!r})"
        fix = "read the file with its own encoding, or drop the letter"
        raise InvalidInput(argument, expected=expected, received=received, fix=fix) from error
