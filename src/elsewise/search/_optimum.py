"""How far moves are from the least possible ones, where those are known."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logit

from elsewise._arrays import to_numpy
from elsewise.models import linear_margin
from elsewise.moves import Ways, move_prices
from elsewise.request import Problem
from elsewise.targets import Question
from elsewise.text import percent

UNBOUNDED = 1e150
"""Stands for a box without an end, so that no product is infinite."""


def excess_over_least(
    problem: Problem, question: Question, ways: Ways, moves: np.ndarray, moved: np.ndarray
) -> float | None:
    """Return by what share moves (root mean square) exceed the least that do the same.

    Known for models that are linear in numbers, with a logistic link or none: the least move of a
    row is then a projection on a half-space within its box. Whole numbers and rules are left out of
    the least moves, so that the share is at most as large as returned. None: it is not known.

    Parameters
    ----------
    moves
        bool ndarray (n,): the rows that move.
    moved
        ndarray (n, p): all rows after their moves.
    """
    linear, level = linear_margin(problem.precise), _level(problem, question)
    features = problem.schema.features
    squared, swapped = move_prices(problem.schema)
    numbers = not swapped.any() and not any(f.free and f.group is not None for f in features)
    if linear is None or level is None or not numbers or not moves.any():
        return None
    weights, offset = linear
    sign = -1.0 if level[1] else 1.0
    codes = to_numpy(problem.factual).astype(np.float64)
    if np.isnan(codes).any():
        return None
    unit = np.where(squared > 0.0, 1.0 / np.sqrt(np.where(squared > 0.0, squared, 1.0)), 0.0)
    legal = problem.schema.legal(codes)
    low, high = ((to_numpy(end) - codes) * np.sqrt(squared) for end in (legal.lower, legal.upper))
    gains = np.broadcast_to(sign * weights * unit, codes.shape)
    need = sign * (level[0] - codes @ weights - offset)
    least = least_costs(gains, low, high, np.maximum(need, 0.0))
    paid = float((((moved - codes)[moves] ** 2) @ squared).sum())
    cheapest = float(np.sort(least[~ways.inside & ~ways.frozen])[: int(moves.sum())].sum())
    if not 0.0 < cheapest < math.inf:
        return None
    return max(math.sqrt(paid / cheapest) - 1.0, 0.0)


def least_costs(
    gains: np.ndarray, low: np.ndarray, high: np.ndarray, need: np.ndarray
) -> np.ndarray:
    """Return the least |z|^2, (n,), with gains z >= need and low <= z <= high; infinite if none.

    The least z is clip(t gains) with the least sufficient t, and what it gains is linear in t
    between the points at which a number comes to the end of its box.

    Examples
    --------
    >>> gains, box = np.array([[3.0, 4.0]]), np.array([[0.5, 9.0]])
    >>> least_costs(gains, -box, box, np.array([9.5]))
    array([4.25])
    """
    room = np.where(gains > 0.0, high, -low)
    steep = np.abs(gains)
    ends = np.where(steep > 0.0, room / np.where(steep > 0.0, steep, 1.0), UNBOUNDED)
    ends = np.clip(ends, 0.0, UNBOUNDED)
    order = np.argsort(ends, axis=1)
    ends, square = (np.take_along_axis(part, order, axis=1) for part in (ends, gains**2))
    done = np.cumsum(square * ends, axis=1)
    left = np.maximum(square.sum(axis=1)[:, None] - np.cumsum(square, axis=1), 0.0)
    reached = done + ends * left >= need[:, None] * (1.0 - 1e-12)
    first, rows = np.argmax(reached, axis=1), np.arange(len(need))
    before = np.where(first > 0, done[rows, first - 1], 0.0)
    rate = left[rows, first] + square[rows, first]
    length = np.where(rate > 0.0, (need - before) / np.where(rate > 0.0, rate, 1.0), 0.0)
    moves = np.clip(length[:, None] * gains, low, high)
    return np.where(reached.any(axis=1), (moves**2).sum(axis=1), np.inf)


def _level(problem: Problem, question: Question) -> tuple[float, bool] | None:
    """The margin that rows are to reach, and whether from above; None where there is not one."""
    wanted = question.wanted
    if wanted is None or wanted.column is not None or problem.outputs.columns != 1:
        return None
    lower, upper = wanted.lower or (-math.inf,), wanted.upper or (math.inf,)
    ends = [end for end in (lower[0], upper[0]) if math.isfinite(end)]
    if len(ends) != 1 or (problem.outputs.probability and not 0.0 < ends[0] < 1.0):
        return None
    level = float(logit(ends[0])) if problem.outputs.probability else ends[0]
    return level, math.isfinite(upper[0]) ^ wanted.outside


def said_excess(excess: float | None) -> tuple[str, ...]:
    """Return the notice about an excess; nothing is said where nothing is known.

    Examples
    --------
    >>> said_excess(0.031), said_excess(None)
    (('moves are at most 3% longer than the least that do the same (a linear model)',), ())
    """
    if excess is None:
        return ()
    much = percent(excess, fine=excess < 0.01)
    return (f"moves are at most {much} longer than the least that do the same (a linear model)",)
