"""What is done to a solution: a shorter map to it, and changes that do not matter taken back."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace

from elsewise.search._loop import State, init
from elsewise.search._runs import Outcome, Search, Solution, at_logit, logit_of, run, warm_start
from elsewise.search._sides import Side, bounded_sides, distance_side, row_move, selection_distance

# Iterations of the first push of a shorter map, and at each eta after it.
KICK, REST = 3, 3
# What is added to the solution's logit then, bit by bit.
LATER = (0.0, 0.0, 0.05, 0.1)
# The side that is as small as possible may be this much larger afterwards.
LOSS = 1.01
# If it is this much farther after the first rest, it will not get there in a few more.
HOPELESS = 1.3
# Prices of a changed cell that are gone through, in squared standard deviations: each is so many
# times the last; where one is too much, what is left is gone through by the root of that.
FIRST_PRICE, LAST_PRICE, RISE = 0.01, 100.0, 2.0
# Iterations at each price.
ITERATIONS = 5
# Tables of more numbers and categories are not tidied: each is offered back to every row.
MOST_UNITS = 256
# What is added to the logit of eta where a price breaks a bound, and where rows move too far
# instead; between one that does the first and one that does the second is their mean.
MORE, LESS = 0.25, -0.5
# Etas tried at a price.
TRIES = 6


def find_shorter_map(
    search: Search, solution: Solution, sides: Sequence[Side]
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
    first = init(search.problem, replace(search.settings, population_weight=weight))
    state = yield from warm_start(search._replace(first=first), KICK)
    for more in LATER:
        wanted = logit + more * (sides[0].sign if len(sides) == 1 else 0.0)
        for _ in range(REST):
            state = yield from run(search, at_logit(state, wanted), 1)
            if search.should_stop() or state.record.iteration >= chosen.record.iteration:
                return solution
            near = all(side.other(state) <= LOSS * side.other(chosen) for side in sides)
            if near and all(side.met(state) for side in sides):
                return solution._replace(state=state)
        if any(side.other(state) > HOPELESS * side.other(chosen) for side in sides):
            return solution
    return solution


def tidied(search: Search, solution: Solution) -> Generator[State, None, Solution]:
    """Take changes back at a rising price per changed cell, as long as every bound holds.

    Rows may move farther by ``settings.slack`` (root mean square), with ``settings.sparse`` by any
    amount. Where a price breaks a bound, more weight on the outputs may make up for it.
    """
    problem, settings, first, should_stop = search
    state, budget = solution.state, math.inf if settings.sparse else settings.slack
    wide = len(state.stock.units) > MOST_UNITS and not settings.sparse
    skip = budget == 0.0 or wide or state.setup.motion.gradient
    if skip or solution.outcome not in (Outcome.MET, Outcome.CHOSEN):
        return solution
    sides = bounded_sides(problem, settings, steering=False)
    if not any(side.name == "outputs" and not side.met(first) for side in sides):
        # No bound keeps the outputs from where they began: they stay as near as they are now.
        sides.append(distance_side(problem, settings, LOSS * state.record.outputs))
    distance = selection_distance(problem)
    farthest = [(1.0 + budget) * far(state) for far in (row_move, distance)]

    def fits(later: State) -> tuple[bool, bool]:
        near = row_move(later) <= farthest[0] and distance(later) <= farthest[1]
        return near, all(side.met(later) for side in sides)

    logit, price, rise = logit_of(state), FIRST_PRICE, RISE
    while price <= LAST_PRICE and not should_stop():
        priced = replace(state, stock=replace(state.stock, sparsity=price))
        found = yield from _at_price(search, priced, logit, fits)
        if found is not None:
            state, logit = found
        elif rise == RISE:
            price, rise = price / rise, math.sqrt(rise)
        else:
            break
        price *= rise
    return solution._replace(state=state)


def _at_price(
    search: Search, priced: State, logit: float, fits: Callable[[State], tuple[bool, bool]]
) -> Generator[State, None, tuple[State, float] | None]:
    """Look for an eta at which rows are near enough and meet every bound; returns it with them."""
    more, broken, far = 0.0, -math.inf, math.inf
    for _ in range(TRIES):
        if search.should_stop():
            break
        later = yield from run(search, at_logit(priced, logit + more), ITERATIONS)
        near, met = fits(later)
        if near and met:
            return later, logit + more
        if not near and not met:
            break
        broken, far = (broken, more) if met else (more, far)
        if math.isfinite(far - broken):
            more = (broken + far) / 2.0
        else:
            more += LESS if met else MORE
    return None
