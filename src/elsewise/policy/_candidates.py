"""Candidate actions: single edits, joined edits that should help, the explanation's own, donors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from elsewise._arrays import to_double
from elsewise.policy._actions import COARSE, DIGITS, Actions, Movable, joined, pairs
from elsewise.policy._cost_table import Standing, Table, Trial

JOINED = 1500
"""Most joined edits tried per number of cells."""
SCREENED = 96
"""Rows on which joined edits are foreseen, before the model is asked."""
BASES = 200
"""Actions that a further edit is joined to."""
OWN = 264
"""Most moves of the explanation and ways to donors that become candidates."""
DONORS = 64
"""Background rows inside the wanted set that rows are moved towards."""
KEPT = 1200
"""Candidates kept for the choice."""
ROUNDS = 4
"""Rounds of refinement of the chosen actions."""
NEAR = 7
"""Amounts tried around a chosen one."""


class Ground(NamedTuple):
    """What actions are chosen on."""

    trial: Trial
    known: tuple[Movable, ...]
    """What may move."""
    rows: Standing
    """Rows of the fit that need something."""
    cells: int
    """Most attributes that an action changes."""

    def fill(self, actions: Actions) -> Table:
        """Ask the model what becomes of the rows."""
        return self.trial.table(self.rows, actions)

    def singles(self, digits: Sequence[float] = COARSE) -> Actions:
        """Return all actions of one edit, whose amounts begin with these digits."""
        columns = self.rows.codes.shape[1]
        parts = [Actions(np.zeros((0, columns)), np.zeros((0, columns)))]
        for attribute in self.known:
            amounts = attribute.amounts
            leading = np.round(amounts / 10.0 ** np.floor(np.log10(amounts) + 1e-9), 6)
            amounts = amounts[np.isin(leading, digits)]
            adds = np.concatenate([-amounts[::-1], amounts])
            sets = attribute.values[:, None] if attribute.choices is None else attribute.choices
            shape = adds.size + len(sets), columns
            add, put = np.zeros(shape), np.full(shape, np.nan)
            add[: adds.size, attribute.columns[0]] = adds
            put[adds.size :, attribute.columns] = sets
            parts.append(Actions(add, put))
        return joined(parts)

    def used(self, actions: Actions) -> np.ndarray:
        """Return, bool (C, U), the attributes that each action changes."""
        touched = (actions.add != 0) | ~np.isnan(actions.put)
        return np.stack([touched[:, a.columns].any(axis=1) for a in self.known], axis=1)


def propose(ground: Ground, ends: np.ndarray, rng: np.random.Generator) -> Table:
    """Return candidates for the rows of the fit that need something.

    Parameters
    ----------
    ends
        ndarray (m, p): the rows after the explanation's own move.
    rng
        Chooses donors and screened rows.
    """
    trial, rows, edits = ground.trial, ground.rows, ground.singles()
    if not len(rows.codes) or not len(edits.add):
        return ground.fill(edits.take(slice(0)))
    singles = ground.fill(edits)
    # An edit that brings no row nearer helps in no company that additive foresight could find.
    helpful = np.flatnonzero((singles.short < rows.short[:, None]).any(axis=0))
    singles = base = found = singles.take(helpful)
    for _ in range(1, ground.cells):
        base = ground.fill(_foreseen(ground, base, singles, rng))
        found = found.joined(base)
    background = to_double(trial.problem.background)
    tried = background[rng.permutation(len(background))[: 4 * DONORS]]
    inside = tried[trial.standing(tried).short == 0][:DONORS]
    starts = rows.codes[rng.integers(len(rows.codes), size=len(inside))]
    before, after = np.concatenate([rows.codes, starts]), np.concatenate([ends, inside])
    return found.joined(ground.fill(_moves(ground, before, after))).best(KEPT)


def _foreseen(ground: Ground, base: Table, singles: Table, rng: np.random.Generator) -> Actions:
    """Join a further edit to actions where, if their gains add up, that is worth most."""
    seen = rng.permutation(len(ground.rows.codes))[:SCREENED]
    short = ground.rows.short[seen, None]
    # A row at the very edge is as good as no distance away: without an end, steps back from there
    # would outweigh everything that the other rows gain.
    nearer, more = (
        1.0 - np.minimum(table.short[seen], 2.0 * short) / short for table in (base, singles)
    )
    order = np.argsort(-nearer.sum(axis=0), kind="stable")[:BASES]
    used = [ground.used(table.actions) for table in (base.take(order), singles)]
    apart = ~(used[0][:, None] & used[1][None]).any(axis=2)
    far = 2.0 * float(base.costs[np.isfinite(base.costs)].max(initial=1e-9))
    worth = np.full(apart.shape, -np.inf)
    for place, column in enumerate(order):
        gain = nearer[:, column, None] + more
        price = base.costs[seen][:, column, None] + singles.costs[seen]
        paid = np.where((gain >= 1.0) & np.isfinite(price), np.maximum(far - price, 0.0), 0.0)
        # What does not arrive still counts a little, because gains need not add up.
        worth[place] = paid.sum(axis=0) + 1e-3 * np.minimum(gain, 1.0).sum(axis=0)
    worth[~apart] = -np.inf
    best = np.argsort(-worth, axis=None, kind="stable")[:JOINED]
    first, second = np.unravel_index(best[np.isfinite(worth.flat[best])], worth.shape)
    return pairs(base.actions.take(order[first]), singles.actions.take(second)).distinct()


def _moves(ground: Ground, before: np.ndarray, after: np.ndarray) -> Actions:
    """Return what takes rows nearest to where they went: their largest cells, rounded."""
    known = ground.known
    size = np.zeros((len(before), len(known)))
    for k, a in enumerate(known):
        changed = np.nan_to_num(np.abs(after - before)[:, a.columns])
        size[:, k] = changed[:, 0] / a.scale if a.choices is None else changed.any(axis=1)
    rank = np.argsort(np.argsort(-size, axis=1, kind="stable"), axis=1)
    chosen = (size > 0) & (rank < ground.cells)
    add, put = np.zeros(before.shape), np.full(before.shape, np.nan)
    for k, a in enumerate(known):
        mine = np.ix_(chosen[:, k], a.columns)
        if a.choices is None:
            add[mine] = a.rounded((after - before)[mine])
        else:
            put[mine] = after[mine]
    moves = Actions(add, put)
    _, first, count = np.unique(moves.table, axis=0, return_index=True, return_counts=True)
    return moves.take(first[np.argsort(-count, kind="stable")[:OWN]]).distinct()


def refine(
    ground: Ground, table: Table, choose: Callable[..., tuple[np.ndarray, Any]]
) -> tuple[Table, np.ndarray]:
    """Choose candidates, then try other amounts, one edit less and one more.

    Parameters
    ----------
    choose
        Given the costs (m, C) of rows that arrive and the columns chosen before, returns columns
        first.

    Returns
    -------
    tuple of Table and ndarray of int
        The candidates, with the new ones, and the places of those chosen.
    """
    chosen, _ = choose(table.arriving, None)
    extra = ground.singles(DIGITS)
    for _ in range(ROUNDS):
        near = joined([*_neighbours(ground, table.actions.take(chosen), extra)] or [extra])
        table = table.joined(ground.fill(near.distinct()))
        before, (chosen, _) = chosen, choose(table.arriving, chosen)
        if np.array_equal(before, chosen):
            break
    return table, chosen


def _neighbours(ground: Ground, actions: Actions, extra: Actions) -> Iterator[Actions]:
    """Yield actions that differ from the given ones in one edit."""
    used, other = ground.used(actions), ground.used(extra)
    for k, attribute in enumerate(ground.known):
        mine = actions.take(used[:, k])
        rest = Actions(mine.add.copy(), mine.put.copy())
        rest.add[:, attribute.columns], rest.put[:, attribute.columns] = 0.0, np.nan
        yield rest
        others = extra.take(other[:, k])
        first, second = np.nonzero(_closest(mine, others, attribute.columns[0]))
        yield pairs(rest.take(first), others.take(second))
    room = used.sum(axis=1) < ground.cells
    first, second = np.nonzero(~(used[room][:, None] & other[None]).any(axis=2))
    yield pairs(actions.take(np.flatnonzero(room)[first]), extra.take(second))


def _closest(mine: Actions, others: Actions, column: int) -> np.ndarray:
    """Return, bool (c, S), the other edits of the same kind next to each action's own."""

    def parts(add: np.ndarray, put: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.sign(add), np.where(add != 0, add, put)

    way, size = parts(mine.add[:, column, None], mine.put[:, column, None])
    other_way, other_size = parts(others.add[:, column], others.put[:, column])
    gap = np.where(way == other_way, np.abs(size - other_size), np.inf)
    nearest = np.sort(gap, axis=1)[:, :NEAR].max(axis=1, initial=0.0)
    return np.asarray(np.isfinite(gap) & (gap <= nearest[:, None]))
