"""Which few actions: greedy choice with exchanges on the table of rows by actions.

With a price P for a row that does not arrive, k actions S are worth

    sum_i min(P, min_{a in S} cost(i, a)),

which is supermodular in S, so that greedy choice is near the optimum and exchanges close most of
the gap. A large P asks for reach first. P is swept (the Lagrangian of a budget, a number of rows or
a share), and of what is found at any P the most reach counts, then the least cost of a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, sqrt

import numpy as np

FAR = 4.0
"""A row that does not arrive counts as this many times the dearest row that can."""
SWEEP = 48
"""Prices tried; half as many where nothing is capped."""
SPARED = 0.03
"""Share of the rows within reach that may be let go where nothing is capped."""
STARTS, AGAIN = 6, 3
"""Greedy beginnings: the actions that are best by themselves; those beside a given choice."""
PASSES = 8
"""Most rounds of exchanges."""
CERTIFIED, LIKELY = 1.645, 0.842
"""Normal quantiles: 0.95 for what is promised, 0.8 for being right about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """What limits how many rows of the fit are served; cheapest rows come first."""

    rows: int
    """Rows of the fit, those that need nothing included."""
    total: int
    """Rows that are spoken of: of the explanation."""
    inside: int = 0
    """Rows of the fit that are inside the wanted set already."""
    share: float | None = None
    """Serve no more rows than it takes for this share of all to be inside."""
    moved: float | None = None
    """Serve at most this share of all rows."""
    budget: float | None = None
    """Spend at most this on all rows."""
    each: float = inf
    """Spend at most this on a row."""

    @property
    def binding(self) -> bool:
        """Whether there is a cap at all."""
        return not self.share is self.moved is self.budget is None

    def most(self, ordered: np.ndarray) -> int:
        """Return how many of the rows are served, given their finite costs in order.

        Rows of the fit stand for all rows: a cap is met on all of them with probability 0.95, a
        share is aimed at so that held-out rows confirm it four times in five.
        """
        served, n = ordered.size, self.rows
        if self.share is not None:
            served = min(served, max(0, ceil(self._aim(self.share) * n - 1e-9) - self.inside))
        rows = None if self.moved is None else self.moved * self.total
        for cap, each in ((rows, np.ones(ordered.size)), (self.budget, ordered)):
            if cap is None:
                continue
            spent, squares = (np.append(0.0, np.cumsum(each**power)) for power in (1, 2))
            more = self.total / n
            spread = np.sqrt(np.maximum(squares / n - (spent / n) ** 2, 0.0))
            error = CERTIFIED * spread * sqrt(max(more * (more - 1.0), 0.0) * n)
            within = spent * more + error <= cap * (1 + 1e-12)
            served = min(served, int(np.flatnonzero(within).max(initial=0)))
        return served

    def _aim(self, share: float) -> float:
        if self.total == self.rows:
            return share
        fit = share * (1.0 - share) / self.rows
        unseen = share * (1.0 - share) / (self.total - self.rows)
        return min(1.0, share + CERTIFIED * sqrt(unseen) + LIKELY * sqrt(unseen + fit))


def serve(best: np.ndarray, ties: np.ndarray, caps: Caps) -> tuple[float, float]:
    """Return (price, tie): rows are served whose (cost, tie) is at most that; ``best`` is (m,)."""
    order = np.lexsort((ties, best))
    order = order[np.isfinite(best[order])]
    count = caps.most(best[order])
    if count == order.size:
        return inf, inf
    last = order[count - 1] if count else None
    return (-inf, -inf) if last is None else (float(best[last]), float(ties[last]))


def is_served(best: np.ndarray, ties: np.ndarray, price: float, tie: float) -> np.ndarray:
    """Tell, bool (m,), whose (cost, tie) is at most what `serve` returned."""
    below = (best < price) | ((best == price) & (ties <= tie))
    return np.asarray(np.isfinite(best) & below)


def far_price(costs: np.ndarray) -> float:
    """Return the price of a row that does not arrive, where reach comes first."""
    best = costs.min(axis=1, initial=inf)
    return FAR * float(best[np.isfinite(best)].max(initial=1e-9)) + 1e-9


def choose_actions(
    costs: np.ndarray, k: int, caps: Caps, start: np.ndarray | None = None, spared: float = SPARED
) -> np.ndarray:
    """Return at most ``k`` columns of ``costs`` (m, C), in the order of greedy choice.

    Parameters
    ----------
    costs
        ndarray (m, C): what each row pays to arrive by each action, infinite where it does not.
    caps
        What limits how many rows are served.
    start
        int (j,): columns to begin the exchanges with; none begins with greedy choice.
    spared
        Share of the rows within reach that is let go where that is cheaper for the others.

    Examples
    --------
    >>> costs = np.array([[1.0, np.inf, 2.0], [np.inf, 1.0, 2.0], [3.0, np.inf, 2.0]])
    >>> caps = Caps(rows=3, total=3)
    >>> choose_actions(costs, 1, caps).tolist(), choose_actions(costs, 2, caps).tolist()
    ([2], [2, 0])
    """
    far = far_price(costs)
    best = costs.min(axis=1, initial=inf)
    least = max(float(best.min(initial=far)), far * (1e-4 if caps.binding else 1.0 / 16.0))
    found: list[tuple[np.ndarray, int, float]] = []
    for price in np.geomspace(far, min(least, far), SWEEP if caps.binding else SWEEP // 2):
        chosen = _at_price(costs, k, float(price), start)
        ordered = np.sort(costs[:, chosen].min(axis=1, initial=inf))
        ordered = ordered[np.isfinite(ordered)]
        count = caps.most(ordered)
        found.append((chosen, count, float(ordered[:count].mean()) if count else inf))
    # Reach comes first, but the last rows can cost as much as all others: a few are let go.
    most = max(count for _, count, _ in found)
    enough = most - (0 if caps.binding else int(spared * most))
    chosen, count, _ = min((one for one in found if one[1] >= enough), key=lambda one: one[2])
    if caps.share is None or not count:
        return chosen
    # Prices find the optima of some numbers of rows only; this is the number that is asked for.
    return np.array(_exchanged(costs, chosen.tolist(), inf, count), dtype=np.int64)


def _at_price(costs: np.ndarray, k: int, price: float, start: np.ndarray | None) -> np.ndarray:
    """Choose at one price, by exchanges from several greedy beginnings; the best of them."""
    capped = np.minimum(costs, price)
    totals = capped.sum(axis=0)
    order = np.argsort(totals, kind="stable")[: STARTS if k > 1 else 1]
    starts = [[column] for column in order.tolist() if totals[column] < price * len(costs)]
    if start is not None and start.size:
        starts = [start.tolist(), *starts[:AGAIN]]
    found = [_exchanged(capped, _greedy(capped, k, price, chosen), price) for chosen in starts]
    worth = [capped[:, chosen].min(axis=1, initial=price).sum() for chosen in found]
    return np.array(found[int(np.argmin(worth))] if found else [], dtype=np.int64)


def _greedy(capped: np.ndarray, k: int, price: float, chosen: list[int]) -> list[int]:
    """Add the action that helps most, up to ``k``; none that helps nobody."""
    best = capped[:, chosen].min(axis=1, initial=price)
    while len(chosen) < k:
        totals = np.minimum(best[:, None], capped).sum(axis=0)
        column = int(totals.argmin())
        if totals[column] >= best.sum() * (1 - 1e-12):
            break
        chosen = [*chosen, column]
        best = np.minimum(best, capped[:, column])
    return chosen


def _exchanged(
    capped: np.ndarray, chosen: list[int], price: float, count: int | None = None
) -> list[int]:
    """Put another action in the place of one as long as all rows, or the cheapest, pay less."""

    def total(costs: np.ndarray) -> np.ndarray:
        kept = costs if count is None else np.partition(costs, count - 1, axis=0)[:count]
        return np.asarray(kept.sum(axis=0))

    paid = total(capped[:, chosen].min(axis=1, initial=price))
    for _ in range(PASSES):
        before = paid
        for place in range(len(chosen)):
            rest = chosen[:place] + chosen[place + 1 :]
            best = capped[:, rest].min(axis=1, initial=price)
            totals = total(np.minimum(best[:, None], capped))
            column = int(totals.argmin())
            if totals[column] < paid * (1 - 1e-12):
                chosen, paid = [*chosen[:place], column, *chosen[place + 1 :]], totals[column]
        if paid == before:
            break
    return chosen
