"""One bound: eta follows it.

A pass raises eta by a little at every iteration until the bound is met, so that rows take the moves
that cost least first. From then on eta goes down while there is room under the bound and up when
there is none, and rows go on improving at the bound. No iteration is spent far from it.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import NamedTuple

from elsewise.request import Problem
from elsewise.search._loop import State, step
from elsewise.search._runs import LOGIT_SPAN, ShouldStop, at_logit
from elsewise.search._sides import Side
from elsewise.settings import Settings

# A pass has at most this many iterations, and at most this many times the settings' own.
LONGEST, SHARE = 100, 4
# Iterations of a pass with many rows, at most: each of its steps is one that all rows take.
SHORTER = 50
# A pass ends when it has not brought anything for this many iterations.
PATIENCE = 8
# What counts as having brought something: a distance, or a limit not yet met, smaller by this.
PROGRESS = 0.01
# A state is noted if it is nearer than the best of its pass by this share.
NOTABLE = 0.005
# Eta aims at a limit this share below the bound.
ROOM = 0.004
# The certificate is asked about limits above this share of the bound; lower ones are met.
NEAR = 0.8
# Change of the logit per unit of log(limit / aim), once the bound has been reached, at most.
GAIN = 4.0
# What the gain is multiplied by when the limit has crossed the aim, and when it has not.
CALMER, BOLDER = 0.5, 2.0
# The largest change of the logit at one iteration then, and per unit of log(limit / aim).
MOST, FAR = 0.5, 0.4
# Rise of the logit per iteration below and above the range where it matters.
HURRY = 1.0
# That range.
SLOW_BETWEEN = (-2.0, 2.0)
# The largest share of a pass spent in it before the bound is reached.
CLIMB = 0.4
# From so many rows on none is pushed: they relax slowly, and few flat parts hold many.
MANY = 2000


class Schedule(NamedTuple):
    """How a pass begins."""

    logit: float
    """Logit of the first eta."""
    rise: float
    """What is added at every iteration, until the bound is reached."""
    pushes: int = 0
    """Iterations at the first eta before anything else."""
    longest: int = LONGEST
    """Iterations at most."""


def schedules(problem: Problem, first: State, side: Side) -> tuple[Schedule, ...]:
    """The passes worth making; which has the better minima depends on the model.

    Along slopes a few rows get stuck in flat parts near where they start, so they are pushed first
    and then relax; many climb slowly. Without slopes rows do not find back from where they were
    pushed, so they climb slowly too. With slopes and categories both happen, so they climb quickly
    once and are pushed once. A bound on the inputs is approached slowly from far below as well.
    """
    slow = Schedule(-2.0 if side.sign > 0 else -6.0, 0.25)
    categories = any(unit.choices is not None for unit in first.setup.units)
    many = first.rows.codes.shape[0] >= MANY
    if not problem.precise.smooth:
        return (slow,)
    if many and not categories:
        return (slow._replace(longest=SHORTER),)
    if categories:
        quick: tuple[Schedule, ...] = (Schedule(0.0, 1.0), Schedule(3.0, 1.0, pushes=4))
    else:
        quick = (Schedule(3.0, 1.0, pushes=8),)
    return quick if side.sign > 0 else (*quick, slow)


class Found(NamedTuple):
    """A state that meets the bound, as far as a few draws can tell."""

    state: State
    limit: float
    other: float


def track_bound(
    problem: Problem,
    settings: Settings,
    first: State,
    side: Side,
    pace: Schedule,
    should_stop: ShouldStop,
) -> Generator[State, None, tuple[list[Found], State]]:
    """Yield the iterates of a pass; returns what it found and the state with the least limit."""
    found: list[Found] = []
    state = closest = first
    logit, gain, reached = pace.logit, GAIN, False
    aim, ratio, idle = (1.0 - ROOM) * side.bound, 1.0, 0
    last_gap = 0.0
    iterations = min(pace.longest, SHARE * settings.iterations)
    low, high = SLOW_BETWEEN
    rise = max(pace.rise, (high - low) / (CLIMB * iterations))
    for iteration in range(iterations):
        if should_stop():
            break
        state = step(problem, at_logit(state, logit))
        yield state
        if iteration < pace.pushes:
            continue
        # What stands for the limit is corrected by how far off it was at the last certificate.
        seen = side.seen(state)
        # A certificate costs hundreds of resamples; its ratio to the cheap limit changes slowly.
        limit = ratio * seen
        if seen < side.seen(closest):
            closest = state
        # On its way to the bound a pass need not bring anything.
        idle += 1 if limit <= side.bound or abs(logit) >= LOGIT_SPAN else 0
        if limit <= side.bound:
            other = side.other(state)
            best = min((one.other for one in found), default=math.inf)
            if other < (1.0 - NOTABLE) * best:
                if limit > NEAR * side.bound:
                    limit = side.limit(state)
                    ratio = limit / seen if math.isfinite(limit) else ratio
                if limit <= side.bound:
                    found.append(Found(state, limit, other))
                    idle = 0 if other < (1.0 - PROGRESS) * best else idle
        # On the log scale: twice too far and half too far are the same distance from the bound.
        gap = side.sign * math.log(max(limit, 1e-12) / aim)
        reached = reached or gap <= 0 or logit >= LOGIT_SPAN
        if reached:
            # As in Rprop: a change of sign means the last step was too long.
            gain = min(GAIN, gain * (CALMER if gap * last_gap < 0 else BOLDER))
            most = max(MOST, FAR * abs(gap))
            logit += min(max(gain * gap, -most), most)
        else:
            logit += rise if low <= logit < high else HURRY
        last_gap = gap
        logit = min(max(logit, -LOGIT_SPAN), LOGIT_SPAN)
        if reached and idle >= PATIENCE:
            break
    return found, closest
