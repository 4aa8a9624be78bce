"""Derived columns: computed anew in every row that moves, by text or by function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import elsewise as ew
from elsewise.errors import InvalidInput, SavedRunError
from elsewise.features import Schema
from legality import assert_legal, assert_map, assert_outputs, unmoved_cells


def table(n: int = 200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    made = pd.DataFrame(
        {
            "amount": rng.integers(500, 9000, n),
            "months": rng.integers(4, 60, n),
            "age": rng.integers(18, 75, n),
        }
    )
    made["monthly"] = made["amount"] / made["months"]
    return made


def risk(frame: pd.DataFrame) -> np.ndarray:
    burden = np.asarray(frame["monthly"], dtype=float) / 150.0 - 1.5
    return 1.0 / (1.0 + np.exp(-burden + 0.01 * (np.asarray(frame["age"]) - 40)))


ROWS = table()
SCHEMA = Schema.infer(ROWS).freeze("age")
TEXT, FUNCTION = "amount / months", lambda frame: frame["amount"] / frame["months"]
HIGH = ROWS[risk(ROWS) > 0.6]


@pytest.mark.parametrize("formula", [TEXT, FUNCTION], ids=["text", "function"])
@pytest.mark.parametrize(
    ("target", "bounds"),
    [
        (ew.targets.at_most(0.5), None),
        (ew.targets.share(0.6, below=0.5), None),
        (ew.targets.at_most(0.5), ew.Bounds(outputs=0.1)),
    ],
    ids=["every row", "share", "distance"],
)
def test_rows_stay_consistent(formula: Any, target: Any, bounds: Any) -> None:
    schema = SCHEMA.derived("monthly", formula)
    answer = ew.explain(
        risk,
        HIGH,
        target=target,
        bounds=bounds,
        schema=schema,
        background=ROWS,
        certify="in-sample",
    )
    after = answer.counterfactual
    moved = ~unmoved_cells(answer)[:, :3].all(axis=1)
    assert moved.any()
    np.testing.assert_allclose(after["monthly"], after["amount"] / after["months"], rtol=1e-12)
    assert_legal(answer)
    assert_outputs(answer, risk)
    assert_map(answer)
    assert answer.ok or bounds is not None


def test_none_of_a_hundred_thousand_rows_is_inconsistent() -> None:
    schema = SCHEMA.derived("monthly", TEXT)
    answer = ew.explain(risk, HIGH, target=ew.targets.at_most(0.5), schema=schema, background=ROWS)
    many = table(100_000, seed=1)
    moved = answer.apply(many)
    assert (moved["monthly"] != many["monthly"]).sum() > 10_000
    wrong = ~np.isclose(moved["monthly"], moved["amount"] / moved["months"], rtol=1e-6)
    assert wrong.sum() == 0


def test_rows_that_break_the_formula_stay_as_they_are() -> None:
    rows = HIGH.copy()
    rows.loc[rows.index[:5], "monthly"] *= 1.5
    answer = ew.explain(
        risk,
        rows,
        target=ew.targets.at_most(0.5),
        schema=SCHEMA.derived("monthly", TEXT),
        background=ROWS,
        certify="in-sample",
    )
    pd.testing.assert_frame_equal(answer.counterfactual[:5], rows[:5])
    np.testing.assert_array_equal(answer.factual_outputs[:, 0], risk(rows))
    assert "5 rows break a rule or a range and stay as they are" in answer.status.notices
    assert_outputs(answer, risk)
    assert_map(answer)


@pytest.mark.parametrize("kind", ["linear", "pipeline", "torch", "function"])
def test_slopes_go_through_the_formula(kind: str) -> None:
    inputs, labels = ROWS.astype(float), (risk(ROWS) > 0.5).astype(int)
    models: dict[str, Any] = {
        "linear": lambda: LinearRegression().fit(inputs, risk(ROWS)),
        "pipeline": lambda: make_pipeline(StandardScaler(), LogisticRegression()).fit(
            inputs, labels
        ),
        "torch": lambda: torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Sigmoid()).double(),
        "function": lambda: ew.models.function(risk, smooth=True),
    }
    torch.manual_seed(0)
    schema = Schema.infer(inputs).continuous("amount", "months", "age").derived("monthly", TEXT)
    encoder = schema.encoder(inputs)
    codes = encoder.encode(inputs)[:9]
    outputs = ew.models.bind(models[kind](), encoder, probe=codes)
    outputs = outputs.precise(codes)
    assert outputs.smooth
    values, slopes = outputs.values_and_gradient(codes)
    np.testing.assert_allclose(values, outputs.values(codes))
    assert (slopes[:, :, 3] == 0).all()
    for place, step in ((0, 1e-2), (1, 1e-4), (2, 1e-3)):
        up, down = codes.copy(), codes.copy()
        up[:, place] += step
        down[:, place] -= step
        # What the model says of rows whose monthly amount follows.
        quotient = (outputs.values(up) - outputs.values(down)) / (2 * step)
        np.testing.assert_allclose(slopes[:, :, place], quotient, rtol=2e-3, atol=1e-9)


def test_its_range_is_checked_after_every_move() -> None:
    schema = SCHEMA.range("monthly", upper=200.0).derived("monthly", TEXT)
    rows = ROWS[ROWS["monthly"] <= 200]

    def long(frame: pd.DataFrame) -> np.ndarray:
        return np.asarray(frame["months"], dtype=float)

    answer = ew.explain(
        long, rows, target=ew.targets.shift(-6.0), schema=schema, certify="in-sample"
    )
    moved = answer.counterfactual
    assert (moved["months"] < rows["months"]).any()
    assert (moved["monthly"] <= 200.0).all()
    assert_legal(answer)


def test_a_derived_whole_number_stays_whole() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.integers(0, 9, 60), "b": rng.integers(0, 9, 60)})
    rows["total"] = rows["a"] + rows["b"]
    schema = Schema.infer(rows).derived("total", "a + b")
    answer = ew.explain(
        lambda frame: frame["total"].to_numpy(dtype=float),
        rows,
        target=ew.targets.at_most(9),
        schema=schema,
        certify="in-sample",
    )
    after = answer.counterfactual
    assert after["total"].dtype == rows["total"].dtype
    assert (after["total"] == after["a"] + after["b"]).all()
    assert (after["total"] <= 9).all()


def test_missing_cells() -> None:
    rows = HIGH.astype(float).reset_index(drop=True)
    rows.loc[:3, "months"] = np.nan
    rows.loc[:2, "monthly"] = np.nan  # missing with its input; the fourth one cannot be made
    schema = Schema.infer(rows, ROWS.astype(float)).freeze("age").derived("monthly", TEXT)

    def patient(frame: pd.DataFrame) -> np.ndarray:
        return risk(frame.fillna(200.0))

    answer = ew.explain(
        patient, rows, target=ew.targets.at_most(0.5), schema=schema, certify="in-sample"
    )
    assert_legal(answer)
    assert_outputs(answer, patient)
    pd.testing.assert_frame_equal(answer.counterfactual.iloc[[3]], rows.iloc[[3]])


def test_saved_runs_keep_texts_and_take_functions(tmp_path: Path) -> None:
    for name, formula in {"text": TEXT, "function": FUNCTION}.items():
        schema = SCHEMA.derived("monthly", formula).rule("months >= 6", "half a year")
        answer = ew.explain(
            risk, HIGH, target=ew.targets.at_most(0.5), schema=schema, background=ROWS
        )
        place, moved = answer.save(tmp_path / name), answer.apply(ROWS)
        if name == "function":
            with pytest.raises(SavedRunError, match="rules: expected 'monthly', which are functi"):
                ew.load(place, model=risk).apply(ROWS)
        given = {"monthly": FUNCTION} if name == "function" else None
        loaded = ew.load(place, model=risk, rules=given)
        pd.testing.assert_frame_equal(loaded.apply(ROWS), moved)
        pd.testing.assert_frame_equal(loaded.counterfactual, answer.counterfactual)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.derived("monthly", TEXT).free("monthly"), "received one made of others"),
        (lambda s: s.derived("monthly", TEXT).only_increase("monthly"), "one made of others"),
        (lambda s: s.only_increase("monthly").derived("monthly", TEXT), "has no direction"),
        (lambda s: s.derived("job", TEXT), "column 'job': expected a number"),
        (lambda s: s.derived("monthly", 3), "formula: expected a text or a function"),
        (lambda s: s.derived("monthly", "amount / 0 > 1"), "expected a number made of columns"),
        (lambda s: s.derived("monthly", "monthly + 1"), "that are not derived themselves"),
        (lambda s: s.derived("nothing", TEXT), "name: expected a column of the schema"),
        (
            lambda s: s.derived("months", "amount / 2").derived("monthly", TEXT),
            "that are not derived themselves",
        ),
    ],
)
def test_refusals(change: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        change(Schema.infer(ROWS.assign(job=["a", "b"] * 100)))


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("amount * months", "formula of 'monthly': .* received one that no row keeps"),
        (lambda frame: frame["amount"] * np.nan, "one that no row keeps"),
        (lambda frame: 1 / 0, "formula of 'monthly': .* ZeroDivisionError"),
        (lambda frame: frame["amount"].astype(str), r"expected \d+ numbers, one per row"),
        (lambda frame: 3.0, r"expected \d+ numbers, one per row, received \(\) of float"),
    ],
)
def test_formulas_that_cannot_be(formula: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ew.explain(
            risk, HIGH, target=ew.targets.at_most(0.5), schema=SCHEMA.derived("monthly", formula)
        )
