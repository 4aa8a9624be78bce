"""The paper's Algorithm 1 as pure functions: init, step, iterate.

A ``State`` is complete: the rows, their outputs, their limits and the steps that led there. The
rows that are returned are the rows whose limits were computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from elsewise._arrays import Array, asarray_like, namespace, to_numpy
from elsewise.balance import IntervalNarrowing
from elsewise.confidence import Comparison, UpperLimit, clt_limit
from elsewise.edits import Edits, Luck, Unit, draw_edits, learn, revert_edits, units
from elsewise.errors import InvalidInput
from elsewise.maps import Map, Motion, Moved, Rows, Step, move, start
from elsewise.problem import Population, Problem, populate
from elsewise.sides import input_comparison, output_comparison, output_directions, target_reference
from elsewise.targets import Constant, Derived, Sample
from elsewise.transport import MonotoneMaps, direction_blocks, fit_monotone_maps, project, reference

__all__ = ["Fixed", "Iteration", "Settings", "State", "init", "run", "step"]

PAPER_NOISE = 0.01
"""Standard deviation of the start noise in the paper's experiments."""


class Balance(Protocol):
    """Anything that chooses eta from the room left on each side."""

    def choose(self, gap_inputs: float, gap_outputs: float) -> tuple[float, Balance]:
        """Return eta and the balance to use next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """The same eta at every iteration."""

    eta: float

    def choose(self, gap_inputs: float, gap_outputs: float) -> tuple[float, Fixed]:
        """Return eta, whatever the gaps."""
        return self.eta, self


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the search is run; the defaults are meant to be left alone."""

    step: str = "proposals"
    """"proposals" (propose legal rows, keep the best) or "gradient" (the paper's own step)."""
    balance: Balance = field(default_factory=IntervalNarrowing)
    """How eta is chosen when both limits are given."""
    iterations: int = 60
    """At most this many iterations for one choice of eta, or in all when both limits are given."""
    epsilon: float = 0.02
    """Stop when rows move less than this (root mean square, in standard deviations of a row)."""
    seconds: float | None = None
    """Time budget; the best so far is returned when it is spent."""
    directions: int = 64
    """At least this many directions, in complete orthonormal blocks."""
    draws: int = 999
    """Bootstrap draws of the certificate."""
    tau: float = 1.0
    """Step size of the gradient step."""
    noise: float | None = None
    """Noise added to the start; None: 0.01 for the gradient step, none for proposals."""
    rho: float = 1.0
    """Share of the transported anchor; the rest is the factual row."""
    smoothing: float = 1.0
    """Window of the recorded maps in units of sqrt(n) ranks; 0 records every pair."""
    sparse: bool = False
    """Afterwards take back every change the limits can do without."""
    redraw: bool = True
    """Draw new directions at every iteration, so that none is over-fitted; False: the paper's."""
    edits: int | None = None
    """Edits offered to every row at every iteration; None: about 50 for 50 rows, 15 for many."""

    def __post_init__(self) -> None:
        _check(
            self.step in ("proposals", "gradient"), "step", "'proposals' or 'gradient'", self.step
        )
        _check(self.iterations >= 1, "iterations", "at least 1", self.iterations)
        _check(self.epsilon >= 0, "epsilon", "a number >= 0", self.epsilon)
        _check(self.seconds is None or self.seconds > 0, "seconds", "a number > 0", self.seconds)
        _check(self.directions >= 1, "directions", "at least 1", self.directions)
        _check(self.draws >= 1, "draws", "at least 1", self.draws)
        _check(self.tau > 0, "tau", "a number > 0", self.tau)
        _check(self.noise is None or self.noise >= 0, "noise", "a number >= 0", self.noise)
        _check(0 <= self.rho <= 1, "rho", "a number in [0, 1]", self.rho)
        _check(self.smoothing >= 0, "smoothing", "a number >= 0", self.smoothing)

    @property
    def motion(self) -> Motion:
        """The part of the settings that the recorded map needs."""
        gradient = self.step == "gradient"
        noise = (PAPER_NOISE if gradient else 0.0) if self.noise is None else self.noise
        return Motion(gradient=gradient, tau=self.tau, noise=noise, rho=self.rho)


def _check(holds: bool, name: str, expected: str, received: object) -> None:
    if not holds:
        raise InvalidInput(
            f"settings.{name}", expected=expected, received=repr(received), fix="see ew.Settings"
        )


class Iteration(NamedTuple):
    """One row of the history; distances on the root scale."""

    iteration: int
    eta: float
    """Weight of the outputs in the step that led here; 0 at the start."""
    inputs: float
    """Input distance, trimmed, on the optimizer's directions."""
    inputs_limit: float
    outputs: float
    outputs_limit: float
    objective: float
    """Q at the step's eta and plans, after the step."""
    change: float
    """Root mean square move of this iteration, in standard deviations of a row."""


class Trail(NamedTuple):
    """The steps so far, newest first, shared between states."""

    step: Step
    before: Trail | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What stays the same during a run."""

    population: Population
    settings: Settings
    output_directions: Array
    target_partners: Array | None
    """Array (M, n): target quantiles by rank; None where rows know what they want."""
    units: tuple[Unit, ...]
    """What edits can move."""
    background: np.ndarray
    """ndarray (m, p): rows that edits take values from."""
    background_outputs: np.ndarray
    """ndarray (m, K)."""
    sparsity: float = 0.0
    """Cost of a changed cell, in units of a move by one standard deviation, squared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One iterate, with everything known about it."""

    rows: Rows
    record: Iteration
    directions: Array
    """Array (d, N): directions of the plans at this iterate; the step here was not made on them."""
    input_ranks: Comparison
    output_ranks: Comparison
    inputs: UpperLimit
    outputs: UpperLimit
    balance: Balance
    luck: Luck
    trail: Trail | None
    setup: Setup

    def map(self) -> Map:
        """The recorded map that leads from the factual rows to this state."""
        steps: list[Step] = []
        trail = self.trail
        while trail is not None:
            steps.append(trail.step)
            trail = trail.before
        return Map(steps=tuple(reversed(steps)), motion=self.setup.settings.motion)


def init(problem: Problem, settings: Settings) -> State:
    """Line 1: the start, x' (plus noise for the paper's gradient step)."""
    population = populate(problem, problem.factual)
    across = asarray_like(
        output_directions(problem, problem.generator("output directions")), population.outputs
    )
    background = to_numpy(problem.background)
    moving = units(problem.schema, np.concatenate([background, to_numpy(problem.factual)]))
    setup = Setup(
        population=population,
        settings=settings,
        output_directions=across,
        target_partners=_target_partners(problem, population, across),
        units=moving,
        background=background,
        background_outputs=to_numpy(problem.precise.values(problem.background)),
    )
    rows = start(problem, settings.motion, population)
    made = _Made(0, 0.0, math.nan, math.inf)
    return _measured(problem, setup, rows, settings.balance, Luck.none(len(moving)), None, made)


def _target_partners(problem: Problem, population: Population, across: Array) -> Array | None:
    target = problem.target
    if isinstance(target, Derived | Constant):
        return None
    xp = namespace(population.outputs)
    size = population.outputs.shape[0]
    if isinstance(target, Sample):
        values = asarray_like(target.values, population.outputs)
        return reference(xp.sort(project(values, across), axis=-1, stable=False), size).partners
    return target_reference(target, size, 0.0, population.outputs, across).partners


class _Made(NamedTuple):
    """How a state was made."""

    iteration: int
    eta: float
    objective: float
    change: float


def step(problem: Problem, state: State) -> State:
    """Lines 3 to 9: plans, limits, eta, and the row step."""
    setup, rows = state.setup, state.rows
    settings = setup.settings
    xp = namespace(rows.codes)
    level = problem.limits.side_level
    gap_inputs = _gap(problem.limits.inputs, state.inputs, level)
    gap_outputs = _gap(problem.limits.outputs, state.outputs, level)
    eta, balance = state.balance.choose(gap_inputs, gap_outputs)
    iteration = state.record.iteration + 1
    recorded = Step(
        eta=eta,
        directions=state.directions,
        # Lines 3 and 4: the plans are the sorts behind the limits; recorded as monotone maps.
        anchors=_recorded_plan(state.input_ranks, None, settings.smoothing),
        output_directions=setup.output_directions,
        wanted=None
        if setup.target_partners is None
        else _recorded_plan(state.output_ranks, setup.target_partners, settings.smoothing),
        edits=_drawn_edits(problem, state, iteration),
        sparsity=setup.sparsity,
    )
    # Lines 8 and 9.
    embedded = problem.embedding.embed(rows.codes)
    moved = move(problem, settings.motion, setup.population, recorded, rows, embedded)
    after = problem.embedding.embed(moved.rows.codes)
    made = _Made(
        iteration=iteration,
        eta=eta,
        objective=float(xp.mean(moved.costs[1, ...])),
        change=math.sqrt(float(xp.mean(xp.sum((after - embedded) ** 2, axis=-1)))),
    )
    luck = state.luck
    if recorded.edits is not None:
        luck = learn(luck, recorded.edits, setup.units, _gains(moved, recorded.edits))
    trail = Trail(recorded, state.trail)
    return _measured(problem, setup, moved.rows, balance, luck, trail, made)


def _recorded_plan(ranks: Comparison, partners: Array | None, smoothing: float) -> MonotoneMaps:
    """The plan between sorted samples as maps; without partners, those of the fixed side."""
    if partners is None:
        assert ranks.fixed is not None  # inputs are compared with the factual rows
        partners = ranks.fixed.sorted
    return fit_monotone_maps(ranks.moving.sorted, partners, smoothing)


def _drawn_edits(problem: Problem, state: State, iteration: int) -> Edits | None:
    """Edits for this iteration: where the model has no slope, or something is not a number."""
    setup = state.setup
    smooth = problem.outputs.smooth
    if setup.settings.step == "gradient":
        return None
    if smooth and setup.sparsity == 0 and all(unit.settings is None for unit in setup.units):
        return None
    # A model with a slope is cheap to ask, and edits are then few of its proposals.
    count = setup.settings.edits or _edit_count(state.rows.codes.shape[0]) * (2 if smooth else 1)
    rng = problem.generator(f"edits {iteration}")
    drawn = draw_edits(
        setup.units, setup.background, setup.background_outputs, state.luck, count, rng
    )
    if setup.sparsity > 0:
        drawn = revert_edits(setup.units, drawn)
    return drawn.like(state.rows.codes)


def _edit_count(rows: int) -> int:
    """With many rows each edit is tried many times, so fewer are enough to learn what helps."""
    return 14 + round(34 * min(1.0, math.sqrt(50 / rows)))


def _gains(moved: Moved, edits: Edits) -> np.ndarray:
    """Mean improvement (C,) that each edit brought."""
    count = edits.sources.shape[0]
    taken = to_numpy(moved.taken)
    before, after = to_numpy(moved.costs)
    sums = np.bincount(taken, before - after, minlength=count + 1)
    return np.asarray(sums[1 : count + 1] / taken.size)


def _gap(bound: float | None, limit: UpperLimit, level: float) -> float:
    """Room left under a bound; a side without a bound never complains."""
    return math.inf if bound is None else bound - limit.upper(level)


def _measured(
    problem: Problem,
    setup: Setup,
    rows: Rows,
    balance: Balance,
    luck: Luck,
    trail: Trail | None,
    made: _Made,
) -> State:
    """Lines 5 and 6: the upper limits of these rows, on directions of their own."""
    population, settings = setup.population, setup.settings
    drawn = made.iteration if settings.redraw else 0
    rng = problem.generator(f"directions {drawn}")
    directions = asarray_like(
        direction_blocks(problem.embedding.size, rng, settings.directions), population.embedded
    )
    input_ranks = input_comparison(problem, population, rows.codes, directions)
    output_ranks = output_comparison(problem, population, rows.outputs, setup.output_directions)
    inputs, outputs = clt_limit(input_ranks), clt_limit(output_ranks)
    level = problem.limits.side_level
    record = Iteration(
        iteration=made.iteration,
        eta=made.eta,
        inputs=inputs.estimate,
        inputs_limit=inputs.upper(level),
        outputs=outputs.estimate,
        outputs_limit=outputs.upper(level),
        objective=made.objective,
        change=made.change,
    )
    return State(
        rows=rows,
        record=record,
        directions=directions,
        input_ranks=input_ranks,
        output_ranks=output_ranks,
        inputs=inputs,
        outputs=outputs,
        balance=balance,
        luck=luck,
        trail=trail,
        setup=setup,
    )


def run(
    problem: Problem, state: State, settings: Settings, late: Callable[[], bool] = lambda: False
) -> Iterator[State]:
    """Repeat the step until rows rest, iterations run out or time is up; yields every new state."""
    for _ in range(settings.iterations):
        if late():
            return
        state = step(problem, state)
        yield state
        if state.record.change <= settings.epsilon:
            return
