"""Differences between two samples: additivity, symmetry, units, nulls, coverage, bad input."""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

import elsewise as ew
from elsewise._difference._attribution import _unmatched, attribute, coalitions
from elsewise._difference._evidence import covariance, critical_value, permutation_test
from elsewise._difference._matching import Plan, match
from elsewise._difference._samples import Functional, Samples
from elsewise.cli import main
from elsewise.errors import ElsewiseError, InvalidInput, SavedRunError

mpl.use("Agg")

FUNCTIONALS = ["mean", ("share", 0.5), ("quantile", 0.9)]


def frame(size: int, seed: int, shift: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "lead": rng.gamma(2.0, 20.0, size) + shift,
            "price": rng.normal(100.0, 20.0, size),
            "segment": rng.choice(["a", "b", "c"], size),
            "own": 0,
            "rent": 0,
            "children": rng.integers(0, 3, size),
        }
    )
    rows["own"] = rng.integers(0, 2, size)
    rows["rent"] = 1 - rows["own"]
    rows.loc[rng.random(size) < 0.05, "price"] = np.nan
    return rows


def model(rows: pd.DataFrame) -> Any:
    z = rows["lead"] / 40 - 1.5 + 0.5 * (rows["segment"] == "a") + 0.4 * rows["own"]
    return 1.0 / (1.0 + np.exp(-z - 0.01 * (rows["price"].fillna(90.0) - 100.0)))


BEFORE, AFTER = frame(150, 1), frame(200, 2, 15.0)
SCHEMA = ew.Schema.infer(pd.concat([BEFORE, AFTER])).one_hot_group("home", ["own", "rent"])


def found_for(functional: Any = "mean", **options: Any) -> ew.Difference:
    arguments: dict[str, Any] = {"schema": SCHEMA, "progress": False, "draws": 199} | options
    return ew.difference(model, BEFORE, AFTER, functional=functional, **arguments)


@pytest.fixture(scope="module")
def found() -> ew.Difference:
    return found_for()


def value(scores: np.ndarray, functional: Any) -> float:
    if functional == "mean":
        return float(np.mean(scores))
    if functional[0] == "share":
        return float(np.mean(scores >= functional[1]))
    return float(np.quantile(scores, functional[1], method="inverted_cdf"))


class Stub:
    """Outputs of codes."""

    def __init__(self, values: Any) -> None:
        self.values = lambda codes: values(codes)[:, None]

    def place(self, codes: np.ndarray) -> np.ndarray:
        return codes


def samples_of(before: np.ndarray, after: np.ndarray, **given: Any) -> Samples:
    """Samples of codes alone."""
    codes = np.vstack([before, after])
    nothing = np.zeros(0, dtype=int)
    fields: dict[str, Any] = {
        "codes": codes,
        "embedded": codes,
        "shown": nothing,
        "scores": codes[:, 0],
        "columns": (),
        "owner": np.arange(codes.shape[1]),
        "clusters": np.arange(len(codes)),
        "outputs": Stub(lambda codes: codes[:, 0]),
        "functional": Functional("mean"),
    }
    return Samples(sizes=(len(before), len(after)), **(fields | given))


def in_order(rows: int) -> Plan:
    return Plan(np.arange(rows), np.arange(rows), np.full(rows, 1.0 / rows))


@pytest.mark.parametrize("functional", FUNCTIONALS)
def test_parts_sum_to_the_change(functional: Any) -> None:
    answer = found_for(functional)
    ends = [value(np.asarray(model(rows)), functional) for rows in (BEFORE, AFTER)]
    assert (answer.before, answer.after) == pytest.approx(tuple(ends))
    assert answer.table()["part"].sum() == pytest.approx(ends[1] - ends[0], abs=1e-12)
    assert list(answer.table().index[:1]) == ["lead"]
    assert set(answer.table().index) == {"lead", "price", "segment", "home", "children"}
    assert answer.table().loc["children", "part"] == 0


@pytest.mark.parametrize("functional", FUNCTIONALS)
def test_swapping_the_samples_flips_the_signs(functional: Any) -> None:
    one = found_for(functional)
    other = ew.difference(
        model, AFTER, BEFORE, functional=functional, schema=SCHEMA, progress=False, draws=199
    )
    mirrored = other.parts.loc[one.parts.index]
    assert np.allclose(one.parts["part"], -mirrored["part"], atol=1e-12)
    assert np.allclose(one.parts["low"], -mirrored["high"], atol=1e-9)
    assert np.array_equal(one.parts["own_change"], mirrored["own_change"])
    assert np.array_equal(one.parts["named"], mirrored["named"])


def test_orders_of_many_attributes_swap_too() -> None:
    rng = np.random.default_rng(0)
    one, other = (pd.DataFrame(rng.normal(size=(60, 9))).add_prefix("x") for _ in range(2))
    other["x3"] += 1.0

    def score(rows: pd.DataFrame) -> Any:
        return rows["x3"] * rows["x1"].abs() + (rows["x2"] > 0) * rows["x8"]

    there = ew.difference(score, one, other, progress=False)
    back = ew.difference(score, other, one, progress=False)
    parts = there.table()["part"]
    assert np.allclose(parts, -back.table()["part"][parts.index], atol=1e-12)
    assert parts.sum() == pytest.approx(there.change)


def test_units_do_not_matter(found: ew.Difference) -> None:
    def in_minutes(rows: pd.DataFrame) -> Any:
        return model(rows.assign(lead=rows["lead"] / 1440.0))

    sides = [rows.assign(lead=rows["lead"] * 1440.0) for rows in (BEFORE, AFTER)]
    schema = ew.Schema.infer(pd.concat(sides)).one_hot_group("home", ["own", "rent"])
    other = ew.difference(in_minutes, *sides, schema=schema, progress=False, draws=199)
    assert np.allclose(found.parts["part"], other.parts["part"], atol=1e-9)
    assert np.allclose(found.parts["low"], other.parts["low"], atol=1e-6)


def test_the_schema_may_freeze_what_it_likes(found: ew.Difference) -> None:
    frozen = found_for(schema=SCHEMA.freeze("lead", "price"))
    assert np.array_equal(found.parts["part"], frozen.parts["part"])


def test_identical_frames_say_that_nothing_changed() -> None:
    same = ew.difference(model, BEFORE, BEFORE.sample(frac=1.0, random_state=0), progress=False)
    assert same.same
    assert (same.table()[["part", "low", "high"]] == 0).all(axis=None)
    assert same.p_value == 1
    assert not same.table()["named"].any()
    assert str(same).startswith("Nothing changed")


def test_shapley_values_are_means_over_all_orders() -> None:
    rng = np.random.default_rng(0)
    before, after = rng.normal(size=(2, 5, 4))
    owner = np.array([0, 1, 2, 2])

    def values(codes: np.ndarray) -> np.ndarray:
        return np.asarray(codes[:, 0] * codes[:, 1] + np.sin(codes[:, 2] * codes[:, 3]))

    samples = samples_of(before, after, owner=owner, outputs=Stub(values))
    answer = attribute(samples, in_order(5), coalitions(3, 1, rng))
    expected = np.zeros(3)
    for order in permutations(range(3)):
        codes = before.copy()
        for j in order:
            was = values(codes).mean()
            codes[:, owner == j] = after[:, owner == j]
            expected[j] += (values(codes).mean() - was) / 6
    assert answer.parts == pytest.approx(expected)
    assert not answer.spread.any()


def test_drawn_orders_come_near_all_of_them() -> None:
    rng = np.random.default_rng(3)
    before, after = rng.normal(size=(2, 200, 7))

    def values(codes: np.ndarray) -> np.ndarray:
        return np.asarray(codes.sum(axis=1) + codes[:, 0] * codes[:, 1])

    samples = samples_of(before, after + 0.5, outputs=Stub(values))
    answer = attribute(samples, in_order(200), coalitions(7, 40, rng))
    straight = (after + 0.5 - before).mean(axis=0)
    assert answer.parts[2:] == pytest.approx(straight[2:])
    product = (after + 0.5)[:, :2].prod(axis=1) - before[:, :2].prod(axis=1)
    assert answer.parts.sum() == pytest.approx(straight.sum() + product.mean())


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 9))
def test_margins_of_a_matching_are_exact(n: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    plan = match(rng.normal(size=(n, 2)), rng.normal(size=(m, 2)), rng, exact=5)
    assert np.bincount(plan.before, plan.mass, n) == pytest.approx(np.full(n, 1 / n))
    assert np.bincount(plan.after, plan.mass, m) == pytest.approx(np.full(m, 1 / m))


def cost_of(before: np.ndarray, after: np.ndarray, **options: Any) -> float:
    plan = match(before, after, np.random.default_rng(0), **options)
    return float(plan.mass @ ((before[plan.before] - after[plan.after]) ** 2).sum(axis=1))


@pytest.mark.parametrize("sizes", [(30, 30), (20, 40), (30, 40), (39, 40)])
def test_matching_against_a_linear_programme(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    before, after = (rng.normal(size=(size, 3)) for size in sizes)
    n, m = sizes
    rows, columns = np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))
    costs = cdist(before, after, "sqeuclidean").ravel()
    margins = np.r_[np.full(n, 1 / n), np.full(m, 1 / m)]
    least = linprog(costs, A_eq=np.vstack([rows, columns]), b_eq=margins).fun
    if max(sizes) % min(sizes) == 0:
        assert cost_of(before, after) == pytest.approx(least)
    assert least - 1e-9 <= cost_of(before, after) <= 1.35 * least


def test_blocks_come_near_the_exact_matching() -> None:
    rng = np.random.default_rng(2)
    before, after = rng.normal(size=(2, 1200, 6))
    after[:, 0] += 0.5
    exact, blocks = cost_of(before, after), cost_of(before, after, exact=400)
    assert exact <= blocks <= 1.35 * exact


def test_what_has_no_counterpart_by_hand() -> None:
    others = np.array([[0.0], [1.0], [5.0]])
    # The rows of others are 1, 1 and 4 from their nearest ones: 99 % of them at most 3.94.
    assert _unmatched(np.array([[-3.9], [3.0], [8.9], [9.0]]), others).tolist() == [3]
    copies = np.zeros((9, 2))
    assert _unmatched(np.array([[0.0, 0.0], [0.0, 0.1]]), copies).tolist() == [1]


def planted(size: int, seed: int, shift: float) -> pd.DataFrame:
    """Rows of which those in the south shift."""
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(rng.normal(size=(size, 5))).add_prefix("x")
    rows["region"] = rng.choice(["north", "south"], size)
    rows["x0"] += shift * (rows["region"] == "south")
    return rows


def bent(rows: pd.DataFrame) -> Any:
    return np.maximum(rows["x0"], 0.0) * (1.0 + (rows["region"] == "south")) + rows["x1"]


def test_whose_scores_moved() -> None:
    before, after = planted(400, 1, 0.0), planted(300, 2, 1.0)
    groups = ew.difference(bent, before, after, progress=False, draws=199).groups.set_index("who")
    assert set(groups.index) == {"region is south", "region is north"}
    for where, row in groups.iterrows():
        for rows, side in ((before, "before"), (after, "after")):
            inside = rows["region"] == str(where).split()[-1]
            assert row[f"rows_{side}"] == inside.sum()
            assert row[side] == pytest.approx(bent(rows[inside]).mean())
    assert groups.loc["region is south", "mostly"] == "x0"
    assert groups.loc["region is north", "mostly"] == ""


def test_nobody_moved_where_nothing_changed() -> None:
    # Partners of high rows are lower and those of low rows higher: that is no group's move.
    sides = [(planted(200, 2 * k, 0.0), planted(200, 2 * k + 1, 0.0)) for k in range(6)]
    found = [ew.difference(bent, *pair, progress=False, draws=99) for pair in sides]
    assert sum(len(answer.groups) > 0 for answer in found) <= 1


def test_partners_are_alike_in_what_did_not_change() -> None:
    parts, regions = [], []
    for seed in range(6):
        before, after = planted(300, 10 + seed, 0.0), planted(300, 50 + seed, 1.0)
        found = ew.difference(bent, before, after, progress=False, draws=99)
        parts.append(found.table()["part"] / found.change)
        pairs = found.pairs
        one, other = before["region"].to_numpy()[pairs.before], after["region"].to_numpy()
        apart = abs((before["region"] == "south").mean() - (after["region"] == "south").mean())
        regions.append((one != other[pairs.after]).mean() - apart)
    # Rows matched in plain distances turn a tenth of the change over to the region.
    assert abs(pd.concat(parts, axis=1).mean(axis=1)["region"]) < 0.05
    assert max(regions) < 0.03


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (np.arange(200.0), np.arange(200.0) + 50, "median 99 to 149"),
        (np.arange(200.0), np.arange(200.0) * 2 - 60, "90% quantile 179 to 298"),
        (np.arange(200.0), np.r_[np.full(100, np.nan), np.arange(100.0)], "missing: 0% to 50%"),
        (np.arange(200.0), np.full(200, np.nan), "missing: 0% to 100%"),
        (np.repeat([0, 1], 100), np.repeat([0, 1], [40, 160]), "0: 50% to 20%, 1: 50% to 80%"),
        (
            np.repeat(["a", "b", "c"], [100, 60, 40]),
            np.repeat(["a", "b", "c"], [40, 60, 100]),
            "a: 50% to 20%, c: 20% to 50%",
        ),
    ],
)
def test_how_an_attribute_changed(before: np.ndarray, after: np.ndarray, words: str) -> None:
    other = np.tile(np.arange(20.0), 10)
    sides = [pd.DataFrame({"it": values, "other": other}) for values in (before, after)]
    found = ew.difference(lambda rows: rows["other"], *sides, progress=False, draws=99)
    assert found.table()["moved"].to_dict() == {"it": words, "other": ""}
    assert f"own distribution changed: it ({words})." in str(found)


def test_rows_without_a_counterpart_are_found() -> None:
    odd = AFTER.copy()
    odd.loc[:5, ["lead", "price"]] = [5000.0, 900.0]
    answer = ew.difference(model, BEFORE, odd, progress=False, draws=99)
    assert set(range(6)) <= set(answer.unmatched[1].tolist())
    assert "have no counterpart" in str(answer)


def test_influences_of_a_quantile_have_its_variance() -> None:
    rng = np.random.default_rng(4)
    mass = np.full(2000, 1 / 2000)
    drawn = [Functional("quantile", 0.8)(rng.normal(size=2000), mass) for _ in range(600)]
    actual = np.std([value for value, _ in drawn])
    told = np.sqrt(np.mean([influence @ influence for _, influence in drawn])) / 2000
    assert told == pytest.approx(actual, rel=0.15)


def test_simultaneous_limits_of_independent_errors() -> None:
    limit = critical_value(np.diag([1.0, 4.0, 9.0, 0.0]), 0.95, np.random.default_rng(0), 99_999)
    assert limit == pytest.approx(2.388, abs=0.03)  # 0.95 ** (1 / 3), two-sided


def test_clusters_add_up_before_they_are_squared() -> None:
    scores = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    alone = covariance(scores, np.arange(4))
    together = covariance(scores, np.array([0, 0, 1, 1]))
    assert (alone[0, 0], together[0, 0]) == pytest.approx((4 * 4 / 3, 8 * 2))


def run_test(scores: np.ndarray, side: np.ndarray, clusters: np.ndarray, kind: Any) -> float:
    order = np.argsort(side, kind="stable")
    before, after = scores[~side][:, None], scores[side][:, None]
    samples = samples_of(before, after, clusters=clusters[order], functional=Functional(*kind))
    return float(permutation_test(samples, 1999, np.random.default_rng(0))[-1])


@pytest.mark.parametrize("kind", [("mean",), ("share", 1.5), ("quantile", 0.5)])
def test_permutation_p_value_against_all_regroupings(kind: Any) -> None:
    scores = np.array([0.0, 1.0, 2.0, 3.0, 4.5, 7.0, 8.0])
    side = np.array([0, 0, 0, 1, 0, 1, 1], dtype=bool)
    functional = Functional(*kind)

    def change(inside: np.ndarray) -> float:
        ends = [
            functional(s, np.full(s.size, 1 / s.size))[0] for s in (scores[inside], scores[~inside])
        ]
        return abs(ends[0] - ends[1])

    masks = [np.isin(np.arange(7), chosen) for chosen in combinations(range(7), 3)]
    exact = np.mean([change(mask) >= change(side) - 1e-9 for mask in masks])
    assert run_test(scores, side, np.arange(7), kind) == pytest.approx(exact, abs=0.04)


def test_rows_of_one_cluster_are_dealt_together() -> None:
    scores = np.repeat([0.0, 1.0], 20)
    side, clusters = np.repeat([False, True], 20), np.repeat(np.arange(4), 10)
    assert run_test(scores, side, np.arange(40), ("mean",)) == 1 / 2000
    # Of the six ways to deal four clusters, two are as extreme.
    assert run_test(scores, side, clusters, ("mean",)) == pytest.approx(1 / 3, abs=0.04)


def test_clusters_widen_the_intervals() -> None:
    twice = [pd.concat([rows.iloc[:75]] * 2, ignore_index=True) for rows in (BEFORE, AFTER)]
    labels = [np.tile(np.arange(75), 2), np.tile(np.arange(75), 2) + 1000]
    sides = [rows.assign(person=label) for rows, label in zip(twice, labels, strict=True)]
    alone = ew.difference(model, *twice, progress=False, draws=99)
    known = ew.difference(model, *sides, clusters="person", progress=False, draws=99)
    given_labels = ew.difference(model, *twice, clusters=tuple(labels), progress=False, draws=99)
    assert "person" not in known.table().index
    assert known.clusters == 150
    width = [(d.parts["high"] - d.parts["low"]).iloc[-1] for d in (alone, known, given_labels)]
    assert width[1] == width[2]
    assert width[1] / width[0] == pytest.approx(2**0.5, rel=0.1)


def test_one_output_of_several() -> None:
    def three(rows: pd.DataFrame) -> Any:
        return np.stack([rows["lead"], rows["price"].fillna(0.0), rows["children"]], axis=1)

    answer = ew.difference(three, BEFORE, AFTER, output=0, progress=False, draws=99)
    assert answer.table().loc["lead", "part"] == pytest.approx(answer.change)
    with pytest.raises(InvalidInput, match="output: expected one output, received a model with 3"):
        ew.difference(three, BEFORE, AFTER, progress=False)


def test_dates_and_texts_are_attributes() -> None:
    days = [pd.date_range(start, periods=60) for start in ("2024-01-01", "2024-06-01")]
    sides = [pd.DataFrame({"day": day, "x": np.arange(60.0)}) for day in days]
    answer = ew.difference(lambda rows: rows["day"].dt.month + rows["x"], *sides, progress=False)
    assert answer.table().loc["day", "part"] == pytest.approx(answer.change)
    assert answer.table()["named"].to_dict() == {"day": True, "x": False}
    assert "day (median 2024-01-30 00:00:00 to 2024-06-30 00:00:00)" in str(answer)


@pytest.mark.parametrize("at", [0.3, 0.5])
def test_a_quantile_among_ties_is_not_known_exactly(at: float) -> None:
    sides = [frame(80, seed) for seed in (3, 4)]
    answer = ew.difference(
        lambda rows: rows["own"] + 1.0 * (rows["children"] > 0),
        *sides,
        functional=("quantile", at),
        progress=False,
        draws=99,
    )
    row = answer.parts.loc["(change)"]
    assert row["low"] < row["part"] < row["high"]


def correlated(size: int, seed: int, correlation: float) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    covariances = [[1.0, correlation], [correlation, 1.0]]
    return pd.DataFrame(rng.multivariate_normal([0, 0], covariances, size), columns=["a", "b"])


def test_a_change_of_correlation_names_no_attribute() -> None:
    answers = [
        ew.difference(
            lambda rows: rows["a"] * rows["b"],
            correlated(300, 2 * seed, 0.0),
            correlated(300, 2 * seed + 1, 0.8),
            progress=False,
        )
        for seed in range(10)
    ]
    assert all(answer.p_value <= 0.01 for answer in answers)
    silent = [answer for answer in answers if not answer.table()["named"].any()]
    assert len(silent) >= 8  # binomial(10, 0.95): 1 in 90 below
    for answer in silent:
        assert "no single attribute can be named" in answer.headline
        assert "how it goes together" in str(answer)


@pytest.mark.slow
def test_intervals_cover_and_nulls_are_kept() -> None:
    covered = rejected = 0
    for seed in range(60):
        rng = np.random.default_rng([7, seed])
        before, after = (pd.DataFrame(rng.normal(size=(120, 3))).add_prefix("x") for _ in "ab")
        answer = ew.difference(
            lambda rows: rows["x0"] * (1.0 + (rows["x1"] > 0)) + rows["x2"],
            before,
            after.add([0.0, 0.0, 0.5 * (seed % 2)]),
            progress=False,
            draws=99,
        )
        truth = pd.Series({"x0": 0.0, "x1": 0.0, "x2": 0.5 * (seed % 2)})
        table = answer.table().loc[truth.index]
        covered += bool(((table["low"] <= truth) & (truth <= table["high"])).all())
        rejected += not seed % 2 and answer.p_value <= 0.05
    assert covered >= 53  # binomial(60, 0.95): 1 in 400 below
    assert rejected <= 5  # binomial(30, 0.05): 1 in 300 above


def test_it_says_what_a_manager_understands(found: ew.Difference) -> None:
    assert found.headline.startswith("The mean score rose from ")
    assert "lead accounts for 0." in found.headline
    assert "named" in repr(found)
    page = found._repr_html_()
    assert "<table" in page
    assert "what caused them" in page


def test_a_share_is_told_in_percent_and_its_change_in_points() -> None:
    said = found_for(("share", 0.5)).sentences()
    assert re.match(r"The share of rows with .* (rose|fell) from [\d.]+% to [\d.]+%", said[0])
    assert re.match(r"The change is -?[\d.]+ points \(", said[1])


def test_saved_and_loaded(found: ew.Difference, tmp_path: Path) -> None:
    place = found.save(tmp_path / "deep" / "d.npz")
    again = ew.Difference.load(place)
    assert str(again) == str(found)
    pd.testing.assert_frame_equal(again.parts, found.parts)
    pd.testing.assert_frame_equal(again.groups, found.groups)
    assert all(np.array_equal(a, b) for a, b in zip(again.pairs, found.pairs, strict=True))
    assert [path.name for path in place.parent.iterdir()] == ["d.npz"]


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_damaged_files_are_refused(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "d.npz"
        SAVED.save(place)
        content = bytearray(place.read_bytes())
        if data.draw(st.booleans()):
            content = content[: data.draw(st.integers(0, len(content) - 1))]
        else:
            spot = data.draw(st.integers(0, len(content) - 1))
            content[spot] ^= data.draw(st.integers(1, 255))
        place.write_bytes(content)
        with contextlib.suppress(SavedRunError):
            assert str(ew.Difference.load(place)) == str(SAVED)  # a byte that says nothing


SAVED = found_for(draws=99)


@pytest.mark.parametrize("content", [b"", b"no zip", None])
def test_other_files_are_refused(content: bytes | None, tmp_path: Path) -> None:
    place = tmp_path / "d.npz"
    if content is not None:
        place.write_bytes(content)
    with pytest.raises(SavedRunError, match=r"expected what Difference\.save wrote"):
        ew.Difference.load(place)


@pytest.mark.parametrize("most", [2, 10])
def test_the_waterfall_ends_where_the_change_ends(found: ew.Difference, most: int) -> None:
    axes = found.plot(most=most)
    last = axes.patches[-1].get_bbox()
    assert np.isclose([last.x0, last.x1], found.after).any()
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels[0] == "before"
    assert labels[-1] == "after"
    assert ("3 others" in labels) == (most == 2)


def test_the_page_escapes_names(tmp_path: Path) -> None:
    sides = [
        pd.DataFrame({"<script>": rows["lead"], "x": rows["children"]}) for rows in (BEFORE, AFTER)
    ]
    answer = ew.difference(lambda rows: rows["<script>"], *sides, progress=False, draws=99)
    page = answer.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>" not in page
    levels = [np.repeat(["<script>", "b"], sizes) for sizes in ([10, 90], [80, 20])]
    hostile = [pd.DataFrame({"it": values, "x": np.arange(100)}) for values in levels]
    shown = ew.difference(lambda rows: rows["x"], *hostile, progress=False, draws=99)
    assert "<script>: 10% to 80%" in str(shown)
    assert "<script>" not in shown.report(tmp_path / "other.html").read_text(encoding="utf-8")
    assert "<script>" not in shown._repr_html_()
    assert "&lt;script&gt;" in page
    assert page.count('<td class="bar">') == 4  # before, two attributes, after


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"before": None}, "before: expected a DataFrame of at least 2 rows, received NoneType"),
        ({"after": AFTER.iloc[:0]}, "after: expected a DataFrame of at least 2 rows, received 0"),
        ({"after": AFTER.drop(columns="lead")}, "'lead' in one of them only"),
        ({"after": AFTER.assign(new=1)}, "'new' in one of them only"),
        ({"after": AFTER.assign(segment=1)}, r"after\['segment'\]: expected dtype"),
        ({"after": AFTER.astype({"lead": str})}, r"after\['lead'\]: expected dtype float64"),
        ({"functional": "median"}, "functional: expected 'mean', "),
        ({"functional": ("quantile", 1.0)}, "functional: "),
        ({"functional": ("quantile", 0.98)}, "at least 5 rows beyond it on both sides, received"),
        ({"functional": ("share", np.nan)}, "functional: "),
        ({"functional": ("share", "high")}, "functional: "),
        ({"functional": None}, "functional: "),
        ({"functional": ("share", 1.5)}, "a cut-off between the outputs, which are 0"),
        ({"confidence": 1.0}, "confidence, draws: "),
        ({"draws": 10}, "confidence, draws: "),
        ({"seed": -1}, "seed: "),
        ({"clusters": "nobody"}, "clusters: "),
        ({"clusters": ([1, 2], [3])}, "clusters: "),
        ({"clusters": (np.zeros(150), np.zeros(200))}, "clusters: "),
        ({"memory": "much"}, "memory: "),
    ],
)
def test_what_does_not_fit_is_refused(changed: dict[str, Any], message: str) -> None:
    arguments = {"before": BEFORE, "after": AFTER, "progress": False} | changed
    with pytest.raises(ElsewiseError, match=message):
        ew.difference(model, **arguments)


def test_parts_do_not_depend_on_the_confidence(found: ew.Difference) -> None:
    for confidence in (0.5, 0.99):
        other = found_for(confidence=confidence)
        assert np.array_equal(found.parts["part"], other.parts["part"])
        assert found.parts["moved"].tolist() == other.parts["moved"].tolist()


def test_memory_does_not_matter(found: ew.Difference) -> None:
    assert np.array_equal(found.parts["part"], found_for(memory="1MB").parts["part"])


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, rows in (("before", BEFORE), ("after", AFTER)):
        rows.assign(outcome=1).to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "shop_model.py").write_text(
        "def score(rows):\n    return rows['lead'] + rows['children']\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["difference", *arguments])
    return int(ended.value.code or 0)


def test_the_command(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--model", "shop_model:score", "--drop", "outcome"]
    assert run("before.csv", "after.csv", *options, "--quiet") == 0
    assert capsys.readouterr().out == ""
    assert (files / "difference.html").exists()
    assert ew.Difference.load(files / "difference.npz").table().index[0] == "lead"
    assert run("before.csv", "after.csv", *options, "--of", "share:50", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["parts"][0]["attribute"] == "lead"
    assert answer["exit_code"] == 0
    assert run("before.csv", "after.csv", *options, "--of", "share:much") == 2
    assert run("before.csv", "none.csv", *options) == 2


def test_what_is_only_rounding_is_nothing() -> None:
    rng = np.random.default_rng(4)
    rows = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300)})
    found = ew.difference(lambda frame: frame["a"] / 3.0, rows[:150], rows[150:])
    assert (found.table().loc["b", ["part", "low", "high", "detectable"]] == 0).all()
