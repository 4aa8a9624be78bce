"""Ways along a model's slope: the nearest point at which its linear part is just inside."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from elsewise._arrays import to_numpy
from elsewise.moves._row_search import RowSearch, changed, differ
from elsewise.moves._steps import on_grid

SLOPE_STEPS = 5
SOME_RATES = 3
"""Every third rate has its own step along the slope."""
SLOPE_SIZES = (1, 2, 3, 5, 0)
"""Numbers that a step along the slope may change, those that help most first; 0: all."""


class _Numbers(NamedTuple):
    """The numbers of rows as moves z in standard deviations, 0 where nothing may move."""

    unit: np.ndarray
    """(p,): codes per standard deviation; 0 for other columns."""
    free: np.ndarray
    """bool (n, 1, p)."""
    low: np.ndarray
    """(n, 1, p): the smallest legal move."""
    high: np.ndarray

    @classmethod
    def of(cls, search: RowSearch) -> _Numbers:
        squared, legal = search.prices[0], search.legal
        numeric = search.numeric & (squared > 0.0)
        unit = np.where(numeric, 1.0 / np.sqrt(np.where(numeric, squared, 1.0)), 0.0)
        free = (legal.lower < legal.upper) & numeric
        room = [
            np.where(free, (end - search.factual) / np.where(numeric, unit, 1.0), 0.0)[:, None, :]
            for end in (legal.lower, legal.upper)
        ]
        return cls(unit, free[:, None, :], *room)


def offer_slopes(search: RowSearch, base: np.ndarray) -> None:
    """Go along the model's slope to where its linear part is just inside, a few times over.

    Each step solves min |z|^2 with margin + g (z - z_x) >= 0 inside the boxes, where z is the move
    of the numbers in standard deviations: z = clip(t g) for the least sufficient t. Where margin
    has a rate, it solves min |z|^2 - rate g z: z = clip(rate g / 2).
    """
    numbers = _Numbers.of(search)
    if not search.problem.precise.smooth or not numbers.free.any():
        return
    rates = None if search.goal.rates is None else search.goal.rates[::SOME_RATES]
    sizes = [k for k in SLOPE_SIZES if k < np.sum(numbers.unit > 0.0)]
    count = len(sizes) if rates is None else len(rates)
    factual, scale = search.factual[:, None, :], np.where(numbers.unit > 0.0, numbers.unit, 1.0)
    at = np.repeat(base[:, None, :], count, axis=1)
    chosen = np.ones((len(base), count, 1), dtype=bool)
    for k in range(SLOPE_STEPS):
        margins, slope = (part.reshape(*at.shape[:2], -1) for part in _slopes(search, at))
        slope = np.where(numbers.free, slope, 0.0) * numbers.unit
        if rates is not None:
            move = 0.5 * rates[:, None] * slope
            # A number that moves by less than a changed cell costs does not pay.
            move = np.where(move * move > search.goal.cell_price, move, 0.0)
            move = np.clip(move, numbers.low, numbers.high)
        else:
            if k == 0:
                order = np.argsort(-on_grid(np.abs(slope[:, 0])), axis=-1, kind="stable")
                rank = np.argsort(order, axis=-1)
                chosen = np.stack([rank < (size or rank.shape[1]) for size in sizes], axis=1)
            slope = np.where(chosen, slope, 0.0)
            moved = np.where(numbers.free, np.nan_to_num(at - factual) / scale, 0.0)
            need = 2.0 * search.goal.inside - margins[..., 0] + np.sum(slope * moved, axis=-1)
            move = _least_move(slope, need, numbers.low, numbers.high)
        target = np.where(numbers.free, factual + on_grid(move) * numbers.unit, at)
        outward = _rounded_outward(search, target, slope)
        both = search.nearest_legal(np.concatenate([target, outward], axis=1))
        search.offer(both, changed(both, factual))
        if not differ(both[:, :count], at).any():
            break
        at = both[:, :count]


def _slopes(search: RowSearch, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Margins (n * C,) of rows (n, C, p) and their gradient by codes, (n * C, p)."""
    model, codes = search.problem.precise, rows.reshape(-1, rows.shape[-1])
    outputs, gradient = (
        to_numpy(part).astype(np.float64) for part in model.values_and_gradient(model.place(codes))
    )
    slope = search.goal.slopes(outputs, gradient)
    return search.goal.margins(outputs), np.where(np.isfinite(slope), slope, 0.0)


def _least_move(
    slope: np.ndarray, need: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Return clip(t slope) with the least t for which slope * move sums up to ``need``."""
    steep = np.sum(slope * slope, axis=-1)
    shortest = np.where(steep > 0.0, need / np.where(steep > 0.0, steep, 1.0), 0.0)

    def move(power: np.ndarray) -> np.ndarray:
        length = np.maximum(shortest, 0.0) * np.exp2(power)
        return np.asarray(np.clip(length[..., None] * slope, low, high))

    # t is between the step without boxes and one so long that every number is at an end.
    small, large = np.zeros(need.shape), np.full(need.shape, 30.0)
    open_ended = np.sum(slope * move(small), axis=-1) >= need * (1.0 - 1e-12)
    for _ in range(40):
        middle = 0.5 * (small + large)
        enough = np.sum(slope * move(middle), axis=-1) >= need
        large, small = np.where(enough, middle, large), np.where(enough, small, middle)
    return move(np.where(open_ended, 0.0, large))


def _rounded_outward(search: RowSearch, target: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Round numbers with a step the way that helps, so that rounding does not undo a move."""
    legal = search.legal
    rounded = np.where(slope > 0.0, np.ceil(target), np.floor(target))
    outward = np.where(np.asarray(legal.integer) & (slope != 0.0), rounded, target)
    for column, over, times in legal.grids:  # so that the nearest step is the next one
        outward[..., column] += np.sign(slope[..., column]) * (0.5 - 1e-6) * over / times
    return outward
