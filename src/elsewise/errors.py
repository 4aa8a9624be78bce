"""The exceptions of elsewise.

::

    ElsewiseError
    ├── InvalidInput (ValueError)      an argument was refused at the door
    ├── ModelError (RuntimeError)      the user's model raised or returned something unusable
    ├── NotFeasible (RuntimeError)     the limits could not be met (``raise_for_status``)
    ├── SavedRunError (RuntimeError)   a saved run is missing, damaged, of another version or model
    ├── DataError (RuntimeError)       a dataset's file cannot be had, or is not the pinned one
    └── MissingExtra (ImportError)     an optional package is needed; the message has the command
"""

from __future__ import annotations

from functools import partial
from typing import Any

__all__ = [
    "DataError",
    "ElsewiseError",
    "InvalidInput",
    "MissingExtra",
    "ModelError",
    "NotFeasible",
    "SavedRunError",
]


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

    def __init__(self, argument: str, *, expected: str, received: object, fix: str) -> None:
        self.argument = argument
        self.expected = expected
        self.received = received
        self.fix = fix
        super().__init__(f"{argument}: expected {expected}, received {received}. Fix: {fix}.")

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are pickled by their message, which is not what this one is made from.
        return partial(
            type(self),
            self.argument,
            expected=self.expected,
            received=str(self.received),
            fix=self.fix,
        ), ()


class ModelError(ElsewiseError, RuntimeError):
    """The model under explanation raised, or returned something that is not its outputs."""


class NotFeasible(ElsewiseError, RuntimeError):
    """No counterfactual population met the limits; the message says what is reachable."""


class SavedRunError(ElsewiseError, RuntimeError):
    """A saved run cannot be loaded: missing, damaged, another version, or another model."""


class DataError(ElsewiseError, RuntimeError):
    """The file behind a dataset cannot be had, or its bytes are not the pinned ones."""


class MissingExtra(ElsewiseError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(f"{package} is not installed. Fix: pip install 'elsewise[{extra}]'.")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.package, self.extra)
