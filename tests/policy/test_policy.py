"""Laws of few actions: legal, a map, saved and loaded, counted honestly, near the optimum."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

import elsewise as ew
from elsewise.certificate import share_limit
from elsewise.cli import main
from elsewise.errors import InvalidInput, SavedRunError
from elsewise.policy import Count
from elsewise.policy._policy import in_words
from elsewise.policy._rule import grow_rule, holds
from elsewise.policy._select import Caps, choose_actions, far_price, serve


def frame(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    own = rng.integers(0, 2, rows)
    return pd.DataFrame(
        {
            "amount": rng.integers(5, 80, rows) * 50,
            "months": rng.integers(6, 60, rows),
            "rate": rng.uniform(1.0, 9.0, rows).round(1),
            "savings": pd.Series(rng.choice(["low", "some", "high"], rows)).where(
                rng.random(rows) > 0.1
            ),
            "own": own,
            "rent": 1 - own,
            "age": rng.integers(20, 70, rows),
        }
    )


def risk(rows: pd.DataFrame) -> np.ndarray:
    level = rows["amount"] / 2000 + rows["months"] / 20 + rows["rate"] / 4 - rows["age"] / 40
    level = level - 1.5 * (rows["savings"] == "high") - 0.7 * rows["own"] - 3.2
    return np.asarray(1.0 / (1.0 + np.exp(-level)))


MODEL = ew.models.function(risk, smooth=True, probability=True)


def schema(rows: pd.DataFrame) -> ew.Schema:
    return (
        ew.Schema.infer(rows)
        .freeze("age")
        .one_hot_group("home", ["own", "rent"])
        .only_decrease("months")
        .rule(lambda table: table["months"] * 20 < table["amount"] + 1500, "long enough")
    )


def explained(
    target: object = None, certify: str = "held-out", **options: object
) -> ew.Explanation:
    rows = frame()
    return ew.explain(
        MODEL,
        rows,
        target=target or ew.targets.at_most(0.5),
        schema=options.pop("schema", schema(rows)),
        certify=certify,
        bounds=options.pop("bounds", None),
        settings=ew.Settings(iterations=8, draws=99),
        progress=False,
        **options,
    )


@pytest.fixture(scope="module")
def explanation() -> ew.Explanation:
    return explained()


@pytest.fixture(scope="module")
def policy(explanation: ew.Explanation) -> ew.Policy:
    return explanation.policy(4)


@pytest.fixture(scope="module", params=["choose", "rule"])
def either(request: pytest.FixtureRequest, explanation: ew.Explanation) -> ew.Policy:
    return explanation.policy(4, assign=request.param)


def changed(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    return ~((before == after) | (before.isna() & after.isna()))


def test_every_row_after_a_policy_is_legal_and_wanted_or_as_it_was(either: ew.Policy) -> None:
    rows = frame(400, seed=1)
    after = either.apply(rows)
    moved = changed(rows, after).any(axis=1)
    assert moved.any()
    assert not moved[risk(rows) <= 0.5].any()
    assert (risk(after)[moved] <= 0.5).all()
    assert after["age"].equals(rows["age"])
    assert (after["months"] <= rows["months"]).all()
    assert (after["own"] + after["rent"] == 1).all()
    assert (after["months"] * 20 < after["amount"] + 1500)[moved].all()
    assert after["savings"].isna().equals(rows["savings"].isna())
    seen = frame()
    assert after["amount"].between(seen["amount"].min(), seen["amount"].max())[moved].all()
    assert np.allclose(after["rate"], after["rate"].round(1), atol=1e-12)
    assert after.dtypes.equals(rows.dtypes)


def test_actions_are_few_and_short(either: ew.Policy) -> None:
    rows = frame(400, seed=1)
    after = either.apply(rows)
    cells = changed(rows, after).drop(columns="rent").sum(axis=1)
    assert len(either.lines) <= 4
    assert cells.max() <= 2
    assert len(either.table()) == len(either.lines)


def test_apply_gives_the_rows_that_were_counted(either: ew.Policy) -> None:
    rows = frame()
    after = either.apply(rows)
    moved = changed(rows, after).any(axis=1)
    assert int(moved.sum()) == either.explained.arriving == sum(one.rows for one in either.lines)
    assert either.explained.inside == int((risk(rows) <= 0.5).sum())
    before, mean = either.means
    assert mean == pytest.approx(risk(after).mean())
    assert before == pytest.approx(risk(rows).mean())


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 299), min_size=1, max_size=12))
def test_what_happens_to_a_row_depends_on_it_alone(index: list[int]) -> None:
    rows = frame(300, seed=2).iloc[index]
    assert CAPPED.apply(rows).equals(EVERYTHING.iloc[index])


CAPPED = explained().policy(3, budget=40.0)
EVERYTHING = CAPPED.apply(frame(300, seed=2))


def test_saved_and_loaded_is_the_same_map(tmp_path: Path) -> None:
    rows = frame()
    unruled = replace(schema(rows), rules=())
    made = explained(ew.targets.share(0.7, above=0.5), schema=unruled)
    for k, assign in enumerate(["choose", "rule"]):
        policy = made.policy(3, target=ew.targets.at_most(0.45), assign=assign, rows_moved=0.5)
        place = policy.save(tmp_path / str(k))
        loaded = ew.Policy.load(place, model=MODEL)
        assert str(loaded) == str(policy)
        fresh = frame(200, seed=4)
        assert loaded.apply(fresh).equals(policy.apply(fresh))
        assert str(ew.Policy.load(place)) == str(policy)
        with pytest.raises(InvalidInput, match="model"):
            ew.Policy.load(place).apply(fresh)
        with pytest.raises(InvalidInput, match="loaded"):
            loaded.curve()
    with pytest.raises(SavedRunError, match="outputs on the saved rows differ"):
        ew.Policy.load(place, model=lambda table: np.full(len(table), 0.3))
    (place / "policy.json").write_text("{}")
    with pytest.raises(SavedRunError, match="cannot be read"):
        ew.Policy.load(place)
    other = explained(schema=unruled, certify="in-sample", seed=1).policy(1)
    (other.save(tmp_path / "other") / "policy.json").replace(place / "policy.json")
    assert ew.Policy.load(place).lines == other.lines
    with pytest.raises(SavedRunError, match="received none"):
        ew.Policy.load(tmp_path / "no")


def test_same_seed_same_policy(explanation: ew.Explanation, policy: ew.Policy) -> None:
    assert str(explanation.policy(4)) == str(policy)


def test_a_memo_says_what_the_policy_does(policy: ew.Policy) -> None:
    memo = str(policy)
    said, count = " ".join(memo.split()), policy.explained
    assert said.startswith(f"Not reached: {len(policy.lines)} actions take the share of rows ")
    for place, line in enumerate(policy.lines, start=1):
        assert f"\n{place}. {line.what[:1].upper()}{line.what[1:]}: {line.rows} rows, mean" in memo
    assert f"Of the {count.needing} explained rows that are not there yet, {count.arriving}" in said
    assert f"none of the actions is enough for {count.needing - count.helped}." in said
    assert count.helped == count.arriving
    assert policy.unseen is not None
    assert policy.unseen.rows == 150
    after, lower = policy.unseen.share, policy.unseen.limits(0.95)[1]
    assert f" to {100 * after:.3g}%, counted on 150 rows kept aside" in said
    assert f"these: at least {100 * lower:.3g}% (95% confidence). Asked: every row." in said
    assert max(map(len, memo.splitlines())) < 120


def test_a_memo_says_why_rows_stay_and_what_a_falling_share_comes_to() -> None:
    made = explained(ew.targets.share(0.1, above=0.5), certify="in-sample")
    asked = made.policy(2)
    said, count = " ".join(str(asked).split()), asked.explained
    assert count.inside + count.arriving == 270  # no row more than it takes
    assert f"to {100 * (1.0 - count.share):.3g}%, counted on the 300 rows" in said
    assert "Asked: at most 10%." in said
    assert f"{count.helped - count.arriving} could but stay, because cheaper rows" in said
    budget = " ".join(str(made.policy(2, target=ew.targets.at_most(0.5), budget=9.0)).split())
    assert "at most 9 may be spent" in budget


@pytest.mark.parametrize(("hits", "size"), [(0, 10), (3, 10), (10, 10), (97, 100)])
def test_limits_are_clopper_and_pearsons(hits: int, size: int) -> None:
    oracle = binomtest(hits, size, alternative="greater").proportion_ci(0.95, "exact").low
    assert share_limit(hits, size, 0.95) == pytest.approx(oracle)
    count = Count(rows=200, inside=100, needing=size, helped=hits, arriving=hits, cost=1.0)
    assert count.limits(0.95)[0] == pytest.approx(oracle)


def test_verdicts(explanation: ew.Explanation) -> None:
    assert explanation.policy(4, reach=0.6).verdict == "nothing to do"
    enough = explanation.policy(4, reach=0.85)
    assert enough.verdict == "certified"
    assert enough.explained.arriving <= explanation.policy(4).explained.arriving
    little = explanation.policy(1, rows_moved=0.05)
    assert little.verdict == "not found in the budget"
    assert little.explained.arriving <= 0.05 * 300
    assert explanation.policy(4, target=ew.targets.at_most(0.999)).verdict == "nothing to do"
    inside = explained(certify="in-sample").policy(4, reach=0.9)
    assert inside.verdict == "described"
    assert inside.unseen is None


def test_nobody_can_be_moved() -> None:
    rows = frame()
    frozen = ew.Schema.infer(rows).only("rate").range("rate", 1.0, 9.0)
    explanation = explained(ew.targets.at_most(0.5), schema=frozen)
    stuck = explanation.policy(4, target=ew.targets.at_most(1e-6))
    assert stuck.verdict == "not possible"
    assert "free more columns" in str(stuck)
    assert not stuck.lines
    assert not stuck.ok
    assert stuck.apply(rows).equals(rows)
    page = ew.report.render(explanation, policy=stuck)
    assert "No action helps anybody, because no legal action that was tried" in page


def test_a_share_serves_as_many_rows_as_it_needs_cheapest_first() -> None:
    rows = frame()
    kept = explained(ew.targets.share(0.6, above=0.5), certify="in-sample")
    policy = kept.policy(4)
    full = kept.policy(4, target=ew.targets.at_least(0.5))
    wanted = int(np.ceil(0.6 * len(rows)))
    count = policy.explained
    assert count.inside + count.arriving == wanted
    assert count.arriving < full.explained.arriving
    assert policy.price < np.inf
    assert policy.verdict == "described"


@pytest.mark.parametrize("budget", [5.0, 12.0, 24.0])
def test_budgets_hold(budget: float) -> None:
    kept = explained(certify="in-sample")
    policy = kept.policy(3, budget=budget, cost_per_row=3.0)
    assert policy.explained.cost <= budget
    assert policy.explained.arriving > 0
    assert max(line.cost for line in policy.lines) <= 3.0
    # The next row would break it: cheapest rows come first.
    more = kept.policy(3, budget=2 * budget, cost_per_row=3.0)
    assert more.explained.arriving > policy.explained.arriving


def test_prices() -> None:
    rows = frame()
    priced = schema(rows)
    for name, price in {
        "amount": 0.01,
        "months": 5,
        "rate": 2,
        "savings": 50,
        "own": 8,
        "rent": 0,
    }.items():
        priced = priced.cost(name, per_unit=price)
    made = explained(schema=priced)
    policy = made.policy(3)

    def cost(before: pd.DataFrame, after: pd.DataFrame) -> np.ndarray:
        swap = (before["own"] != after["own"]) * 4.0
        told = {"amount": 0.01, "months": 5.0, "rate": 2.0}
        moves = sum(price * (after[name] - before[name]).abs() for name, price in told.items())
        new = changed(before[["savings"]], after[["savings"]])["savings"]
        return np.asarray(moves + swap + 50.0 * new)

    after = policy.apply(rows)
    assert cost(rows, after).sum() == pytest.approx(policy.explained.cost)
    same = made.policy(3, cost=cost)
    assert [line.what for line in same.lines] == [line.what for line in policy.lines]
    assert "currency" in str(policy)


def test_a_cost_function_is_needed_again_after_loading(tmp_path: Path) -> None:
    rows = frame()
    made = explained(schema=replace(schema(rows), rules=()))

    def flat(before: pd.DataFrame, after: pd.DataFrame) -> np.ndarray:
        return np.ones(len(before))

    place = made.policy(2, cost=flat).save(tmp_path / "p")
    with pytest.raises(SavedRunError, match="cost function"):
        ew.Policy.load(place, model=MODEL).apply(rows)
    assert len(ew.Policy.load(place, model=MODEL, cost=flat).apply(rows)) == len(rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k: expected a whole number >= 1"),
        ({"k": True}, "k: expected"),
        ({"cells": 0}, "cells: expected"),
        ({"assign": "lottery"}, "'choose' or 'rule'"),
        ({"budget": 0}, "budget: expected a number above 0"),
        ({"budget": 1e-9}, "cheapest action"),
        ({"cost_per_row": 1e-9}, "cheapest action"),
        ({"rows_moved": 1.5}, r"share in \(0, 1\]"),
        ({"reach": 0.0}, r"share in \(0, 1\]"),
        ({"cost": {"amount": -1}}, "cost of 'amount'"),
        ({"cost": {"amount": 1}}, "none for 'months'"),
        ({"cost": {"no": 1}}, "a column of the schema"),
        ({"cost": lambda before, after: -np.ones(len(before))}, "costs >= 0"),
        ({"cost": lambda before, after: 1.0}, "one per row"),
        ({"target": ew.targets.shift(0.1)}, "at_most"),
        ({"target": ew.targets.mean(0.3)}, "at_most"),
        ({"target": 0.5}, "target: expected at_least, .*received 0.5"),
    ],
)
def test_refused(explanation: ew.Explanation, options: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        explanation.policy(**options)


def test_a_schema_refuses_a_negative_cost() -> None:
    with pytest.raises(InvalidInput, match="per_unit"):
        ew.Schema.infer(frame()).cost("amount", per_unit=-1)
    priced = ew.Schema.infer(frame()).cost("amount", per_unit=2)
    assert ew.Schema.from_toml(priced.to_toml()) == priced


def test_the_curve_rises(policy: ew.Policy) -> None:
    by_k, by_budget = policy.curve(5), policy.curve(5, by="budget")
    assert by_k["k"].tolist() == [1, 2, 3, 4, 5]
    assert by_k["reach_fit"].iloc[-1] >= by_k["reach_fit"].iloc[0]
    assert (by_k["limit"] <= by_k["reach"]).all()
    assert by_budget["reach_fit"].is_monotonic_increasing
    with pytest.raises(InvalidInput, match="'k' or 'budget'"):
        policy.curve(by="luck")
    policy.plot(by="k").figure.clear()
    policy.plot(by="budget").figure.clear()


def test_the_report_opens_with_the_policy(tmp_path: Path) -> None:
    explanation = explained(bounds=ew.Bounds(outputs=0.1))
    policy = explanation.policy(3)
    page = explanation.report(tmp_path / "r.html", policy=policy).read_text("utf-8")
    assert page.index("In a few actions") < page.index("What the model answers")
    assert re.search(r"By th\w+ (\d+ )?actions? the mean [\w ]+ goes from", page)
    distances = policy.certificate()
    assert distances.inputs.estimate > 0


def exact_value(costs: np.ndarray, k: int, far: float) -> float:
    """Return the optimal sum of min(far, cheapest of k actions), by integer programming."""
    m, count = costs.shape
    row, column = np.nonzero(np.isfinite(costs))
    size = row.size
    ones, place = np.ones(size), np.arange(size)
    open_first = sparse.hstack(
        [-sparse.csr_array((ones, (place, column)), shape=(size, count)), sparse.eye_array(size)]
    )
    once = sparse.hstack(
        [sparse.csr_array((m, count)), sparse.csr_array((ones, (row, place)), shape=(m, size))]
    )
    few = np.concatenate([np.ones(count), np.zeros(size)])[None]
    found = milp(
        np.concatenate([np.zeros(count), costs[row, column] - far]),
        constraints=[
            LinearConstraint(open_first, -np.inf, 0),
            LinearConstraint(once, -np.inf, 1),
            LinearConstraint(few, 0, k),
        ],
        bounds=Bounds(0, 1),
        integrality=np.concatenate([np.ones(count), np.zeros(size)]),
    )
    return float(found.fun) + far * m


def planted(m: int, count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows, actions = rng.normal(size=(m, 3)), 1.5 * rng.normal(size=(count, 3))
    arrives = rows @ actions.T > -0.3 + 0.3 * rng.normal(size=(m, count))
    costs = (actions**2).sum(axis=1) * np.exp(0.3 * rng.normal(size=(m, count)))
    return np.where(arrives, costs, np.inf)


@pytest.mark.parametrize("seed", range(4))
def test_greedy_with_exchanges_is_near_the_optimum(seed: int) -> None:
    costs = planted(60, 60, seed)
    far = far_price(costs)
    chosen = choose_actions(costs, 3, Caps(rows=60, total=60))
    value = np.minimum(costs[:, chosen].min(axis=1), far).sum()
    assert value <= 1.03 * exact_value(costs, 3, far)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_a_share_is_served_at_the_least_cost_there_is(seed: int, share: float) -> None:
    costs, wanted = planted(40, 25, seed), round(40 * share)

    def paid(chosen: tuple[int, ...]) -> float:
        return float(np.sort(costs[:, chosen].min(axis=1))[:wanted].sum())

    for k in (1, 2):
        chosen = choose_actions(costs, k, Caps(rows=40, total=40, share=share))
        least = min(map(paid, combinations(range(25), k)))
        assert paid(tuple(chosen)) <= (1.0 if k == 1 else 1.03) * least * (1 + 1e-12)


def test_a_share_is_served_at_the_least_cost_where_no_price_tried_says_so() -> None:
    wide = np.where(np.arange(100) < 20, 0.3, 2.0)
    narrow = np.where(np.arange(100) >= 60, 1.1, np.inf)
    costs = np.column_stack([wide, narrow])
    assert choose_actions(costs, 1, Caps(rows=100, total=100, share=0.4)).tolist() == [1]
    assert choose_actions(costs, 1, Caps(rows=100, total=100, share=0.5)).tolist() == [0]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5), st.floats(0.1, 30.0))
def test_what_is_served_is_within_the_budget(seed: int, k: int, budget: float) -> None:
    costs = planted(40, 20, seed)
    ties = np.random.default_rng(seed).random(40)
    caps = Caps(rows=40, total=40, budget=budget)
    best = costs[:, choose_actions(costs, k, caps)].min(axis=1, initial=np.inf)
    price, tie = serve(best, ties, caps)
    served = np.isfinite(best) & ((best < price) | ((best == price) & (ties <= tie)))
    assert best[served].sum() <= budget * (1 + 1e-9)
    left = best[~served & np.isfinite(best)]
    assert not left.size or best[served].sum() + left.min() > budget


def best_two_questions(codes: np.ndarray, capped: np.ndarray, least: int) -> float:
    """Return the least sum of three leaves, by trying every pair of thresholds."""

    def cuts(rows: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        asked = [(j, v) for j in range(codes.shape[1]) for v in np.unique(codes[rows, j])[:-1]]
        sides = [(rows[codes[rows, j] <= v], rows[codes[rows, j] > v]) for j, v in asked]
        return [pair for pair in sides if min(map(len, pair)) >= least]

    def paid(rows: np.ndarray) -> float:
        return float(capped[rows].sum(axis=0).min())

    found = [paid(np.arange(len(codes)))]
    for yes, no in cuts(np.arange(len(codes))):
        found.append(paid(yes) + paid(no))
        for kept, split in ((yes, no), (no, yes)):
            found += [paid(kept) + paid(a) + paid(b) for a, b in cuts(split)]
    return min(found)


@pytest.mark.parametrize("seed", range(6))
def test_a_rule_of_three_lines_is_near_the_best_one_there_is(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame({name: rng.integers(0, 8, 60) for name in "abc"})
    named = ew.Schema.infer(rows)
    codes = named.encoder(rows).encode(rows)
    costs = planted(60, 20, seed)
    capped = np.minimum(costs, far_price(costs))
    leaves = grow_rule(named, codes, costs, 3)
    served = [(holds(rule, codes), column) for rule, column in leaves]
    paid = sum(capped[kept, column].sum() for kept, column in served)
    outside = ~np.any([kept for kept, _ in served], axis=0)
    paid += far_price(costs) * outside.sum()
    assert paid <= 1.02 * best_two_questions(codes, capped, 10)


def test_the_curve_of_a_rule_is_that_of_its_rules(explanation: ew.Explanation) -> None:
    ruled = explanation.policy(3, assign="rule")
    chosen = explanation.policy(3)
    assert (ruled.curve(3)["reach_fit"] <= chosen.curve(3)["reach_fit"] + 1e-12).all()
    assert ruled.curve(3)["mean_cost"].iloc[-1] == pytest.approx(ruled.unseen.mean_cost)


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([("set", "home to own")], "set home to own"),
        (
            [("set", "home to own"), ("set", "savings to high")],
            "set home to own and savings to high",
        ),
        (
            [("lower", "rate by 1"), None, ("set", "home to own"), ("set", "b to 2")],
            "lower rate by 1, set home to own and b to 2",
        ),
    ],
)
def test_a_verb_is_not_said_twice(edits: list, said: str) -> None:
    assert in_words(edits) == said


def test_a_memo_of_one_row_and_of_a_budget_not_spent() -> None:
    rows = pd.DataFrame({"debt": [*range(7), 8], "age": [20, 50, 70, 30] * 2})
    made = ew.explain(
        lambda table: table["debt"] / 12,
        rows,
        target=ew.targets.at_most(0.5),
        schema=ew.Schema.infer(rows).freeze("age"),
        certify="in-sample",
    )
    said = " ".join(str(made.policy(1)).split())
    assert "1. Set debt to 6: 1 row, cost " in said or "1. Lower debt by 2: 1 row, cost " in said
    assert "1 is not there yet: 1 takes the cheapest action that brings it there." in said
    short = " ".join(str(made.policy(1, budget=50.0)).split())
    assert "had to keep to this: at most 50 may be spent." in short


def test_a_policy_asks_for_a_class_by_its_name() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.normal(size=90).round(1), "b": rng.normal(size=90).round(1)})
    classes = np.array(["low", "middle", "high"])[np.digitize(rows["a"] + rows["b"], [-0.5, 0.5])]
    model = LogisticRegression().fit(rows, classes)
    made = ew.explain(
        model, rows, target=ew.targets.label("high"), certify="in-sample", progress=False
    )
    policy = made.policy(2, target=ew.targets.label("low"))
    after, moved = policy.apply(rows), policy.explained.arriving
    assert moved > 0
    assert (model.predict(after) == "low").sum() == policy.explained.inside + moved


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6))
def test_every_row_falls_under_one_rule_at_most(seed: int, most: int) -> None:
    rows = frame(120, seed)
    named = schema(rows)
    codes = named.encoder(rows).encode(rows)
    leaves = grow_rule(named, codes, planted(120, 15, seed), most)
    assert len(leaves) <= most
    fresh = named.encoder(rows).encode(frame(300, seed).tail(120))
    for table in (codes, fresh):
        assert sum(holds(rule, table).astype(int) for rule, _ in leaves).max() <= 1


def test_groups_say_how_much_of_the_effect_they_explain() -> None:
    rows = pd.DataFrame({"debt": np.linspace(1.0, 9.0, 60), "age": [20, 70] * 30})
    score = ew.models.function(lambda table: table["debt"] * (table["age"] < 60), smooth=True)
    found = ew.explain(
        score,
        rows,
        target=ew.targets.shift(-1.0),
        schema=ew.Schema.infer(rows).freeze("age"),
        bounds=ew.Bounds(outputs=0.9),
        certify="in-sample",
    ).groups(2)
    assert found.effect is not None
    assert 0.5 < found.effect < 1.5
    assert "the mean output would change by" in str(found)


def test_the_command_makes_a_policy_and_prints_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policy_model.py").write_text(
        "def score(rows):\n    return rows['debt'] / 12\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    rows = pd.DataFrame({"debt": np.arange(60) % 12, "age": [20, 50, 70] * 20})
    rows.to_csv("rows.csv", index=False)

    def run(*arguments: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as end:
            main(arguments)
        return int(end.value.code), capsys.readouterr().out

    asked = ["--model", "policy_model:score", "--target", "at_most:0.5", "--freeze", "age"]
    asked += ["--bounds", "outputs=0.05"]
    run("explain", "rows.csv", *asked, "--quiet")
    assert run("policy", "run")[0] == 2
    code, said = run("policy", "run", "--k", "1", "--model", "policy_model:score")
    assert code == 0
    assert "1. Set debt to 6" in said
    assert run("policy", "run")[1] == said
    assert '"what": "set debt to 6"' in run("policy", "run", "--json")[1]
    run("report", "run")
    assert "In a few actions" in Path("run/report.html").read_text("utf-8")


def test_rows_of_a_cluster_count_as_one() -> None:
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"a": rng.normal(size=80), "b": rng.normal(size=80)})
    rows = people.loc[people.index.repeat(5)].reset_index(drop=True)
    model, target = (lambda frame: frame["a"]), ew.targets.share(0.8, above=0.0)
    customers = np.repeat(np.arange(80), 5)
    found = ew.explain(model, rows, target=target, clusters=customers, seed=0).policy(k=2)
    assert found.unseen is not None
    assert found.unseen.alike == pytest.approx(5.0, rel=0.2)
    # Five copies of a customer say as much as one: the limit is that of 40 rows, not of 200.
    count = found.unseen
    assert count.limits(0.95)[1] == pytest.approx(
        share_limit((count.inside + count.arriving) / count.alike, count.rows / count.alike, 0.95)
    )
    assert count.limits(0.95)[1] < share_limit(count.inside + count.arriving, count.rows, 0.95)
