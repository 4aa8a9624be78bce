"""The influence-function limit: a normal approximation on the root scale, corrected for skewness.

Each row's influence on the squared distance comes from the sorted projections in closed form, so
the limit costs one batched sort and runs wherever the arrays live.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from elsewise._arrays import Array, asarray_like, namespace, to_numpy, unsort
from elsewise.confidence._comparison import Comparison, Pairing
from elsewise.confidence._limit import ASYMPTOTIC, UpperLimit, attained_level, level_on_grid

__all__ = ["clt_limit", "influence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _CLTLimit:
    """A normal limit with a first-order correction for positive skewness."""

    method: ClassVar[str] = "clt"
    assumption: ClassVar[str] = ASYMPTOTIC
    estimate: float
    standard_error: float
    skewness: float

    def upper(self, level: float) -> float:
        return self._at(level_on_grid(level))

    def probability(self, bound: float) -> float:
        return attained_level(self._at, bound)

    def _at(self, level: float) -> float:
        if self.standard_error == 0.0:
            return self.estimate
        if level == 1.0:
            return float("inf")
        # Below the median the correction would make the limit fall with the level.
        z = max(float(ndtri(level)), 0.0)
        return self.estimate + self.standard_error * (z + self.skewness * (2 * z * z + 1) / 6)


def clt_limit(comparison: Comparison) -> UpperLimit:
    """Limit the distance by the normal approximation of its root, corrected for skewness.

    Parameters
    ----------
    comparison
        Arrays of any library; one sort of each side.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(1, 100))
    >>> limit = clt_limit(Comparison.paired(x + np.abs(x), x, 0.1))
    >>> limit.estimate < limit.upper(0.9) < limit.upper(0.99)
    True
    """
    estimate, parts = influence(comparison)
    # Each row moves the squared distance by its influence divided by the number of rows.
    moves = [part / part.size for part in parts]
    deviation = math.sqrt(sum(float(move @ move) * move.size / (move.size - 1) for move in moves))
    if estimate == 0.0 or deviation == 0.0:
        return _CLTLimit(estimate=estimate, standard_error=0.0, skewness=0.0)
    third = sum(float(np.sum((move / deviation) ** 3)) for move in moves)
    return _CLTLimit(
        estimate=estimate,
        standard_error=deviation / (2.0 * estimate),
        skewness=max(0.0, third),
    )


def influence(comparison: Comparison) -> tuple[float, tuple[np.ndarray, ...]]:
    """Return the trimmed distance and each independent sample's influence on its square.

    Returns
    -------
    tuple of float and tuple of ndarray
        One array (n,) for paired rows or a known target, two, (n,) and (m,), for independent
        samples. Each is centred: the derivative with respect to the weight of a row, times n.
    """
    moving, order = comparison.moving
    estimate = comparison.distance
    if comparison.fixed is None:
        # Untrimmed cells, because a jump at the trim itself also needs the cell outside it.
        partners = comparison.side(0.0).partners
        return estimate, (_rows(_potentials(moving, partners, comparison.trim), order),)
    fixed, fixed_order = comparison.fixed
    f = _rows(_potentials(moving, fixed, comparison.trim), order)
    g = _rows(_potentials(fixed, moving, comparison.trim), fixed_order)
    return estimate, ((f + g,) if comparison.pairing is Pairing.PAIRED else (f, g))


def _potentials(own: Array, other: Array, trim: float) -> Array:
    """Integrate the derivative of the squared distance along sorted values (N, n).

    Moving mass across the jump of ``own`` at a quantile level changes the squared distance by
    ``(own+ - own-) * (own+ + own- - other+ - other-)``, the signs meaning just above and below.
    """
    xp = namespace(own, other)
    n, m = own.shape[-1], other.shape[-1]
    jumps = np.arange(1, n)
    if n == m:
        below, above = other[:, :-1], other[:, 1:]
    else:
        below = xp.take(other, asarray_like(-(-jumps * m // n) - 1, own), axis=-1)
        above = xp.take(other, asarray_like(jumps * m // n, own), axis=-1)
    # The tolerance counts a jump at the trim itself, whatever the rounding of its level.
    inside = np.abs(jumps / n - 0.5) <= 0.5 - trim + 1e-12
    scale = asarray_like(inside / (1.0 - 2.0 * trim), own)
    steps = (own[:, 1:] - own[:, :-1]) * (own[:, 1:] + own[:, :-1] - below - above) * scale
    return xp.cumulative_sum(steps, axis=-1, include_initial=True)


def _rows(potentials: Array, order: Array) -> np.ndarray:
    """Put potentials (N, n) back to rows, average over directions, centre."""
    xp = namespace(potentials)
    rows = to_numpy(xp.mean(unsort(potentials, order), axis=0))
    return np.asarray(rows - rows.mean())
