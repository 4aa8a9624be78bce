"""Numbers keep their decimals, and rows move no farther than they may."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elsewise as ew
from elsewise.errors import InvalidInput
from elsewise.features import Schema

SIZES = pd.CategoricalDtype(["S", "M", "L", "XL"], ordered=True)
FRAME = pd.DataFrame(
    {
        "price": [1.25, 9.5, 3.0],
        "rate": [0.1, 0.3, 1 / 3],
        "days": [3, 45, 20],
        "size": pd.Categorical(["S", "XL", "M"], dtype=SIZES),
        "job": ["a", "b", "a"],
        "own": [0, 1, 0],
        "rent": [1, 0, 1],
    }
)
SCHEMA = Schema.infer(FRAME).one_hot_group("home", ["own", "rent"])


@pytest.mark.parametrize(
    ("cells", "step"),
    [
        ([1.25, 9.5, 3.0], 0.01),
        ([0.1, 0.2, np.nan], 0.1),
        ([0.1, 0.1 + 0.2], None),
        ([1e-6, 1.0], 1e-6),
        ([1e-7, 1.0], None),
        ([1.0, 2.0], None),
        (np.array([0.37, 1.2], dtype=np.float32), 0.01),
        (np.array([0.37, 1.2], dtype=np.float32).astype(float), None),
    ],
)
def test_the_step_is_the_last_decimal(cells: object, step: float | None) -> None:
    assert Schema.infer(pd.DataFrame({"x": cells}))["x"].resolution == step


def test_decimals_of_frame_and_background_count() -> None:
    more = pd.DataFrame({"price": [1.125, 2.0]})
    assert Schema.infer(FRAME[["price"]], more)["price"].resolution == 0.001


@given(
    step=st.sampled_from([0.01, 0.05, 0.3, 2.5, 0.001, 7.0]),
    cells=st.lists(st.floats(-1e4, 1e4), min_size=2, max_size=8),
    wanted=st.floats(-2e4, 2e4),
    at_most=st.floats(8.0, 1e3),
)
def test_moved_cells_are_the_nearest_doubles_of_steps_within_reach(
    step: float, cells: list[float], wanted: float, at_most: float
) -> None:
    frame = pd.DataFrame({"x": [-1e4, 0.5, 1e4]})
    schema = Schema.infer(frame).resolution("x", step).at_most_by("x", at_most)
    codes = np.array(cells)[:, None]
    found = schema.legal(codes).legalize(np.full(codes.shape, wanted))
    same = schema.legal(codes).legalize(codes)
    assert same.tobytes() == codes.tobytes()
    exact = Fraction(repr(step))
    for old, new in zip(codes[:, 0], found[:, 0], strict=True):
        assert new == old or new == float(round(Fraction(new) / exact) * exact)
        assert abs(new - old) <= at_most * (1 + 1e-12) + 1e-11
        nearest = min(abs(wanted - old), at_most)
        assert abs(new - old) >= nearest - 1.5 * step or abs(new) > 1e4 - step


def test_a_sum_with_rounding_errors_costs_no_step() -> None:
    schema = Schema.infer(pd.DataFrame({"x": [0.0, 0.7, 2.5]})).at_most_by("x", 0.1)
    legal = schema.legal(np.array([[0.7]]))
    assert legal.legalize(np.array([[9.0]])).item() == 0.8
    assert legal.legalize(np.array([[0.0]])).item() == 0.6


def test_a_declared_end_is_never_left_by_rounding() -> None:
    schema = Schema.infer(FRAME).range("price", upper=8.499999999)
    assert schema.legal(np.array([[2.0, 0.1, 3, 0, 0, 0, 1]])).upper[0, 0] == 8.49


def test_levels_are_counted() -> None:
    legal = SCHEMA.at_most_by("size", 1).legal(np.array([[2.0, 0.1, 3, 0, 0, 0, 1]]))
    assert legal.upper[0, 3] == 1


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "no step": (lambda: SCHEMA.resolution("price", 0), "finite step above 0.*Schema.continuous"),
    "below 0": (lambda: SCHEMA.resolution("price", -0.1), "finite step above 0"),
    "no number": (lambda: SCHEMA.resolution("price", float("nan")), "finite step above 0"),
    "part of a whole": (lambda: SCHEMA.resolution("days", 0.5), "whole step above 0"),
    "of a category": (lambda: SCHEMA.resolution("job", 1), "a column of numbers"),
    "of a group": (lambda: SCHEMA.resolution("own", 1), "a column of numbers"),
    "between two steps": (
        lambda: SCHEMA.resolution("price", 5).range("price", 6, 9),
        "a range that holds a multiple of 5",
    ),
    "no move": (lambda: SCHEMA.at_most_by("days", 0), "freeze the column"),
    "less than a day": (lambda: SCHEMA.at_most_by("days", 0.5), "at least its step, 1"),
    "less than a cent": (lambda: SCHEMA.at_most_by("price", 0.001), "at least its step, 0.01"),
    "step past the move": (
        lambda: SCHEMA.at_most_by("days", 3).resolution("days", 5),
        "at least its step, 5, received 3",
    ),
    "unordered": (lambda: SCHEMA.at_most_by("job", 1), "a number or an ordered category"),
    "one-hot": (lambda: SCHEMA.at_most_by("own", 1), "in no one-hot group"),
    "derived": (
        lambda: SCHEMA.derived("price", "2 * days").at_most_by("price", 1),
        "a column that can move",
    ),
    "then derived": (
        lambda: SCHEMA.at_most_by("price", 1).derived("price", "2 * days"),
        "no direction or largest move",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_the_remedy(case: str) -> None:
    call, message = REFUSED[case]
    with pytest.raises(InvalidInput, match=message):
        call()


def test_continuous_takes_the_step_away() -> None:
    assert SCHEMA.continuous("price")["price"].resolution is None


def test_files_keep_steps_and_moves() -> None:
    schema = SCHEMA.resolution("price", 0.05).at_most_by("days", 30).continuous("rate")
    text = schema.to_toml()
    assert 'price = { kind = "number", resolution = 0.05, ' in text
    assert 'days = { kind = "integer", at_most_by = 30, ' in text
    assert Schema.from_toml(text) == schema
    # A line that leaves out what was measured takes the step of the rows, a whole one has its own.
    lines = 'format = 1\n[columns]\nprice = { kind = "number" }'
    assert Schema.from_toml(lines, FRAME[["price"]])["price"].resolution == 0.01
    with pytest.raises(InvalidInput, match="finite step above 0"):
        Schema.from_toml(text.replace("resolution = 0.05", "resolution = 0"))


def test_a_derived_number_is_rounded_to_its_step_if_it_is_given_one() -> None:
    rows = pd.DataFrame({"paid": [1.0, 2.0], "months": [3.0, 7.0], "rate": [0.33, 0.29]})
    schema = Schema.infer(rows).derived("rate", "paid / months").resolution("rate", 0.01)
    encoder = schema.encoder(rows)
    assert encoder.obeys(encoder.encode(rows)).all()
    assert encoder.decode([[2.0, 3.0, 0.33]])["rate"].item() == 0.67


def test_rows_come_back_with_the_decimals_they_had_and_may_be_moved_again(tmp_path: object) -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"price": rng.gamma(3, 20, 240).round(2), "a": rng.normal(size=240)})
    score = ew.models.function(lambda frame: frame["price"] / 99 + frame["a"], smooth=True)
    schema = Schema.infer(rows).at_most_by("price", 12.5)
    for target in ew.targets.at_least(0.9), ew.targets.shift(0.2):
        bounds = ew.Bounds(reach=0.5) if target == ew.targets.at_least(0.9) else None
        answer = ew.explain(score, rows, target=target, schema=schema, bounds=bounds, seed=0)
        for old, new in (
            (rows, answer.counterfactual),
            (2 * rows.round(1), answer.apply(2 * rows.round(1))),
        ):
            assert new["price"].equals(new["price"].round(2))
            assert (new["price"] - old["price"]).abs().max() <= 12.5 + 1e-9
            assert not new["price"].equals(old["price"])
