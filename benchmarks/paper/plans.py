"""The paper's plans mu and nu of an explanation, as sparse matrices."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from elsewise._arrays import Array, to_numpy
from elsewise.explanation import Explanation
from elsewise.targets import Derived, Sample
from elsewise.transport import direction_blocks, directions_like, project, segments

__all__ = ["coupling", "mu", "nu"]


def mu(explanation: Explanation, directions: np.ndarray | None = None) -> scipy.sparse.csr_array:
    """Input plan between counterfactual and factual rows, averaged over directions.

    Sparse (n, n), of mass 1. By default on the directions of the fit.
    """
    embedding, steps = explanation.problem.embedding, explanation.map.steps
    after, before = (
        to_numpy(embedding.embed(codes))
        for codes in (explanation.rows.codes, explanation.problem.factual)
    )
    if directions is None:
        drawn = explanation.problem.generator("directions")
        fitted = steps[0].directions if steps else direction_blocks(embedding.size, drawn)
        directions = directions_like(fitted, after)
    return coupling(project(after, directions), project(before, directions))


def nu(explanation: Explanation) -> scipy.sparse.csr_array:
    """Output plan between counterfactual outputs and the target, sparse (n, m), of mass 1.

    A known distribution is represented by as many quantiles as there are rows.
    """
    target, outputs, steps = (
        explanation.problem.target,
        explanation.outputs,
        explanation.map.steps,
    )
    if isinstance(target, Sample):
        wanted = target.values
    elif isinstance(target, Derived):
        wanted = to_numpy(target.of(explanation.factual_outputs))
    else:
        wanted, _ = target.cells(np.linspace(0.0, 1.0, len(outputs) + 1))
        wanted = wanted[:, None]
    across = to_numpy(steps[0].output_directions) if steps else np.eye(outputs.shape[1])
    return coupling(project(outputs, across), project(wanted, across))


def coupling(x: Array, y: Array) -> scipy.sparse.csr_array:
    """Optimal plan between projections, averaged over directions, as a sparse matrix of mass 1.

    Parameters
    ----------
    x, y
        Arrays (N, n) and (N, m). With N = 1 this is the paper's nu, else its mu averaged over k.

    Returns
    -------
    csr_array (n, m)

    Examples
    --------
    >>> coupling(np.array([[2.0, 1.0]]), np.array([[10.0, 20.0]])).toarray()
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    first, second = to_numpy(x), to_numpy(y)
    pieces = segments(first.shape[-1], second.shape[-1])
    rows = np.argsort(first, axis=-1, kind="stable")[:, pieces.x]
    columns = np.argsort(second, axis=-1, kind="stable")[:, pieces.y]
    mass = np.broadcast_to(pieces.weights / first.shape[0], rows.shape)
    plan = scipy.sparse.coo_array(
        (mass.ravel(), (rows.ravel(), columns.ravel())), shape=(first.shape[-1], second.shape[-1])
    )
    return plan.tocsr()
