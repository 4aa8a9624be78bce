"""Effects of the move on accuracy and fairness, against scikit-learn and counts by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    mean_absolute_error,
    roc_auc_score,
    root_mean_squared_error,
)

import elsewise as ew
from elsewise.analysis import effects
from elsewise.analysis._effects import BETWEEN as GAP
from elsewise.analysis._effects import _intervals_between
from elsewise.errors import InvalidInput

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(
    {
        "a": np.round(RNG.normal(size=120), 1),
        "b": RNG.normal(size=120),
        "sex": RNG.choice(["f", "m"], 120),
    },
    index=[f"r{k}" for k in range(120)],
)
LABELS = (ROWS["a"] + RNG.normal(size=120) > 0).astype(int)
ALL, BETWEEN = "(all rows)", "(between groups)"


@pytest.fixture(scope="module")
def classified() -> ew.Explanation:
    model = LogisticRegression().fit(ROWS[["a"]], LABELS)
    return ew.explain(
        ew.models.function(
            lambda frame: model.predict_proba(frame[["a"]])[:, 1], smooth=True, probability=True
        ),
        ROWS,
        target=ew.targets.at_least(0.45),
        schema=ew.Schema.infer(ROWS).freeze("sex"),
        bounds=ew.Bounds(outputs=0.1),
        certify="in-sample",
        settings=ew.Settings(iterations=10, draws=99),
    )


@pytest.fixture(scope="module")
def regressed() -> ew.Explanation:
    return ew.explain(
        ew.models.function(lambda frame: 2.0 * frame["a"] + frame["b"], smooth=True),
        ROWS[["a", "b"]],
        target=ew.targets.shift(1.0),
        bounds=ew.Bounds(outputs=0.3),
        certify="in-sample",
        settings=ew.Settings(iterations=10, draws=99),
    )


def sides(explanation: ew.Explanation) -> dict[str, np.ndarray]:
    return {"before": explanation.factual_outputs[:, 0], "after": explanation.outputs[:, 0]}


def test_measures_of_probabilities_are_those_of_scikit_learn(classified: ew.Explanation) -> None:
    table = effects(classified, LABELS, draws=9).table
    for side, outputs in sides(classified).items():
        expected = {
            "accuracy": accuracy_score(LABELS, outputs >= 0.5),
            "Brier score": brier_score_loss(LABELS, outputs),
            "AUC": roc_auc_score(LABELS, outputs),  # at_least makes ties
            "calibration in the large": outputs.mean() - LABELS.mean(),
            "mean output": outputs.mean(),
            "share at or above 0.5": np.mean(outputs >= 0.5),
        }
        assert list(table.index) == [(name, ALL) for name in table.index.get_level_values(0)]
        assert table[side].droplevel("group").to_dict() == pytest.approx(expected)
    assert np.allclose(table["difference"], table["after"] - table["before"])
    assert (table["rows"] == 120).all()


def test_measures_of_numbers_are_those_of_scikit_learn(regressed: ew.Explanation) -> None:
    observed = pd.Series(2.0 * ROWS["a"] + RNG.normal(size=120))
    table = effects(regressed, observed, draws=9).table.droplevel("group")
    for side, outputs in sides(regressed).items():
        expected = {
            "mean absolute error": mean_absolute_error(observed, outputs),
            "root mean squared error": root_mean_squared_error(observed, outputs),
            "mean error": np.mean(outputs - observed),
            "mean output": outputs.mean(),
        }
        assert table[side].to_dict() == pytest.approx(expected)


def test_fairness_by_hand(classified: ew.Explanation) -> None:
    table = effects(classified, LABELS, "sex", cutoff=0.6, draws=9).table
    women = (ROWS["sex"] == "f").to_numpy()
    true = LABELS.to_numpy() == 1
    for side, outputs in sides(classified).items():
        positive = outputs >= 0.6
        shares = [positive[women].mean(), positive[~women].mean()]
        rates = [positive[women & true].mean(), positive[~women & true].mean()]
        found = table[side]
        assert found["share at or above 0.6", "f"] == pytest.approx(shares[0])
        assert found["share at or above 0.6", "m"] == pytest.approx(shares[1])
        assert found["demographic parity difference", BETWEEN] == pytest.approx(
            abs(shares[0] - shares[1])
        )
        assert found["true positive rate", "f"] == pytest.approx(rates[0])
        assert found["equal opportunity difference", BETWEEN] == pytest.approx(
            abs(rates[0] - rates[1])
        )
        assert found["mean output", "m"] == pytest.approx(outputs[~women].mean())
    assert table["rows"]["true positive rate", "f"] == int((women & true).sum())
    assert table["rows"]["mean output", "f"] == int(women.sum())


def test_groups_without_a_cutoff_compare_means(regressed: ew.Explanation) -> None:
    groups = pd.cut(ROWS["b"], [-9, 0, 9]).astype(object)
    groups.iloc[:5] = None
    table = effects(regressed, groups=groups, draws=9).table
    names = groups.where(groups.notna(), "(missing)").map(str)
    for side, outputs in sides(regressed).items():
        means = pd.Series(outputs, ROWS.index).groupby(names).mean()
        assert table[side]["difference in mean output", BETWEEN] == pytest.approx(
            means.max() - means.min()
        )
        assert table[side]["mean output", "(missing)"] == pytest.approx(outputs[:5].mean())
    assert not any("parity" in name for name, _ in table.index)


@pytest.mark.slow
def test_intervals_are_percentiles_of_paired_resamples(classified: ew.Explanation) -> None:
    """Each resample is redone with scikit-learn on the repeated rows, from the same draws."""
    found = effects(classified, LABELS, draws=60, level=0.8).table.droplevel("group")
    rng = classified.problem.generator("effects")
    counts = rng.multinomial(120, np.full(120, 1.0 / 120), size=60)
    drawn = [np.repeat(np.arange(120), count) for count in counts]
    labels, (before, after) = LABELS.to_numpy(), sides(classified).values()
    for name, measure in (("AUC", roc_auc_score), ("Brier score", brier_score_loss)):
        values = [[measure(labels[r], side[r]) for r in drawn] for side in (before, after)]
        change = np.subtract(values[1], values[0])
        assert found.loc[name, ["low", "high"]].tolist() == pytest.approx(
            np.quantile(change, [0.1, 0.9]).tolist()
        )
        assert found.loc[name, ["before_low", "before_high"]].tolist() == pytest.approx(
            np.quantile(values[0], [0.1, 0.9]).tolist()
        )


def test_pairing_narrows_the_interval_of_the_difference(regressed: ew.Explanation) -> None:
    row = effects(regressed, draws=199).table.loc[("mean output", ALL)]
    assert row["high"] - row["low"] < 0.3 * (row["after_high"] - row["after_low"])
    assert row["low"] <= row["difference"] <= row["high"]


def test_batches_change_nothing(
    classified: ew.Explanation, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = effects(classified, LABELS, "sex", draws=7).table
    monkeypatch.setattr("elsewise.analysis._effects.BATCH", 240)
    pd.testing.assert_frame_equal(effects(classified, LABELS, "sex", draws=7).table, whole)


def test_missing_labels_are_left_out_and_series_are_matched_by_index(
    classified: ew.Explanation,
) -> None:
    partly = LABELS.astype(float).where(np.arange(120) < 80)
    table = effects(classified, partly.iloc[::-1], draws=9).table.droplevel("group")
    assert table["rows"]["AUC"] == 80
    assert table["rows"]["mean output"] == 120
    assert table["after"]["AUC"] == pytest.approx(
        roc_auc_score(LABELS[:80], classified.outputs[:80, 0])
    )


def test_one_class_has_no_auc(classified: ew.Explanation) -> None:
    table = effects(classified, np.ones(120), draws=9).table.droplevel("group")
    assert np.isnan(table["before"]["AUC"])
    assert np.isnan(table["low"]["AUC"])
    assert table["before"]["Brier score"] > 0


def test_the_answer_says_what_it_means(classified: ew.Explanation) -> None:
    found = classified.effects(LABELS, groups="sex", draws=9)
    assert "Labels are those of the factual rows" in repr(found)
    assert "Nothing here is causal" in repr(found)
    assert "demographic parity difference" in repr(found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": np.ones(3)}, "one value for each of the 120 explained rows"),
        ({"labels": LABELS + 1}, r"labels: .*0 or 1.*pass \(outcome =="),
        ({"labels": LABELS.map({0: "good", 1: "bad"})}, r"labels: .*'bad'"),
        ({"labels": np.full(120, np.nan)}, "labels: "),
        ({"labels": LABELS.reset_index(drop=True)}, r"labels.to_numpy\(\) if in order"),
        ({"groups": "age"}, "choose among a, b, sex"),
        ({"groups": np.arange(120)}, "pandas.cut"),
        ({"groups": np.ones(120)}, "2 to 20 groups"),
        ({"column": 1}, "output column from 0 to 0"),
        ({"draws": 0}, "at least 1 resample"),
        ({"level": 1.0}, r"level in \(0, 1\)"),
    ],
)
def test_what_does_not_fit_is_refused(
    classified: ew.Explanation, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        effects(classified, **arguments)


def gap_intervals(true: list[float], runs: int) -> tuple[float, float]:
    """How often the intervals of the gap and of its change hold; before equals after in law."""
    means, size = np.array(true), 60
    gap, covered, changed = np.ptp(means), 0, 0
    for seed in range(runs):
        rng = np.random.default_rng([seed, len(true)])
        values = rng.normal(size=(2, size, means.size)) + means
        weights = np.vstack([np.ones(size), rng.multinomial(size, np.full(size, 1 / size), 199)])
        under = np.stack([weights @ side / size for side in values], axis=1)
        (_, low, high), _, (_, least, most) = _intervals_between(under, 0.95)
        covered += low <= gap <= high
        changed += least <= 0.0 <= most
    return covered / runs, changed / runs


@pytest.mark.parametrize("true", [[0.0, 0.0], [0.0] * 5, [0.0, 0.0, 0.6]])
def test_intervals_of_gaps_between_groups_cover(true: list[float]) -> None:
    covered, changed = gap_intervals(true, 300)
    assert covered >= 0.91  # binomial(300, 0.95): 1 in 500 below
    assert changed >= 0.91


def test_a_gap_may_be_none_at_all(classified: ew.Explanation) -> None:
    labels = np.random.default_rng(5).choice(["p", "q", "r"], 120)
    row = effects(classified, groups=labels, draws=199).table.loc[
        ("demographic parity difference", GAP)
    ]
    assert row["before_low"] == 0.0
    assert row["low"] <= row["difference"] <= row["high"]
