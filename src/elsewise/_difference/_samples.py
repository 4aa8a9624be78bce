"""Two frames and a model, checked and put into codes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from math import exp, pi, sqrt
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri

from elsewise._arrays import to_numpy
from elsewise.analysis._columns import Column, columns_between
from elsewise.errors import InvalidInput
from elsewise.features import Kind, Schema, Source, to_pandas
from elsewise.models import Outputs, bind

KINDS = ("mean", "share", "quantile")
LEAST_BEYOND = 5
"""A quantile with fewer rows beyond it is told by single rows."""


class Functional(NamedTuple):
    """What of the outputs changed: their mean, a share past a cut-off, or a quantile."""

    kind: str
    """"mean", "share" or "quantile"."""
    at: float = 0.0
    """The cut-off, or the level of the quantile."""

    def values(self, scores: np.ndarray) -> np.ndarray:
        """Return what the mean or the share is the mean of."""
        return (scores >= self.at).astype(np.float64) if self.kind == "share" else scores

    def __call__(self, scores: np.ndarray, mass: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value for weighted outputs (N,), and each row's influence on it (N,).

        The influence of a row on a quantile Q is (level - 1[output <= Q]) / density(Q), with the
        density from two quantiles near Q (Bofinger's bandwidth, doubled until they differ).

        Examples
        --------
        >>> Functional("share", 2.0)(np.array([1.0, 2.0, 3.0, 4.0]), np.full(4, 0.25))
        (0.75, array([-0.75,  0.25,  0.25,  0.25]))
        """
        if self.kind != "quantile":
            values = self.values(scores)
            value = float(mass @ values)
            return value, values - value
        order = np.argsort(scores, kind="stable")
        square = float(ndtri(self.at)) ** 2
        bell = exp(-square / 2.0) / sqrt(2.0 * pi)
        width = (4.5 * bell**4 / (2.0 * square + 1.0) ** 2 / scores.size) ** 0.2
        low = high = 0.0
        # Among ties and at the ends, two quantiles so near may be the same.
        while low == high and width < 2.0:
            levels = np.array([self.at, max(self.at - width, 0.0), min(self.at + width, 1.0)])
            # The slack is for levels that are a whole number of rows, up to the rounding of the
            # sum.
            places = np.searchsorted(np.cumsum(mass[order]), levels - 1e-12)
            value, low, high = scores[order[np.minimum(places, scores.size - 1)]]
            width *= 2.0
        above = scores > value
        return float(value), (above - mass @ above) * (high - low) / (levels[2] - levels[1])


def checked_functional(given: Any) -> Functional:
    """Return what of the outputs is asked about.

    Examples
    --------
    >>> checked_functional(("share", 0.5))
    Functional(kind='share', at=0.5)
    """
    try:
        kind, at = ("mean", 0.0) if given == "mean" else (str(given[0]), float(given[1]))
        fine = kind in KINDS and np.isfinite(at) and (kind != "quantile" or 0.0 < at < 1.0)
    except (TypeError, ValueError, IndexError):
        fine = False
    if not fine:
        expected = "'mean', ('share', cut-off) or ('quantile', level in (0, 1))"
        raise refused("functional", expected, repr(given), "for example ('share', 0.5)")
    return Functional(kind, at)


class Samples(NamedTuple):
    """Both samples as the computation sees them; pooled arrays have the rows before first."""

    sizes: tuple[int, int]
    codes: np.ndarray
    """ndarray (n + m, p)."""
    embedded: np.ndarray
    """ndarray (n + m, d): where distances are measured, all columns and missing cells seen."""
    shown: np.ndarray
    """int (d,): the attribute of each dimension."""
    scores: np.ndarray
    """ndarray (n + m,)."""
    columns: tuple[Column, ...]
    """The J attributes, with the pooled codes as ``before``."""
    owner: np.ndarray
    """int (p,): the attribute of each column of the codes."""
    clusters: np.ndarray
    """int (n + m,): rows of one number belong together."""
    outputs: Outputs
    functional: Functional
    source: Source | None = None
    """The kind of frame the samples came in."""

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
    frames: tuple[Any, Any],
    functional: Any,
    output: Hashable | None,
    schema: Schema | None,
    clusters: Any,
) -> Samples:
    """Check what is given and bind the model to the codes of both frames' columns."""
    wanted = checked_functional(functional)
    names = None if schema is None else schema.names
    before, source = to_pandas(frames[0], "before", names)
    after, _ = to_pandas(frames[1], "after", names)
    _check_frames(before, after)
    sides = [before, after[before.columns.tolist()]]
    numbers = np.arange(sum(map(len, sides)))
    if clusters is not None:
        numbers, sides = _numbered(clusters, sides)
    pooled = pd.concat(sides, ignore_index=True)
    schema = Schema.infer(pooled) if schema is None else schema
    if set(pooled.columns) == set(schema.names):
        schema = replace(schema, features=tuple(schema[name] for name in pooled.columns))
    # Distances see every column: what may move is no question here.
    encoder = replace(replace(schema, joint=True, rules=()).encoder(pooled), source=source)
    codes, embedding = encoder.encode(pooled), encoder.schema.embedding()
    # The embedding puts a missing cell at the mean; one dimension more tells it from a known one.
    missing = np.isnan(codes)
    lacking = np.flatnonzero(missing.any(axis=0))
    columns = columns_between(schema, embedding.source, codes, codes, fixed=True)
    columns = tuple(_valued(c, pooled) if c.kind == Kind.FIXED else c for c in columns)
    owner = np.array([[j in c.places for c in columns].index(True) for j in range(codes.shape[1])])
    outputs = bind(model, encoder, output=output, probe=codes)
    if outputs.columns != 1:
        received = f"a model with {outputs.columns}"
        raise refused("output", "one output", received, "name a class or a column: output=...")
    scores = scores_of(outputs, codes)
    fewest = min(map(len, sides)) * min(wanted.at, 1.0 - wanted.at)
    if wanted.kind == "quantile" and fewest < LEAST_BEYOND:
        expected = f"a quantile with at least {LEAST_BEYOND} rows beyond it on both sides"
        raise refused("functional", expected, f"{wanted.at}, {fewest:.1f} rows", "take more rows")
    low, high = scores.min(), scores.max()
    if wanted.kind == "share" and not low < wanted.at <= high:
        expected = f"a cut-off between the outputs, which are {low:g} to {high:g}"
        raise refused("functional", expected, wanted.at, "choose one that some reach, not all")
    return Samples(
        sizes=(len(sides[0]), len(sides[1])),
        codes=codes,
        embedded=np.hstack([embedding.embed(codes), missing[:, lacking]]),
        shown=owner[np.append(embedding.source, lacking)],
        scores=scores,
        columns=columns,
        owner=owner,
        clusters=numbers,
        outputs=outputs,
        functional=wanted,
        source=source,
    )


def _valued(column: Column, pooled: pd.DataFrame) -> Column:
    """Give dates and texts, whose codes only tell rows apart, codes of their values."""
    dated = pooled[column.name].dtype.kind == "M"
    texts = pooled[column.name].map(str, na_action="ignore")  # of whatever is in the cells
    codes, levels = pd.factorize(pooled[column.name] if dated else texts, sort=dated)
    known = np.where(codes < 0, np.nan, codes)
    return replace(column, before=known, ordered=dated, levels=tuple(map(str, levels)))


def scores_of(outputs: Outputs, codes: np.ndarray) -> np.ndarray:
    """Return the outputs (n,) of codes (n, p)."""
    return to_numpy(outputs.values(outputs.place(codes)))[:, 0] + 0.0


def refused(argument: str, expected: str, received: object, fix: str) -> InvalidInput:
    """Build the error for an argument that cannot be used."""
    return InvalidInput(argument, expected=expected, received=received, fix=fix)


def _check_frames(before: pd.DataFrame, after: pd.DataFrame) -> None:
    for name, frame in (("before", before), ("after", after)):
        if not isinstance(frame, pd.DataFrame) or len(frame) < 2:
            size = f"{len(frame)} rows" if isinstance(frame, pd.DataFrame) else type(frame).__name__
            raise refused(name, "a DataFrame of at least 2 rows", size, "pass this side's rows")
    odd = before.columns.symmetric_difference(after.columns, sort=False).tolist()
    if odd or not (before.columns.is_unique and after.columns.is_unique):
        received = f"{odd[0]!r} in one of them only" if odd else "a repeated column"
        raise refused("after", "the columns of before, each once", received, "drop or rename it")
    for name in before.columns:
        one, other = before[name].dtype, after[name].dtype
        if one != other and not (one.kind in "iuf" and other.kind in "iuf"):
            fix = f"convert one of them: after[{name!r}].astype(before[{name!r}].dtype)"
            raise refused(f"after[{name!r}]", f"dtype {one}, as in before", f"dtype {other}", fix)


def _numbered(clusters: Any, frames: list[pd.DataFrame]) -> tuple[np.ndarray, list[pd.DataFrame]]:
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
