"""What every part of a search needs: its question, its budget, its outcome, and runs at one eta."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, TypeVar

from elsewise._resources import TimeIsUp, until
from elsewise.request import Problem
from elsewise.search._loop import State, init, step
from elsewise.settings import Fixed, Settings

T = TypeVar("T")
ShouldStop = Callable[[], bool]
"""Whether the search has to end with what it has."""

LOGIT_SPAN = 9.0
"""Eta is searched between logistic(-9) and logistic(9)."""
SWEEP_LOGITS = tuple(float(logit) for logit in range(-5, 6))
"""Logits of eta along the frontier."""
# Iterations at each eta of a sweep, which starts where the one before came to rest.
SWEEP_ITERATIONS = 10
# Logit of eta in the first iterations: where slopes alone lead, and where not.
KICK_LOGIT = {True: 3.0, False: 0.0}
KICK_ITERATIONS = 8


@dataclass(frozen=True, slots=True)
class Clock:
    """Whether the search has to end with what it has."""

    deadline: float
    """As `time.perf_counter` has it; infinity: there is none."""
    stop: ShouldStop | None
    """Tells the search to stop."""

    def __call__(self) -> bool:
        """Tell whether time is up or the search was told to stop."""
        return self.over() or (self.stop is not None and self.stop())

    def over(self) -> bool:
        """Tell whether time is up."""
        return self.deadline < math.inf and time.perf_counter() >= self.deadline


class Outcome(StrEnum):
    """How a search for small distances ended; the certificate has the last word."""

    MET = "bounds met on the rows of the fit"
    NOTHING_TO_DO = "bounds met by the factual rows"
    CHOSEN = "no bounds given: chosen at the knee of the frontier"
    NOT_FEASIBLE = "bounds not met"
    NOTHING_MOVES = "no row could move"
    OUT_OF_TIME = "out of time"


class Solution(NamedTuple):
    """The chosen iterate and why it was chosen."""

    state: State
    outcome: Outcome
    binding: str | None = None
    """The side whose limit cannot be met, "inputs" or "outputs"."""
    reachable: float | None = None
    """The smallest upper limit found on the binding side with the other side's limit met."""
    reason: str = ""
    """Why this iterate, where no limit decided."""


class Search(NamedTuple):
    """What stays the same during a search, whichever eta it tries."""

    problem: Problem
    settings: Settings
    first: State
    """The rows before they move."""
    should_stop: Clock


def begin(problem: Problem, settings: Settings, stop: ShouldStop | None = None) -> Search:
    """Return a search that is at its start; its time budget, if any, begins to run now."""
    should_stop = stop if isinstance(stop, Clock) else clock(settings.seconds, stop)
    return Search(problem, settings, init(problem, settings), should_stop)


def clock(
    seconds: float | None, stop: ShouldStop | None, since: float | None = None, part: float = 0.75
) -> Clock:
    """Return what tells whether time is up or the search was told to stop.

    Parameters
    ----------
    seconds
        Time budget of the whole answer; None: there is none.
    stop
        Tells the search to stop.
    since
        When the budget began to run, as `time.perf_counter` has it; None: now.
    part
        The part of the budget after which time is up: that of binding the model and the search,
        unless said otherwise; the rest is the certificate's.
    """
    if seconds is None:
        return Clock(math.inf, stop)
    return Clock((time.perf_counter() if since is None else since) + part * seconds, stop)


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
    """The logit of a state's eta, as far as eta is searched."""
    eta = min(max(state.record.eta, 1e-15), 1.0 - 1e-15)
    logit = math.log(eta / (1.0 - eta))
    return min(max(logit, -LOGIT_SPAN), LOGIT_SPAN)


def advance(search: Search, state: State) -> State | None:
    """Return the state after another step, or None where time is up before its end."""
    if search.should_stop():
        return None
    try:
        with until(search.should_stop.over, interrupt=True):
            return step(search.problem, state)
    except TimeIsUp:
        return None


def run(search: Search, state: State, iterations: int) -> Generator[State, None, State]:
    """Repeat the step until rows rest, iterations run out or time is up; returns the last state."""
    for _ in range(min(iterations, search.settings.iterations)):
        later = advance(search, state)
        if later is None:
            break
        state = later
        yield state
        if state.record.change <= search.settings.epsilon:
            break
    return state


def warm_start(search: Search, iterations: int = KICK_ITERATIONS) -> Generator[State, None, State]:
    """Push the outputs first, so that rows leave the flat parts and local minima they start in."""
    logit = KICK_LOGIT[search.problem.precise.smooth and search.first.stock.numbers_only]
    return (yield from run(search, at_logit(search.first, logit), iterations))


def trace(
    search: Search, logits: Iterable[float] = SWEEP_LOGITS
) -> Generator[State, None, list[State]]:
    """Yield the iterates of two sweeps of eta; returns x' and where each eta came to rest.

    Down from a first push, and up from x'. Rows that relax may keep changes they no longer need,
    rows that start at x' may never leave the minimum they start in: each sweep has the better
    points on a part of the frontier.
    """
    ends, up = [search.first], sorted(logits)
    pushed = yield from warm_start(search)
    for start, way in ((pushed, up[::-1]), (search.first, up)):
        state = start
        for logit in way:
            if search.should_stop():
                return ends
            state = yield from run(search, at_logit(state, logit), SWEEP_ITERATIONS)
            ends.append(state)
    return ends
