"""Credit: what would have to be different about the applicants a model finds risky.

A boosted-tree pipeline on German Credit, strings and missing cells as they come. Applicants with a
predicted risk above 40% should come down to 35%; who they are stays, credits only get smaller.

    python examples/credit.py [folder for the picture]
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import elsewise as ew

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def main(folder: Path) -> None:
    """Fit, explain, print, draw."""
    data = ew.datasets.german_credit()
    texts = OrdinalEncoder(), make_column_selector(dtype_exclude="number")
    model = make_pipeline(
        make_column_transformer(texts, remainder="passthrough"),
        HistGradientBoostingClassifier(max_iter=40, max_depth=3, random_state=0),
    ).fit(data.frame, data.outcome)
    risky = data.frame[model.predict_proba(data.frame)[:, 1] > 0.4]

    schema = (
        ew.Schema.infer(risky, data.frame)
        .freeze("Age", "Sex", "Job")
        .only_decrease("Credit amount", "Duration")
    )
    explanation = ew.explain(
        model,
        risky,
        target=ew.targets.at_most(0.35),
        schema=schema,
        background=data.frame,
        bounds=ew.Bounds(outputs=0.06),
    )

    print(f"{len(risky)} of {len(data.frame)} applicants have a predicted risk above 40%.")
    print(ew.report.headline(explanation, "risk of a bad credit"))
    print(explanation.certificate)
    print(explanation.changes()[["rows_moved", "mean_before", "mean_after", "share"]].round(2))
    print(explanation.groups(3))

    figure, axes = plt.subplots(1, 2, figsize=(11.0, 4.0), layout="constrained")
    ew.plots.outputs(explanation, axes[0], label="risk of a bad credit")
    ew.plots.changes(explanation, axes[1])
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "gallery-credit.png", dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
