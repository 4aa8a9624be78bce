"""Stability: the same question again, with other seeds, trims, backgrounds and weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import elsewise as ew
from elsewise._explain import explain_request
from elsewise.analysis import from_counterfactuals
from elsewise.analysis._stability import _asked, _backgrounds, _rescaled, _reweighed
from elsewise.errors import InvalidInput, SavedRunError
from elsewise.transport import direction_blocks, sliced_squared_distance

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(
    {
        "a": RNG.normal(size=60),
        "b": RNG.normal(10.0, 4.0, 60),
        "home": RNG.choice(["own", "rent"], 60),
    }
)
PAST = pd.concat([ROWS, ROWS.assign(a=2.0 * ROWS["a"] + 1.0)], ignore_index=True)


def chance(frame: pd.DataFrame) -> np.ndarray:
    level = 1.5 * frame["a"] + 0.1 * (frame["b"] - 10.0) + 0.5 * (frame["home"] == "own")
    return np.asarray(1.0 / (1.0 + np.exp(-level)))


MODEL = ew.models.function(chance, smooth=True, probability=True)


@pytest.fixture(scope="module")
def explanation() -> ew.Explanation:
    return ew.explain(
        MODEL,
        ROWS,
        target=ew.targets.at_least(0.6),
        background=PAST,
        bounds=ew.Bounds(outputs=0.15),
        certify="in-sample",
        settings=ew.Settings(draws=99, iterations=3),
        seed=2,
    )


@pytest.fixture(scope="module")
def stability(explanation: ew.Explanation) -> ew.Stability:
    return explanation.stability(seeds=3)


def test_asked_again_unchanged_the_answer_is_the_same(explanation: ew.Explanation) -> None:
    again = explain_request(_asked(explanation), progress=False)
    pd.testing.assert_frame_equal(again.counterfactual, explanation.counterfactual)
    assert again.certificate == explanation.certificate


def test_the_spread_is_that_of_explanations_with_those_seeds(
    explanation: ew.Explanation, stability: ew.Stability
) -> None:
    others = [
        ew.explain(
            MODEL,
            ROWS,
            target=ew.targets.at_least(0.6),
            schema=explanation.problem.schema,
            background=PAST,
            bounds=ew.Bounds(outputs=0.15),
            certify="in-sample",
            settings=explanation.settings,
            seed=seed,
        )
        for seed in (2, 3, 4)
    ]
    embedding = explanation.problem.embedding
    theta = direction_blocks(embedding.size, explanation.problem.generator("stability directions"))
    fixed = embedding.embed(explanation.problem.factual)
    inputs = [
        np.sqrt(sliced_squared_distance(embedding.embed(e.rows.codes), fixed, theta, trim=0.05))
        for e in others
    ]
    expected = {
        "input distance": inputs,
        "output limit": [e.certificate.outputs.at_most for e in others],
        "share of a": [e.changes()["share"]["a"] for e in others],
    }
    for name, values in expected.items():
        found = stability.spread.loc[name]
        assert found["given"] == pytest.approx(values[0])
        assert found["lowest"] == pytest.approx(min(values))
        assert found["highest"] == pytest.approx(max(values))
        assert found["sd"] == pytest.approx(np.std(values, ddof=1))
    assert stability.ok == sum(e.ok for e in others)


def test_directions_alone_vary_little(stability: ew.Stability) -> None:
    redrawn = stability.spread.loc["input distance, directions redrawn"]
    assert redrawn["lowest"] <= redrawn["given"] <= redrawn["highest"]
    assert 0 < redrawn["sd"] < 0.05 * redrawn["given"]


def test_shares_add_up(stability: ew.Stability) -> None:
    shares = stability.spread[stability.spread.index.str.startswith("share of ")]
    assert set(shares.index) == {"share of a", "share of b", "share of home"}
    assert shares["given"].sum() == pytest.approx(1.0)


def test_one_table_has_every_change(explanation: ew.Explanation, stability: ew.Stability) -> None:
    table = stability.sensitivity
    assert table.index.tolist() == [
        "as given",
        "trim 0",
        "trim 0.1",
        "background, one half",
        "background, the other half",
        "weight of a times 0.5",
        "weight of a times 2",
    ]
    given = table.loc["as given"]
    assert given["shares_moved"] == 0.0
    assert given["inputs_limit"] == explanation.certificate.inputs.at_most
    assert (table["shares_moved"] >= 0).all()
    assert (table["shares_moved"] <= 1).all()
    # A dearer feature carries less of the distance, measured with the weights as given.
    dear, cheap = table.loc["weight of a times 2"], table.loc["weight of a times 0.5"]
    assert cheap["largest"] == given["largest"] == "a"
    assert cheap["share"] > given["share"]
    assert dear["largest"] != "a" or dear["share"] < given["share"]


def test_a_half_of_the_background_gives_scales_and_values(explanation: ew.Explanation) -> None:
    asked = _asked(explanation)
    one, other = _backgrounds(explanation, asked)
    assert len(one.background) + len(other.background) == len(PAST)
    frame = one.background
    assert one.schema["a"].scale == pytest.approx(frame["a"].std())
    assert one.schema["a"].center == pytest.approx(frame["a"].mean())
    assert one.schema["home"] == asked.schema["home"]


def test_clusters_are_asked_again_with_everything_else() -> None:
    """Without them other rows were held out, and limits counted copies as rows."""
    few = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), columns=["a", "b"])
    rows = few.loc[np.repeat(few.index, 10)].reset_index(drop=True)
    answer = ew.explain(
        ew.models.function(lambda frame: frame["a"] + 0.2 * frame["b"], smooth=True),
        rows,
        target=ew.targets.shift(0.5),
        clusters=np.arange(300) // 10,
        settings=ew.Settings(iterations=3, draws=99),
    )
    table = answer.stability(seeds=2, progress=False).sensitivity
    assert table.loc["trim 0", "inputs"] == table.loc["as given", "inputs"]


def test_scales_that_cannot_be_measured_stay() -> None:
    schema = ew.Schema.infer(ROWS)
    codes = np.full((4, 3), np.nan)
    codes[:, 1] = 7.0
    assert _rescaled(schema, codes) == schema


def test_a_group_is_weighed_as_one() -> None:
    frame = pd.DataFrame({"own": [1, 0, 0], "rent": [0, 1, 1], "x": [1.0, 2.0, 3.0]})
    schema = ew.Schema.infer(frame).one_hot_group("home", ["own", "rent"]).weight("own", 3.0)
    weighed = _reweighed(schema, "home", 2.0)
    assert [feature.weight for feature in weighed.features] == [6.0, 2.0, 1.0]


def test_the_record_says_it_in_a_sentence(stability: ew.Stability) -> None:
    text = repr(stability)
    low, high = stability.spread.loc["input distance", ["lowest", "highest"]]
    assert text.startswith(f"Over 3 seeds the input distance was {low:.3g} to {high:.3g} and the ")
    assert "answers were as asked, and a had" in text
    assert text.count("\n") == 0


def test_the_report_has_a_section_for_each_record(
    explanation: ew.Explanation, stability: ew.Stability, tmp_path: Path
) -> None:
    curve = explanation.frontier(points=3)
    page = explanation.report(
        tmp_path / "report.html",
        frontier=curve,
        stability=stability,
        effects=explanation.effects(groups="home", draws=19),
    ).read_text("utf-8")
    assert curve.reason in page
    assert f"{len(curve.table)} points; both distances are best small." in page
    assert repr(stability) in page
    assert "background, the other half" in page
    assert "demographic parity difference" in page
    assert "Nothing here is causal." in page


def test_a_whole_population_without_trim_is_asked_again_alike() -> None:
    explanation = ew.explain(
        MODEL,
        ROWS.iloc[:30],
        target=ew.targets.at_least(0.6),
        bounds=ew.Bounds(outputs=0.2, trim=0.0),
        population="all",
        settings=ew.Settings(draws=99, iterations=1),
    )
    found = explanation.stability(seeds=2)
    assert found.sensitivity.index[1:3].tolist() == ["trim 0.05", "trim 0.1"]
    assert found.spread.loc["input limit", "given"] == explanation.certificate.inputs.estimate


def test_what_cannot_be_asked_again_is_refused(explanation: ew.Explanation, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="seeds: expected at least 2"):
        explanation.stability(seeds=1)
    foreign = from_counterfactuals(MODEL, ROWS, ROWS, method="hand")
    with pytest.raises(InvalidInput, match="another method"):
        foreign.stability()
    loaded = ew.load(explanation.save(tmp_path / "run"))
    with pytest.raises(SavedRunError, match="load the run with"):
        loaded.stability()
    ruled = ew.explain(
        MODEL,
        ROWS,
        target=ew.targets.at_least(0.6),
        schema=ew.Schema.infer(ROWS).rule(lambda frame: frame["b"] < 99, "small"),
        settings=ew.Settings(draws=99, iterations=1),
    )
    with pytest.raises(SavedRunError, match="rules"):
        ew.load(ruled.save(tmp_path / "ruled"), model=MODEL).stability()
