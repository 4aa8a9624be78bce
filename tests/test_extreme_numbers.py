"""Numbers at the ends of float64: the right answer or a clear error, never a NaN certificate."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.stats

import elsewise as ew
from elsewise.batch import dask as on_dask
from elsewise.errors import InvalidInput, ModelError

RNG = np.random.default_rng(5)
ROWS = pd.DataFrame(
    {"a": RNG.normal(size=60), "b": RNG.integers(0, 9, 60), "c": RNG.choice(list("xyz"), 60)}
)


def score(frame: pd.DataFrame) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-frame["a"].to_numpy(dtype=float)))


def explain(model: Any = score, rows: pd.DataFrame = ROWS, **more: Any) -> ew.Explanation:
    asked: dict[str, Any] = {
        "target": ew.targets.at_most(0.45),
        "bounds": ew.Bounds(outputs=0.1),
        "settings": ew.Settings(iterations=3, draws=39),
    }
    return ew.explain(model, rows, **(asked | more))


@pytest.mark.parametrize(
    "column",
    [
        np.where(np.arange(60) % 2, 1.79e308, -1.79e308) * RNG.uniform(0.5, 1, 60),
        RNG.integers(0, 5, 60) * 5e-324,
        RNG.normal(size=60) * 1e70,
        RNG.normal(size=60) * 1e-70,
        2**53 + RNG.integers(0, 99, 60),
        np.full(60, 1.7e308),
        1.0 + RNG.integers(0, 2, 60) * 2.0**-52,
    ],
    ids=["whole range", "subnormal", "1e70", "1e-70", "int64", "constant", "last bit"],
)
def test_columns(column: np.ndarray) -> None:
    rows = ROWS.assign(z=column)
    answer = explain(rows=rows)
    assert answer.ok
    assert math.isfinite(answer.certificate.inputs.at_most)
    pd.testing.assert_frame_equal(answer.factual, rows, check_exact=True)


@pytest.mark.parametrize(
    "asked",
    [
        {"model": lambda rows: 1e300 * score(rows)},
        {"model": lambda rows: 1e-300 * score(rows)},
        {"target": lambda: ew.targets.shift(1e308)},
        {"target": lambda: ew.targets.constant(-1e200)},
        {"target": lambda: ew.targets.sample([1e200, 0.0])},
        {"target": lambda: ew.targets.distribution(scipy.stats.norm(0, 1e200))},
        {"target": lambda: ew.targets.distribution(lambda u: 1e200 * u)},
        {"schema": lambda: ew.Schema.infer(ROWS).range("a", -1e300, 1e300)},
        {"schema": lambda: ew.Schema.infer(ROWS).weight("a", 1e-320)},
        {"bounds": lambda: ew.Bounds(outputs=0.1, support=(-1e300, 1e300))},
        {"rows": ROWS.assign(b=pd.Series([f"\ud800{k % 3}" for k in range(60)], dtype=object))},
        {"rows": ROWS.assign(a=np.inf)},
    ],
    ids=lambda asked: next(iter(asked)),
)
def test_what_cannot_be_computed_with_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises((InvalidInput, ModelError)):
        explain(**{k: v() if k not in ("model", "rows") else v for k, v in asked.items()})


def test_rows_of_another_size_than_the_schema_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"numbers of at most 1e\+75"):
        explain(rows=ROWS.assign(a=ROWS["a"] * 1e80), schema=ew.Schema.infer(ROWS))


@pytest.mark.parametrize("scale", [1e-70, 1e-12, 1e12, 1e70])
def test_outputs_of_any_unit_are_searched_alike(scale: float) -> None:
    answer = explain(
        lambda rows: scale * score(rows),
        target=ew.targets.at_most(0.45 * scale),
        bounds=ew.Bounds(outputs=0.1 * scale),
    )
    assert answer.ok
    assert answer.certificate.outputs.at_most <= 0.1 * scale


def test_columns_of_several_levels_are_reported(tmp_path: Path) -> None:
    rows = ROWS.set_axis(pd.MultiIndex.from_tuples([("u", "a"), ("u", "b"), ("v", "c")]), axis=1)
    answer = explain(lambda frame: score(frame["u"]), rows)
    assert answer.report(tmp_path / "page.html").stat().st_size > 10_000


def test_dask_columns_of_one_name_are_refused() -> None:
    rows = ROWS.set_axis(["a", "a", "c"], axis=1)
    with pytest.raises(InvalidInput, match="unique column names"):
        on_dask.explain(score, dd.from_pandas(rows, npartitions=2), target=ew.targets.at_most(0.4))
