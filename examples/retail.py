"""Retail: which discounts and recommendations would bring spending to another pattern.

The question of the paper's first figure, on made-up customers: a model predicts what each will
spend; a shop asks how the discounts it gives and the products it recommends would have to be
distributed for the predictions to follow a pattern it can plan with. What customers are, stays.

    python examples/retail.py [folder for the picture]
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import stats
from sklearn.ensemble import HistGradientBoostingRegressor

import elsewise as ew

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def customers(size: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw customers and what they spend, in euros."""
    years = rng.gamma(2.0, 2.0, size).round(1)
    frame = pd.DataFrame(
        {
            "years": years,
            "discount": np.clip(rng.normal(14.0 - years, 5.0), 0.0, 40.0).round(1),
            "recommendations": rng.poisson(3.0 + 0.4 * years),
        }
    )
    taste = 8.0 * np.sqrt(frame["recommendations"]) + 0.5 * frame["discount"]
    spending = 20.0 + 2.0 * years + taste + rng.normal(0.0, 4.0, size)
    return frame, spending.to_numpy()


def main(folder: Path) -> None:
    """Fit, explain, print, draw."""
    rng = np.random.default_rng(0)
    frame, spending = customers(2000, rng)
    model = HistGradientBoostingRegressor(max_iter=60, random_state=0).fit(frame, spending)
    rows = frame[:400]

    explanation = ew.explain(
        model,
        rows,
        target=ew.targets.distribution(stats.norm(58.0, 6.0)),
        schema=ew.Schema.infer(rows, frame).freeze("years").range("discount", 0, 30),
        background=frame,
        bounds=ew.Bounds(outputs=3.0),
    )

    print(ew.report.headline(explanation, "predicted spending"))
    print(explanation.certificate)
    print(explanation.changes()[["mean_before", "mean_after", "shift_q10", "shift_q90"]].round(1))
    for name, table in ("before", explanation.factual), ("after", explanation.counterfactual):
        together = table["discount"].corr(table["recommendations"])
        print(f"correlation of discount and recommendations {name}: {together:.2f}")

    figure, axes = plt.subplots(1, 3, figsize=(13.0, 4.0), layout="constrained")
    ew.plots.outputs(explanation, axes[0], label="predicted spending, euros")
    ew.plots.feature(explanation, "discount", axes[1])
    ew.plots.feature(explanation, "recommendations", axes[2])
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "gallery-retail.png", dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
