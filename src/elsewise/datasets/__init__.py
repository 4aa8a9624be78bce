"""German Credit: a frame with its outcome, schema, source, licence and known harms.

It travels with the package, for the examples and for trying things out: reduced to nine attributes,
derived by ``scripts/derive_german_credit.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

import numpy as np
import pandas as pd

from elsewise.features import Schema

__all__ = ["Dataset", "german_credit"]

SOURCE = (
    "Statlog (German Credit Data), H. Hofmann (1994), UCI Machine Learning Repository, "
    "doi 10.24432/C5NC77, CC BY 4.0; changes: reduced to nine attributes and the outcome, codes "
    "replaced by readable levels, new and used cars joined, retraining joined to education, "
    "unknown savings and absent checking accounts written as missing."
)

WARNING = (
    "For methods, not for decisions about people. Sex and Age are protected attributes in most "
    "laws on lending, and the outcome is one bank's record of credits it chose to grant: a model "
    "of it repeats that choice. The credits date from 1973 to 1975 in southern Germany, and bad "
    "ones were heavily oversampled (300 of 1000). The published codebook is wrong in places "
    "(U. Groemping, South German Credit Data: Correcting a Widely Used Data Set, Beuth University "
    "of Applied Sciences Berlin, Report 4/2019); this table keeps its level names, to stay "
    "comparable with published work. Sex cannot be known: a code read as female also holds single "
    "men, one read as male holds single women. Saving accounts: little stands for none or unknown, "
    "missing for the largest. Checking account: little stands for none, missing for 200 DM and "
    "more. Housing: rent stands for free, own for rent, free for own. The foreign worker "
    "attribute, reversed in the codebook, is not included."
)


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


def german_credit() -> Dataset:
    """Return German Credit: 1000 credits, nine attributes, outcome ``Risk`` (bad = 1).

    Texts are text columns, the rest is int64; cells of unknown savings and of no checking account
    are missing. Every call returns a new frame.

    Returns
    -------
    Dataset
        ``frame`` (1000, 9), ``outcome`` (1000,); read ``warning`` before drawing conclusions.

    References
    ----------
    H. Hofmann, Statlog (German Credit Data), UCI Machine Learning Repository, 1994.

    Examples
    --------
    >>> data = german_credit()
    >>> data
    <Dataset German Credit: 1000 rows x 9 columns, outcome Risk>
    >>> data.frame["Purpose"].value_counts().head(2).to_dict()
    {'car': 337, 'radio/TV': 280}
    >>> data.outcome.mean()
    np.float64(0.3)
    """
    with files("elsewise.datasets").joinpath("german_credit.csv").open(encoding="ascii") as file:
        frame = pd.read_csv(file, keep_default_na=False, na_values=[""])
    outcome = (frame.pop("Risk") == "bad").astype(np.int64)
    return Dataset(
        name="German Credit",
        frame=frame,
        outcome=outcome,
        source=SOURCE,
        licence="CC BY 4.0",
        warning=WARNING,
    )
