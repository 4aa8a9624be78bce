"""Features as a person knows them: numbers and categories, a one-hot group being one category."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from elsewise._arrays import Array, to_numpy
from elsewise.errors import InvalidInput
from elsewise.features import Feature, Kind, changed_cells

if TYPE_CHECKING:
    from elsewise.explanation import Explanation

__all__ = ["MISSING", "Column", "column_named", "columns_of", "embedded"]

GROUP = "one-hot group"
MISSING = "missing"
"""What a missing cell of a category is called."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """One feature before and after."""

    name: Hashable
    """Column name, or name of the one-hot group."""
    kind: str
    """"number", "integer", "category" or "one-hot group"."""
    free: bool
    """Whether it may move."""
    ordered: bool
    """Whether its codes are in order: numbers and ordered categories."""
    levels: tuple[Any, ...]
    """Values behind the codes of a category; of a one-hot group, its columns."""
    places: tuple[int, ...]
    """Where its columns are in the codes."""
    dimensions: np.ndarray
    """int (k,): where it is in the embedding."""
    before: np.ndarray
    """ndarray (n,): factual codes."""
    after: np.ndarray
    """ndarray (n,): counterfactual codes."""

    @property
    def numeric(self) -> bool:
        """Whether codes are amounts."""
        return self.kind in (Kind.NUMBER, Kind.INTEGER)

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
    features = explanation.problem.schema.features
    members: dict[Hashable, list[int]] = {}
    for j, feature in enumerate(features):
        if feature.kind is not Kind.FIXED:
            # Columns and groups may share a name: the key says which it is.
            key = (False, feature.name) if feature.group is None else (True, feature.group)
            members.setdefault(key, []).append(j)
    before, after = _double(explanation.problem.factual), _double(explanation.rows.codes)
    source = to_numpy(explanation.problem.embedding.source)
    return tuple(
        _column([features[j] for j in places], tuple(places), source, before, after)
        for places in members.values()
    )


def column_named(explanation: Explanation, name: Hashable) -> Column:
    """Return a feature before and after; a one-hot group goes by its own name."""
    for column in columns_of(explanation):
        if column.name == name:
            return column
    described = explanation.problem.schema[name]
    raise InvalidInput(
        "name",
        expected="a number, a category or a one-hot group",
        received=f"{name!r}, {described.notice or f'a part of the group {described.group!r}'}",
        fix="draw the whole group, or another column",
    )


def _column(
    features: Sequence[Feature],
    places: tuple[int, ...],
    source: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
) -> Column:
    first, here = features[0], list(places)
    grouped = first.group is not None
    return Column(
        name=first.group if grouped else first.name,
        kind=GROUP if grouped else first.kind.value,
        free=any(feature.free for feature in features),
        ordered=first.numeric or (first.ordered and not grouped),
        levels=tuple(feature.name for feature in features) if grouped else first.levels,
        places=places,
        dimensions=np.flatnonzero(np.isin(source, here)),
        before=before[:, here].argmax(axis=1).astype(float) if grouped else before[:, here[0]],
        after=after[:, here].argmax(axis=1).astype(float) if grouped else after[:, here[0]],
    )


def embedded(explanation: Explanation) -> tuple[np.ndarray, np.ndarray]:
    """Return factual and counterfactual rows, each (n, d), where distances are measured."""
    embed = explanation.problem.embedding.embed
    return _double(embed(explanation.problem.factual)), _double(embed(explanation.rows.codes))


def _double(array: Array) -> np.ndarray:
    return to_numpy(array).astype(np.float64)
