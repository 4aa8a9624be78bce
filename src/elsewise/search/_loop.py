"""The paper's Algorithm 1 as pure functions: init, step, iterate.

A ``State`` is complete: the rows, their outputs, their limits and the steps that led there. The
rows that are returned are the rows whose limits were computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from elsewise._arrays import Array, namespace, row_products, to_numpy
from elsewise._resources import Resources, using
from elsewise.confidence import UpperLimit
from elsewise.maps import Map
from elsewise.measure import SideMeasure, Sides, measure_sides, prepare_sides
from elsewise.moves import (
    Edits,
    EditScores,
    Motion,
    MoveContext,
    Rows,
    Step,
    Unit,
    donor_edits,
    draw_edits,
    move,
    pair_edits,
    revert_edits,
    start,
    units,
    update_scores,
)
from elsewise.request import Population, Problem, generator, populate
from elsewise.settings import Balance, Settings
from elsewise.transport import direction_blocks, directions_like


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


# Directions of more dimensions are drawn again when they are needed again.
KEPT_DIMENSIONS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What stays the same during a run."""

    population: Population
    settings: Settings
    motion: Motion
    resources: Resources
    smooth: bool
    """Whether the model has a slope."""
    level: float
    """Confidence level of each side's limit."""
    sides: Sides
    """What both sides are compared with."""
    units: tuple[Unit, ...]
    """What edits can move."""
    background: np.ndarray
    """ndarray (m, p): rows that edits take values from."""
    background_outputs: np.ndarray
    """ndarray (m, K)."""
    donors: bool = False
    """Whether rows are offered donors, and points on the way to them, beside what they are."""
    pairs: bool = False
    """Whether edits change one unit and put another back."""
    sparsity: float = 0.0
    """Cost of a changed cell, in units of a move by one standard deviation, squared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One iterate, with everything known about it."""

    rows: Rows
    embedded: Array
    """Array (n, d): the rows' embedding."""
    record: Iteration
    directions: Array
    """Array (d, N): directions of the plans at this iterate; the step here was not made on them."""
    input_side: SideMeasure
    output_side: SideMeasure
    balance: Balance
    scores: EditScores
    trail: Trail | None
    setup: Setup

    @property
    def inputs(self) -> UpperLimit | None:
        """Upper limit of the input distance; None where the inputs have no bound."""
        return self.input_side.limit

    @property
    def outputs(self) -> UpperLimit | None:
        """Upper limit of the output distance; None where the outputs have no bound."""
        return self.output_side.limit

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


def _motion_of(settings: Settings) -> Motion:
    """Return the part of the settings that the recorded map needs."""
    gradient = settings.step == "gradient"
    weight = 1.0 if gradient else settings.population_weight
    return Motion(
        gradient=gradient, tau=settings.tau, noise=settings.start_noise, population_weight=weight
    )


def init(problem: Problem, settings: Settings) -> State:
    """Line 1: the start, x' (plus noise for the paper's gradient step)."""
    with using(settings.resources):
        return _init(problem, settings)


def _init(problem: Problem, settings: Settings) -> State:
    population = populate(problem)
    background = to_numpy(problem.background)
    moving = units(problem.schema, np.concatenate([background, to_numpy(problem.factual)]))
    setup = Setup(
        population=population,
        settings=settings,
        motion=_motion_of(settings),
        resources=settings.resources,
        smooth=problem.outputs.smooth,
        level=problem.bounds.side_level,
        sides=prepare_sides(problem, population, settings.smoothing),
        units=moving,
        background=background,
        background_outputs=to_numpy(problem.of_background()),
    )
    rows = start(problem, setup.motion, population)
    info = StepInfo(0, 0.0, np.array([math.nan, math.inf]))
    embedded = problem.embedding.embed(rows.codes, population.complete)
    scores = EditScores.none(len(moving))
    return _measured(problem, setup, rows, embedded, settings.balance, scores, None, info)


class StepInfo(NamedTuple):
    """How a state was made."""

    iteration: int
    eta: float
    measures: Array
    """Array (2,): objective and change, left on their device until they are needed."""


def step(problem: Problem, state: State) -> State:
    """Lines 3 to 9: plans (eqs. 12, 13), limits (eqs. 10, 11), eta, and a step down eq. (15)."""
    with using(state.setup.resources):
        return _step(problem, state)


def _step(problem: Problem, state: State) -> State:
    setup, rows = state.setup, state.rows
    xp = namespace(rows.codes)
    # Line 7. Outputs are weighed in their own unit, so that a model in cents is as one in euros.
    gap_inputs = _gap(problem.bounds.inputs, state.record.inputs_limit)
    gap_outputs = _gap(problem.bounds.outputs, state.record.outputs_limit) / problem.unit
    eta, balance = state.balance.choose(gap_inputs, gap_outputs)
    iteration = state.record.iteration + 1
    anchors = state.input_side.plan
    assert anchors is not None  # inputs always have a plan
    recorded = Step(
        eta=eta,
        directions=state.directions,
        # Lines 3 and 4: the plans are the sorts behind the limits; recorded as monotone maps.
        anchors=anchors,
        output_directions=setup.sides.output_directions,
        wanted=state.output_side.plan,
        edits=_drawn_edits(problem, state, iteration),
        sparsity=setup.sparsity,
    )
    # Lines 8 and 9.
    embedded = state.embedded
    now = MoveContext(problem, setup.motion, setup.population, recorded, rows, embedded)
    moved = move(now)
    moves = moved.embedded - embedded
    info = StepInfo(
        iteration=iteration,
        eta=eta,
        measures=xp.stack(
            [xp.mean(moved.costs[1, ...]), xp.sqrt(xp.mean(row_products(moves, moves)))]
        ),
    )
    scores = state.scores
    if recorded.edits is not None:
        gains = to_numpy(moved.gains)[: recorded.edits.sources.shape[0]]
        scores = update_scores(scores, recorded.edits, setup.units, gains / rows.codes.shape[0])
    trail = Trail(recorded, state.trail)
    return _measured(problem, setup, moved.rows, moved.embedded, balance, scores, trail, info)


def _drawn_edits(problem: Problem, state: State, iteration: int) -> Edits | None:
    """Edits for this iteration: where the model has no slope, or something is not a number."""
    setup, smooth = state.setup, state.setup.smooth
    if setup.motion.gradient:
        return None
    codes, rng = state.rows.codes, problem.generator(f"edits {iteration}")
    seen = setup.units, setup.background, setup.background_outputs
    if setup.donors and iteration % 2:
        return donor_edits(*seen, rng).like(codes)
    by_slopes = smooth and all(unit.choices is None for unit in setup.units)
    if by_slopes and setup.sparsity == 0:
        return None
    # A model with a slope is cheap to ask, and edits are then few of its proposals. Where all are
    # numbers, slopes propose what is new, and edits only take changes back.
    count = setup.settings.edits or _edit_count(codes.shape[0]) * (2 if smooth else 1)
    count = 0 if by_slopes else count
    drawn = draw_edits(*seen, state.scores, count, rng)
    if setup.pairs:
        drawn = pair_edits(setup.units, drawn, rng)
    back = setup.pairs or setup.sparsity > 0
    return (revert_edits(setup.units, drawn, rng) if back else drawn).like(codes)


def _edit_count(rows: int) -> int:
    """With many rows each edit is tried many times, so fewer are enough to learn what helps."""
    return 30 + round(30 * min(1.0, math.sqrt(50 / rows)))


def _gap(bound: float | None, limit: float) -> float:
    """Room left under a bound; a side without a bound, or a limit (NaN), never complains."""
    return math.inf if bound is None or math.isnan(limit) else bound - limit


def _measured(
    problem: Problem,
    setup: Setup,
    rows: Rows,
    embedded: Array,
    balance: Balance,
    scores: EditScores,
    trail: Trail | None,
    info: StepInfo,
) -> State:
    """Lines 5 and 6: the upper limits of these rows, on directions of their own."""
    settings = setup.settings
    # Directions are new at every iteration, because rows move where fixed ones do not look.
    drawn = info.iteration if settings.redraw else 0
    theta = _drawn_directions(problem.seed, drawn, embedded.shape[1], settings.directions)
    directions = directions_like(theta, embedded)
    inputs, outputs = measure_sides(problem, setup.sides, embedded, rows.outputs, directions)
    level = setup.level
    objective, change = to_numpy(info.measures).tolist()
    record = Iteration(
        iteration=info.iteration,
        eta=info.eta,
        inputs=inputs.distance,
        inputs_limit=math.nan if inputs.limit is None else inputs.limit.upper(level),
        outputs=outputs.distance,
        outputs_limit=math.nan if outputs.limit is None else outputs.limit.upper(level),
        objective=objective,
        change=change,
    )
    return State(
        rows=rows,
        embedded=embedded,
        record=record,
        directions=directions,
        input_side=inputs,
        output_side=outputs,
        balance=balance,
        scores=scores,
        trail=trail,
        setup=setup,
    )


def _drawn_directions(seed: int, iteration: int, size: int, minimum: int) -> Any:
    """The directions of an iteration, which many runs of one search go through."""
    # Those of many dimensions are too large for all of them to be kept.
    draw = _draw_directions if size <= KEPT_DIMENSIONS else _draw_directions.__wrapped__
    return draw(seed, iteration, size, minimum)


@lru_cache(maxsize=256)
def _draw_directions(seed: int, iteration: int, size: int, minimum: int) -> Any:
    drawn = direction_blocks(size, generator(seed, f"directions {iteration}"), minimum)
    if isinstance(drawn, np.ndarray):
        drawn.flags.writeable = False
    return drawn
