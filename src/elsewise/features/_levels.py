"""The values behind the codes of one category or fixed column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from pandas.api import types

from elsewise.errors import bad_column
from elsewise.features import _json
from elsewise.features._feature import Feature
from elsewise.text import nearest


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Distinct values in the dtype of their column; a code is an index into them.

    Examples
    --------
    >>> table = Table.of_values(pd.Series(["b", None, "a"], dtype=object, name="x"))
    >>> table.find(pd.Series(["a", None], name="x"))
    array([ 1., nan])
    """

    values: Any
    """ExtensionArray (m,), or NumPy array (m,) for NumPy dtypes, without missing values."""
    missing: Any
    """What a missing cell of a NumPy object or float column is: None, NaN..."""
    fixed: bool
    """Whether unknown values can be added (fixed columns), or are refused for good."""

    @classmethod
    def of_values(cls, column: pd.Series[Any]) -> Table:
        """Return the table of all values of ``column``, in order of appearance.

        Examples
        --------
        >>> Table.of_values(pd.Series([2**60, 5, 2**60])).values.tolist()
        [1152921504606846976, 5]
        """
        return cls(_plain(column.dropna().drop_duplicates()), _first_missing(column), fixed=True)

    @classmethod
    def of_levels(cls, feature: Feature, column: pd.Series[Any]) -> Table:
        """Return the table of a category's levels, in the dtype of ``column``."""
        try:
            values = _as_dtype(feature.levels, column.dtype)
            same = values.tolist() == list(feature.levels)
        except (TypeError, ValueError):
            same = False
        if not same:
            expected = "a dtype that holds every level of the schema"
            fix = "convert it: frame[name].astype(pandas.CategoricalDtype(levels))"
            raise bad_column(feature.name, expected, f"dtype {column.dtype}", fix)
        return cls(_plain(values), _first_missing(column), fixed=False)

    def find(self, column: pd.Series[Any]) -> np.ndarray:
        """Return the codes, float64 (n,), of ``column``; refuse unknown values."""
        lookup = pd.Index(np.asarray(self.values, dtype=object), dtype=object)
        if isinstance(column.dtype, pd.CategoricalDtype):
            known = lookup.get_indexer(pd.Index(column.cat.categories, dtype=object))
            places = np.append(known, -1)[column.cat.codes]
        else:
            places = lookup.get_indexer(pd.Index(column, dtype=object))
        missing = column.isna().to_numpy(dtype=bool)
        unknown = (places < 0) & ~missing
        if unknown.any():
            self._refuse(column, column[unknown].iloc[0])
        if missing.any() and not self.holds_missing:
            self._refuse(column, "a missing value")
        return np.where(missing, np.nan, places)

    def take(self, codes: np.ndarray) -> Any:
        """Return the values of ``codes``, float64 (n,), in the column's dtype."""
        places = np.where(np.isnan(codes), -1.0, codes).astype(np.intp)
        if not isinstance(self.values, np.ndarray):
            return self.values.take(places, allow_fill=True)
        if not self.holds_missing:
            return self.values[places]
        padded = np.empty(len(self.values) + 1, dtype=self.values.dtype)
        padded[:-1], padded[-1] = self.values, self.missing
        # A Series, so that pandas does not read an object column of text as another dtype.
        return pd.Series(padded[places], dtype=padded.dtype, copy=False)

    def extend(self, column: pd.Series[Any]) -> Table:
        """Return the table with the unknown values of ``column`` added at its end.

        Values of another type are refused: the model would see them, silently.
        """
        known = pd.Series(self.values, dtype=self.values.dtype)
        new = column.dropna()
        if len(known) and len(new) and not _types(new) <= _types(known):
            expected = f"{known.dtype} cells such as {known.iloc[0]!r}, as in the fit"
            received = f"{new.dtype} cells such as {new.iloc[0]!r}"
            fix = "read the file with the same dtypes, or frame[name].astype(...)"
            raise bad_column(column.name, expected, received, fix)
        return replace(self, values=Table.of_values(pd.concat([known, column])).values)

    def to_dict(self) -> dict[str, Any]:
        """Return the table as JSON-able values."""
        return {
            "values": [_json.pack(value) for value in self.values.tolist()],
            "dtype": _json.pack_dtype(self.values.dtype),
            "missing": str(self.missing),
            "fixed": self.fixed,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Table:
        """Return the table that :meth:`to_dict` described."""
        values = pd.Series([_json.unpack(value) for value in data["values"]], dtype=object)
        values = values.astype(_json.unpack_dtype(data["dtype"]))
        return cls(_plain(values), _MISSING[data["missing"]], fixed=data["fixed"])

    @property
    def holds_missing(self) -> bool:
        """Whether a cell of the column can be missing."""
        return not isinstance(self.values, np.ndarray) or self.values.dtype.kind in "Ofc"

    def _refuse(self, column: pd.Series[Any], value: Any) -> NoReturn:
        if self.fixed:
            fix = "encode it with Encoder.extend(frame), or with Schema.encoder(frame)"
        else:
            near = nearest(value, self.values)
            fix = f"the nearest level is {near!r}; or infer the schema with this value in it"
        raise bad_column(column.name, "values this encoder knows", repr(value), fix)


_MISSING = {"None": None, "nan": np.nan, "<NA>": pd.NA, "NaT": pd.NaT}


def _plain(column: pd.Series[Any]) -> Any:
    """Return the values of ``column``: NumPy for NumPy dtypes, dates apart."""
    plain = isinstance(column.dtype, np.dtype) and column.dtype.kind not in "mM"
    return column.to_numpy() if plain else column.array


def _as_dtype(levels: tuple[Any, ...], dtype: Any) -> pd.Series[Any]:
    """Return ``levels`` as a column of ``dtype``; those a category dtype lacks are missing."""
    values = pd.Series(list(levels), dtype=object)
    if not isinstance(dtype, pd.CategoricalDtype):
        return values.astype(dtype)
    places = pd.Index(dtype.categories, dtype=object).get_indexer(pd.Index(values))
    return pd.Series(pd.Categorical.from_codes(places, dtype=dtype))


def _first_missing(column: pd.Series[Any]) -> Any:
    """Return the first missing cell as it is written, NaN where there is none."""
    missing = column[column.isna()]
    return missing.iloc[0] if len(missing) else np.nan


def _types(column: pd.Series[Any]) -> set[Any]:
    """What kinds of cells there are, as a model would tell them apart."""
    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _types(pd.Series(dtype.categories))
    if types.is_object_dtype(dtype):
        return set(map(type, column))
    if types.is_string_dtype(dtype):
        return {str}
    return {str(dtype) if getattr(dtype, "tz", None) else dtype.kind}
