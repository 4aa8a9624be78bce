"""Measures of a counterfactual population, as pure functions of arrays and frames."""

from __future__ import annotations

import numpy as np

from elsewise._arrays import to_numpy
from elsewise.explanation import Explanation
from elsewise.transport import sliced_squared_distance

__all__ = ["sliced_ot", "validity"]

DIRECTIONS = 5000
TRIM = 0.1
CHUNK = 250


def sliced_ot(x: np.ndarray, y: np.ndarray, *, trim: float = TRIM, seed: int = 0) -> float:
    """Squared sliced 2-Wasserstein distance on 5000 fresh directions, the paper's "OT".

    The trimmed average is divided by 1 - 2 trim once; the published values carry that factor
    twice, so divide them by 1.25 before comparing.

    Parameters
    ----------
    x, y
        Arrays (n, d) and (m, d), for instance standardized rows.
    trim
        Share left out at either end of each projection.
    seed
        Draws the directions, independent and uniform.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(50, 4))
    >>> round(sliced_ot(x, x + [2.0, 0.0, 0.0, 0.0]), 1)
    1.0
    """
    rng = np.random.default_rng(seed)
    directions = rng.standard_normal((x.shape[1], DIRECTIONS))
    directions /= np.linalg.norm(directions, axis=0)
    parts = np.split(directions, DIRECTIONS // CHUNK, axis=1)
    return float(np.mean([sliced_squared_distance(x, y, part, trim) for part in parts]))


def explanation_ot(explanation: Explanation, *, trim: float = TRIM, seed: int = 0) -> float:
    """`sliced_ot` between the counterfactual and the factual rows of an explanation."""
    embedding = explanation.problem.embedding
    after = to_numpy(embedding.embed(explanation.rows.codes))
    before = to_numpy(embedding.embed(explanation.problem.factual))
    return sliced_ot(after, before, trim=trim, seed=seed)


def validity(outputs: np.ndarray, threshold: float = 0.5) -> float:
    """Share of rows whose first output reaches the threshold (the paper's "coverage").

    Examples
    --------
    >>> validity(np.array([[0.2], [0.6], [0.5]]))
    0.6666666666666666
    """
    return float(np.mean(to_numpy(outputs)[:, 0] >= threshold))
