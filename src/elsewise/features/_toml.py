"""Schemas as TOML that people can edit: one line a column, read strictly."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields
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


# The words of a file that are not the names of a feature's fields.
RENAMED = {one.metadata["word"]: one.name for one in fields(Feature) if one.metadata}
SIGNS = {None: 0, Only.INCREASE: 1, Only.DECREASE: -1}
# What a line may leave to the rows it is used with.
MEASURED = ("levels", "ordered", "observed", "center", "scale")
# Words about cells, which may be of types that TOML has not. Numbers need no point anywhere else.
CELLS = ("name", "levels", "allowed")


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


FIELDS = {line.name: RENAMED.get(line.name, line.name) for line in fields(_Line)}
"""The field of a feature that each word of a line says."""


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
    usual = _feature_rules.USUAL | {"name": key, "free": feature.can_move}
    # The moments of numbers are always said, the ends of categories follow from their levels.
    amount = feature.kind.amount
    usual |= {"center": None, "scale": None} if amount else {"observed": feature.observed}
    values = {word: getattr(feature, name) for word, name in FIELDS.items()}
    return {
        word: _written(word, value)
        for word, value in values.items()
        if value != usual[FIELDS[word]] and not callable(value)
    }


def _written(word: str, value: Any) -> Any:
    if word == "only":
        return (Only.INCREASE if value > 0 else Only.DECREASE).value
    if word in CELLS:
        return _json.pack(value) if word == "name" else [*map(_json.pack, value)]
    if isinstance(value, tuple):
        return [*map(_short, value)]
    return _short(value) if isinstance(value, float) else value


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
    found = {field: _read(place, word, getattr(line, word)) for word, field in FIELDS.items()}
    found |= {"name": key if line.name is None else found["name"], "direction": SIGNS[line.only]}
    if inferred is not None:
        if found["name"] not in inferred:
            raise _wrong(place, "a column of the rows", "one they do not have")
        _complete(place, found, inferred[found["name"]])
    found |= {"levels": found["levels"] or (), "ordered": bool(found["ordered"])}
    if not line.kind.amount:
        ends = (0.0, max(len(found["levels"]) - 1.0, 0.0))
        found |= {"observed": ends, "center": 0.0, "scale": 1.0}
    elif any(found[field] is None for field in ("observed", "center", "scale")):
        raise _wrong(place, "seen, mean and deviation of its cells", "a line without them")
    elif found["levels"] or found["ordered"]:
        raise _wrong(place, "no levels in a column of numbers", "some")
    if line.free is None:
        found["free"] = Feature(**found).can_move
    return _feature_rules.checked(Feature(**found))


def _complete(place: str, found: dict[str, Any], known: Feature) -> None:
    """Fill in, in place, what a line leaves to the rows it is used with."""
    kind = found["kind"]
    if kind is not known.kind and not (kind.amount and known.kind.amount):
        raise _wrong(f"{place}.kind", f"{known.kind.value!r}, as the rows have it", repr(kind))
    if known.notice == RARE and found["levels"] is found["allowed"] is None:
        found |= {"allowed": known.allowed, "notice": RARE}
    if known.kind is kind and found["observed"] is found["resolution"] is None:
        found["resolution"] = known.resolution
    found |= {field: getattr(known, field) for field in MEASURED if found[field] is None}


def _read(place: str, word: str, value: Any) -> Any:
    """Return cells as they are, numbers and pairs of numbers as floats."""
    if word not in CELLS:
        if isinstance(value, tuple):
            return tuple(map(float, value))
        return float(value) if type(value) is int else value
    # Tables such as { date = "2024-01-02" } stand for cells of other types.
    try:
        return tuple(map(_json.unpack, value)) if type(value) is tuple else _json.unpack(value)
    except Exception as error:  # whatever the file says of the type of a cell
        raise _wrong(place, "cells as elsewise schema writes them", str(error)) from error


def _wrong(argument: str, expected: str, received: str) -> InvalidInput:
    return InvalidInput(argument, expected=expected, received=received, fix=FIX)


def _key(name: str) -> str:
    plain = name.isascii() and name.replace("_", "a").replace("-", "a").isalnum()
    return name if plain else _text(name)


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
