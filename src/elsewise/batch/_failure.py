"""What is left of an explanation that failed."""

from __future__ import annotations

import traceback
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a request has no explanation; text, because not every exception can travel."""

    error: str
    """Kind and message of the exception."""
    traceback: str
    """Where it was raised."""


def failure(error: Exception) -> Failure:
    """Return an exception as text.

    Examples
    --------
    >>> failure(ZeroDivisionError("no luck")).error
    'ZeroDivisionError: no luck'
    """
    text = "".join(traceback.format_exception(error))
    return Failure(error=f"{type(error).__name__}: {error}", traceback=text)
