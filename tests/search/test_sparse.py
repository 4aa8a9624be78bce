"""The sparse option: fewer changed cells at the same limits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import elsewise as ew

NUMBERS = ["Age", "Credit amount", "Duration", "Job"]
Score = Callable[[pd.DataFrame], np.ndarray]


@pytest.fixture(scope="module")
def credit() -> tuple[Score, pd.DataFrame, pd.DataFrame]:
    """A logistic regression on German Credit as a plain, quick function of the frame."""
    data = ew.datasets.german_credit()
    frame = data.frame
    texts = [name for name in frame if name not in NUMBERS]
    center, scale = frame[NUMBERS].mean(), frame[NUMBERS].std()
    dummies = pd.get_dummies(frame[texts].fillna("unknown"), prefix_sep="=", dtype=float)
    inputs = pd.concat([(frame[NUMBERS] - center) / scale, dummies], axis=1)
    fitted = LogisticRegression(max_iter=1000).fit(inputs, data.outcome)
    weights = pd.Series(fitted.coef_[0], index=inputs.columns)
    levels = {
        text: {
            name.partition("=")[2]: value
            for name, value in weights.items()
            if name.startswith(f"{text}=")
        }
        for text in texts
    }

    def score(rows: pd.DataFrame) -> np.ndarray:
        total = ((rows[NUMBERS] - center) / scale).to_numpy() @ weights[NUMBERS].to_numpy()
        for text in texts:
            total = total + rows[text].fillna("unknown").map(levels[text]).to_numpy(dtype=float)
        return 1.0 / (1.0 + np.exp(-total - fitted.intercept_[0]))

    return score, frame, frame[score(frame) >= 0.5].iloc[:90]


def changed(explanation: ew.Explanation) -> np.ndarray:
    before, after = explanation.factual, explanation.counterfactual
    return ((before != after) & ~(before.isna() & after.isna())).to_numpy()


@pytest.mark.slow
@pytest.mark.parametrize(
    "limits", [ew.Bounds(outputs=0.15), ew.Bounds(inputs=0.4, outputs=0.2)], ids=["one", "both"]
)
def test_sparse_cuts_changed_cells_at_the_same_limits(
    credit: tuple[Score, pd.DataFrame, pd.DataFrame], limits: ew.Bounds
) -> None:
    """At least 40 % fewer changed cells, no more changed rows, and still certified."""
    model, background, rows = credit
    schema = ew.Schema.infer(background).freeze("Age", "Sex")
    dense, sparse = (
        ew.explain(
            model,
            rows,
            target=ew.targets.at_most(0.4),
            schema=schema,
            background=background,
            bounds=limits,
            settings=ew.Settings(sparse=option, slack=0.0, draws=199),
        )
        for option in (False, True)
    )
    assert dense.certificate.met
    assert sparse.certificate.met
    assert changed(sparse).mean() <= 0.6 * changed(dense).mean()
    assert changed(sparse).any(axis=1).mean() <= changed(dense).any(axis=1).mean()
    assert not changed(sparse)[:, [0, 1]].any()
    again = sparse.apply(rows)
    pd.testing.assert_frame_equal(again, sparse.counterfactual, rtol=0, atol=1e-9)
