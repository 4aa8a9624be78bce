"""Sub-populations that move against expectation, where one is planted and where there is none."""

from __future__ import annotations

import dataclasses
import doctest
import re

import numpy as np
import pandas as pd
import pytest
from benchmarks.paper import surprises as module
from benchmarks.paper.surprises import surprises

import elsewise as ew
from elsewise.errors import InvalidInput
from elsewise.moves import Rows

N = 60
nan = float("nan")


def test_examples() -> None:
    assert not doctest.testmod(module).failed


@pytest.fixture(scope="module")
def base() -> ew.Explanation:
    rng = np.random.default_rng(0)
    sizes = ("small", "medium", "large")
    rows = pd.DataFrame(
        {
            "income": rng.normal(30.0, 8.0, N),
            "cards": rng.integers(0, 6, N),
            "home": rng.choice(["own", "rent", "free"], N),
            "size": pd.Categorical(rng.choice(sizes, N), categories=sizes, ordered=True),
            "age": rng.integers(20, 70, N),
        }
    )
    return ew.explain(
        lambda frame: np.asarray(
            frame["income"] / 8.0 - frame["cards"] + 1e-9 * frame["size"].cat.codes
        ),
        rows,
        target=ew.targets.shift(0.5),
        schema=ew.Schema.infer(rows).freeze("age"),
        bounds=ew.Bounds(outputs=0.5),
        certify="in-sample",
        settings=ew.Settings(iterations=2, draws=99),
    )


def moved_to(explanation: ew.Explanation, codes: np.ndarray) -> ew.Explanation:
    """The same explanation with other counterfactual rows."""
    return dataclasses.replace(
        explanation, rows=Rows(codes, explanation.problem.outputs.values(codes))
    )


def population(rows: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "Credit amount": rng.normal(3000.0, 900.0, rows),
            "Duration": rng.normal(24.0, 8.0, rows),
            "Age": rng.integers(19, 70, rows),
            "Housing": rng.choice(["own", "rent", "free"], rows),
        }
    )


def young_borrowers(rows: pd.DataFrame) -> np.ndarray:
    """Risk: a larger credit raises it, but lowers it for the young."""
    slope = np.where(rows["Age"] <= 30, -1.0, 1.0)
    level = slope * (rows["Credit amount"] - 3000) / 900 + (rows["Duration"] - 24) / 8
    return np.asarray(1.0 / (1.0 + np.exp(-level)))


def explained(model: object) -> ew.Explanation:
    rows = population()
    return ew.explain(
        ew.models.function(model, smooth=True, probability=True),  # type: ignore[arg-type]
        rows,
        target=ew.targets.at_most(0.35),
        schema=ew.Schema.infer(rows).freeze("Age", "Housing"),
        bounds=ew.Bounds(outputs=0.1),
        certify="in-sample",
        settings=ew.Settings(draws=99),
    )


@pytest.fixture(scope="module")
def surprising() -> ew.Explanation:
    return explained(young_borrowers)


def test_surprises_find_a_planted_sign(surprising: ew.Explanation) -> None:
    found = surprises(surprising, {"Credit amount": -1, "Duration": -1})
    assert found["feature"].tolist() == ["Credit amount"]
    (row,) = found.to_dict(orient="records")
    assert row["who"] == "Age <= 30"
    assert row["mean_move"] > 50
    assert row["evidence"] > 5
    assert row["effect"] > 0
    moved = (surprising.counterfactual != surprising.factual)["Credit amount"]
    young = population()["Age"] <= 30
    assert 0.5 * (moved & young).sum() <= row["rows"] <= (moved & young).sum()
    assert row["share"] == pytest.approx(row["rows"] / 200)
    assert re.match(
        r"Age <= 30: Credit amount \+[\d,]+ on average improves the output", row["words"]
    )


def test_the_other_expectation_is_surprised_by_the_others(surprising: ew.Explanation) -> None:
    found = surprises(surprising, {"Credit amount": 1.0})
    assert found["who"].tolist() == ["Age > 30"]
    assert (found["mean_move"] < 0).all()


def test_no_surprise_where_there_is_none() -> None:
    def plain(rows: pd.DataFrame) -> np.ndarray:
        level = (rows["Credit amount"] - 3000) / 900 + (rows["Duration"] - 24) / 8
        return np.asarray(1.0 / (1.0 + np.exp(-level)))

    found = surprises(explained(plain), {"Credit amount": -1, "Duration": -1})
    assert found.empty
    assert list(found.columns) == [
        "feature",
        "expected",
        "who",
        "rows",
        "share",
        "mean_move",
        "evidence",
        "effect",
        "words",
    ]


def test_a_move_the_model_does_not_ask_for_is_no_surprise(base: ew.Explanation) -> None:
    codes = base.problem.factual.copy()
    names = list(base.problem.schema.names)
    codes[:, 0] += 16.0  # improves the output
    codes[:, names.index("size")] = 2.0  # does not matter to it
    codes[:, names.index("cards")] += 1.0  # worsens it
    explanation = moved_to(base, codes)
    assert surprises(explanation, {"size": -1, "cards": -1, "income": 1}).empty
    found = surprises(explanation, {"income": -1})
    assert found["who"].tolist() == ["all rows"]
    assert found["mean_move"].tolist() == pytest.approx([16.0])
    assert surprises(moved_to(base, base.problem.factual.copy()), {"income": -1}).empty


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({}, "a mapping from features to the signs"),
        (["income"], "a mapping from features to the signs"),
        ({"age": 1}, "numbers and ordered categories that may move, received 'age'"),
        ({"home": 1}, "received 'home'"),
        ({"nowhere": 1}, "name some of 'income', 'cards', 'size'"),
        ({"income": 0}, r"expected\['income'\]: expected \+1 or -1"),
        ({"income": "up"}, r"\+1 or -1, received 'up'"),
        ({"income": nan}, r"\+1 or -1, received nan"),
    ],
)
def test_surprises_refuse(base: ew.Explanation, expected: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        surprises(base, expected)  # type: ignore[arg-type]
