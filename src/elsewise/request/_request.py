"""The question as a record: the arguments of `elsewise.explain`, under a name."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from elsewise.features import Schema
from elsewise.request._bounds import Bounds
from elsewise.settings import Settings
from elsewise.targets import Mean, Share, Target


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Request:
    """One question: what `elsewise.explain` is asked, which describes each field.

    `explain`, `frontier`, the batch functions, the Dask path and `stability` all build this record,
    so that an argument has one name, one default and one check.

    Examples
    --------
    >>> import elsewise as ew
    >>> rows = pd.DataFrame({"x": [1.0, 2.0, 4.0]})
    >>> Request(model=lambda frame: frame["x"], rows=rows, target=ew.targets.shift(0.5)).certify
    'auto'
    """

    model: Any
    rows: pd.DataFrame
    target: Target | Share | Mean
    schema: Schema | None = None
    background: pd.DataFrame | None = None
    bounds: Bounds | None = None
    certify: str = "auto"
    population: str = "sample"
    seed: int = 0
    settings: Settings | None = None
    clusters: Any = None
    name: Hashable = ""
    """Its name among many; a tuple where it has several parts, as ("north", 2024)."""
