"""The box each cell may move in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from elsewise._arrays import Array, asarray_like, namespace, to_numpy
from elsewise.errors import InvalidInput
from elsewise.features._feature import Feature, Kind

__all__ = ["Legal"]


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
    """bool (n,): rows that are not legal as they are, and so stay as they are."""
    restricted: tuple[tuple[int, tuple[float, ...]], ...] = ()
    """Columns of categories with the codes they may be moved to, where not all."""

    def legalize(self, codes: Array) -> Array:
        """Return the legal codes (n, p) nearest to ``codes``, cell by cell.

        A missing code where the row has a value is no place to move to: the factual code is kept.

        Examples
        --------
        >>> legal = Legal(factual=np.array([[1.0, np.nan]]), lower=np.array([[0.0, np.nan]]),
        ...               upper=np.array([[3.0, np.nan]]), integer=np.array([True, False]),
        ...               broken=np.array([False]))
        >>> legal.legalize(np.array([[7.0, 7.0]]))
        array([[ 3., nan]])
        """
        xp = namespace(codes)
        inside = xp.minimum(xp.maximum(codes, self.lower), self.upper)
        whole = xp.where(self.integer, xp.round(inside), inside)
        # Comparisons with a missing bound are False: such a cell takes its factual, missing code.
        free = (self.lower < self.upper) & ~xp.isnan(codes)
        for column, levels in self.restricted:
            here = xp.arange(codes.shape[-1]) == column
            cell = codes[..., column, None]
            known = xp.zeros_like(free[..., :1])
            for level in levels:
                known = known | (cell == level)
            free = free & (known | ~asarray_like(here, codes))
        return xp.where(free, whole, self.factual)

    def take(self, rows: Array) -> Legal:
        """Return the boxes of ``rows``, int (m,), which may repeat.

        Examples
        --------
        >>> legal = Legal(factual=np.ones((2, 1)), lower=np.zeros((2, 1)), upper=np.ones((2, 1)),
        ...               integer=np.array([False]), broken=np.array([False, True]))
        >>> legal.take(np.array([1, 1, 0])).broken
        array([ True,  True, False])
        """
        xp = namespace(self.lower)
        return replace(
            self,
            factual=xp.take(self.factual, rows, axis=0),
            lower=xp.take(self.lower, rows, axis=0),
            upper=xp.take(self.upper, rows, axis=0),
            broken=xp.take(self.broken, rows, axis=0),
        )

    def like(self, reference: Array) -> Legal:
        """Return the boxes with their arrays in the library, device and dtype of ``reference``.

        Examples
        --------
        >>> legal = Legal(factual=np.ones((2, 1)), lower=np.zeros((2, 1)), upper=np.ones((2, 1)),
        ...               integer=np.array([False]), broken=np.array([False, True]))
        >>> legal.like(np.ones(1, dtype=np.float32)).lower.dtype
        dtype('float32')
        """
        return Legal(
            factual=asarray_like(self.factual, reference),
            lower=asarray_like(self.lower, reference),
            upper=asarray_like(self.upper, reference),
            integer=asarray_like(self.integer, reference),
            broken=asarray_like(self.broken, reference),
            restricted=self.restricted,
        )


def build_legal(features: Sequence[Feature], codes: Array, broken: Array | None = None) -> Legal:
    """Return the boxes of the rows ``codes`` (n, p); rows marked ``broken`` (n,) stay as they are.

    Examples
    --------
    >>> feature = Feature(name="x", kind=Kind.NUMBER, free=True, observed=(0.0, 1.0), direction=1)
    >>> build_legal([feature], np.array([[0.5], [2.0]])).lower
    array([[0.5],
           [2. ]])
    """
    factual = to_numpy(codes).astype(np.float64)
    if factual.ndim != 2 or factual.shape[1] != len(features):
        raise InvalidInput(
            "codes",
            expected=f"an array (n, {len(features)})",
            received=f"shape {factual.shape}",
            fix="encode the frame with Schema.encoder(frame).encode(frame)",
        )
    lowest, highest = np.asarray([f.declared or (-np.inf, np.inf) for f in features]).T
    with np.errstate(invalid="ignore"):
        outside = ((factual < lowest) | (factual > highest)).any(axis=1)
    stays = outside if broken is None else outside | to_numpy(broken)

    # A declared end holds as it is, an observed one makes room for the row's own value.
    low, high = np.asarray([f.observed for f in features]).T
    lower = np.where(np.isfinite(lowest), lowest, np.fmin(low, factual))
    upper = np.where(np.isfinite(highest), highest, np.fmax(high, factual))
    integer = np.asarray([f.kind is not Kind.NUMBER for f in features])
    lower = np.where(integer, np.ceil(lower), lower)
    upper = np.where(integer, np.floor(upper), upper)
    direction = np.asarray([f.direction for f in features])
    lower = np.where(direction > 0, np.fmax(lower, factual), lower)
    upper = np.where(direction < 0, np.fmin(upper, factual), upper)

    frozen = ~np.asarray([f.free for f in features]) | np.isnan(factual) | stays[:, None]
    legal = Legal(
        factual=factual,
        lower=np.where(frozen, factual, lower),
        upper=np.where(frozen, factual, upper),
        integer=integer,
        broken=stays,
        restricted=tuple(
            (j, tuple(float(f.levels.index(level)) for level in f.allowed))
            for j, f in enumerate(features)
            if f.free and f.allowed is not None
        ),
    )
    return legal if isinstance(codes, np.ndarray) else legal.like(codes)
