"""The three cases: both bounds, one, none."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import replace

from elsewise.request import Problem
from elsewise.search._afterwards import find_shorter_map, tidied
from elsewise.search._loop import State, init
from elsewise.search._pareto import knee_level, knee_reason, pareto_front
from elsewise.search._runs import Outcome, Search, Solution, begin, finish, logit_of, run, trace
from elsewise.search._sides import Side, bounded_sides, distance_side, selection_cost
from elsewise.search._track_bound import Schedule, one_bound, polished, track_bound, why_not
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
    search = begin(problem, settings or Settings(), stop)
    yield search.first
    sides = bounded_sides(problem, search.settings)
    named = {side.name: side for side in sides}
    if "inputs" in named and "outputs" in named:
        solution = yield from _both(search, named["inputs"], named["outputs"])
    elif sides:
        solution = yield from one_bound(search, sides[0])
    else:
        solution = yield from _none(search)
    moves = named.get("moves")
    if moves is not None and solution.outcome is Outcome.MET and not moves.met(solution.state):
        solution = yield from _nearer(search, solution, sides)
    if shorter:
        solution = yield from find_shorter_map(search, solution, sides)
    return (yield from tidied(search, solution))


def solve(problem: Problem, settings: Settings | None = None) -> tuple[Solution, list[State]]:
    """Run the search to its end; returns the solution and all states."""
    return finish(iterate(problem, settings))


def _both(search: Search, inputs: Side, outputs: Side) -> Generator[State, None, Solution]:
    """Algorithm 1, then the feasible iterate with the largest P."""
    problem, settings, first, _ = search
    best, best_rank = first, _rank(problem, first)
    for state in run(search, first, settings.iterations):
        yield state
        rank = _rank(problem, state)
        if rank > best_rank:
            best, best_rank = state, rank
    if inputs.met(best) and outputs.met(best):
        return Solution(best, Outcome.NOTHING_TO_DO if best is first else Outcome.MET)
    if search.should_stop():
        return Solution(best, Outcome.OUT_OF_TIME)
    # Eta may have narrowed away from a feasible value: the least output distance that the input
    # bound allows decides whether there is one.
    tightest = yield from one_bound(search, inputs)
    least = outputs.at_most(tightest.state, settings.draws)
    if least <= outputs.bound and inputs.met(tightest.state):
        return Solution(tightest.state, Outcome.MET)
    nearest = yield from one_bound(search, outputs)
    if outputs.met(nearest.state) and inputs.met(nearest.state):
        return Solution(nearest.state, Outcome.MET)
    return Solution(best, why_not(search, best, tightest.state), "outputs", least)


def _nearer(
    search: Search, solution: Solution, sides: list[Side]
) -> Generator[State, None, Solution]:
    """Look for rows that keep every bound, that on their moves too, by a price on moves alone."""
    own = replace(search.settings, population_weight=0.0)
    search = search._replace(settings=own, first=init(search.problem, own))
    for side in (sides[0], sides[-1]):
        found = yield from one_bound(search, side)
        if all(each.met(found.state) for each in sides):
            return found
    state, moves = solution.state, sides[-1]
    return Solution(state, Outcome.NOT_FEASIBLE, moves.name, moves.at_most(state, moves.draws))


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
        for limit, bound in (
            (state.look.inputs.limit, bound_x),
            (state.look.outputs.limit, bound_y),
        )
        if limit is not None
    ]
    return (min(levels), -worst)


def _none(search: Search) -> Generator[State, None, Solution]:
    """Sweep eta, and go to the output distance of the knee at the least input distance."""
    ends = yield from trace(search)
    if all(state.record.inputs == 0 for state in ends):
        moves = Outcome.OUT_OF_TIME if search.should_stop() else Outcome.NOTHING_MOVES
        return Solution(search.first, moves)
    cost = selection_cost(search.problem)
    level = knee_level([state.record.outputs for state in ends])
    # From the nearest point that lacks a little: rows that have gone farther find back less well.
    near = min((s for s in ends if s.record.outputs > level), key=lambda s: s.record.outputs)
    side = distance_side(search.problem, search.settings, level)
    found, _ = yield from track_bound(search, side, Schedule(logit_of(near), 1.0, start=near))
    found += yield from polished(search, side, found)
    states = [*ends, *(one.state for one in found)]
    inputs = list(map(cost, states))
    outputs = [state.record.outputs for state in states]
    curve = pareto_front(inputs, outputs)
    points = [inputs[k] for k in curve], [outputs[k] for k in curve]
    chosen = next(k for k, distance in enumerate(points[1]) if distance <= level)
    reason = knee_reason(*points, chosen)
    return Solution(states[curve[chosen]], Outcome.CHOSEN, reason=reason)
