"""Attributes in bins, and the itemsets that are frequent among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from benchmarks.rivals.question import Field, Question

__all__ = ["Bins", "Itemsets", "bins_of", "frequent_itemsets"]


class Item(NamedTuple):
    """One bin of one attribute."""

    field: int
    """Place of the attribute."""
    rank: int
    """Place of the bin among the attribute's, in order for numbers."""
    text: str
    """Readable condition."""
    codes: tuple[float, ...]
    """What the attribute's columns become when a row is sent to this bin."""
    target: bool
    """Whether a row may be sent here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bins:
    """All items, those of one attribute side by side."""

    fields: tuple[Field, ...]
    items: tuple[Item, ...]
    edges: tuple[np.ndarray | None, ...]
    """Per field, inner edges of a number's bins; None for a category."""
    ranks: tuple[np.ndarray, ...]
    """Per field, item (L,) of each bin or level, -1 for a bin that holds nothing."""

    @property
    def rank_of(self) -> np.ndarray:
        """Rank (I,) of every item among its attribute's."""
        return np.array([item.rank for item in self.items])

    def items_of(self, codes: np.ndarray) -> np.ndarray:
        """Item (n, F) of every row and attribute; -1 where missing or never seen."""
        found = np.full((len(codes), len(self.fields)), -1)
        for k, (field, edges, ranks) in enumerate(
            zip(self.fields, self.edges, self.ranks, strict=True)
        ):
            if edges is None:
                places = field.level_of(codes)
            else:
                column = codes[:, field.columns[0]]
                places = np.where(np.isnan(column), -1, np.searchsorted(edges, column, "right"))
            found[:, k] = np.where(places >= 0, ranks[places], -1)
        return found


def bins_of(question: Question, count: int) -> Bins:
    """Cut numbers into ``count`` equal bins, or one per value if there are no more than that.

    A bin stands for the median of the background values in it, so that what a rule recommends was
    seen; a bin without background rows is no item.
    """
    items: list[Item] = []
    edges: list[np.ndarray | None] = []
    ranks: list[np.ndarray] = []
    for k, field in enumerate(question.fields):
        if field.levels is None:
            made, cuts, places = _number(question, k, field, count)
        else:
            made, places = _levels(k, field, field.levels)
            cuts = None
        ranks.append(np.where(places >= 0, places + len(items), -1))
        items.extend(made)
        edges.append(cuts)
    return Bins(fields=question.fields, items=tuple(items), edges=tuple(edges), ranks=tuple(ranks))


def _levels(k: int, field: Field, levels: np.ndarray) -> tuple[list[Item], np.ndarray]:
    made = [
        Item(k, rank, f"{field.name} = {label}", tuple(codes), field.free and bool(allowed))
        for rank, (label, codes, allowed) in enumerate(
            zip(field.labels, levels.tolist(), field.allowed, strict=True)
        )
    ]
    return made, np.arange(len(made))


def _number(
    question: Question, k: int, field: Field, count: int
) -> tuple[list[Item], np.ndarray, np.ndarray]:
    column = field.columns[0]
    feature = question.problem.schema.features[column]
    values = question.background[:, column]
    values = np.sort(values[~np.isnan(values)])
    distinct = np.unique(values)
    if len(distinct) <= count:
        cuts = (distinct[1:] + distinct[:-1]) / 2
    else:
        cuts = np.linspace(distinct[0], distinct[-1], count + 1)[1:-1]
    low, high = feature.declared or (-np.inf, np.inf)
    made: list[Item] = []
    places = np.full(len(cuts) + 1, -1)
    held = np.searchsorted(cuts, values, "right")
    for place in range(len(cuts) + 1):
        inside = values[held == place]
        if len(inside):
            middle = float(inside[(len(inside) - 1) // 2])
            if inside[0] == inside[-1]:
                text = f"{field.name} = {inside[0]:.4g}"
            else:
                text = f"{field.name} in [{inside[0]:.4g}, {inside[-1]:.4g}]"
            places[place] = len(made)
            made.append(Item(k, place, text, (middle,), field.free and low <= middle <= high))
    return made, cuts, places


class Itemsets(NamedTuple):
    """Itemsets of one width."""

    items: np.ndarray
    """int (C, width), ascending: at most one item per attribute."""
    counts: np.ndarray
    """int (C,): rows that hold all of them."""


def frequent_itemsets(
    held: np.ndarray, item_fields: np.ndarray, least: int, width: int
) -> list[Itemsets]:
    """Apriori: all itemsets held by at least ``least`` rows, one entry per width up to ``width``.

    Parameters
    ----------
    held
        bool (n, I): which row holds which item.
    item_fields
        int (I,), ascending: the attribute of each item.
    least
        Smallest number of rows.
    width
        Largest number of items.

    Examples
    --------
    >>> held = np.array([[1, 0, 1], [1, 0, 1], [0, 1, 1]], dtype=bool)
    >>> pairs = frequent_itemsets(held, np.array([0, 0, 1]), 2, 2)[1]
    >>> pairs.items, pairs.counts
    (array([[0, 2]]), array([2]))
    """
    table = held.astype(np.float32)
    counts = held.sum(axis=0)
    single = np.flatnonzero(counts >= max(least, 1))
    levels = [Itemsets(single[:, None], counts[single])]
    masks = table[:, single]
    while len(levels) < width and len(levels[-1].items):
        before = levels[-1].items
        # An itemset is frequent only if all its parts are: extend by frequent items alone.
        together = masks.T @ table[:, single]
        later = item_fields[single] > item_fields[before[:, -1]][:, None]
        rows, columns = np.nonzero(later & (together >= max(least, 1)))
        items = np.hstack([before[rows], single[columns, None]])
        levels.append(Itemsets(items, together[rows, columns].astype(np.int64)))
        masks = masks[:, rows] * table[:, single[columns]]
    return levels
