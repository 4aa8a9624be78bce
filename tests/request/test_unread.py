"""Columns that a model does not read stay, for every kind of model, and are named once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import elsewise as ew
from elsewise.features import UNREAD
from elsewise.request import Request, ask

RNG = np.random.default_rng(0)
N = 240
ROWS = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "noise": RNG.normal(size=N),
        "b": RNG.normal(size=N),
        "shuffled": RNG.permutation(9 * N)[:N],
        "n": RNG.integers(0, 9, N),
        "kind": RNG.choice(["x", "y", "z"], N),
        "always": 1.0,
    }
)
OUTCOME = (ROWS["a"] + ROWS["b"] + 0.3 * (ROWS["n"] - 4) + RNG.normal(size=N) > 0.5).astype(int)
READ = ["a", "b", "n"]
ASKED: list[dict[str, Any]] = [
    {"target": ew.targets.share(0.7, above=0.5)},
    {"target": ew.targets.constant(0.6), "bounds": ew.Bounds(outputs=0.2)},
]


def pipeline(estimator: Any) -> Any:
    return make_pipeline(make_column_transformer(("passthrough", READ)), estimator).fit(
        ROWS, OUTCOME
    )


def net() -> Any:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layers = torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1), torch.nn.Sigmoid()
    read = [ROWS.columns.get_loc(name) for name in READ]
    return ew.models.torch_model(
        torch.nn.Sequential(*layers), prepare=lambda codes: codes[:, read].float()
    )


MODELS: dict[str, Callable[[], Any]] = {
    "linear": lambda: pipeline(LogisticRegression()),
    "trees": lambda: pipeline(HistGradientBoostingClassifier(max_depth=3, max_iter=20)),
    "net": net,
}


@pytest.mark.parametrize("asked", ASKED, ids=["rows", "distance"])
@pytest.mark.parametrize("model", MODELS)
def test_columns_that_the_model_does_not_read_stay(model: str, asked: dict[str, Any]) -> None:
    found = ew.explain(
        MODELS[model](), ROWS, **asked, progress=False, settings=ew.Settings(iterations=10)
    )
    for name in ROWS.columns.difference(READ):
        assert found.counterfactual[name].equals(ROWS[name]), name
    (notice,) = (line for line in found.status.notices if "not read by the model" in line)
    assert notice == "noise, shuffled, kind: not read by the model: never moved"


@pytest.mark.parametrize("asked", ASKED, ids=["rows", "distance"])
def test_a_saved_run_moves_rows_as_before_where_columns_stay(
    asked: dict[str, Any], tmp_path: Path
) -> None:
    model = MODELS["trees"]()
    found = ew.explain(model, ROWS, **asked, progress=False, settings=ew.Settings(iterations=10))
    loaded = ew.load(found.save(tmp_path / "run"), model=model)
    moved = found.apply(ROWS)
    assert not moved.equals(ROWS)
    pd.testing.assert_frame_equal(loaded.apply(ROWS), moved, check_exact=True)


def unread(
    model: Callable[[pd.DataFrame], Any],
    schema: ew.Schema | None = None,
    rows: pd.DataFrame = ROWS,
) -> list[Any]:
    request = Request(model=model, rows=rows, target=ew.targets.shift(0.1), schema=schema)
    return [f.name for f in ask(request).problem.schema.features if f.notice == UNREAD]


def test_one_question_more_is_asked_where_every_column_is_read() -> None:
    asked: list[int] = []

    def score(rows: pd.DataFrame) -> Any:
        asked.append(len(rows))
        return rows["a"] + rows["b"]

    everything = ROWS[["a", "b"]]
    ask(Request(model=score, rows=everything, target=ew.targets.shift(0.1)))
    # Tried on all rows, on some in another order, for slopes twice; then other values once.
    assert len(asked) == 5
    assert asked[-1] <= 7 * 64


def test_columns_that_matter_only_together_are_read() -> None:
    assert unread(lambda rows: (rows["a"] > 0.8) & (rows["b"] > 0.8) & (rows["n"] > 5)) == [
        "noise",
        "shuffled",
        "kind",
    ]


def test_columns_behind_a_formula_or_a_rule_are_read() -> None:
    rows = ROWS.assign(twice=2 * ROWS["noise"])
    schema = ew.Schema.infer(rows).derived("twice", "2 * noise")

    def model(rows: pd.DataFrame) -> Any:
        return rows["twice"] + rows["a"]

    assert unread(model, schema, rows) == ["b", "shuffled", "n", "kind"]
    assert unread(model, schema.rule("shuffled + 100 * n < 2500"), rows) == ["b", "kind"]


def test_a_model_that_says_the_same_of_every_row_freezes_nothing() -> None:
    assert unread(lambda rows: np.full(len(rows), 0.5)) == []


def test_distances_count_unread_columns_as_free_ones() -> None:
    problem = ask(Request(model=lambda r: r["a"], rows=ROWS, target=ew.targets.shift(0.1))).problem
    assert problem.embedding.size == ew.Schema.infer(ROWS).embedding().size
