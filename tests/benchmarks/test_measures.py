"""The paper's measures on cases small enough to compute by hand."""

from __future__ import annotations

import dataclasses
import doctest

import numpy as np
import pandas as pd
import pytest
from benchmarks.rivals import measures

import elsewise as ew
from elsewise.moves import Rows


@pytest.fixture(scope="module")
def explanation() -> ew.Explanation:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60), "c": ["x", "y"] * 30})
    score = ew.models.function(
        lambda frame: frame["a"] + frame["b"] + 1e-9 * (frame["c"] == "x"), smooth=True
    )
    return ew.explain(
        score, rows, target=ew.targets.shift(0.5), bounds=ew.Bounds(inputs=0.9, outputs=0.3)
    )


def moved(explanation: ew.Explanation, change: np.ndarray) -> ew.Explanation:
    """The same explanation with its counterfactual rows ``change`` away from the factual ones."""
    codes = explanation.problem.factual + change
    return dataclasses.replace(
        explanation, rows=Rows(codes, explanation.problem.outputs.values(codes))
    )


def measured(explanation: ew.Explanation) -> dict[str, float]:
    case = measures.PaperCase(explanation=explanation)
    return {name: metric.measure(case) for name, metric in measures.METRICS.items()}


def test_examples() -> None:
    assert not doctest.testmod(measures).failed


def test_published_ot_is_normalised_twice() -> None:
    assert measures.published_ot(4.0) == pytest.approx(5.0)


def test_dpc() -> None:
    # The published HELOC row of Discount on DNN: .278 / .202 * .981.
    assert measures.dpc(0.278, 0.202, 0.981) == pytest.approx(1.351, abs=1e-3)
    assert np.isnan(measures.dpc(1.0, 0.0, 1.0))


def test_ares_cost_by_both_definitions() -> None:
    before = np.array([[1.0, 0.0, np.nan], [2.0, 1.0, 3.0]])
    after = np.array([[7.0, 2.0, np.nan], [2.0, 1.0, -1.0]])
    units = measures.bin_units(before, after, np.array([2.0, 0.0, 1.0]))
    np.testing.assert_allclose(units, [[3.0, 1.0, 0.0], [0.0, 0.0, 4.0]])
    assert measures.ares_cost(units) == 4.0
    assert measures.published_ares_cost(units) == pytest.approx(np.sqrt(9 + 1 + 16))


def test_percentile_differences_feature_by_feature() -> None:
    before = np.arange(1.0, 21.0)[:, None] * [1.0, 100.0]
    after = before.copy()
    after[:3, 0] += 1.0  # the lowest 15 %: 1, 2, 3 of mean 2 become 2, 3, 4
    after[17:, 1] *= 1.5
    np.testing.assert_allclose(
        measures.percentile_differences(before, after), [25.0, 0.0, 0.0, 0.0, 25.0], atol=1e-9
    )


def test_percentile_ranges_may_cut_through_a_row() -> None:
    before = np.array([[1.0], [3.0]])
    after = np.array([[2.0], [3.0]])
    # Each row is half of the distribution: 0-15 and 15-30 lie in the first, 30-70 in both.
    np.testing.assert_allclose(
        measures.percentile_differences(before, after), [100.0, 100.0, 25.0, 0.0, 0.0]
    )


def test_percentile_differences_leave_out_what_has_no_percentage() -> None:
    before = np.array([[0.0, 1.0], [0.0, 1.0]])
    after = np.array([[5.0, 2.0], [5.0, 2.0]])
    np.testing.assert_allclose(measures.percentile_differences(before, after), 100.0)
    assert np.isnan(measures.percentile_differences(before[:, :1], after[:, :1])).all()
    missing = np.full((2, 1), np.nan)
    np.testing.assert_allclose(
        measures.percentile_differences(np.hstack([before, missing]), np.hstack([after, missing])),
        100.0,
    )


def test_pooled_percentile_differences_are_ruled_by_the_largest_column() -> None:
    before = np.arange(1.0, 21.0)[:, None] * [1.0, 1000.0]
    after = before * [2.0, 1.0]
    pooled = measures.pooled_percentile_differences(before, after)
    assert pooled[-1] == 0.0
    assert measures.percentile_differences(before, after)[-1] == pytest.approx(50.0)


def test_category_difference() -> None:
    before = np.array([[1, 0, 1, 0, 0], [0, 1, 1, 0, 0]])
    after = np.array([[0, 1, 1, 0, 0], [0, 1, 0, 0, 1]])
    assert measures.category_difference(before, after) == pytest.approx(4 / 10)
    assert np.isnan(measures.category_difference(np.empty((2, 0)), np.empty((2, 0))))


def test_numeric_shift() -> None:
    before = np.array([[2.0, 1.0, np.nan], [4.0, -1.0, 1.0]])
    after = np.array([[3.0, 1.0, np.nan], [7.0, -1.0, 2.0]])
    shift = measures.numeric_shift(before, after)
    np.testing.assert_allclose(shift[0], [200 / 3, np.nan, 100.0])
    np.testing.assert_allclose(shift[1], [100.0, 0.0, np.nan])


def test_measures_of_a_known_change(explanation: ew.Explanation) -> None:
    change = np.zeros((60, 3))
    change[:15, 0] = 0.1
    change[::2, 2] = 1.0  # every x becomes y
    row = measured(moved(explanation, change))
    a = explanation.problem.factual[:, 0]
    assert row["rows changed"] == pytest.approx((15 + 30 - 8) / 60)
    assert row["cells changed"] == pytest.approx(45 / 180)
    assert row["category difference"] == pytest.approx(0.5)
    width = np.ptp(a) / 10
    assert row["ares cost"] == pytest.approx((15 * 0.1 / width + 30) / 60)
    assert row["ares cost published"] == pytest.approx(np.sqrt(15 * (0.1 / width) ** 2 + 30))
    assert row["mean shift %"] == pytest.approx(100 * 0.1 * 15 / 60 / abs(a.mean()) / 2)


def test_a_swap_in_a_one_hot_group_costs_one() -> None:
    rng = np.random.default_rng(0)
    own = (np.arange(60) % 2).astype(float)
    rows = pd.DataFrame({"a": rng.normal(size=60), "own": own, "rent": 1 - own})
    schema = ew.Schema.infer(rows).one_hot_group("home", ["own", "rent"])
    explanation = ew.explain(
        ew.models.function(lambda frame: frame["a"] + 1e-9 * frame["own"], smooth=True),
        rows,
        target=ew.targets.shift(0.1),
        schema=schema,
        bounds=ew.Bounds(outputs=0.3),
    )
    flip = np.column_stack([np.zeros(60), 1 - 2 * own, 2 * own - 1])
    row = measured(moved(explanation, flip))
    assert row["ares cost"] == pytest.approx(1.0)
    assert row["category difference"] == pytest.approx(1.0)
    assert row["illegal"] == 0.0


def test_nothing_moved_costs_nothing(explanation: ew.Explanation) -> None:
    row = measured(moved(explanation, np.zeros(3)))
    zero = ["mmd", "ares cost", "ares cost published", "category difference", "ot published"]
    zero += ["mean shift %", "std shift %", *(name for name in row if name.startswith("% "))]
    np.testing.assert_allclose([row[name] for name in zero], 0.0, atol=1e-12)
    assert np.isnan(row["dpc"])
    ours = measured(explanation)
    assert ours["ot published"] == pytest.approx(1.25 * ours["ot"])
    assert ours["dpc"] == pytest.approx(ours["diversity"] / ours["ot"] * ours["validity"])


def test_measures_without_numbers() -> None:
    rows = pd.DataFrame({"c": ["x", "y"] * 20, "d": ["p", "q", "q", "p"] * 10})
    found = ew.explain(
        lambda frame: (frame["c"] == "x") * 1.0,
        rows,
        target=ew.targets.constant(1.0),
        bounds=ew.Bounds(outputs=0.5),
    )
    row = measured(found)
    assert np.isnan(row["% at 0-15"])
    assert np.isnan(row["mean shift %"])
    assert measures.PaperCase(explanation=found).numbers.size == 0
