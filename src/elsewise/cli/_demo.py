"""The demonstration: what would have to be different for a credit model to accept more people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from elsewise import targets
from elsewise._explain import explain
from elsewise.datasets import german_credit
from elsewise.explanation import Explanation
from elsewise.features import Schema

TITLE = "German Credit: nine of ten applicants accepted"
OUTPUT = "risk of a bad credit"
INTRODUCTION = """\
German Credit: what would have to be different for 90% of 1,000 applicants to have
a risk of at most 50%, as a logistic regression sees it?
For methods, not for decisions about people: see german_credit().warning.
"""
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


def more_accepted(seed: int = 0, *, progress: bool | None = None) -> Explanation:
    """Explain what would have to be different for 90% of the applicants to be accepted.

    The model accepts a risk of at most 50%. Who applicants are and what they want the money for
    stays as it is.
    """
    data = german_credit()
    return explain(
        credit_model(data.frame, data.outcome),
        data.frame,
        target=targets.share(0.9, below=0.5),
        schema=Schema.infer(data.frame).freeze(*STAY),
        seed=seed,
        progress=progress,
    )


def pages(explanation: Explanation, folder: Path, command: str) -> tuple[Path, Path]:
    """Write the report, with a policy of three actions, and the page to play with."""
    named = {"title": TITLE, "output": OUTPUT}
    policy = explanation.policy(k=3)
    report = explanation.report(folder / "report.html", policy=policy, command=command, **named)
    return report, explanation.explore(folder / "explore.html", **named)
