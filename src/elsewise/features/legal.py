"""The box each cell may move in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from elsewise._arrays import Array, asarray_like, clamped, device_of, namespace, take, with_arrays
from elsewise.errors import InvalidInput
from elsewise.features._feature import Feature, Kind

if TYPE_CHECKING:
    from elsewise.features.schema import Schema

# A number within this share of a standard deviation of its factual value is that value.
NEAR = 1e-8
OF_ROWS = ("factual", "lower", "upper", "broken")
"""Fields of boxes that are about rows, those about cells first."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Legal:
    """Per-cell boxes around factual rows, written on the array API.

    A cell whose box is a point (frozen column, row that stays as it is) is the factual cell, bit
    for bit; a missing cell has a missing box and stays missing.

    Examples
    --------
    >>> legal = Legal(factual=np.array([[1.0]]), lower=np.array([[0.0]]), upper=np.array([[3.0]]),
    ...               integer=np.array([True]), broken=np.array([False]))
    >>> legal.legalize(np.array([[2.2]]))
    array([[2.]])
    """

    factual: Array
    """(n, p): the rows' own codes."""
    lower: Array
    """(n, p): smallest legal code of each cell."""
    upper: Array
    """(n, p): largest legal code of each cell."""
    integer: Array
    """bool (p,): columns of whole codes."""
    broken: Array
    """bool (n,): rows that stay as they are: not legal themselves, or said to stay."""
    restricted: tuple[tuple[int, tuple[float, ...]], ...] = ()
    """Columns of categories with the codes they may be moved to, where not all."""
    rounds: bool = True
    """Whether there are columns of whole codes at all."""
    grids: tuple[tuple[int, float, float], ...] = ()
    """Columns of numbers with a step, which is the first number over the second."""

    def legalize(self, codes: Array, columns: np.ndarray | None = None) -> Array:
        """Return the legal codes (n, p) nearest to ``codes``, cell by cell.

        A missing code where the row has a value is no place to move to: the factual code is kept.
        With ``columns``, int (M,), codes are cells (n, M) of those columns, which may repeat.

        Examples
        --------
        >>> legal = Legal(factual=np.array([[1.0, np.nan]]), lower=np.array([[0.0, np.nan]]),
        ...               upper=np.array([[3.0, np.nan]]), integer=np.array([True, False]),
        ...               broken=np.array([False]))
        >>> legal.legalize(np.array([[7.0, 7.0]]))
        array([[ 3., nan]])
        """
        if columns is not None:
            return self.columns(columns).legalize(codes)
        xp = namespace(codes)
        inside = self.inside(codes)
        # Comparisons with a missing bound are False: such a cell takes its factual, missing code.
        free = self.free & ~xp.isnan(codes)
        if self.restricted:
            free = free & self._allowed(codes)
        return xp.where(free, inside, self.factual)

    def nearest(self, codes: Array, reach: Array, columns: np.ndarray | None = None) -> Array:
        """Return the legal codes (..., n, p) nearest to ``codes``, or cells (n, M) of ``columns``.

        Rows that stay do, as their boxes are points. In double precision a number that is back
        where it was, but for rounding, is that number, bit for bit.

        Parameters
        ----------
        reach
            Array (p,): codes per unit of the embedding.

        Examples
        --------
        >>> legal = Legal(factual=np.array([[1.0]]), lower=np.array([[0.0]]),
        ...               upper=np.array([[3.0]]), integer=np.array([False]),
        ...               broken=np.array([False]))
        >>> legal.nearest(np.array([[1.0 + 1e-12], [9.0]]), np.array([2.0])).T
        array([[1., 3.]])
        """
        xp, boxes = namespace(codes), self
        if columns is not None:
            boxes, reach = self.columns(columns), take(reach, asarray_like(columns, reach))
        factual, plain = boxes.factual, columns is None and not self.restricted
        inside = boxes.inside(codes) if plain else boxes.legalize(codes)
        if plain and xp.finfo(codes.dtype).eps > NEAR:
            # Single precision has no digits for what is so near; what is not a number is no place.
            return xp.where(xp.isnan(inside), factual, inside)
        # A missing number is not away from anything: the factual cell is kept.
        return xp.where(xp.abs(inside - factual) > NEAR * reach, inside, factual)

    @property
    def free(self) -> Array:
        """Cells that can move at all, bool (n, p)."""
        return self.lower < self.upper

    def inside(self, codes: Array) -> Array:
        """Return the codes (n, p) nearest to ``codes`` that lie in the boxes, whole where need be.

        Examples
        --------
        >>> legal = Legal(factual=np.array([[1.0]]), lower=np.array([[0.0]]),
        ...               upper=np.array([[3.0]]), integer=np.array([True]),
        ...               broken=np.array([False]))
        >>> legal.inside(np.array([[7.2]]))
        array([[3.]])
        """
        inside = clamped(codes, self.lower, self.upper)
        xp = namespace(codes)
        if self.rounds:
            inside = xp.where(self.integer, xp.round(inside), inside)
        for column, over, times in self.grids:
            # What is nearest to the row's own step is the row's own cell, even between two steps.
            own, parts = self.factual[..., column], times / over
            step = xp.round(inside[..., column] * parts)
            moved = step != xp.round(own * parts)
            inside[..., column] = xp.where(moved, step * over / times, own)
        return inside

    def _allowed(self, codes: Array) -> Array:
        """Return, bool (n, p), the codes that a restricted category may be moved to."""
        xp = namespace(codes)
        restricted = dict(self.restricted)

        def allowed(column: int) -> Array:
            cell = codes[..., column]
            found = xp.full(cell.shape, column not in restricted, device=device_of(cell))
            for level in restricted.get(column, ()):
                found = found | (cell == level)
            return found

        return xp.stack([allowed(j) for j in range(codes.shape[-1])], axis=-1)

    def columns(self, index: np.ndarray) -> Legal:
        """Return the boxes of some columns, int (M,), which may repeat.

        Examples
        --------
        >>> legal = Legal(factual=np.zeros((1, 2)), lower=np.zeros((1, 2)),
        ...               upper=np.array([[1.0, 9.0]]), integer=np.array([False, True]),
        ...               broken=np.array([False]))
        >>> legal.columns(np.array([1, 1, 0])).legalize(np.array([[2.2, 11.0, 2.2]]))
        array([[2., 9., 1.]])
        """
        cells, places = asarray_like(index, self.lower), list(enumerate(index.tolist()))
        restricted, grids = dict(self.restricted), {grid[0]: grid[1:] for grid in self.grids}
        return replace(
            self,
            **{name: take(getattr(self, name), cells, axis=1) for name in OF_ROWS[:3]},
            integer=take(self.integer, cells),
            restricted=tuple((k, restricted[j]) for k, j in places if j in restricted),
            grids=tuple((k, *grids[j]) for k, j in places if j in grids),
        )

    def take(self, rows: Array) -> Legal:
        """Return the boxes of ``rows``, int (m,), which may repeat.

        Examples
        --------
        >>> legal = Legal(factual=np.ones((2, 1)), lower=np.zeros((2, 1)), upper=np.ones((2, 1)),
        ...               integer=np.array([False]), broken=np.array([False, True]))
        >>> legal.take(np.array([1, 1, 0])).broken
        array([ True,  True, False])
        """
        return with_arrays(self, lambda array: take(array, rows), *OF_ROWS)

    def block(self, rows: slice) -> Legal:
        """Return the boxes of a slice of the rows, without copying them.

        Examples
        --------
        >>> legal = Legal(factual=np.ones((2, 1)), lower=np.zeros((2, 1)), upper=np.ones((2, 1)),
        ...               integer=np.array([False]), broken=np.array([False, True]))
        >>> legal.block(slice(1, 2)).broken
        array([ True])
        """
        return with_arrays(self, lambda array: array[rows, ...], *OF_ROWS)

    def like(self, reference: Array) -> Legal:
        """Return the boxes with their arrays in the library, device and dtype of ``reference``.

        Examples
        --------
        >>> legal = Legal(factual=np.ones((2, 1)), lower=np.zeros((2, 1)), upper=np.ones((2, 1)),
        ...               integer=np.array([False]), broken=np.array([False, True]))
        >>> legal.like(np.ones(1, dtype=np.float32)).lower.dtype
        dtype('float32')
        """
        return with_arrays(self, lambda array: asarray_like(array, reference), *OF_ROWS, "integer")


def build_legal(features: Sequence[Feature], codes: Array, broken: Array | None = None) -> Legal:
    """Return the boxes of the rows ``codes`` (n, p); rows marked ``broken`` (n,) stay as they are.

    Examples
    --------
    >>> feature = Feature(name="x", kind=Kind.NUMBER, free=True, observed=(0.0, 1.0), direction=1)
    >>> build_legal([feature], np.array([[0.5], [2.0]])).lower
    array([[0.5],
           [2. ]])
    """
    factual = _checked(features, codes)
    xp = namespace(factual)
    stays = rows_outside(features, factual)
    if broken is not None:
        stays = stays | asarray_like(broken, factual)

    def row(values: object) -> Array:
        return asarray_like(np.asarray(values), factual)

    # A declared end holds as it is, an observed one makes room for the row's own value.
    lower = xp.minimum(row([f.observed[0] for f in features]), factual)
    upper = xp.maximum(row([f.observed[1] for f in features]), factual)
    declared = np.asarray([f.declared or (-np.inf, np.inf) for f in features]).T
    if np.isfinite(declared).any():
        lowest, highest = row(declared[0]), row(declared[1])
        lower = xp.where(xp.isfinite(lowest), lowest, lower)
        upper = xp.where(xp.isfinite(highest), highest, upper)
    most = [f.at_most_by or np.inf for f in features]
    if np.isfinite(most).any():
        # Rounding errors of the sum must not cost a step: 0.7 + 0.1 is less than 0.8.
        room = row(most) + 4.0 * xp.finfo(factual.dtype).eps * (xp.abs(factual) + row(most))
        lower, upper = xp.maximum(lower, factual - room), xp.minimum(upper, factual + room)
    whole = np.asarray([f.kind is not Kind.NUMBER for f in features], dtype=bool)
    integer = row(whole)
    if whole.any():
        lower = xp.where(integer, xp.ceil(lower), lower)
        upper = xp.where(integer, xp.floor(upper), upper)
    if any(f.direction for f in features):
        up, down = (row([f.direction == sign for f in features]) for sign in (1, -1))
        lower = xp.where(up, xp.maximum(lower, factual), lower)
        upper = xp.where(down, xp.minimum(upper, factual), upper)
    stepped = [(j, f) for j, f in enumerate(features) if f.free and f.resolution]
    grids = tuple((j, f.grid[0], f.grid[1]) for j, f in stepped)
    for j, over, times in grids:
        cells = factual[:, j]
        lower[:, j] = xp.minimum(cells, -_last_step(-lower[:, j], over, times))
        upper[:, j] = xp.maximum(cells, _last_step(upper[:, j], over, times))
    frozen = row([not f.free for f in features]) | xp.isnan(factual) | stays[:, None]
    return Legal(
        factual=factual,
        lower=xp.where(frozen, factual, lower),
        upper=xp.where(frozen, factual, upper),
        integer=integer,
        broken=stays,
        restricted=tuple(
            (j, tuple(float(f.levels.index(level)) for level in f.allowed))
            for j, f in enumerate(features)
            if f.free and f.allowed is not None
        ),
        rounds=bool(whole.any()),
        grids=grids,
    )


def _last_step(ends: Array, over: float, times: float) -> Array:
    """Return the largest steps that are at most ``ends`` (n,)."""
    xp = namespace(ends)
    step = xp.round(ends * (times / over))
    return xp.where(step * over / times > ends, step - 1.0, step) * over / times


def rows_outside(features: Sequence[Feature], codes: Array) -> Array:
    """Return, bool (n,), the rows of ``codes`` (n, p) that leave a declared range.

    Examples
    --------
    >>> feature = Feature(name="x", kind=Kind.NUMBER, free=True, observed=(0, 1), declared=(0, 1))
    >>> rows_outside([feature], np.array([[0.5], [2.0]]))
    array([False,  True])
    """
    factual = _checked(features, codes)
    xp = namespace(factual)
    outside = xp.zeros(factual.shape[0], dtype=xp.bool, device=device_of(factual))
    for j, feature in enumerate(features):
        if feature.declared is not None:
            low, high = feature.declared
            column = factual[:, j]
            # A missing cell is nowhere, so it is not outside either.
            outside = outside | (column < low) | (column > high)
    return outside


def outside_notices(schema: Schema, codes: np.ndarray) -> tuple[str, ...]:
    """Say, column by column, how many of the rows ``codes`` (n, p) lie outside what was seen.

    Examples
    --------
    >>> import pandas as pd
    >>> from elsewise.features import Schema
    >>> schema = Schema.infer(pd.DataFrame({"age": [20.5, 30.5]}))
    >>> outside_notices(schema, np.array([[25.0], [99.0]]))
    ('age: 1 of 2 rows outside the fitted range 20.5 to 30.5',)
    """
    notices = []
    for j, f in enumerate(schema.features):
        low, high = f.observed
        count = int(((codes[:, j] < low) | (codes[:, j] > high)).sum())
        if f.numeric and count:
            said = f"{count:,} of {len(codes):,} rows outside the fitted range {low:g} to {high:g}"
            notices.append(f"{f.name}: {said}")
    return tuple(notices)


def _checked(features: Sequence[Feature], codes: Array) -> Array:
    """Return codes (n, p) as floats, or refuse what are not codes of these features."""
    if len(codes.shape) != 2 or codes.shape[1] != len(features):
        expected, received = f"an array (n, {len(features)})", f"shape {tuple(codes.shape)}"
        fix = "encode the frame with Schema.encoder(frame).encode(frame)"
        raise InvalidInput("codes", expected=expected, received=received, fix=fix)
    xp = namespace(codes)
    return codes if xp.isdtype(codes.dtype, "real floating") else xp.astype(codes, xp.float64)
