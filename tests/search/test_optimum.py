"""How far moves are from the least possible ones: against SciPy's own minimizers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

import elsewise as ew
from elsewise.search._optimum import least_costs

RNG = np.random.default_rng(5)
ROWS = pd.DataFrame(RNG.normal(size=(60, 3)) * [1.0, 5.0, 0.2], columns=["a", "b", "c"])
SCORES = ROWS @ [1.0, -0.3, 4.0] + RNG.normal(size=60)


def test_the_least_move_is_that_of_a_quadratic_program() -> None:
    for seed in range(25):
        rng = np.random.default_rng(seed)
        gains = rng.normal(size=(1, 4)) * (rng.random(4) < 0.8)
        low, high = -rng.exponential(size=(1, 4)), rng.exponential(size=(1, 4))
        most = float(np.maximum(gains * low, gains * high).sum())
        need = rng.uniform(0.0, 1.2) * most
        found = least_costs(gains, low, high, np.array([need]))[0]
        if need > most:
            assert np.isinf(found)
            continue
        # Where every number is at its better end, all that can be gained is gained.
        gain = gains[0]
        best = minimize(
            lambda z: float(z @ z),
            np.where(gain > 0, high[0], low[0]),
            jac=lambda z: 2.0 * z,
            bounds=list(zip(low[0], high[0], strict=True)),
            constraints={
                "type": "ineq",
                "fun": lambda z, g=gain, n=need: float(g @ z) - n,
                "jac": lambda _, g=gain: g,
            },
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert found == pytest.approx(best.fun, rel=1e-3, abs=1e-7)


def notices(model: Any, target: Any, **more: Any) -> list[str]:
    schema = more.pop("schema", None)
    found = ew.explain(model, ROWS, target=target, schema=schema, certify="in-sample", **more)
    return [text for text in found.status.notices if "longer than the least" in text]


LOGISTIC = LogisticRegression().fit(ROWS, SCORES > 0)
LINEAR = LinearRegression().fit(ROWS, SCORES)


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (LOGISTIC, ew.targets.at_least(0.5)),
        (LOGISTIC, ew.targets.share(0.8)),
        (LINEAR, ew.targets.at_most(0.4)),
        (LINEAR, ew.targets.quantile(0.5, 0.6)),
    ],
)
def test_what_is_said_is_the_slack_of_tidying_at_most(model: Any, target: Any) -> None:
    (text,) = notices(model, target)
    assert float(text.split(" at most ")[1].split("%")[0]) <= 5.0
    (text,) = notices(model, target, settings=ew.Settings(slack=0.0))
    assert float(text.split(" at most ")[1].split("%")[0]) <= 3.0


def test_nothing_is_said_where_nothing_is_known() -> None:
    trees = HistGradientBoostingClassifier(max_iter=5).fit(ROWS, SCORES > 0)
    assert not notices(trees, ew.targets.at_least(0.5))
    assert not notices(LINEAR, ew.targets.mean(0.3))
    assert not notices(LINEAR, ew.targets.shift(0.3), bounds=ew.Bounds(outputs=0.2))
    letters = ROWS.assign(d=pd.Categorical(np.where(ROWS["a"] > 0, "x", "y")))
    model = ew.models.function(lambda frame: frame["a"] + (frame["d"] == "x"), smooth=True)
    found = ew.explain(model, letters, target=ew.targets.at_least(0.2), certify="in-sample")
    assert not [text for text in found.status.notices if "longer than" in text]
