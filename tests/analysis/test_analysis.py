"""What changed and for whom: laws, planted findings, and words that are true of their rows."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import numpy as np
import ot
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score

import elsewise as ew
from elsewise import analysis
from elsewise.analysis._columns import columns_of
from elsewise.analysis._tree import Leaf, sub_populations
from elsewise.errors import InvalidInput
from elsewise.moves import Rows

N = 60
nan = float("nan")
SIZES = ("small", "medium", "large")
WEIGHTS = {"income": 2.0, "home": 0.5, "size": 3.0}


def frame() -> pd.DataFrame:
    """One column of every kind, missing cells, and a one-hot group."""
    rng = np.random.default_rng(0)
    city = rng.integers(0, 3, N)
    return pd.DataFrame(
        {
            "income": pd.Series(rng.normal(30.0, 8.0, N)).where(rng.random(N) > 0.1),
            "cards": rng.integers(0, 6, N),
            "home": pd.Series(rng.choice(["own", "rent", "free"], N)).where(rng.random(N) > 0.1),
            "married": rng.random(N) > 0.5,
            "size": pd.Categorical(rng.choice(SIZES, N), categories=SIZES, ordered=True),
            "rome": 1 * (city == 0),
            "oslo": 1 * (city == 1),
            "riga": 1 * (city == 2),
            "age": rng.integers(20, 70, N),
            "since": pd.date_range("2020-01-01", periods=N),
        }
    )


def score(rows: pd.DataFrame) -> np.ndarray:
    """Every column is read, some of them hardly."""
    hardly = (rows["home"] == "own") + 1.0 * rows["married"] + (rows["size"] == SIZES[0])
    hardly = hardly + 2 * rows["rome"] + rows["oslo"]
    return np.asarray(rows["income"].fillna(30.0) / 8.0 - rows["cards"] + 1e-7 * hardly)


@pytest.fixture(scope="module")
def base() -> ew.Explanation:
    rows = frame()
    schema = ew.Schema.infer(rows).freeze("age").one_hot_group("city", ["rome", "oslo", "riga"])
    for name, weight in WEIGHTS.items():
        schema = schema.weight(name, weight)
    return ew.explain(
        score,
        rows,
        target=ew.targets.shift(0.5),
        schema=schema,
        bounds=ew.Bounds(outputs=0.5),
        certify="in-sample",
        settings=ew.Settings(iterations=2, draws=99),
    )


def moved_to(explanation: ew.Explanation, codes: np.ndarray) -> ew.Explanation:
    """The same explanation with other counterfactual rows."""
    return dataclasses.replace(
        explanation, rows=Rows(codes, explanation.problem.outputs.values(codes))
    )


def unmoved(explanation: ew.Explanation) -> ew.Explanation:
    return moved_to(explanation, explanation.problem.factual.copy())


def shuffled(explanation: ew.Explanation, seed: int, share: float) -> ew.Explanation:
    """The same explanation with about ``share`` of the cells that may move moved at random."""
    rng = np.random.default_rng(seed)
    before = explanation.problem.factual
    after = before.copy()
    names = list(explanation.problem.schema.names)
    column = names.index
    moves = rng.random((N, len(names))) < share

    def put(name: str, values: np.ndarray) -> None:
        here = moves[:, column(name)] & ~np.isnan(before[:, column(name)])
        after[here, column(name)] = values[here]

    put("income", rng.normal(33.0, 9.0, N))
    put("cards", rng.integers(0, 6, N).astype(float))
    put("home", rng.integers(0, 3, N).astype(float))
    put("married", rng.integers(0, 2, N).astype(float))
    put("size", rng.integers(0, 3, N).astype(float))
    city = [column(name) for name in ("rome", "oslo", "riga")]
    here = moves[:, city[0]]
    after[np.ix_(here, city)] = np.eye(3)[rng.integers(0, 3, here.sum())]
    return moved_to(explanation, after)


CASES = {
    "seed": st.integers(0, 2**32 - 1),
    "share": st.sampled_from([0.0, 0.02, 0.3, 1.0]),
}


# --- changes --------------------------------------------------------------------------------------


@given(**CASES)
@settings(max_examples=40)
def test_changes_obey_their_laws(base: ew.Explanation, seed: int, share: float) -> None:
    explanation = shuffled(base, seed, share)
    table = analysis.changes(explanation)
    assert set(table.index) == {"income", "cards", "home", "married", "size", "city"}
    total = table["share"].sum()
    assert total == pytest.approx(1.0 if table["distance"].any() else 0.0)
    size = table["effect"].abs()
    assert table.index.tolist() == (
        table.assign(size=size).sort_values(["size", "share"], ascending=False).index.tolist()
    )
    assert size.is_monotonic_decreasing
    assert (table["psi"] >= 0).all()
    assert table["ks"].between(0, 1).all()
    still = table[table["rows_moved"] == 0]
    assert (still[["psi", "ks", "distance", "share"]] == 0).all(axis=None)
    np.testing.assert_allclose(table["distance"] ** 2, table["share"] * (table.distance**2).sum())


def test_nothing_changed(base: ew.Explanation) -> None:
    table = analysis.changes(unmoved(base))
    assert (table[["rows_moved", "psi", "ks", "distance", "share"]] == 0).all(axis=None)
    assert table["kind"].to_dict() == {
        "income": "number",
        "cards": "integer",
        "home": "category",
        "married": "category",
        "size": "category",
        "city": "one-hot group",
    }
    assert table["mean_before"].notna().to_dict() == {
        name: name in ("income", "cards") for name in table.index
    }


def test_changes_are_in_the_users_units(base: ew.Explanation) -> None:
    codes = base.problem.factual.copy()
    codes[:, 0] += 4.0
    row = analysis.changes(moved_to(base, codes)).loc["income"]
    known = frame()["income"].dropna()
    assert row["rows_moved"] == pytest.approx(len(known) / N)
    assert row["mean_before"] == pytest.approx(known.mean())
    assert row["mean_after"] == pytest.approx(known.mean() + 4.0)
    np.testing.assert_allclose(row[["shift_q10", "shift_q50", "shift_q90"]].astype(float), 4.0)
    scale = base.problem.schema["income"].scale
    # A missing cell embeds as 0 on both sides: the plan is not quite row to row.
    assert row["distance"] == pytest.approx(2.0 * 4.0 / scale * np.sqrt(len(known) / N), rel=0.05)
    assert row["share"] == 1.0


@pytest.mark.parametrize("name", ["home", "city", "married"])
def test_distance_of_a_category_is_that_of_optimal_transport(
    base: ew.Explanation, name: str
) -> None:
    explanation = shuffled(base, 3, 0.6)
    column = next(c for c in columns_of(explanation) if c.name == name)
    levels = np.arange(len(column.levels))
    weight = WEIGHTS.get(name, 1.0)
    shares = [
        np.array([np.mean(codes == level) for level in levels])
        for codes in (column.before, column.after)
    ]
    cost = weight**2 * (1.0 - np.eye(levels.size))
    missing = 1.0 - shares[0].sum()
    squared = ot.emd2(*(np.append(p, missing) for p in shares), np.pad(cost, (0, 1), "edge"))
    found = analysis.changes(explanation).loc[name]
    assert found["distance"] == pytest.approx(np.sqrt(squared))
    variation = np.abs(shares[1] - shares[0]).sum() / 2
    assert found["distance"] == pytest.approx(weight * np.sqrt(variation))
    assert found["ks"] == pytest.approx(variation / (1.0 - missing))


def test_columns_without_a_known_cell_say_nothing(base: ew.Explanation) -> None:
    codes = base.problem.factual.copy()
    codes[:, [0, 2]] = nan
    problem = dataclasses.replace(base.problem, factual=codes)
    explanation = dataclasses.replace(shuffled(base, 1, 0.5), problem=problem)
    after = explanation.rows.codes.copy()
    after[:, [0, 2]] = nan
    explanation = moved_to(explanation, after)
    table = analysis.changes(explanation)
    assert table.loc[["income", "home"], ["mean_before", "shift_q50", "ks"]].isna().all(axis=None)
    assert (table.loc[["income", "home"], ["psi", "share"]] == 0).all(axis=None)
    assert analysis.groups(explanation).labels.size == N


# --- psi and ks -----------------------------------------------------------------------------------


def test_psi_by_hand() -> None:
    before, after = np.repeat([0.0, 1.0], [60, 40]), np.repeat([0.0, 1.0], [30, 70])
    expected = 0.3 * np.log(0.7 / 0.4) - 0.3 * np.log(0.3 / 0.6)
    assert analysis.psi(before, after) == pytest.approx(expected)
    assert analysis.psi(before, after, category=True) == pytest.approx(expected)


def test_psi_of_a_new_level_is_finite_and_states_its_guard() -> None:
    before, after = np.zeros(10), np.ones(10)
    guarded = (1.0 - 0.05) * np.log(1.0 / 0.05)
    assert analysis.psi(before, after, category=True) == pytest.approx(2 * guarded)


def test_psi_sees_a_constant_leave_its_value() -> None:
    assert analysis.psi(np.full(20, 5.0), np.full(20, 3.0)) > 1.0


def test_psi_keeps_missing_cells_apart() -> None:
    x = np.array([1.0, 2.0, np.nan, np.nan])
    assert analysis.psi(x, x) == 0.0
    assert analysis.psi(x, np.array([1.0, 2.0, 1.0, 2.0])) > 0.1
    assert analysis.psi(np.full(3, np.nan), np.full(3, np.nan)) == 0.0


samples = st.lists(
    st.integers(-50, 50).map(lambda k: k / 4) | st.just(float("nan")), min_size=1, max_size=60
).map(np.array)


@given(before=samples, after=samples, category=st.booleans())
@settings(max_examples=100)
def test_psi_laws(before: np.ndarray, after: np.ndarray, category: bool) -> None:
    found = analysis.psi(before, after, category=category)
    assert 0 <= found < np.inf
    assert analysis.psi(before[::-1], after[::-1], category=category) == pytest.approx(found)
    assert analysis.psi(before, before, category=category) == 0.0
    # Bins are those of the first sample: the unit does not matter.
    assert analysis.psi(8 * before, 8 * after, category=category) == pytest.approx(found)


@given(before=samples, after=samples)
def test_ks_laws(before: np.ndarray, after: np.ndarray) -> None:
    found = analysis.ks(before, after)
    if np.isnan(before).all() or np.isnan(after).all():
        assert np.isnan(found)
        return
    assert 0 <= found <= 1
    assert analysis.ks(before, before) == 0.0
    assert analysis.ks(after, before) == found


# --- flows ----------------------------------------------------------------------------------------


@given(**CASES)
@settings(max_examples=30)
def test_flows_add_up(base: ew.Explanation, seed: int, share: float) -> None:
    explanation = shuffled(base, seed, share)
    table = analysis.flows(explanation)
    assert list(table.columns) == ["feature", "from", "to", "rows", "share"]
    sums = table.groupby("feature")[["rows", "share"]].sum()
    assert set(sums.index) == {"home", "married", "size", "city"}
    assert (sums["rows"] == N).all()
    np.testing.assert_allclose(sums["share"], 1.0)
    moving = table[table["from"] != "(kept)"]
    assert (moving["from"] != moving["to"]).all()
    changes = analysis.changes(explanation)["rows_moved"]
    for name, rows in moving.groupby("feature")["rows"].sum().items():
        assert rows == round(changes[name] * N)


def test_flows_by_hand(base: ew.Explanation) -> None:
    rows = frame()
    after = rows.copy()
    after.loc[rows["home"] == "rent", "home"] = "own"
    after.loc[:4, ["rome", "oslo", "riga"]] = [0, 0, 1]
    table = analysis.flows(moved_to(base, base.encoder.encode(after)))
    home = table[table["feature"] == "home"]
    renting = int((rows["home"] == "rent").sum())
    assert home[["from", "to", "rows"]].to_numpy().tolist() == [
        ["rent", "own", renting],
        ["(kept)", "(kept)", N - renting],
    ]
    city = table[(table["feature"] == "city") & (table["from"] != "(kept)")]
    assert set(city["to"]) == {"riga"}
    assert city["rows"].sum() == int((rows.loc[:4, "riga"] == 0).sum())


def test_flows_without_categories() -> None:
    rows = pd.DataFrame({"a": np.arange(30.0)})
    explanation = ew.explain(
        ew.models.function(lambda frame: frame["a"], smooth=True),
        rows,
        target=ew.targets.shift(1.0),
        bounds=ew.Bounds(outputs=2.0),
        certify="in-sample",
    )
    assert analysis.flows(explanation).empty


# --- groups ---------------------------------------------------------------------------------------


def population(rows: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "Credit amount": rng.normal(3000.0, 900.0, rows),
            "Duration": rng.normal(24.0, 8.0, rows),
            "Age": rng.integers(19, 70, rows),
            "Housing": rng.choice(["own", "rent", "free"], rows),
        }
    )


def old_or_owner(rows: pd.DataFrame) -> np.ndarray:
    return ((rows["Age"] > 40) | (rows["Housing"] == "own")).to_numpy()


def planted(rows: pd.DataFrame, judged_by_duration: np.ndarray) -> np.ndarray:
    """Some are judged by the duration of their credit, others by its amount."""
    return np.where(
        judged_by_duration, -(rows["Duration"] - 24) / 8, -(rows["Credit amount"] - 3000) / 900
    )


def shifted(model: Callable[[pd.DataFrame], np.ndarray]) -> ew.Explanation:
    rows = population()
    return ew.explain(
        ew.models.function(model, smooth=True),
        rows,
        target=ew.targets.shift(1.0),
        schema=ew.Schema.infer(rows).freeze("Age", "Housing"),
        bounds=ew.Bounds(outputs=0.3),
        certify="in-sample",
        settings=ew.Settings(draws=99, slack=0.0, population_weight=1.0),
    )


@pytest.fixture(scope="module")
def two_groups() -> ew.Explanation:
    return shifted(lambda rows: planted(rows, old_or_owner(rows)))


def test_groups_recover_two_planted_ones() -> None:
    found = analysis.groups(shifted(lambda rows: planted(rows, rows["Age"] > 40)), k=2)
    assert adjusted_rand_score(population()["Age"] > 40, found.labels) >= 0.8
    assert {group.who for group in found} == {"Age <= 40", "Age > 40"}
    assert found.explained > 0.6


def test_groups_recover_two_planted_ones_of_two_conditions(two_groups: ew.Explanation) -> None:
    found = analysis.groups(two_groups, k=3)
    # Those judged by their duration take two leaves: they are told by what changes for them.
    said = "Duration: lower"
    shorter = [any(change.startswith(said) for change in group.changes) for group in found]
    truth = old_or_owner(population())
    assert adjusted_rand_score(truth, np.array(shorter)[found.labels]) >= 0.8
    assert (found[0].who, found[0].rows) == ("Age <= 40 and Housing is not own", (~truth).sum())


def test_groups_recover_two_planted_ones_by_default(base: ew.Explanation) -> None:
    codes = base.problem.factual.copy()
    rng = np.random.default_rng(0)
    names = list(base.problem.schema.names)
    young = codes[:, names.index("age")] <= 40
    codes[young, names.index("cards")] += 2 + rng.integers(0, 2, young.sum())
    codes[~young, 0] -= rng.normal(9.0, 1.0, (~young).sum())
    found = analysis.groups(moved_to(base, codes))
    assert adjusted_rand_score(young, found.labels) >= 0.8
    assert found.explained > 0.8


@given(**CASES, k=st.integers(1, 6))
@settings(max_examples=40)
def test_groups_obey_their_laws(base: ew.Explanation, seed: int, share: float, k: int) -> None:
    explanation = shuffled(base, seed, share)
    found = analysis.groups(explanation, k)
    assert 1 <= len(found) <= k
    sizes = np.bincount(found.labels, minlength=len(found))
    assert sizes.tolist() == [group.rows for group in found]
    assert sizes.sum() == N
    assert (sizes >= 5).all()
    embed = base.problem.embedding.embed
    moves = embed(explanation.rows.codes) - embed(base.problem.factual)
    means = np.stack([moves[found.labels == label].mean(axis=0) for label in found.labels])
    total = np.sum(moves**2)
    expected = 1.0 - np.sum((moves - means) ** 2) / total if total else 0.0
    assert found.explained == pytest.approx(expected)
    assert 0 <= found.named <= found.explained + 1e-12
    shares = [group.explained for group in found]
    assert shares == sorted(shares, reverse=True)
    for label, group in enumerate(found):
        np.testing.assert_array_equal(meets(explanation.factual, group.who), found.labels == label)


def meets(rows: pd.DataFrame, who: str) -> np.ndarray:
    """Read a condition in words back: bool (n,)."""
    if who == "all rows":
        return np.ones(len(rows), dtype=bool)
    verdict = np.ones(len(rows), dtype=bool)
    city = rows[["rome", "oslo", "riga"]].idxmax(axis=1) if "rome" in rows else None
    for part in who.split(" and "):
        said, _, _ = part.strip("()").partition(" or missing")
        said = part if " is " in part and "at most" not in part and "at least" not in part else said
        between = re.fullmatch(r"(?:(\S+) < )?(\w+)(?: (<=|>) (\S+))?", said)
        if between and (between[1] or between[3]):
            low, name, sign, high = between.groups()
            column = rows[name]
            holds = pd.Series(True, index=rows.index)
            if low:
                holds &= column > number(low)
            if sign:
                holds &= column <= number(high) if sign == "<=" else column > number(high)
        else:
            name, _, rest = said.partition(" is ")
            column = city if name == "city" and city is not None else rows[name]
            holds = level_holds(column, rest)
        if part.startswith("(") and part.endswith(" or missing)"):
            holds |= rows[name].isna()
        verdict &= holds.to_numpy(dtype=bool, na_value=False)
    return verdict


def number(text: str) -> float:
    return float(text.replace(",", ""))


def level_holds(column: pd.Series, rest: str) -> pd.Series:
    if rest in ("known", "missing") and pd.api.types.is_numeric_dtype(column.dtype):
        return column.notna() if rest == "known" else column.isna()
    if rest.startswith("at most "):
        return column <= rest.removeprefix("at most ")
    if rest.startswith("at least "):
        return column >= rest.removeprefix("at least ")
    wanted = rest.removeprefix("not ").split(" or ")
    found = column.astype(object).where(column.notna(), "missing").map(str).isin(wanted)
    return ~found if rest.startswith("not ") else found


def test_groups_read_well(two_groups: ew.Explanation) -> None:
    found = analysis.groups(two_groups, k=3)
    text = str(found)
    assert text == repr(found)
    moved = sum(group.moved for group in found)
    assert text.startswith(f"3 groups of 200 rows, {moved} of which change\n")
    said = (
        r"Age <= 40 and Housing is not own: \d+ of \d+ rows\n   Duration: higher in \d+ rows, by \d"
    )
    assert re.search(said, text)
    assert sum(group.explained for group in found) == pytest.approx(found.explained)
    assert sum(group.share for group in found) == pytest.approx(1.0)


def test_groups_name_the_largest_flow(base: ew.Explanation) -> None:
    after = frame()
    after.loc[after["home"] == "rent", "home"] = "own"
    found = analysis.groups(moved_to(base, base.encoder.encode(after)), k=2)
    assert [(group.who, group.changes) for group in found] == [
        ("home is rent", ("home: rent to own in 20 rows",)),
        ("home is not rent", ()),
    ]
    assert "nothing changes" in str(found)
    assert found.explained == pytest.approx(1.0)


def test_nothing_moved_is_one_group(base: ew.Explanation) -> None:
    found = analysis.groups(unmoved(base))
    assert [(group.who, group.rows, group.changes) for group in found] == [("all rows", N, ())]
    assert found.explained == 0.0
    assert str(found).startswith("1 group of 60 rows")


@pytest.mark.parametrize("k", [0, 2.5, True, "4"])
def test_groups_refuse(base: ew.Explanation, k: object) -> None:
    with pytest.raises(InvalidInput, match="k: expected a whole number >= 1"):
        analysis.groups(base, k)  # type: ignore[arg-type]


# --- words ----------------------------------------------------------------------------------------


def leaves(base: ew.Explanation, name: str, before: list[float], parts: list[int]) -> set[str]:
    """Words for rows of one column that belong to the given parts."""
    column = next(c for c in columns_of(base) if c.name == name)
    values = np.repeat(before, 5)
    column = dataclasses.replace(column, before=values, after=values)
    moves = np.repeat(np.eye(max(parts) + 1)[parts], 5, axis=0)
    found: list[Leaf] = sub_populations(
        [column], moves, most=max(parts) + 1, least_rows=5, least_gain=0.0
    )
    return {leaf.who for leaf in found}


@pytest.mark.parametrize(
    ("name", "before", "parts", "words"),
    [
        ("age", [20, 30, 40], [0, 1, 2], {"age is 20", "age is 30", "age is 40"}),
        ("age", [20, 28, 33, 47], [0, 0, 1, 1], {"age <= 30", "age > 30"}),
        (
            "income",
            [1200.5, 1400.5, 1501.2, 9000.5, 9900.5],
            [0, 0, 1, 2, 2],
            {"income <= 1,500", "1,500 < income <= 5,000", "income > 5,000"},
        ),
        ("income", [nan, 1.0, 2.5], [0, 1, 1], {"income is missing", "income is known"}),
        ("income", [nan, 1.0, 2.5], [0, 0, 1], {"(income <= 2 or missing)", "income > 2"}),
        ("income", [0.1234567, 0.1234568], [0, 1], {"income <= 0.12345675", "income > 0.12345675"}),
        ("income", [1e300, 2e300], [0, 1], {"income <= 1.5e+300", "income > 1.5e+300"}),
        ("income", [0.0, 5e-324], [0, 1], {"income <= 0", "income > 0"}),
        ("size", [0, 1, 2], [0, 0, 1], {"size is at most medium", "size is large"}),
        ("size", [0, 1, 2], [0, 1, 1], {"size is small", "size is at least medium"}),
        ("home", [nan, 0, 1, 2], [0, 1, 1, 1], {"home is missing", "home is not missing"}),
        ("home", [0, 1], [0, 1], {"home is free", "home is own"}),
        ("city", [0, 1, 2], [0, 1, 0], {"city is oslo", "city is not oslo"}),
        ("married", [0, 1], [0, 1], {"married is False", "married is True"}),
    ],
)
def test_words(
    base: ew.Explanation, name: str, before: list[float], parts: list[int], words: set[str]
) -> None:
    assert leaves(base, name, before, parts) == words


def test_a_range_of_levels_has_words(base: ew.Explanation) -> None:
    column = next(c for c in columns_of(base) if c.name == "size")
    values = np.repeat([0.0, 1.0, 2.0, 3.0], 5)
    column = dataclasses.replace(column, levels=("a", "b", "c", "d"), before=values, after=values)
    moves = np.repeat([[0.0], [5.0], [5.0], [0.0]], 5, axis=0)
    found = sub_populations([column], moves, most=3, least_rows=5, least_gain=0.0)
    assert {leaf.who for leaf in found} == {"size is a", "size is b to c", "size is d"}


# --- plausibility ---------------------------------------------------------------------------------


def test_plausibility_leaves_out_the_row_itself(two_groups: ew.Explanation) -> None:
    problem = two_groups.problem
    before, after = (problem.embedding.embed(c) for c in (problem.factual, two_groups.rows.codes))
    own = np.eye(len(before), dtype=bool)
    nearest = [np.where(own, np.inf, cdist(rows, before)).min(axis=1) for rows in (before, after)]
    found = analysis.plausibility(two_groups)
    assert list(found.index) == ["factual", "counterfactual"]
    for name, distances in zip(found.index, nearest, strict=True):
        assert found.loc[name, "q50"] == pytest.approx(np.median(distances))
        far = np.mean(distances > np.quantile(nearest[0], 0.95))
        assert found.loc[name, "farther"] == pytest.approx(far)


def test_rows_that_did_not_move_are_as_plausible_as_before(base: ew.Explanation) -> None:
    found = analysis.plausibility(unmoved(base))
    np.testing.assert_array_equal(found.loc["factual"], found.loc["counterfactual"])
    assert found.loc["factual", "q50"] > 0


def test_rows_far_from_everything_are_implausible(two_groups: ew.Explanation) -> None:
    codes = two_groups.problem.factual.copy()
    codes[:100, 0] += 90_000.0
    assert analysis.plausibility(moved_to(two_groups, codes)).loc["counterfactual", "farther"] > 0.5


def test_rows_that_look_like_none_that_exist_are_noticed() -> None:
    angle = np.random.default_rng(0).uniform(0.0, 2.0 * np.pi, 120)
    ring = pd.DataFrame({"x": np.cos(angle), "y": np.sin(angle)})
    model = ew.models.function(lambda rows: rows["x"] ** 2 + rows["y"] ** 2, smooth=True)
    inward, none = (
        ew.explain(model, ring, target=ew.targets.at_most(level), certify="in-sample")
        for level in (0.5, 1.5)
    )
    (notice,) = (line for line in inward.status.notices if "nearest real row" in line)
    assert "of the rows are farther from the nearest real row than 95% of them were" in notice
    assert float(notice.split("%")[0]) >= 10
    assert ew.report.headline(inward).endswith(f"{notice}.")
    assert not any("nearest real row" in line for line in none.status.notices)


def test_plausibility_of_another_background(two_groups: ew.Explanation) -> None:
    rows = population()
    # A second copy of every row is a neighbour at distance 0, the first is the row itself.
    twice = analysis.plausibility(unmoved(two_groups), pd.concat([rows, rows]))
    assert (twice == 0).all(axis=None)
    # Rows that are not among the background have no copy in it.
    problem = two_groups.problem
    other = rows.iloc[:20].assign(Duration=lambda frame: frame["Duration"] + 1.0)
    codes = two_groups.encoder.encode(other)
    distances = cdist(*(problem.embedding.embed(c) for c in (problem.factual, codes))).min(axis=1)
    found = analysis.plausibility(two_groups, other)
    assert found.loc["factual", "q50"] == pytest.approx(np.median(distances))


@pytest.mark.parametrize(
    ("background", "message"),
    [
        ([1, 2], "a DataFrame with the explained columns"),
        (population().iloc[:1], "at least 2 rows"),
    ],
)
def test_plausibility_refuses(two_groups: ew.Explanation, background: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        analysis.plausibility(two_groups, background)  # type: ignore[arg-type]


def test_groups_tell_no_share_of_a_mean_that_hardly_changes() -> None:
    """Rows that rise and rows that fall make up for each other: "-345% of what it does"."""
    rows = pd.DataFrame({"a": np.linspace(-1.0, 1.0, 80), "b": np.arange(80) % 5})
    wide = ew.targets.sample(2.0 * rows["a"].to_numpy() + 0.001)
    answer = ew.explain(
        ew.models.function(lambda frame: frame["a"], smooth=True),
        rows,
        target=wide,
        bounds=ew.Bounds(outputs=0.5),
        schema=ew.Schema.infer(rows).range("a", -3.0, 3.0),
        certify="in-sample",
    )
    assert answer.groups(2).effect is None
    assert "of what it does" not in str(answer.groups(2))
