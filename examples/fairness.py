"""Fairness: what sets the scores of one group apart from those of another.

A model never sees age or sex, and still finds young applicants riskier. `ew.difference` matches
young with older applicants and says which inputs the gap goes through. `ew.explain` with
`targets.group` answers another question: the least that would have to change about the young for
the gap to close, which need not be what opened it.

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
    """Fit, compare, explain, print, draw."""
    data = ew.datasets.german_credit()
    rows = data.frame.drop(columns=["Age", "Sex"])
    texts = OneHotEncoder(), make_column_selector(dtype_exclude="number")
    model = make_pipeline(
        make_column_transformer(texts, remainder=StandardScaler()), LogisticRegression()
    ).fit(rows, data.outcome)
    young = data.frame["Age"] <= 25
    scores = model.predict_proba(rows)[:, 1]
    print(f"{young.sum()} applicants of up to 25 years: mean risk {scores[young].mean():.3f}")
    print(f"{(~young).sum()} older applicants: mean risk {scores[~young].mean():.3f}")

    gap = ew.difference(model, rows[~young], rows[young], progress=False)
    print(gap)

    explanation = ew.explain(
        model,
        rows[young],
        target=ew.targets.group(scores[~young]),
        background=rows,
        bounds=ew.Bounds(outputs=0.05),
    )
    print(f"young applicants after the least changes: {explanation.outputs.mean():.3f}")
    print(explanation.changes()[["rows_moved", "mean_before", "mean_after", "share"]].round(2))

    figure, axes = plt.subplots(1, 2, figsize=(11.0, 4.0), layout="constrained")
    gap.plot(axes[0])
    ew.plots.changes(explanation, axes[1])
    axes[0].set_title("Why the scores differ: older to young", loc="left")
    axes[1].set_title("What would bring them together", loc="left")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "gallery-fairness.png", dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
