"""One bound: eta follows it.

A pass raises eta by a little at every iteration until the bound is met, so that rows take the moves
that cost least first. From then on eta goes down while there is room under the bound and up when
there is none, and rows go on improving at the bound. No iteration is spent far from it.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import NamedTuple

from elsewise.request import Problem
from elsewise.search._loop import State
from elsewise.search._runs import LOGIT_SPAN, Outcome, Search, Solution, advance, at_logit, logit_of
from elsewise.search._sides import Side

# A pass has at most this many iterations, and at most this many times the settings' own.
LONGEST, SHARE = 100, 4
# Iterations of a pass with many rows, at most: each of its steps is one that all rows take.
SHORTER = 50
# A pass ends when it has not brought anything for this many iterations; without slopes, where a
# second pass follows, sooner.
PATIENCE, LESS_PATIENCE = 8, 5
# What is added to the logit at the beginning of the second pass, and for how many iterations.
PUSH, PUSHES = 2.0, 2
# What counts as having brought something: a distance, or a limit not yet met, smaller by this.
PROGRESS = 0.01
# A state is noted if it is nearer than the best of its pass by this share.
NOTABLE = 0.005
# Eta aims at a limit this share below the bound.
ROOM = 0.004
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
# Logits of eta at which rows that have not arrived are offered donors.
DONOR_LOGITS = (3.0, 3.0, 6.0, 6.0, 9.0, 9.0, 12.0, 12.0, 15.0, 15.0, 18.0, 18.0)
# From so many rows on none is pushed: they relax slowly, and few flat parts hold many.
MANY = 2000


@dataclass(frozen=True, slots=True)
class Controller:
    """Which eta comes next, from how far a limit is from what is aimed at.

    The rule: until the bound is reached for the first time, the logit of eta rises by ``rise`` an
    iteration where it matters and by ``HURRY`` elsewhere. From then on it changes by ``gain`` times
    the gap, and by no more than ``MOST`` (``FAR`` times the gap where that is larger). The gain is
    halved when the gap has changed its sign and doubled, up to ``GAIN``, when it has not.
    """

    logit: float
    rise: float
    gain: float = GAIN
    gap: float = 0.0
    """The last gap: the log of limit over aim, negative where eta is better taken back."""
    reached: bool = False
    """Whether the bound has been reached, or eta has come to its end."""

    def next(self, gap: float) -> Controller:
        """Return the controller after an iteration that left a gap."""
        reached = self.reached or gap <= 0.0 or self.logit >= LOGIT_SPAN
        gain, low, high = self.gain, *SLOW_BETWEEN
        if reached:
            # As in Rprop: a change of sign means the last step was too long.
            gain = min(GAIN, gain * (CALMER if gap * self.gap < 0 else BOLDER))
            most = max(MOST, FAR * abs(gap))
            change = min(max(gain * gap, -most), most)
        else:
            change = self.rise if low <= self.logit < high else HURRY
        logit = min(max(self.logit + change, -LOGIT_SPAN), LOGIT_SPAN)
        return Controller(logit, self.rise, gain, gap, reached)


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
    start: State | None = None
    """Where the pass begins, near the bound already; None: at the factual rows."""


def _schedules(problem: Problem, first: State, side: Side) -> tuple[Schedule, ...]:
    """The passes worth making; which has the better minima depends on the model.

    Along slopes a few rows get stuck in flat parts near where they start, so they are pushed first
    and then relax; many climb slowly. Without slopes rows do not find back from where they were
    pushed, so they climb slowly too. With slopes and categories both happen, so they climb quickly
    once and are pushed once. A bound on the inputs is approached slowly from far below as well.
    """
    slow = Schedule(-2.0 if side.sign > 0 else -6.0, 0.25)
    categories = not first.stock.numbers_only
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
    other: float
    """What is paid on the other side."""


def one_bound(search: Search, side: Side) -> Generator[State, None, Solution]:
    """The smallest distance on the other side that meets the bound."""
    first = search.first
    if side.name == "outputs" and side.met(first):
        return Solution(first, Outcome.NOTHING_TO_DO)
    found: list[Found] = []
    closest = [first]
    passes = list(_schedules(search.problem, first, side))
    for pace in passes:
        more, least = yield from track_bound(search, side, pace)
        found += more
        closest.append(least)
        if pace is passes[-1] and pace.start is None:
            passes += yield from _last_pass(search, side, found, closest)
    found += yield from polished(search, side, found)
    in_order = sorted(found, key=lambda one: one.other)
    chosen = next((one.state for one in in_order if side.met(one.state)), None)
    if chosen is None:
        return _least_violating(search, side, [*closest, *(one.state for one in in_order)])
    return Solution(chosen, Outcome.OUT_OF_TIME if search.should_stop() else _moved(chosen))


def _least_violating(search: Search, side: Side, states: list[State]) -> Solution:
    """The least violating iterate, and what is reachable; x' comes first."""
    if search.should_stop():  # no time for limits either
        return Solution(min(states, key=side.seen), Outcome.OUT_OF_TIME)
    closest = min(states, key=side.limit)
    least = side.at_most(closest, side.draws)
    if least <= side.bound:
        return Solution(closest, _moved(closest))
    return Solution(closest, why_not(search, *states), side.name, least)


def why_not(search: Search, *states: State) -> Outcome:
    """Why none of these states meets the bounds: time was up, no row moved, or they are too far."""
    if search.should_stop():
        return Outcome.OUT_OF_TIME
    still = all(state.record.inputs == 0 for state in states)
    return Outcome.NOTHING_MOVES if still else Outcome.NOT_FEASIBLE


def _moved(state: State) -> Outcome:
    return Outcome.NOTHING_MOVES if state.record.inputs == 0 else Outcome.MET


def track_bound(
    search: Search, side: Side, pace: Schedule
) -> Generator[State, None, tuple[list[Found], State]]:
    """Yield the iterates of a pass; returns what it found and the state with the least limit."""
    problem = search.problem
    found: list[Found] = []
    state = closest = pace.start or search.first
    iterations = min(pace.longest, SHARE * search.settings.iterations)
    low, high = SLOW_BETWEEN
    rise = max(pace.rise, (high - low) / (CLIMB * iterations))
    control = Controller(pace.logit, rise, reached=pace.start is not None)
    last = problem.precise.smooth or state.stock.pairs
    patience = PATIENCE if last else LESS_PATIENCE
    aim, ratio, idle = (1.0 - ROOM) * side.bound, 1.0, 0
    for iteration in range(iterations):
        later = advance(search, at_logit(state, control.logit))
        if later is None:
            break
        state = later
        yield state
        if iteration < pace.pushes:
            continue
        # What stands for the limit is corrected by how far off it was at the last certificate: one
        # costs hundreds of resamples, and its ratio to the cheap limit mostly changes slowly.
        seen = side.seen(state)
        limit = ratio * seen
        if seen < side.seen(closest):
            closest = state
        # On its way to the bound a pass need not bring anything.
        idle += 1 if limit <= side.bound or abs(control.logit) >= LOGIT_SPAN else 0
        if min(limit, seen) <= side.bound:
            other = side.other(state)
            best = min((one.other for one in found), default=math.inf)
            if other < (1.0 - NOTABLE) * best:
                limit = side.limit(state)
                ratio = limit / seen if seen > 0.0 and math.isfinite(limit) else ratio
                if limit <= side.bound:
                    found.append(Found(state, other))
                    idle = 0 if other < (1.0 - PROGRESS) * best else idle
        # On the log scale: twice too far and half too far are the same distance from the bound.
        control = control.next(side.sign * math.log(max(limit / aim, 1e-12)))
        if control.reached and idle >= patience:
            break
    return found, closest


def _last_pass(
    search: Search, side: Side, found: list[Found], closest: list[State]
) -> Generator[State, None, tuple[Schedule, ...]]:
    """The pass after all others: from the best state found; where there is none, from donors.

    Without slopes rows rest where the edits drawn so far bring nothing more: pushed past the bound,
    they relax to other places. With slopes the passes themselves begin in different ways.
    """
    if found and not search.problem.precise.smooth:
        best = min(found, key=lambda one: one.other).state
        pushed = min(logit_of(best) + PUSH, LOGIT_SPAN)
        return (Schedule(pushed, 1.0, pushes=PUSHES, start=best),)
    if found or side.name == "inputs" or closest[0].setup.motion.gradient:
        return ()
    state = yield from _donated(search, side, min(closest, key=side.limit))
    closest.append(state)
    return (Schedule(logit_of(state), 1.0, start=state),)


def polished(search: Search, side: Side, found: list[Found]) -> Generator[State, None, list[Found]]:
    """Go on from the best state found, one change in another's place, until nothing improves.

    Returns what is nearer. With slopes rows come to rest by themselves.
    """
    if search.problem.precise.smooth or not found:
        return []
    best = min(found, key=lambda one: one.other).state
    start = replace(best, stock=replace(best.stock, pairs=True))
    more, _ = yield from track_bound(search, side, Schedule(logit_of(best), 1.0, start=start))
    return [
        one._replace(state=replace(one.state, stock=replace(one.state.stock, pairs=False)))
        for one in more
    ]


def _donated(search: Search, side: Side, state: State) -> Generator[State, None, State]:
    """Offer rows donors at a rising eta until the bound is met; returns the state it came to.

    For outputs that no pass has brought within the bound. If for every row some donor has the
    wanted output, an eta near enough to 1 makes every row take one, or a part of the way.
    """
    state = closest = replace(state, stock=replace(state.stock, donors=True))
    for logit in DONOR_LOGITS:
        if side.limit(closest) <= side.bound:
            break
        later = advance(search, at_logit(state, logit))
        if later is None:
            break
        state = later
        yield state
        closest = min(closest, state, key=side.limit)
    return closest
