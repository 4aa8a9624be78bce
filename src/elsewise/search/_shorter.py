"""A shorter map to the same place."""

from __future__ import annotations

from collections.abc import Generator

from elsewise.problem import Problem
from elsewise.search._outcome import Outcome, Solution
from elsewise.search._running import Late, logit_of, rest
from elsewise.search._sides import bounded_sides
from elsewise.search._sweeps import kick
from elsewise.settings import Settings
from elsewise.solver import State, init

__all__ = ["shortened"]

KICK, REST = 3, 3
"""Iterations of the first push, and at each eta after it."""
MORE = (0.0, 0.0, 0.05, 0.1)
"""What is added to the solution's logit, bit by bit."""
LOSS = 1.01
"""The shorter way may end this much farther on the side that is as small as possible."""
HOPELESS = 1.3
"""If it is this much farther after the first rest, it will not get there in a few more."""


def shortened(
    problem: Problem, settings: Settings, solution: Solution, late: Late = lambda: False
) -> Generator[State, None, Solution]:
    """Look for a shorter way to where a solution is, for a map that many rows will go through.

    A search arrives by way of every eta it tried. Often a few iterations at the last one lead to
    the same place; where they do not, in limits or distances, the solution stays as it is.
    """
    chosen = solution.state
    sides = [side for side in bounded_sides(problem, settings) if side is not None]
    if solution.outcome is not Outcome.CERTIFIED or chosen.setup.sparsity > 0:
        return solution
    logit = logit_of(chosen)
    state = yield from kick(problem, settings, init(problem, settings), late, KICK)
    for more in MORE:
        wanted = logit + more * (sides[0].sign if len(sides) == 1 else 0.0)
        state = yield from rest(problem, settings, state, wanted, late, REST)
        if late() or state.record.iteration >= chosen.record.iteration:
            return solution
        if any(side.other(state) > HOPELESS * side.other(chosen) for side in sides):
            return solution
        near = all(side.other(state) <= LOSS * side.other(chosen) for side in sides)
        if near and all(side.met(state) for side in sides):
            return solution._replace(state=state)
    return solution
