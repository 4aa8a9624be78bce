"""One look at the rows of an iterate: how far they are, how sure that is, where the plans lead.

All of it comes from the same sorts. Directions are looked at a few at a time, in threads, and only
small results are kept: distances, a number per row, and the plans as tables of about sqrt(n) knots.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from elsewise._arrays import Array, asarray_like, namespace
from elsewise._resources import parallel
from elsewise.confidence import (
    Comparison,
    Method,
    UpperLimit,
    influence,
    known_limit,
    normal_limit,
)
from elsewise.entropic import entropic_plans
from elsewise.problem import Population, Problem
from elsewise.sides import target_reference
from elsewise.targets import Constant, Derived, Sample
from elsewise.transport import (
    MonotoneMaps,
    direction_parts,
    fit_monotone_maps,
    join_maps,
    project,
    reference,
    sorted_squared_distances,
)

__all__ = ["Look", "Recording", "look_at_inputs", "look_at_outputs", "target_partners"]


class Look(NamedTuple):
    """One side of an iterate."""

    distance: float
    """Trimmed, root scale."""
    limit: UpperLimit | None
    """Its upper limit; None where the side has no bound, so that no limit is needed."""
    plan: MonotoneMaps | None
    """Where the plan leads, as maps; None where rows know what they want."""


class Recording(NamedTuple):
    """How plans are recorded."""

    smoothing: float
    """Window of the maps in units of sqrt(n) ranks."""
    entropy: float | None
    """Epsilon of entropic plans, in units of the variance of the side they lead to."""


class _Part(NamedTuple):
    """What some of the directions say."""

    directions: int
    squares: Array
    """Sum of the squared distances: a number, left on its device until it is needed."""
    influence: Array
    """Array (n,): mean influence of each row on the squared distance; 0 if no limit is needed."""
    plan: MonotoneMaps


def look_at_inputs(
    problem: Problem,
    population: Population,
    embedded: Array,
    directions: Array,
    recording: Recording,
) -> Look:
    """Compare moved rows (n, d) with the factual ones, on these directions (d, N)."""
    limits = problem.limits
    exact = limits.method == Method.EXACT
    limited = limits.inputs is not None and not exact

    def look(theta: Array) -> _Part:
        moving, fixed = project(embedded, theta), project(population.embedded, theta)
        xp = namespace(moving)
        count = int(theta.shape[-1])
        rows: Array = 0.0
        if limited:
            comparison = Comparison.paired(moving, fixed, limits.trim)
            assert comparison.fixed is not None  # a sample, paired
            distance, (rows,) = influence(comparison)
            squares = count * distance**2
            moving, fixed = comparison.moving.sorted, comparison.fixed.sorted
        else:
            moving = xp.sort(moving, axis=-1, stable=False)
            fixed = xp.sort(fixed, axis=-1, stable=False)
            side = reference(fixed, moving.shape[-1], limits.trim)
            squares = xp.sum(sorted_squared_distances(moving, side))
        return _Part(count, squares, rows, _recorded(moving, fixed, recording, embedded))

    parts = list(parallel(look, direction_parts(directions, embedded.shape[0])))
    total = sum(part.directions for part in parts)
    distance = math.sqrt(sum(float(part.squares) for part in parts) / total)
    limit: UpperLimit | None = None
    if limited:
        rows: Array = 0.0
        for part in parts:
            rows = rows + part.influence * (part.directions / total)
        limit = normal_limit(distance, (rows,))
    elif exact:
        limit = known_limit(distance)
    return Look(distance, limit, join_maps([part.plan for part in parts]))


def look_at_outputs(
    problem: Problem,
    compared: Comparison,
    partners: Array | None,
    recording: Recording,
) -> Look:
    """Read a comparison of outputs with the target; partners (M, n) are what each rank wants."""
    limits = problem.limits
    limit: UpperLimit | None = None
    if limits.method == Method.EXACT:
        distance = compared.distance
        limit = known_limit(distance)
    elif limits.outputs is not None:
        distance, rows = influence(compared)
        limit = normal_limit(distance, rows)
    else:
        distance = compared.distance
    if partners is None:
        return Look(distance, limit, None)
    fixed = partners
    if recording.entropy is not None and compared.fixed is not None:
        fixed = compared.fixed.sorted
    plan = _recorded(compared.moving.sorted, fixed, recording, partners)
    return Look(distance, limit, plan)


def target_partners(problem: Problem, population: Population, across: Array) -> Array | None:
    """Target quantiles (M, n) by rank; None where rows know what they want."""
    target = problem.target
    if isinstance(target, Derived | Constant):
        return None
    xp = namespace(population.outputs)
    size = population.outputs.shape[0]
    if isinstance(target, Sample):
        values = asarray_like(target.values, population.outputs)
        return reference(xp.sort(project(values, across), axis=-1, stable=False), size).partners
    return target_reference(target, size, 0.0, population.outputs, across).partners


def _recorded(
    moving_sorted: Array, fixed_sorted: Array, recording: Recording, like: Array
) -> MonotoneMaps:
    """The plan between sorted samples, as maps in the precision of ``like``."""
    partners = fixed_sorted
    if recording.entropy is not None:
        partners = _mean_partners(moving_sorted, fixed_sorted, recording.entropy)
    maps = fit_monotone_maps(moving_sorted, partners, recording.smoothing)
    return MonotoneMaps(
        knots=asarray_like(maps.knots, like), displacements=asarray_like(maps.displacements, like)
    )


def _mean_partners(moving_sorted: Array, fixed_sorted: Array, entropy: float) -> Array:
    """Mean partners (N, n) in entropic plans; to a side of one value every plan is the same."""
    xp = namespace(moving_sorted)
    variances = xp.var(fixed_sorted, axis=-1)
    epsilon = entropy * xp.where(variances > 0, variances, xp.ones_like(variances))
    return entropic_plans(moving_sorted, fixed_sorted, epsilon).targets
