"""The three cases: both bounds, one, none."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator

from elsewise.problem import Problem
from elsewise.search._following import Found, follow, paces
from elsewise.search._outcome import Outcome, Solution
from elsewise.search._running import Late, clock, finish
from elsewise.search._sides import Side, bounded_sides, kept_distance
from elsewise.search._sparse import sparser
from elsewise.search._sweeps import trace
from elsewise.settings import Settings
from elsewise.solver import State, init, run
from elsewise.tradeoff import knee, knee_reason, undominated

__all__ = ["iterate", "solve"]


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
    late = clock(settings.seconds, stop)
    first = init(problem, settings)
    yield first
    inputs, outputs = bounded_sides(problem, settings)
    if inputs is not None and outputs is not None:
        solution = yield from _both(problem, settings, first, inputs, outputs, late)
    elif (bounded := outputs or inputs) is not None:
        solution = yield from _one(problem, settings, first, bounded, late)
    else:
        solution = yield from _none(problem, settings, first, late)
    if settings.sparse and solution.outcome is Outcome.CERTIFIED:
        sides = [side for side in (inputs, outputs) if side is not None]
        state = yield from sparser(problem, settings, solution.state, sides, late)
        solution = solution._replace(state=state)
    return solution


def solve(problem: Problem, settings: Settings | None = None) -> tuple[Solution, list[State]]:
    """Run the search to its end; returns the solution and all states."""
    return finish(iterate(problem, settings))


def _both(
    problem: Problem,
    settings: Settings,
    first: State,
    inputs: Side,
    outputs: Side,
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
    return Solution(best, outcome, "outputs", evidence.at_most)


def _rank(problem: Problem, state: State) -> tuple[float, float]:
    """Feasible iterates by probability, ties and infeasible ones by the worst ratio to a bound."""
    limits, record = problem.limits, state.record
    bound_x, bound_y = limits.inputs or math.inf, limits.outputs or math.inf
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
    problem: Problem, settings: Settings, first: State, side: Side, late: Late
) -> Generator[State, None, Solution]:
    """The smallest distance on the other side that meets the bound."""
    if side.name == "outputs" and side.met(first):
        return Solution(first, Outcome.NOTHING_TO_DO)
    found: list[Found] = []
    closest = [first]
    for pace in paces(problem, first, side):
        more, least = yield from follow(problem, settings, first, side, pace, late)
        found += more
        closest.append(least)
    in_order = sorted(found, key=lambda one: one.other)
    chosen = next((one.state for one in in_order if side.met(one.state)), None)
    if chosen is None:
        return _not_met([*closest, *(one.state for one in in_order)], side, late)
    if late():
        return Solution(chosen, Outcome.OUT_OF_TIME)
    return Solution(chosen, _moved(chosen))


def _not_met(states: list[State], side: Side, late: Late) -> Solution:
    """The least violating iterate, and what is reachable; x' comes first."""
    closest = min(states, key=side.limit)
    evidence = side.certified(closest, side.draws)
    if late():
        outcome = Outcome.OUT_OF_TIME
    elif evidence.met:
        return Solution(closest, _moved(closest))
    elif all(state.record.inputs == 0 for state in states):
        outcome = Outcome.NOTHING_MOVES
    else:
        outcome = Outcome.NOT_FEASIBLE
    return Solution(closest, outcome, side.name, evidence.at_most)


def _moved(state: State) -> Outcome:
    return Outcome.NOTHING_MOVES if state.record.inputs == 0 else Outcome.CERTIFIED


def _none(
    problem: Problem, settings: Settings, first: State, late: Late
) -> Generator[State, None, Solution]:
    """Sweep eta and take the knee."""
    ends = yield from trace(problem, settings, first, late)
    if all(state.record.inputs == 0 for state in ends):
        return Solution(first, Outcome.NOTHING_MOVES)
    inputs = list(map(kept_distance(problem), ends))
    outputs = [state.record.outputs for state in ends]
    curve = undominated(inputs, outputs)
    points = [inputs[k] for k in curve], [outputs[k] for k in curve]
    chosen = knee(*points)
    reason = knee_reason(*points, chosen)
    return Solution(ends[curve[chosen]], Outcome.CHOSEN, reason=reason)
