"""Fewer changed cells at the same bounds: changes that do not matter are taken back."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace

from elsewise.request import Problem
from elsewise.search._loop import State
from elsewise.search._outcome import Outcome, Solution
from elsewise.search._runs import ShouldStop, logit_of, run_at_eta
from elsewise.search._sides import (
    bounded_sides,
    distance_side,
    moves_side,
    row_move,
    selection_distance,
)
from elsewise.settings import Settings

# Prices of a changed cell that are gone through, doubling, in squared standard deviations.
FIRST_PRICE, LAST_PRICE = 0.01, 100.0
# Iterations at each price.
ITERATIONS = 4
# Tables of more numbers and categories are not tidied: each is offered back to every row.
MOST_UNITS = 256
# Logits of eta added where a price breaks a bound, and where rows move too far instead.
MORE, LESS = (0.5, 1.0), (-1.0, -2.0, -3.0)
# The output distance may be this much larger afterwards where it has no bound.
LOSS = 1.01


def tidied(
    problem: Problem,
    settings: Settings,
    first: State,
    solution: Solution,
    should_stop: ShouldStop,
) -> Generator[State, None, Solution]:
    """Take changes back at a rising price per changed cell, as long as every bound holds.

    Rows may move farther by ``settings.slack`` (root mean square), with ``settings.sparse`` by any
    amount. Where a price breaks a bound, more weight on the outputs may make up for it.
    """
    state, budget = solution.state, math.inf if settings.sparse else settings.slack
    wide = len(state.setup.units) > MOST_UNITS and not settings.sparse
    skip = budget == 0.0 or wide or state.setup.motion.gradient
    if skip or solution.outcome not in (Outcome.MET, Outcome.CHOSEN):
        return solution
    bounded = *bounded_sides(problem, settings, steering=False), moves_side(problem, settings)
    sides = [side for side in bounded if side is not None]
    if not any(side.name == "outputs" and not side.met(first) for side in sides):
        # No bound keeps the outputs from where they began: they stay as near as they are now.
        sides.append(distance_side(problem, settings, LOSS * state.record.outputs))
    distance = selection_distance(problem)
    farthest = [(1.0 + budget) * far(state) for far in (row_move, distance)]
    logit, price = logit_of(state), FIRST_PRICE
    while price <= LAST_PRICE:
        priced = replace(state, setup=replace(state.setup, sparsity=price))
        tries = [0.0]
        for more in tries:
            if should_stop():
                return solution._replace(state=state)
            later = yield from run_at_eta(
                problem, settings, priced, logit + more, should_stop, ITERATIONS
            )
            near = row_move(later) <= farthest[0] and distance(later) <= farthest[1]
            met = all(side.met(later) for side in sides)
            if near and met:
                state, logit = later, logit + more
                break
            if more == 0.0 and (near or met):
                tries += LESS if met else MORE
        else:
            break
        price *= 2.0
    return solution._replace(state=state)
