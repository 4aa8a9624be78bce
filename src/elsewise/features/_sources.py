"""Frames that people have: polars, Arrow and others through narwhals, arrays; in and back out.

Everything below works on pandas frames. They are made here, at the doors, and what goes back to
the user is made into the kind that came.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from elsewise.errors import InvalidInput, MissingExtra, bad_column

# Integers and booleans with missing cells keep their dtype in pandas' own nullable ones.
NULLABLE = {
    **{f"{u}int{bits}": f"{u.upper()}Int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)},
    "bool": "boolean",
}
KINDS, LIBRARIES = ("polars", "pyarrow"), ("narwhals", "pyarrow")
"""What a run that was loaded can make again, and what that takes."""
WANTED = "a DataFrame of pandas or polars, an Arrow table, or an array with columns"
FIX = "collect a lazy frame; wrap lists: pandas.DataFrame(rows, columns=names)"


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """The kind of frame the user gave, to hand the same kind back."""

    kind: Any
    """narwhals' name of the library; None for arrays."""
    schema: Any
    """Arrow schema of the columns; for arrays their NumPy dtype."""
    nan: frozenset[str] = frozenset()
    """Columns of floats whose missing cells are NaN and not null."""

    def back(self, frame: pd.DataFrame) -> Any:
        """Return rows in the user's kind of frame, with the dtypes that came."""
        if self.kind is None and self.schema.names:
            return frame.to_records(index=False, column_dtypes=None).astype(self.schema)
        if self.kind is None:
            whole = self.schema.kind in "iu" and any(dtype.kind == "f" for dtype in frame.dtypes)
            return frame.to_numpy(dtype=np.float64 if whole else self.schema)
        return self._native([self.schema.field(str(name)) for name in frame.columns], frame)

    def table(self, frame: pd.DataFrame) -> Any:
        """Return a table of results in the user's kind of frame; its index becomes columns."""
        if self.kind is None:
            return frame
        import pyarrow as pa

        plain = frame.reset_index() if frame.index.names != [None] else frame
        plain = plain.astype({name: str for name in plain if plain[name].dtype == object})
        schema = pa.Schema.from_pandas(plain, preserve_index=False)
        return replace(self, nan=frozenset())._native(list(schema), plain)

    def _native(self, fields: list[Any], frame: pd.DataFrame) -> Any:
        import narwhals as nw
        import pyarrow as pa

        columns = []
        for j, (field, (name, column)) in enumerate(zip(fields, frame.items(), strict=True)):
            if pa.types.is_integer(field.type) and column.dtype.kind == "f":
                fields[j] = field = field.with_type(pa.float64())  # Schema.continuous
            values = pa.Array.from_pandas(column)
            if name in self.nan:
                values = pa.array(column.to_numpy(), from_pandas=False)
            # Any coding of a dictionary is reached by way of the type of its cells.
            plain = getattr(field.type, "value_type", field.type)
            columns.append(values.cast(plain).cast(field.type))
        table = pa.table(columns, schema=pa.schema(fields, self.schema.metadata))
        if str(self.kind) == "pyarrow":
            return table
        return nw.from_arrow(table, backend=self.kind).to_native()

    def to_dict(self) -> dict[str, Any]:
        """Return the kind and the dtypes as JSON values."""
        if self.kind is None:
            return {"array": self.schema.descr if self.schema.names else self.schema.str}
        schema = b64encode(self.schema.serialize()).decode()
        return {"kind": str(self.kind), "schema": schema, "nan": sorted(self.nan)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | None) -> Source | None:
        """Return what :meth:`to_dict` described; None, for pandas, where its library is missing."""
        if data is None:
            return None
        if (given := data.get("array")) is not None:
            parts = given if isinstance(given, str) else [(n, np.dtype(d)) for n, d in given]
            if (dtype := np.dtype(parts)).hasobject:
                raise ValueError("an array of objects")
            return cls(None, dtype)
        if data["kind"] not in KINDS or not all(map(find_spec, (data["kind"], *LIBRARIES))):
            return None
        import pyarrow as pa

        try:
            schema = pa.ipc.read_schema(pa.py_buffer(b64decode(data["schema"], validate=True)))
        except (pa.ArrowException, OSError) as error:
            raise ValueError("an Arrow schema that cannot be read") from error
        return cls(data["kind"], schema, frozenset(map(str, data["nan"])))


def to_pandas(
    given: Any, argument: str = "frame", names: Iterable[Any] | None = None
) -> tuple[Any, Source | None]:
    """Return a pandas frame of the rows, and the kind of frame they came in.

    A pandas frame comes back as it is, and so does what is no frame at all, for others to refuse.

    Parameters
    ----------
    names
        Names of the columns of a plain array; x0, x1, ... by default, as scikit-learn names them.

    Examples
    --------
    >>> frame, source = to_pandas(np.array([[1.0, 2.0]]), names=["a", "b"])
    >>> frame["b"].tolist(), source.back(frame)
    ([2.0], array([[1., 2.]]))
    """
    if isinstance(given, pd.DataFrame) or given is None:
        return given, None
    if isinstance(given, np.ndarray):
        return _of_array(given, argument, names)
    if not (hasattr(given, "__arrow_c_stream__") or hasattr(given, "__narwhals_dataframe__")):
        return given, None
    try:
        import narwhals as nw
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtra(error.name or "narwhals", "polars") from error
    try:
        wrapped = nw.from_native(given, eager_only=True, pass_through=True)
    except nw.exceptions.NarwhalsError as error:
        received, fix = " ".join(str(error).split()), "rename or drop columns, or convert the frame"
        raise InvalidInput(argument, expected=WANTED, received=received, fix=fix) from error
    if not isinstance(wrapped, nw.DataFrame):
        return given, None
    table = wrapped.to_arrow()
    parts = list(zip(table.schema, table.columns, strict=True))
    columns = {field.name: _series(pa, field, column, argument) for field, column in parts}
    floats = [f.name for f, c in parts if pa.types.is_floating(f.type) and not c.null_count]
    nan = frozenset(name for name in floats if columns[name].isna().any())
    frame = pd.DataFrame(columns, index=pd.RangeIndex(table.num_rows))
    return frame, Source(wrapped.implementation.value, table.schema, nan)


def _series(pa: Any, field: Any, column: Any, argument: str) -> pd.Series[Any]:
    """Return one column of an Arrow table as pandas has it, refusing what cannot come back."""
    import pyarrow.compute as pc

    where = f"{argument} column"
    kind = field.type
    if pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_float16(kind):
        fix = "drop the column, or make it numbers, text or dates"
        raise bad_column(field.name, "numbers, text, booleans or dates", str(kind), fix, where)
    holes = column.null_count > 0
    if holes and pa.types.is_floating(kind) and pc.any(pc.is_nan(column)).as_py():
        expected, fix = "one kind of missing cell", "make them one: fill_nan(None)"
        raise bad_column(field.name, expected, "both null and NaN", fix, where)
    mapped = pd.api.types.pandas_dtype(NULLABLE.get(str(kind), "object"))
    nullable = {"types_mapper": lambda _: mapped} if holes and str(kind) in NULLABLE else {}
    series: pd.Series[Any] = column.to_pandas(date_as_object=False, **nullable)
    return series


def _of_array(
    given: np.ndarray, argument: str, names: Iterable[Any] | None
) -> tuple[pd.DataFrame, Source]:
    if fields := given.dtype.names:
        return pd.DataFrame({name: given[name] for name in fields}), Source(None, given.dtype)
    if given.ndim != 2 or given.dtype.kind not in "biuf":
        expected = "an array (rows, columns) of numbers, or a structured array"
        received = f"an array of shape {given.shape} and dtype {given.dtype}"
        fix = "name and type the columns: pandas.DataFrame(array, columns=names)"
        raise InvalidInput(argument, expected=expected, received=received, fix=fix)
    names = [f"x{j}" for j in range(given.shape[1])] if names is None else list(names)
    if len(names) != given.shape[1]:
        expected = f"{len(names)} columns, as there are names"
        fix = "name every column of the array once"
        raise InvalidInput(argument, expected=expected, received=given.shape[1], fix=fix)
    return pd.DataFrame(given, columns=names), Source(None, given.dtype)
