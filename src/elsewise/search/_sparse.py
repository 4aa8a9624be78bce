"""Fewer changed cells at the same bounds: changes that do not matter are taken back."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace

from elsewise.request import Problem
from elsewise.search._loop import State
from elsewise.search._outcome import Outcome, Solution
from elsewise.search._runs import ShouldStop, logit_of, run_at_eta
from elsewise.search._sides import bounded_sides, distance_side, moves_side, row_move
from elsewise.settings import Settings

# Prices of a changed cell that are gone through, doubling, in squared standard deviations.
FIRST_PRICE, LAST_PRICE = 0.01, 100.0
# Iterations at each price.
ITERATIONS = 4
# Logits of eta added where a price breaks a limit.
MORE = (0.0, 0.5, 1.0)
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
    skip = budget == 0.0 or state.setup.motion.gradient
    if skip or solution.outcome not in (Outcome.MET, Outcome.CHOSEN):
        return solution
    bounded = *bounded_sides(problem, settings, steering=False), moves_side(problem, settings)
    sides = [side for side in bounded if side is not None]
    if not any(side.name == "outputs" and not side.met(first) for side in sides):
        # No bound keeps the outputs from where they began: they stay as near as they are now.
        sides.append(distance_side(problem, settings, LOSS * state.record.outputs))
    farthest = (1.0 + budget) * row_move(state)
    logit, price = logit_of(state), FIRST_PRICE
    while price <= LAST_PRICE:
        priced = replace(state, setup=replace(state.setup, sparsity=price))
        for more in MORE:
            if should_stop():
                return solution._replace(state=state)
            wanted = logit + more
            later = yield from run_at_eta(
                problem, settings, priced, wanted, should_stop, ITERATIONS
            )
            if row_move(later) <= farthest and all(side.met(later) for side in sides):
                state, logit = later, wanted
                break
        else:
            break
        price *= 2.0
    return solution._replace(state=state)
