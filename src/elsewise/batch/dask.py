"""Populations too large for one machine, as Dask DataFrames.

A limit shrinks like one over the root of the number of rows, so a map need not see every row: it is
fitted on a uniform sample, certified on other rows of that sample, and applied to the partitions
where they are. The sample depends on the seed and on the order of the rows, not on where one
partition ends and the next begins.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api import types

from elsewise._explain import explain as explain_rows
from elsewise.batch._run import drop_model
from elsewise.certificate import Certificate, Evidence
from elsewise.errors import InvalidInput, MissingExtra, bad_column
from elsewise.explanation import Explanation
from elsewise.features import Schema
from elsewise.request import check_seed, generator
from elsewise.text import figure

if TYPE_CHECKING:
    import dask.dataframe as dd


__all__ = ["apply", "explain", "infer_schema", "sample"]

# Text with more than 50 values is never moved, so no more values need to be shown.
LEVELS = 51
PILOT = 2_000
"""Rows of the pilot run that says how many are needed."""
MOST = 40_000
"""At most this many rows are drawn unless more are asked for."""
# Rows are enough when a limit is within this share of its bound, or of its distance without.
PRECISION = 0.05


def explain(
    model: Any,
    frame: dd.DataFrame,
    *,
    schema: Schema | None = None,
    background: pd.DataFrame | None = None,
    rows: int | None = None,
    seed: int = 0,
    progress: bool | None = None,
    **question: Any,
) -> Explanation:
    """Explain a population that is a Dask DataFrame, from a uniform sample of its rows.

    One half of the sample is fitted, the other certified. The rows were drawn at random, so the
    certificate speaks of the whole frame, whatever the order and dependence of its rows. The last
    of ``status.notices`` says how many rows were used and what more of them would buy.

    Parameters
    ----------
    model
        As for `elsewise.explain`. The fit runs in this process.
    frame
        Dask DataFrame: the population.
    schema
        What may change and how; by default that of `infer_schema`, which reads every partition.
    background
        DataFrame that gives scales and observed ranges; the sample by default.
    rows
        Size of the sample, both halves. By default a pilot run of 2,000 other rows decides: as many
        as it takes for what a limit adds to its distance to be 5 % of its bound, or of the
        distance where no bound is given; at most 40,000.
    seed
        The one source of randomness.
    progress
        Show a progress bar; by default only on a terminal.
    **question
        The other arguments of `elsewise.explain`: ``target``, ``bounds``, ``settings``, ...

    Returns
    -------
    Explanation
        Of the sampled rows, whose index is their position in the frame; `apply` moves them all.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import elsewise as ew
    >>> people = pd.DataFrame({"x": np.random.default_rng(0).normal(size=3000)})
    >>> frame = dd.from_pandas(people, npartitions=4)
    >>> explanation = ew.batch.dask.explain(
    ...     lambda rows: rows["x"], frame, target=ew.targets.shift(0.5), rows=600,
    ...     bounds=ew.Bounds(outputs=0.1), settings=ew.Settings(iterations=5, draws=99)
    ... )
    >>> explanation.certificate.kind.value, explanation.certificate.rows
    ('held-out', 300)
    >>> moved = ew.batch.dask.apply(explanation, frame)
    >>> len(moved)
    3000
    """
    checked_dask(frame)
    check_seed(seed)
    edges = partition_edges(frame)
    total = int(edges[-1])
    if rows is not None and not (isinstance(rows, int | np.integer) and rows >= 1):
        expected = "a whole number of rows, for both halves together"
        raise InvalidInput("rows", expected, repr(rows), "leave rows out to let a pilot run decide")
    if total < 2:
        raise InvalidInput("frame", "at least 2 rows", total, "explain a population")
    schema = infer_schema(frame, background, seed=seed) if schema is None else schema
    # One permutation for pilot and sample: they have no row in common.
    order = random_order(total, max(rows or 0, PILOT + MOST), seed, "sample")
    asked: dict[str, Any] = {"schema": schema, "background": background, "certify": "held-out"}

    def run(positions: np.ndarray) -> Explanation:
        drawn = take_rows(frame, edges, positions)
        return explain_rows(model, drawn, **asked, **question, seed=seed, progress=progress)

    if rows is None and total > 2 * PILOT:
        # Rows that decided on the size of the sample have no part in its certificate.
        rows = rows_wanted(run(order[:PILOT]).certificate)
        order = order[PILOT:]
    explanation = run(order[:rows])
    status = explanation.status
    said = what_more_rows_buy(explanation, total)
    return replace(explanation, status=replace(status, notices=(*status.notices, said)))


def apply(explanation: Explanation, frame: dd.DataFrame) -> dd.DataFrame:
    """Move every row of a Dask DataFrame, partition by partition, when the result is asked for.

    What happens to a row depends on that row alone: partitions give what the whole frame gives, and
    one that is computed again, because a worker was lost, gives the same again.

    Parameters
    ----------
    explanation
        Of `explain`, of `elsewise.explain`, or loaded with its model; it travels to the workers.
    frame
        Dask DataFrame with the explained columns.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import elsewise as ew
    >>> people = pd.DataFrame({"x": np.random.default_rng(0).normal(size=90)})
    >>> explanation = ew.explain(lambda rows: rows["x"], people, target=ew.targets.shift(0.5),
    ...                          settings=ew.Settings(iterations=5, draws=99))
    >>> moved = ew.batch.dask.apply(explanation, dd.from_pandas(people, npartitions=3))
    >>> moved.compute().equals(explanation.apply(people))
    True
    """
    dask = checked_dask(frame)
    like = frame._meta
    columns = len(explanation.encoder.columns)
    explanation.encoder.extend(like).encode(like)  # refuses other columns here, not in a worker
    meta = explanation.encoder.decode(np.empty((0, columns)), index=like.index)
    # One key of the graph: sent to a worker once, and again to one that takes another's place.
    mover = dask.delayed(drop_model(explanation), pure=False, traverse=False)
    return frame.map_partitions(lambda rows, explanation: explanation.apply(rows), mover, meta=meta)


def infer_schema(
    frame: dd.DataFrame, background: pd.DataFrame | None = None, *, seed: int = 0
) -> Schema:
    """Return the schema of a Dask DataFrame: ranges and levels of all rows, scales of a sample.

    Parameters
    ----------
    frame
        Dask DataFrame: the population. Every partition is read.
    background
        DataFrame that gives the scales; 2,000 rows drawn from the frame by default.
    seed
        Which rows are drawn.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> people = pd.DataFrame({"age": range(18, 90), "home": ["own"] * 71 + ["rent"]})
    >>> infer_schema(dd.from_pandas(people, npartitions=5))
    Schema of 2 columns, 2 free
    column  kind      moves   range      weight  notice
    age     integer   freely  18 to 89   1
    home    category  freely  own, rent  1
    """
    checked_dask(frame)
    if background is None:
        background = sample(frame, PILOT, seed=seed)
    shown = frame.reduction(chunk=extreme_rows, aggregate=extreme_rows, meta=frame._meta).compute()
    return Schema.infer(shown, background)


def sample(frame: dd.DataFrame, rows: int, *, seed: int = 0) -> pd.DataFrame:
    """Draw rows uniformly and without replacement, all of them where there are no more.

    Parameters
    ----------
    frame
        Dask DataFrame.
    rows
        How many.
    seed
        Which; how the rows are cut into partitions does not matter.

    Returns
    -------
    DataFrame
        In the order of the frame; the index is the position in it.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> letters = dd.from_pandas(pd.DataFrame({"x": list("abcdef")}), npartitions=2)
    >>> len(sample(letters, 4)), len(sample(letters, 9))
    (4, 6)
    """
    checked_dask(frame)
    edges = partition_edges(frame)
    return take_rows(frame, edges, random_order(int(edges[-1]), rows, seed, "rows"))


def checked_dask(frame: Any) -> Any:
    """Refuse what is not a Dask DataFrame with known categories; returns dask."""
    try:
        import dask
        import dask.dataframe as dd
    except ImportError as error:
        raise MissingExtra("dask", "dask") from error
    if not isinstance(frame, dd.DataFrame):
        received = f"{type(frame).__module__}.{type(frame).__name__}"
        fix = "use elsewise.explain for pandas, or dask.dataframe.from_pandas(frame)"
        raise InvalidInput("frame", "a Dask DataFrame", received, fix)
    if not frame.columns.is_unique:
        received = f"{frame.columns[frame.columns.duplicated()][0]!r} more than once"
        raise InvalidInput("frame", "unique column names", received, "rename or drop one of them")
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


def partition_edges(frame: dd.DataFrame) -> np.ndarray:
    """Positions at which the partitions begin, and the number of all rows at the end."""
    import dask

    parts = frame.index.to_delayed()
    return np.cumsum([0, *dask.compute(*(dask.delayed(len)(part) for part in parts))])


def take_rows(frame: dd.DataFrame, edges: np.ndarray, positions: np.ndarray) -> pd.DataFrame:
    """The rows at these positions; from a partition only they travel."""
    import dask

    # In the order of the frame, so that every partition is read once and the sample does not depend
    # on the order of the draw.
    positions = np.sort(positions)
    owners = np.searchsorted(edges, positions, side="right") - 1
    parts = frame.to_delayed()
    picked = [
        dask.delayed(pd.DataFrame.take)(parts[k], positions[owners == k] - edges[k])
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
        f"{figure(limit_with(side, rows, more))} ({name}, now {figure(side.at_most)})"
        for name, side in (("inputs", certificate.inputs), ("outputs", certificate.outputs))
    )
    return f"{text}; with {more:,} the limits would be about {limits}"
