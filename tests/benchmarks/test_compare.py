"""Every measure on cases small enough to compute by hand."""

from __future__ import annotations

import dataclasses
import doctest

import numpy as np
import pandas as pd
import pytest
from benchmarks.rivals import compare as module
from benchmarks.rivals import distances
from benchmarks.rivals.compare import METRICS, compare, explanation_ot, validity
from benchmarks.rivals.distances import (
    diversity,
    illegal_rows,
    median_bandwidth,
    mmd,
    nearest_distances,
    sliced_ot,
)
from scipy.spatial.distance import pdist

import elsewise as ew
import elsewise.errors
from elsewise._arrays import changed_cells
from elsewise.moves import Rows


@pytest.fixture(scope="module")
def explanation() -> ew.Explanation:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60), "c": ["x", "y"] * 30})
    score = ew.models.function(lambda frame: frame["a"] + frame["b"], smooth=True)
    return ew.explain(
        score, rows, target=ew.targets.shift(0.5), bounds=ew.Bounds(inputs=0.9, outputs=0.3)
    )


def moved(explanation: ew.Explanation, change: np.ndarray) -> ew.Explanation:
    """The same explanation with its counterfactual rows ``change`` away from the factual ones."""
    codes = explanation.problem.factual + change
    return dataclasses.replace(
        explanation, rows=Rows(codes, explanation.problem.outputs.values(codes))
    )


def test_examples() -> None:
    assert not any(doctest.testmod(part).failed for part in (module, distances))


# --- outputs --------------------------------------------------------------------------------------


def test_validity_counts_the_threshold_itself() -> None:
    outputs = np.array([[0.1], [0.5], [0.9], [0.49]])
    assert validity(outputs) == 0.5
    assert validity(outputs, threshold=0.9) == 0.25


# --- distances ------------------------------------------------------------------------------------


def test_ot_of_a_translation() -> None:
    x = np.random.default_rng(0).normal(size=(40, 3))
    # Every direction moves by theta_1 * 3, whose square averages 9 / d.
    assert sliced_ot(x, x + np.array([3.0, 0.0, 0.0])) == pytest.approx(3.0, rel=0.05)
    assert sliced_ot(x, x) == 0.0


def test_ot_of_one_dimension_is_trimmed_and_normalised_once() -> None:
    x = np.arange(10.0)[:, None]
    y = x.copy()
    y[:, 0] += 2.0
    y[9, 0] += 1000.0
    # The largest tenth is left out; on the rest every rank moved by 2.
    assert sliced_ot(x, y) == pytest.approx(4.0)


def test_mmd_of_two_points() -> None:
    x, y = np.array([[0.0]]), np.array([[2.0]])
    assert mmd(x, y) == pytest.approx(2.0 - 2.0 * np.exp(-2.0))
    assert mmd(x, y, sigma=2.0) == pytest.approx(2.0 - 2.0 * np.exp(-0.5))
    assert mmd(x, x) == 0.0


def test_mmd_has_the_floor_the_paper_sits_on() -> None:
    x = 100.0 * np.arange(52.0)[:, None]
    assert mmd(x, x + 50.0) == pytest.approx(2 / 52)


def test_mmd_in_chunks() -> None:
    x = np.random.default_rng(0).normal(size=(2100, 2))
    y = x[::-1] + 1.0
    kernel = np.exp(-((x[:, None, :] - y[None, :, :]) ** 2).sum(-1) / 2)
    within = np.exp(-((x[:, None, :] - x[None, :, :]) ** 2).sum(-1) / 2).mean()
    assert mmd(x, y) == pytest.approx(2 * within - 2 * kernel.mean())


def test_median_bandwidth() -> None:
    x, y = np.array([[0.0], [1.0]]), np.array([[3.0]])
    assert median_bandwidth(x, y) == 2.0  # of the distances 1, 2, 3
    assert median_bandwidth(np.zeros((3, 1)), np.zeros((3, 1))) == 1.0
    many = np.random.default_rng(0).normal(size=(3000, 1))
    expected = np.median(pdist(many[:1000]))
    assert median_bandwidth(many, many) == pytest.approx(expected, rel=0.1)


def test_diversity_is_the_mean_over_pairs() -> None:
    assert diversity(np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 0.0]])) == pytest.approx(10 / 3)
    assert diversity(np.zeros((1, 2))) == 0.0
    many = np.random.default_rng(0).normal(size=(1500, 2))
    assert diversity(many) == pytest.approx(pdist(many).mean())


def test_nearest_distances() -> None:
    background = np.array([[0.0, 0.0], [10.0, 0.0]])
    x = np.array([[3.0, 4.0], [10.0, 1.0], [0.0, 0.0]])
    np.testing.assert_allclose(nearest_distances(x, background), [5.0, 1.0, 0.0])


# --- changes --------------------------------------------------------------------------------------


def test_changed_cells() -> None:
    before = np.array([[1.0, np.nan, 3.0, np.nan]])
    after = np.array([[1.0, np.nan, 4.0, 0.0]])
    assert changed_cells(before, after).tolist() == [[False, False, True, True]]


# --- legality -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def schema() -> ew.Schema:
    frame = pd.DataFrame(
        {
            "age": [20, 60],
            "income": [1.5, 9.5],
            "job": ["a", "b"],
            "own": [1, 0],
            "rent": [0, 1],
            "sex": ["f", "m"],
        }
    )
    return (
        ew.Schema.infer(frame)
        .freeze("sex")
        .only_increase("age")
        .range("income", 1, 8)
        .allowed("job", ["b"])
        .one_hot_group("home", ["own", "rent"])
    )


@pytest.mark.parametrize(
    ("change", "illegal"),
    [
        ([0, 0, 0, 0, 0, 0], False),
        ([5, 0, 0, 0, 0, 0], False),
        ([0.5, 0, 0, 0, 0, 0], True),  # no whole number
        ([-1, 0, 0, 0, 0, 0], True),  # may only increase
        ([50, 0, 0, 0, 0, 0], True),  # never observed
        ([0, 6.5, 0, 0, 0, 0], False),
        ([0, 7.5, 0, 0, 0, 0], True),  # out of the declared range
        ([0, 0, 1, 0, 0, 0], False),
        ([0, 0, 0, -1, 1, 0], False),
        ([0, 0, 0, 0, 1, 0], True),  # two at once
        ([0, 0, 0, -1, 0, 0], True),  # none
        ([0, 0, 0, -0.5, 0.5, 0], True),  # half of each
        ([0, 0, 0, 0, 0, 1], True),  # frozen
        ([np.nan, 0, 0, 0, 0, 0], True),  # lost
    ],
)
def test_illegal_rows(schema: ew.Schema, change: list[float], illegal: bool) -> None:
    before = np.array([[30.0, 1.5, 0.0, 1.0, 0.0, 0.0]])
    assert illegal_rows(schema, before, before + change).tolist() == [illegal]


def test_a_level_that_is_not_allowed_is_illegal_to_move_to(schema: ew.Schema) -> None:
    before = np.array([[30.0, 1.5, 1.0, 1.0, 0.0, 0.0]])
    assert not illegal_rows(schema, before, before).any()
    assert illegal_rows(schema, before, before - [0, 0, 1, 0, 0, 0]).all()


def test_rules_and_unchanged_rows() -> None:
    frame = pd.DataFrame({"age": [20.5, 60.5], "years": [1.5, 70.5]})
    schema = ew.Schema.infer(frame).rule(lambda rows: rows["years"] < rows["age"])
    encoder = schema.encoder(frame)
    before = encoder.encode(frame)
    assert not illegal_rows(schema, before, before, encoder.obeys).any()
    # The first may move within the rule; the second breaks it as it is, and so has to stay.
    after = before + np.array([[0.0, 3.0], [0.0, -1.0]])
    assert illegal_rows(schema, before, after, encoder.obeys).tolist() == [False, True]
    after = before + np.array([[0.0, 30.0], [0.0, 0.0]])
    assert illegal_rows(schema, before, after, encoder.obeys).tolist() == [True, False]


# --- the table ------------------------------------------------------------------------------------


def test_compare_has_every_measure(explanation: ew.Explanation) -> None:
    still = moved(explanation, np.zeros(3))
    table = compare([explanation, still], names=["ours", "still"], threshold=0.0)
    assert list(table.columns) == list(METRICS)
    assert list(table.index) == ["ours", "still"]
    assert all(metric.description for metric in METRICS.values())
    ours, nothing = table.loc["ours"], table.loc["still"]
    assert ours["validity"] == np.mean(explanation.outputs[:, 0] >= 0.0)
    assert ours["ot"] == pytest.approx(explanation_ot(explanation))
    assert ours["illegal"] == 0.0
    assert ours["probability"] == explanation.certificate.probability
    assert ours["input limit"] == explanation.certificate.inputs.upper_limit
    assert ours["output limit"] == explanation.certificate.outputs.upper_limit
    assert ours["output distance"] == explanation.certificate.outputs.untrimmed
    zero = ["ot", "mmd median", "illegal", "rows changed", "cells changed", "nearest"]
    np.testing.assert_allclose(nothing[zero].astype(float), 0.0, atol=1e-12)


def test_compare_counts_what_changed(explanation: ew.Explanation) -> None:
    change = np.zeros((60, 3))
    change[:15, 0] = 0.1
    change[::2, 2] = 1.0  # every x becomes y
    row = compare([moved(explanation, change)]).iloc[0]
    assert row["rows changed"] == pytest.approx((15 + 30 - 8) / 60)
    assert row["cells changed"] == pytest.approx(45 / 180)


def test_compare_refuses_what_it_cannot_measure(explanation: ew.Explanation) -> None:
    with pytest.raises(ew.errors.InvalidInput, match="at least one Explanation, received none"):
        compare([])
    with pytest.raises(ew.errors.InvalidInput, match="received str"):
        compare(["run"])  # type: ignore[list-item]
    with pytest.raises(ew.errors.InvalidInput, match="1 names, one per explanation, received 2"):
        compare([explanation], names=["a", "b"])
