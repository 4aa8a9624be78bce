"""Entropic optimal transport in one dimension, from the paper's appendix.

``OT_eps = min over plans of  sum_ij P_ij (x_i - y_j)^2 + eps KL(P | product of the margins)``. A
plan spreads each row over many partners, so arrays (n, m) cannot be avoided here;
directions are handled a few at a time. What is recorded stays a sorted pairing: the mean partner of
a row is non-decreasing in its value, and ``2 (x_i - mean partner) / n`` is the gradient of OT_eps.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from elsewise import measure
from elsewise._arrays import Array, namespace
from elsewise.errors import InvalidInput
from elsewise.transport import MonotoneMaps, fit_monotone_maps, potentials

__all__ = ["EntropicPlans", "checked_epsilon", "entropic_plans", "entropic_search"]

# Entries of plans held at once, unless a single plan has more.
PART = 1 << 22
# A plan of more entries than this (half a gigabyte) is refused.
LARGEST = 1 << 26
# At most this many sweeps; with a tiny epsilon the margins are then met to about 1e-4.
SWEEPS = 1000
# Sweeps end when the margins of every plan are met to this share of its mass.
TOLERANCE = 1e-3


class EntropicPlans(NamedTuple):
    """What is kept of the optimal plans of N directions."""

    costs: Array
    """Array (N,): OT_eps, never below the squared distance."""
    targets: Array
    """Array (N, n): mean partner of each value, non-decreasing."""
    x_potentials: Array
    """Array (N, n): f; ``P_ij = exp((f_i + g_j - (x_i - y_j)^2) / eps) / (n m)``."""
    y_potentials: Array
    """Array (N, m): g; the mean of f plus the mean of g is OT_eps."""


def entropic_plans(
    x_sorted: Array, y_sorted: Array, epsilon: Array, tolerance: float = TOLERANCE
) -> EntropicPlans:
    """Return the entropic plans between sorted values of equal weight, by Sinkhorn's sweeps.

    Parameters
    ----------
    x_sorted, y_sorted
        Arrays (N, n) and (N, m), sorted along the last axis.
    epsilon
        Array (N,), positive, in squared units of the values.
    tolerance
        Sweeps end when the margins are met to this share of the mass.

    References
    ----------
    Cuturi (2013), "Sinkhorn distances"; You et al. (2025), appendix "Entropic optimal transport".

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[0.0, 1.0]])
    >>> [entropic_plans(x, x, np.array([eps])).targets.round(2).tolist() for eps in (0.1, 1e6)]
    [[[0.0, 1.0]], [[0.5, 0.5]]]
    """
    xp = namespace(x_sorted, y_sorted, epsilon)
    count, n = x_sorted.shape
    m = y_sorted.shape[-1]
    if n * m > LARGEST:
        raise InvalidInput(
            "rows",
            expected=f"at most {LARGEST} pairs of rows, as every pair has a weight",
            received=f"{n} x {m}",
            fix="explain a sample of the rows",
        )
    size = max(1, PART // (n * m))
    parts = []
    for start in range(0, count, size):
        part = slice(start, min(start + size, count))
        parts.append(_plans(x_sorted[part, :], y_sorted[part, :], epsilon[part], tolerance))
    return EntropicPlans(*(xp.concat(list(part)) for part in zip(*parts, strict=True)))


def _plans(x: Array, y: Array, epsilon: Array, tolerance: float) -> EntropicPlans:
    xp = namespace(x)
    e = epsilon[:, None]
    squares = (x[:, :, None] - y[:, None, :]) ** 2
    # The exact plan's potentials make the kernel 1 at every pair of that plan and at most 1
    # elsewhere: scaling it can neither overflow nor lose a row, however small epsilon is, and the
    # sweeps start next to their end.
    f, g = potentials(x, y) + squares[:, :1, 0], potentials(y, x)
    kernel = xp.exp((f[:, :, None] + g[:, None, :] - squares) / e[:, :, None])
    across = xp.matrix_transpose(kernel)
    u, v = xp.ones_like(x), xp.ones_like(y)
    for _ in range(SWEEPS):
        u = 1.0 / _mean(kernel, v)
        balanced = 1.0 / _mean(across, u)
        missed = xp.max(xp.mean(xp.abs(v / balanced - 1.0), axis=-1))
        v = balanced
        if float(missed) <= tolerance:
            break
    f, g = f + e * xp.log(u), g + e * xp.log(v)
    return EntropicPlans(
        costs=xp.mean(f, axis=-1) + xp.mean(g, axis=-1),
        targets=_mean(kernel, v * y) / _mean(kernel, v),
        x_potentials=f,
        y_potentials=g,
    )


def _mean(kernel: Array, values: Array) -> Array:
    """Mean over the last axis of kernels (N, n, m) times values (N, m)."""
    xp = namespace(kernel)
    return xp.matmul(kernel, values[:, :, None])[:, :, 0] / values.shape[-1]


def checked_epsilon(epsilon: float) -> float:
    """Refuse an epsilon that is not positive and finite.

    Examples
    --------
    >>> checked_epsilon(0.0)
    Traceback (most recent call last):
    ...
    elsewise.errors.InvalidInput: epsilon: expected a number > 0, received 0.0. Fix: try 0.1.
    """
    if not 0.0 < epsilon < float("inf"):
        raise InvalidInput(
            "epsilon",
            expected="a number > 0",
            received=repr(epsilon),
            fix="try 0.1",
        )
    return epsilon


@contextmanager
def entropic_search(epsilon: float) -> Iterator[None]:
    """Let every search inside record entropic plans: rows are pulled to their mean partners.

    Parameters
    ----------
    epsilon
        In units of the variance of the side that a plan leads to.
    """
    checked_epsilon(epsilon)

    def fit(moving_sorted: Array, partners: Array, smoothing: float) -> MonotoneMaps:
        xp = namespace(moving_sorted)
        spreads = xp.var(partners, axis=-1)
        # To a side of one value every plan is the same.
        scaled = epsilon * xp.where(spreads > 0, spreads, xp.ones_like(spreads))
        found = entropic_plans(moving_sorted, partners, scaled)
        return fit_monotone_maps(moving_sorted, found.targets, smoothing)

    exact = measure.fit_monotone_maps
    measure.fit_monotone_maps = fit
    try:
        yield
    finally:
        measure.fit_monotone_maps = exact
