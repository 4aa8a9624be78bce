"""The search of rows: what it looks at, and the best ways it has found so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from elsewise._arrays import to_numpy
from elsewise.features import Kind, Legal
from elsewise.moves._steps import on_grid

if TYPE_CHECKING:
    from elsewise.features import Schema
    from elsewise.moves._menu import Menu
    from elsewise.request import Problem


class Goal(NamedTuple):
    """What ways are looked for, and how they are compared."""

    margins: Callable[[np.ndarray], np.ndarray]
    """Outputs (m, K) to margins (m,), >= 0 inside."""
    slopes: Callable[[np.ndarray, np.ndarray], np.ndarray]
    """Outputs (m, K) and their gradient (m, K, p) to the gradient (m, p) of the margins."""
    rates: np.ndarray | None = None
    """(B,): cost that a unit of margin is worth, one way being kept for each; None: ways inside."""
    cell_price: float = 0.0
    """Cost of a changed attribute beside that of the move, where margin has a rate."""
    inside: float = 1e-7
    """Margin at which a moved row counts as inside, so that rounding cannot undo it."""
    counts: int = 6
    """Ways inside are kept apart by their number of changed attributes, up to this many."""

    def scores(self, costs: np.ndarray, counts: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return what a way is judged by, (n, C, B), the less the better, for each place kept."""
        if self.rates is not None:
            paid = costs + self.cell_price * counts
            return np.asarray(on_grid(paid[..., None] - self.rates * margins[..., None]))
        inside = np.where(margins >= self.inside, costs, np.inf)[..., None]
        few = np.arange(1, self.counts + 1)
        slots = np.where(counts[..., None] <= few, inside, np.inf)
        return np.concatenate([-margins[..., None], slots, inside], axis=-1)


class Pool(NamedTuple):
    """The best way found so far for each place that the goal keeps, row by row."""

    codes: np.ndarray
    """(n, B, p)."""
    margins: np.ndarray
    """(n, B)."""
    costs: np.ndarray
    """(n, B)."""
    scores: np.ndarray
    """(n, B): infinite where there is none."""


class RowSearch(NamedTuple):
    """Rows before they move, all that their search may look at, and what it has found."""

    problem: Problem
    menu: Menu
    goal: Goal
    legal: Legal
    """The boxes of the rows, as NumPy arrays."""
    reach: np.ndarray
    """(p,): codes per unit of the embedding."""
    prices: tuple[np.ndarray, np.ndarray]
    pool: Pool

    @classmethod
    def start(cls, problem: Problem, menu: Menu, goal: Goal, codes: np.ndarray) -> RowSearch:
        """Return the search of rows (n, p) that may all move and so far have only themselves."""
        schema, nowhere = problem.schema, np.empty((len(codes), 0))
        legal, reach = schema.legal(codes), np.asarray(schema.embedding().reach)
        nothing = Pool(nowhere, nowhere, nowhere, nowhere)
        search = cls(problem, menu, goal, legal, reach, move_prices(schema), nothing)
        here, zero = search.ask(codes[:, None, :])[:, 0], np.zeros(len(codes))
        scores = goal.scores(zero, zero, here)
        ways, margins = (
            np.repeat(part[:, None], scores.shape[1], axis=1) for part in (codes, here)
        )
        return search._replace(pool=Pool(ways, margins, np.zeros(scores.shape), scores))

    @property
    def factual(self) -> np.ndarray:
        """The factual codes (n, p)."""
        return np.asarray(self.legal.factual)

    @property
    def numeric(self) -> np.ndarray:
        """Which columns are numbers, bool (p,)."""
        return np.array([feature.numeric for feature in self.problem.schema.features])

    def among(self, rows: np.ndarray, search: Callable[..., Any], *more: Any) -> Any:
        """Let ``search(part, *more)`` loose on some of the rows, int (m,), and keep its finds."""
        if not rows.size:
            return None
        pool = Pool(*(part[rows] for part in self.pool))
        try:
            return search(self._replace(legal=self.legal.take(rows), pool=pool), *more)
        finally:  # also where time is up on the way
            for part, new in zip(self.pool, pool, strict=True):
                part[rows] = new

    def ask(self, codes: np.ndarray, worth: np.ndarray | None = None) -> np.ndarray:
        """Return the margins (n, C) of rows (n, C, p); -inf where not worth asking or illegal."""
        worth = np.ones(codes.shape[:2], dtype=bool) if worth is None else worth
        margins = np.full(worth.shape, -np.inf)
        if self.problem.obeys is not None and worth.any():
            worth = worth.copy()
            worth[worth] = self.problem.obeys(codes[worth])
        if worth.any():
            model = self.problem.precise
            outputs = to_numpy(model.values(model.place(codes[worth]))).astype(np.float64)
            margins[worth] = on_grid(self.goal.margins(outputs))
        return margins

    def offer(self, codes: np.ndarray, worth: np.ndarray | None = None) -> np.ndarray:
        """Ask about ways (n, C, p), keep what is better among them, and return their margins."""
        margins, cells = self.ask(codes, worth), self.cell_costs(codes)
        costs = on_grid(cells.sum(axis=-1))
        known = np.isfinite(margins)
        scores = self.goal.scores(costs, self.counts(cells), np.where(known, margins, 0.0))
        scores[~known] = np.inf
        best = np.argmin(scores, axis=1)
        least = np.take_along_axis(scores, best[:, None, :], 1)[:, 0]
        rows, slots = np.nonzero(least < self.pool.scores)
        chosen = best[rows, slots]
        for kept, new in zip(self.pool, (codes, margins, costs), strict=False):
            kept[rows, slots] = new[rows, chosen]
        self.pool.scores[rows, slots] = least[rows, slots]
        return margins

    def cell_costs(self, codes: np.ndarray) -> np.ndarray:
        """Return what each cell of rows (n, ..., p) pays."""
        factual = self.factual if codes.ndim == 2 else self.factual[:, None, :]
        costs = np.asarray(codes - factual)
        costs[np.isnan(costs)] = 0.0  # a missing cell stays missing
        squared, swapped = self.prices
        levels = np.flatnonzero(swapped)
        swaps = (costs[..., levels] != 0.0) * swapped[levels]
        # In place: these are the largest arrays of a search, (n, C, p).
        costs *= costs
        costs *= squared
        costs[..., levels] += swaps
        return costs

    def counts(self, cells: np.ndarray) -> np.ndarray:
        """Return how many attributes pay something, from the costs of cells (n, ..., p)."""
        paid, member = cells > 0.0, self.menu.member
        if (member.sum(axis=1) > 1).any():  # one-hot groups
            paid = paid.astype(np.float32) @ member.T.astype(np.float32) > 0.0
        return np.asarray(np.count_nonzero(paid, axis=-1))

    def nearest_legal(self, codes: np.ndarray) -> np.ndarray:
        """Return the legal rows (n, C, p) nearest to ``codes``."""
        legal = self.legal.nearest(np.moveaxis(codes, 1, 0), self.reach)
        found: np.ndarray = np.moveaxis(legal, 0, 1).copy()
        features = self.problem.schema.features
        for columns in self.menu.member:
            if sum(columns) > 1 or any(features[j].group for j in np.flatnonzero(columns)):
                part, factual = found[..., columns], self.factual[:, None, columns]
                whole = part.sum(axis=-1) == factual.sum(axis=-1)
                found[..., columns] = np.where(whole[..., None], part, factual)
        return found


def differ(codes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the cells that differ; two missing cells do not."""
    return np.asarray((codes != others) & ~(np.isnan(codes) & np.isnan(others)))


def changed(codes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the rows of which some cell differs."""
    return np.asarray(differ(codes, others).any(axis=-1))


def move_prices(schema: Schema) -> tuple[np.ndarray, np.ndarray]:
    """Return what a changed cell costs: per squared code, (p,), and per swap of levels, (p,).

    The cost of a row's own move, |phi(x) - phi(x')|^2, is a sum over cells: a number or an ordered
    category pays its squared difference, an unordered category ``weight^2`` whatever the level, and
    the two cells of a one-hot swap half of that each.
    """
    squared, swapped = np.zeros(len(schema.features)), np.zeros(len(schema.features))
    for j, feature in enumerate(schema.features):
        if feature.kind is Kind.FIXED:
            continue
        if feature.group is not None:
            squared[j] = feature.weight**2 / 2.0
        elif feature.kind is not Kind.CATEGORY:
            squared[j] = (feature.weight / feature.scale) ** 2
        elif feature.ordered:
            squared[j] = (feature.weight / max(len(feature.levels) - 1, 1)) ** 2
        else:
            swapped[j] = feature.weight**2
    return squared, swapped
