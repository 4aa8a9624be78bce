"""Features as rows of a readable table."""

from __future__ import annotations

from math import isfinite

from elsewise.features._feature import Feature, Kind

COLUMNS = ("column", "kind", "moves", "range", "weight", "notice")
_MOVES = {0: "freely", 1: "only increases", -1: "only decreases"}
_SHOWN = 4


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
    return (
        str(feature.name),
        kind,
        moves,
        _span(feature),
        f"{feature.weight:g}",
        feature.notice,
    )


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
