"""Preprocessing as tables and arithmetic: codes to the array that the final estimator is given.

A category is looked up in a table of the columns that each of its levels becomes, read from the
preprocessing itself; a number goes through the fitted arithmetic, in the order of scikit-learn's.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from elsewise.models._preprocessing import Column, Reader, Unreadable

if TYPE_CHECKING:
    from elsewise.features import Encoder
    from elsewise.models._preprocessing import Call


# Largest tables kept.
TABLE_BYTES = 1 << 28
# Bytes of preprocessed rows while tables are filled.
CHUNK_BYTES = 1 << 25

DOUBLE: np.dtype[Any] = np.dtype(np.float64)

# Steps of arithmetic, and their slopes given their values; clipping has no slope to rely on.
OPS: dict[str, tuple[Callable[..., Any], Callable[..., Any] | None]] = {
    "add": (np.add, np.ones_like),
    "subtract": (np.subtract, np.ones_like),
    "multiply": (np.multiply, np.asarray),
    "divide": (np.divide, lambda values: 1.0 / values),
    "fill": (lambda x, value: np.where(np.isnan(x), value, x), np.ones_like),
    "lower": (np.maximum, None),
    "upper": (np.minimum, None),
    "isnan": (lambda x, value: np.isnan(x).astype(np.float64), np.zeros_like),
}
LINEAR = frozenset({"add", "subtract", "multiply", "divide"})


def _after(values: np.ndarray, ops: Iterable[tuple[str, Any]]) -> np.ndarray:
    """Return numbers after arithmetic, step by step in their own precision."""
    for name, operand in ops:
        values = OPS[name][0](values, operand).astype(values.dtype, copy=False)
    return values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Numbers:
    """Columns of the result that are numbers after the same kinds of arithmetic."""

    call: int | None
    """The call whose result they read; None: the codes."""
    sources: np.ndarray | slice
    ops: tuple[tuple[str, np.ndarray], ...]
    positions: np.ndarray
    dtype: np.dtype[Any]
    """Of the frame's columns: scikit-learn keeps single precision."""

    def of(self, matrix: np.ndarray) -> np.ndarray:
        """Return them, (n, k), from the codes or the result of the call."""
        return _after(matrix[:, self.sources].astype(self.dtype, copy=False), self.ops)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Lookup:
    """Columns of the result that one feature decides, and what they are for each of its values."""

    column: Column
    cuts: np.ndarray | None
    """Those of the column; None for a feature with a table of levels."""
    probes: np.ndarray
    """(L,): a code for each value, NaN where there is none to ask about."""
    positions: np.ndarray
    known: np.ndarray
    """bool (L,): whose table entry can be asked for."""
    table: Any = None
    """ndarray (L, w), once they have been."""

    def places(self, codes: np.ndarray) -> np.ndarray:
        """Return which entry each row's code (n,) has: levels first, then missing, then unknown."""
        codes = _after(codes, self.column.ops)
        missing, count = np.isnan(codes), len(self.probes) - 2
        if self.cuts is None:
            found = np.where(missing, 0.0, codes).astype(np.intp)
            found[found >= count] = count + 1
        elif self.column.exact:
            found = np.minimum(np.searchsorted(self.cuts, codes), max(count - 1, 0))
            found[self.cuts[found] != codes if count else ...] = count + 1
        else:
            found = np.searchsorted(self.cuts, codes, side="right")
        found[missing] = count
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tables:
    """Fitted preprocessing, ready to be applied to codes."""

    width: int
    """Columns of the result."""
    whole: np.ndarray
    """Columns of codes that the frame holds as whole numbers."""
    numbers: tuple[_Numbers, ...]
    lookups: tuple[_Lookup, ...]
    calls: tuple[Callable[[np.ndarray], np.ndarray], ...]
    weights: np.ndarray | None = None
    """(W, width) where the result is multiplied with weights at once."""
    like: Any = None
    """What the preprocessing returns for no rows: an array, a sparse matrix or a frame."""

    def columns_of(self, width: int) -> int:
        """Return how many columns a part of so many makes: these, or one per output."""
        return width if self.weights is None else len(self.weights)

    def weighted(self, values: Any, part: _Numbers | _Lookup) -> Any:
        """Return the columns of a part, (n, k), multiplied with their weights, if there are any."""
        return values if self.weights is None else values @ self.weights[:, part.positions].T

    def apply(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the result, (n, width) or (n, W), and which rows have no unknown value."""
        if self.whole.size:
            codes = codes.copy()
            codes[:, self.whole] = np.rint(codes[:, self.whole])
        known = np.ones(len(codes), dtype=bool)
        result = np.zeros((len(codes), self.columns_of(self.width)))
        called = [call(codes) for call in self.calls]
        for part in self.numbers:
            values = part.of(codes if part.call is None else called[part.call])
            self._put(result, part, self.weighted(values, part))
        for lookup in self.lookups:
            places = lookup.places(codes[:, lookup.column.place])
            known &= lookup.known[places]
            self._put(result, lookup, np.take(lookup.table, places, axis=0))
        return result, known

    def _put(self, result: np.ndarray, part: _Numbers | _Lookup, values: np.ndarray) -> None:
        if self.weights is None:
            result[:, part.positions] = values
        else:
            result += values

    def slopes(self, columns: int) -> np.ndarray | None:
        """Return d (weighted result) / d codes (W, columns); None where it is not constant."""
        assert self.weights is not None
        if self.calls:
            return None
        slopes = np.zeros((len(self.weights), columns))
        for part in self.numbers:
            gain = np.ones(len(part.positions))
            for name, values in part.ops:
                slope = OPS[name][1]
                if slope is None:
                    return None
                gain = gain * slope(values)
            places: Any = part.sources
            np.add.at(slopes.T, places, (self.weights[:, part.positions] * gain).T)
        return slopes


def build_tables(
    columns: Sequence[Column],
    reader: Reader,
    encoder: Encoder,
    prepare: Callable[[np.ndarray], Any],
    codes: np.ndarray,
    weights: np.ndarray | None = None,
) -> Tables:
    """Return the tables of preprocessing with these columns, asking it about every value once.

    Parameters
    ----------
    columns, reader
        What `elsewise.models._preprocessing.Reader` has read.
    encoder
        Decodes the codes.
    prepare
        The preprocessing itself, codes to matrix.
    codes
        Codes (n, p) of rows that it can prepare.
    weights
        (W, width): the weights of a linear model behind it.
    """
    dtypes, lookups = encoder.dtypes, defaultdict[Column, list[int]](list)
    numbers = defaultdict[tuple[Any, ...], list[int]](list)
    for k, column in enumerate(columns):
        if reader.is_finite(column):
            # Whatever is done to a level, its entry in the table says what becomes of it.
            lookups[column if column.cuts is not None else Column(column.place)].append(k)
        else:
            single = column.call is None and dtypes[column.place] == np.float32
            numbers[column.call, single, tuple(op.name for op in column.ops)].append(k)
    whole = [j for j, t in enumerate(encoder.tables) if t is None and dtypes[j].kind in "iu"]
    tables = Tables(
        width=len(columns),
        whole=np.asarray(whole, dtype=np.intp),
        numbers=tuple(_numbers(columns, places, key[1]) for key, places in numbers.items()),
        lookups=tuple(_lookup(c, places, encoder, codes) for c, places in lookups.items()),
        calls=tuple(called(call, encoder) for call in reader.calls),
        weights=weights,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of categories unknown to an encoder
        return _filled(tables, prepare, codes)


def _numbers(columns: Sequence[Column], positions: list[int], single: bool) -> _Numbers:
    """Return columns of the same source and steps of arithmetic as one part."""
    chosen = [columns[k] for k in positions]
    steps = zip(*(column.ops for column in chosen), strict=True)
    places: Any = np.asarray([column.place for column in chosen], dtype=np.intp)
    if np.array_equal(places, np.arange(places[0], places[0] + len(places))):
        places = slice(places[0], places[0] + len(places))  # which copies nothing
    return _Numbers(
        call=chosen[0].call,
        sources=places,
        ops=tuple((ops[0].name, np.asarray([op.value for op in ops])) for ops in steps),
        positions=np.asarray(positions),
        dtype=np.dtype(np.float32) if single else DOUBLE,
    )


def _lookup(column: Column, positions: list[int], encoder: Encoder, codes: np.ndarray) -> _Lookup:
    """Return a lookup with a code to ask about for each of its values, ``known`` where there is."""
    table, dtype = encoder.tables[column.place], encoder.dtypes[column.place]
    cuts, unknown = None, np.nan
    if table is not None:
        values, missing = np.arange(len(table.values), dtype=np.float64), table.holds_missing
    else:
        cuts = values = np.asarray(column.cuts, dtype=np.float64)
        missing = dtype.kind == "f" or not isinstance(dtype, np.dtype)
        if column.exact:
            unknown = float(values.max(initial=0.0)) + 1.0
        else:
            # A bin is asked about by the first row that lies in it, if any does.
            own = codes[~np.isnan(codes[:, column.place]), column.place]
            bins = np.searchsorted(cuts, _after(own, column.ops), side="right")
            inside, first = np.unique(bins, return_index=True)
            values = np.full(len(cuts) + 1, np.nan)
            values[inside] = own[first]
    probes = np.asarray([*values, np.nan, unknown])
    known = ~np.isnan(probes)
    known[-2] = missing
    return _Lookup(
        column=column, cuts=cuts, probes=probes, positions=np.asarray(positions), known=known
    )


def called(call: Call, encoder: Encoder) -> Callable[[np.ndarray], np.ndarray]:
    """Return a transformer as a function of codes."""
    sources = [column.place for column in call.inputs]
    own = replace(
        encoder,
        columns=encoder.columns[sources],
        dtypes=tuple(encoder.dtypes[j] for j in sources),
        tables=tuple(encoder.tables[j] for j in sources),
    )

    def transform(codes: np.ndarray) -> np.ndarray:
        if call.as_frame:
            return _dense(call.transformer.transform(own.decode_as_given(codes[:, sources])))
        cells = [_after(codes[:, column.place], column.ops) for column in call.inputs]
        return _dense(call.transformer.transform(np.column_stack(cells)))

    return transform


def _filled(tables: Tables, prepare: Callable[[np.ndarray], Any], codes: np.ndarray) -> Tables:
    """Return the tables with their entries, read from the preprocessing value by value."""
    parts = tables.lookups
    size = 8 * sum(part.probes.size * tables.columns_of(len(part.positions)) for part in parts)
    if size > TABLE_BYTES:
        raise Unreadable(f"its categories need tables of {size / 1e9:.1f} GB")
    places = [part.places(codes[:, part.column.place]) for part in parts]
    seen = [np.isin(np.arange(part.probes.size), k) for part, k in zip(parts, places, strict=True)]
    levels = [mask | (np.arange(mask.size) < mask.size - 2) for mask in seen]
    # An encoder may refuse missing or unknown values, or levels that it was not fitted on.
    for tried in ([part.known for part in parts], levels, seen):
        masks = zip(parts, tried, strict=True)
        some = tuple(replace(part, known=part.known & mask) for part, mask in masks)
        try:
            filled = _with_entries(replace(tables, lookups=some), prepare, codes[0])
            break
        except Exception as error:
            if tried is seen or isinstance(error, Unreadable):
                raise
    return filled


def _with_entries(tables: Tables, prepare: Callable[[np.ndarray], Any], base: np.ndarray) -> Tables:
    """Return the tables with the entries of all known values, each asked about in a row.

    A row has one value of every feature, two lookups of one feature have rows of their own.
    """
    taken, rows = Counter[int](), []
    for part in tables.lookups:
        first, feature = taken[part.column.place], part.column.place
        taken[feature] += int(part.known.sum())
        rows.append(slice(first, taken[feature]))
    codes = np.tile(base, (max([1, *taken.values()]), 1))
    for part, own in zip(tables.lookups, rows, strict=True):
        codes[own, part.column.place] = part.probes[part.known]
    found: list[list[np.ndarray]] = [[] for _ in tables.lookups]
    step = max(1, CHUNK_BYTES // (8 * tables.width))
    for first in range(0, len(codes), step):
        returned = prepare(codes[first : first + step])
        if returned.shape[1] != tables.width:
            raise Unreadable(f"{returned.shape[1]} columns where {tables.width} were read")
        matrix = returned.tocsc() if sparse.issparse(returned) else _dense(returned)
        for part, own, blocks in zip(tables.lookups, rows, found, strict=True):
            here = slice(max(own.start - first, 0), max(own.stop - first, 0))
            blocks.append(_dense(tables.weighted(matrix[:, part.positions][here], part)))
    lookups = []
    for part, blocks in zip(tables.lookups, found, strict=True):
        table = np.zeros((part.probes.size, tables.columns_of(len(part.positions))))
        table[part.known] = np.concatenate(blocks)
        lookups.append(replace(part, table=table))
    return replace(tables, lookups=tuple(lookups), like=returned[:0])


def _dense(matrix: Any) -> np.ndarray:
    """Return a matrix, however it is kept, as float64 (n, m)."""
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=np.float64)
