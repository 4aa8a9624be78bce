"""The demonstration: a credit model, the applicants it refuses, and what would bring them in.

Run it with ``python -m elsewise.cli._demo`` or ``elsewise demo``.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from elsewise import report, targets
from elsewise._explain import explain
from elsewise.datasets import german_credit
from elsewise.features import Schema
from elsewise.report import answer, change_table
from elsewise.request import Bounds

if TYPE_CHECKING:
    from elsewise.explanation import Explanation

__all__ = ["demo", "main", "refused_applicants"]

OUTPUT = "risk of a bad credit"
FOLDER = "elsewise-demo"
STAY = ("Age", "Sex", "Job", "Purpose")


def credit_model(frame: pd.DataFrame, outcome: pd.Series[Any]) -> Any:
    """Fit a logistic regression on scaled numbers and one-hot categories."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    prepare = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(prepare, LogisticRegression()).fit(frame, outcome)


def refused_applicants(seed: int = 0, *, progress: bool | None = None) -> Explanation:
    """Explain what would have to be different about the applicants the model refuses.

    Refused are those with a risk above 50%; wanted is a risk of at most 40%. Who they
    are and what they want the money for stays.
    """
    data = german_credit()
    model = credit_model(data.frame, data.outcome)
    refused = data.frame[model.predict_proba(data.frame)[:, 1] > 0.5]
    return explain(
        model,
        refused,
        target=targets.at_most(0.4),
        schema=Schema.infer(refused, data.frame).freeze(*STAY),
        background=data.frame,
        bounds=Bounds(inputs=0.3, outputs=0.1),
        seed=seed,
        progress=progress,
    )


def demo(folder: str | Path = FOLDER, seed: int = 0, *, quiet: bool = False) -> Explanation:
    """Explain a credit model and write the report; prints the answer unless quiet."""
    start = time.perf_counter()
    explanation = refused_applicants(seed, progress=False if quiet else None)
    seconds = time.perf_counter() - start
    place = report.write(
        explanation,
        Path(folder) / "report.html",
        title="German Credit: the applicants a logistic regression refuses",
        output=OUTPUT,
        command=f"elsewise demo --seed {seed}",
    )
    if not quiet:
        print("German Credit, a logistic regression, and the applicants it refuses (risk > 50%).")
        print("For methods, not for decisions about people: see german_credit().warning.\n")
        sentence, most = answer(explanation, OUTPUT)
        print("\n".join([sentence, *(f"  - {line}" for line in most)]), end="\n\n")
        print(f"{explanation.certificate}\n")
        print(f"{change_table(explanation)}\n")
        print(f"Model and explanation took {seconds:.1f} s.")
        print(f"Report: {place.resolve()}")
    return explanation


def main() -> None:
    """Run the demonstration."""
    demo()


if __name__ == "__main__":
    main()
