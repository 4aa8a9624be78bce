"""The exceptions of elsewise.

::

    ElsewiseError
    ├── InvalidInput (ValueError)      an argument was refused at the door
    ├── ModelError (RuntimeError)      the user's model raised or returned something unusable
    ├── NotFeasible (RuntimeError)     the limits could not be met (``raise_for_status``)
    ├── SavedRunError (RuntimeError)   a saved run is missing, damaged, of another version or model
    └── MissingExtra (ImportError)     an optional package is needed; the message has the command
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from numbers import Integral
from types import MappingProxyType, NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

_Record = TypeVar("_Record")


class ElsewiseError(Exception):
    """Base class of everything elsewise raises on purpose."""


class InvalidInput(ElsewiseError, ValueError):
    """An argument cannot be used as it is.

    Parameters
    ----------
    argument
        Name of the argument, as the caller wrote it.
    expected
        What would have been accepted.
    received
        What came instead.
    fix
        What the caller can do about it.

    Examples
    --------
    >>> raise InvalidInput("trim", expected="a number in [0, 0.5)", received="0.7", fix="try 0.05")
    Traceback (most recent call last):
    ...
    elsewise.errors.InvalidInput: trim: expected a number in [0, 0.5), received 0.7. Fix: try 0.05.
    """

    def __init__(self, argument: str, expected: str, received: object, fix: str) -> None:
        self.argument = argument
        self.expected = expected
        self.received = received
        self.fix = fix
        super().__init__(f"{argument}: expected {expected}, received {received}. Fix: {fix}.")

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are pickled by their message, which is not what this one is made from.
        text = {"expected": self.expected, "received": str(self.received), "fix": self.fix}
        return partial(type(self), self.argument, **text), ()


def bad_column(
    name: object, expected: str, received: object, fix: str, what: str = "column"
) -> InvalidInput:
    """Build the error for a column of a frame, or for something of it, such as its range."""
    return InvalidInput(f"{what} {name!r}", expected=expected, received=received, fix=fix)


def check_count(argument: str, value: Any, fix: str, least: int = 1) -> int:
    """Return a whole number as Python's int; refuse anything else, and less than ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InvalidInput(argument, f"a whole number >= {least}", repr(value), fix)
    return int(value)


class ModelError(ElsewiseError, RuntimeError):
    """The model under explanation raised, or returned something that is not its outputs."""


class NotFeasible(ElsewiseError, RuntimeError):
    """No counterfactual population met the limits; the message says what is reachable."""


class SavedRunError(ElsewiseError, RuntimeError):
    """A saved run cannot be loaded: missing, damaged, another version, or another model."""


class MissingExtra(ElsewiseError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(f"{package} is not installed. Fix: pip install 'elsewise[{extra}]'.")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.package, self.extra)


class Check(NamedTuple):
    """What the value of a field has to be beyond its type; None, where allowed, always passes."""

    holds: Callable[[Any], bool]
    expected: str
    fix: str | Callable[[Any], str] = "leave it out, or correct it"
    """What to do about a refused value."""


def share_fix(value: Any, otherwise: str) -> str:
    """Return what a refused share should have been: 95 stands for 0.95."""
    percent = isinstance(value, int | float) and 2 <= value <= 100
    return f"did you mean {value / 100:.4g}" if percent else otherwise


def check_fields(
    record: object, argument: str, checks: Mapping[str, Check] = MappingProxyType({})
) -> None:
    """Refuse fields of a frozen dataclass whose types or values are not as they should be.

    NumPy scalars become Python numbers and lists become tuples, so that every record can be saved.
    Called from ``__post_init__``, with the checks of values by the name of their field.
    """
    for name, kind in _hints(cast(Any, type(record))).items():
        given, place, check = getattr(record, name), f"{argument}.{name}", checks.get(name)
        try:
            value = checked(place, given, kind)
            fine = check is None or value is None or check.holds(value)
        except InvalidInput:
            if check is None:
                raise
            fine = False
        if check is not None and not fine:
            fix = check.fix if isinstance(check.fix, str) else check.fix(given)
            raise InvalidInput(place, expected=check.expected, received=repr(given), fix=fix)
        object.__setattr__(record, name, value)


def from_mapping(kind: type[_Record], content: Any, argument: str) -> _Record:
    """Return the dataclass with these fields, as read from JSON; refuse others and wrong types."""
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    if not isinstance(content, Mapping):
        raise _wrong(argument, f"an object with the fields {', '.join(known)}", content)
    if unknown := [name for name in content if name not in known]:
        raise _wrong(argument, f"fields among {', '.join(known)}", unknown[0])
    required = [f.name for f in known.values() if f.default is f.default_factory is MISSING]
    if lacking := [name for name in required if name not in content]:
        expected = f"a field {lacking[0]!r}"
        raise InvalidInput(argument, expected=expected, received="none", fix="add it")
    hints = _hints(cast(Any, kind))
    values = {name: checked(f"{argument}.{name}", v, hints[name]) for name, v in content.items()}
    return kind(**values)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def checked(argument: str, value: Any, kind: Any) -> Any:
    """Return a value, as read from JSON, as ``kind``: a class, a union, a tuple; or refuse it."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    if get_origin(kind) in (Union, UnionType):
        for option in get_args(kind):
            try:
                return checked(argument, value, option)
            except InvalidInput as error:
                # A record of the right kind with one wrong field: say which field.
                if error.argument != argument:
                    raise
    elif get_origin(kind) in (tuple, Sequence) or hasattr(kind, "_fields"):
        parts = get_args(kind) or tuple(get_type_hints(kind).values())
        if isinstance(value, tuple | list):
            if get_origin(kind) is Sequence or parts[-1] is Ellipsis:
                parts = parts[:1] * len(value)
            if len(value) == len(parts):
                found = tuple(map(checked, [argument] * len(parts), value, parts))
                return kind._make(found) if hasattr(kind, "_make") else found
    elif get_origin(kind) is dict:
        if isinstance(value, dict):
            return value
    elif kind in (Any, Hashable):
        return value
    elif kind in (int, float):
        if isinstance(value, int | kind) and not isinstance(value, bool):
            if kind is int or isinstance(value, float) or abs(value) < 2**63:
                return value
            if abs(value) <= sys.float_info.max:
                return float(value)  # NumPy has no whole numbers of this size
    elif isinstance(kind, type) and issubclass(kind, Enum) and not isinstance(value, kind):
        if value in [member.value for member in kind]:
            return kind(value)
    elif is_dataclass(kind) and isinstance(value, Mapping):
        return from_mapping(cast(Any, kind), value, argument)
    elif getattr(kind, "_is_protocol", False):
        if all(hasattr(value, name) for name in kind.__dict__ if not name.startswith("_")):
            return value
    elif isinstance(value, kind):
        return value
    raise _wrong(argument, _in_words(kind), value)


_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "True or False"}


def _in_words(kind: Any) -> str:
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(map(_in_words, get_args(kind)))
    if get_origin(kind) in (dict, tuple):
        return "a table" if get_origin(kind) is dict else "a list"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "one of " + ", ".join(repr(member.value) for member in kind)
    return "None" if kind is NoneType else _WORDS.get(kind, getattr(kind, "__name__", str(kind)))


def _wrong(argument: str, expected: str, received: object) -> InvalidInput:
    shown, fix = repr(received), "leave it out, or correct it"
    shown = shown if len(shown) <= 80 else f"{shown[:79]}…"
    return InvalidInput(argument, expected=expected, received=shown, fix=fix)
