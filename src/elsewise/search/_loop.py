"""The paper's Algorithm 1 as pure functions: init, step, iterate.

A ``State`` is complete: the rows, their outputs, their limits and the steps that led there. The
rows that are returned are the rows whose limits were computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from elsewise._arrays import Array, namespace, row_products, to_numpy
from elsewise._resources import Resources, using
from elsewise.maps import Map
from elsewise.measure import SideMeasure, Sides, measure_sides, prepare_sides
from elsewise.moves import Motion, MoveContext, Rows, Step, Stock, move, start
from elsewise.request import Population, Problem, generator, populate
from elsewise.settings import Balance, Settings
from elsewise.targets import ResolvedShare
from elsewise.transport import direction_blocks, directions_like

# Directions of more dimensions are drawn again when they are needed again.
KEPT_DIMENSIONS = 256


class Iteration(NamedTuple):
    """One row of the history; distances on the root scale."""

    iteration: int
    eta: float
    """Weight of the outputs in the step that led here; 0 at the start."""
    inputs: float
    """Input distance, trimmed, on the optimizer's directions."""
    inputs_limit: float
    """Upper limit of that distance; NaN where the inputs have no bound, so that none is needed."""
    outputs: float
    outputs_limit: float
    """The same for the outputs."""
    objective: float
    """Q at the step's eta and plans, after the step."""
    change: float
    """Root mean square move of this iteration, in standard deviations of a row."""


class Trail(NamedTuple):
    """The steps so far, newest first, shared between states."""

    step: Step
    before: Trail | None


class Setup(NamedTuple):
    """What stays the same during a run."""

    settings: Settings
    population: Population
    motion: Motion
    sides: Sides
    """What both sides are compared with."""
    level: float
    """Confidence level of each side's limit."""
    resources: Resources


class Look(NamedTuple):
    """Both sides of some rows: how far they are, and the plans for their next step."""

    directions: Array
    """Array (d, N): directions of the plans; the step to these rows was not made on them."""
    inputs: SideMeasure
    outputs: SideMeasure


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One iterate, with everything known about it."""

    rows: Rows
    embedded: Array
    """Array (n, d): the rows' embedding."""
    look: Look
    record: Iteration
    balance: Balance
    stock: Stock
    """What the next edits are drawn from."""
    trail: Trail | None
    setup: Setup

    @property
    def still(self) -> bool:
        """Whether the rows are where they were before any step."""
        return self.trail is None and not self.setup.motion.noise

    def map(self) -> Map:
        """The recorded map that leads from the factual rows to this state."""
        steps: list[Step] = []
        trail = self.trail
        while trail is not None:
            steps.append(trail.step)
            trail = trail.before
        return Map(steps=tuple(reversed(steps)), motion=self.setup.motion)


def init(problem: Problem, settings: Settings) -> State:
    """Line 1: the start, x' (plus noise for the paper's gradient step)."""
    with using(settings.resources):
        population, gradient = populate(problem), settings.step == "gradient"
        # A share counts the rows that pass: nearly is not enough.
        near = 0.0 if isinstance(problem.target, ResolvedShare) else problem.bounds.outputs or 0.0
        motion = Motion(
            gradient=gradient,
            tau=settings.tau,
            noise=settings.start_noise,
            population_weight=1.0 if gradient else settings.population_weight,
            near=near,
        )
        sides = prepare_sides(problem, population, settings.smoothing)
        level = problem.bounds.side_level
        setup = Setup(settings, population, motion, sides, level, settings.resources)
        rows = start(problem, motion, population)
        embedded = problem.embedding.embed(rows.codes, population.complete)
        look = _look(problem, setup, rows, embedded, 0)
        return State(
            rows=rows,
            embedded=embedded,
            look=look,
            record=_record(setup, look, 0, 0.0, (math.nan, math.inf)),
            balance=settings.balance,
            stock=Stock.of(problem, settings.edits),
            trail=None,
            setup=setup,
        )


def step(problem: Problem, state: State) -> State:
    """Lines 3 to 9: plans (eqs. 12, 13), limits (eqs. 10, 11), eta, and a step down eq. (15)."""
    setup, look, rows, stock = state.setup, state.look, state.rows, state.stock
    with using(setup.resources):
        # Line 7. Outputs are weighed in their own unit: a model in cents is as one in euros.
        gap_inputs = _gap(problem.bounds.inputs, state.record.inputs_limit)
        gap_outputs = _gap(problem.bounds.outputs, state.record.outputs_limit) / problem.unit
        eta, balance = state.balance.choose(gap_inputs, gap_outputs)
        iteration = state.record.iteration + 1
        edits = None if setup.motion.gradient else stock.draw(problem, rows.codes, iteration)
        assert look.inputs.plan is not None  # inputs always have a plan
        recorded = Step(
            eta=eta,
            directions=look.directions,
            # Lines 3 and 4: the plans are the sorts behind the limits; recorded as monotone maps.
            anchors=look.inputs.plan,
            output_directions=setup.sides.output_directions,
            wanted=look.outputs.plan,
            edits=edits,
            sparsity=stock.sparsity,
        )
        # Lines 8 and 9.
        now = MoveContext(problem, setup.motion, setup.population, recorded, rows, state.embedded)
        moved = move(now)
        xp, away = namespace(rows.codes), moved.embedded - state.embedded
        change = xp.sqrt(xp.mean(row_products(away, away)))
        measures = xp.stack([xp.mean(moved.costs[1, ...]), change])
        look = _look(problem, setup, moved.rows, moved.embedded, iteration)
        return State(
            rows=moved.rows,
            embedded=moved.embedded,
            look=look,
            # Numbers are left on their device until both sides have been measured.
            record=_record(setup, look, iteration, eta, to_numpy(measures).tolist()),
            balance=balance,
            stock=stock if edits is None else stock.credited(edits, moved.gains, len(away)),
            trail=Trail(recorded, state.trail),
            setup=setup,
        )


def _gap(bound: float | None, limit: float) -> float:
    """Room left under a bound; a side without a bound, or a limit (NaN), never complains."""
    return math.inf if bound is None or math.isnan(limit) else bound - limit


def _look(problem: Problem, setup: Setup, rows: Rows, embedded: Array, iteration: int) -> Look:
    """Lines 5 and 6: both sides of these rows, on directions of their own."""
    settings, size = setup.settings, embedded.shape[1]
    # Directions are new at every iteration, because rows move where fixed ones do not look.
    drawn = iteration if settings.redraw else 0
    # Those of many dimensions are too large for all of them to be kept.
    draw = _draw_directions if size <= KEPT_DIMENSIONS else _draw_directions.__wrapped__
    theta = draw(problem.seed, drawn, size, settings.directions)
    directions = directions_like(theta, embedded)
    return Look(
        directions, *measure_sides(problem, setup.sides, embedded, rows.outputs, directions)
    )


@lru_cache(maxsize=256)
def _draw_directions(seed: int, iteration: int, size: int, minimum: int) -> Any:
    """The directions of an iteration, which many runs of one search go through."""
    drawn = direction_blocks(size, generator(seed, f"directions {iteration}"), minimum)
    if isinstance(drawn, np.ndarray):
        drawn.flags.writeable = False
    return drawn


def _record(
    setup: Setup, look: Look, iteration: int, eta: float, measures: Sequence[float]
) -> Iteration:
    """The row of the history for rows that look so."""
    objective, change = measures
    limits = [
        math.nan if side.limit is None else side.limit.upper(setup.level)
        for side in (look.inputs, look.outputs)
    ]
    return Iteration(
        iteration=iteration,
        eta=eta,
        inputs=look.inputs.distance,
        inputs_limit=limits[0],
        outputs=look.outputs.distance,
        outputs_limit=limits[1],
        objective=objective,
        change=change,
    )
