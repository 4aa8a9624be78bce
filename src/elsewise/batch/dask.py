"""Populations too large for one machine, as Dask DataFrames.

A limit shrinks like one over the root of the number of rows, so a map need not see every row: it is
fitted on a uniform sample, certified on other rows of that sample, and applied to the partitions
where they are. The sample depends on the seed and on the order of the rows, not on where one
partition ends and the next begins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from elsewise._explain import explain_request
from elsewise.batch._pickling import drop_model
from elsewise.batch._sampling import (
    MOST,
    PILOT,
    checked_dask,
    extreme_rows,
    partition_lengths,
    random_order,
    rows_wanted,
    take_rows,
    what_more_rows_buy,
)
from elsewise.errors import InvalidInput
from elsewise.explanation import Explanation
from elsewise.features import Schema
from elsewise.request import Request, check_seed

if TYPE_CHECKING:
    import dask.dataframe as dd

__all__ = ["apply", "explain", "infer_schema", "sample"]


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
    lengths = partition_lengths(frame)
    total = sum(lengths)
    _check_rows(rows, total)
    schema = infer_schema(frame, background, seed=seed) if schema is None else schema
    # One permutation for pilot and sample: they have no row in common.
    order = random_order(total, max(rows or 0, PILOT + MOST), seed, "sample")

    def run(positions: np.ndarray) -> Explanation:
        request = Request(
            model=model,
            rows=take_rows(frame, lengths, positions),
            schema=schema,
            background=background,
            certify="held-out",
            seed=seed,
            **question,
        )
        return explain_request(request, progress)

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
    lengths = partition_lengths(frame)
    return take_rows(frame, lengths, random_order(sum(lengths), rows, seed, "rows"))


def _check_rows(rows: Any, total: int) -> None:
    if rows is not None and not (isinstance(rows, int | np.integer) and rows >= 1):
        expected = "a whole number of rows, for both halves together"
        fix = "leave rows out to let a pilot run decide"
        raise InvalidInput("rows", expected=expected, received=repr(rows), fix=fix)
    if total < 2:
        fix = "explain a population"
        raise InvalidInput("frame", expected="at least 2 rows", received=total, fix=fix)
