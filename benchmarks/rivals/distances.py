"""Measures of counterfactual rows: distances between populations, spread, legality; no state."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist, pdist

from elsewise._arrays import changed_cells
from elsewise.features import Schema
from elsewise.transport import sliced_squared_distance

__all__ = [
    "diversity",
    "illegal_rows",
    "median_bandwidth",
    "mmd",
    "nearest_distances",
    "sliced_ot",
]

DIRECTIONS = 5000
TRIM = 0.1
DIRECTION_CHUNK = 250
# Rows of a distance matrix that are in memory at once.
ROW_CHUNK = 1024
# At most this many rows give the median distance.
BANDWIDTH_ROWS = 2000


def sliced_ot(x: np.ndarray, y: np.ndarray, *, trim: float = TRIM, seed: int = 0) -> float:
    """Squared sliced 2-Wasserstein distance on 5000 fresh directions, the paper's "OT".

    The trimmed average is divided by 1 - 2 trim once; the published values carry that factor
    twice.

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
    parts = np.split(directions, DIRECTIONS // DIRECTION_CHUNK, axis=1)
    return float(np.mean([sliced_squared_distance(x, y, part, trim) for part in parts]))


def mmd(x: np.ndarray, y: np.ndarray, *, sigma: float = 1.0) -> float:
    """Squared maximum mean discrepancy with the kernel exp(-|a - b|^2 / (2 sigma^2)).

    The mean over all pairs, a row with itself included, as in the paper: for rows that are far
    apart in units of sigma it cannot exceed, and soon reaches, 1/n + 1/m. See `median_bandwidth`.

    Parameters
    ----------
    x, y
        Arrays (n, d) and (m, d).
    sigma
        Width of the kernel; the paper's is 1.

    Examples
    --------
    >>> round(mmd(np.zeros((4, 1)), np.full((4, 1), 9.0)), 6)
    2.0
    """
    return _mean_kernel(x, x, sigma) + _mean_kernel(y, y, sigma) - 2.0 * _mean_kernel(x, y, sigma)


def _mean_kernel(x: np.ndarray, y: np.ndarray, sigma: float) -> float:
    chunks = (x[first : first + ROW_CHUNK] for first in range(0, len(x), ROW_CHUNK))
    total = sum(
        float(np.exp(cdist(chunk, y, "sqeuclidean") / (-2.0 * sigma**2)).sum()) for chunk in chunks
    )
    return total / (len(x) * len(y))


def median_bandwidth(x: np.ndarray, y: np.ndarray) -> float:
    """Median distance between the rows of both populations: a width that suits their scale.

    Of more than 2000 rows, 2000 evenly spaced ones are used; 1 where the median is 0.

    Examples
    --------
    >>> median_bandwidth(np.array([[0.0], [1.0]]), np.array([[5.0]]))
    4.0
    """
    rows = np.concatenate([x, y])
    places = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), BANDWIDTH_ROWS)).astype(int))
    median = float(np.median(pdist(rows[places]))) if len(places) > 1 else 0.0
    return median or 1.0


def diversity(x: np.ndarray) -> float:
    """Mean distance between two different rows; 0 for a single row.

    Examples
    --------
    >>> diversity(np.array([[0.0], [3.0], [6.0]]))
    4.0
    """
    n = len(x)
    chunks = (x[first : first + ROW_CHUNK] for first in range(0, n, ROW_CHUNK))
    total = sum(float(cdist(chunk, x).sum()) for chunk in chunks)
    return total / (n * (n - 1)) if n > 1 else 0.0


def nearest_distances(x: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Distance (n,) from each row to the background row nearest to it: its plausibility.

    Parameters
    ----------
    x, background
        Arrays (n, d) and (m, d).

    Examples
    --------
    >>> nearest_distances(np.array([[1.0], [7.0]]), np.array([[0.0], [5.0]]))
    array([1., 2.])
    """
    distances, _ = cKDTree(background).query(x)
    return np.asarray(distances)


def illegal_rows(
    schema: Schema,
    before: np.ndarray,
    after: np.ndarray,
    obeys: Callable[[np.ndarray], np.ndarray] | None = None,
) -> np.ndarray:
    """Return, bool (n,), the rows that break the schema: what no such person can look like.

    Ranges, directions, whole numbers, frozen and missing cells, allowed levels, one-hot groups and
    rules. A row that did not change is legal: it exists.

    Parameters
    ----------
    schema
        What may change, and how.
    before, after
        Codes (n, p) of the rows and of their counterfactuals.
    obeys
        Codes to bool (n,), which rows keep the schema's rules (`Encoder.obeys`).

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [20, 60], "sex": ["f", "m"]})
    >>> schema = Schema.infer(frame).freeze("sex")
    >>> before = schema.encoder(frame).encode(frame)
    >>> illegal_rows(schema, before, before + [[0.5, 0.0], [-1.0, 0.0]])
    array([ True, False])
    """
    holds = np.ones(len(after), dtype=bool)
    broken = None
    if obeys is not None:
        holds, broken = obeys(after), ~obeys(before)
    changed = changed_cells(before, after)
    boxes = schema.legal(before, broken=broken).like(after)
    wrong = changed_cells(boxes.legalize(after), after)
    for j, feature in enumerate(schema.features):
        if feature.allowed is not None:
            codes = [feature.levels.index(level) for level in feature.allowed]
            wrong[:, j] |= changed[:, j] & ~np.isin(after[:, j], codes)
    illegal = wrong.any(axis=1) | ~holds
    for group in {feature.group for feature in schema.features} - {None}:
        members = after[:, [feature.group == group for feature in schema.features]]
        one_hot = ((members == 0) | (members == 1)).all(axis=1) & (members.sum(axis=1) == 1)
        illegal |= ~one_hot
    return np.asarray(illegal & changed.any(axis=1))
