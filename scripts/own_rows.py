"""Rows and a model as somebody brings them: text, whole numbers, missing cells, codes.

    python scripts/own_rows.py FOLDER

writes ``rows.csv`` and ``model.joblib``, for the five commands of the README.
"""

from __future__ import annotations

import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


def write(folder: Path) -> None:
    """Write both files."""
    rng, size = np.random.default_rng(3), 400
    rows = pd.DataFrame(
        {
            "age": rng.integers(19, 75, size),
            "income": rng.normal(30, 9, size).round(1),
            "debt": rng.integers(0, 40, size),
            "home": rng.choice(["own", "rent"], size),
            "branch": [f"00{k % 4}" for k in range(size)],
        }
    )
    rows.loc[::9, "home"] = None
    rows.to_csv(folder / "rows.csv", index=False)
    texts = OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")
    prepare = make_column_transformer(texts, remainder=StandardScaler())
    late = rows["debt"] - rows["income"] + rng.normal(0, 6, size) > -8
    model = make_pipeline(prepare, LogisticRegression()).fit(rows, late)
    joblib.dump(model, folder / "model.joblib")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
