"""The fit is a recording; the map replays it on any row.

One iteration is a row-wise function once its monotone maps are known: per direction from the current
projection to the factual quantile, for outputs from the current output to the target quantile. A
``Step`` holds those tables and eta; a ``Map`` is the sequence of steps. The fit itself moves its rows
by applying the step it just recorded, so replaying the map on the fit's rows gives the fit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from elsewise._arrays import Array, asarray_like, namespace
from elsewise.problem import Population, Problem, populate
from elsewise.proposals import Aim, View, descent_step, row_costs, row_noise, smooth_steps
from elsewise.transport import MonotoneMaps, project

__all__ = ["Map", "Motion", "Rows", "Step", "aim_at", "apply_map", "move", "replay", "start"]


class Rows(NamedTuple):
    """Rows on the way: where they are and what the model says there."""

    codes: Array
    """Array (n, p)."""
    outputs: Array
    """Array (n, K)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """How rows move within an iteration; part of the map, so that replaying needs nothing else."""

    gradient: bool = False
    """True: the paper's gradient step. False: propose legal rows, keep the best."""
    tau: float = 1.0
    """Step size of the gradient step."""
    noise: float = 0.0
    """Standard deviation of the noise added to the start, in embedding units."""
    rho: float = 1.0
    """Share of the transported anchor in the anchor; the rest is the factual row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One recorded iteration."""

    eta: float
    """Weight of the outputs."""
    directions: Array
    """Array (d, N): directions of the input plans."""
    anchors: MonotoneMaps
    """Current projection to factual quantile, one map per direction."""
    output_directions: Array
    """Array (K, M): directions of the output plans; [[1]] for one output column."""
    wanted: MonotoneMaps | None
    """Current output to target quantile; None where the target is a function of the row's own output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """A sequence of recorded steps: the counterfactual map, row by row."""

    steps: tuple[Step, ...]
    motion: Motion


def start(problem: Problem, motion: Motion, population: Population) -> Rows:
    """Line 1 of Algorithm 1: x^0 = x' + noise (legal at once; no noise by default)."""
    if motion.noise == 0.0:
        return Rows(population.codes, population.outputs)
    noise = row_noise(population.codes, problem.seed, problem.embedding.size)
    shift = motion.noise * asarray_like(noise, population.embedded)
    moved = _legal_moves(problem, population, population.codes, [shift])
    return Rows(moved, problem.outputs.values(moved))


def aim_at(
    step: Step, motion: Motion, population: Population, embedded: Array, outputs: Array
) -> Aim:
    """Anchor and wanted output of every row, from the recorded maps."""
    anchor = _transported(step.anchors, embedded, step.directions)
    if motion.rho < 1.0:
        anchor = motion.rho * anchor + (1.0 - motion.rho) * population.embedded
    wanted = population.wanted
    if wanted is None and step.wanted is not None:
        wanted = _transported(step.wanted, outputs, step.output_directions)
    return Aim(anchor=anchor, wanted=wanted, eta=step.eta)


def _transported(maps: MonotoneMaps, points: Array, directions: Array) -> Array:
    """Points moved by the mean of their directional displacements.

    For complete orthonormal blocks this is the minimizer of mean_k (theta_k . z - t_ik)^2 over z.
    """
    xp = namespace(points)
    dimension, count = directions.shape
    shift = maps.displacement(project(points, directions))
    rows = xp.matmul(xp.matrix_transpose(shift), xp.matrix_transpose(directions))
    return points + rows * (dimension / count)


def move(
    problem: Problem, motion: Motion, population: Population, rows: Rows, embedded: Array, aim: Aim
) -> Rows:
    """Lines 8 and 9 of Algorithm 1: every row takes its step."""
    _, slope = problem.outputs.values_and_gradient(rows.codes)
    view = View(embedded, rows.outputs, problem.embedding.pull(slope))
    if motion.gradient:
        steps = [descent_step(aim, view, motion.tau)]
        moved = _legal_moves(problem, population, rows.codes, steps)
        return Rows(moved, problem.outputs.values(moved))
    return _keep_best(problem, population, rows, aim, smooth_steps(problem, aim, view))


def _keep_best(
    problem: Problem, population: Population, rows: Rows, aim: Aim, steps: list[Array]
) -> Rows:
    """Evaluate every proposal in one batch; each row keeps the cheapest, itself included."""
    xp = namespace(rows.codes)
    n, count = rows.codes.shape[0], len(steps) + 1
    moved = _legal_moves(problem, population, rows.codes, steps)
    codes = xp.concat([rows.codes, moved])
    outputs = xp.concat([rows.outputs, problem.outputs.values(moved)])
    embedded = xp.reshape(problem.embedding.embed(codes), (count, n, -1))
    costs = row_costs(aim, embedded, xp.reshape(outputs, (count, n, -1)))
    # The row itself comes first, so that a tie leaves it where it is.
    best = xp.argmin(costs, axis=0) * n + asarray_like(np.arange(n), rows.codes)
    return Rows(xp.take(codes, best, axis=0), xp.take(outputs, best, axis=0))


def _legal_moves(
    problem: Problem, population: Population, codes: Array, steps: list[Array]
) -> Array:
    """Codes (C n, p) of every row moved by each of C steps (n, d), made legal; pinned rows stay."""
    xp = namespace(codes)
    shape = (len(steps), *codes.shape)
    repeated = xp.reshape(xp.broadcast_to(codes, shape), (-1, codes.shape[1]))
    moved = xp.reshape(problem.embedding.push(repeated, xp.concat(steps)), shape)
    legal = population.legal.legalize(moved)
    kept = xp.where(population.pinned[:, None], population.codes, legal)
    return xp.reshape(kept, (-1, codes.shape[1]))


def replay(problem: Problem, recorded: Map, codes: Array) -> Iterator[Rows]:
    """Yield the rows before the first step and after each."""
    population = populate(problem, codes)
    motion = recorded.motion
    rows = start(problem, motion, population)
    yield rows
    for step in recorded.steps:
        embedded = problem.embedding.embed(rows.codes)
        aim = aim_at(step, motion, population, embedded, rows.outputs)
        rows = move(problem, motion, population, rows, embedded, aim)
        yield rows


def apply_map(problem: Problem, recorded: Map, codes: Array) -> Rows:
    """Apply the map to rows it may never have seen."""
    return deque(replay(problem, recorded, codes), maxlen=1)[0]
