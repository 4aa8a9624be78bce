"""Two frames and a model, checked and put into codes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api import types

from elsewise._arrays import to_numpy
from elsewise._difference._shapley import Functional
from elsewise._resources import block_rows
from elsewise.analysis import Column, columns_between
from elsewise.errors import InvalidInput
from elsewise.features import Schema
from elsewise.models import Outputs, bind


class Samples(NamedTuple):
    """Both samples as the computation sees them; pooled arrays have the rows before first."""

    sizes: tuple[int, int]
    codes: np.ndarray
    """ndarray (n + m, p)."""
    embedded: np.ndarray
    """ndarray (n + m, d): where distances are measured, all columns and missing cells seen."""
    scores: np.ndarray
    """ndarray (n + m,)."""
    columns: tuple[Column, ...]
    """The J attributes, with the pooled codes as ``before``."""
    owner: np.ndarray
    """int (p,): the attribute of each column of the codes."""
    clusters: np.ndarray
    """int (n + m,): rows of one number belong together."""
    outputs: Outputs

    def halves(self, pooled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows before and the rows after of a pooled array."""
        return pooled[: self.sizes[0]], pooled[self.sizes[0] :]

    @property
    def turned(self) -> bool:
        """Whether to draw as if the samples were the other way round.

        So both ways have the same draws, and swapping the samples flips every sign exactly.
        """
        before, after = self.halves(self.scores)
        return bool(before.mean() > after.mean())


def take_samples(
    model: Any,
    before: pd.DataFrame,
    after: pd.DataFrame,
    output: Hashable | None,
    schema: Schema | None,
    clusters: Hashable | tuple[Any, Any] | None,
) -> Samples:
    """Check both frames and bind the model to the codes of their columns."""
    _check_frames(before, after)
    frames = [before, after[before.columns.tolist()]]
    sizes = len(before), len(after)
    numbers = np.arange(sum(sizes))
    if clusters is not None:
        numbers, frames = _cluster_numbers(clusters, frames)
    pooled = pd.concat(frames, ignore_index=True)
    schema = Schema.infer(pooled) if schema is None else schema
    if set(pooled.columns) == set(schema.names):
        schema = replace(schema, features=tuple(schema[name] for name in pooled.columns))
    # Distances see every column: what may move is no question here.
    encoder = replace(schema, joint=True, rules=()).encoder(pooled)
    codes, embedding = encoder.encode(pooled), encoder.schema.embedding()
    # The embedding puts a missing cell at the mean; one dimension more tells it from a known one.
    missing = np.isnan(codes)
    columns = columns_between(schema, embedding.source, codes, codes, fixed=True)
    outputs = bind(model, encoder, output=output, probe=codes)
    if outputs.columns != 1:
        received = f"a model with {outputs.columns}"
        raise refused("output", "one output", received, "name a class or a column: output=...")
    return Samples(
        sizes=sizes,
        codes=codes,
        embedded=np.hstack([embedding.embed(codes), missing[:, missing.any(axis=0)]]),
        scores=scores_of(outputs, codes),
        columns=columns,
        owner=np.array(
            [[j in c.places for c in columns].index(True) for j in range(codes.shape[1])]
        ),
        clusters=numbers,
        outputs=outputs,
    )


def scores_of(outputs: Outputs, codes: np.ndarray) -> np.ndarray:
    """Return the outputs (n,) of codes (n, p), a block at a time."""
    tile = block_rows(codes.shape[1])
    tiles = (codes[start : start + tile] for start in range(0, len(codes), tile))
    return np.concatenate([to_numpy(outputs.values(outputs.place(t)))[:, 0] for t in tiles]) + 0.0


def refused(argument: str, expected: str, received: object, fix: str) -> InvalidInput:
    """Build the error for an argument that cannot be used."""
    return InvalidInput(argument, expected=expected, received=received, fix=fix)


def _check_frames(before: object, after: object) -> None:
    for name, frame in (("before", before), ("after", after)):
        if not isinstance(frame, pd.DataFrame) or len(frame) < 2:
            size = f"{len(frame)} rows" if isinstance(frame, pd.DataFrame) else type(frame).__name__
            raise refused(name, "a DataFrame of at least 2 rows", size, "pass this side's rows")
    assert isinstance(before, pd.DataFrame)
    assert isinstance(after, pd.DataFrame)
    odd = before.columns.symmetric_difference(after.columns, sort=False).tolist()
    if odd or not (before.columns.is_unique and after.columns.is_unique):
        received = f"{odd[0]!r} in one of them only" if odd else "a repeated column"
        raise refused("after", "the columns of before, each once", received, "drop or rename it")
    for name in before.columns:
        one, other = before[name].dtype, after[name].dtype
        numeric = [types.is_numeric_dtype(d) and not types.is_bool_dtype(d) for d in (one, other)]
        if one != other and not all(numeric):
            fix = f"convert one of them: after[{name!r}].astype(before[{name!r}].dtype)"
            raise refused(f"after[{name!r}]", f"dtype {one}, as in before", f"dtype {other}", fix)


def _cluster_numbers(
    clusters: Any, frames: list[pd.DataFrame]
) -> tuple[np.ndarray, list[pd.DataFrame]]:
    """Number the clusters of both samples; a column that names them is taken out."""
    labels = clusters if isinstance(clusters, tuple | list) else ()
    if not labels and isinstance(clusters, Hashable) and clusters in frames[0].columns:
        labels = [frame[clusters] for frame in frames]
        frames = [frame.drop(columns=[clusters]) for frame in frames]
    series = [pd.Series(np.asarray(values)) for values in labels]
    numbers = pd.factorize(pd.concat([pd.Series(), *series], ignore_index=True))[0]
    fits = [len(s) for s in series] == [len(frame) for frame in frames]
    if not fits or numbers.min() < 0 or numbers.max() < 1:
        fix = "clusters=(labels of before, labels of after), or a column of both"
        raise refused("clusters", "a label for every row, of several clusters", "others", fix)
    return np.asarray(numbers), frames


def checked_functional(given: Any) -> Functional:
    """Return what of the outputs is asked about.

    Examples
    --------
    >>> checked_functional(("share", 0.5))
    Functional(kind='share', at=0.5)
    """
    try:
        kind, at = ("mean", 0.0) if given == "mean" else (str(given[0]), float(given[1]))
        fine = kind in ("mean", "share") or (kind == "quantile" and 0.0 < at < 1.0)
    except (TypeError, ValueError, IndexError):
        fine = False
    if not fine or not np.isfinite(at):
        expected = "'mean', ('share', cut-off) or ('quantile', level in (0, 1))"
        raise refused("functional", expected, repr(given), "for example ('share', 0.5)")
    return Functional(kind, at)
