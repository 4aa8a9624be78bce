"""The question as a record: the arguments of `elsewise.explain`, under a name."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from elsewise.features import Schema, Source, to_pandas
from elsewise.request._bounds import Bounds
from elsewise.settings import Settings
from elsewise.targets import Share, Target


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Request:
    """One question: what `elsewise.explain` is asked, which describes each field.

    `explain`, `frontier`, the batch functions, the Dask path and `stability` all build this record,
    so that an argument has one name, one default and one check.

    Examples
    --------
    >>> import pandas as pd
    >>> import elsewise as ew
    >>> rows = pd.DataFrame({"x": [1.0, 2.0, 4.0]})
    >>> Request(model=lambda frame: frame["x"], rows=rows, target=ew.targets.shift(0.5)).certify
    'auto'
    """

    model: Any
    rows: Any
    target: Target | Share
    schema: Schema | None = None
    background: Any = None
    bounds: Bounds | None = None
    certify: str = "auto"
    population: str = "sample"
    seed: int = 0
    settings: Settings | None = None
    clusters: Any = None
    name: Hashable = ""
    """Its name among many; a tuple where it has several parts, as ("north", 2024)."""
    source: Source | None = None
    """The kind of frame the rows came in; they are kept as pandas has them."""

    def __post_init__(self) -> None:
        names = self.schema.names if isinstance(self.schema, Schema) else None
        rows, source = to_pandas(self.rows, "rows", names)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "background", to_pandas(self.background, "background", names)[0])
        if source is not None:
            object.__setattr__(self, "source", source)
