"""A shorter map to the same place."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from elsewise.request import Problem
from elsewise.search._loop import State, init
from elsewise.search._outcome import Outcome, Solution
from elsewise.search._runs import ShouldStop, logit_of, run_at_eta, warm_start
from elsewise.search._sides import Side
from elsewise.settings import Settings

# Iterations of the first push, and at each eta after it.
KICK, REST = 3, 3
# What is added to the solution's logit, bit by bit.
MORE = (0.0, 0.0, 0.05, 0.1)
# The shorter way may end this much farther on the side that is as small as possible.
LOSS = 1.01
# If it is this much farther after the first rest, it will not get there in a few more.
HOPELESS = 1.3


def find_shorter_map(
    problem: Problem,
    settings: Settings,
    solution: Solution,
    sides: Sequence[Side],
    should_stop: ShouldStop = lambda: False,
) -> Generator[State, None, Solution]:
    """Look for a shorter way to where a solution is, for a map that many rows will go through.

    A search arrives by way of every eta it tried. Often a few iterations at the last one lead to
    the same place; where they do not, in limits or distances, the solution stays as it is.
    """
    chosen = solution.state
    if solution.outcome is not Outcome.MET:
        return solution
    logit = logit_of(chosen)
    weight = chosen.setup.motion.population_weight
    first = init(problem, replace(settings, population_weight=weight))
    state = yield from warm_start(problem, settings, first, should_stop, KICK)
    for more in MORE:
        wanted = logit + more * (sides[0].sign if len(sides) == 1 else 0.0)
        for _ in range(REST):
            state = yield from run_at_eta(problem, settings, state, wanted, should_stop, 1)
            if should_stop() or state.record.iteration >= chosen.record.iteration:
                return solution
            near = all(side.other(state) <= LOSS * side.other(chosen) for side in sides)
            if near and all(side.met(state) for side in sides):
                return solution._replace(state=state)
        if any(side.other(state) > HOPELESS * side.other(chosen) for side in sides):
            return solution
    return solution
