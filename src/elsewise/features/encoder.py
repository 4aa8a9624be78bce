"""From frames to codes and back, without losing a bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api import types

from elsewise._arrays import LARGEST, Array, to_numpy
from elsewise.errors import InvalidInput, SavedRunError, bad_column
from elsewise.features import _json
from elsewise.features._feature import Feature, Kind
from elsewise.features._formulas import Made, derive, derived_columns, row_hashes, rule_test
from elsewise.features._infer import EXACT, amounts, check_frame
from elsewise.features._levels import Table
from elsewise.features._sources import Source, to_pandas

if TYPE_CHECKING:
    from elsewise.features.schema import Schema

__all__ = ["Encoder"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoder:
    """Codes, float64 (n, p), of frames with the columns and dtypes of one frame.

    Numbers are themselves, categories the index of their level, fixed columns the index of a table
    kept here; NaN is missing. Made by :meth:`Schema.encoder`.

    Examples
    --------
    >>> from elsewise.features import Schema
    >>> frame = pd.DataFrame({"age": [31, 45], "sex": ["m", "f"]})
    >>> encoder = Schema.infer(frame).encoder(frame)
    >>> encoder.encode(frame)
    array([[31.,  1.],
           [45.,  0.]])
    >>> encoder.decode([[50, 1]])
       age sex
    0   50   m
    """

    schema: Schema
    """What the columns are."""
    columns: pd.Index[Any]
    """Column labels of decoded frames."""
    dtypes: tuple[Any, ...]
    """Dtype of each decoded column."""
    tables: tuple[Table | None, ...]
    """Values behind the codes of categories and fixed columns; None for numbers."""
    given: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    """Hashes of rows whose derived cells are not what their formulas give: they stay so."""
    source: Source | None = None
    """The kind of frame that came, for functions of the user and for answers; None: pandas."""
    made: tuple[Made, ...] = field(init=False)
    """Derived columns."""
    tests: tuple[Callable[[np.ndarray], np.ndarray], ...] = field(init=False)
    """Rules: codes (n, p) to bool (n,)."""

    def __post_init__(self) -> None:
        features, rules = self.schema.features, self.schema.rules
        made = derived_columns(features, lambda codes: self._back(self.decode_as_given(codes)))
        tests = tuple(rule_test(rule, features, self.present) for rule in rules)
        object.__setattr__(self, "made", made)
        object.__setattr__(self, "tests", tests)

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the codes, float64 (n, p), of ``frame``.

        Examples
        --------
        >>> from elsewise.features import Schema
        >>> frame = pd.DataFrame({"age": [31.0, None], "sex": ["m", "f"]})
        >>> Schema.infer(frame, frame).encoder(frame).encode(frame)
        array([[31.,  1.],
               [nan,  0.]])
        """
        frame = _aligned(to_pandas(frame, names=self.columns)[0], self.columns)
        if (plain := self._plain_numbers(frame)) is not None:
            return plain
        codes = np.empty(frame.shape)
        for j, (feature, table) in enumerate(zip(self.schema.features, self.tables, strict=True)):
            column = frame.iloc[:, j]
            if table is None:
                codes[:, j] = _numbers(feature, column, self.dtypes[j])
            else:
                codes[:, j] = table.find(column)
        _check_groups(self.schema.features, codes)
        return codes

    def _plain_numbers(self, frame: pd.DataFrame) -> np.ndarray | None:
        """Codes of a frame of floats of one dtype and nothing else, all at once; None for others.

        None also where something has to be refused: column by column, it is refused by name.
        """
        dtype = frame.dtypes.iloc[0]
        plain = all(f.kind is Kind.NUMBER and f.group is None for f in self.schema.features)
        floats = isinstance(dtype, np.dtype) and dtype.kind == "f"
        if not (plain and floats and (frame.dtypes == dtype).all()):
            return None
        codes = np.array(frame.to_numpy(), dtype=np.float64, order="C")
        # Missing cells are passed over by these two, and nothing is copied.
        low = float(np.fmin.reduce(codes, axis=None, initial=0.0))
        high = float(np.fmax.reduce(codes, axis=None, initial=0.0))
        return codes if max(-low, high) <= LARGEST else None

    def decode(self, codes: Array, index: Any = None) -> pd.DataFrame:
        """Return the frame of ``codes`` (n, p): the columns and dtypes of the encoder's frame.

        Examples
        --------
        >>> from elsewise.features import Schema
        >>> frame = pd.DataFrame({"age": [31, 45], "sex": ["m", "f"]}, index=["ann", "bob"])
        >>> encoder = Schema.infer(frame).encoder(frame)
        >>> encoder.decode(encoder.encode(frame), index=frame.index).equals(frame)
        True
        """
        return self.decode_as_given(self.derive(to_numpy(codes)), index)

    def present(self, codes: Array, index: Any = None) -> Any:
        """Return the frame of ``codes`` (n, p) in the kind that the user's came in."""
        return self._back(self.decode(codes, index))

    def table(self, frame: pd.DataFrame) -> Any:
        """Return a table of results in the kind of frame that the user's came in."""
        return frame if self.source is None else self.source.table(frame)

    def _back(self, frame: pd.DataFrame) -> Any:
        return frame if self.source is None else self.source.back(frame)

    def derive(self, codes: np.ndarray) -> np.ndarray:
        """Return codes (n, p) in which derived columns are what their formulas give.

        Examples
        --------
        >>> from elsewise.features import Schema
        >>> frame = pd.DataFrame({"a": [1.0, 2.0], "twice": [2.0, 4.0]})
        >>> encoder = Schema.infer(frame).derived("twice", "2 * a").encoder(frame)
        >>> encoder.derive(np.array([[5.0, 2.0]]))
        array([[ 5., 10.]])
        """
        return derive(self.made, codes, self.given) if self.made else codes

    def decode_as_given(self, codes: Array, index: Any = None) -> pd.DataFrame:
        """Return the frame of ``codes`` (n, p) as they are, derived columns included."""
        codes = np.asarray(to_numpy(codes), dtype=np.float64)
        if codes.ndim != 2 or codes.shape[1] != len(self.columns):
            expected = f"an array (n, {len(self.columns)})"
            fix = "pass codes that Encoder.encode made"
            raise InvalidInput("codes", expected=expected, received=f"shape {codes.shape}", fix=fix)
        first = self.dtypes[0]
        if isinstance(first, np.dtype) and not any(self.tables) and set(self.dtypes) == {first}:
            frame = pd.DataFrame(_cast(codes, first), columns=self.columns, copy=False)
        else:
            frame = pd.DataFrame(dict(self._columns(codes)), index=pd.RangeIndex(len(codes)))
            frame.columns = self.columns
        if index is not None:
            frame.index = index
        return frame

    def check_savable(self, index: pd.Index[Any]) -> None:
        """Refuse cells, dtypes and labels that no file of ours can hold, before the work starts.

        Examples
        --------
        >>> from elsewise.features import Schema
        >>> frame = pd.DataFrame({"a": [1.0, 2.0], "raw": [b"x", b"y"]})
        >>> Schema.infer(frame).encoder(frame).check_savable(frame.index)
        Traceback (most recent call last):
        ...
        elsewise.errors.InvalidInput: column 'raw': expected text, a number, a boolean or a date...
        """
        _json.check_savable(f"{self.columns.name or 'column names'}", self.columns)
        for name, dtype, table in zip(self.columns, self.dtypes, self.tables, strict=True):
            values = pd.Index([]) if table is None else table.values  # noqa: PD011
            _json.check_savable(f"column {name!r}", values, dtype)
        _json.check_savable("index", index)

    def check_codes(self, codes: np.ndarray) -> None:
        """Refuse codes (n, p), read from a file, that stand for no cells.

        Examples
        --------
        >>> from elsewise.features import Schema
        >>> frame = pd.DataFrame({"sex": ["m", "f"]})
        >>> Schema.infer(frame).encoder(frame).check_codes(np.array([[2.0]]))
        Traceback (most recent call last):
        ...
        elsewise.errors.InvalidInput: codes of 'sex': expected codes of its cells, received 2.0...
        """
        for feature, dtype, table, column in zip(
            self.schema.features, self.dtypes, self.tables, codes.T, strict=True
        ):
            known = column[~np.isnan(column)]
            low, high, holes = -np.inf, np.inf, True
            if table is not None:
                low, high, holes = 0, len(table.values) - 1, table.holds_missing
            elif dtype.kind in "iu":
                low, high, holes = -EXACT, EXACT, not isinstance(dtype, np.dtype)
            wrong = ~((known >= low) & (known <= high) & np.isfinite(known))
            if np.isfinite(low):
                wrong |= known != np.rint(known)
            if wrong.any() or (known.size < column.size and not holes):
                received = known[wrong][0] if wrong.any() else "missing cells"
                expected, fix = "codes of its cells", "save the run again"
                raise bad_column(feature.name, expected, received, fix, "codes of")

    def _columns(self, codes: np.ndarray) -> Iterator[tuple[int, Any]]:
        for j, (dtype, table) in enumerate(zip(self.dtypes, self.tables, strict=True)):
            yield j, _cast(codes[:, j], dtype) if table is None else table.take(codes[:, j])

    @property
    def restricted(self) -> bool:
        """Whether there is more for rows to obey than the boxes of their cells.

        A one-hot group needs it where a member cannot move as the others do: its 1 could be taken
        away and find no place.
        """
        features = self.schema.features
        held = any(f.group and (not f.free or f.direction or f.declared) for f in features)
        return bool(held or self.made or self.tests or self.schema.lost)

    def obeys(self, codes: Array) -> np.ndarray:
        """Return, bool (n,), the rows that keep rules and groups and agree with derived columns.

        Examples
        --------
        >>> from elsewise.features import Schema
        >>> frame = pd.DataFrame({"age": [31, 45], "years": [40, 9]})
        >>> encoder = Schema.infer(frame).rule("years < age").encoder(frame)
        >>> encoder.obeys(encoder.encode(frame))
        array([False,  True])
        """
        if self.schema.lost:
            names = ", ".join(map(repr, self.schema.lost))
            said = f"expected {names}, which are functions and were not saved, received none"
            fix = "load the run with elsewise.load(folder, rules={name: function})"
            raise SavedRunError(f"rules: {said}. Fix: {fix}.")
        codes = self.derive(to_numpy(codes))
        holds = np.ones(len(codes), dtype=bool)
        for made in self.made:
            holds &= made.legal(codes)
        for test in self.tests:
            holds &= test(codes)
        for *_, wrong in _wrong_groups(self.schema.features, codes):
            holds &= ~wrong
        return holds

    def keep_given(self, codes: np.ndarray) -> Encoder:
        """Return an encoder that leaves rows of these (n, p) that break a formula as they are."""
        if not self.made:
            return self
        breaks = ~np.all([made.agree(codes, made.values(codes)) for made in self.made], axis=0)
        return replace(self, given=np.union1d(self.given, row_hashes(codes[breaks])))

    def extend(self, frame: pd.DataFrame) -> Encoder:
        """Return an encoder that also knows the fixed values of ``frame``; old codes stay valid.

        Examples
        --------
        >>> from elsewise.features import Schema
        >>> frame = pd.DataFrame({"day": pd.to_datetime(["2024-01-01", "2024-01-02"])})
        >>> later = pd.DataFrame({"day": pd.to_datetime(["2024-03-01"])})
        >>> Schema.infer(frame).encoder(frame).extend(later).encode(later)
        array([[2.]])
        """
        frame = _aligned(to_pandas(frame, names=self.columns)[0], self.columns)
        tables = [
            table.extend(frame.iloc[:, j]) if table and table.fixed else table
            for j, table in enumerate(self.tables)
        ]
        wider = replace(self, tables=tuple(tables))
        return wider.keep_given(wider.encode(frame)) if self.made else wider

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder as JSON-able values; functions are kept by name only.

        Examples
        --------
        >>> from elsewise.features import Schema
        >>> frame = pd.DataFrame({"age": [31, 45]})
        >>> Schema.infer(frame).encoder(frame).to_dict()["dtypes"]
        ['int64']
        """
        return {
            "schema": self.schema.to_toml(),
            "columns": _json.pack_index(self.columns),
            "dtypes": [_json.pack_dtype(dtype) for dtype in self.dtypes],
            "tables": [None if table is None else table.to_dict() for table in self.tables],
            "source": None if self.source is None else self.source.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Encoder:
        """Return the encoder that :meth:`to_dict` described, without its functions.

        Examples
        --------
        >>> from elsewise.features import Schema
        >>> frame = pd.DataFrame({"age": [31, 45]})
        >>> encoder = Encoder.from_dict(Schema.infer(frame).encoder(frame).to_dict())
        >>> encoder.decode([[31.0]])
           age
        0   31
        """
        from elsewise.features.schema import Schema

        try:
            encoder = cls(
                schema=Schema.from_toml(data["schema"]),
                columns=_json.unpack_index(data["columns"]),
                dtypes=tuple(_json.unpack_dtype(dtype) for dtype in data["dtypes"]),
                tables=tuple(table and Table.from_dict(table) for table in data["tables"]),
                source=Source.from_dict(data.get("source")),
            )
            _check_parts(encoder)
            return encoder
        except InvalidInput:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            expected, received = "what Encoder.to_dict returned", f"{type(error).__name__}: {error}"
            fix = "save the encoder again"
            raise InvalidInput("data", expected=expected, received=received, fix=fix) from error


def build_encoder(schema: Schema, frame: pd.DataFrame) -> Encoder:
    """Return the encoder of ``frame``, after checking that it fits the schema.

    Examples
    --------
    >>> from elsewise.features import Schema
    >>> frame = pd.DataFrame({"age": [31, 45]})
    >>> build_encoder(Schema.infer(frame), frame).dtypes
    (dtype('int64'),)
    """
    names = [feature.name for feature in schema.features]
    frame, source = to_pandas(frame, names=names)
    check_frame(frame)
    # The frame's own labels in the schema's order: their dtype and their name are kept.
    frame = _aligned(frame, names)
    columns = [frame.iloc[:, j] for j in range(len(names))]
    encoder = Encoder(
        schema=schema,
        columns=frame.columns,
        dtypes=tuple(map(_decoded_dtype, schema.features, columns)),
        tables=tuple(map(_table, schema.features, columns)),
        source=source,
    )
    return encoder.keep_given(encoder.encode(frame))


def _table(feature: Feature, column: pd.Series[Any]) -> Table | None:
    """Return the values behind the codes of a column; None for numbers."""
    if feature.kind is Kind.FIXED:
        return Table.of_values(column)
    return Table.of_levels(feature, column) if feature.kind is Kind.CATEGORY else None


def _decoded_dtype(feature: Feature, column: pd.Series[Any]) -> Any:
    return _number_dtype(feature, column.dtype) if feature.kind.amount else column.dtype


def _check_parts(encoder: Encoder) -> None:
    """Refuse parts, read from a file, that do not belong to each other."""
    if encoder.columns.tolist() != list(encoder.schema.names):
        raise ValueError("columns that are not those of the schema")
    for feature, dtype, table in zip(
        encoder.schema.features, encoder.dtypes, encoder.tables, strict=True
    ):
        if (table is None) != (feature.kind.amount):
            raise ValueError(f"column {feature.name!r} with a table of another kind")
        if table is None:
            fits = _number_dtype(feature, dtype) == dtype
        elif feature.kind is Kind.FIXED:
            fits = table.fixed
        else:
            levels = table.values.tolist()  # noqa: PD011
            fits = not table.fixed and tuple(levels) == feature.levels
        if not fits:
            raise ValueError(f"column {feature.name!r} with another dtype or table")
    try:
        encoder.present(np.empty((0, len(encoder.columns))))
    # A schema of another frame fails in as many ways as there are dtypes.
    except Exception as error:
        raise ValueError("a kind of frame that does not hold its columns") from error


def _aligned(frame: pd.DataFrame, columns: Any) -> pd.DataFrame:
    """Return ``frame`` with its columns in the order of ``columns``."""
    check_frame(frame)
    if frame.columns.tolist() == list(columns):
        return frame
    lacking = [name for name in columns if name not in frame.columns]
    extra = frame.columns.difference(list(columns), sort=False).tolist()
    if lacking or extra:
        received = f"no column {lacking[0]!r}" if lacking else f"an extra column {extra[0]!r}"
        expected = "the columns of the schema"
        fix = "pass the same columns, or infer a schema from this frame"
        raise InvalidInput("frame", expected=expected, received=received, fix=fix)
    return frame[list(columns)]


def _number_dtype(feature: Feature, dtype: Any) -> Any:
    """Return the dtype a numeric column is decoded to, after checking that it fits."""
    if types.is_bool_dtype(dtype) or not types.is_numeric_dtype(dtype) or dtype.kind not in "iuf":
        fix = "convert it with pandas.to_numeric, or infer a schema from this frame"
        raise bad_column(feature.name, "numbers, as in the schema", f"dtype {dtype}", fix)
    if dtype.kind == "f":
        return dtype
    if feature.kind is Kind.NUMBER:
        # Integers read as continuous (Schema.continuous) need a dtype that holds fractions.
        return np.dtype(np.float64) if isinstance(dtype, np.dtype) else pd.Float64Dtype()
    limits = np.iinfo(getattr(dtype, "numpy_dtype", getattr(dtype, "subtype", dtype)))
    ends = [end for pair in (feature.observed, feature.declared or ()) for end in pair]
    if any(np.isfinite(end) and not limits.min <= end <= limits.max for end in ends):
        expected = f"a dtype that holds the range {min(ends):g} to {max(ends):g}"
        fix = "convert the column to int64"
        raise bad_column(feature.name, expected, f"dtype {dtype}", fix)
    return dtype


def _numbers(feature: Feature, column: pd.Series[Any], dtype: Any) -> np.ndarray:
    """Return the codes of a numeric column that is decoded to ``dtype``."""
    _number_dtype(feature, column.dtype)
    values = amounts(column)
    known = values[~np.isnan(values)]
    parts = known[known != np.rint(known)]
    if (np.abs(known) > LARGEST).any():
        expected = f"numbers of at most {LARGEST:g}, as in the schema"
        received = f"{np.abs(known).max():g}"
        fix = "change their unit, or infer a schema from this frame"
    elif known.size < values.size and isinstance(dtype, np.dtype) and dtype.kind in "iu":
        expected, received = f"no missing values, which {dtype} cannot hold", "a missing value"
        fix = "leave such rows out, or make the column of the explained rows float64 beforehand"
    elif feature.kind is Kind.INTEGER and parts.size:
        expected, received = "whole numbers, as in the schema", f"{parts[0]:g}"
        fix = "read the column as continuous: Schema.continuous(name)"
    elif column.dtype.kind in "iu" and (np.abs(known) > EXACT).any():
        expected, received = "integers up to 2**53, as in the schema", "a larger one"
        fix = "infer a schema from this frame, or convert the column to floats"
    else:
        return values
    raise bad_column(feature.name, expected, received, fix)


def _cast(values: np.ndarray, dtype: Any) -> Any:
    """Return float64 ``values`` as ``dtype``."""
    if dtype.kind in "iu":
        values = np.rint(values)
    if isinstance(dtype, np.dtype):
        return values.astype(dtype)
    return pd.array(values, dtype=dtype)


def _wrong_groups(
    features: tuple[Feature, ...], codes: np.ndarray
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield each one-hot group, its cells and the rows, bool (n,), that have not exactly one 1."""
    for group in dict.fromkeys(f.group for f in features if f.group is not None):
        members = codes[:, [f.group == group for f in features]]
        one = ((members == 0) | (members == 1)).all(axis=1) & (members.sum(axis=1) == 1)
        yield group, members, ~one


def _check_groups(features: tuple[Feature, ...], codes: np.ndarray) -> None:
    """Refuse rows in which a one-hot group has not exactly one 1."""
    for group, members, wrong in _wrong_groups(features, codes):
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            expected = f"exactly one 1 per row in the one-hot group {group!r}"
            received = f"{members[row].tolist()} in row {row}"
            fix = "correct those rows or leave the group out of the schema"
            raise InvalidInput("frame", expected=expected, received=received, fix=fix)
