"""From codes to the space in which distances are measured, and steps back from it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, replace
from math import sqrt
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from elsewise._arrays import (
    Array,
    asarray_like,
    multiply_add,
    namespace,
    take,
    to_numpy,
    with_arrays,
)
from elsewise.features._feature import UNREAD, Feature, Kind

if TYPE_CHECKING:
    from elsewise.features.legal import Legal


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Embedding:
    """The map phi from codes (n, p) to (n, d), written on the array API.

    Dimensions come in this order: numbers that may move, other numbers (``joint`` schemas only),
    ordered categories, then one block of indicators per category and per one-hot group. A number
    is ``(code - center) / scale * weight``, an ordered category ``code / (levels - 1) * weight``,
    an indicator 0 or ``weight / sqrt(2)``, so that a swap costs ``weight``. Missing cells are 0.

    Every entry is computed from its own cell alone, so a row's embedding does not depend, not even
    in the last bit, on the rows it is computed with.

    Examples
    --------
    >>> import pandas as pd
    >>> from elsewise.features import Schema
    >>> schema = Schema.infer(pd.DataFrame({"age": [20.5, 30.5], "sex": ["f", "m"]}))
    >>> schema.embedding().labels
    ('age', 'sex', 'sex')
    """

    labels: tuple[Hashable, ...]
    """Feature name of each dimension."""
    movable: Array
    """bool (d,): dimensions that :meth:`push` can move; they come first."""
    source: Array
    """int (d,): column of the codes each dimension reads."""
    factor: Array
    """(d,): embedded length of one unit of the code; of an indicator, its height."""
    center: Array
    """(m,): code that embeds as 0, of the m dimensions before the indicators."""
    level: Array
    """(d - m,): code each indicator looks for."""
    missing: Array
    """(p,): the code that stands in for a missing one, chosen to embed as 0."""
    place: Array
    """int (p,): dimension that moves each column, ``d`` where none does."""
    reach: Array
    """(p,): codes per unit of that dimension, 0 where none does."""
    plain: bool = False
    """Whether every column is a number that may move, so that dimension j is column j."""

    @property
    def size(self) -> int:
        """Number of dimensions d."""
        return len(self.labels)

    def embed(self, codes: Array, complete: bool = False) -> Array:
        """Return phi(codes), (n, d), for codes (n, p); ``complete`` says that none is missing.

        Examples
        --------
        >>> import pandas as pd
        >>> from elsewise.features import Schema
        >>> schema = Schema.infer(pd.DataFrame({"age": [20.5, 30.5], "sex": ["f", "m"]}))
        >>> schema.embedding().embed(np.array([[25.5, 1.0]])).round(3)
        array([[0.   , 0.   , 0.707]])
        """
        xp = namespace(codes)
        if self.plain:
            numbers = codes - self.center
            numbers *= self.factor
            if not complete:
                numbers[xp.isnan(numbers)] = 0.0
            return numbers
        if not complete:
            codes = xp.where(xp.isnan(codes), self.missing, codes)
        cells = take(codes, self.source, axis=1)
        m = self.center.shape[0]
        linear = (cells[:, :m] - self.center) * self.factor[:m]
        height = self.factor[m:]
        hot = xp.where(cells[:, m:] == self.level, height, xp.zeros_like(height))
        return xp.concat([linear, hot], axis=1)

    def pull(self, gradient: Array) -> Array:
        """Return the gradient (n, K, d) by phi of a gradient (n, K, p) by codes.

        It is zero on the dimensions that cannot move.

        Examples
        --------
        >>> import pandas as pd
        >>> from elsewise.features import Schema
        >>> schema = Schema.infer(pd.DataFrame({"age": [0.5, 2.5], "sex": ["f", "m"]}))
        >>> schema.embedding().pull(np.ones((1, 1, 2))).round(3)
        array([[[1.414, 0.   , 0.   ]]])
        """
        xp = namespace(gradient)
        if self.plain:
            return gradient / self.factor
        slopes = take(gradient, self.source, axis=2) / self.factor
        return xp.where(self.movable, slopes, xp.zeros_like(slopes))

    def push(self, codes: Array, step: Array) -> Array:
        """Return codes (n, p) moved by ``step`` (n, d) of phi; only numbers that may move do.

        Examples
        --------
        >>> import pandas as pd
        >>> from elsewise.features import Schema
        >>> schema = Schema.infer(pd.DataFrame({"age": [0.5, 2.5], "sex": ["f", "m"]}))
        >>> schema.embedding().push(np.array([[0.5, 1.0]]), np.array([[1.0, 5.0, 5.0]])).round(3)
        array([[1.914, 1.   ]])
        """
        if self.plain:
            return multiply_add(codes, step, self.reach)
        xp = namespace(codes, step)
        # One more dimension, always 0, is the place of the columns that do not move.
        still = asarray_like(np.zeros((step.shape[0], 1)), step)
        steps = take(xp.concat([step, still], axis=1), self.place, axis=1)
        return multiply_add(codes, steps, self.reach)

    def stepped(
        self, codes: Array, steps: Array, legal: Legal, complete: bool = False
    ) -> tuple[Array, Array]:
        """Return codes (n, p) moved by K steps (K, n, d) and made legal, (K, n, p), and their phi.

        Examples
        --------
        >>> import pandas as pd
        >>> from elsewise.features import Schema
        >>> rows = pd.DataFrame({"age": [0.5, 2.5]})
        >>> schema, codes = Schema.infer(rows), rows.to_numpy()
        >>> moved, _ = schema.embedding().stepped(codes, np.ones((1, 2, 1)), schema.legal(codes))
        >>> moved.tolist()
        [[[1.9], [2.5]]]
        """
        xp, (count, n, d), p = namespace(codes), steps.shape, codes.shape[1]
        repeated = xp.reshape(xp.broadcast_to(codes, (count, n, p)), (-1, p))
        pushed = self.push(repeated, xp.reshape(steps, (-1, d)))
        moved = legal.nearest(xp.reshape(pushed, (count, n, p)), self.reach)
        embedded = self.embed(xp.reshape(moved, (-1, p)), complete)
        return moved, xp.reshape(embedded, (count, n, -1))

    def embed_columns(self, cells: Array, index: np.ndarray) -> tuple[Array, Array, np.ndarray]:
        """Embed cells (n, M) of the columns ``index``, int (M,), which may repeat.

        Returns
        -------
        tuple of Array (n, D), Array of int (D,) and ndarray of int (D,)
            The embedded cells, and for each of its D dimensions the cell that it comes from and the
            dimension of the whole embedding that it repeats.

        Examples
        --------
        >>> import pandas as pd
        >>> from elsewise.features import Schema
        >>> schema = Schema.infer(pd.DataFrame({"age": [0.5, 2.5], "sex": ["f", "m"]}))
        >>> schema.embedding().embed_columns(np.array([[0.5, 2.5]]), np.array([0, 0]))[0].round(3)
        array([[-0.707,  0.707]])
        """
        # By dimension first, so that indicators still come last.
        dimension, column = np.nonzero(to_numpy(self.source)[:, None] == index)
        linear = int(np.sum(dimension < self.center.shape[0]))
        place = np.full(index.size, dimension.size)
        moves = to_numpy(self.place)[index[column]] == dimension
        place[column[moves]] = np.flatnonzero(moves)

        def repeated(values: Array, places: np.ndarray) -> Array:
            return take(values, asarray_like(places, values))

        embedding = replace(
            self,
            labels=tuple(self.labels[k] for k in dimension.tolist()),
            movable=repeated(self.movable, dimension),
            source=asarray_like(column, self.source),
            factor=repeated(self.factor, dimension),
            center=repeated(self.center, dimension[:linear]),
            level=repeated(self.level, dimension[linear:] - self.center.shape[0]),
            missing=repeated(self.missing, index),
            place=asarray_like(place, self.place),
            reach=repeated(self.reach, index),
            plain=False,
        )
        return embedding.embed(cells), embedding.source, dimension

    def like(self, reference: Array) -> Embedding:
        """Return the embedding with its arrays in the library, device and dtype of ``reference``.

        Examples
        --------
        >>> import pandas as pd
        >>> from elsewise.features import Schema
        >>> schema = Schema.infer(pd.DataFrame({"age": [0.5, 2.5]}))
        >>> schema.embedding().like(np.ones(1, dtype=np.float32)).center.dtype
        dtype('float32')
        """
        arrays = (field.name for field in fields(self) if field.name not in ("labels", "plain"))
        return with_arrays(self, lambda array: asarray_like(array, reference), *arrays)


class _Dimension(NamedTuple):
    """One dimension of an embedding."""

    label: Hashable
    source: int
    factor: float
    center: float
    level: float | None
    movable: bool


def build_embedding(features: Sequence[Feature], joint: bool) -> Embedding:
    """Return the embedding of the free columns, or of all numbers and categories if ``joint``.

    Examples
    --------
    >>> feature = Feature(name="x", kind=Kind.NUMBER, free=True, observed=(0.0, 1.0), scale=2.0)
    >>> build_embedding([feature], joint=False).factor
    array([0.5])
    """
    dimensions = _dimensions(features, joint)
    missing = np.zeros(len(features))
    place = np.full(len(features), len(dimensions))
    reach = np.zeros(len(features))
    for k, dimension in enumerate(dimensions):
        # An indicator looks for a level 0, 1, ...: -1 is none of them.
        missing[dimension.source] = dimension.center if dimension.level is None else -1.0
        if dimension.movable:
            place[dimension.source], reach[dimension.source] = k, 1.0 / dimension.factor
    return Embedding(
        labels=tuple(dimension.label for dimension in dimensions),
        movable=np.asarray([dimension.movable for dimension in dimensions], dtype=bool),
        source=np.asarray([dimension.source for dimension in dimensions], dtype=np.int64),
        factor=np.asarray([dimension.factor for dimension in dimensions], dtype=np.float64),
        center=np.asarray([d.center for d in dimensions if d.level is None], dtype=np.float64),
        level=np.asarray([d.level for d in dimensions if d.level is not None], dtype=np.float64),
        missing=missing,
        place=place,
        reach=reach,
        plain=all(d.movable and d.source == k for k, d in enumerate(dimensions))
        and len(dimensions) == len(features),
    )


def _dimensions(features: Sequence[Feature], joint: bool) -> list[_Dimension]:
    """Numbers that move, other numbers, ordered categories, then the blocks of indicators."""
    ranked: list[tuple[tuple[int, int], _Dimension]] = []
    groups: dict[str, int] = {}
    for j, f in enumerate(features):
        if f.kind is Kind.FIXED or not (f.free or joint or f.notice == UNREAD):
            continue
        moves = f.numeric and f.free
        levels: Sequence[int | None] = (None,)
        if f.numeric:
            rank, factor = (0 if moves else 1, 0), f.weight / f.scale
        elif f.group is None and f.ordered:
            rank, factor = (2, 0), f.weight / max(len(f.levels) - 1, 1)
        else:
            # A block per category, a block per group in the place of its first column.
            block = j if f.group is None else groups.setdefault(f.group, j)
            rank, factor = (3, block), f.weight / sqrt(2.0)
            levels = range(len(f.levels)) if f.group is None else (1,)
        for level in levels:
            ranked.append((rank, _Dimension(f.name, j, factor, f.center, level, moves)))
    return [dimension for _, dimension in sorted(ranked, key=itemgetter(0))]


def largest_squared_move(features: Sequence[Feature], codes: np.ndarray) -> float:
    """Return the largest squared length, in the embedding, of a legal move of any row.

    Declared ends of a range hold for every row that moves. Observed ones are taken to hold for rows
    not seen yet as well, and are widened to the rows ``codes`` (n, p).

    Examples
    --------
    >>> age = Feature(name="age", kind=Kind.NUMBER, free=True, observed=(20.0, 60.0), scale=10.0)
    >>> job = Feature(name="job", kind=Kind.CATEGORY, free=True, observed=(0.0, 2.0), weight=2.0,
    ...               levels=("a", "b", "c"))
    >>> largest_squared_move([age, job], np.array([[30.0, 0.0], [70.0, 1.0]]))
    29.0
    """
    total = 0.0
    indicators: dict[str, list[float]] = {}
    for feature, column in zip(features, np.asarray(codes).T, strict=True):
        if not feature.free:
            continue
        if feature.group is not None:
            indicators.setdefault(feature.group, []).append(feature.weight**2 / 2.0)
        elif feature.kind is Kind.CATEGORY:
            # From one level to another, or over the whole length of an ordered one.
            total += feature.weight**2
        else:
            total += (_width(feature, column) * feature.weight / feature.scale) ** 2
    # A row leaves one column of its group for another.
    return total + sum(sum(sorted(heights)[-2:]) for heights in indicators.values())


def _width(feature: Feature, column: np.ndarray) -> float:
    """Return the width of the range a number can move in."""
    declared = feature.declared or (-np.inf, np.inf)
    present = column[~np.isnan(column)]
    low, high = np.min(present, initial=np.inf), np.max(present, initial=-np.inf)
    lower = declared[0] if np.isfinite(declared[0]) else min(feature.observed[0], float(low))
    upper = declared[1] if np.isfinite(declared[1]) else max(feature.observed[1], float(high))
    return max(0.0, min(upper - lower, feature.at_most_by or np.inf))
