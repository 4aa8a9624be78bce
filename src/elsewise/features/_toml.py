"""Schemas as TOML that people can edit: one line a column, read strictly."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from elsewise.errors import InvalidInput, from_mapping
from elsewise.features import _feature_rules, _json
from elsewise.features._feature import RARE, Feature, Kind

FORMAT = 1
HEAD = "# What each column is and how it may move: see docs/your-model-your-rules.md\n"
FIX = "correct the file, or write it anew with elsewise schema"


class Only(StrEnum):
    """The one direction in which a column moves."""

    INCREASE = "increase"
    DECREASE = "decrease"


SIGNS = {None: 0, Only.INCREASE: 1, Only.DECREASE: -1}
# What a line may leave to the rows it is used with, and the field of a feature that says it.
MEASURED = {
    "levels": "levels",
    "ordered": "ordered",
    "seen": "observed",
    "mean": "center",
    "deviation": "scale",
}
AMOUNTS = (Kind.NUMBER, Kind.INTEGER)


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """The whole file, under the names it uses."""

    format: int
    columns: dict[str, Any]
    joint: bool = False
    functions: tuple[str, ...] = ()
    """Names of rules and derived columns that are functions, which no file can hold."""
    rules: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One line of the file: a `Feature` in the words that people edit."""

    kind: Kind
    name: Any = None
    """The column's name where it is no text; otherwise the key is the name."""
    free: bool | None = None
    only: Only | None = None
    range: tuple[float, float] | None = None
    resolution: float | None = None
    at_most_by: float | None = None
    allowed: tuple[Any, ...] | None = None
    weight: float = 1.0
    cost: float | None = None
    group: str | None = None
    derived: str | None = None
    levels: tuple[Any, ...] | None = None
    ordered: bool | None = None
    seen: tuple[float, float] | None = None
    mean: float | None = None
    deviation: float | None = None
    notice: str = ""


def write(
    features: Iterable[Feature], joint: bool, rules: Mapping[str, str], functions: list[str]
) -> str:
    """Return the file of a schema.

    Examples
    --------
    >>> age = Feature(name="age", kind=Kind.INTEGER, free=True, observed=(18.0, 75.0), direction=1)
    >>> print(write([age], False, {"of age": "age >= 18"}, []))
    # What each column is and how it may move: see docs/your-model-your-rules.md
    format = 1
    <BLANKLINE>
    [rules]
    "of age" = "age >= 18"
    <BLANKLINE>
    [columns]
    age = { kind = "integer", only = "increase", seen = [18, 75], mean = 0, deviation = 1 }
    <BLANKLINE>
    """
    lines = [f"{HEAD}format = {FORMAT}"]
    lines += ["joint = true"] if joint else []
    lines += [f"functions = {_value(functions)}"] if functions else []
    if rules:
        lines += ["", "[rules]"]
        lines += [f"{_key(name)} = {_value(text)}" for name, text in rules.items()]
    # Columns come last: a file that was cut short lacks some, which is noticed.
    lines += ["", "[columns]"]
    taken: set[str] = set()
    for feature in features:
        key = str(feature.name)
        while key in taken:  # 1 and "1" are two columns, but one key
            key += "'"
        taken.add(key)
        lines.append(f"{_key(key)} = {_value(_entries(feature, key))}")
    return "\n".join([*lines, ""])


def _entries(feature: Feature, key: str) -> dict[str, Any]:
    """Return what the line of a feature says: nothing that its reader takes for granted."""
    measured: dict[str, Any] = {"levels": _cells(feature.levels)} if feature.levels else {}
    if feature.kind in AMOUNTS:
        ends, mean, deviation = feature.observed, feature.center, feature.scale
        measured = {"seen": [*map(_short, ends)], "mean": _short(mean)}
        measured["deviation"] = _short(deviation)
    said = {
        "name": None if feature.name == key else _json.pack(feature.name),
        "kind": feature.kind.value,
        "free": None if feature.free == feature.can_move else feature.free,
        "only": {1: "increase", -1: "decrease"}.get(feature.direction),
        "range": None if feature.declared is None else [*map(_short, feature.declared)],
        "resolution": None if feature.resolution is None else _short(feature.resolution),
        "at_most_by": None if feature.at_most_by is None else _short(feature.at_most_by),
        "allowed": None if feature.allowed is None else _cells(feature.allowed),
        "weight": None if feature.weight == 1.0 else _short(feature.weight),
        "cost": None if feature.cost is None else _short(feature.cost),
        "group": feature.group,
        "derived": feature.derived if isinstance(feature.derived, str) else None,
        **measured,
        "ordered": True if feature.ordered else None,
        "notice": feature.notice or None,
    }
    return {name: value for name, value in said.items() if value is not None}


def read(
    text: str, inferred: Mapping[Hashable, Feature] | None = None
) -> tuple[tuple[Feature, ...], bool, dict[str, str], tuple[str, ...]]:
    """Return the features, whether distances see frozen ones, the rules, and what is missing.

    Parameters
    ----------
    text
        What `write` wrote, edited by hand or written by hand.
    inferred
        The features of a frame: what lines leave out about the cells (seen, mean, deviation,
        levels, ordered) is theirs.
    """
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError, TypeError) as error:
        raise _wrong("text", "a schema file (TOML)", str(error)) from error
    file = from_mapping(_File, content, "schema file")
    if file.format != FORMAT:
        raise _wrong("schema file.format", str(FORMAT), str(file.format))
    for name, rule in file.rules.items():
        if not isinstance(rule, str):
            raise _wrong(f"rule {name!r}", "a condition as text, such as 'a <= 2 * b'", repr(rule))
    features = tuple(_feature(key, line, inferred) for key, line in file.columns.items())
    names = [feature.name for feature in features]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise _wrong("schema file", "one line per column", f"two for {twice!r}")
    if lacking := [name for name in inferred or () if name not in names]:
        raise _wrong("schema file", "a line for every column", f"none for {lacking[0]!r}")
    return features, file.joint, file.rules, file.functions


def _feature(key: str, content: Any, inferred: Mapping[Hashable, Feature] | None) -> Feature:
    place = f"column {key!r}"
    line = from_mapping(_Line, content, place)
    name = key if line.name is None else _unpacked(place, line.name)
    if inferred is not None and name not in inferred:
        raise _wrong(place, "a column of the rows", "one they do not have")
    cells = _measured(place, line, None if inferred is None else inferred[name])
    fields: dict[str, Any] = {
        "name": name,
        "kind": line.kind,
        "declared": _floats(line.range),
        "at_most_by": line.at_most_by,
        "weight": float(line.weight),
        "cost": None if line.cost is None else float(line.cost),
        "allowed": _unpacked(place, line.allowed),
        "direction": SIGNS[line.only],
        "group": line.group,
        "derived": line.derived,
        "notice": line.notice,
        **cells,
    }
    known = None if inferred is None else inferred[name]
    if known and known.notice == RARE and line.levels is None and line.allowed is None:
        fields |= {"allowed": known.allowed, "notice": RARE}
    free = Feature(free=False, **fields).can_move if line.free is None else line.free
    return _feature_rules.checked(Feature(free=free, **fields))


def _measured(place: str, line: _Line, known: Feature | None) -> dict[str, Any]:
    """Return what is known of the cells: from the line, or else from the rows."""
    amount = line.kind in AMOUNTS
    if known is not None and (known.kind in AMOUNTS, known.kind is Kind.FIXED) != (
        amount,
        line.kind is Kind.FIXED,
    ):
        raise _wrong(f"{place}.kind", f"{known.kind.value!r}, as the rows have it", repr(line.kind))
    found = {field: _unpacked(place, getattr(line, said)) for said, field in MEASURED.items()}
    if known is not None:
        found = {f: getattr(known, f) if cell is None else cell for f, cell in found.items()}
    if not amount:
        levels = found["levels"] or ()
        last = max(len(levels) - 1.0, 0.0)
        return {"levels": levels, "ordered": bool(found["ordered"]), "observed": (0.0, last)}
    if any(found[field] is None for field in ("observed", "center", "scale")):
        raise _wrong(place, "seen, mean and deviation of its cells", "a line without them")
    if found["levels"] or found["ordered"]:
        raise _wrong(place, "no levels in a column of numbers", "some")
    center, scale = float(found["center"]), float(found["scale"])
    step = line.resolution
    if known is not None and known.kind is line.kind and line.seen is None and step is None:
        step = known.resolution
    observed = _floats(found["observed"])
    return {"observed": observed, "center": center, "scale": scale, "resolution": step}


def _floats(ends: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if ends is None else (float(ends[0]), float(ends[1]))


def _unpacked(place: str, value: Any) -> Any:
    """Return cells as they are: tables such as { date = "2024-01-02" } stand for other types."""
    try:
        return tuple(map(_json.unpack, value)) if type(value) is tuple else _json.unpack(value)
    except Exception as error:  # whatever the file says of the type of a cell
        raise _wrong(place, "cells as elsewise schema writes them", str(error)) from error


def _wrong(argument: str, expected: str, received: str) -> InvalidInput:
    return InvalidInput(argument, expected=expected, received=received, fix=FIX)


def _key(name: str) -> str:
    plain = name.isascii() and name.replace("_", "a").replace("-", "a").isalnum()
    return name if plain else _text(name)


def _cells(values: Iterable[Any]) -> list[Any]:
    return [_json.pack(value) for value in values]


def _short(value: float) -> float | int:
    """Return a whole number without its point, as in ``seen = [4, 72]``."""
    return int(value) if abs(value) < 1e15 and value == int(value) else value


def _value(value: Any) -> str:
    """Return a value as TOML, on one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(name)} = {_value(v)}' for name, v in value.items())} }}"
    return repr(value)


def _text(text: str) -> str:
    # TOML's escapes are those of JSON, and it has one more control character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
