"""What every loader returns."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from elsewise.features import Schema


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Dataset:
    """A table, what happened to its rows, and what to know before using it."""

    name: str
    """Name of the dataset."""
    frame: pd.DataFrame
    """Attributes (n, p): what a model may see."""
    outcome: pd.Series
    """Outcome (n,) of 0 and 1, named after the column it was read from."""
    source: str
    """Attribution: who made the data, where it is published, what was changed."""
    licence: str
    """Licence of the data."""
    warning: str
    """Known harms and errors."""

    @property
    def schema(self) -> Schema:
        """Schema inferred from the frame."""
        return Schema.infer(self.frame)

    def __repr__(self) -> str:
        rows, columns = self.frame.shape
        return (
            f"<Dataset {self.name}: {rows} rows x {columns} columns, outcome {self.outcome.name}>"
        )
