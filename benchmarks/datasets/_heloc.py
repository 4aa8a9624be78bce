"""HELOC, FICO's home equity lines of credit."""

from __future__ import annotations

import numpy as np
import pandas as pd
from benchmarks.datasets._files import Pinned, fetch

from elsewise.datasets import Dataset

FILE = Pinned(
    place="heloc/heloc_dataset_v1.csv",
    address=(
        "https://raw.githubusercontent.com/danwley/GLOBE-CE/"
        "bd32b84e4c2d1c6d84f852ba13aff099a4b67382/datasets/heloc.data"
    ),
    sha256="e5a914f742ad7f8472c5417902ec06b321ebc5de1d68ec13f136d62c87a7fbf3",
)

SOURCE = (
    "FICO Explainable Machine Learning Challenge (2018), home equity lines of credit; changes: the "
    "588 rows without a single known value are left out, the codes for 'no information' (negative "
    "values) are written as missing."
)

WARNING = (
    "For methods, not for decisions about people. The applicants are anonymous and already had a "
    "file at a credit bureau; nothing is known of how they were chosen, so nothing here speaks of "
    "borrowers in general. ExternalRiskEstimate is another, undisclosed score: a model of this "
    "table mostly repeats it. Negative values were codes for no record, no usable trades or no "
    "inquiry, and why a value is missing says something about the person. No protected attribute "
    "is included, so unequal treatment cannot be seen, which does not make it absent."
)


def heloc() -> Dataset:
    """Return HELOC: 9871 applicants, 23 numbers, outcome ``RiskPerformance`` (Good = 1).

    Columns are float64, all of whole numbers, with missing cells; rows are in their published
    order. Every call returns a new frame.

    Returns
    -------
    Dataset
        ``frame`` (9871, 23), ``outcome`` (9871,); read ``warning`` before drawing conclusions.

    References
    ----------
    S. Holter, O. Gomez, E. Bertini, FICO Explainable Machine Learning Challenge, 2018.

    Examples
    --------
    >>> heloc()  # doctest: +SKIP
    <Dataset HELOC: 9871 rows x 23 columns, outcome RiskPerformance>
    """
    table = pd.read_csv(fetch(FILE))
    outcome = (table.pop("RiskPerformance") == "Good").astype(np.int64)
    frame = table.astype(np.float64).where(table >= 0)
    known = frame.notna().any(axis=1)
    return Dataset(
        name="HELOC",
        frame=frame[known].reset_index(drop=True),
        outcome=outcome[known].reset_index(drop=True),
        source=SOURCE,
        licence="none found: not to be passed on",
        warning=WARNING,
    )
