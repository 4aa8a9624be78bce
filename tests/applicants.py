"""Applicants and a score that every method under comparison is asked about."""

from __future__ import annotations

import numpy as np
import pandas as pd

__all__ = ["applicants", "refused_of", "score"]

WEIGHTS = {"income": 0.08, "debt": -0.05, "jobs": 0.06, "own": 0.25}


def score(frame: pd.DataFrame) -> pd.Series:
    """A risk score in [0, 1]: richer, less indebted and better housed is better."""
    linear = sum(weight * frame[name].astype(float) for name, weight in WEIGHTS.items())
    linear = linear + 0.3 * (frame["town"] == "north") - 0.02 * frame["age"].fillna(40.0)
    return 1.0 / (1.0 + np.exp(-4.0 * (linear - 0.2)))


def applicants() -> pd.DataFrame:
    """Return 400 rows with numbers, whole numbers, a category, a one-hot group, missing cells."""
    rng = np.random.default_rng(0)
    own = rng.integers(0, 2, 400)
    return pd.DataFrame(
        {
            "income": rng.normal(10.0, 4.0, 400),
            "debt": rng.normal(6.0, 3.0, 400),
            "jobs": rng.integers(0, 6, 400),
            "town": rng.choice(["north", "south", "west"], 400),
            "own": own,
            "rent": 1 - own,
            "age": np.where(rng.random(400) < 0.1, np.nan, rng.integers(18, 70, 400)),
        }
    )


def refused_of(background: pd.DataFrame) -> pd.DataFrame:
    """Return the first 60 rows whose score is below one half."""
    rows = background[score(background) < 0.5].head(60)
    return rows.set_index(pd.Index([f"row {i}" for i in range(len(rows))]))
