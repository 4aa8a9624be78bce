"""Rows are told apart by the index of the frame: scores, rules and new rows in any order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import elsewise as ew
from elsewise.errors import InvalidInput, ModelError
from elsewise.features import Kind

RNG = np.random.default_rng(0)


def test_a_series_is_aligned_by_the_index_of_the_frame_and_by_no_other() -> None:
    """Sorted scores are put back; an id column that is 0..n-1 by accident reorders nothing."""
    frame = pd.DataFrame({"a": np.linspace(-2, 2, 40), "id": RNG.permutation(40)})
    encoder = ew.Schema.infer(frame).encoder(frame)
    codes = encoder.encode(frame)

    def by_id(rows: pd.DataFrame) -> pd.Series:
        return rows.set_index("id")["a"]

    for score in (by_id, lambda rows: rows["a"].sample(frac=1, random_state=0)):
        values = ew.models.bind(score, encoder).values(codes)
        np.testing.assert_array_equal(values[:, 0], frame["a"])


def test_masked_outputs_are_refused() -> None:
    frame = pd.DataFrame({"a": np.linspace(-2, 2, 40)})

    def masked(rows: pd.DataFrame) -> np.ndarray:
        return np.ma.masked_less(rows["a"].to_numpy(), 0.0)

    with pytest.raises(ModelError, match="some are masked"):
        ew.models.bind(masked, ew.Schema.infer(frame).encoder(frame))


def test_a_model_that_is_random_for_some_rows_is_caught() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=100), "b": rng.normal(size=100)})

    def shaky(rows: pd.DataFrame) -> np.ndarray:
        sure = 1.0 / (1.0 + np.exp(-rows["a"].to_numpy()))
        return np.where(rng.random(len(rows)) < 0.2, rng.random(len(rows)), sure)

    with pytest.raises(ModelError, match="of 100 returned rows when asked again"):
        ew.explain(
            shaky,
            frame,
            target=ew.targets.at_most(0.45),
            bounds=ew.Bounds(outputs=0.2),
            settings=ew.Settings(iterations=3, draws=39),
        )


def test_a_model_that_exits_is_an_error_of_the_model() -> None:
    frame = pd.DataFrame({"a": np.linspace(-2, 2, 40)})

    def leaves(rows: pd.DataFrame) -> np.ndarray:
        raise SystemExit(3)

    with pytest.raises(ModelError, match="SystemExit"):
        ew.models.bind(leaves, ew.Schema.infer(frame).encoder(frame))


@pytest.mark.parametrize("order", ["sorted", "own index"])
def test_rules_are_read_by_the_index_of_the_frame(order: str) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})

    def rule(rows: pd.DataFrame) -> pd.Series:
        if order == "own index":
            rows = rows.set_axis(
                rng.permutation(60) if len(rows) == 60 else range(len(rows), 0, -1)
            )
        return rows.sort_values("b")["a"] >= -1.0

    def explain() -> ew.Explanation:
        return ew.explain(
            lambda rows: 1.0 / (1.0 + np.exp(-rows["a"].to_numpy())),
            frame,
            schema=ew.Schema.infer(frame).rule(rule, "a from -1 on"),
            target=ew.targets.at_most(0.2),
            settings=ew.Settings(iterations=4, draws=39),
        )

    if order == "own index":
        with pytest.raises(InvalidInput, match="one with an index of its own"):
            explain()
    else:
        after = explain().counterfactual["a"]
        assert not ((after < -1.0) & (frame["a"] >= -1.0)).any()


def test_apply_refuses_cells_of_another_type_and_says_what_it_never_saw() -> None:
    frame = pd.DataFrame({"a": np.linspace(-2, 2, 40)})
    rows = frame.assign(code=pd.Series([f"0{k}" for k in range(40)]))
    schema = ew.Schema.infer(rows).freeze("code")
    fixed = replace(schema["code"], kind=Kind.FIXED, levels=(), observed=(0.0, 0.0), notice="text")
    schema = replace(schema, features=(*schema.features[:-1], fixed))
    saved = ew.explain(
        lambda rows: 1.0 / (1.0 + np.exp(-rows["a"].to_numpy())),
        rows,
        schema=schema,
        target=ew.targets.at_most(0.45),
        settings=ew.Settings(iterations=3, draws=39),
    )
    read_as_numbers = rows.assign(code=rows["code"].astype(int))
    with pytest.raises(InvalidInput, match=r"column 'code': expected .* as in the fit, received"):
        saved.apply(read_as_numbers)
    assert saved.apply(rows).attrs == {}
    far = rows.assign(a=rows["a"] + 100)
    assert saved.apply(far).attrs["notices"][0].startswith("a: 40 of 40 rows outside the fitted")
