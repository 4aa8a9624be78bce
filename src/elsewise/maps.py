"""The fit is a recording; the map replays it on any row.

One iteration is a row-wise function once its monotone maps are known: per direction from the
current projection to the factual quantile, for outputs from the current output to the target
quantile. A ``Step`` holds those tables, the edits and eta; a ``Map`` is the sequence of steps. The
fit itself moves its rows by applying the step it just recorded, so replaying the map on the fit's
rows gives the fit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from elsewise._arrays import Array, asarray_like, namespace
from elsewise.edits import Edits, apply_edits
from elsewise.problem import Population, Problem, populate
from elsewise.proposals import (
    SMOOTH_OFFERS,
    Aim,
    View,
    descent_step,
    input_costs,
    on_grid,
    output_costs,
    row_costs,
    row_noise,
    smooth_steps,
)
from elsewise.transport import MonotoneMaps, project

__all__ = ["Map", "Motion", "Rows", "Step", "aim_at", "apply_map", "move", "replay", "start"]


NEAR = 1e-8
"""A number within this share of a standard deviation of its factual value is that value."""
BLOCK_CELLS = 1 << 24
"""Cells of proposals handled at once: rows are moved in blocks of at most this size."""


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
    """Current output to target quantile; None where rows know what they want."""
    edits: Edits | None
    """Edits offered to every row; None where the model's slope alone leads."""
    sparsity: float = 0.0
    """Cost of a changed cell, in units of a move by one standard deviation, squared."""


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
    moved = _legal(problem, population, _stepped(problem, population.codes, [shift]))[0, ...]
    return Rows(moved, problem.precise.values(moved))


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


class Moved(NamedTuple):
    """The rows after an iteration, and which proposals they took."""

    rows: Rows
    taken: Array
    """int Array (n,): 0 for a row that stayed, c for the c-th proposal, edits first."""
    costs: Array
    """Array (2, n): each row's cost before and after."""


def move(
    problem: Problem,
    motion: Motion,
    population: Population,
    step: Step,
    rows: Rows,
    embedded: Array,
) -> Moved:
    """Lines 8 and 9 of Algorithm 1: every row takes its step, a bounded number at a time."""
    n, p = rows.codes.shape
    offers = len(SMOOTH_OFFERS) + (0 if step.edits is None else step.edits.sources.shape[0])
    size = max(1, BLOCK_CELLS // (offers * p))
    if n <= size:
        return _move(problem, motion, population, step, rows, embedded)
    xp = namespace(rows.codes)
    blocks = [slice(first, min(first + size, n)) for first in range(0, n, size)]
    parts = [
        _move(
            problem,
            motion,
            population.block(block),
            step,
            Rows(rows.codes[block, ...], rows.outputs[block, ...]),
            embedded[block, ...],
        )
        for block in blocks
    ]
    return Moved(
        Rows(
            xp.concat([part.rows.codes for part in parts]),
            xp.concat([part.rows.outputs for part in parts]),
        ),
        xp.concat([part.taken for part in parts]),
        xp.concat([part.costs for part in parts], axis=1),
    )


def _move(
    problem: Problem,
    motion: Motion,
    population: Population,
    step: Step,
    rows: Rows,
    embedded: Array,
) -> Moved:
    aim = aim_at(step, motion, population, embedded, rows.outputs)
    if motion.gradient:
        return _descend(problem, motion, population, aim, rows, embedded)
    offers = _offers(problem, population, step, aim, rows, embedded)
    return _keep_best(problem, population, step, aim, rows, embedded, offers)


def _descend(
    problem: Problem,
    motion: Motion,
    population: Population,
    aim: Aim,
    rows: Rows,
    embedded: Array,
) -> Moved:
    """The paper's step: along the negative gradient, whatever it leads to."""
    xp = namespace(rows.codes)
    downhill = descent_step(aim, _view(problem, rows, embedded), motion.tau)
    codes = _legal(problem, population, _stepped(problem, rows.codes, [downhill]))[0, ...]
    moved = Rows(codes, problem.precise.values(codes))
    before = row_costs(aim, embedded, rows.outputs)
    after = row_costs(aim, problem.embedding.embed(codes), moved.outputs)
    return Moved(moved, xp.ones_like(xp.argsort(before)), xp.stack([before, after]))


def _offers(
    problem: Problem, population: Population, step: Step, aim: Aim, rows: Rows, embedded: Array
) -> Array:
    """Legal proposals (C, n, p) for every row, edits first."""
    xp = namespace(rows.codes)
    offers = []
    if step.edits is not None:
        factual = population.codes
        offers.append(
            apply_edits(step.edits, problem.embedding, aim, rows.codes, factual, embedded)
        )
    if problem.precise.smooth:
        view = _view(problem, rows, embedded)
        steps = smooth_steps(problem, aim, view)
        if step.sparsity > 0:
            # Only what has moved already moves on.
            moved = xp.astype(embedded != population.embedded, embedded.dtype)
            steps = [moved * one for one in steps]
        offers.append(_stepped(problem, rows.codes, steps))
    return _legal(problem, population, xp.concat(offers))


def _keep_best(
    problem: Problem,
    population: Population,
    step: Step,
    aim: Aim,
    rows: Rows,
    embedded: Array,
    offers: Array,
) -> Moved:
    """Each row keeps its cheapest proposal, or stays; the model sees what could be cheaper."""
    xp = namespace(rows.codes)
    count, n, p = offers.shape
    flat = xp.reshape(offers, (count * n, p))
    places = xp.reshape(problem.embedding.embed(flat), (count, n, -1))
    before = row_costs(aim, embedded, rows.outputs)
    inputs = input_costs(aim, places)
    if step.sparsity > 0:
        price = step.sparsity / embedded.shape[-1]
        before = before + price * _changed(population, rows.codes)
        inputs = inputs + price * _changed(population, offers)
    # Output costs are never negative: what the inputs alone make too dear need not be evaluated.
    new = xp.any(_differs(offers, rows.codes), axis=-1)
    worth = xp.reshape((inputs < before) & new, (-1,))
    if problem.obeys is not None and bool(xp.any(worth)):
        keeps = xp.zeros_like(worth)
        keeps[worth] = asarray_like(problem.obeys(flat[worth, ...]), worth)
        worth = keeps
    if not bool(xp.any(worth)):
        return Moved(rows, xp.zeros_like(xp.argsort(before)), xp.stack([before, before]))
    outputs = xp.zeros((count * n, rows.outputs.shape[1]), dtype=rows.outputs.dtype)
    outputs = asarray_like(outputs, rows.outputs)
    outputs[worth, ...] = problem.precise.values(flat[worth, ...])
    missed = output_costs(aim.wanted, aim.eta, xp.reshape(outputs, (count, n, -1)))
    total = inputs + missed
    costs = xp.where(xp.reshape(worth, (count, n)), total, xp.full_like(total, np.inf))
    best = xp.argmin(costs, axis=0)
    index = best * n + asarray_like(np.arange(n), rows.codes)
    cheapest = xp.take(xp.reshape(costs, (-1,)), index)
    better = cheapest < before  # a tie leaves a row where it is
    moved = Rows(
        xp.where(better[:, None], xp.take(flat, index, axis=0), rows.codes),
        xp.where(better[:, None], xp.take(outputs, index, axis=0), rows.outputs),
    )
    taken = xp.where(better, best + 1, xp.zeros_like(best))
    return Moved(moved, taken, xp.stack([before, xp.where(better, cheapest, before)]))


def _differs(codes: Array, others: Array) -> Array:
    """Cells that differ; two missing cells do not."""
    xp = namespace(codes)
    return (codes != others) & ~(xp.isnan(codes) & xp.isnan(others))


def _changed(population: Population, codes: Array) -> Array:
    """Number of cells of each row that are not factual."""
    xp = namespace(codes)
    return xp.sum(xp.astype(_differs(codes, population.codes), codes.dtype), axis=-1)


def _view(problem: Problem, rows: Rows, embedded: Array) -> View:
    """The rows with the model's slope at them."""
    _, slope = problem.precise.values_and_gradient(rows.codes)
    return View(embedded, rows.outputs, problem.embedding.pull(slope))


def _stepped(problem: Problem, codes: Array, steps: list[Array]) -> Array:
    """Codes (C, n, p) of every row moved by each of C steps (n, d)."""
    xp = namespace(codes)
    shape = (len(steps), *codes.shape)
    repeated = xp.reshape(xp.broadcast_to(codes, shape), (-1, codes.shape[1]))
    moved = problem.embedding.push(repeated, xp.concat(steps))
    return xp.reshape(on_grid(problem.embedding, repeated, moved), shape)


def _legal(problem: Problem, population: Population, moved: Array) -> Array:
    """Make proposals (C, n, p) legal; pinned rows stay, and so do cells back where they were."""
    xp = namespace(moved)
    legal = population.legal.legalize(moved)
    back = xp.abs(legal - population.codes) <= NEAR * problem.embedding.reach
    return xp.where(back | population.pinned[:, None], population.codes, legal)


def replay(problem: Problem, recorded: Map, codes: Array) -> Iterator[Rows]:
    """Yield the rows before the first step and after each."""
    population = populate(problem, codes)
    motion = recorded.motion
    rows = start(problem, motion, population)
    yield rows
    for step in recorded.steps:
        embedded = problem.embedding.embed(rows.codes)
        rows = move(problem, motion, population, step, rows, embedded).rows
        yield rows


def apply_map(problem: Problem, recorded: Map, codes: Array) -> Rows:
    """Apply the map to rows it may never have seen."""
    return deque(replay(problem, recorded, codes), maxlen=1)[0]
