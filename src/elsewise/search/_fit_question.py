"""From a question to its recorded answer: the price or rate that reaches what was asked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from elsewise._arrays import asarray_like, to_numpy
from elsewise.certificate import certify_inputs, certify_moves
from elsewise.confidence import steering_method
from elsewise.moves import QuestionMap, Rows, Ways, find_ways, prepare, take_ways
from elsewise.request import Problem, populate
from elsewise.settings import Settings
from elsewise.targets import Question

POWER = 0.8
"""About this share of held-out questions is to be certified."""
BETTING = 1.3
"""Limits of means by betting are about this much farther out than normal ones."""
SEARCH_DRAWS = 199
TIGHTER = 1.2
"""The fit keeps to bounds divided by this: unseen rows are a little farther than seen ones."""
SCREENED, FEWEST_SCREENED = 1.3, 10
"""So many times the rows that have to move, and this many more, are searched thoroughly."""
ROUNDING = 1e-9
NEVER = -1.0
"""A price that no way costs: nothing moves."""


class Fitted(NamedTuple):
    """A recorded answer, and how it was come by."""

    recorded: QuestionMap
    ways: Ways
    """Where the rows of the fit could go."""
    aimed: float
    """What the fit aimed at, in the user's unit."""
    limited: str = ""
    """The bound that kept rows from moving; nothing if none did."""


def fit_question(
    problem: Problem,
    question: Question,
    settings: Settings,
    unseen: np.ndarray | None,
    stop: Callable[[], bool] = lambda: False,
) -> Fitted:
    """Answer a question about the rows of a problem.

    Parameters
    ----------
    unseen
        The rows on which the answer will be certified, int (m,); None where these rows are all.
    stop
        Whether time is up; rows that were not searched by then stay.
    """
    recorded = prepare(problem, question, settings)
    later = None if unseen is None else len(unseen)
    if question.kind == "mean":
        return _fit_mean(problem, recorded, later, settings.draws, stop)
    size, share, ways = problem.factual.shape[0], question.share, None
    if question.kind == "share":
        share = _aimed_share(share, size, later, problem.bounds.confidence)
        if not settings.sparse:  # few changes may be dear where many are cheap
            recorded, ways = _screened(problem, recorded, share, stop)
    if ways is None:
        ways = find_ways(problem, recorded, problem.factual, stop, problem.factual_outputs)
    order = np.lexsort((ways.hashes, ways.costs))
    order = order[np.isfinite(ways.costs[order])]
    needed = max(0, math.ceil(share * size - 1e-9) - int(ways.inside.sum()))
    count = order.size if question.kind == "every" else min(needed, order.size)
    slack, limited = 1.0 if later is None else TIGHTER, ""
    if problem.bounds.rows_moved is not None:
        most = math.floor(problem.bounds.rows_moved / slack * size + 1e-9)
        count, limited = (most, "rows_moved") if most < count else (count, "")

    def nearest(number: int) -> np.ndarray:
        moved = ways.factual.copy()
        moved[order[:number]] = ways.codes[order[:number]]
        return moved

    count, too_far = _allowed(problem, nearest, count, slack, settings.draws)
    fitted = Fitted(recorded, ways, question.said(share), too_far or limited)
    if question.kind == "every" and not fitted.limited:
        return fitted
    price, tie = NEVER, NEVER
    if count > 0:
        price, tie = (float(part[order[count - 1]]) for part in (ways.costs, ways.hashes))
    return fitted._replace(recorded=replace(recorded, price=price, tie=tie))


def _screened(
    problem: Problem, recorded: QuestionMap, share: float, stop: Callable[[], bool]
) -> tuple[QuestionMap, Ways | None]:
    """Return the map that searches on only for rows near enough to be among those that move.

    Where time is up before that, it searches on for none, and their ways are known already.
    """
    hasty = replace(recorded, screen=NEVER)
    first = find_ways(problem, hasty, problem.factual, stop, problem.factual_outputs)
    if first.stopped:
        return hasty, first
    needed = math.ceil(share * len(first.costs)) - int(first.inside.sum())
    costs = np.sort(first.costs[np.isfinite(first.costs)])
    wide = math.ceil(SCREENED * max(needed, 0)) + FEWEST_SCREENED
    screen = recorded.screen if wide >= costs.size else float(costs[wide - 1])
    return replace(recorded, screen=screen), None


def nothing_to_do(problem: Problem, question: Question, settings: Settings) -> Fitted | None:
    """Return the map that moves nothing, where the rows are as they were asked to be."""
    outputs = to_numpy(problem.factual_outputs).astype(np.float64)
    if question.wanted is None:
        now = 0.0 if question.relative else float(outputs[:, 0].mean())
        ahead = question.sign * (now - question.mean)
        met = ahead >= -ROUNDING * max(abs(now), abs(question.mean))
    else:
        met = float(question.wanted.contains(outputs).mean()) >= question.share - ROUNDING
    if not met:
        return None
    recorded = replace(prepare(problem, question, settings), price=NEVER, tie=NEVER)
    return Fitted(recorded, Ways.of_content(to_numpy(problem.factual)), question.asked)


def _aimed_share(share: float, fitted: int, unseen: int | None, level: float) -> float:
    """Return the share to aim at so that about four of five answers are certified.

    The certificate needs z s more than was asked, s its standard error; and the share that comes
    out varies by the errors of both halves, because the price has its own.
    """
    if unseen is None:
        return share
    variance = share * (1.0 - share)
    return min(1.0, share + _margin(variance / unseen, variance / fitted, level))


def _margin(unseen: float, fitted: float, level: float) -> float:
    """The distance to keep from what was asked, from the variances on either half."""
    return float(ndtri(level) * math.sqrt(unseen) + ndtri(POWER) * math.sqrt(unseen + fitted))


def _allowed(
    problem: Problem,
    moved: Callable[[int], np.ndarray],
    count: int,
    slack: float,
    draws: int,
) -> tuple[int, str]:
    """The largest number up to ``count`` that the bounds over ``slack`` allow, and what limits it.

    Parameters
    ----------
    moved
        A number to the rows (n, p) after their moves, which are the farther the larger it is.
    """
    bounds, population, limited = problem.bounds, populate(problem), ""
    method = steering_method(bounds.method, bounds.trim, problem.factual.shape[0])

    def rows(number: int) -> Rows:
        return Rows(asarray_like(moved(number), problem.factual), problem.factual)

    def inputs(number: int, draws: int) -> float:
        return certify_inputs(problem, population, rows(number), draws, method=method).at_most

    def moves(number: int, draws: int) -> float:
        return certify_moves(problem, population, rows(number)).at_most

    sides = (("inputs", bounds.inputs, inputs), ("moves", bounds.moves, moves))
    for name, bound, at_most in sides:
        if bound is not None and count > 0:
            kept = _most(at_most, bound / slack, count, draws)
            count, limited = (kept, name) if kept < count else (count, limited)
    return count, limited


def _most(at_most: Callable[[int, int], float], bound: float, count: int, draws: int) -> int:
    """The largest number up to ``count`` whose limit is within a bound, by bisection.

    Few bootstrap draws steer, the certificate's own number of them decides.
    """
    if at_most(count, draws) <= bound:
        return count
    good, bad, few = 0, count, min(draws, SEARCH_DRAWS)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if at_most(middle, few) <= bound else (good, middle)
    while good > 0 and at_most(good, draws) > bound:
        good -= max(1, good // 40)
    return good


def _fit_mean(
    problem: Problem,
    recorded: QuestionMap,
    unseen: int | None,
    draws: int,
    stop: Callable[[], bool],
) -> Fitted:
    """Find the exchange rate at which the mean is what was asked for."""
    question, sign = recorded.question, recorded.question.sign
    before = to_numpy(problem.factual_outputs)[:, 0].astype(np.float64)
    start = 0.0 if question.relative else float(before.mean())
    amount = sign * (question.mean - start)
    # Nothing or less, where half of the rows is there by chance: the margin may still be lacking.
    amount = max(0.0, amount)
    ways = find_ways(problem, recorded, problem.factual, stop)
    first = _rate(ways, amount, problem.unit)
    polished = replace(recorded, polished=first)
    more = ways if ways.stopped else find_ways(problem, polished, problem.factual, stop)
    if more.stopped:
        ways = ways._replace(stopped=True)
    else:
        recorded, ways = polished, more
    if unseen is not None:
        _, gains, _ = ways.trades(_rate(ways, amount, problem.unit))
        spread = float(np.var(gains if question.relative else before + sign * gains))
        level = problem.bounds.confidence
        amount += BETTING * _margin(spread / unseen, spread / len(before), level)
    rate, powers = _rate(ways, amount, problem.unit), np.linspace(-16.0, 0.0, 65)
    slower = (rate * 2.0**powers).tolist()

    def moved(number: int) -> np.ndarray:
        return take_ways(replace(recorded, rate=slower[number]), ways)[0]

    slack = 1.0 if unseen is None else TIGHTER
    kept, limited = _allowed(problem, moved, len(slower) - 1, slack, draws)
    rate = slower[kept] if kept else 0.0
    return Fitted(replace(recorded, rate=rate), ways, start + sign * amount, limited)


def _rate(ways: Ways, amount: float, unit: float) -> float:
    """The smallest rate at which rows gain ``amount`` on average, or the largest one tried."""
    assert ways.front is not None  # the search of a mean keeps it
    low, high, gains = 1e-9 / unit, 1e12 / unit, np.zeros(len(ways.costs))
    # Rows that were not searched gain nothing.
    some = np.flatnonzero(ways.front[1].any(axis=1))
    costs, gained, codes = (part[some] for part in ways.front)
    part = ways._replace(front=(costs, gained, codes))
    for _ in range(100):
        middle = math.sqrt(low * high)
        if not low < middle < high:
            break
        _, gains[some], _ = part.trades(middle)
        low, high = (low, middle) if gains.mean() >= amount else (middle, high)
    return high
