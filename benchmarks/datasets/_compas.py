"""COMPAS, ProPublica's records of defendants in Broward County."""

from __future__ import annotations

import numpy as np
import pandas as pd
from benchmarks.datasets._files import Pinned, fetch

from elsewise.datasets import Dataset

FILE = Pinned(
    place="compas/compas-scores-two-years.csv",
    address=(
        "https://raw.githubusercontent.com/propublica/compas-analysis/"
        "bafff5da3f2e45eca6c2d5055faad269defd135a/compas-scores-two-years.csv"
    ),
    sha256="c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
)

KEPT = ["sex", "age_cat", "race", "c_charge_degree", "priors_count"]
FILTERS = ["days_b_screening_arrest", "is_recid", "score_text"]
OUTCOME = "two_year_recid"
JAIL = ["c_jail_in", "c_jail_out"]
CLOSE = 30
"""Days between arrest and screening beyond which the offence may not be the one scored."""

SOURCE = (
    "J. Larson, S. Mattu, L. Kirchner, J. Angwin, How We Analyzed the COMPAS Recidivism Algorithm, "
    "ProPublica (2016), compas-scores-two-years.csv; changes: their filters, five attributes, "
    "time_served in days computed from the jail dates, Status = 1 - two_year_recid. Names, birth "
    "dates, case numbers and every other column are never read."
)

WARNING = (
    "For methods, not for decisions about people. The rows are real defendants, identifiable in "
    "the published file. The outcome is a recorded new arrest within two years, not an offence: "
    "policing differs by race and place, and a model of it repeats that. Race, sex and age are "
    "protected attributes; changing them on paper is no advice to anyone. The published table "
    "kept recidivists beyond the two-year window more often than others, so that the base rate "
    "(45.5 %) is too high (M. Barenstein, ProPublica's COMPAS Data Revisited, 2019)."
)


def compas() -> Dataset:
    """Return COMPAS: 6172 defendants, six attributes, outcome ``Status`` (no new arrest = 1).

    Four text columns and two of int64; rows are in their published order. Every call returns a
    new frame.

    Returns
    -------
    Dataset
        ``frame`` (6172, 6), ``outcome`` (6172,); read ``warning`` before drawing conclusions.

    References
    ----------
    J. Angwin, J. Larson, S. Mattu, L. Kirchner, Machine Bias, ProPublica, 2016.

    Examples
    --------
    >>> compas()  # doctest: +SKIP
    <Dataset COMPAS: 6172 rows x 6 columns, outcome Status>
    """
    # Only these columns are ever in memory: names and birth dates stay in the file.
    table = pd.read_csv(fetch(FILE), usecols=[*KEPT, *FILTERS, OUTCOME, *JAIL], parse_dates=JAIL)
    table = table[
        table["days_b_screening_arrest"].abs().le(CLOSE)
        & table["is_recid"].ne(-1)
        & table["c_charge_degree"].ne("O")
        & table["score_text"].notna()
    ].reset_index(drop=True)
    frame = table[KEPT].copy()
    frame["time_served"] = (table["c_jail_out"] - table["c_jail_in"]).dt.days.clip(lower=0)
    return Dataset(
        name="COMPAS",
        frame=frame,
        outcome=(1 - table[OUTCOME]).astype(np.int64).rename("Status"),
        source=SOURCE,
        licence="none found: not to be passed on",
        warning=WARNING,
    )
