"""Rows of a Dask DataFrame by position: how many, which, and what shows its columns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api import types

from elsewise.certificate import Certificate, Evidence
from elsewise.errors import InvalidInput, MissingExtra, bad_column
from elsewise.explanation import Explanation
from elsewise.request import generator

if TYPE_CHECKING:
    import dask.dataframe as dd


# Text with more than 50 values is never moved, so no more values need to be shown.
LEVELS = 51
PILOT = 2_000
"""Rows of the pilot run that says how many are needed."""
MOST = 40_000
"""At most this many rows are drawn unless more are asked for."""
# Rows are enough when a limit is within this share of its bound, or of its distance without.
PRECISION = 0.05


def checked_dask(frame: Any) -> Any:
    """Refuse what is not a Dask DataFrame with known categories; returns dask."""
    try:
        import dask
        import dask.dataframe as dd
    except ImportError as error:
        raise MissingExtra("dask", "dask") from error
    if not isinstance(frame, dd.DataFrame):
        expected, received = "a Dask DataFrame", f"{type(frame).__module__}.{type(frame).__name__}"
        fix = "use elsewise.explain for pandas, or dask.dataframe.from_pandas(frame)"
        raise InvalidInput("frame", expected=expected, received=received, fix=fix)
    if not frame.columns.is_unique:
        received = f"{frame.columns[frame.columns.duplicated()][0]!r} more than once"
        fix = "rename or drop one of them"
        raise InvalidInput("frame", expected="unique column names", received=received, fix=fix)
    for name in frame.columns:
        column = frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype) and not column.cat.known:
            fix = f"frame.categorize(columns=[{name!r}]), or convert the column to text"
            expected = "categories that are the same in all partitions"
            raise bad_column(name, expected, "categories that Dask does not know yet", fix)
    return dask


def random_order(total: int, rows: int, seed: int, purpose: str) -> np.ndarray:
    """Distinct positions below ``total``, in random order; all of them where rows ask for more."""
    rng = generator(seed, purpose)
    return np.asarray(rng.choice(total, size=min(rows, total), replace=False))


def partition_lengths(frame: dd.DataFrame) -> list[int]:
    """Number of rows of each partition."""
    import dask

    parts = frame.index.to_delayed()
    return list(dask.compute(*(dask.delayed(len)(part) for part in parts)))


def take_rows(frame: dd.DataFrame, lengths: list[int], positions: np.ndarray) -> pd.DataFrame:
    """The rows at these positions; from a partition only they travel."""
    import dask

    # In the order of the frame, so that every partition is read once and the sample does not depend
    # on the order of the draw.
    positions = np.sort(positions)
    ends = np.cumsum(lengths)
    owners = np.searchsorted(ends, positions, side="right")
    parts = frame.to_delayed()
    picked = [
        dask.delayed(pd.DataFrame.take)(parts[k], positions[owners == k] - (ends[k] - lengths[k]))
        for k in np.unique(owners)
    ]
    rows: pd.DataFrame = pd.concat(dask.compute(*picked))
    return rows.set_axis(pd.Index(positions, name="position"))


def extreme_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The few rows that show every column's range, its fractions and its levels."""
    places = {0, 1}
    for j in range(rows.shape[1]):
        column = rows.iloc[:, j].reset_index(drop=True)
        values = column.dropna()
        if types.is_numeric_dtype(column) and not types.is_bool_dtype(column) and len(values):
            fractions = values[values % 1 != 0]
            ends = int(values.argmin()), int(values.argmax())
            places |= {*values.index[[*ends]], *fractions.index[:1]}
        else:
            places |= {*values.drop_duplicates().index[:LEVELS]}
    return rows.iloc[sorted(place for place in places if place < len(rows))]


def rows_wanted(pilot: Certificate) -> int:
    """Rows of both halves with which the limits of a pilot would be precise."""
    wanted = float(pilot.rows)
    for side in (pilot.inputs, pilot.outputs):
        excess = side.at_most - side.estimate
        allowed = PRECISION * (side.estimate if side.bound is None else side.bound)
        if excess > 0:
            # The excess of a limit over its distance shrinks like one over the root of the rows.
            wanted = max(wanted, pilot.rows * (excess / allowed) ** 2 if allowed else math.inf)
    return math.ceil(min(2 * wanted, MOST))


def limit_with(side: Evidence, rows: int, more: int) -> float:
    """About the limit that more rows would give: its excess shrinks like 1 / sqrt(rows)."""
    return side.estimate + (side.at_most - side.estimate) * math.sqrt(rows / more)


def what_more_rows_buy(explanation: Explanation, total: int) -> str:
    """Say how many of all rows were used, and what the limits would be with four times as many."""
    certificate, drawn = explanation.certificate, len(explanation.index)
    rows = certificate.rows
    text = f"sample: {drawn:,} of {total:,} rows, drawn at random, {rows:,} of them certified"
    if drawn == total:
        return f"{text}; there are no more"
    more = min(4 * rows, rows * total // drawn)
    limits = " and ".join(
        f"{limit_with(side, rows, more):.4g} ({name}, now {side.at_most:.4g})"
        for name, side in (("inputs", certificate.inputs), ("outputs", certificate.outputs))
    )
    return f"{text}; with {more:,} the limits would be about {limits}"
