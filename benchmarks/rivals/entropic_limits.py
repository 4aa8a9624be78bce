"""Bounds of the entropic output distance, the root of OT_eps: by the CLT and by the bootstrap.

Both are about one dimension. Whether the sliced entropic cost has any such limit, even an
asymptotic one, is an open question that the paper states; so none is offered for several
directions. Entropic costs are not tied to quantiles either: nothing is trimmed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from benchmarks.rivals.entropic import SWEEPS, TOLERANCE, checked_epsilon, entropic_plans

from elsewise._arrays import to_numpy
from elsewise.confidence._bootstrap import BootstrapLimit
from elsewise.confidence._clt import CLTLimit, normal_limit
from elsewise.confidence._comparison import Comparison, Pairing
from elsewise.confidence._limit import UpperLimit
from elsewise.errors import InvalidInput

__all__ = ["entropic_bootstrap_limit", "entropic_clt_limit", "entropic_distance"]

ENTROPIC = (
    "Rows are independent draws with light tails, numerous enough for the entropic cost to be "
    "nearly normal around that of the population; it is about the entropic cost at this epsilon, "
    "which is larger than the distance, and a known target stands for its cells' means."
)
"""What both limits assume; the theorems are cited at the functions."""
PRECISE = 1e-6
"""Margins of the sample's own plan are met to this share."""
BATCH = 1 << 22
"""Entries of resampled scalings handled at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _EntropicCLTLimit(CLTLimit):
    method: str = "entropic clt"
    assumption: str = ENTROPIC


@dataclass(frozen=True, slots=True, kw_only=True)
class _EntropicBootstrapLimit(BootstrapLimit):
    method: str = "entropic bootstrap"
    assumption: str = ENTROPIC


def entropic_distance(comparison: Comparison, epsilon: float) -> float:
    """Return the root of OT_eps between the two sides of one output column, untrimmed.

    Examples
    --------
    >>> x = np.array([[0.0, 1.0]])
    >>> round(entropic_distance(Comparison.paired(x, x, 0.0), 0.5), 3)
    0.532
    """
    return _Solved.of(comparison, epsilon).distance


def entropic_clt_limit(comparison: Comparison, epsilon: float) -> UpperLimit:
    """Limit the entropic distance by its normal approximation, on the root scale.

    The influence of a row on OT_eps is its potential.

    Parameters
    ----------
    comparison
        One output column against its target, with ``trim=0``.
    epsilon
        In squared units of the output, > 0.

    References
    ----------
    del Barrio, Gonzalez-Sanz, Loubes, Niles-Weed (2023), "An improved central limit theorem and
    fast convergence rates for entropic transportation costs", Theorem 3.6.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(1, 100))
    >>> limit = entropic_clt_limit(Comparison.paired(x + np.abs(x), x, 0.0), 0.1)
    >>> limit.estimate < limit.upper(0.9) < limit.upper(0.99)
    True
    """
    solved = _Solved.of(comparison, epsilon)
    own = solved.f[np.argsort(solved.order)]
    parts: tuple[np.ndarray, ...]
    if comparison.fixed is None:
        parts = (own,)
    else:
        other = solved.g[np.argsort(to_numpy(comparison.fixed.order)[0])]
        parts = (own + other,) if comparison.pairing is Pairing.PAIRED else (own, other)
    made = normal_limit(solved.distance, tuple(part - part.mean() for part in parts))
    return _EntropicCLTLimit(
        estimate=made.estimate, standard_error=made.standard_error, skewness=made.skewness
    )


def entropic_bootstrap_limit(
    comparison: Comparison, epsilon: float, draws: int, rng: np.random.Generator
) -> UpperLimit:
    """Limit the entropic distance by a percentile of its resampled values.

    Resampling changes the weights of the rows, so every draw scales the plan of the sample, and
    all draws are swept together. Rows are resampled as in `bootstrap_limit`.

    Parameters
    ----------
    comparison
        One output column against its target, with ``trim=0``.
    epsilon
        In squared units of the output, > 0.
    draws
        Number of resamples.
    rng
        Source of randomness.

    References
    ----------
    Goldfeld, Kato, Rioux, Sadhu (2022), "Statistical inference with regularized optimal
    transport", Theorem 7.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(1, 100))
    >>> limit = entropic_bootstrap_limit(Comparison.paired(x + 1.0, x, 0.0), 0.1, 199, rng)
    >>> limit.estimate < limit.upper(0.9) < limit.upper(0.99)
    True
    """
    if draws < 1:
        raise InvalidInput("draws", expected="at least 1", received=draws, fix="try 199")
    solved = _Solved.of(comparison, epsilon)
    n, m = solved.density.shape
    moving_rng, fixed_rng = rng.spawn(2)
    costs = []
    size = max(1, BATCH // max(n, m))
    for start in range(0, draws, size):
        count = min(size, draws - start)
        rows = moving_rng.multinomial(n, np.full(n, 1.0 / n), size=count)
        a = rows[:, solved.order].T / n
        if comparison.fixed is None:
            b = np.full((m, count), 1.0 / m)
        else:
            paired = comparison.pairing is Pairing.PAIRED
            others = rows if paired else fixed_rng.multinomial(m, np.full(m, 1.0 / m), size=count)
            b = others[:, to_numpy(comparison.fixed.order)[0]].T / m
        costs.append(solved.costs(a, b))
    distances = np.sqrt(np.maximum(np.concatenate(costs), 0.0))
    return _EntropicBootstrapLimit(estimate=solved.distance, distances=np.sort(distances))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Solved:
    """The plan of the sample, in sorted order."""

    epsilon: float
    order: np.ndarray
    """int ndarray (n,): the moving row at each rank."""
    f: np.ndarray
    """ndarray (n,): potential of the moving side."""
    g: np.ndarray
    """ndarray (m,): potential of the fixed side."""
    density: np.ndarray
    """ndarray (n, m): the plan relative to the product of its margins."""

    @classmethod
    def of(cls, comparison: Comparison, epsilon: float) -> _Solved:
        checked_epsilon(epsilon)
        directions = comparison.shape[0]
        if directions != 1:
            raise InvalidInput(
                "comparison",
                expected="one output column: no limit of a sliced entropic cost is known",
                received=f"{directions} directions",
                fix="certify the sliced distance itself, with certificate_limit",
            )
        if comparison.trim != 0.0:
            raise InvalidInput(
                "comparison",
                expected="trim=0: entropic costs are not tied to quantiles",
                received=f"trim={comparison.trim}",
                fix="build the comparison with trim=0",
            )
        x = to_numpy(comparison.moving.sorted)
        side = comparison.fixed
        y = to_numpy(comparison.side(0.0).partners if side is None else side.sorted)
        plans = entropic_plans(x, y, np.array([epsilon]), PRECISE)
        f, g = plans.x_potentials[0], plans.y_potentials[0]
        exponent = (f[:, None] + g - (x[0][:, None] - y[0]) ** 2) / epsilon
        return cls(
            epsilon=epsilon,
            order=to_numpy(comparison.moving.order)[0],
            f=f,
            g=g,
            density=np.exp(exponent),
        )

    @property
    def distance(self) -> float:
        """The root of OT_eps."""
        return math.sqrt(max(float(self.f.mean() + self.g.mean()), 0.0))

    def costs(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """OT_eps (B,) of the same values with weights (n, B) and (m, B)."""
        v = np.ones_like(b)
        for _ in range(SWEEPS):
            u = 1.0 / (self.density @ (b * v))
            balanced = 1.0 / (self.density.T @ (a * u))
            missed = np.sum(b * np.abs(v / balanced - 1.0), axis=0).max()
            v = balanced
            if missed <= TOLERANCE:
                break
        f = self.f[:, None] + self.epsilon * np.log(u)
        g = self.g[:, None] + self.epsilon * np.log(v)
        return np.asarray(np.sum(a * f, axis=0) + np.sum(b * g, axis=0))
