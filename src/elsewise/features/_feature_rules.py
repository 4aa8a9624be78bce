"""What a schema's methods do to one feature, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from math import ceil, floor, isfinite
from numbers import Real
from typing import Any

from elsewise._arrays import LARGEST
from elsewise.errors import bad_column
from elsewise.features._feature import IDENTIFIER, RARE, Feature, Formula, Kind


def freed(feature: Feature, free: bool = True) -> Feature:
    """Return the feature free to move; refuse those that have nowhere to go."""
    if not feature.can_move:
        fix = "leave it frozen, or change the column and infer the schema again"
        why = feature.notice if feature.derived is None else "one made of others"
        raise bad_column(feature.name, "a column that can move", why, fix)
    notice = "" if feature.notice == IDENTIFIER else feature.notice
    return replace(feature, free=free, kept=False, notice=notice)


def ranged(feature: Feature, ends: tuple[float, float]) -> Feature:
    """Return the feature with a declared range; refuse one that holds no value."""
    if not feature.kind.amount:
        fix = "use Schema.allowed for categories"
        raise bad_column(feature.name, "a column of numbers", feature.kind.value, fix)
    (lower, upper), (low, high) = ends, feature.observed
    if not (isinstance(lower, Real) and isinstance(upper, Real) and lower <= upper):
        expected, fix = "two numbers, lower <= upper", "swap the ends or leave one out"
    elif any(isfinite(end) and abs(end) > LARGEST for end in ends):
        expected, fix = f"ends of at most {LARGEST:g}", "leave out the end that is no limit"
    elif lower > high or upper < low:
        expected = f"a range that meets the observed one, {low:g} to {high:g}"
        fix = "check the unit, or freeze the column"
    else:
        return whole_range(replace(feature, declared=(float(lower), float(upper))))
    raise bad_column(feature.name, expected, f"{lower} to {upper}", fix, "range of")


def whole_range(feature: Feature) -> Feature:
    """Return the feature as it is; refuse a range or a largest move without room for a step."""
    ends, step = feature.declared, feature.resolution or float(feature.kind is not Kind.NUMBER)
    fix = "widen it, or read the column as continuous: Schema.continuous(name)"
    if step and ends and all(map(isfinite, ends)):
        lower, upper = (round(end / step, 6) for end in ends)
        if ceil(lower) > floor(upper):
            kind = "whole number" if step == 1 else f"multiple of {step:g}"
            expected, received = f"a range that holds a {kind}", f"{ends[0]:g} to {ends[1]:g}"
            raise bad_column(feature.name, expected, received, fix, "range of")
    if feature.at_most_by is not None and feature.at_most_by < step:
        expected, received = f"at least its step, {step:g}", f"{feature.at_most_by:g}"
        raise bad_column(feature.name, expected, received, fix, "largest move of")
    return feature


def resolved(feature: Feature, value: float) -> Feature:
    """Return the number with a step; refuse what is none."""
    if not feature.numeric:
        fix = "leave it out: categories move from level to level"
        raise bad_column(feature.name, "a column of numbers", feature.kind.value, fix)
    whole = feature.kind is Kind.INTEGER
    if not _positive(value) or (whole and value % 1):
        expected = "a whole step above 0" if whole else "a finite step above 0, such as 0.01"
        fix = "to let it take any value: Schema.continuous(name)"
        raise bad_column(feature.name, expected, repr(value), fix, "resolution of")
    return whole_range(replace(feature, resolution=float(value)))


def moved_at_most(feature: Feature, value: float) -> Feature:
    """Return the feature with a largest move; refuse columns without an order."""
    if not _positive(value):
        fix = "freeze the column to keep it from moving"
        raise bad_column(feature.name, "a finite number > 0", repr(value), fix, "largest move of")
    if feature.group is not None:
        fix = "leave it out: a row leaves one of its columns for another"
        raise bad_column(feature.name, "a column in no one-hot group", feature.group, fix)
    return whole_range(replace(directed(feature, feature.direction), at_most_by=float(value)))


def restricted(feature: Feature, values: Sequence[Any]) -> Feature:
    """Return the category with the levels it may be moved to, in the order of its levels."""
    if feature.kind is not Kind.CATEGORY:
        fixed = feature.kind is Kind.FIXED
        fix = "make it one and infer the schema again" if fixed else "use Schema.range for numbers"
        received = feature.notice if fixed else feature.kind.value
        raise bad_column(feature.name, "a category", received, fix)
    unknown = [value for value in values if value not in feature.levels]
    if unknown or not values:
        expected = f"some of the levels {list(feature.levels)}"
        received = repr(unknown[0]) if unknown else "none"
        fix = "name levels of the column, or freeze it"
        raise bad_column(feature.name, expected, received, fix, "allowed values of")
    allowed = tuple(level for level in feature.levels if level in values)
    notice = "" if feature.notice == RARE else feature.notice
    return replace(feature, allowed=allowed, notice=notice)


def directed(feature: Feature, direction: int) -> Feature:
    """Return the feature with a direction; refuse columns without an order."""
    if feature.derived is not None:
        fix = "say it of the columns it is made of, or by a rule"
        raise bad_column(feature.name, "a column that can move", "one made of others", fix)
    if feature.kind is Kind.FIXED or (feature.kind is Kind.CATEGORY and not feature.ordered):
        expected = "a number or an ordered category"
        fix = "make it ordered: pandas.CategoricalDtype(levels, ordered=True)"
        raise bad_column(feature.name, expected, f"an unordered {feature.kind.value} column", fix)
    return replace(feature, direction=direction)


def read_as(feature: Feature, kind: Kind) -> Feature:
    """Return the number as whole or continuous; refuse columns that are no numbers."""
    if not feature.kind.amount:
        fix = "convert it with pandas.to_numeric and infer the schema again"
        raise bad_column(feature.name, "a column of numbers", feature.kind.value, fix)
    return whole_range(replace(feature, kind=kind, resolution=None))


def grouped(feature: Feature, group: str) -> Feature:
    """Return the 0/1 column as a member of a one-hot group; refuse other columns."""
    boolean = feature.levels == (False, True)
    low, high = feature.observed
    whole = feature.kind is Kind.INTEGER and 0.0 <= low <= high <= 1.0
    if not (boolean or whole) or feature.group not in (None, group):
        expected = "a column of 0 and 1 that is in no group yet"
        fix = "name only the 0/1 columns of one category"
        received = f"group {feature.group!r}" if feature.group else feature.kind.value
        raise bad_column(feature.name, expected, received, fix)
    return replace(feature, group=group)


def made_of_others(feature: Feature, formula: Formula) -> Feature:
    """Return the number as a column made of others; refuse one with limits of its own."""
    limited = feature.direction or feature.at_most_by
    if not feature.numeric or limited:
        expected = "a number that is in no group and has no direction or largest move"
        fix = "leave it as it is; a range of it is checked after every move"
        received = "one with such a limit" if limited else feature.kind.value
        raise bad_column(feature.name, expected, received, fix)
    return replace(feature, derived=formula, free=False, resolution=None)


def checked(feature: Feature) -> Feature:
    """Return a feature read from a file, or refuse what inference and the schema's methods refuse.

    Examples
    --------
    >>> text = Feature(name="note", kind=Kind.FIXED, free=True, observed=(0.0, 0.0), notice="text")
    >>> checked(text)
    Traceback (most recent call last):
    ...
    elsewise.errors.InvalidInput: column 'note': expected a column that can move, received text...
    """
    (low, high), levels = feature.observed, [*map(repr, feature.levels)]
    one_each = (feature.kind is Kind.CATEGORY) == bool(levels) and len({*levels}) == len(levels)
    said = (
        ("seen", feature.observed, -LARGEST <= low <= high <= LARGEST, "two numbers, lower first"),
        ("mean", feature.center, abs(feature.center) <= LARGEST, "a finite number"),
        ("deviation", feature.scale, _positive(feature.scale), "a finite number above 0"),
        ("weight", feature.weight, _positive(feature.weight), "a finite number above 0"),
        ("cost", feature.cost, 0 <= (feature.cost or 0) <= LARGEST, "a finite price >= 0"),
        ("levels", feature.levels, one_each, "different levels of a category, of nothing else"),
    )
    for name, value, holds, expected in said:
        if not holds:
            fix = "write the schema again, and change only what may be changed"
            raise bad_column(feature.name, expected, repr(value), fix, f"{name} of")
    for name, rule in RULES.items():
        if (value := getattr(feature, name)) != USUAL[name]:
            rule(feature, value)
    return feature


RULES: dict[str, Callable[[Feature, Any], Feature]] = {
    "free": freed,
    "declared": ranged,
    "allowed": restricted,
    "resolution": resolved,
    "at_most_by": moved_at_most,
    "direction": directed,
    "group": grouped,
    "derived": made_of_others,
}
"""What checks and sets each field of a feature that users may set."""
USUAL = {field.name: field.default for field in fields(Feature)} | {"free": False}
"""The values of fields that nobody has set."""


def _positive(value: Any) -> bool:
    return isinstance(value, Real) and 1.0 / LARGEST <= float(value) <= LARGEST
