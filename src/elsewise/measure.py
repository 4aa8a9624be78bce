"""Both sides of the question: how far inputs moved, and how far outputs are from the target.

Inputs: the moved rows against the factual rows, sliced, paired row by row (Q_x, the paper's
eq. 12, as a mean over directions instead of a sum). Outputs: the model's outputs against the target
(Q_y, eq. 13); paired where the target follows each row's
own output, independent where it is a sample, known where it is a distribution. The distance, its
upper limit and the transport plan of a side come from the same sorts. Directions are measured a
few at a time, in threads, and only small results are kept: distances, one number per row, and
the plans as tables of about sqrt(n) knots.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from elsewise._arrays import Array, asarray_like, namespace, to_numpy, with_arrays
from elsewise._resources import parallel
from elsewise.confidence import (
    Comparison,
    KnownLimit,
    Method,
    UpperLimit,
    clt_limit,
    influence,
    normal_limit,
)
from elsewise.request import Population, Problem
from elsewise.targets import Constant, Derived, DistributionTarget, Sample
from elsewise.transport import (
    MonotoneMaps,
    Reference,
    cell_weights,
    direction_blocks,
    direction_parts,
    directions_like,
    fit_monotone_maps,
    join_maps,
    project,
    reference,
    sliced_squared_distance,
    sorted_squared_distances,
)

# What is said of rows that look like none that exist.
FAR = "farther from the nearest real row"
Known = DistributionTarget | Constant | Sample
"""Targets that do not depend on the rows."""
CHANCE_DRAWS = 20
"""Pairs of resamples behind the distance that chance alone makes."""


class SideMeasure(NamedTuple):
    """One side of an iterate."""

    distance: float
    """Trimmed, root scale."""
    limit: UpperLimit | None
    """Its upper limit; None where the side has no bound, so that no limit is needed."""
    plan: MonotoneMaps | None
    """Where the plan leads, as maps; None where rows know what they want."""


class Sides(NamedTuple):
    """What the rows of every iterate are compared with: the same during a whole run."""

    population: Population
    outputs: Comparison
    """The factual outputs against the target, whose side need not be sorted again."""
    output_directions: Array
    """Array (K, M)."""
    partners: Array | None
    """Array (M, n): target quantiles by rank; None where rows know what they want."""
    smoothing: float
    """Window of the recorded maps in units of sqrt(n) ranks."""


def prepare_sides(problem: Problem, population: Population, smoothing: float) -> Sides:
    """Sort what does not move, once for all iterations."""
    directions = output_directions(problem, problem.generator("output directions"))
    across = asarray_like(directions, population.outputs)
    outputs = output_comparison(problem, population, population.outputs, across)
    partners = target_partners(problem, population, across)
    return Sides(population, outputs, across, partners, smoothing)


def measure_sides(
    problem: Problem, sides: Sides, embedded: Array, outputs: Array, directions: Array
) -> tuple[SideMeasure, SideMeasure]:
    """Measure the inputs of embedded rows (n, d) on these directions (d, N), and their outputs."""
    window = sides.smoothing
    compared = sides.outputs.of(project(outputs, sides.output_directions))
    moved = measure_inputs(problem, sides.population, embedded, directions, window)
    return moved, measure_outputs(problem, compared, sides.partners, window)


class _Part(NamedTuple):
    """What some of the directions say."""

    directions: int
    squares: Array
    """Sum of the squared distances: a number, left on its device until it is needed."""
    influence: Array
    """Array (n,): mean influence of each row on the squared distance; 0 if no limit is needed."""
    plan: MonotoneMaps


def measure_inputs(
    problem: Problem, population: Population, embedded: Array, directions: Array, smoothing: float
) -> SideMeasure:
    """Compare moved rows (n, d) with the factual ones, on these directions (d, N).

    Lines 3 and 6 of Algorithm 1: the plans that minimize eq. (12), and the upper limit of eq. (11),
    here from influences instead of bands.
    """
    bounds = problem.bounds
    exact = bounds.method == Method.EXACT
    limited = bounds.inputs is not None and not exact

    def look(theta: Array) -> _Part:
        moving, fixed = project(embedded, theta), project(population.embedded, theta)
        xp = namespace(moving)
        count = int(theta.shape[-1])
        rows: Array = 0.0
        if limited:
            comparison = Comparison.paired(moving, fixed, bounds.trim)
            assert comparison.fixed is not None  # a sample, paired
            distance, (rows,) = influence(comparison)
            squares = count * distance**2
            # The limit needs the order of the rows, the plan only their sorted values: both come
            # from the one sort that ranking has made.
            moving, fixed = comparison.moving.sorted, comparison.fixed.sorted
        else:
            moving = xp.sort(moving, axis=-1, stable=False)
            fixed = xp.sort(fixed, axis=-1, stable=False)
            side = reference(fixed, moving.shape[-1], bounds.trim)
            squares = xp.sum(sorted_squared_distances(moving, side))
        return _Part(count, squares, rows, _recorded(moving, fixed, smoothing, embedded))

    parts = list(parallel(look, direction_parts(directions, embedded.shape[0])))
    total = sum(part.directions for part in parts)
    distance = math.sqrt(sum(float(part.squares) for part in parts) / total)
    limit: UpperLimit | None = None
    if limited:
        rows: Array = 0.0
        # Influences are means over the directions of a part, so that parts count by their size.
        for part in parts:
            rows = rows + part.influence * (part.directions / total)
        limit = normal_limit(distance, (rows,))
    elif exact:
        limit = KnownLimit(estimate=distance)
    return SideMeasure(distance, limit, join_maps([part.plan for part in parts]))


def measure_outputs(
    problem: Problem, compared: Comparison, partners: Array | None, smoothing: float
) -> SideMeasure:
    """Read a comparison of outputs with the target; partners (M, n) are what each rank wants.

    Lines 4 and 5 of Algorithm 1: the plan that minimizes eq. (13), and the limit of eq. (10).
    """
    bounds = problem.bounds
    limit: UpperLimit | None = None
    if bounds.method == Method.EXACT:
        limit = KnownLimit(estimate=compared.distance)
    elif bounds.outputs is not None:
        limit = clt_limit(compared)
    # The limit has the distance from the same sort.
    distance = compared.distance if limit is None else limit.estimate
    if partners is None:
        return SideMeasure(distance, limit, None)
    plan = _recorded(compared.moving.sorted, partners, smoothing, partners)
    return SideMeasure(distance, limit, plan)


def target_partners(problem: Problem, population: Population, across: Array) -> Array | None:
    """Target quantiles (M, n) by rank; None where rows know what they want."""
    target = problem.target
    # A plan sends every row somewhere, also those at the ends that the distance leaves out:
    # partners are never trimmed. A target that is a function of rows needs no plan.
    if isinstance(target, Derived):
        return None
    size = population.outputs.shape[0]
    return target_reference(target, size, 0.0, population.outputs, across).partners


def _recorded(moving_sorted: Array, partners: Array, smoothing: float, like: Array) -> MonotoneMaps:
    """The plan from sorted values to their partners, as maps in the precision of ``like``."""
    maps = fit_monotone_maps(moving_sorted, partners, smoothing)
    return with_arrays(maps, lambda table: asarray_like(table, like), "knots", "displacements")


def output_directions(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """Directions (K, M) on which outputs are compared; [[1]] for one output column."""
    columns = problem.outputs.columns
    if columns == 1:
        return np.ones((1, 1))
    directions = direction_blocks(columns, rng)
    dense: np.ndarray = directions.toarray() if sparse.issparse(directions) else directions
    return dense


def input_comparison(
    problem: Problem, population: Population, codes: Array, directions: Array
) -> Comparison:
    """Moved rows against factual rows, on these directions (d, N)."""
    theta = directions_like(directions, population.embedded)
    moving, fixed = problem.embedding.embed(codes), population.embedded
    return Comparison.paired(project(moving, theta), project(fixed, theta), problem.bounds.trim)


def input_distance(
    problem: Problem, population: Population, codes: Array, directions: Array
) -> float:
    """The trimmed distance of `input_comparison`, from sorts alone."""
    theta = directions_like(directions, population.embedded)
    moved = problem.embedding.embed(codes)
    squared = sliced_squared_distance(moved, population.embedded, theta, problem.bounds.trim)
    return math.sqrt(squared)


def output_comparison(
    problem: Problem, population: Population, outputs: Array, directions: Array
) -> Comparison:
    """Outputs of the moved rows against the target, on these directions (K, M)."""
    theta = directions_like(directions, outputs)
    trim, size = problem.bounds.trim, outputs.shape[0]
    moving, target = project(outputs, theta), problem.target
    if isinstance(target, Sample) and not target.exact:
        # Values drawn from a larger population bring their own sampling error into the limit.
        values = project(asarray_like(target.values, outputs), theta)
        return Comparison.independent(moving, values, trim=trim)
    if isinstance(target, Derived) and not isinstance(target, Constant):
        return Comparison.paired(moving, project(population.wanted, theta), trim=trim)
    return Comparison.known_target(
        moving, lambda share: target_reference(target, size, share, outputs, theta), trim
    )


def target_reference(target: Known, size: int, trim: float, like: Array, theta: Array) -> Reference:
    """A target as the fixed side of a distance to ``size`` rows: known, or values taken as it."""
    if isinstance(target, Sample):
        values = project(asarray_like(target.values, like), theta)
        return reference(namespace(values).sort(values, axis=-1, stable=False), size, trim)
    if isinstance(target, Constant):
        level = project(target.of(like[:1, ...]), theta)
        partners = asarray_like(np.ones((1, size)), like) * level
        spread = np.zeros(theta.shape[-1])
    else:
        means, variance = _cell_moments(target, size, trim)
        partners, spread = means[None, :], np.array([variance])
    weights = cell_weights(size, trim, like)
    return Reference(partners=partners, weights=weights, spread=spread).like(like)


@lru_cache(maxsize=16)
def _cell_moments(target: DistributionTarget, size: int, trim: float) -> tuple[np.ndarray, float]:
    """Means (size,) of the cells of a known quantile function, and their total variance."""
    means, edges = np.zeros(size), np.clip(np.arange(size + 1) / size, trim, 1.0 - trim)
    weights: np.ndarray = cell_weights(size, trim, means)
    inside = weights > 0
    # Both ends of every cell inside the trim, each once.
    breaks = edges[np.concatenate([inside, [False]]) | np.concatenate([[False], inside])]
    means[inside], variances = target.cells(breaks)
    # Trimmed cells weigh nothing; giving them their neighbour's mean keeps partners sorted.
    first, last = np.flatnonzero(inside)[[0, -1]]
    means[:first], means[last + 1 :] = means[first], means[last]
    return means, float(weights[inside] @ variances)


def chance_distance(values: np.ndarray, rows: int, trim: float, rng: np.random.Generator) -> float:
    """Distance of two samples (rows, K) and (m, K) that are both drawn from these values (m, K).

    The noise floor of a sampled target: the root of the mean squared distance over resamples.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> values = rng.normal(size=(200, 1))
    >>> 0.05 < chance_distance(values, 200, 0.05, rng) < 0.2
    True
    """
    columns = values.shape[1]
    theta = np.ones((1, 1)) if columns == 1 else direction_blocks(columns, rng)
    squares = []
    for _ in range(CHANCE_DRAWS):
        one, other = rng.choice(values, rows), rng.choice(values, len(values))
        squares.append(sliced_squared_distance(one, other, theta, trim))
    return math.sqrt(float(np.mean(squares)))


def nearest_distances(
    problem: Problem, background: np.ndarray, factual: Array, moved: Array
) -> tuple[np.ndarray, np.ndarray]:
    """Return how far rows are from the nearest background row, before and after, each (n,).

    One background row with the very codes of a row before is that row itself, and no neighbour.
    """
    embed, place = problem.embedding.embed, problem.outputs.place
    tree = cKDTree(to_numpy(embed(place(background))))
    # Adding 0 makes -0 and 0 the same bytes.
    rows = to_numpy(factual)
    known = {row.tobytes(): k for k, row in enumerate(background.astype(rows.dtype) + 0.0)}
    own = np.array([known.get(row.tobytes(), -1) for row in rows + 0.0])

    def nearest(codes: Array) -> np.ndarray:
        # Two neighbours are enough: one of them at most is the row itself.
        distances, neighbours = tree.query(to_numpy(embed(codes)), k=2)
        return np.asarray(np.where(neighbours[:, 0] == own, distances[:, 1], distances[:, 0]))

    return nearest(factual), nearest(moved)
