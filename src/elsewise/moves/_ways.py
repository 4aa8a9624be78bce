"""Cheap legal ways of single rows into the wanted outputs.

What a row is offered, asked about and given depends on the row, the recorded tables and the model
alone, so that the search of a row can be run again on any row, in any batch.
"""

from __future__ import annotations

import numpy as np

from elsewise.moves._ground import Ground, Pool, changed, differ
from elsewise.moves._offers import legal_rows
from elsewise.moves._slope_ways import offer_slopes
from elsewise.moves._steps import on_grid

__all__ = ["explore", "improve", "put_back", "refine", "refine_donors", "settle"]

LEVELS = 40
"""Parts that the gain a row needs is counted in where combinations are made."""
SHARES = (24, 28, 32, 34, 36, 38, 39, 40, 41, 42, 44, 46, 48, 52, 58, 64)
"""Parts of the need that combinations are made for: single gains do not quite add up."""
NEAREST, FIRST_DONORS = 4, 256
"""Donors asked about at first, and out of how many; all of them where none of these is inside."""
REFINED = 20
"""About so many attributes, of the nearest donors together, are put back one by one: where rows
have more, single changes find as much for less."""
DONATED = 1 << 22
"""Cells of all donors that are asked about for some rows at a time."""
CUTS, PARTS = 4, 8
"""The way back from a changed number to its factual value is cut into so many parts so often."""
PULLED = 8
"""Numbers of a row that are drawn back one by one."""


def explore(ground: Ground, pool: Pool, slot: int) -> None:
    """Singles around each row's best way, and their combinations; then slopes and donors."""
    improve(ground, pool, slot)
    offer_slopes(ground, pool, ground.codes)
    if ground.goal.rates is None:
        _offer_donors(ground, pool)
    else:
        _offer_ways_up(ground, pool)


def improve(ground: Ground, pool: Pool, slot: int) -> None:
    """Ask about every single change of the way in a slot, then about their best combinations."""
    found = np.isfinite(pool.scores[:, slot])[:, None]
    base = np.where(found, pool.codes[:, slot], pool.codes[:, 0])
    here = np.where(found[:, 0], pool.margins[:, slot], pool.margins[:, 0])
    codes = _singles(ground, base)
    margins = ground.ask(codes, changed(codes, base[:, None, :]))
    pool.offer(ground, codes, margins)
    combined, worth = _combinations(ground, base, here, codes, margins)
    pool.offer(ground, combined, ground.ask(combined, worth))


def _singles(ground: Ground, base: np.ndarray) -> np.ndarray:
    """Rows (n, S + A, p) with one attribute changed, or put back to its factual value."""
    menu, count = ground.menu, len(ground.menu.owner)
    wanted = np.where(menu.shift, base[:, menu.column], 0.0) + menu.value
    cells = legal_rows(ground.embedding, ground.population, wanted, menu.column)
    codes = np.repeat(base[:, None, :], count + menu.attributes, axis=1)
    codes[:, menu.single, menu.column] = cells
    # A level is taken as it is or not at all: its nearest legal neighbor is another level.
    numeric = np.array([f.numeric for f in ground.problem.schema.features])
    missed = differ(cells, wanted) & ~numeric[menu.column]
    rows, cell = np.nonzero(missed)
    codes[rows, menu.single[cell]] = base[rows]
    attribute, column = np.nonzero(menu.member)
    codes[:, count + attribute, column] = ground.codes[:, column]
    return codes


def _combinations(
    ground: Ground, base: np.ndarray, here: np.ndarray, codes: np.ndarray, margins: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Combine single changes as if their gains added up, at a sequence of prices of gain.

    Relative to the row with every attribute at its factual value, each attribute takes the value
    with the largest gain - rate * cost, or none.
    """
    menu = ground.menu
    count, member = len(menu.owner), menu.member
    gains = margins - here[:, None]
    back = np.where(np.isfinite(gains[:, count:]), gains[:, count:], 0.0)
    own = ground.cell_costs(base) @ member.T
    cells = ground.cell_costs(codes[:, :count])
    costs = (cells * member[menu.owner]).sum(axis=-1)
    # Options: the single changes, then each attribute as it is in the base.
    gains = np.concatenate([gains[:, :count] - back[:, menu.owner], -back], axis=1)
    costs = np.concatenate([costs, own], axis=1)
    owner = np.concatenate([menu.owner, np.arange(menu.attributes)])
    gains, costs = np.nan_to_num(gains, neginf=-1e9), on_grid(costs)
    if ground.goal.rates is None:
        need = ground.goal.inside - here - back.sum(axis=1)
        picks = _cheapest_sums(gains, costs, owner, need)
    else:
        paid = costs + ground.goal.cell_price
        picks = _best_trades(gains, paid, owner, 1.0 / ground.goal.rates)
    everything = np.concatenate([codes[:, :count], base[:, None, :]], axis=1)
    rows = np.arange(len(base))[:, None]
    combined = np.repeat(ground.codes[:, None, :], picks.shape[1], axis=1)
    for a in range(menu.attributes):
        taken = picks[:, :, a]
        for j in np.flatnonzero(member[a]):
            new = everything[rows, np.minimum(taken, count), j]
            combined[:, :, j] = np.where(taken >= 0, new, combined[:, :, j])
    worth = changed(combined, ground.codes[:, None, :])
    worth[:, 1:] &= changed(combined[:, 1:], combined[:, :-1])
    return combined, worth


def _best_trades(
    gains: np.ndarray, costs: np.ndarray, owner: np.ndarray, rates: np.ndarray
) -> np.ndarray:
    """Option (n, B, A) with the largest gain - rate * cost of each attribute, -1 for none."""
    picks = np.full((len(gains), len(rates), owner.max() + 1), -1)
    for a in range(picks.shape[2]):
        options = np.flatnonzero(owner == a)
        value = on_grid(gains[:, None, options] - rates[:, None] * costs[:, None, options])
        best = np.argmax(value, axis=-1)
        good = np.take_along_axis(value, best[..., None], -1)[..., 0] > 0.0
        picks[:, :, a] = np.where(good, options[best], -1)
    return picks


def _cheapest_sums(
    gains: np.ndarray, costs: np.ndarray, owner: np.ndarray, need: np.ndarray
) -> np.ndarray:
    """Options (n, T, A), -1 for none, whose gains add up to T shares of what is needed.

    The multiple-choice knapsack, by dynamic programming over gains counted in ``LEVELS`` parts of
    the need: one option of each attribute at most, the least sum of costs for each sum of gains.
    """
    n, top = len(gains), SHARES[-1]
    parts = LEVELS / np.maximum(need, 1e-7)[:, None]
    level = np.clip(np.floor(gains * parts + 1e-6), 0, top).astype(np.int64)
    table, sums = np.full((n, top + 1), np.inf), np.arange(top + 1)
    table[:, 0] = 0.0
    choices = []
    for a in range(owner.max() + 1):
        best, choice = table.copy(), np.full(table.shape, -1, dtype=np.int32)
        for option in np.flatnonzero(owner == a):
            if not level[:, option].any():
                continue
            before = np.maximum(sums - level[:, [option]], 0)
            cost = np.take_along_axis(table, before, axis=1) + costs[:, [option]]
            cheaper = cost < best
            best[cheaper], choice[cheaper] = cost[cheaper], option
        table = best
        choices.append(choice)
    picks = np.full((n, len(SHARES), len(choices)), -1)
    left = np.broadcast_to(np.array(SHARES), (n, len(SHARES)))
    rows = np.arange(n)[:, None]
    for a in reversed(range(len(choices))):
        taken = np.take_along_axis(choices[a], left, axis=1)
        picks[:, :, a] = taken
        left = np.where(taken >= 0, np.maximum(left - level[rows, taken], 0), left)
    return picks


def _offer_donors(ground: Ground, pool: Pool) -> None:
    """Background rows that are inside: the nearest ones, all of them for rows without a way."""
    if not len(ground.menu.donors):
        return
    near = _nearest_donors(ground)
    margins = ground.ask(near, np.ones(near.shape[:2], dtype=bool))
    pool.offer(ground, near, margins)
    inside = margins >= ground.goal.inside
    donor = near[np.arange(len(near)), np.argmax(inside, axis=1)]
    stuck = ~np.isfinite(pool.scores[:, -1])
    # Of a wide table, first only the attributes on the menu, then whole donors.
    for whole in (False, True) if (ground.menu.attribute < 0).any() else (False,):
        waiting = np.flatnonzero(~np.isfinite(pool.scores[:, -1]))
        size = max(1, DONATED // ground.menu.donors.size)
        for start in range(0, waiting.size, size):
            rows = waiting[start : start + size]
            part, some = ground.take(rows), pool.take(rows)
            codes = _legal_donors(part, None, whole=whole)
            some.offer(part, codes, part.ask(codes, np.ones(codes.shape[:2], dtype=bool)))
            pool.put(rows, some)
            donor[rows] = some.codes[:, -1]
    rows = np.flatnonzero(inside.any(axis=1) | (stuck & np.isfinite(pool.scores[:, -1])))
    if rows.size:
        part, some = ground.take(rows), pool.take(rows)
        _offer_path(part, some, donor[rows])
        pool.put(rows, some)


def refine_donors(ground: Ground, pool: Pool) -> None:
    """From each of the nearest donors back towards the row, as far as it stays inside.

    What single changes and their sums do not find: several attributes that help only together.
    """
    most = REFINED // ground.menu.attributes
    if not len(ground.menu.donors) or most == 0:
        return
    donors = _nearest_donors(ground)[:, :most]
    inside = ground.ask(donors, np.ones(donors.shape[:2], dtype=bool)) >= ground.goal.inside
    for k in range(donors.shape[1]):
        rows = np.flatnonzero(inside[:, k])
        if rows.size:
            part, some = ground.take(rows), pool.take(rows)
            refine(part, some, donors[rows, k])
            pool.put(rows, some)


def _offer_ways_up(ground: Ground, pool: Pool) -> None:
    """Where outputs are traded: the nearest rows with good outputs, and the way to the best one.

    Where a model is flat, as far from the cut-off of a classifier, no single change gains anything.
    """
    if not len(ground.menu.donors):
        return
    near = _nearest_donors(ground)
    margins = ground.ask(near, np.ones(near.shape[:2], dtype=bool))
    pool.offer(ground, near, margins)
    goal = near[np.arange(len(near)), np.argmax(margins, axis=1)][:, None, :]
    numeric = np.array([f.numeric for f in ground.problem.schema.features])
    factual, parts = ground.codes[:, None, :], np.arange(1, PARTS)[:, None] / PARTS
    line = ground.legal(np.where(numeric, factual + parts * (goal - factual), goal))
    pool.offer(ground, line, ground.ask(line, changed(line, factual)))
    _offer_path(ground, pool, goal[:, 0])


def _nearest_donors(ground: Ground) -> np.ndarray:
    """The cheapest donors (n, D, p) of each row, as near as it may come to them."""
    legal = _legal_donors(ground, FIRST_DONORS)
    costs = ground.cell_costs(legal).sum(axis=-1)
    order = np.argsort(on_grid(costs), axis=1, kind="stable")
    return np.take_along_axis(legal, order[:, :NEAREST, None], axis=1)


def _legal_donors(ground: Ground, most: int | None, *, whole: bool = False) -> np.ndarray:
    """Donors (n, D, p) as near as each row may come to them."""
    donors = ground.menu.donors[:most]
    legal = ground.legal(np.broadcast_to(donors, (len(ground.codes), *donors.shape)))
    if whole:
        return legal
    return np.where(ground.menu.attribute >= 0, legal, ground.codes[:, None, :])


def _offer_path(ground: Ground, pool: Pool, goal: np.ndarray) -> None:
    """Take a donor's attributes one by one, in the order that pays."""
    member, factual = ground.menu.member, ground.codes
    here = pool.margins[:, 0]
    single = np.where(member, goal[:, None, :], factual[:, None, :])
    worth = changed(single, factual[:, None, :])
    margins = ground.ask(single, worth)
    pool.offer(ground, single, margins)
    costs = ground.cell_costs(single).sum(axis=-1)
    gains = np.where(
        worth & np.isfinite(margins), margins - np.minimum(here, 0.0)[:, None], -np.inf
    )
    order = np.argsort(-on_grid(gains / np.maximum(costs, 1e-9)), axis=1, kind="stable")
    rank = np.argsort(order, axis=1, kind="stable")
    taken = rank[:, None, :] <= np.arange(len(member))[:, None]
    cells = (taken.astype(np.float64) @ member.astype(np.float64)) > 0.0
    codes = np.where(cells, goal[:, None, :], factual[:, None, :])
    pool.offer(ground, codes, ground.ask(codes, changed(codes, factual[:, None, :])))


def refine(ground: Ground, pool: Pool, point: np.ndarray) -> np.ndarray:
    """Put cells of inside rows (n, p) back, and draw numbers back, as far as rows stay inside."""
    point = put_back(ground, pool, point)
    point = _draw_back(ground, pool, point)
    return put_back(ground, pool, point)


def put_back(ground: Ground, pool: Pool, point: np.ndarray) -> np.ndarray:
    """Put attributes back to their factual values, the dearest first, until each one is needed."""
    point, moving = point.copy(), np.arange(len(point))
    member = ground.menu.member
    while moving.size:
        part, some = ground.take(moving), pool.take(moving)
        codes = np.where(member, part.codes[:, None, :], point[moving][:, None, :])
        margins = part.ask(codes, changed(codes, point[moving][:, None, :]))
        some.offer(part, codes, margins)
        pool.put(moving, some)
        costs = np.where(margins >= ground.goal.inside, part.cell_costs(codes).sum(axis=-1), np.inf)
        best = np.argmin(on_grid(costs), axis=1)
        good = np.isfinite(costs[np.arange(moving.size), best])
        point[moving[good]] = codes[good, best[good]]
        moving = moving[good]
    return point


def _draw_back(ground: Ground, pool: Pool, point: np.ndarray) -> np.ndarray:
    """Draw changed numbers back towards their factual values, all together first, then each."""
    numeric = np.array([f.numeric for f in ground.problem.schema.features])
    cells = np.where(numeric, ground.cell_costs(point), 0.0)
    order = np.argsort(-on_grid(cells), axis=1, kind="stable")
    most = min(int((cells > 0.0).sum(axis=1).max(initial=0)), PULLED)
    for k in range(-1, most):
        chosen = cells > 0.0
        if k >= 0:
            chosen &= np.arange(cells.shape[1]) == order[:, [k]]
        rows = np.flatnonzero(chosen.any(axis=1))
        if rows.size:
            part, some = ground.take(rows), pool.take(rows)
            point[rows] = _drawn(part, some, point[rows], chosen[rows])
            pool.put(rows, some)
    return point


def _drawn(ground: Ground, pool: Pool, point: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The chosen cells, bool (n, p), as near to their factual values as rows stay inside."""
    near, width, best = np.zeros(len(point)), 1.0, point
    away = np.where(chosen, point - ground.codes, 0.0)[:, None, :]
    rows = np.arange(len(point))
    for _ in range(CUTS):
        width /= PARTS
        steps = near[:, None] + width * np.arange(1, PARTS)
        codes = ground.codes[:, None, :] + steps[..., None] * away
        codes = ground.legal(np.where(chosen[:, None, :], codes, point[:, None, :]))
        margins = ground.ask(codes, np.ones(steps.shape, dtype=bool))
        pool.offer(ground, codes, margins)
        inside = margins >= ground.goal.inside
        first = np.where(inside.any(axis=1), np.argmax(inside, axis=1), PARTS - 1)
        nearer = codes[rows, np.minimum(first, PARTS - 2)]
        best = np.where((first < PARTS - 1)[:, None], nearer, best)
        near = near + width * first
    return best


def settle(
    ground: Ground, pool: Pool, slack: float, most: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the way with the fewest changed attributes within the slack, and whether there is one.

    Parameters
    ----------
    slack
        What a way's length may exceed the shortest one's by, as a share of it.
    most
        Most attributes that a row may change.
    """
    last = len(pool.scores[0]) - 1 if most is None else min(most, ground.goal.counts)
    found = np.isfinite(pool.scores[:, last])
    limit = pool.costs[:, [last]] * (1.0 + slack) ** 2
    good = np.isfinite(pool.scores[:, 1:]) & (pool.costs[:, 1:] <= limit)
    slot = np.minimum(1 + np.argmax(good, axis=1), last)
    codes = pool.codes[np.arange(len(found)), slot]
    return np.where(found[:, None], codes, ground.codes), found
