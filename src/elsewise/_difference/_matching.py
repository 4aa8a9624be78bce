"""Rows of two samples in pairs: optimal transport between their empirical distributions.

Every row of a sample of n rows has mass 1/n. Samples of equal size are paired by the assignment of
least summed squared distance. For unequal sizes every row of the smaller sample is offered
floor(L/s) times, and once more where L/s is no whole number; the masses that then remain are
paired in the order of the direction in which the means differ, so that both margins are met.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

EXACT_ROWS = 3000
"""Up to this many rows on the larger side the assignment is exact (about 4 s)."""
BLOCK_ROWS = 1500
"""Beyond, both samples are cut at random into blocks of about this many rows."""


class Plan(NamedTuple):
    """Pairs of rows with their masses."""

    before: np.ndarray
    """int (N,): row of the first sample."""
    after: np.ndarray
    """int (N,): row of the second."""
    mass: np.ndarray
    """ndarray (N,): sums to 1; 1/n over each row of the first sample, 1/m over the second."""


def match(
    before: np.ndarray, after: np.ndarray, rng: np.random.Generator, exact: int = EXACT_ROWS
) -> Plan:
    """Pair rows (n, d) and (m, d) at little summed squared distance.

    Examples
    --------
    >>> ends = np.array([[0.0], [5.0]])
    >>> match(ends, ends[::-1] + 1, np.random.default_rng(0)).after.tolist()
    [1, 0]
    """
    sizes = len(before), len(after)
    if sizes[0] < sizes[1]:  # the larger sample first
        other = match(after, before, rng, exact)
        return Plan(other.after, other.before, other.mass)
    blocks = 1 if sizes[0] <= exact else min(-(-sizes[0] // min(exact, BLOCK_ROWS)), sizes[1])
    orders = [rng.permutation(size) if blocks > 1 else np.arange(size) for size in sizes]
    cuts = (np.array_split(order, blocks) for order in orders)
    found = [_assign(before, after, i, j) for i, j in zip(*cuts, strict=True)]
    i, j = (np.concatenate(side) for side in zip(*found, strict=True))
    # A row that was taken too often passes on only the mass it has.
    mass = np.minimum(1.0 / sizes[0], 1.0 / (sizes[1] * np.bincount(j)[j]))
    left = [1.0 / n - np.bincount(side, mass, n) for n, side in zip(sizes, (i, j), strict=True)]
    rest = _in_order(before, after, left)
    return Plan(*(np.concatenate(pair) for pair in zip((i, j, mass), rest, strict=True)))


def _assign(
    before: np.ndarray, after: np.ndarray, i: np.ndarray, j: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Give every row of the block i one of the block j, whose rows are used almost equally."""
    cost = cdist(before[i], after[j], "sqeuclidean")
    full, spare = divmod(i.size, j.size)
    offered = np.tile(np.arange(j.size), full + (spare > 0))
    cost = cost[:, offered]
    if spare:
        # One more copy of each: dear enough that all the others are taken first.
        cost[:, full * j.size :] += (cost.max() + 1.0) * i.size
    rows, chosen = linear_sum_assignment(cost)
    return i[rows], j[offered[chosen]]


def _in_order(before: np.ndarray, after: np.ndarray, left: list[np.ndarray]) -> Plan:
    """Pair masses along the difference of the means by the north-west corner rule."""
    # Less than this is left over by rounding.
    rows, columns = (np.flatnonzero(mass > 1e-9 / mass.size) for mass in left)
    if not rows.size or not columns.size:
        return Plan(rows[:0], columns[:0], np.zeros(0))
    direction = after.mean(axis=0) - before.mean(axis=0)
    rows = rows[np.argsort(before[rows] @ direction, kind="stable")]
    columns = columns[np.argsort(after[columns] @ direction, kind="stable")]
    # A new pair begins wherever a row or its partner has spent its mass.
    ends = [np.cumsum(left[0][rows]), np.cumsum(left[1][columns])]
    cuts = np.unique(np.concatenate(ends))
    mass = np.diff(cuts, prepend=0.0)
    # The middle of each piece: at its ends rounding could find the neighbour.
    i, j = (np.searchsorted(end[:-1], cuts - 0.5 * mass) for end in ends)
    return Plan(rows[i], columns[j], mass)


def random_plan(sizes: tuple[int, int], rng: np.random.Generator, *, turned: bool) -> Plan:
    """Pair rows at random, each almost equally often; ``turned`` draws as for swapped samples."""
    drawn = sizes[::-1] if turned else sizes
    i, j = (np.resize(rng.permutation(size), max(sizes)) for size in drawn)
    i, mass = rng.permutation(i), np.full(i.size, 1.0 / i.size)
    return Plan(j, i, mass) if turned else Plan(i, j, mass)
