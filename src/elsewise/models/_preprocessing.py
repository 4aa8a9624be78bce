"""The structure of fitted preprocessing: which column of its result reads which column, and how.

Only scikit-learn's own transformers are read; any other one is kept as a call. Nothing read here is
trusted: `elsewise.models._compiled` compares what it makes of it with the pipeline's own answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from typing import Any, NamedTuple

import numpy as np


class Unreadable(Exception):
    """Preprocessing that cannot be read; its text says why."""


class Op(NamedTuple):
    """One step of arithmetic on a number: a name of `elsewise.models._tables.OPS` and its value."""

    name: str
    value: float = 0.0


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a matrix on its way through the preprocessing."""

    place: int
    """The feature it reads, or which column of a call's result."""
    call: int | None = None
    """The call whose result it reads, among those of the reader."""
    ops: tuple[Op, ...] = ()
    """What is done to the number, in order."""
    cuts: tuple[float, ...] | None = None
    """Where the number falls between cuts, or which of them it is, decides; None: the number."""
    exact: bool = False
    """Whether cuts are the values themselves, as for an encoder, not edges of bins."""


Columns = Sequence[Column]
# How many columns a transformer returns, where that is known.
Width = int | None


class Call(NamedTuple):
    """A transformer that is asked as it is."""

    transformer: Any
    inputs: tuple[Column, ...]
    as_frame: bool
    """Whether it is given the frame's own columns."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads fitted transformers column by column.

    A column that reads a category or a fixed feature is known by its values, level by level, so
    what is done to it needs no reading: only its place in the result does.
    """

    finite: frozenset[int]
    """Features with a table of values."""
    width_of: Callable[[Call], int]
    """How many columns a call returns."""
    calls: list[Call] = field(default_factory=list)
    """Transformers that have to be called, in the order in which they were met."""

    def read(self, step: Any, columns: Sequence[Column], width: int | None = None) -> list[Column]:
        """Return the columns of ``step.transform`` of a matrix with these columns.

        Parameters
        ----------
        step
            Fitted transformer, "passthrough", "drop" or None.
        columns
            Columns of what it is given.
        width
            How many columns it returns, where that is known.
        """
        if step is None or isinstance(step, str):
            return [] if step == "drop" else list(columns)
        ours = type(step).__module__.startswith("sklearn.")
        known = _READERS.get(type(step).__name__) if ours else None
        if known is not None:
            return known(self, step, columns, width)
        if ours and hasattr(step, "get_support"):
            return list(compress(columns, step.get_support()))
        return self._call(step, columns, width)

    def is_finite(self, column: Column) -> bool:
        """Tell whether a column takes finitely many values, known beforehand."""
        return column.cuts is not None or (column.call is None and column.place in self.finite)

    def after(self, columns: Columns, name: str, value: Any) -> list[Column]:
        """Return the columns after one step of arithmetic, with a value for each or one for all."""
        values = np.broadcast_to(value, len(columns))
        return [
            column
            if self.is_finite(column)
            else replace(column, ops=(*column.ops, Op(name, float(values[k]))))
            for k, column in enumerate(columns)
        ]

    def cut(self, column: Column, cuts: Any, *, exact: bool) -> Column:
        """Return a number's column after an encoder of its values (``exact``) or of bins."""
        if self.is_finite(column):
            return column
        cuts, changed = np.asarray(cuts), exact and {op.name for op in column.ops} - {"fill"}
        if column.call is not None or changed:
            raise Unreadable("numbers that are changed first and sorted into groups then")
        if cuts.dtype.kind not in "biuf":
            raise Unreadable("an encoder of numbers that knows other things than numbers")
        cuts = cuts.astype(np.float64)
        return replace(column, cuts=tuple(cuts[~np.isnan(cuts)].tolist()), exact=exact)

    def _call(self, step: Any, columns: Sequence[Column], width: int | None) -> list[Column]:
        finite = [self.is_finite(column) for column in columns]
        if all(finite) and len(set(columns)) == 1:
            return [columns[0]] * (width or 1)
        raw = all(column == Column(column.place) for column in columns)
        as_frame = raw and (any(finite) or hasattr(step, "feature_names_in_"))
        nested = any(column.call is not None for column in columns)
        if nested or (any(finite) and not as_frame) or not columns:
            raise Unreadable(f"{type(step).__name__} reads several columns changed before")
        call = Call(step, tuple(columns), as_frame)
        self.calls.append(call)
        count = self.width_of(call) if width is None else width
        return [Column(k, call=len(self.calls) - 1) for k in range(count)]


def _pipeline(reader: Reader, step: Any, columns: Columns, width: Width) -> list[Column]:
    for k, (_, stage) in enumerate(step.steps):
        columns = reader.read(stage, columns, width if k == len(step.steps) - 1 else None)
    return list(columns)


def _column_transformer(reader: Reader, step: Any, columns: Columns, width: Width) -> list[Column]:
    inputs = step._transformer_to_input_indices  # the only place that has them resolved
    parts: dict[int, list[Column]] = {}
    for name, transformer, _ in step.transformers_:
        place = step.output_indices_[name]
        if place.stop > place.start:
            chosen = [columns[k] for k in inputs[name]]
            parts[place.start] = reader.read(transformer, chosen, place.stop - place.start)
    return [column for start in sorted(parts) for column in parts[start]]


def _union(reader: Reader, step: Any, columns: Columns, width: Width) -> list[Column]:
    return [c for _, part in step.transformer_list for c in reader.read(part, columns)]


def _function(reader: Reader, step: Any, columns: Columns, width: Width) -> list[Column]:
    return list(columns) if step.func is None else reader._call(step, columns, width)


def _scaler(*attributes: tuple[str, str]) -> Callable[..., list[Column]]:
    """Return how a scaler is read that does one thing after another with fitted attributes."""

    def read(reader: Reader, step: Any, columns: Columns, width: Width) -> list[Column]:
        for name, attribute in attributes:
            value = getattr(step, attribute, None)
            if value is not None and (attribute != "mean_" or step.with_mean):
                columns = reader.after(columns, name, value)
        if getattr(step, "clip", False):
            low, high = getattr(step, "feature_range", (-1.0, 1.0))
            columns = reader.after(reader.after(columns, "lower", low), "upper", high)
        return list(columns)

    return read


def _imputer(reader: Reader, step: Any, columns: Columns, width: Width) -> list[Column]:
    looks_for_nan = isinstance(step.missing_values, float) and np.isnan(step.missing_values)
    if not looks_for_nan and not all(map(reader.is_finite, columns)):
        raise Unreadable("SimpleImputer of numbers other than missing ones")
    kept = [value == value for value in step.statistics_]  # not of a column without any value
    filled = reader.after([*compress(columns, kept)], "fill", step.statistics_[kept])
    if step.add_indicator:
        some = [columns[k] for k in step.indicator_.features_]
        filled += reader.after(some, "isnan", 0.0)
    return filled


def _encoder(reader: Reader, step: Any, columns: Columns, width: Width) -> list[Column]:
    counts: Any = 1
    if type(step).__name__ == "OneHotEncoder":
        counts = step._n_features_outs
    elif type(step).__name__ == "TargetEncoder" and step.target_type_ == "multiclass":
        counts = len(step.classes_)
    return _repeated(map(partial(reader.cut, exact=True), columns, step.categories_), counts)


def _bins(reader: Reader, step: Any, columns: Columns, width: Width) -> list[Column]:
    inner = (edges[1:-1] for edges in step.bin_edges_)
    counts = 1 if step.encode == "ordinal" else step.n_bins_
    return _repeated(map(partial(reader.cut, exact=False), columns, inner), counts)


def _repeated(columns: Iterable[Column], counts: Any) -> list[Column]:
    """Return each column as often as it comes out of an encoder: so many times, or each its own."""
    return list(np.repeat(np.array([*columns], dtype=object), counts))


_READERS: dict[str, Callable[..., list[Column]]] = {
    "ColumnTransformer": _column_transformer,
    "FeatureUnion": _union,
    "FunctionTransformer": _function,
    "KBinsDiscretizer": _bins,
    "MaxAbsScaler": _scaler(("divide", "scale_")),
    "MinMaxScaler": _scaler(("multiply", "scale_"), ("add", "min_")),
    "OneHotEncoder": _encoder,
    "OrdinalEncoder": _encoder,
    "Pipeline": _pipeline,
    "RobustScaler": _scaler(("subtract", "center_"), ("divide", "scale_")),
    "SimpleImputer": _imputer,
    "StandardScaler": _scaler(("subtract", "mean_"), ("divide", "scale_")),
    "TargetEncoder": _encoder,
}
