"""Drift: scores moved between two periods; which input did it.

Two random halves of German Credit stand for January and October; in October half of the unknown
checking accounts are entered as "little", and nothing else changed. `ew.difference` says so, with
intervals. Bringing January to October's scores with `ew.explain` names the cheapest changes
instead, which is another question.

    python examples/drift.py [folder for the picture]
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import elsewise as ew

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def main(folder: Path) -> None:
    """Fit, let October drift, compare, explain, print, draw."""
    data = ew.datasets.german_credit()
    texts = OneHotEncoder(), make_column_selector(dtype_exclude="number")
    model = make_pipeline(
        make_column_transformer(texts, remainder=StandardScaler()), LogisticRegression()
    ).fit(data.frame, data.outcome)
    january = data.frame.sample(n=500, random_state=0)
    october = data.frame.drop(january.index)
    unknown = october.index[october["Checking account"].isna()]
    october.loc[unknown[::2], "Checking account"] = "little"

    drift = ew.difference(model, january, october, progress=False)
    print(drift)

    explanation = ew.explain(
        model,
        january,
        target=ew.targets.group(model.predict_proba(october)[:, 1]),
        bounds=ew.Bounds(outputs=0.05),
        progress=False,
    )
    print(explanation.changes()[["rows_moved", "mean_before", "mean_after", "share"]].round(2))

    figure, ax = plt.subplots(figsize=(7.0, 3.8), layout="constrained")
    drift.plot(ax)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "gallery-drift.png", dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
