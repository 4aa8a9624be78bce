"""Cheap legal ways of single rows into the wanted outputs.

What a row is offered, asked about and given depends on the row, the recorded tables and the model
alone, so that the search of a row can be run again on any row, in any batch.
"""

from __future__ import annotations

import numpy as np

from elsewise.moves._row_search import RowSearch, changed, differ
from elsewise.moves._slope_ways import offer_slopes
from elsewise.moves._steps import on_grid

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


def explore(search: RowSearch, slot: int) -> None:
    """Singles around each row's best way, and their combinations; then slopes and donors."""
    improve(search, slot)
    offer_slopes(search, search.factual)
    if search.goal.rates is None:
        _offer_donors(search)
    else:
        _offer_ways_up(search)


def improve(search: RowSearch, slot: int) -> None:
    """Ask about every single change of the way in a slot, then about their best combinations."""
    pool, found = search.pool, np.isfinite(search.pool.scores[:, slot])
    base = np.where(found[:, None], pool.codes[:, slot], pool.codes[:, 0])
    here = np.where(found, pool.margins[:, slot], pool.margins[:, 0])
    codes = _singles(search, base)
    margins = search.offer(codes, changed(codes, base[:, None, :]))
    search.offer(*_combinations(search, base, here, codes, margins))


def _singles(search: RowSearch, base: np.ndarray) -> np.ndarray:
    """Rows (n, S + A, p) with one attribute changed, or put back to its factual value."""
    menu, count = search.menu, len(search.menu.owner)
    wanted = np.where(menu.shift, base[:, menu.column], 0.0) + menu.value
    cells = search.legal.nearest(wanted, search.reach, menu.column)
    codes = np.repeat(base[:, None, :], count + menu.attributes, axis=1)
    codes[:, menu.single, menu.column] = cells
    # A level is taken as it is or not at all: its nearest legal neighbor is another level.
    missed = differ(cells, wanted) & ~search.numeric[menu.column]
    rows, cell = np.nonzero(missed)
    codes[rows, menu.single[cell]] = base[rows]
    attribute, column = np.nonzero(menu.member)
    codes[:, count + attribute, column] = search.factual[:, column]
    return codes


def _combinations(
    search: RowSearch, base: np.ndarray, here: np.ndarray, codes: np.ndarray, margins: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Combine single changes as if their gains added up, at a sequence of prices of gain.

    Relative to the row with every attribute at its factual value, each attribute takes the value
    with the largest gain - rate * cost, or none.
    """
    menu = search.menu
    count, member = len(menu.owner), menu.member
    gains = margins - here[:, None]
    back = np.where(np.isfinite(gains[:, count:]), gains[:, count:], 0.0)
    own = search.cell_costs(base) @ member.T
    cells = search.cell_costs(codes[:, :count])
    costs = (cells * member[menu.owner]).sum(axis=-1)
    # Options: the single changes, then each attribute as it is in the base.
    gains = np.concatenate([gains[:, :count] - back[:, menu.owner], -back], axis=1)
    costs = np.concatenate([costs, own], axis=1)
    owner = np.concatenate([menu.owner, np.arange(menu.attributes)])
    gains, costs = np.nan_to_num(gains, neginf=-1e9), on_grid(costs)
    if search.goal.rates is None:
        need = search.goal.inside - here - back.sum(axis=1)
        picks = _cheapest_sums(gains, costs, owner, need)
    else:
        paid = costs + search.goal.cell_price
        picks = _best_trades(gains, paid, owner, 1.0 / search.goal.rates)
    everything = np.concatenate([codes[:, :count], base[:, None, :]], axis=1)
    rows = np.arange(len(base))[:, None]
    combined = np.repeat(search.factual[:, None, :], picks.shape[1], axis=1)
    for a in range(menu.attributes):
        taken = picks[:, :, a]
        for j in np.flatnonzero(member[a]):
            new = everything[rows, np.minimum(taken, count), j]
            combined[:, :, j] = np.where(taken >= 0, new, combined[:, :, j])
    worth = changed(combined, search.factual[:, None, :])
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


def _offer_donors(search: RowSearch) -> None:
    """Background rows that are inside: the nearest ones, all of them for rows without a way."""
    if not len(search.menu.donors):
        return
    pool, near = search.pool, _nearest_donors(search)
    inside = search.offer(near) >= search.goal.inside
    donor = near[np.arange(len(near)), np.argmax(inside, axis=1)]
    stuck = ~np.isfinite(pool.scores[:, -1])
    # Of a wide table, first only the attributes on the menu, then whole donors.
    for whole in (False, True) if (search.menu.attribute < 0).any() else (False,):
        waiting = np.flatnonzero(~np.isfinite(pool.scores[:, -1]))
        size = max(1, DONATED // search.menu.donors.size)
        for start in range(0, waiting.size, size):
            rows = waiting[start : start + size]
            search.among(rows, lambda part, whole: part.offer(_legal_donors(part, whole)), whole)
            donor[rows] = pool.codes[rows, -1]
    rows = np.flatnonzero(inside.any(axis=1) | (stuck & np.isfinite(pool.scores[:, -1])))
    search.among(rows, _offer_path, donor[rows])


def refine_donors(search: RowSearch) -> None:
    """From each of the nearest donors back towards the row, as far as it stays inside.

    What single changes and their sums do not find: several attributes that help only together.
    """
    most = REFINED // search.menu.attributes
    if not len(search.menu.donors) or most == 0:
        return
    donors = _nearest_donors(search)[:, :most]
    inside = search.ask(donors) >= search.goal.inside
    for k in range(donors.shape[1]):
        rows = np.flatnonzero(inside[:, k])
        search.among(rows, refine, donors[rows, k])


def _offer_ways_up(search: RowSearch) -> None:
    """Where outputs are traded: the nearest rows with good outputs, and the way to the best one.

    Where a model is flat, as far from the cut-off of a classifier, no single change gains anything.
    """
    if not len(search.menu.donors):
        return
    near = _nearest_donors(search)
    best = np.argmax(search.offer(near), axis=1)
    goal = near[np.arange(len(near)), best][:, None, :]
    factual, parts = search.factual[:, None, :], np.arange(1, PARTS)[:, None] / PARTS
    on_line = np.where(search.numeric, factual + parts * (goal - factual), goal)
    line = search.nearest_legal(on_line)
    search.offer(line, changed(line, factual))
    _offer_path(search, goal[:, 0])


def _nearest_donors(search: RowSearch) -> np.ndarray:
    """The cheapest donors (n, D, p) of each row, as near as it may come to them."""
    legal = _legal_donors(search, most=FIRST_DONORS)
    costs = search.cell_costs(legal).sum(axis=-1)
    order = np.argsort(on_grid(costs), axis=1, kind="stable")
    return np.take_along_axis(legal, order[:, :NEAREST, None], axis=1)


def _legal_donors(search: RowSearch, whole: bool = False, most: int | None = None) -> np.ndarray:
    """Donors (n, D, p) as near as each row may come to them."""
    donors, factual = search.menu.donors[:most], search.factual
    legal = search.nearest_legal(np.broadcast_to(donors, (len(factual), *donors.shape)))
    return legal if whole else np.where(search.menu.attribute >= 0, legal, factual[:, None, :])


def _offer_path(search: RowSearch, goal: np.ndarray) -> None:
    """Take a donor's attributes one by one, in the order that pays."""
    member, factual, goal = search.menu.member, search.factual[:, None, :], goal[:, None, :]
    here = np.minimum(search.pool.margins[:, [0]], 0.0)
    single = np.where(member, goal, factual)
    worth = changed(single, factual)
    margins = search.offer(single, worth)
    costs = search.cell_costs(single).sum(axis=-1)
    gains = np.where(worth & np.isfinite(margins), margins - here, -np.inf)
    order = np.argsort(-on_grid(gains / np.maximum(costs, 1e-9)), axis=1, kind="stable")
    rank = np.argsort(order, axis=1, kind="stable")
    taken = rank[:, None, :] <= np.arange(len(member))[:, None]
    cells = (taken.astype(np.float64) @ member.astype(np.float64)) > 0.0
    codes = np.where(cells, goal, factual)
    search.offer(codes, changed(codes, factual))


def refine(search: RowSearch, point: np.ndarray) -> np.ndarray:
    """Put cells of inside rows (n, p) back, and draw numbers back, as far as rows stay inside."""
    return put_back(search, _draw_back(search, put_back(search, point)))


def put_back(search: RowSearch, point: np.ndarray) -> np.ndarray:
    """Put attributes back to their factual values, the dearest first, until each one is needed."""
    point, moving = point.copy(), np.arange(len(point))

    def without_one(part: RowSearch, here: np.ndarray) -> np.ndarray:
        """Put one more attribute of rows (m, p) back, in place; return which rows had one."""
        codes = np.where(part.menu.member, part.factual[:, None, :], here[:, None, :])
        inside = part.offer(codes, changed(codes, here[:, None, :])) >= part.goal.inside
        costs = np.where(inside, part.cell_costs(codes).sum(axis=-1), np.inf)
        best = np.argmin(on_grid(costs), axis=1)
        good = np.isfinite(costs[np.arange(len(here)), best])
        here[good] = codes[good, best[good]]
        return np.asarray(good)

    while moving.size:
        here = point[moving]
        good = search.among(moving, without_one, here)
        point[moving] = here
        moving = moving[good]
    return point


def _draw_back(search: RowSearch, point: np.ndarray) -> np.ndarray:
    """Draw changed numbers back towards their factual values, all together first, then each."""
    cells = np.where(search.numeric, search.cell_costs(point), 0.0)
    order = np.argsort(-on_grid(cells), axis=1, kind="stable")
    most = min(int((cells > 0.0).sum(axis=1).max(initial=0)), PULLED)
    for k in range(-1, most):
        chosen = cells > 0.0
        if k >= 0:
            chosen &= np.arange(cells.shape[1]) == order[:, [k]]
        rows = np.flatnonzero(chosen.any(axis=1))
        if rows.size:
            point[rows] = search.among(rows, _drawn, point[rows], chosen[rows])
    return point


def _drawn(search: RowSearch, point: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The chosen cells, bool (n, p), as near to their factual values as rows stay inside."""
    near, width, best = np.zeros(len(point)), 1.0, point
    away = np.where(chosen, point - search.factual, 0.0)[:, None, :]
    rows = np.arange(len(point))
    for _ in range(CUTS):
        width /= PARTS
        steps = near[:, None] + width * np.arange(1, PARTS)
        codes = search.factual[:, None, :] + steps[..., None] * away
        codes = search.nearest_legal(np.where(chosen[:, None, :], codes, point[:, None, :]))
        inside = search.offer(codes) >= search.goal.inside
        first = np.where(inside.any(axis=1), np.argmax(inside, axis=1), PARTS - 1)
        nearer = codes[rows, np.minimum(first, PARTS - 2)]
        best = np.where((first < PARTS - 1)[:, None], nearer, best)
        near = near + width * first
    return best


def settle(
    search: RowSearch, slack: float, most: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the way with the fewest changed attributes within the slack, and whether there is one.

    Parameters
    ----------
    slack
        What a way's length may exceed the shortest one's by, as a share of it.
    most
        Most attributes that a row may change.
    """
    pool = search.pool
    last = len(pool.scores[0]) - 1 if most is None else min(most, search.goal.counts)
    found = np.isfinite(pool.scores[:, last])
    limit = pool.costs[:, [last]] * (1.0 + slack) ** 2
    good = np.isfinite(pool.scores[:, 1:]) & (pool.costs[:, 1:] <= limit)
    slot = np.minimum(1 + np.argmax(good, axis=1), last)
    codes = pool.codes[np.arange(len(found)), slot]
    return np.where(found[:, None], codes, search.factual), found
