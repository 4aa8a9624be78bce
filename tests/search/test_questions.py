"""Laws of questions answered row by row: nobody ends worse, nothing changes that need not."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import elsewise as ew
from elsewise import Verdict, targets
from elsewise.errors import InvalidInput

MODELS = {
    "linear": lambda: LogisticRegression(max_iter=500),
    "trees": lambda: HistGradientBoostingClassifier(max_iter=15, random_state=0),
}


def people(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a": rng.normal(size=n).round(2),
            "b": rng.integers(0, 9, n),
            "c": rng.normal(size=n),
            "idle": rng.normal(size=n),
            "x": rng.integers(0, 2, n),
        }
    )


def answer(frame: pd.DataFrame) -> np.ndarray:
    noise = np.sin(1e4 * frame["idle"])
    return np.asarray(frame["a"] - 0.4 * frame["b"] + frame["x"] + 0.5 * frame["c"] + noise > -0.9)


def fitted(kind: str, seed: int = 0) -> Any:
    train = people(400, seed)
    model = MODELS[kind]()
    return model.fit(train[["a", "b", "c", "x"]], answer(train))


def score(model: Any, frame: pd.DataFrame) -> np.ndarray:
    return np.asarray(model.predict_proba(frame[["a", "b", "c", "x"]])[:, 1])


def ask(model: Any, rows: pd.DataFrame, target: Any, **more: Any) -> ew.Explanation:
    scored = ew.models.function(lambda frame: score(model, frame), probability=True)
    more = {"certify": "in-sample", "background": people(400), **more}
    return ew.explain(scored, rows, target=target, **more)


def differs(explanation: ew.Explanation) -> pd.DataFrame:
    return explanation.factual != explanation.counterfactual


TARGETS = st.sampled_from(
    [
        targets.at_most(0.4),
        targets.at_least(0.6),
        targets.share(0.8),
        targets.share(0.2),
        targets.share(at_least=0.7, above=0.4),
        targets.share(at_most=0.3, below=0.6),
        targets.quantile(0.5, 0.6),
    ]
)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(MODELS)), st.integers(0, 10**6), TARGETS)
def test_the_laws_of_an_answer(kind: str, seed: int, target: Any) -> None:
    model, rows = fitted(kind), people(40, seed)
    found = ask(model, rows, target, seed=seed % 3)
    before, after = score(model, rows), score(model, found.counterfactual)
    question = found.certificate.reached.question
    wanted = question.wanted
    inside = wanted.contains(before[:, None])
    arrived = wanted.contains(after[:, None])
    moved = differs(found).any(axis=1).to_numpy()
    # A row inside never moves, and a row that moves arrives: nobody ends worse.
    assert not moved[inside].any()
    assert arrived[moved].all()
    # A share is reached to a row: one row less would fall short of it.
    if question.kind == "share" and found.ok and moved.any():
        assert arrived.sum() == np.ceil(question.share * len(rows) - 1e-9)
    # Every changed cell is needed: put back alone, the row falls short.
    for column in rows.columns:
        changed = differs(found)[column].to_numpy()
        if changed.any():
            back = found.counterfactual.copy()
            back[column] = rows[column]
            assert not wanted.contains(score(model, back)[changed][:, None]).any()
    assert not differs(found)["idle"].any()
    # What happens to a row depends on that row alone.
    alone = found.apply(rows.iloc[[3]])
    pd.testing.assert_frame_equal(alone, found.counterfactual.iloc[[3]], check_exact=True)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_where_a_donor_is_inside_every_row_arrives(seed: int, depth: int) -> None:
    """Random models: flat, jumping, with the wanted rows anywhere."""
    rng = np.random.default_rng(seed)
    train = people(60, seed)
    model = DecisionTreeClassifier(max_depth=depth, random_state=0)
    model.fit(train, rng.random(60) < 0.2)
    if not (model.predict_proba(train)[:, -1] >= 0.5).any() or len(model.classes_) < 2:
        return
    found = ew.explain(model, people(20, seed + 1), target=targets.at_least(0.5), background=train)
    assert found.ok
    assert (model.predict_proba(found.counterfactual)[:, 1] >= 0.5).all()


@pytest.mark.parametrize("coefficients", [(1.0, 0.5, -0.3), (0.2, 0.2, 0.2), (2.0, 0.0, 0.1)])
def test_linear_moves_are_the_shortest(coefficients: tuple[float, float, float]) -> None:
    """The distance to a half-space is the gap over the length of the normal."""
    weights = np.array(coefficients)
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    schema = ew.Schema.infer(rows)
    for name in rows:
        schema = schema.range(name, -1e3, 1e3)
    scales = np.array([schema[name].scale for name in rows])
    model = ew.models.function(
        lambda frame: 1.0 / (1.0 + np.exp(-frame.to_numpy() @ weights)),
        smooth=True,
        probability=True,
    )
    found = ew.explain(
        model,
        rows,
        target=targets.at_least(0.6),
        schema=schema,
        certify="in-sample",
        settings=ew.Settings(slack=0.0),
    )
    gap = np.maximum(np.log(0.6 / 0.4) - rows.to_numpy() @ weights, 0.0)
    best = gap / np.linalg.norm(weights * scales)
    moves = (found.counterfactual - rows).to_numpy() / scales
    paid = np.linalg.norm(moves, axis=1)
    assert found.ok
    assert (paid >= best - 1e-6).all()
    assert (paid**2).mean() <= 1.03**2 * (best**2).mean()


def test_small_trees_are_nearly_as_cheap_as_can_be() -> None:
    """Against all combinations of the whole numbers that the rows can take."""
    near = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        train = pd.DataFrame(rng.integers(0, 6, (200, 4)), columns=list("abcd"))
        wanted = train["a"] + (train["b"] > 2) * train["c"] - train["d"] > 2
        model = HistGradientBoostingClassifier(max_depth=3, max_iter=20, random_state=0)
        model.fit(train, wanted)
        rows = train[model.predict_proba(train)[:, 1] < 0.5].iloc[:30]
        found = ew.explain(
            model,
            rows,
            target=targets.at_least(0.5),
            background=train,
            certify="in-sample",
            settings=ew.Settings(slack=0.0),
        )
        grid = np.array(list(itertools.product(range(6), repeat=4)))
        good = grid[model.predict_proba(pd.DataFrame(grid, columns=list("abcd")))[:, 1] >= 0.5]
        scales = pd.concat([train]).std().to_numpy()
        away = (good[None, :, :] - rows.to_numpy()[:, None, :]) / scales
        best = (away**2).sum(axis=2).min(axis=1)
        paid = (((found.counterfactual - rows).to_numpy() / scales) ** 2).sum(axis=1)
        assert found.ok
        assert (paid >= best - 1e-9).all()
        near += paid.mean() <= 1.1 * best.mean()
    assert near >= 4


@pytest.mark.parametrize("target", [0.1, 0.3])
def test_a_mean_is_reached_and_not_passed_by_far(target: float) -> None:
    model, rows = fitted("linear"), people(80, 5)
    start = score(model, rows).mean()
    for amount in (target, -target):
        found = ask(model, rows, targets.shift(amount))
        moved = score(model, found.counterfactual) - score(model, rows)
        assert (np.sign(amount) * moved >= -1e-12).all()
        assert 1.0 <= moved.mean() / amount < 1.1
        same = ask(model, rows, targets.mean(start + amount))
        assert np.sign(amount) * (score(model, same.counterfactual).mean() - start) >= target - 1e-9


def test_equal_rows_move_together() -> None:
    rows = pd.concat([people(5)] * 8, ignore_index=True)
    found = ask(fitted("linear"), rows, targets.share(0.9))
    five = found.counterfactual.to_numpy().reshape(8, 5, -1)
    np.testing.assert_array_equal(five, np.broadcast_to(five[:1], five.shape))


MET = {
    "every": targets.at_most(1.0),
    "share": targets.share(at_least=0.1),
    "falling": targets.share(at_most=0.9),
    "mean": targets.shift(0.0),
    "constant": targets.constant(0.5, tolerance=0.5),
}


@pytest.mark.parametrize("name", MET)
@pytest.mark.parametrize("certify", ["in-sample", "held-out"])
def test_where_nothing_is_asked_nothing_moves(name: str, certify: str) -> None:
    found = ask(fitted("linear"), people(60), MET[name], certify=certify)
    assert found.status.verdict is Verdict.NOTHING_TO_DO
    assert found.ok
    assert not differs(found).any().any()


def test_bounds_keep_rows_from_moving_and_say_so() -> None:
    model, rows = fitted("linear"), people(80)
    free = ask(model, rows, targets.at_least(0.7))
    assert free.status.verdict is Verdict.DESCRIBED
    moved = differs(free).any(axis=1).sum()
    few = ask(model, rows, targets.at_least(0.7), bounds=ew.Bounds(rows_moved=0.1))
    assert differs(few).any(axis=1).sum() == 8 < moved
    assert (few.status.verdict, few.status.binding) == (Verdict.NOT_REACHED, "rows_moved")
    assert "too dear for the bounds" in str(few.status)
    near = ask(model, rows, targets.at_least(0.7), bounds=ew.Bounds(inputs=0.1))
    assert near.certificate.inputs.met
    assert near.status.binding == "inputs"
    one = ask(model, rows, targets.at_least(0.7), bounds=ew.Bounds(cells_per_row=1))
    assert differs(one).sum(axis=1).max() == 1


def test_a_held_out_share_is_certified_by_its_binomial_limit() -> None:
    model, rows = fitted("linear"), people(400, 3)
    found = ask(model, rows, targets.share(at_least=0.8), certify="held-out")
    status = found.status
    assert status.aimed > status.asked == 0.8
    reached = found.certificate.reached
    assert reached.limit < reached.reached
    assert (status.verdict is Verdict.CERTIFIED) == (reached.limit >= 0.8)
    assert status.sentence in repr(found)
    told = ask(model, rows, targets.at_least(0.6), certify="held-out")
    assert told.status.verdict is Verdict.REACHED
    assert told.ok
    assert ": 200 of 200 unseen rows (at least 98.5%)" in told.status.sentence
    asked = ask(
        model, rows, targets.at_least(0.6), certify="held-out", bounds=ew.Bounds(reach=0.95)
    )
    assert asked.status.verdict is Verdict.CERTIFIED


def test_a_whole_population_is_certified_exactly() -> None:
    found = ask(fitted("linear"), people(60), targets.share(0.75), certify="auto", population="all")
    assert found.status.verdict is Verdict.CERTIFIED
    assert found.status.reached == 0.75


def test_nothing_that_is_frozen_is_possible() -> None:
    rows = people(60)
    schema = ew.Schema.infer(rows).only("idle")
    found = ask(fitted("linear"), rows, targets.at_least(0.99), schema=schema)
    assert found.status.verdict in (Verdict.NOT_REACHED, Verdict.NOT_POSSIBLE)
    assert not differs(found).any().any()


def test_an_answer_is_saved_with_its_menu(tmp_path: Any) -> None:
    model = RandomForestClassifier(n_estimators=5, max_depth=3, random_state=0)
    train = people(300)
    model.fit(train, answer(train))
    rows = people(40, 7)
    for target in (targets.share(0.7), targets.mean(0.6)):
        found = ew.explain(model, rows, target=target, background=train)
        again = ew.load(found.save(tmp_path / "run"), model)
        assert again.status == found.status
        assert again.certificate == found.certificate
        new = people(12, 8)
        pd.testing.assert_frame_equal(again.apply(new), found.apply(new), check_exact=True)


def test_three_classes_rise_and_fall() -> None:
    train = people(300)
    label = np.select([train["a"] > 0.5, train["a"] < -0.5], ["high", "low"], "middle")
    model = HistGradientBoostingClassifier(max_iter=10).fit(train, label)
    rows = people(100, 4)
    for share in (0.1, 0.6):
        found = ew.explain(
            model,
            rows,
            target=targets.share(share, of="middle"),
            background=train,
            certify="in-sample",
        )
        reached = (model.predict(found.counterfactual) == "middle").mean()
        assert reached == pytest.approx(share, abs=0.011)
        assert found.ok
    every = ew.explain(model, rows, target=targets.label("high"), background=train)
    assert (model.predict(every.counterfactual) == "high").all()
    with pytest.raises(InvalidInput, match="one of the classes"):
        ew.explain(model, rows, target=targets.share(0.5, of="highest"))


REFUSED = {
    "per cent": (targets.at_most(40), None, "did you mean 0.4"),
    "reach of 1.5": (targets.at_most(0.4), {"reach": 1.5}, r"a share in \(0, 1\]"),
    "reach beside a share": (targets.share(0.5), {"reach": 0.9}, "bounds.reach"),
    "reach and a distance": (targets.at_most(0.4), {"reach": 0.9, "outputs": 0.1}, "bounds.reach"),
    "cells": (targets.at_most(0.4), {"cells_per_row": 0}, "a whole number"),
    "mean": (targets.mean(1.5), None, "a number the outputs can have"),
    "quantile": (targets.quantile(0.5, -0.1), None, "a number the outputs can have"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    target, bounds, message = REFUSED[name]
    with pytest.raises(InvalidInput, match=message):
        ask(fitted("linear"), people(30), target, bounds=ew.Bounds(**bounds) if bounds else None)


def test_the_first_of_two_classes_is_the_most_likely_where_the_output_is_low() -> None:
    rng = np.random.default_rng(5)
    rows = pd.DataFrame({"a": rng.normal(size=120), "b": rng.normal(size=120)})
    outcome = np.where(rows["a"] + rng.normal(size=120) > 0.5, "good", "bad")
    model = LogisticRegression().fit(rows, outcome)
    for wanted in ("bad", "good"):
        explanation = ew.explain(model, rows, target=targets.label(wanted), certify="in-sample")
        assert (model.predict(explanation.counterfactual) == wanted).all()
        already = model.predict(rows) == wanted
        assert explanation.counterfactual[already].equals(rows[already])
        assert f"of class {wanted}" in str(explanation.status)
    with pytest.raises(InvalidInput, match="of: expected one of"):
        ew.explain(model, rows, target=targets.share(0.9, of=2), certify="in-sample")


def test_a_mean_is_reached_where_the_model_is_flat() -> None:
    """Far from the cut-off a classifier has no slope and no single change gains anything."""
    rng = np.random.default_rng(0)
    group = rng.random(200) < 0.5
    rows = pd.DataFrame(rng.normal(np.where(group, 9.0, -9.0)[:, None], 1.0, (200, 6)))
    rows.columns = list("abcdef")
    score = ew.models.function(
        lambda frame: 1.0 / (1.0 + np.exp(-4.0 * frame.to_numpy().sum(axis=1))), smooth=True
    )
    answer = ew.explain(score, rows, target=ew.targets.mean(0.8), certify="in-sample", seed=0)
    assert answer.status.verdict is Verdict.DESCRIBED
    assert answer.outputs.mean() >= 0.8 - 1e-9
    assert not any("not read by" in notice for notice in answer.status.notices)


def test_effects_and_readouts_are_about_the_class_that_was_asked_for() -> None:
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(rng.normal(size=(150, 3)), columns=["low", "middle", "high"])
    labels = np.array(["x", "y", "z"])[rows.to_numpy().argmax(axis=1)]
    model = LogisticRegression().fit(rows, labels)
    answer = ew.explain(model, rows, target=ew.targets.share(0.6, of="z"), certify="in-sample")
    assert answer.main_output == 2
    effect = answer.changes()["effect"]
    assert effect["high"] > 0.0
    assert "mean predicted probability of class z" in str(answer.certificate)


def test_advice_names_no_bound_where_none_was_given() -> None:
    rows = pd.DataFrame({"a": np.linspace(0.0, 1.0, 60)})
    score = ew.models.function(lambda frame: frame["a"], smooth=True)
    answer = ew.explain(score, rows, target=ew.targets.mean(3.0), certify="in-sample")
    assert "bound" not in str(answer.status)
    assert "ask for less" in str(answer.status)


def test_a_mean_of_rows_none_of_which_may_move_is_not_possible() -> None:
    rows = people(50)
    schema = ew.Schema.infer(rows).rule("a > 0").rule("a <= 0")
    found = ask(fitted("linear"), rows, targets.shift(0.1), schema=schema)
    assert found.status.verdict is Verdict.NOT_POSSIBLE
    assert not differs(found).any(axis=None)
