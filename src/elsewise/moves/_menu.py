"""What a row search tries: single changes of one attribute, and donors, recorded once per fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from elsewise.moves._edits import Unit, units

if TYPE_CHECKING:
    from elsewise.features import Schema


SINGLES = 480
"""About this many single changes are tried for every row."""
MOST_ATTRIBUTES = 96
"""Attributes that are tried; the others of a wide table only move with a whole donor."""
FEWEST_VALUES, MOST_VALUES = 4, 24
"""Values tried for one number."""
FINE_VALUES = 2 * 6 + 64
"""The same where few changed cells count most: every shift, and 64 quantiles."""
MOST_LEVELS = 48
"""Levels tried for one category, the most frequent ones."""
RARE = 5
"""Levels seen in fewer rows are no targets, unless the schema allows them by name."""
SHIFTS = (0.05, 0.15, 0.35, 0.75, 1.5, 3.0)
"""Shifts of a number tried in both directions, in standard deviations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """Recorded tables of a row search; a number, a category and a one-hot group are attributes."""

    attribute: np.ndarray
    """int (p,): attribute of each column, -1 where the column is frozen."""
    owner: np.ndarray
    """int (S,): attribute that each single change is about."""
    single: np.ndarray
    """int (M,): the single change that each cell belongs to."""
    column: np.ndarray
    """int (M,): the column of each cell."""
    value: np.ndarray
    """(M,): the new code, or what is added to the code."""
    shift: np.ndarray
    """bool (M,): whether the value is added."""
    donors: np.ndarray
    """(D, p): codes of rows that are already where the question wants them."""

    @property
    def attributes(self) -> int:
        """Number of attributes A."""
        return int(self.attribute.max(initial=-1)) + 1

    @property
    def member(self) -> np.ndarray:
        """Bool (A, p): the columns of each attribute."""
        return np.asarray(np.arange(self.attributes)[:, None] == self.attribute)

    def check(self, columns: int) -> None:
        """Refuse tables, read from a file, that do not fit a number of columns."""
        singles, cells = len(self.owner), len(self.column)
        whole = (self.attribute, self.owner, self.single, self.column)
        if any(table.ndim != 1 or table.dtype.kind != "i" for table in whole):
            raise ValueError("menu: tables of whole numbers are expected")
        good = self.attribute.size == columns and self.donors.shape[1:] == (columns,)
        good &= all(t.shape == (cells,) for t in (self.single, self.value, self.shift))
        good &= self.shift.dtype.kind == "b" and self.value.dtype.kind == "f"
        for table, size in ((self.owner, self.attributes), (self.single, singles)):
            good &= not table.size or (table.min() >= 0 and table.max() < size)
        good &= not cells or (self.column.min() >= 0 and self.column.max() < columns)
        if not good or not np.isfinite(self.value).all():
            raise ValueError("menu: tables do not fit the columns")


def build_menu(
    schema: Schema,
    background: np.ndarray,
    donors: np.ndarray,
    relevance: np.ndarray,
    fine: bool = False,
) -> Menu:
    """List the single changes that are worth trying, from the background rows (m, p).

    Parameters
    ----------
    relevance
        ndarray (p,): of a wide table only the attributes with the largest ones are tried.
    fine
        Whether numbers have many values: for rows that change one attribute only, a coarse menu
        may lack the one value that does.
    """
    moving = units(schema, background)
    if len(moving) > MOST_ATTRIBUTES:
        found = [max(relevance[list(unit.columns)]) for unit in moving]
        moving = tuple(moving[k] for k in np.sort(np.argsort(found)[-MOST_ATTRIBUTES:]))
    attribute = np.full(background.shape[1], -1)
    owner: list[int] = []
    cells: list[tuple[int, int, float, bool]] = []
    numbers = sum(unit.choices is None for unit in moving)
    per_number = int(np.clip(SINGLES // max(numbers, 1), FEWEST_VALUES, MOST_VALUES))
    per_number = FINE_VALUES if fine else per_number
    for a, unit in enumerate(moving):
        attribute[list(unit.columns)] = a
        for values, shift in _values(unit, schema, background, per_number):
            owner.append(a)
            made = zip(unit.columns, values, strict=True)
            cells += [(len(owner) - 1, column, float(value), shift) for column, value in made]
    single, column, value, shifts = np.array(cells, dtype=np.float64).reshape(-1, 4).T
    return Menu(
        attribute=attribute,
        owner=np.array(owner, dtype=np.int64),
        single=single.astype(np.int64),
        column=column.astype(np.int64),
        value=value.copy(),
        shift=shifts.astype(bool),
        donors=donors,
    )


def _values(
    unit: Unit, schema: Schema, background: np.ndarray, count: int
) -> list[tuple[np.ndarray, bool]]:
    """Values (columns,) of the single changes of one attribute, and whether they are added."""
    seen = background[:, list(unit.columns)]
    if unit.choices is not None:
        feature = schema.features[unit.columns[0]]
        often = np.array([np.sum(np.all(seen == row, axis=1)) for row in unit.choices])
        # With few background rows every level is rare, and rarity says nothing.
        rare = (often < RARE) & (len(background) >= 20 * RARE)
        if feature.allowed is not None:
            rare &= False
        order = np.argsort(-often, kind="stable")[:MOST_LEVELS]
        return [(unit.choices[k], False) for k in order if not rare[k]]
    present = seen[~np.isnan(seen[:, 0]), 0]
    shifts = SHIFTS if count >= 2 * len(SHIFTS) else SHIFTS[3 - count // 4 :: 2]
    steps = [(np.array([sign * s * unit.scale]), True) for s in shifts for sign in (-1.0, 1.0)]
    left = max(count - len(steps), 2)
    levels = np.linspace(0.0, 1.0, left)
    quantiles = np.unique(np.quantile(present, levels)) if present.size else present
    return [*steps[:count], *((np.array([value]), False) for value in quantiles)]
