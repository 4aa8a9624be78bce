"""Samples, and POT's entropic plans and costs between them."""

from __future__ import annotations

import numpy as np
import ot
from scipy.special import rel_entr

__all__ = ["X", "Y", "pot_cost", "pot_plan"]

RNG = np.random.default_rng(0)
X = np.sort(RNG.normal(0.3, 1.0, (3, 20)))
Y = np.sort(np.round(RNG.gamma(2.0, 0.6, (3, 13)), 1))  # ties, another size, skewed


def pot_plan(x: np.ndarray, y: np.ndarray, epsilon: float, **weights: np.ndarray) -> np.ndarray:
    """Return POT's plan, in the log domain."""
    a = weights.get("a", np.full(x.size, 1.0 / x.size))
    b = weights.get("b", np.full(y.size, 1.0 / y.size))
    squares = (x[:, None] - y) ** 2
    return np.asarray(
        ot.sinkhorn(a, b, squares, epsilon, method="sinkhorn_log", stopThr=1e-11, numItermax=20000)
    )


def pot_cost(x: np.ndarray, y: np.ndarray, epsilon: float, **weights: np.ndarray) -> float:
    """Return the transport cost plus epsilon times the relative entropy, from POT's plan."""
    plan = pot_plan(x, y, epsilon, **weights)
    product = plan.sum(axis=1)[:, None] * plan.sum(axis=0)
    relative = np.sum(rel_entr(plan, product))
    return float(np.sum(plan * (x[:, None] - y) ** 2) + epsilon * relative)
