"""Identifiers stay unless they are freed, and rare levels are no targets unless they are named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import elsewise as ew
from elsewise.features import Schema
from elsewise.features._feature import IDENTIFIER, RARE

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("customer_id", [907, 12, 455]),
        ("CustomerID", [907.0, 12.0, np.nan]),
        ("Unnamed: 0", [4, 8, 9]),
        ("index", [4, 8, 9]),
        ("id", ["x7", "a1", "b2"]),
        ("n", np.arange(30)),
        ("n", 1 + RNG.permutation(30)),
        ("code", [f"c{k:03}" for k in range(30)]),
    ],
)
def test_identifiers_are_frozen_until_they_are_freed(name: str, cells: object) -> None:
    schema = Schema.infer(pd.DataFrame({name: cells}))
    assert not schema[name].free
    assert schema.notices == (f"{name}: {IDENTIFIER}",)
    assert schema.free(name)[name].free
    assert schema.free(name).notices == ()
    assert schema.freeze(name).notices == ()
    assert Schema.from_toml(schema.to_toml()) == schema


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("age", [31, 45, 22]),
        ("paid", [1, 2, 3]),
        ("income", RNG.permutation(10**6)[:500]),
        ("n", np.arange(10)),
        ("n", [*range(29), 28]),
        ("customer_id", [907, 12, 12]),
        ("price_index", [101, 99, 104]),
        ("sex", ["m", "f"]),
        ("grade", pd.Categorical([f"c{k:03}" for k in range(30)])),
    ],
)
def test_columns_that_only_happen_to_be_unique_are_free(name: str, cells: object) -> None:
    assert Schema.infer(pd.DataFrame({name: cells}))[name].free


def test_one_notice_for_all_identifiers() -> None:
    frame = pd.DataFrame({"Unnamed: 0": range(30), "a": RNG.normal(size=30), "row_id": range(30)})
    assert Schema.infer(frame).notices == (f"Unnamed: 0, row_id: {IDENTIFIER}",)


def with_rare_levels(n: int = 400) -> pd.DataFrame:
    job = np.repeat(["a", "b", "rare", "once"], [n // 2, n - n // 2 - 5, 4, 1])
    size = pd.Categorical.from_codes(
        np.repeat([0, 2, 3], [n // 2, n - n // 2 - 3, 3]), list("SMLX")
    )
    return pd.DataFrame({"job": job, "size": size, "x": RNG.normal(size=n)})


def test_rare_levels_are_no_targets_unless_they_are_named() -> None:
    schema = Schema.infer(with_rare_levels())
    assert schema["job"].allowed == ("a", "b")
    assert schema["size"].allowed == ("S", "L")
    assert schema.notices == (f"job, size: {RARE}",)
    named = schema.allowed("job", ["a", "b", "rare"])
    assert named.notices == (f"size: {RARE}",)
    assert Schema.from_toml(schema.to_toml()) == schema
    line = 'format = 1\n[columns]\njob = { kind = "category" }'
    assert Schema.from_toml(line, with_rare_levels()[["job"]])["job"].allowed == ("a", "b")


def test_background_rows_are_what_is_counted() -> None:
    rows = with_rare_levels()
    assert Schema.infer(rows[-5:], rows)["job"].allowed == ("a", "b")
    assert Schema.infer(pd.concat([rows[:90], rows[-5:]]))["job"].allowed is None  # too few to tell
    many = pd.DataFrame({"job": np.repeat([f"j{k}" for k in range(40)], 4)})
    assert Schema.infer(many)["job"].allowed is None  # most rows have a rare level


def test_rows_leave_rare_levels_and_never_enter_them() -> None:
    rows = with_rare_levels()
    worth = {"a": 0.0, "b": 0.2, "rare": 1.0, "once": -1.0}
    score = ew.models.function(lambda frame: frame["job"].map(worth).to_numpy() + 0.1 * frame["x"])
    schema = Schema.infer(rows).freeze("x")
    for target, bounds in (
        (ew.targets.share(0.7, above=0.15), None),
        (ew.targets.constant(0.2), ew.Bounds(outputs=0.13)),
    ):
        asked = {"target": target, "bounds": bounds, "settings": ew.Settings(iterations=10)}
        answer = ew.explain(score, rows, schema=schema, progress=False, **asked)
        moved = answer.counterfactual["job"] != rows["job"]
        assert moved.any()
        assert set(answer.counterfactual["job"][moved]) <= {"a", "b"}
        assert f"job: {RARE}" in answer.status.notices
