"""One explanation to be made, and what is left of one that failed."""

from __future__ import annotations

import traceback
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from elsewise._explain import explain
from elsewise.explanation import Explanation
from elsewise.features import Schema
from elsewise.request import Bounds
from elsewise.settings import Settings
from elsewise.targets import Share, Target

__all__ = ["Failure", "Task", "failure"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Task:
    """One explanation to be made: the arguments of `elsewise.explain`, under a name."""

    name: Hashable
    """Name of the explanation; a tuple where it has several parts, as ("north", 2024)."""
    model: Any
    rows: pd.DataFrame
    target: Target | Share
    schema: Schema | None = None
    background: pd.DataFrame | None = None
    bounds: Bounds | None = None
    certify: str = "auto"
    population: str = "sample"
    seed: int = 0
    settings: Settings | None = None

    def run(self) -> Explanation:
        """Make the explanation, here and now."""
        return explain(
            self.model,
            self.rows,
            target=self.target,
            schema=self.schema,
            background=self.background,
            bounds=self.bounds,
            certify=self.certify,
            population=self.population,
            seed=self.seed,
            settings=self.settings,
            progress=False,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a task has no explanation; text, because not every exception can travel."""

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
