"""Attributes: what a person counts as one feature, a one-hot group being one category."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elsewise.features._feature import Feature, Kind

if TYPE_CHECKING:
    from elsewise.features.schema import Schema


GROUP = "one-hot group"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attribute:
    """A number, a category, or a one-hot group."""

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
    features: tuple[Feature, ...]
    """Its columns."""

    @property
    def numeric(self) -> bool:
        """Whether codes are amounts."""
        return self.kind in (Kind.NUMBER, Kind.INTEGER)

    @property
    def grouped(self) -> bool:
        """Whether it is a one-hot group."""
        return self.kind == GROUP


def attributes(schema: Schema, *, fixed: bool = False) -> tuple[Attribute, ...]:
    """Return every attribute in the order of their first columns; dates and texts if ``fixed``.

    Examples
    --------
    >>> import pandas as pd
    >>> from elsewise.features import Schema
    >>> rows = pd.DataFrame({"own": [1, 0], "age": [20, 30], "rent": [0, 1]})
    >>> schema = Schema.infer(rows).one_hot_group("home", ["own", "rent"])
    >>> [(attribute.name, attribute.places) for attribute in attributes(schema)]
    [('home', (0, 2)), ('age', (1,))]
    """
    members: dict[Hashable, list[int]] = {}
    for j, feature in enumerate(schema.features):
        if fixed or feature.kind is not Kind.FIXED:
            # Columns and groups may share a name: the key says which it is.
            key = (False, feature.name) if feature.group is None else (True, feature.group)
            members.setdefault(key, []).append(j)
    return tuple(
        _attribute(tuple(places), tuple(schema.features[j] for j in places))
        for places in members.values()
    )


def _attribute(places: tuple[int, ...], features: tuple[Feature, ...]) -> Attribute:
    first = features[0]
    grouped = first.group is not None
    return Attribute(
        name=first.group if grouped else first.name,
        kind=GROUP if grouped else first.kind.value,
        free=any(feature.free for feature in features),
        ordered=first.numeric or (first.ordered and not grouped),
        levels=tuple(feature.name for feature in features) if grouped else first.levels,
        places=places,
        features=features,
    )
