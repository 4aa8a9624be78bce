"""Running the solver at a given eta, and watching the time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import TypeVar

from elsewise.request import Problem
from elsewise.search._loop import State, run
from elsewise.settings import Fixed, Settings

T = TypeVar("T")
ShouldStop = Callable[[], bool]
"""Whether the search has to end with what it has."""

LOGIT_SPAN = 9.0
"""Eta is searched between logistic(-9) and logistic(9)."""
# Logit of eta in the first iterations: where slopes alone lead, and where not.
KICK_LOGIT = {True: 3.0, False: 0.0}
KICK_ITERATIONS = 8


# Share of the time budget for binding the model and the search; the rest is the certificate's.
SEARCHED = 0.75


def clock(
    seconds: float | None, stop: Callable[[], bool] | None, since: float | None = None
) -> ShouldStop:
    """Tell whether time is up or the search was told to stop.

    Parameters
    ----------
    seconds
        Time budget of the whole answer; None: there is none.
    stop
        Tells the search to stop.
    since
        When the budget began to run, as `time.perf_counter` has it; None: now.
    """
    if seconds is None:
        return stop or (lambda: False)
    deadline = (time.perf_counter() if since is None else since) + SEARCHED * seconds
    return lambda: time.perf_counter() >= deadline or (stop is not None and stop())


def finish(search: Generator[State, None, T]) -> tuple[T, list[State]]:
    """Run a search to its end; returns its value and all it yielded."""
    states: list[State] = []
    while True:
        try:
            states.append(next(search))
        except StopIteration as end:
            return end.value, states


def at_logit(state: State, logit: float) -> State:
    """The state with eta = logistic(logit) from now on."""
    eta = 1.0 / (1.0 + math.exp(-logit))
    return replace(state, balance=Fixed(eta=eta))


def logit_of(state: State) -> float:
    """The logit at which `run_at_eta` would go on with a state's eta."""
    eta = min(max(state.record.eta, 1e-15), 1.0 - 1e-15)
    logit = math.log(eta / (1.0 - eta))
    return min(max(logit, -LOGIT_SPAN), LOGIT_SPAN)


def run_at_eta(
    problem: Problem,
    settings: Settings,
    start: State,
    logit: float,
    should_stop: ShouldStop,
    iterations: int,
) -> Generator[State, None, State]:
    """Run from a state at one eta, until rows rest; returns where that ends."""
    few = replace(settings, iterations=min(iterations, settings.iterations))
    state = start
    for state in run(problem, at_logit(start, logit), few, should_stop):
        yield state
    return state


def warm_start(
    problem: Problem,
    settings: Settings,
    first: State,
    should_stop: ShouldStop,
    iterations: int = KICK_ITERATIONS,
) -> Generator[State, None, State]:
    """Push the outputs first, so that rows leave the flat parts and local minima they start in."""
    numbers_only = all(unit.choices is None for unit in first.setup.units)
    logit = KICK_LOGIT[problem.precise.smooth and numbers_only]
    return (yield from run_at_eta(problem, settings, first, logit, should_stop, iterations))
