"""The two sides of the question as comparisons of distributions.

Inputs: the moved rows against the factual rows, sliced, paired row by row. Outputs: the model's
outputs against the target; paired where the target follows each row's own output, independent where
it is a sample, known where it is a distribution.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from elsewise._arrays import Array, asarray_like
from elsewise.confidence import Comparison
from elsewise.problem import Population, Problem
from elsewise.targets import Constant, Derived, Known, Sample
from elsewise.transport import (
    Reference,
    direction_blocks,
    project,
    segments,
    sliced_squared_distance,
)

__all__ = [
    "input_comparison",
    "input_distance",
    "output_comparison",
    "output_directions",
    "target_reference",
]


def output_directions(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """Directions (K, M) on which outputs are compared; [[1]] for one output column."""
    columns = problem.outputs.columns
    return np.ones((1, 1)) if columns == 1 else direction_blocks(columns, rng)


def input_comparison(
    problem: Problem, population: Population, codes: Array, directions: Array
) -> Comparison:
    """Moved rows against factual rows, on these directions (d, N)."""
    theta = asarray_like(directions, population.embedded)
    return Comparison.paired(
        project(problem.embedding.embed(codes), theta),
        project(population.embedded, theta),
        trim=problem.limits.trim,
    )


def input_distance(
    problem: Problem, population: Population, codes: Array, directions: Array
) -> float:
    """The trimmed distance of `input_comparison`, from sorts alone."""
    theta = asarray_like(directions, population.embedded)
    moved = problem.embedding.embed(codes)
    squared = sliced_squared_distance(moved, population.embedded, theta, problem.limits.trim)
    return math.sqrt(squared)


def output_comparison(
    problem: Problem, population: Population, outputs: Array, directions: Array
) -> Comparison:
    """Outputs of the moved rows against the target, on these directions (K, M)."""
    theta = asarray_like(directions, outputs)
    trim = problem.limits.trim
    moving = project(outputs, theta)
    target = problem.target
    if isinstance(target, Sample):
        values = asarray_like(target.values, outputs)
        return Comparison.independent(moving, project(values, theta), trim=trim)
    if isinstance(target, Derived):
        return Comparison.paired(moving, project(population.wanted, theta), trim=trim)
    size = outputs.shape[0]
    return Comparison.known_target(
        moving,
        target_reference(target, size, trim, outputs, theta),
        target_reference(target, size, 0.0, outputs, theta),
        trim=trim,
    )


def target_reference(
    target: Known | Constant, size: int, trim: float, like: Array, theta: Array
) -> Reference:
    """A known target as the fixed side of a distance to ``size`` rows."""
    if isinstance(target, Constant):
        level = target.of(like[:1, ...])
        partners = asarray_like(np.ones((1, size)), like) * project(level, theta)
        weights, _, _ = _cell_table(None, size, trim)
        spread = asarray_like(np.zeros(theta.shape[-1]), like)
        return Reference(partners=partners, weights=asarray_like(weights, like), spread=spread)
    weights, means, spread_value = _cell_table(target, size, trim)
    return Reference(
        partners=asarray_like(means[None, :], like),
        weights=asarray_like(weights, like),
        spread=asarray_like(np.array([spread_value]), like),
    )


@lru_cache(maxsize=16)
def _cell_table(
    target: Known | None, size: int, trim: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Cell weights, means and total variance of a known quantile function, trimmed."""
    pieces = segments(size, size, trim)
    weights = np.bincount(pieces.x, pieces.weights, minlength=size)
    means = np.zeros(size)
    if target is None:
        return weights, means, 0.0
    edges = np.clip(np.arange(size + 1) / size, trim, 1.0 - trim)
    inside = weights > 0
    breaks = edges[np.concatenate([inside, [False]]) | np.concatenate([[False], inside])]
    means[inside], variances = target.cells(breaks)
    # Trimmed cells weigh nothing; giving them their neighbour's mean keeps partners sorted.
    first, last = np.flatnonzero(inside)[[0, -1]]
    means[:first], means[last + 1 :] = means[first], means[last]
    return weights, means, float(weights[inside] @ variances)
