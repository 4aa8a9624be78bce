"""The held-out split: the same question about two random halves of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from elsewise._arrays import take_rows, to_numpy, with_arrays
from elsewise.request._problem import Problem
from elsewise.targets import Sample, Target

# Rows that a certificate needs at most: ten times as many would bring its limit down by less than
# a hundredth of what it adds to the distance of 1000 rows.
CERTIFIED_ROWS = 100_000

# A sampled target of fewer values than this serves both halves.
SPLIT_TARGET = 100

# Rows whose columns all have at most so many values may be alike by chance.
FEW_VALUES = 20
# So many rows tell which column has most values.
SEVERAL = 1_000


class Halves(NamedTuple):
    """The question about rows that are fitted to, and about rows that are not."""

    fitted: Problem
    """About the rows of the fit."""
    tested: Problem
    """About the rows held out."""
    unseen: np.ndarray
    """int ndarray: places of the rows held out."""


def halve(problem: Problem, fit_rows: int | None = None) -> Halves:
    """Split rows uniformly at random, by whole clusters, and a large sampled target too.

    Parameters
    ----------
    fit_rows
        At most this many rows are fitted to, and `CERTIFIED_ROWS` of the others are certified on;
        None: half and half.
    """
    rng = problem.generator("split")
    size = problem.factual.shape[0]
    if problem.clusters is None:
        seen, unseen = _chosen(size, fit_rows, rng)
    else:
        seen, unseen = _chosen_clusters(problem.clusters, fit_rows, rng)
    first, second = _targets(problem.target, rng)
    return Halves(
        fitted=_restricted(problem, seen, first),
        tested=_restricted(problem, unseen, second),
        unseen=unseen,
    )


def _chosen(
    size: int, fit_rows: int | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the rows to fit to and of those to certify on, both sorted."""
    if fit_rows is None or size // 2 <= fit_rows:
        order, fitted = rng.permutation(size), size // 2
    else:
        fitted = fit_rows
        order = rng.choice(size, size=min(size, fitted + CERTIFIED_ROWS), replace=False)
    return np.sort(order[:fitted]), np.sort(order[fitted:])


def _chosen_clusters(
    clusters: np.ndarray, fit_rows: int | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The same with no cluster on both sides: clusters are taken until half the rows are there."""
    sizes = np.bincount(clusters)
    order = rng.permutation(sizes.size)
    wanted = min(clusters.size // 2, clusters.size if fit_rows is None else fit_rows)
    before = np.cumsum(sizes[order]) - sizes[order]
    taken = np.zeros(sizes.size, dtype=bool)
    taken[order[(before < wanted)][: sizes.size - 2]] = True
    return np.flatnonzero(taken[clusters]), np.flatnonzero(~taken[clusters])[:CERTIFIED_ROWS]


def repeated_rows(problem: Problem, unseen: np.ndarray) -> int:
    """Return how many of the rows held out are exact copies of other rows, in or out of the fit.

    Rows of few values, such as categories alone, are alike by chance and are not counted.
    """
    codes = to_numpy(problem.factual)
    values = [np.unique(column[:SEVERAL]).size for column in codes.T]
    most = int(np.argmax(values))  # rows alike in the column of most values may be copies
    if values[most] <= FEW_VALUES and np.unique(codes[:, most]).size <= FEW_VALUES:
        return 0
    alike = np.flatnonzero(pd.Series(codes[:, most]).duplicated(keep=False))
    hashes = pd.util.hash_pandas_object(pd.DataFrame(codes[alike]), index=False)
    copies = alike[hashes.duplicated(keep=False).to_numpy()]
    return int(np.isin(copies, unseen).sum())


def _restricted(problem: Problem, chosen: np.ndarray, target: Target) -> Problem:
    """The same question about some of the rows."""
    arrays = ("factual", "factual_outputs", "precise_outputs", "clusters")
    about = replace(problem, target=target)
    return with_arrays(about, lambda array: take_rows(array, chosen), *arrays)


def _targets(target: Target, rng: np.random.Generator) -> tuple[Target, Target]:
    """A large sampled target is split like the rows; any other serves both halves.

    Half of a small one would say little of the target; its sampling error is counted all the same.
    """
    if not isinstance(target, Sample) or target.exact or len(target.values) < SPLIT_TARGET:
        return target, target
    size = len(target.values)
    order = rng.permutation(size)
    first, second = np.sort(order[: size // 2]), np.sort(order[size // 2 :])
    values = to_numpy(target.values)
    return replace(target, values=values[first]), replace(target, values=values[second])
