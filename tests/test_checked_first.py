"""What cannot be used is refused before the work starts, by its name."""

from __future__ import annotations

import json
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from benchmarks.campaign.mutations import as_toml

import elsewise as ew
from elsewise.errors import InvalidInput, checked

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(
    {"a": RNG.normal(size=60), "b": RNG.integers(0, 9, 60), "c": RNG.choice(list("xyz"), 60)}
)
NAN, INF = float("nan"), float("inf")


def score(frame: pd.DataFrame) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-frame["a"].to_numpy(dtype=float)))


def never(frame: pd.DataFrame) -> np.ndarray:
    raise AssertionError("the model was asked")


def explain(model: object = score, rows: pd.DataFrame = ROWS, **more: Any) -> ew.Explanation:
    asked: dict[str, Any] = {
        "target": ew.targets.at_most(0.45),
        "bounds": ew.Bounds(outputs=0.1),
        "settings": ew.Settings(iterations=2, draws=39),
    }
    return ew.explain(model, rows, **(asked | more))


def test_numpy_scalars_are_numbers(tmp_path: Path) -> None:
    bounds = ew.Bounds(
        outputs=np.float64(0.1),
        inputs=np.float32(2),
        confidence=np.float64(0.9),
        trim=np.float64(0),
    )
    settings = ew.Settings(iterations=np.int64(2), draws=np.int32(39), sparse=np.bool_(False))
    schema = ew.Schema.infer(ROWS).weight("a", np.float32(2)).range("b", np.int64(0), np.int64(8))
    asked = explain(bounds=bounds, settings=settings, schema=schema, seed=np.int64(3))
    loaded = ew.load(asked.save(tmp_path / "run"))
    assert loaded.problem.bounds == bounds
    assert loaded.settings == settings
    assert type(asked.problem.seed) is int
    assert type(asked.certificate.outputs.met) is bool
    json.dumps(ew.report.summary(asked), allow_nan=False)


@pytest.mark.parametrize(
    "wrong",
    [
        {"iterations": "5"},
        {"iterations": 2.5},
        {"iterations": True},
        {"seconds": "5"},
        {"seconds": NAN},
        {"draws": 99.5},
        {"threads": "2"},
        {"memory": NAN},
        {"memory": INF},
        {"memory": [1]},
        {"edits": -1},
        {"edits": 2.5},
        {"directions": 10.5},
        {"smoothing": INF},
        {"balance": "x"},
        {"sparse": "no"},
        {"redraw": 1},
        {"step": ["proposals"]},
        {"population_weight": NAN},
    ],
    ids=str,
)
def test_settings_of_another_type_are_refused(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(InvalidInput, match=f"settings.{name}"):
        ew.Settings(**wrong)


def test_what_is_called_later_is_checked_first() -> None:
    with pytest.raises(InvalidInput, match="stop: expected a function"):
        explain(never, stop=True)
    with pytest.raises(InvalidInput, match="points: expected"):
        explain().frontier(points="x")  # type: ignore[arg-type]


EDITS = [
    ("a", {"free": "no"}),
    ("a", {"free": "false"}),
    ("a", {"free": 0}),
    ("a", {"only": "up"}),
    ("a", {"only": 1}),
    ("c", {"only": "increase"}),
    ("a", {"weight": -1}),
    ("a", {"weight": "2"}),
    ("a", {"weight": np.nan}),
    ("a", {"cost": -1}),
    ("a", {"deviation": 0}),
    ("a", {"deviation": -1}),
    ("a", {"mean": np.inf}),
    ("a", {"seen": [2, -2]}),
    ("a", {"seen": [2]}),
    ("a", {"range": [2, -2]}),
    ("a", {"range": [100, 200]}),
    ("a", {"levels": ["x"]}),
    ("a", {"ordered": True}),
    ("a", {"derived": "a + 1"}),
    ("a", {"derived": "b.sum()"}),
    ("a", {"derived": "b > 1"}),
    ("a", {"kind": "category"}),
    ("a", {"kind": "text"}),
    ("a", {"group": "home"}),
    ("a", {"allowed": ["x"]}),
    ("a", {"name": "b"}),
    ("a", {"frozen": True}),
    ("c", {"allowed": ["q"]}),
    ("c", {"levels": ["x", "x", "y"]}),
    ("c", {"levels": []}),
    ("c", {"kind": "number"}),
    ("note", {"free": True}),
    ("note", {"kind": "category", "free": True}),
]


@pytest.mark.parametrize(("column", "change"), EDITS, ids=str)
def test_an_edited_schema_is_checked(column: str, change: dict[str, Any]) -> None:
    rows = ROWS.assign(note=[f"text {k}" for k in range(60)])
    content = tomllib.loads(ew.Schema.infer(rows).to_toml())
    content["columns"][column].update(change)
    for frame in (None, rows):
        with pytest.raises(InvalidInput):
            ew.Schema.from_toml(as_toml(content), frame)


def test_lost_rules_are_announced() -> None:
    schema = ew.Schema.infer(ROWS).rule(lambda frame: frame["a"] >= -0.5, "never below -0.5")
    again = ew.Schema.from_toml(schema.to_toml())
    assert "'never below -0.5' is not obeyed: files hold no functions" in again.notices
    assert again.notices[-1] in explain(schema=again).status.notices
    found = again.rule(lambda frame: frame["a"] >= -0.5, "never below -0.5")
    assert not found.lost


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([Decimal(k) for k in range(60)]),
        pd.Series([b"a", b"b"] * 30),
        pd.Series(pd.period_range("2024-01", periods=60, freq="M")),
        pd.Series([object() for _ in range(60)]),
        pd.Series(["a", "b"] * 30, dtype=pd.ArrowDtype(pa.string())),
        pd.Series([Decimal(k) for k in range(60)], dtype=pd.ArrowDtype(pa.decimal128(10, 2))),
        pd.Series([[1, 2]] * 60, dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
        pd.Series([{1: 2}] * 60),
    ],
    ids=["decimal", "bytes", "period", "object", "text", "decimal128", "list", "dict"],
)
def test_what_no_file_can_hold_is_refused_before_the_search(column: pd.Series) -> None:
    with pytest.raises(InvalidInput, match="column 'z'"):
        explain(never, ROWS.assign(z=column))


def test_an_index_that_no_file_can_hold_is_refused_before_the_search() -> None:
    with pytest.raises(InvalidInput, match="index: expected"):
        explain(never, ROWS.set_axis([Decimal(k) for k in range(60)]))


@pytest.mark.parametrize("name", ["draws", "directions", "edits"])
def test_counts_that_no_memory_holds_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=rf"settings\.{name}: expected .* at most 10,000,000"):
        ew.Settings(**{name: 10**30})


@pytest.mark.parametrize("value", [np.zeros(3), ROWS, [1]], ids=["array", "frame", "list"])
@pytest.mark.parametrize("name", ["certify", "population"])
def test_choices_that_are_no_text_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=rf"{name}: expected '"):
        explain(never, **{name: value})


@pytest.mark.parametrize("width", [-1.0, 1e7, 1e300, 10**30, NAN])
def test_windows_wider_than_any_rows_are_refused(width: float) -> None:
    with pytest.raises(InvalidInput, match=r"settings\.smoothing: expected a number from 0 to"):
        ew.Settings(smoothing=width)


@pytest.mark.parametrize("name", ["b", "c"])
def test_a_file_derives_no_category_and_frees_no_derived_column(name: str) -> None:
    content = tomllib.loads(ew.Schema.infer(ROWS).to_toml())
    more = {"derived": "a + 1"} | ({"free": True} if name == "b" else {})
    content["columns"][name] |= more
    with pytest.raises(InvalidInput, match=f"column '{name}': expected a"):
        ew.Schema.from_toml(as_toml(content))


def test_whole_numbers_that_numpy_does_not_have_are_floats_or_refused() -> None:
    assert isinstance(checked("number", 10**25, float), float)
    assert checked("number", 3, float) == 3
    with pytest.raises(InvalidInput, match="number: expected a number, received 1000"):
        checked("number", 10**400, float)
