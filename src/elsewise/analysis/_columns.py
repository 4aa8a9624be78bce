"""Features as a person knows them: numbers and categories, a one-hot group being one category."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from elsewise._arrays import changed_cells, to_double, to_numpy
from elsewise.errors import InvalidInput
from elsewise.features import Attribute, Schema, attributes
from elsewise.text import amount, one_line

if TYPE_CHECKING:
    from elsewise.explanation import Explanation


MISSING = "missing"
"""What a missing cell of a category is called."""
NAMED_LEVELS, LEVEL_WIDTH = 2, 30
"""Changes of level named for a category, and letters of a level."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column(Attribute):
    """One attribute before and after."""

    dimensions: np.ndarray
    """int (k,): where it is in the embedding."""
    before: np.ndarray
    """ndarray (n,): factual codes."""
    after: np.ndarray
    """ndarray (n,): counterfactual codes."""

    @property
    def moved(self) -> np.ndarray:
        """The rows in which it changed, bool (n,); missing before and after is no change."""
        return np.asarray(changed_cells(self.before, self.after))

    def level(self, code: float) -> Any:
        """Return the level behind a code of a category."""
        return MISSING if np.isnan(code) else self.levels[int(code)]

    def take(self, rows: np.ndarray) -> Column:
        """Return the column of some rows only."""
        return replace(self, before=self.before[rows], after=self.after[rows])

    def change_words(self) -> str:
        """Return how the feature changes in the rows in which it does."""
        if not self.moved.any():
            return "stays as it is"
        if not self.numeric:
            return self._level_words()
        moves = (self.after - self.before)[self.moved]
        sides = [("lower", moves[moves < 0]), ("higher", moves[moves > 0])]
        said = []
        for word, some in sorted(sides, key=lambda side: -side[1].size):
            if some.size:
                by = amount(abs(float(np.median(some))))
                median = " in the median" if some.size > 1 else ""
                said.append(f"{word} in {rows_words(some.size)}, by {by}{median}")
        return "; ".join(said)

    def _level_words(self) -> str:
        """The most frequent changes of level, with the number of rows that make each."""
        pairs, counts = self.level_changes()
        words = []
        for pair, count in zip(pairs[:NAMED_LEVELS], counts, strict=False):
            start, end = (one_line(self.level(code), LEVEL_WIDTH) for code in pair)
            words.append(f"{start} to {end} in {rows_words(int(count))}")
        if others := int(counts[NAMED_LEVELS:].sum()):
            words.append(f"other changes in {rows_words(others)}")
        return ", ".join(words)

    def level_changes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return codes before and after, (c, 2), and rows (c,) of each change, most rows first."""
        pairs = np.stack([self.before, self.after], axis=1)[self.moved]
        found, counts = np.unique(pairs, axis=0, return_counts=True)
        # Stable: of changes that are as frequent, the order is that of the codes on every machine.
        order = np.argsort(-counts, kind="stable")
        return found[order], counts[order]


def rows_words(count: int) -> str:
    """Return a number of rows in words.

    Examples
    --------
    >>> rows_words(1), rows_words(1200)
    ('1 row', '1,200 rows')
    """
    return f"{count:,} row{'' if count == 1 else 's'}"


def columns_of(explanation: Explanation) -> tuple[Column, ...]:
    """Return every feature but dates, text and the like, in the order of the frame.

    Examples
    --------
    >>> import pandas as pd
    >>> import elsewise as ew
    >>> rows = pd.DataFrame({"a": range(20), "own": [1, 0] * 10, "rent": [0, 1] * 10})
    >>> explanation = ew.explain(
    ...     lambda frame: frame["a"], rows, target=ew.targets.shift(0.0),
    ...     schema=ew.Schema.infer(rows).one_hot_group("home", ["own", "rent"]),
    ...     bounds=ew.Bounds(outputs=9.0), certify="in-sample",
    ... )
    >>> [(column.name, column.kind) for column in columns_of(explanation)]
    [('a', 'integer'), ('home', 'one-hot group')]
    """
    before, after = to_double(explanation.problem.factual), to_double(explanation.rows.codes)
    source = to_numpy(explanation.problem.embedding.source)
    return columns_between(explanation.problem.schema, source, before, after)


def columns_between(
    schema: Schema,
    source: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
    *,
    fixed: bool = False,
) -> tuple[Column, ...]:
    """Return the features behind codes (n, p) before and after, a one-hot group being one.

    Parameters
    ----------
    source
        int (d,): column of the codes that each dimension of the embedding reads.
    fixed
        Whether dates, text and the like are among them.
    """

    def column(attribute: Attribute) -> Column:
        here = list(attribute.places)
        old, new = (
            codes[:, here].argmax(axis=1).astype(float) if attribute.grouped else codes[:, here[0]]
            for codes in (before, after)
        )
        shown = np.flatnonzero(np.isin(source, here))
        known = {field.name: getattr(attribute, field.name) for field in fields(Attribute)}
        return Column(**known, dimensions=shown, before=old, after=new)

    return tuple(map(column, attributes(schema, fixed=fixed)))


def column_named(explanation: Explanation, name: Hashable) -> Column:
    """Return a feature before and after; a one-hot group goes by its own name."""
    for column in columns_of(explanation):
        if column.name == name:
            return column
    described = explanation.problem.schema[name]
    found = described.notice or f"a part of the group {described.group!r}"
    expected = "a number, a category or a one-hot group"
    fix = "draw the whole group, or another column"
    raise InvalidInput("name", expected, f"{name!r}, {found}", fix)


def embedded(explanation: Explanation) -> tuple[np.ndarray, np.ndarray]:
    """Return factual and counterfactual rows, each (n, d), where distances are measured."""
    embed = explanation.problem.embedding.embed
    return to_double(embed(explanation.problem.factual)), to_double(embed(explanation.rows.codes))
