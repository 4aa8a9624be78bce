"""A plan as a sparse matrix."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from elsewise._arrays import Array, to_numpy
from elsewise.transport._sorted import segments


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
