"""Fairness: what sets the scores of one group apart from those of another.

A model never sees age, and still finds young applicants riskier. What would have to be different
about them for its scores to be distributed as those of the others? Age and sex stay. What has to
move is where the gap comes from, as the model sees it; whether it should count is for people.

    python examples/fairness.py [folder for the picture]
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
    """Fit, explain, print, draw."""
    data = ew.datasets.german_credit()
    texts = OneHotEncoder(), make_column_selector(dtype_exclude="number")
    model = make_pipeline(
        make_column_transformer(("drop", ["Age", "Sex"]), texts, remainder=StandardScaler()),
        LogisticRegression(),
    ).fit(data.frame, data.outcome)
    young = data.frame["Age"] <= 25
    scores = model.predict_proba(data.frame)[:, 1]

    explanation = ew.explain(
        model,
        data.frame[young],
        target=ew.targets.group(scores[~young]),
        schema=ew.Schema.infer(data.frame[young], data.frame).freeze("Age", "Sex"),
        background=data.frame,
        bounds=ew.Bounds(outputs=0.05),
    )

    print(f"{young.sum()} applicants of up to 25 years: mean risk {scores[young].mean():.3f}")
    print(f"{(~young).sum()} older applicants: mean risk {scores[~young].mean():.3f}")
    print(f"young applicants after the changes: {explanation.outputs.mean():.3f}")
    print(explanation.certificate)
    print(explanation.changes()[["rows_moved", "mean_before", "mean_after", "share"]].round(2))
    flows = explanation.flows()
    print(flows[(flows["from"] != "(kept)") & (flows["rows"] >= 5)].to_string(index=False))

    figure, axes = plt.subplots(1, 2, figsize=(11.0, 4.0), layout="constrained")
    ew.plots.outputs(explanation, axes[0], label="risk of a bad credit")
    ew.plots.changes(explanation, axes[1])
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "gallery-fairness.png", dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
