"""Fewer changed cells at the same limits."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from elsewise.request import Problem
from elsewise.search._loop import State
from elsewise.search._runs import ShouldStop, logit_of, run_at_eta
from elsewise.search._sides import Side
from elsewise.settings import Settings

# Prices of a changed cell that are gone through, doubling.
FIRST_PRICE, LAST_PRICE = 0.01, 100.0
# Iterations at each price.
ITERATIONS = 4
# Logits of eta added where a price breaks a limit.
MORE = (0.0, 0.5, 1.0)


def sparser(
    problem: Problem,
    settings: Settings,
    state: State,
    sides: Sequence[Side],
    should_stop: ShouldStop,
) -> Generator[State, None, State]:
    """Take changes back at a rising price per changed cell, as long as every limit holds.

    Where a price breaks a limit, more weight on the outputs may make up for it.
    """
    logit = logit_of(state)
    price = FIRST_PRICE
    while price <= LAST_PRICE:
        priced = replace(state, setup=replace(state.setup, sparsity=price))
        for more in MORE:
            if should_stop():
                return state
            wanted = logit + more
            later = yield from run_at_eta(
                problem, settings, priced, wanted, should_stop, ITERATIONS
            )
            if all(side.met(later) for side in sides):
                state, logit = later, wanted
                break
        else:
            return state
        price *= 2.0
    return state
