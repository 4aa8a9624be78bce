"""Which iterate to return: the whole search over eta, from the limits the user gave.

Both limits: the paper's Algorithm 1, then the feasible iterate with the largest probability.
One limit: the smallest distance on the free side that meets the other, by bisection on eta.
None: the knee of the curve of input distance against output distance.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple, TypeVar

import numpy as np

from elsewise.certificate import Evidence, certify_inputs, certify_outputs
from elsewise.maps import Rows
from elsewise.problem import Problem
from elsewise.sides import input_comparison
from elsewise.solver import Fixed, Settings, State, init, run
from elsewise.transport import direction_blocks

T = TypeVar("T")
Late = Callable[[], bool]
"""Whether the search has to end with what it has."""

__all__ = ["Outcome", "Solution", "iterate", "knee", "solve", "sweep"]

LOGIT_SPAN = 9.0
"""Eta is searched between logistic(-9) and logistic(9)."""
BRACKET_STEP = 2.0
"""First steps of the bisection, on the logit scale, until the bound is bracketed."""
TOLERANCE = 0.015
"""A bisection ends when the bounded limit is within this share under its bound."""
RESOLUTION = 0.02
"""It also ends when the logits on either side of the bound are this close."""
POLISH_ROUNDS, POLISH_STEP, POLISH_GAIN = 2, 0.1, 0.01
"""The chosen state is gone on with a few times, as long as that gains a little."""
NOTABLE = 0.005
"""A state on the way is noted if it is nearer than the best by this share."""
LOOSE = 1.1
"""A state is looked at more closely if the loop's limit is within this multiple of the bound."""
SEARCH_DRAWS = 199
"""Bootstrap draws of the limits that steer the search."""
KICK_LOGIT = {True: 3.0, False: 0.0}
"""Logit of eta in the first iterations of a search: where slopes alone lead, and where not."""
KICK_ITERATIONS = 8
RELAX_ITERATIONS = 10
"""Iterations at each eta of a search, which starts where a larger eta came to rest."""
FIRST_PRICE, LAST_PRICE = 0.01, 100.0
"""Prices of a changed cell that the sparse pass goes through, doubling."""
SPARSE_ITERATIONS = 4
SPARSE_LOGITS = (0.0, 0.5, 1.0)
BELOW_LOGITS = (-6.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0)
"""Logits of eta on the way up from x', towards a bound on the inputs."""
MOST_PROBES = 24
"""At most this many values of eta are tried."""
SWEEP_LOGITS = tuple(float(logit) for logit in range(-4, 6))


class Outcome(StrEnum):
    """How a search ended; the text says what to do."""

    CERTIFIED = "certified"
    NOTHING_TO_DO = "nothing to do: the factual population already meets the limits"
    CHOSEN = "no limits given: chosen at the knee of the frontier; give limits to certify a bound"
    MADE_ELSEWHERE = "made by another method: its distances are described, not searched for"
    NOT_FEASIBLE = "not feasible: loosen the binding limit to what is reachable, or free features"
    NOT_CERTIFIED = "not certified: unseen rows miss the limits; give more rows or looser limits"
    NOTHING_MOVES = "nothing could move: free features or widen ranges"
    OUT_OF_TIME = "out of time: raise settings.seconds"


class Solution(NamedTuple):
    """The chosen iterate and why it was chosen."""

    state: State
    outcome: Outcome
    binding: str | None = None
    """The side whose limit cannot be met, "inputs" or "outputs"."""
    reachable: float | None = None
    """The smallest upper limit found on the binding side with the other side's limit met."""


class _Side(NamedTuple):
    """One bounded side of the question, as the search over eta sees it."""

    name: str
    bound: float
    sign: float
    """+1 where a larger eta lowers this side's limit, else -1."""
    certified: Callable[[State, int], Evidence]
    """The certificate of a state, from that many bootstrap draws."""
    draws: int
    """Draws of the certificate that counts."""

    other: Callable[[State], float]
    """Distance on the other side, on directions kept for choosing between states."""

    def limit(self, state: State) -> float:
        """The limit that steers the search: the certificate's own method, with fewer draws."""
        return self.certified(state, min(self.draws, SEARCH_DRAWS)).upper_limit

    def met(self, state: State) -> bool:
        """Whether the certificate that counts is within the bound."""
        return self.certified(state, self.draws).met

    def looks_met(self, state: State) -> bool:
        """Whether the loop's own limit is about within the bound."""
        record = state.record
        limit = record.inputs_limit if self.name == "inputs" else record.outputs_limit
        return limit <= LOOSE * self.bound


class _Probe(NamedTuple):
    """Where one value of eta led."""

    state: State
    limit: float
    other: float


def iterate(
    problem: Problem,
    settings: Settings | None = None,
    stop: Callable[[], bool] | None = None,
) -> Generator[State, None, Solution]:
    """Yield every iterate of the search; the generator's return value is the solution.

    The loop is yours: watch it, stop it, draw it. Where ``stop()`` is true the search ends with the
    best so far, as if its time were up.
    """
    settings = settings or Settings()
    late = _clock(settings.seconds, stop)
    first = init(problem, settings)
    yield first
    inputs, outputs = _sides(problem, settings)
    if inputs is not None and outputs is not None:
        solution = yield from _both(problem, settings, first, inputs, outputs, late)
    elif (bounded := outputs or inputs) is not None:
        solution = yield from _one(problem, settings, first, bounded, late)
    else:
        solution = yield from _none(problem, settings, first, late)
    if settings.sparse and solution.outcome is Outcome.CERTIFIED:
        sides = [side for side in (inputs, outputs) if side is not None]
        state = yield from _sparser(problem, settings, solution.state, sides, late)
        solution = solution._replace(state=state)
    return solution


def _clock(seconds: float | None, stop: Callable[[], bool] | None) -> Late:
    """Tell whether time is up or the search was told to stop."""
    deadline = math.inf if seconds is None else time.perf_counter() + seconds
    return lambda: time.perf_counter() >= deadline or (stop is not None and stop())


def solve(problem: Problem, settings: Settings | None = None) -> tuple[Solution, list[State]]:
    """Run the search to its end; returns the solution and all states."""
    return _finish(iterate(problem, settings))


def _sides(problem: Problem, settings: Settings) -> tuple[_Side | None, _Side | None]:
    def inputs(state: State, draws: int) -> Evidence:
        return certify_inputs(problem, state.setup.population, state.rows, draws)

    def outputs(state: State, draws: int) -> Evidence:
        rows = state.rows
        if problem.precise is not problem.outputs:
            rows = Rows(rows.codes, problem.outputs.values(rows.codes))
        return certify_outputs(problem, state.setup.population, rows, draws)

    # Neither the optimizer's directions nor the certificate's: both keep their innocence.
    kept = direction_blocks(problem.embedding.size, problem.generator("selection"))

    def input_distance(state: State) -> float:
        return input_comparison(problem, state.setup.population, state.rows.codes, kept).distance

    def output_distance(state: State) -> float:
        return state.record.outputs

    bounds, draws = problem.limits, settings.draws
    return (
        None
        if bounds.inputs is None
        else _Side("inputs", bounds.inputs, -1.0, inputs, draws, output_distance),
        None
        if bounds.outputs is None
        else _Side("outputs", bounds.outputs, 1.0, outputs, draws, input_distance),
    )


def _both(
    problem: Problem,
    settings: Settings,
    first: State,
    inputs: _Side,
    outputs: _Side,
    late: Late,
) -> Generator[State, None, Solution]:
    """Algorithm 1, then the feasible iterate with the largest P."""
    best, best_rank = first, _rank(problem, first)
    for state in run(problem, first, settings, late):
        yield state
        rank = _rank(problem, state)
        if rank > best_rank:
            best, best_rank = state, rank
    if inputs.met(best) and outputs.met(best):
        return Solution(best, Outcome.NOTHING_TO_DO if best is first else Outcome.CERTIFIED)
    # Eta may have narrowed away from a feasible value: the least output distance that the input
    # bound allows decides whether there is one.
    tightest = yield from _one(problem, settings, first, inputs, late)
    evidence = outputs.certified(tightest.state, settings.draws)
    if evidence.met and inputs.met(tightest.state):
        return Solution(tightest.state, Outcome.CERTIFIED)
    nearest = yield from _one(problem, settings, first, outputs, late)
    if outputs.met(nearest.state) and inputs.met(nearest.state):
        return Solution(nearest.state, Outcome.CERTIFIED)
    if late():
        outcome = Outcome.OUT_OF_TIME
    elif best.record.inputs == 0 and tightest.state.record.inputs == 0:
        outcome = Outcome.NOTHING_MOVES
    else:
        outcome = Outcome.NOT_FEASIBLE
    return Solution(best, outcome, "outputs", evidence.upper_limit)


def _rank(problem: Problem, state: State) -> tuple[float, float]:
    """Feasible iterates by probability, ties and infeasible ones by the worst ratio to a bound."""
    limits, record = problem.limits, state.record
    bound_x, bound_y = limits.inputs or math.inf, limits.outputs or math.inf
    worst = max(record.inputs_limit / bound_x, record.outputs_limit / bound_y)
    if worst > 1.0:
        return (-1.0, -worst)
    return (min(state.inputs.probability(bound_x), state.outputs.probability(bound_y)), -worst)


def _one(
    problem: Problem, settings: Settings, first: State, side: _Side, late: Late
) -> Generator[State, None, Solution]:
    """Find the least weight on the bounded side that meets its bound: bisection on logit(eta)."""
    if side.name == "outputs" and side.met(first):
        return Solution(first, Outcome.NOTHING_TO_DO)
    kicked = yield from _kick(problem, settings, first, late)
    aim = side.bound
    probes: dict[float, _Probe] = {}
    tried: list[_Probe] = []
    weight: float | None = 0.0
    climbing = True
    for _ in range(MOST_PROBES):
        if weight is None or late():
            break
        logit = side.sign * weight
        start = _above(probes, side, logit, kicked)
        rest = _rest(problem, settings, start, logit, late)
        probe = yield from _noting(rest, side, aim, tried)
        if climbing and (probe.limit <= aim) == (side.sign > 0):
            # Rows that relax from here keep what they gained: what was seen on the way up is void.
            probes, climbing = {}, False
        probes[weight] = probe
        weight = _next_weight(probes, aim)
        best = _best(tried, aim)
        if weight is None and best is not None:
            evidence = side.certified(best.state, side.draws)
            if not evidence.met:
                # All draws say a little more than a few: aim lower by that ratio.
                ratio = min(1.0, side.bound / evidence.upper_limit)
                aim = (1.0 - 0.2 * TOLERANCE) * ratio * best.limit
                weight = _next_weight(probes, aim)
    if side.name == "inputs":
        yield from _from_below(problem, settings, first, side, aim, tried, late)
    chosen = _cheapest(tried, side)
    if chosen is None:
        return _not_met(first, [probe.state for probe in tried], side, late)
    state = yield from _polished(problem, settings, chosen, side, late)
    if late():
        return Solution(state, Outcome.OUT_OF_TIME)
    return Solution(state, _moved(state))


def _noting(
    rest: Generator[State, None, State], side: _Side, aim: float, tried: list[_Probe]
) -> Generator[State, None, _Probe]:
    """Watch a run for states that meet the aim at a smaller distance; returns where it ends."""
    while True:
        try:
            state = next(rest)
        except StopIteration as end:
            probe = _Probe(end.value, side.limit(end.value), side.other(end.value))
            tried.append(probe)
            return probe
        yield state
        if side.looks_met(state):
            best = _best(tried, aim)
            other = side.other(state)
            if best is None or other < (1.0 - NOTABLE) * best.other:
                tried.append(_Probe(state, side.limit(state), other))


def _from_below(
    problem: Problem,
    settings: Settings,
    first: State,
    side: _Side,
    aim: float,
    tried: list[_Probe],
    late: Late,
) -> Generator[State, None, None]:
    """Approach a bound on the inputs from x' as well.

    Rows that relax may keep changes they no longer need; rows that start where they are never made
    them, so small input distances are better reached from below.
    """
    state = first
    for logit in BELOW_LOGITS:
        if late():
            return
        rest = _rest(problem, settings, state, logit, late)
        probe = yield from _noting(rest, side, aim, tried)
        if probe.limit > LOOSE * aim:
            return
        state = probe.state


def _polished(
    problem: Problem, settings: Settings, state: State, side: _Side, late: Late
) -> Generator[State, None, State]:
    """Go on from the chosen state, with a little less weight on the bounded side if it bears it."""
    logit = math.log(state.record.eta / (1.0 - state.record.eta))
    less = POLISH_STEP
    for _ in range(POLISH_ROUNDS):
        wanted = logit - side.sign * less
        later = yield from _rest(problem, settings, state, wanted, late)
        gain = 1.0 - side.other(later) / max(side.other(state), 1e-12)
        if side.met(later) and gain > 0:
            state, logit = later, wanted
            if gain < POLISH_GAIN:
                break
        elif less == 0.0:
            break
        else:
            less = 0.0
    return state


def _not_met(first: State, states: list[State], side: _Side, late: Late) -> Solution:
    """The least violating iterate, and what is reachable."""
    closest = min([first, *states], key=side.limit)
    evidence = side.certified(closest, side.draws)
    if late():
        outcome = Outcome.OUT_OF_TIME
    elif evidence.met:
        return Solution(closest, _moved(closest))
    elif states and all(state.record.inputs == 0 for state in states):
        outcome = Outcome.NOTHING_MOVES
    else:
        outcome = Outcome.NOT_FEASIBLE
    return Solution(closest, outcome, side.name, evidence.upper_limit)


def _moved(state: State) -> Outcome:
    return Outcome.NOTHING_MOVES if state.record.inputs == 0 else Outcome.CERTIFIED


def _above(probes: dict[float, _Probe], side: _Side, logit: float, kicked: State) -> State:
    """Where to start: the probe at the next larger eta, so that rows only ever relax."""
    larger = [side.sign * weight for weight in probes if side.sign * weight > logit]
    return probes[side.sign * min(larger)].state if larger else kicked


def _best(tried: list[_Probe], aim: float) -> _Probe | None:
    """The probe that meets the aim with the smallest distance on the other side."""
    met = [probe for probe in tried if probe.limit <= aim]
    return min(met, key=lambda probe: probe.other, default=None)


def _cheapest(tried: list[_Probe], side: _Side) -> State | None:
    """The state with the smallest distance on the other side whose certificate is in order."""
    hopeful = [probe for probe in tried if probe.limit <= LOOSE * side.bound]
    in_order = sorted(hopeful, key=lambda probe: probe.other)
    return next((probe.state for probe in in_order if side.met(probe.state)), None)


def _next_weight(probes: dict[float, _Probe], aim: float) -> float | None:
    """Where to look next on the logit scale, or None when there is nowhere left to look."""
    gaps = {weight: math.log(max(probe.limit, 1e-12) / aim) for weight, probe in probes.items()}
    met = [weight for weight, gap in gaps.items() if gap <= 0]
    if not met:
        weight = max(probes) + BRACKET_STEP
        return weight if weight <= LOGIT_SPAN else None
    high = min(met)
    if gaps[high] >= -TOLERANCE:
        return None
    missed = [weight for weight in gaps if weight < high]
    if not missed:
        weight = high - BRACKET_STEP
        return weight if weight >= -LOGIT_SPAN else None
    low = max(missed)
    if high - low <= RESOLUTION:
        return None
    # False position on the logarithm of the limit, kept inside the middle of the bracket; an end
    # that stays put counts half (the Illinois rule), or it would hold the search back.
    sides = [gap <= 0 for gap in gaps.values()]
    stayed = next((k for k, met_too in enumerate(reversed(sides)) if met_too != sides[-1]), 1)
    gaps[low if sides[-1] else high] *= 0.5 ** max(0, stayed - 1)
    fall = gaps[low] - gaps[high]
    share = (gaps[low] + 0.5 * TOLERANCE) / fall if math.isfinite(fall) else 0.5
    return low + min(max(share, 0.1), 0.9) * (high - low)


def _sparser(
    problem: Problem, settings: Settings, state: State, sides: list[_Side], late: Late
) -> Generator[State, None, State]:
    """Take changes back at a rising price per changed cell, as long as every limit holds.

    Where a price breaks a limit, more weight on the outputs may make up for it.
    """
    logit = math.log(state.record.eta / (1.0 - state.record.eta))
    price = FIRST_PRICE
    while price <= LAST_PRICE:
        priced = replace(state, setup=replace(state.setup, sparsity=price))
        for more in SPARSE_LOGITS:
            if late():
                return state
            wanted = logit + more
            later = yield from _rest(problem, settings, priced, wanted, late, SPARSE_ITERATIONS)
            if all(side.met(later) for side in sides):
                state, logit = later, wanted
                break
        else:
            return state
        price *= 2.0
    return state


def _none(
    problem: Problem, settings: Settings, first: State, late: Late
) -> Generator[State, None, Solution]:
    """Sweep eta and take the knee."""
    state = yield from _kick(problem, settings, first, late)
    ends: list[State] = []
    for logit in reversed(SWEEP_LOGITS):
        state = yield from _rest(problem, settings, state, logit, late)
        ends.append(state)
        if late():
            break
    if all(state.record.inputs == 0 for state in ends):
        return Solution(first, Outcome.NOTHING_MOVES)
    index = knee([s.record.inputs for s in ends], [s.record.outputs for s in ends])
    return Solution(ends[index], Outcome.CHOSEN)


def knee(inputs: Iterable[float], outputs: Iterable[float]) -> int:
    """Index of the point farthest below the chord of a falling curve, both axes scaled to [0, 1].

    Examples
    --------
    >>> knee([0.0, 0.1, 1.0], [1.0, 0.2, 0.0])
    1
    """
    x, y = np.asarray(list(inputs)), np.asarray(list(outputs))

    def unit(values: np.ndarray) -> np.ndarray:
        width = np.ptp(values)
        return (values - values.min()) / width if width > 0 else np.zeros_like(values)

    return int(np.argmin(unit(x) + unit(y)))


def sweep(
    problem: Problem, settings: Settings, logits: Iterable[float] = SWEEP_LOGITS
) -> Iterator[State]:
    """Yield the iterate at which each fixed eta = logistic(logit) comes to rest, largest first."""
    state, _ = _finish(_kick(problem, settings, init(problem, settings), _clock(None, None)))
    for logit in sorted(logits, reverse=True):
        state, _ = _finish(_rest(problem, settings, state, logit, _clock(None, None)))
        yield state


def _kick(
    problem: Problem, settings: Settings, first: State, late: Late
) -> Generator[State, None, State]:
    """Push the outputs first, so that rows leave the flat parts and local minima they start in.

    Relaxing from there towards the inputs tends to end in better minima than climbing from x'
    does (docs/how-it-works.md has figures).
    """
    numbers_only = all(unit.settings is None for unit in first.setup.units)
    logit = KICK_LOGIT[problem.precise.smooth and numbers_only]
    return (yield from _rest(problem, settings, first, logit, late, KICK_ITERATIONS))


def _rest(
    problem: Problem,
    settings: Settings,
    start: State,
    logit: float,
    late: Late,
    iterations: int = RELAX_ITERATIONS,
) -> Generator[State, None, State]:
    """Run from a state at eta = logistic(logit); returns where it ends."""
    fixed = Fixed(eta=1.0 / (1.0 + math.exp(-logit)))
    few = replace(settings, iterations=min(iterations, settings.iterations))
    state = start
    for state in run(problem, replace(start, balance=fixed), few, late):
        yield state
    return state


def _finish(search: Generator[State, None, T]) -> tuple[T, list[State]]:
    """Run a search to its end; returns its value and all it yielded."""
    states: list[State] = []
    while True:
        try:
            states.append(next(search))
        except StopIteration as end:
            return end.value, states
