"""The influence-function limit: a normal approximation on the root scale, corrected for skewness.

Used instead of the bands of the paper's eqs. (6) to (9), which hold but are far off the distance.
Each row's influence on the squared distance comes from the sorted projections in closed form, so
the limit costs one batched sort and runs wherever the arrays live.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtri

from elsewise._arrays import Array, namespace
from elsewise.confidence._comparison import Comparison, Pairing
from elsewise.confidence._limit import ASYMPTOTIC, ContinuousLimit
from elsewise.transport import squares_and_influence


@dataclass(frozen=True, slots=True, kw_only=True)
class CLTLimit(ContinuousLimit):
    """A normal limit with a first-order correction for positive skewness."""

    method: str = "clt"
    assumption: str = ASYMPTOTIC
    standard_error: float
    skewness: float

    def at(self, level: float) -> float:
        if self.standard_error == 0.0:
            return self.estimate
        if level == 1.0:
            return float("inf")
        # Below the median the correction would make the limit fall with the level.
        z = max(float(ndtri(level)), 0.0)
        # Edgeworth's first term for a mean divided by its own standard error, inverted.
        return self.estimate + self.standard_error * (z + self.skewness * (2 * z * z + 1) / 6)


def clt_limit(comparison: Comparison) -> CLTLimit:
    """Limit the distance by the normal approximation of its root, corrected for skewness.

    Parameters
    ----------
    comparison
        Arrays of any library; one sort of each side.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(1, 100))
    >>> limit = clt_limit(Comparison.paired(x + np.abs(x), x, 0.1))
    >>> limit.estimate < limit.upper(0.9) < limit.upper(0.99)
    True
    """
    return normal_limit(*influence(comparison))


def normal_limit(estimate: float, parts: tuple[Array, ...]) -> CLTLimit:
    """Return the limit from an estimate and each sample's centred influence on its square."""
    # Each row moves the squared distance by its influence divided by the number of rows.
    moves = [part / part.shape[0] for part in parts]
    sums = [(float(namespace(move).sum(move * move)), move.shape[0]) for move in moves]
    # size / (size - 1): influences are centred at their own mean, which costs a degree of freedom.
    deviation = math.sqrt(sum(squares * size / (size - 1) for squares, size in sums))
    # At 0 the root has no derivative and the square no first-order term, so there is no normal
    # limit. Where nothing moves, `certificate_limit` takes another one.
    if estimate == 0.0 or deviation == 0.0:
        return CLTLimit(estimate=estimate, standard_error=0.0, skewness=0.0)
    # Third moments of independent sums add up; Edgeworth's first term needs no more than that.
    third = sum(float(namespace(move).sum((move / deviation) ** 3)) for move in moves)
    return CLTLimit(
        estimate=estimate,
        # Delta method: the root's derivative is 1 / (2 distance).
        standard_error=deviation / (2.0 * estimate),
        # Negative skewness would lower the limit; it is left out to stay on the safe side.
        skewness=max(0.0, third),
    )


def influence(comparison: Comparison) -> tuple[float, tuple[Array, ...]]:
    """Return the trimmed distance and each independent sample's influence on its square.

    Returns
    -------
    tuple of float and tuple of Array
        One array (n,) for paired rows or a known target, two, (n,) and (m,), for independent
        samples. Each is centred: the derivative with respect to the weight of a row, times n.
    """
    trim, other = comparison.trim, comparison.fixed
    # Untrimmed cells, because a jump at the trim itself also needs the cell outside it.
    fixed = comparison.side(0.0).partners if other is None else other
    squares, f, g = squares_and_influence(comparison.moving, fixed, comparison.side(trim), trim)
    estimate = math.sqrt(float(namespace(squares).mean(squares)))
    if g is None:
        return estimate, (f,)
    return estimate, ((f + g,) if comparison.pairing is Pairing.PAIRED else (f, g))
