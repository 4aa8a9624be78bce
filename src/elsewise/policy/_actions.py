"""Actions: a few edits of a row, said and written the way people say and write them.

An action is a row of two tables: what it adds to each code and what it sets each code to. Both are
literal: a row for which the result is not legal cannot take the action.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from elsewise.features import Kind, Schema
from elsewise.moves import Unit, units
from elsewise.text import one_line

DIGITS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
"""First digits of the amounts that an action adds."""
COARSE = (1.0, 2.0, 2.5, 5.0)
"""First digits of the amounts tried first; the others refine them."""
SMALLEST = 0.05
"""Smallest amount tried, in standard deviations of the column."""
SET_LEVELS = np.linspace(0.05, 0.95, 11)
"""Quantiles of the background that a number is set to, rounded."""


class Actions(NamedTuple):
    """C actions on codes of p columns."""

    add: np.ndarray
    """ndarray (C, p): the amount added; 0 where nothing is."""
    put: np.ndarray
    """ndarray (C, p): the code set; NaN where none is."""

    def take(self, index: Any) -> Actions:
        """Return some of the actions."""
        return Actions(self.add[index], self.put[index])

    @property
    def table(self) -> np.ndarray:
        """Both tables beside each other (C, 2 p), comparable: infinity where nothing is set."""
        return np.concatenate([self.add, np.nan_to_num(self.put, nan=np.inf)], axis=1)

    def distinct(self) -> Actions:
        """Return the actions without those that change nothing and without repetitions."""
        _, first = np.unique(self.table, axis=0, return_index=True)
        kept = self.take(np.sort(first))
        return kept.take(((kept.add != 0) | ~np.isnan(kept.put)).any(axis=1))

    def apply(self, codes: np.ndarray, grid: np.ndarray) -> np.ndarray:
        """Return codes (C, m, p) of every row after every action.

        ``grid`` (p,) holds the parts of a unit that a column counts in, 0 where it has no grid: a
        sum is rounded to it, so that 0.1 + 0.2 is 0.3.
        """
        moved = codes + self.add[:, None, :]
        here = self.add[:, None, :] != 0
        scale = np.where(grid > 0, grid, 1.0)
        moved = np.where(here & (grid > 0), np.round(moved * scale) / scale, moved)
        return np.where(np.isnan(self.put)[:, None, :], moved, self.put[:, None, :])


def joined(parts: Sequence[Actions]) -> Actions:
    """Return the actions of all parts, in order."""
    return Actions(*(np.concatenate(tables) for tables in zip(*parts, strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Movable:
    """One thing an edit can change: a number, a category or a one-hot group."""

    name: str
    columns: np.ndarray
    """int (c,): where it is in the codes."""
    scale: float
    """Standard deviation of a number."""
    choices: np.ndarray | None
    """ndarray (L, len(columns)): codes of a category or a group; None for a number."""
    levels: tuple[str, ...]
    """What a category or a group can be, by its code."""
    amounts: np.ndarray
    """ndarray (A,): increasing positive amounts that may be added to a number."""
    values: np.ndarray
    """ndarray (B,): numbers that it may be set to."""
    grid: float
    """Parts of a unit that a number counts in; 0: no grid."""

    def rounded(self, change: np.ndarray) -> np.ndarray:
        """Return changes (n,) rounded to the nearest amount, by ratio."""
        size, place = np.abs(change), np.zeros(change.shape, dtype=np.int64)
        if self.amounts.size > 1:
            place = np.searchsorted(np.sqrt(self.amounts[1:] * self.amounts[:-1]), size)
        return np.asarray(np.sign(change) * (self.amounts[place] if self.amounts.size else 0.0))

    def words(self, add: np.ndarray, put: np.ndarray) -> tuple[str, str] | None:
        """Say what an action (p,) does to this attribute: a verb and the rest, or nothing."""
        first = self.columns[0]
        if add[first] != 0:
            return "raise" if add[first] > 0 else "lower", f"{self.name} by {abs(add[first]):,.12g}"
        if np.isnan(put[first]):
            return None
        code = put[first] if len(self.columns) == 1 else put[self.columns].argmax()
        return "set", f"{self.name} to {self.levels[int(code)] if self.levels else f'{code:,.12g}'}"


def movables(schema: Schema, seen: np.ndarray) -> tuple[Movable, ...]:
    """Return what may move, with the amounts people would write; ``seen`` (m, p) are codes."""
    return tuple(_movable(schema, unit, seen) for unit in units(schema, seen))


def _movable(schema: Schema, unit: Unit, seen: np.ndarray) -> Movable:
    features = [schema.features[j] for j in unit.columns]
    first, grouped = features[0], features[0].group is not None
    levels = tuple(f.name for f in features) if grouped else first.levels
    column = seen[:, unit.columns[0]]
    known = column[~np.isnan(column)]
    amounts, values, grid = np.empty(0), np.empty(0), 0.0
    if unit.choices is None and known.size:
        over, times = first.grid
        grid = times / over if over else float(first.kind is Kind.INTEGER)
        reach = max(float(np.ptp(known)), unit.scale)
        amounts = _amounts(max(SMALLEST * unit.scale, 1.0 / grid if grid else 0.0), reach, grid)
        values = _two_digits(np.quantile(known, SET_LEVELS), grid)
    return Movable(
        name=one_line(first.group if grouped else first.name),
        columns=np.array(unit.columns),
        scale=unit.scale,
        choices=unit.choices,
        levels=tuple(map(one_line, levels)),
        amounts=amounts,
        values=values,
        grid=grid,
    )


def _amounts(least: float, most: float, grid: float) -> np.ndarray:
    """Return the amounts between two sizes that the column's grid has."""
    powers = 10.0 ** np.arange(np.floor(np.log10(least)) - 1, np.ceil(np.log10(most)) + 1)
    amounts = np.round(np.outer(powers, DIGITS).ravel(), 12)
    kept = amounts[(amounts >= least * (1 - 1e-9)) & (amounts <= most)]
    return kept if not grid else kept[np.abs(kept * grid - np.round(kept * grid)) < 1e-9]


def _two_digits(values: np.ndarray, grid: float) -> np.ndarray:
    """Return distinct values rounded to two digits, on the grid of the column."""
    rounded = np.array([float(f"{value:.2g}") for value in values])
    return np.unique(np.round(rounded * grid) / grid if grid else rounded)


def pairs(first: Actions, second: Actions) -> Actions:
    """Return each action of ``first`` joined with the one of ``second`` in the same place."""
    put = np.where(np.isnan(first.put), second.put, first.put)
    return Actions(first.add + second.add, put)
