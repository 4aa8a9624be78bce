"""The held-out split: the same question about two random halves of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from elsewise._arrays import take_rows
from elsewise.request._problem import Problem
from elsewise.targets import Sample, Target

CERTIFIED_ROWS = 100_000
"""Rows that a certificate needs at most: ten times as many would bring its limit down by less than
a hundredth of what it adds to the distance of 1000 rows."""

# A sampled target of fewer values than this serves both halves.
SPLIT_TARGET = 100


class Halves(NamedTuple):
    """The question about rows that are fitted to, and about rows that are not."""

    fitted: Problem
    """About the rows of the fit."""
    tested: Problem
    """About the rows held out."""
    unseen: np.ndarray
    """int ndarray: places of the rows held out."""


def halve(problem: Problem, fit_rows: int | None = None) -> Halves:
    """Split rows uniformly at random, and a large sampled target too, by the seed.

    Parameters
    ----------
    fit_rows
        At most this many rows are fitted to, and `CERTIFIED_ROWS` of the others are certified on;
        None: half and half.
    """
    rng = problem.generator("split")
    size = problem.factual.shape[0]
    seen, unseen = _chosen(size, fit_rows, rng)
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


def _restricted(problem: Problem, chosen: np.ndarray, target: Target) -> Problem:
    """The same question about some of the rows."""
    return replace(
        problem,
        factual=take_rows(problem.factual, chosen),
        factual_outputs=take_rows(problem.factual_outputs, chosen),
        precise_outputs=take_rows(problem.precise_outputs, chosen),
        target=target,
    )


def _targets(target: Target, rng: np.random.Generator) -> tuple[Target, Target]:
    """A large sampled target is split like the rows; any other serves both halves.

    Half of a small one would say little of the target; its sampling error is counted all the same.
    """
    if not isinstance(target, Sample) or target.exact or len(target.values) < SPLIT_TARGET:
        return target, target
    size = len(target.values)
    order = rng.permutation(size)
    first, second = np.sort(order[: size // 2]), np.sort(order[size // 2 :])
    values = target.values
    return replace(target, values=values[first]), replace(target, values=values[second])
