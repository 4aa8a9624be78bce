"""Laws of every explanation, over random schemas, frames and models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import elsewise as ew
from legality import assert_legal, assert_map, assert_outputs

Score = Callable[[pd.DataFrame], np.ndarray]

FAST = ew.Settings(iterations=4, epsilon=0.3, draws=39, directions=8, edits=8)
LAWS = settings(
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # frames come from seeds: nothing to shrink
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
SIZES = pd.CategoricalDtype(["small", "medium", "large", "huge"], ordered=True)
COLORS = pd.CategoricalDtype(["red", "green", "blue"])

COLUMNS: dict[str, Callable[[np.random.Generator, int], object]] = {
    "float": lambda rng, n: rng.normal(size=n),
    "price": lambda rng, n: rng.gamma(3.0, 9.0, n).round(2),
    "skewed": lambda rng, n: rng.lognormal(5.0, 2.0, n),
    "zeros": lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, rng.random(n)),
    "single": lambda rng, n: rng.normal(size=n).astype(np.float32),
    "count": lambda rng, n: rng.integers(0, 12, n),
    "small": lambda rng, n: rng.integers(-3, 4, n).astype(np.int8),
    "whole": lambda rng, n: rng.integers(0, 5, n).astype(float),
    "nullable": lambda rng, n: pd.array(rng.integers(0, 9, n), dtype="Int64"),
    "flag": lambda rng, n: rng.random(n) < 0.5,
    "text": lambda rng, n: rng.choice(["a", "b", "c", "d"], n),
    "color": lambda rng, n: pd.Categorical.from_codes(rng.integers(0, 3, n), dtype=COLORS),
    "size": lambda rng, n: pd.Categorical.from_codes(rng.integers(0, 4, n), dtype=SIZES),
    "day": lambda rng, n: pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 9, n), "D"),
}
MAY_MISS = {"float", "skewed", "single", "whole", "nullable", "text", "color", "size", "day"}
AMOUNTS = ["float", "price", "skewed", "zeros", "single", "count", "small", "whole", "nullable"]
GROUP = ["is0", "is1", "is2"]


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    """Between 10 and 25 rows of two to six columns, some with missing cells, maybe a one-hot."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(10, 25))
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=2, max_size=6, unique=True))
    frame = pd.DataFrame({name: COLUMNS[name](rng, n) for name in names})
    for name in sorted(MAY_MISS.intersection(names)):
        if draw(st.booleans()):
            frame.loc[rng.random(n) < 0.2, name] = None
    if draw(st.booleans()):
        level = rng.integers(0, 3, n)
        for k, name in enumerate(GROUP):
            frame[name] = (level == k).astype(draw(st.sampled_from(["int64", "float64", "bool"])))
    frame.index = rng.permutation(n) + 100
    return frame


@st.composite
def schemas(draw: st.DrawFn, frame: pd.DataFrame) -> ew.Schema:
    """A schema of the frame with random wishes about its columns."""
    schema = ew.Schema.infer(frame)
    grouped = "is0" in frame and draw(st.booleans())
    if grouped:
        schema = schema.one_hot_group("is", GROUP)
    for name in frame.columns:
        feature = schema[name]
        if not feature.free or (grouped and name in GROUP):
            continue
        wishes = ["none", "freeze", "weight"]
        if name in AMOUNTS:
            wishes += ["only_increase", "only_decrease", "range", "range and increase"]
            wishes += ["at_most_by", "resolution"]
        if name == "size":
            wishes += ["only_increase", "only_decrease", "allowed", "allowed and increase"]
        if name in ("text", "color"):
            wishes += ["allowed"]
        schema = wished(draw, schema, name, draw(st.sampled_from(wishes)))
    if grouped and draw(st.integers(0, 3)) == 0:
        schema = schema.freeze(*GROUP)
    if draw(st.booleans()):
        name, rule = draw(st.sampled_from(rules_for(frame)))
        schema = schema.rule(rule, name)
    movable = [f.name for f in schema.features if f.can_move and f.name not in GROUP]
    if not any(feature.free for feature in schema.features) and movable:
        schema = schema.free(movable[0])
    return schema


def wished(draw: st.DrawFn, schema: ew.Schema, name: str, wish: str) -> ew.Schema:
    """The schema with one more wish."""
    feature = schema[name]
    if wish.startswith("range"):
        low, high = feature.observed
        cut = low + draw(st.sampled_from([0.3, 0.7, 1.0, 1.5])) * (high - low)
        schema = schema.range(name, upper=cut)
    if wish.startswith("allowed"):
        some = draw(st.lists(st.sampled_from(feature.levels), min_size=1, unique=True))
        schema = schema.allowed(name, some)
    if wish.endswith("increase"):
        return schema.only_increase(name)
    if wish == "only_decrease":
        return schema.only_decrease(name)
    if wish == "at_most_by":
        return schema.at_most_by(name, max(feature.scale, 1.0))
    if wish == "resolution":
        whole = feature.kind is ew.features.Kind.INTEGER
        return schema.resolution(name, draw(st.sampled_from([2, 5] if whole else [0.01, 0.5, 0.3])))
    if wish == "freeze":
        return schema.freeze(name)
    return schema.weight(name, 3.0) if wish == "weight" else schema


def rules_for(frame: pd.DataFrame) -> list[tuple[str, Callable[[pd.DataFrame], object]]]:
    """Conditions that some rows of the frame meet."""
    amounts = [name for name in AMOUNTS if name in frame and frame[name].dropna().size]
    rules = [("anything", lambda rows: np.ones(len(rows), dtype=bool))]
    if amounts:
        first = amounts[0]
        middle = frame[first].median()
        rules.append(("low", lambda rows: (rows[first] <= middle).fillna(False)))
    if len(amounts) > 1:
        one, two = amounts[:2]
        rules.append(("ordered", lambda rows: rows[one].fillna(0) <= rows[two].fillna(0) + 1))
    if "flag" in frame and amounts:
        rules.append(("either", lambda rows: rows["flag"] | (rows[first] > middle).fillna(False)))
    return [(name, rule) for name, rule in rules if np.any(rule(frame))]


@st.composite
def models(draw: st.DrawFn, frame: pd.DataFrame) -> Score:
    """A linear score, a step function or a lookup on categories; rows one by one, no BLAS."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["linear", "steps", "lookup"]))
    levels = {
        name: sorted(frame[name].dropna().unique())
        for name in frame
        if frame[name].dtype.kind not in "iufM"
    }
    places_of = {name: pd.Index(levels[name], dtype=object).get_indexer for name in levels}
    tables = {name: np.append(rng.normal(size=len(levels[name])), -0.5) for name in levels}
    numbers = [name for name in frame if frame[name].dtype.kind in "iuf"]
    centers = {name: float(frame[name].dropna().astype(float).mean()) for name in numbers}
    spreads = {name: float(frame[name].dropna().astype(float).std() or 1.0) for name in numbers}
    weights = dict(zip(numbers, rng.normal(size=len(numbers)), strict=True))
    cuts = {name: rng.normal(size=4) for name in numbers}

    def score(rows: pd.DataFrame) -> np.ndarray:
        total = np.zeros(len(rows))
        for name in numbers if kind != "lookup" else numbers[:1]:
            cells = rows[name].to_numpy(dtype=float, na_value=np.nan)
            places = (cells - centers[name]) / spreads[name]
            if kind == "steps":
                places = sum((places > cut).astype(float) for cut in cuts[name]) - 2.0
            total += weights[name] * np.where(np.isnan(cells), 0.7, places)
        for name, table in tables.items():
            total += table[places_of[name](rows[name].to_numpy(dtype=object))]
        return 1.0 / (1.0 + np.exp(-np.clip(total, -30, 30)))

    score.__name__ = kind
    return score


TARGETS = st.sampled_from(
    [
        ew.targets.at_least(0.7),
        ew.targets.at_most(0.3),
        ew.targets.constant(0.8),
        ew.targets.shift(0.1),
        ew.targets.sample(np.linspace(0.3, 0.95, 17)),
        ew.targets.share(approved=0.8),
    ]
)


@st.composite
def questions(draw: st.DrawFn) -> tuple[Score, pd.DataFrame, dict[str, object]]:
    """A model, rows and what is asked about them; there is always something free to move."""
    frame = draw(frames())
    schema = draw(schemas(frame))
    if not any(feature.free for feature in schema.features):
        frame["float"] = np.random.default_rng(0).normal(size=len(frame))
        schema = ew.Schema.infer(frame)
    return draw(models(frame)), frame, {"schema": schema, "target": draw(TARGETS)}


def explained(
    question: tuple[Score, pd.DataFrame, dict[str, object]], limits: ew.Bounds, **more: object
) -> tuple[ew.Explanation, Score]:
    score, rows, asked = question
    asked = {"bounds": limits, "settings": FAST, "certify": "in-sample"} | asked | more
    return ew.explain(score, rows, **asked), score


@settings(LAWS, max_examples=25)
@given(questions(), st.sampled_from([None, 0.3]), st.sampled_from([0.05, 0.2]), st.booleans())
def test_rows_are_legal_and_replayed(question, inputs, outputs, sparse):
    """The three laws below in one, on fewer examples."""
    how = replace(FAST, sparse=sparse)
    explanation, score = explained(
        question, ew.Bounds(inputs=inputs, outputs=outputs), settings=how
    )
    assert_legal(explanation)
    assert_outputs(explanation, score)
    assert_map(explanation)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_every_row_is_legal_and_its_output_the_models(part):
    @seed(part)
    @settings(LAWS, max_examples=200)
    @given(questions(), st.sampled_from([0.1, 0.3]))
    def law(question, outputs):
        explanation, score = explained(question, ew.Bounds(outputs=outputs))
        pd.testing.assert_frame_equal(explanation.factual, question[1], check_exact=True)
        assert_legal(explanation)
        assert_outputs(explanation, score)

    law()


@pytest.mark.slow
@settings(LAWS, max_examples=150)
@given(questions(), st.sampled_from([0.1, 0.5]), st.sampled_from([0.05, 0.2]))
def test_the_map_gives_the_counterfactual_whatever_the_batch(question, inputs, outputs):
    explanation, score = explained(question, ew.Bounds(inputs=inputs, outputs=outputs))
    assert_legal(explanation)
    assert_outputs(explanation, score)
    assert_map(explanation)


@pytest.mark.slow
@settings(LAWS, max_examples=50)
@given(questions(), st.booleans())
def test_one_limit_and_few_changes(question, sparse):
    how = replace(FAST, sparse=sparse)
    explanation, score = explained(question, ew.Bounds(outputs=0.1), settings=how)
    assert_legal(explanation)
    assert_outputs(explanation, score)
    assert_map(explanation)


@pytest.mark.parametrize("bounds", [ew.Bounds(), ew.Bounds(outputs=0.05)], ids=["rows", "distance"])
@pytest.mark.parametrize(
    "hold",
    [
        lambda schema: schema.freeze("is1"),
        lambda schema: schema.range("is1", 0, 0.75),
        lambda schema: schema.only_increase("is0"),
        lambda schema: schema.only_decrease("is0"),
        lambda schema: schema.freeze("is0", "is1"),
    ],
    ids=["frozen", "range", "increase", "decrease", "two frozen"],
)
def test_a_one_hot_group_with_a_held_member_keeps_its_1(
    hold: Callable[[ew.Schema], ew.Schema], bounds: ew.Bounds
) -> None:
    rng = np.random.default_rng(0)
    where = rng.integers(0, 3, 60)
    rows = pd.DataFrame({"a": rng.normal(size=60)} | {f"is{k}": 1 * (where == k) for k in range(3)})
    answer = ew.explain(
        lambda frame: 1.0 / (1.0 + np.exp(-frame["a"] - 2.0 * frame["is0"])),
        rows,
        target=ew.targets.at_most(0.4),
        schema=hold(ew.Schema.infer(rows).one_hot_group("is", ["is0", "is1", "is2"])),
        bounds=bounds,
        settings=ew.Settings(iterations=4, draws=39),
        certify="in-sample",
    )
    assert_legal(answer)
    assert_map(answer)
