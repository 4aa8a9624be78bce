"""How sure: covariance of the parts, simultaneous limits, exact permutation tests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from elsewise._difference._samples import Functional, Samples
from elsewise.analysis import Column

CELLS = 1 << 24
"""Cells of regroupings held at once."""
BINS = 32
"""A number's distribution is compared at this many pooled quantiles."""
MOST_LEVELS = 200
"""Categories of more levels say nothing about their own distribution."""


def covariance(scores: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Return the covariance (J, J) of the sum of scores (N, J), independent between clusters.

    A score is the influence of a row on the estimates, divided by the size of its sample.
    """
    sums = np.stack([np.bincount(clusters, column) for column in scores.T], axis=1)
    return np.asarray(sums.T @ sums) * len(sums) / max(len(sums) - 1, 1)


def critical_value(
    covariance: np.ndarray, level: float, rng: np.random.Generator, draws: int = 19_999
) -> float:
    """Return c such that all |error| <= c * standard error at once with probability ``level``.

    Examples
    --------
    >>> 1.9 < critical_value(np.eye(1), 0.95, np.random.default_rng(0)) < 2.0
    True
    """
    spread = np.sqrt(np.diag(covariance))
    # Parts that no row has an influence on are known exactly and need no limit.
    unit = np.where(spread > 1e-9 * spread.max(), spread, np.inf)
    # The parts sum to the change, so that the matrix is singular up to rounding.
    root = np.linalg.cholesky(covariance / np.outer(unit, unit) + 1e-9 * np.eye(len(unit)))
    most = np.abs(rng.normal(size=(draws, len(root))) @ root.T).max(axis=1)
    return float(np.quantile(most, level))


def permutation_test(samples: Samples, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return exact p-values (J + 1,): each attribute has one distribution, nothing changed.

    If both samples are drawn from one population, every way to deal its clusters to the two sides
    is equally likely, so that p = (1 + number at least as extreme) / (1 + draws) is valid at any
    size. The statistic of the change is its absolute value; that of an attribute the largest
    difference of its distribution functions (the total variation of a category), standardised
    over the regroupings and compared with the largest over the attributes (Westfall and Young).
    """
    side = np.repeat([False, True], samples.sizes)
    # The order of the rows, and so the draws, do not depend on which sample is before.
    rows = np.lexsort((side ^ samples.turned, *samples.codes.T))
    side, scores = side[rows], samples.scores[rows]
    clusters = pd.factorize(samples.clusters[rows])[0]
    columns = [column.take(rows) for column in samples.columns]
    # Sorted and binned once; each regrouping is then a product of matrices.
    order = np.argsort(scores, kind="stable")
    bins = [_indicators(column) for column in columns]
    found = []
    for masks in _regroupings(side, clusters, draws, rng):
        change = np.abs(_changes(scores, order, masks, samples.functional))
        apart = [_distances(b, c.ordered, masks) for b, c in zip(bins, columns, strict=True)]
        found.append(np.stack([*apart, change], axis=1))
    seen, drawn = np.split(np.concatenate(found), [1])
    spread, center = drawn.std(axis=0), drawn.mean(axis=0)
    unit = np.where(spread > 1e-12 * np.abs(center), spread, np.inf)
    seen, drawn = (seen - center) / unit, (drawn - center) / unit
    # All attributes are compared with the largest among them; the change is a test of its own.
    drawn[:, :-1] = drawn[:, :-1].max(axis=1, keepdims=True, initial=-np.inf)
    # Ties are as extreme. Statistics in single precision may differ by rounding where they are
    # tied.
    return np.asarray((1 + (drawn >= seen - 1e-7).sum(axis=0)) / (draws + 1))


def _regroupings(
    side: np.ndarray, clusters: np.ndarray, draws: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield masks (R, N), 1 for the second sample: the true one, then random ones.

    Clusters of one side are dealt anew; those of both sides swap their sides or keep them.
    """
    yield side[None].astype(np.float32)
    inside = np.bincount(clusters, side)
    both = (inside > 0) & (inside < np.bincount(clusters))
    pure = np.flatnonzero(~both)
    size = max(1, CELLS // side.size)
    for start in range(0, draws, size):
        masks = np.empty((min(size, draws - start), side.size), dtype=np.float32)
        for mask in masks:
            # Coins for the clusters of both sides; the others are permuted, so that as many lie on
            # each side as before.
            dealt = rng.random(both.size) < 0.5
            dealt[pure] = inside[rng.permutation(pure)] > 0
            mask[:] = np.where(both[clusters], side ^ dealt[clusters], dealt[clusters])
        yield masks


def _changes(
    scores: np.ndarray, order: np.ndarray, masks: np.ndarray, functional: Functional
) -> np.ndarray:
    """Change of the functional (R,) from the rows outside to those inside each mask."""
    ends = []
    for inside in (masks, 1.0 - masks):
        if functional.kind == "quantile":
            reached = np.cumsum(inside[:, order], axis=1, dtype=np.float64)
            # The slack keeps a level that is a whole number of rows from asking for one row more.
            wanted = functional.at * reached[:, -1:] - 1e-9
            ends.append(scores[order][(reached >= wanted).argmax(axis=1)])
        else:
            ends.append(inside @ functional.values(scores) / inside.sum(axis=1))
    return np.asarray(ends[0] - ends[1])


def _indicators(column: Column) -> np.ndarray:
    """Each row's bin, float32 (N, bins): missing, pooled quantiles of a number or levels."""
    known = column.before[~np.isnan(column.before)]
    cuts = np.unique(known)
    if column.ordered and cuts.size > BINS:
        cuts = np.unique(np.quantile(known, np.arange(1, BINS) / BINS, method="inverted_cdf"))
    place = np.where(np.isnan(column.before), 0, 1 + np.searchsorted(cuts, column.before))
    # With one bin only missing cells are counted.
    bins = 1 if cuts.size > MOST_LEVELS else int(place.max()) + 1
    return np.asarray(place[:, None] == np.arange(bins), dtype=np.float32)


def _distances(bins: np.ndarray, ordered: bool, masks: np.ndarray) -> np.ndarray:
    """Distance (R,) between the distributions over bins inside and outside each mask."""
    count, inside = masks.sum(axis=1, keepdims=True), masks @ bins
    gap = inside / count - (bins.sum(axis=0) - inside) / (len(bins) - count)
    if ordered:
        return np.asarray(np.abs(np.cumsum(gap, axis=1)).max(axis=1))
    return np.asarray(np.abs(gap).sum(axis=1) / 2.0)
