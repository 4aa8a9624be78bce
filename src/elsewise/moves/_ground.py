"""What the search of rows looks at, and the best ways it has found so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from elsewise._arrays import to_numpy
from elsewise.moves._offers import legal_rows
from elsewise.moves._steps import on_grid

if TYPE_CHECKING:
    from elsewise.features import Embedding
    from elsewise.moves._menu import Menu
    from elsewise.request import Population, Problem

__all__ = ["Goal", "Ground", "Pool", "changed", "differ"]


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


class Ground(NamedTuple):
    """Rows before they move, and all that their search may look at."""

    problem: Problem
    menu: Menu
    goal: Goal
    embedding: Embedding
    population: Population
    """The rows, as NumPy arrays."""
    prices: tuple[np.ndarray, np.ndarray]

    @property
    def codes(self) -> np.ndarray:
        """The factual codes (n, p)."""
        return np.asarray(self.population.codes)

    def take(self, rows: np.ndarray) -> Ground:
        """Return the ground of some of the rows, int (m,)."""
        return self._replace(population=self.population.take(rows))

    def ask(self, codes: np.ndarray, worth: np.ndarray) -> np.ndarray:
        """Return the margins (n, C) of rows (n, C, p); -inf where not worth asking or illegal."""
        margins = np.full(worth.shape, -np.inf)
        if self.problem.obeys is not None and worth.any():
            worth = worth.copy()
            worth[worth] = self.problem.obeys(codes[worth])
        if worth.any():
            model = self.problem.precise
            outputs = to_numpy(model.values(model.place(codes[worth]))).astype(np.float64)
            margins[worth] = on_grid(self.goal.margins(outputs))
        return margins

    def cell_costs(self, codes: np.ndarray) -> np.ndarray:
        """Return what each cell of rows (n, ..., p) pays."""
        factual = self.codes if codes.ndim == 2 else self.codes[:, None, :]
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

    def legal(self, codes: np.ndarray) -> np.ndarray:
        """Return the legal rows (n, C, p) nearest to ``codes``."""
        moved = np.moveaxis(codes, 1, 0)
        legal = legal_rows(self.embedding, self.population, moved)
        found: np.ndarray = np.moveaxis(legal, 0, 1).copy()
        features = self.problem.schema.features
        for columns in self.menu.member:
            if sum(columns) > 1 or any(features[j].group for j in np.flatnonzero(columns)):
                part, factual = found[..., columns], self.codes[:, None, columns]
                whole = part.sum(axis=-1) == factual.sum(axis=-1)
                found[..., columns] = np.where(whole[..., None], part, factual)
        return found


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

    @classmethod
    def start(cls, ground: Ground, here: np.ndarray) -> Pool:
        """Return the pool of rows with margins (n,) that have only themselves."""
        n, zero = len(ground.codes), np.zeros(here.shape)
        scores = ground.goal.scores(zero, zero, here)
        shape = scores.shape
        codes = np.repeat(ground.codes[:, None, :], shape[1], axis=1)
        return cls(
            codes, np.repeat(here[:, None], shape[1], axis=1), np.zeros((n, shape[1])), scores
        )

    def take(self, rows: np.ndarray) -> Pool:
        """Return the places of some of the rows."""
        return Pool(*(part[rows] for part in self))

    def put(self, rows: np.ndarray, other: Pool) -> None:
        """Write the places of some of the rows back."""
        for part, new in zip(self, other, strict=True):
            part[rows] = new

    def offer(self, ground: Ground, codes: np.ndarray, margins: np.ndarray) -> None:
        """Keep what is better among ways (n, C, p) with margins (n, C)."""
        cells = ground.cell_costs(codes)
        costs = on_grid(cells.sum(axis=-1))
        known = np.isfinite(margins)
        counts = ground.counts(cells)
        scores = ground.goal.scores(costs, counts, np.where(known, margins, 0.0))
        scores[~known] = np.inf
        best = np.argmin(scores, axis=1)
        rows, slots = np.nonzero(
            np.take_along_axis(scores, best[:, None, :], 1)[:, 0] < self.scores
        )
        chosen = best[rows, slots]
        self.codes[rows, slots] = codes[rows, chosen]
        self.margins[rows, slots] = margins[rows, chosen]
        self.costs[rows, slots] = costs[rows, chosen]
        self.scores[rows, slots] = scores[rows, chosen, slots]


def differ(codes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the cells that differ; two missing cells do not."""
    return np.asarray((codes != others) & ~(np.isnan(codes) & np.isnan(others)))


def changed(codes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the rows of which some cell differs."""
    return np.asarray(differ(codes, others).any(axis=-1))
