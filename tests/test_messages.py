"""What goes wrong often says what is wrong and what to do; what is alike is said once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import elsewise as ew
from elsewise.errors import ElsewiseError, InvalidInput

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(RNG.normal(size=(100, 2)), columns=["a", "b"])
TARGET = ew.targets.at_least(0.6)


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        GridSearchCV(LogisticRegression(), {"C": [1.0]}),
        lambda rows: LogisticRegression().predict_proba(rows),
    ],
)
def test_an_unfitted_model_is_to_be_fitted(model: object) -> None:
    with pytest.raises(ElsewiseError, match=r"received an unfitted [<\w].* call its fit"):
        ew.explain(model, ROWS, target=TARGET, progress=False)


def test_text_with_too_many_values_says_how_it_is_freed() -> None:
    rows = ROWS.assign(city=[f"c{k}" for k in range(100)])
    schema = ew.Schema.infer(rows)
    how = r"text with 100 values: .* frame\['city'\].astype\('category'\)"
    for refused in (lambda: schema.free("city"), lambda: schema.allowed("city", ["c1"])):
        with pytest.raises(InvalidInput, match=how):
            refused()
    # What it says works.
    rows["city"] = rows["city"].astype("category")
    schema = ew.Schema.infer(rows)
    assert schema.notices == (
        "city: category of 100 levels: not moved unless freed by schema.free('city')",
    )
    assert schema.free("city")["city"].free


@pytest.mark.parametrize("level", [0.3, 2.0])
def test_a_model_that_answers_alike_for_every_row_is_to_be_looked_at(level: float) -> None:
    found = ew.explain(
        lambda rows: np.full(len(rows), level), ROWS, target=ew.targets.at_least(3), progress=False
    )
    said = f"the model answers {level:g} for every row: check that it is trained"
    assert said in found.status.reason
    assert said in repr(found)


def test_a_rule_about_columns_that_are_not_there() -> None:
    schema = ew.Schema.infer(ROWS)
    with pytest.raises(InvalidInput, match="column of the schema, received 'zip'"):
        schema.rule("zip < a")
    asked = schema.rule(lambda rows: rows["zip"] < 3, "near")
    with pytest.raises(InvalidInput, match=r"rule 'near': .* one that reads 'zip'. Fix: correct"):
        ew.explain(lambda rows: rows["a"], ROWS, target=TARGET, schema=asked, progress=False)


def test_notices_that_are_alike_are_one_line() -> None:
    pixels = pd.DataFrame(
        RNG.integers(0, 17, (100, 64)).astype(float), columns=[f"p{k}" for k in range(64)]
    ).assign(dead=0.0, empty=1.0)
    schema = ew.Schema.infer(pixels)
    assert schema.notices == (
        "64 columns such as p0, p1, p2: whole numbers: kept whole unless made continuous",
        "dead, empty: constant",
    )
    # Nothing about what was frozen on purpose, by name or by leaving it out of `only`.
    assert schema.freeze("dead", *(f"p{k}" for k in range(62))).notices == (
        "p62, p63: whole numbers: kept whole unless made continuous",
        "empty: constant",
    )
    assert schema.only("p1").notices == ("p1: whole numbers: kept whole unless made continuous",)
    found = ew.explain(lambda rows: rows["p3"] / 16, pixels, target=TARGET, progress=False)
    assert len(found.status.notices) == 3
    assert (
        found.status.notices[0]
        == "63 columns such as p0, p1, p2: not read by the model: never moved"
    )
