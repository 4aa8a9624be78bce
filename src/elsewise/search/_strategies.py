"""The three cases: both bounds, one, none."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import replace

from elsewise.request import Problem
from elsewise.search._loop import State, init, run
from elsewise.search._outcome import Outcome, Solution
from elsewise.search._pareto import knee_level, knee_reason, pareto_front
from elsewise.search._runs import ShouldStop, clock, finish, logit_of
from elsewise.search._shorter_map import find_shorter_map
from elsewise.search._sides import (
    Side,
    bounded_sides,
    distance_side,
    moves_side,
    selection_cost,
)
from elsewise.search._sparse import tidied
from elsewise.search._sweep import trace
from elsewise.search._track_bound import (
    Found,
    Schedule,
    last_pass,
    polished,
    schedules,
    track_bound,
)
from elsewise.settings import Settings


def iterate(
    problem: Problem,
    settings: Settings | None = None,
    stop: Callable[[], bool] | None = None,
    *,
    shorter: bool = False,
) -> Generator[State, None, Solution]:
    """Yield every iterate of the search; the generator's return value is the solution.

    The loop is yours: watch it, stop it, draw it. Where ``stop()`` is true the search ends with the
    best so far, as if its time were up. With ``shorter`` a shorter map to the solution is looked
    for.
    """
    settings = settings or Settings()
    should_stop = clock(settings.seconds, stop)
    first = init(problem, settings)
    yield first
    inputs, outputs = bounded_sides(problem, settings)
    moves = moves_side(problem, settings)
    if inputs is not None and outputs is not None:
        solution = yield from _both(problem, settings, first, inputs, outputs, should_stop)
    elif (bounded := outputs or inputs or moves) is not None:
        solution = yield from _one(problem, settings, first, bounded, should_stop)
    else:
        solution = yield from _none(problem, settings, first, should_stop)
    sides = [side for side in (outputs, inputs, moves) if side is not None]
    if moves is not None and solution.outcome is Outcome.MET and not moves.met(solution.state):
        solution = yield from _nearer(problem, settings, solution, sides, should_stop)
    if shorter:
        solution = yield from find_shorter_map(problem, settings, solution, sides, should_stop)
    return (yield from tidied(problem, settings, first, solution, should_stop))


def solve(problem: Problem, settings: Settings | None = None) -> tuple[Solution, list[State]]:
    """Run the search to its end; returns the solution and all states."""
    return finish(iterate(problem, settings))


def _both(
    problem: Problem,
    settings: Settings,
    first: State,
    inputs: Side,
    outputs: Side,
    should_stop: ShouldStop,
) -> Generator[State, None, Solution]:
    """Algorithm 1, then the feasible iterate with the largest P."""
    best, best_rank = first, _rank(problem, first)
    for state in run(problem, first, settings, should_stop):
        yield state
        rank = _rank(problem, state)
        if rank > best_rank:
            best, best_rank = state, rank
    if inputs.met(best) and outputs.met(best):
        return Solution(best, Outcome.NOTHING_TO_DO if best is first else Outcome.MET)
    # Eta may have narrowed away from a feasible value: the least output distance that the input
    # bound allows decides whether there is one.
    tightest = yield from _one(problem, settings, first, inputs, should_stop)
    least = outputs.at_most(tightest.state, settings.draws)
    if least <= outputs.bound and inputs.met(tightest.state):
        return Solution(tightest.state, Outcome.MET)
    nearest = yield from _one(problem, settings, first, outputs, should_stop)
    if outputs.met(nearest.state) and inputs.met(nearest.state):
        return Solution(nearest.state, Outcome.MET)
    if should_stop():
        outcome = Outcome.OUT_OF_TIME
    elif best.record.inputs == 0 and tightest.state.record.inputs == 0:
        outcome = Outcome.NOTHING_MOVES
    else:
        outcome = Outcome.NOT_FEASIBLE
    return Solution(best, outcome, "outputs", least)


def _nearer(
    problem: Problem,
    settings: Settings,
    solution: Solution,
    sides: list[Side],
    should_stop: ShouldStop,
) -> Generator[State, None, Solution]:
    """Look for rows that keep every bound, that on their moves too, by a price on moves alone."""
    own = replace(settings, population_weight=0.0)
    first = init(problem, own)
    for side in (sides[0], sides[-1]):
        found = yield from _one(problem, own, first, side, should_stop)
        if all(each.met(found.state) for each in sides):
            return found
    moves = sides[-1]
    return Solution(
        solution.state, Outcome.NOT_FEASIBLE, moves.name, moves.at_most(solution.state, moves.draws)
    )


def _rank(problem: Problem, state: State) -> tuple[float, float]:
    """Feasible iterates by probability, ties and infeasible ones by the worst ratio to a bound.

    The objective of the paper's problem, eqs. (3) and (14): the smaller of the two probabilities.
    """
    bounds, record = problem.bounds, state.record
    bound_x, bound_y = bounds.inputs or math.inf, bounds.outputs or math.inf
    worst = max(record.inputs_limit / bound_x, record.outputs_limit / bound_y)
    if worst > 1.0:
        return (-1.0, -worst)
    levels = [
        limit.probability(bound)
        for limit, bound in ((state.inputs, bound_x), (state.outputs, bound_y))
        if limit is not None
    ]
    return (min(levels), -worst)


def _one(
    problem: Problem, settings: Settings, first: State, side: Side, should_stop: ShouldStop
) -> Generator[State, None, Solution]:
    """The smallest distance on the other side that meets the bound."""
    if side.name == "outputs" and side.met(first):
        return Solution(first, Outcome.NOTHING_TO_DO)
    found: list[Found] = []
    closest = [first]
    passes = list(schedules(problem, first, side))
    for pace in passes:
        more, least = yield from track_bound(problem, settings, first, side, pace, should_stop)
        found += more
        closest.append(least)
        if pace is passes[-1] and pace.start is None:
            passes += yield from last_pass(problem, side, found, closest, should_stop)
    found += yield from polished(problem, settings, first, side, found, should_stop)
    in_order = sorted(found, key=lambda one: one.other)
    chosen = next((one.state for one in in_order if side.met(one.state)), None)
    if chosen is None:
        return _not_met([*closest, *(one.state for one in in_order)], side, should_stop)
    if should_stop():
        return Solution(chosen, Outcome.OUT_OF_TIME)
    return Solution(chosen, _moved(chosen))


def _not_met(states: list[State], side: Side, should_stop: ShouldStop) -> Solution:
    """The least violating iterate, and what is reachable; x' comes first."""
    closest = min(states, key=side.limit)
    least = side.at_most(closest, side.draws)
    if should_stop():
        outcome = Outcome.OUT_OF_TIME
    elif least <= side.bound:
        return Solution(closest, _moved(closest))
    elif all(state.record.inputs == 0 for state in states):
        outcome = Outcome.NOTHING_MOVES
    else:
        outcome = Outcome.NOT_FEASIBLE
    return Solution(closest, outcome, side.name, least)


def _moved(state: State) -> Outcome:
    return Outcome.NOTHING_MOVES if state.record.inputs == 0 else Outcome.MET


def _none(
    problem: Problem, settings: Settings, first: State, should_stop: ShouldStop
) -> Generator[State, None, Solution]:
    """Sweep eta, and go to the output distance of the knee at the least input distance."""
    ends = yield from trace(problem, settings, first, should_stop)
    if all(state.record.inputs == 0 for state in ends):
        return Solution(first, Outcome.NOTHING_MOVES)
    cost = selection_cost(problem)
    level = knee_level([state.record.outputs for state in ends])
    # From the nearest point that lacks a little: rows that have gone farther find back less well.
    near = min((s for s in ends if s.record.outputs > level), key=lambda s: s.record.outputs)
    side = distance_side(problem, settings, level)
    pace = Schedule(logit_of(near), 1.0, start=near)
    found, _ = yield from track_bound(problem, settings, first, side, pace, should_stop)
    found += yield from polished(problem, settings, first, side, found, should_stop)
    states = [*ends, *(one.state for one in found)]
    inputs = list(map(cost, states))
    outputs = [state.record.outputs for state in states]
    curve = pareto_front(inputs, outputs)
    points = [inputs[k] for k in curve], [outputs[k] for k in curve]
    chosen = next(k for k, distance in enumerate(points[1]) if distance <= level)
    reason = knee_reason(*points, chosen)
    return Solution(states[curve[chosen]], Outcome.CHOSEN, reason=reason)
