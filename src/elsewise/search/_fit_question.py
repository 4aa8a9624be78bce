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
from elsewise.request import Population, Problem, populate
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
    ways: Ways | None
    """Where the rows of the fit could go; None where none has to."""
    aimed: float
    """What the fit aimed at, in the user's unit."""
    limited: str = ""
    """The bound that kept rows from moving; nothing if none did."""


def fit_question(
    problem: Problem,
    question: Question,
    settings: Settings,
    unseen: int | None,
    stop: Callable[[], bool] = lambda: False,
) -> Fitted:
    """Answer a question about the rows of a problem.

    Parameters
    ----------
    unseen
        Number of rows on which the answer will be certified; None where these rows are all.
    stop
        Whether time is up; rows that were not searched by then stay.
    """
    recorded = prepare(problem, question, settings)
    if question.kind == "mean":
        return _fit_mean(problem, recorded, unseen, settings.draws, stop)
    size, share = problem.factual.shape[0], question.share
    if question.kind == "share":
        share = _aimed_share(share, size, unseen, problem.bounds.confidence)
        if not settings.sparse:  # few changes may be dear where many are cheap
            recorded = _screened(problem, recorded, share, stop)
    ways = find_ways(problem, recorded, problem.factual, stop)
    inside = int(ways.inside.sum())
    order = np.lexsort((ways.hashes, ways.costs))
    order = order[np.isfinite(ways.costs[order])]
    needed = max(0, math.ceil(share * size - 1e-9) - inside)
    count = order.size if question.kind == "every" else min(needed, order.size)
    slack, limited = 1.0 if unseen is None else TIGHTER, ""
    if problem.bounds.rows_moved is not None:
        most = math.floor(problem.bounds.rows_moved / slack * size + 1e-9)
        count, limited = (most, "rows_moved") if most < count else (count, "")

    def nearest(number: int) -> np.ndarray:
        moved = to_numpy(problem.factual).astype(np.float64).copy()
        moved[order[:number]] = ways.codes[order[:number]]
        return moved

    count, limited = _allowed(problem, nearest, count, slack, settings.draws, limited)
    if question.kind == "every" and not limited:
        return Fitted(recorded, ways, question.said(share))
    price, tie = NEVER, NEVER
    if count > 0:
        price, tie = (float(part[order[count - 1]]) for part in (ways.costs, ways.hashes))
    return Fitted(replace(recorded, price=price, tie=tie), ways, question.said(share), limited)


def _screened(
    problem: Problem, recorded: QuestionMap, share: float, stop: Callable[[], bool]
) -> QuestionMap:
    """Return the map that searches on only for rows near enough to be among those that move."""
    first = find_ways(problem, replace(recorded, screen=NEVER), problem.factual, stop)
    needed = math.ceil(share * len(first.costs)) - int(first.inside.sum())
    costs = np.sort(first.costs[np.isfinite(first.costs)])
    wide = math.ceil(SCREENED * max(needed, 0)) + FEWEST_SCREENED
    return recorded if wide >= costs.size else replace(recorded, screen=float(costs[wide - 1]))


def nothing_to_do(problem: Problem, question: Question, settings: Settings) -> QuestionMap | None:
    """Return the map that moves nothing, where the rows are as they were asked to be."""
    outputs = to_numpy(problem.factual_outputs).astype(np.float64)
    if question.wanted is None:
        sign = -1.0 if question.falling else 1.0
        now = 0.0 if question.relative else float(outputs[:, 0].mean())
        met = sign * (now - question.mean) >= -ROUNDING * max(abs(now), abs(question.mean))
    else:
        met = float(question.wanted.contains(outputs).mean()) >= question.share - ROUNDING
    if not met:
        return None
    return replace(prepare(problem, question, settings), price=NEVER, tie=NEVER)


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
    limited: str = "",
) -> tuple[int, str]:
    """The largest number up to ``count`` that the bounds over ``slack`` allow, and what limits it.

    Parameters
    ----------
    moved
        A number to the rows (n, p) after their moves, which are the farther the larger it is.
    """
    bounds, population = problem.bounds, populate(problem)
    for name, bound in (("inputs", bounds.inputs), ("moves", bounds.moves)):
        if bound is None or count == 0:
            continue

        def within(number: int, draws: int, name: str = name, bound: float = bound) -> bool:
            return _at_most(problem, population, moved(number), name, draws) <= bound / slack

        kept = _most(within, count, draws)
        count, limited = (kept, name) if kept < count else (count, limited)
    return count, limited


def _at_most(
    problem: Problem, population: Population, moved: np.ndarray, name: str, draws: int
) -> float:
    """The limit of the input distance, or of the move of a row, of moved rows (n, p)."""
    rows = Rows(asarray_like(moved, problem.factual), problem.factual)
    if name == "moves":
        return certify_moves(problem, population, rows).at_most
    bounds = problem.bounds
    method = steering_method(bounds.method, bounds.trim, problem.factual.shape[0])
    return certify_inputs(problem, population, rows, draws, method=method).at_most


def _most(holds: Callable[[int, int], bool], count: int, draws: int) -> int:
    """The largest number up to ``count`` for which a falling condition holds, by bisection.

    Few bootstrap draws steer, the certificate's own number of them decides.
    """
    if holds(count, draws):
        return count
    good, bad = 0, count
    while bad - good > 1:
        middle = (good + bad) // 2
        few = min(draws, SEARCH_DRAWS)
        good, bad = (middle, bad) if holds(middle, few) else (good, middle)
    while good > 0 and not holds(good, draws):
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
    question, level = recorded.question, problem.bounds.confidence
    sign = -1.0 if question.falling else 1.0
    before = to_numpy(problem.factual_outputs)[:, 0].astype(np.float64)
    amount = sign * (question.mean - (0.0 if question.relative else float(before.mean())))
    # Nothing or less, where half of the rows is there by chance: the margin may still be lacking.
    amount = max(0.0, amount)
    ways = find_ways(problem, recorded, problem.factual, stop)
    first = _rate(ways, amount, problem.unit)
    recorded = replace(recorded, polished=first)
    ways = find_ways(problem, recorded, problem.factual, stop)
    if unseen is not None:
        _, gains, _ = ways.trades(_rate(ways, amount, problem.unit))
        spread = float(np.var(gains if question.relative else before + sign * gains))
        amount += BETTING * _margin(spread / unseen, spread / len(before), level)
    rate, powers = _rate(ways, amount, problem.unit), np.linspace(-16.0, 0.0, 65)
    slower = (rate * 2.0**powers).tolist()

    def moved(number: int) -> np.ndarray:
        return take_ways(replace(recorded, rate=slower[number]), ways)[0]

    slack = 1.0 if unseen is None else TIGHTER
    kept, limited = _allowed(problem, moved, len(slower) - 1, slack, draws)
    rate = slower[kept] if kept else 0.0
    start = 0.0 if question.relative else float(before.mean())
    return Fitted(replace(recorded, rate=rate), ways, start + sign * amount, limited)


def _rate(ways: Ways, amount: float, unit: float) -> float:
    """The smallest rate at which rows gain ``amount`` on average, or the largest one tried."""
    low, high = 1e-9 / unit, 1e12 / unit
    for _ in range(100):
        middle = math.sqrt(low * high)
        _, gains, _ = ways.trades(middle)
        low, high = (low, middle) if gains.mean() >= amount else (middle, high)
    return high
