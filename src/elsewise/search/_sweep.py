"""Sweeps of eta: the points of the frontier."""

from __future__ import annotations

from collections.abc import Generator, Iterable

from elsewise.request import Problem
from elsewise.search._loop import State
from elsewise.search._runs import ShouldStop, run_at_eta, warm_start
from elsewise.settings import Settings

SWEEP_LOGITS = tuple(float(logit) for logit in range(-5, 6))
"""Logits of eta along the frontier."""
# Iterations at each eta of a sweep, which starts where the one before came to rest.
ITERATIONS = 10


def trace(
    problem: Problem,
    settings: Settings,
    first: State,
    should_stop: ShouldStop = lambda: False,
    logits: Iterable[float] = SWEEP_LOGITS,
) -> Generator[State, None, list[State]]:
    """Yield the iterates of two sweeps of eta; returns x' and where each eta came to rest.

    Down from a first push, and up from x'. Rows that relax may keep changes they no longer need,
    rows that start at x' may never leave the minimum they start in: each sweep has the better
    points on a part of the frontier.
    """
    ends = [first]
    up = sorted(logits)
    state = yield from warm_start(problem, settings, first, should_stop)
    for start, way in ((state, up[::-1]), (first, up)):
        state = start
        for logit in way:
            if should_stop():
                return ends
            state = yield from run_at_eta(problem, settings, state, logit, should_stop, ITERATIONS)
            ends.append(state)
    return ends
