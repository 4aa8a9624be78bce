"""The records of a schema: a column, an attribute made of columns, a rule over whole rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elsewise.features.schema import Schema

Formula = str | Callable[[Any], Any]
"""A text of our own small language, or a function of a frame."""

# Notice of a column with one value: there is nowhere it was seen to move to.
CONSTANT = "constant"
# Notice of a column that tells rows apart and says nothing of them.
IDENTIFIER = "looks like an identifier: not moved unless freed by Schema.free(name)"
# Notice of a category with levels that too few rows have.
RARE = "levels seen in fewer than 5 rows are no targets unless given in Schema.allowed"
# Notice of a column whose moves would change no output. Distances count it as one that may move.
UNREAD = "not read by the model: never moved"

GROUP = "one-hot group"
"""The kind of an attribute that is several columns."""
# The columns of a table of features, and how it says where a column may move.
COLUMNS = ("column", "kind", "moves", "range", "weight", "notice")
_MOVES = {0: "freely", 1: "only increases", -1: "only decreases"}
_SHOWN = 4


class Kind(StrEnum):
    """What a column holds, and so how it may move."""

    NUMBER = "number"
    """Any value of an interval."""
    INTEGER = "integer"
    """Whole values of an interval."""
    CATEGORY = "category"
    """One of a few levels."""
    FIXED = "fixed"
    """Dates, text and other objects: carried along, never moved."""

    @property
    def amount(self) -> bool:
        """Whether values are numbers."""
        return self in (Kind.NUMBER, Kind.INTEGER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One column: what it holds and how it may move.

    Schema files call some of its fields by another word, which is in their metadata.

    Examples
    --------
    >>> age = Feature(name="age", kind=Kind.INTEGER, free=True, observed=(18.0, 75.0),
    ...               center=35.5, scale=11.4)
    >>> age.numeric, age.can_move
    (True, True)
    """

    name: Hashable
    """Column name in the frame."""
    kind: Kind
    """What the column holds."""
    free: bool
    """Whether the column may move at all."""
    observed: tuple[float, float] = field(metadata={"word": "seen"})
    """Smallest and largest code in the frame and the background; categories: first and last."""
    declared: tuple[float, float] | None = field(default=None, metadata={"word": "range"})
    """Range given by the user; an infinite end leaves that side to the observed range."""
    center: float = field(default=0.0, metadata={"word": "mean"})
    """Mean of the background's non-missing cells; 0 for categories."""
    scale: float = field(default=1.0, metadata={"word": "deviation"})
    """Standard deviation (ddof = 1) of the background's non-missing cells; 1 for categories."""
    weight: float = 1.0
    """Factor on this column's part of every distance."""
    cost: float | None = None
    """Price of one unit, or of a change of a category, for policies; distances do not see it."""
    levels: tuple[Any, ...] = ()
    """Values of a category; a code is an index into them."""
    ordered: bool = False
    """Whether the levels are in order."""
    allowed: tuple[Any, ...] | None = None
    """Levels that may be moved to; None is all of them."""
    resolution: float | None = None
    """Step of a number: it moves to whole multiples of this; None: to any value."""
    at_most_by: float | None = None
    """Largest move of a row in either direction; of an ordered category in levels."""
    direction: int = field(default=0, metadata={"word": "only"})
    """+1: may only increase; -1: may only decrease."""
    group: str | None = None
    """One-hot group this 0/1 column belongs to."""
    derived: Formula | None = None
    """What makes this column of the others; it then never moves by itself."""
    kept: bool = field(default=False, compare=False)
    """Whether it was frozen on purpose, so that nothing has to be said about that."""
    notice: str = ""
    """Why the column was frozen, or read as it was."""

    @property
    def numeric(self) -> bool:
        """Whether codes are amounts that may be moved by any step: numbers outside groups."""
        return self.kind.amount and self.group is None

    @property
    def grid(self) -> tuple[float, float]:
        """The step as a fraction of whole numbers; (0, 1) without one.

        Whole multiples of it are then the doubles nearest to their decimals.
        """
        step = Fraction(repr(self.resolution or 0.0))
        return float(step.numerator), float(step.denominator)

    @property
    def can_move(self) -> bool:
        """Whether the column may be freed: neither fixed nor constant nor made of others."""
        return self.kind is not Kind.FIXED and self.notice != CONSTANT and self.derived is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A condition on whole rows.

    Examples
    --------
    >>> Rule(name="works", condition="hours > 0").condition
    'hours > 0'
    """

    name: str
    """How messages call the rule."""
    condition: Formula
    """A text, see `elsewise.features.Expression`; or frame in, one boolean per row out."""


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
    return tuple(_attribute(schema, tuple(places)) for places in members.values())


def _attribute(schema: Schema, places: tuple[int, ...]) -> Attribute:
    features = tuple(schema.features[j] for j in places)
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


def describe(feature: Feature) -> tuple[str, ...]:
    """Return the cells, in the order of ``COLUMNS``, that describe a feature.

    Examples
    --------
    >>> describe(Feature(name="x", kind=Kind.NUMBER, free=True, observed=(0.0, 1.0)))
    ('x', 'number', 'freely', '0 to 1', '1', '')
    """
    kind = f"ordered {feature.kind}" if feature.ordered else str(feature.kind)
    if feature.group is not None:
        kind = f"one of {feature.group!r}"
    moves = _MOVES[feature.direction] if feature.free else "never"
    if feature.free and feature.at_most_by is not None:
        moves += f" by {feature.at_most_by:g} at most"
    return str(feature.name), kind, moves, _span(feature), f"{feature.weight:g}", feature.notice


def _span(feature: Feature) -> str:
    if feature.kind is Kind.FIXED:
        return ""
    if feature.kind is Kind.CATEGORY:
        levels = feature.levels if feature.allowed is None else feature.allowed
        names = [str(level) for level in levels[:_SHOWN]]
        return ", ".join(names) + (f", ... ({len(levels)})" if len(levels) > _SHOWN else "")
    ends = zip(feature.declared or feature.observed, feature.observed, strict=True)
    lower, upper = (end if isfinite(end) else seen for end, seen in ends)
    step = "" if feature.resolution is None else f", step {feature.resolution:g}"
    return f"{lower:g} to {upper:g}{step}"
