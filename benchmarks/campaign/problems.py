"""Random small problems: all schema kinds, models and targets; every answer is checked."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import elsewise as ew

from .inputs import check
from .verdicts import Attempt

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from legality import assert_legal, assert_map  # what a legal row is

COUNT = 10_000
SLACK = 1e-9
"""How far a share, a mean or an output may be from what the same numbers give elsewhere."""


def attempts() -> Iterator[Attempt]:
    """Every attempt, in one order."""
    for seed in range(COUNT):
        yield Attempt(f"problem {seed}", lambda seed=seed: solve(seed))


def solve(seed: int) -> None:
    """Explain a random problem; everything that the answer says is computed again, elsewhere."""
    rng = np.random.default_rng([seed, 16])
    rows = frame(rng)
    schema = constrained(ew.Schema.infer(rows), rows, rng)
    given, model, columns = a_model(rows, rng)
    target, reached = a_target(model(rows), columns, rng)
    by_distance = rng.random() < 0.4
    claims = (
        {"certify": "in-sample"},
        {"certify": "held-out" if len(rows) >= 40 else "in-sample"},
        {"population": "all"},
    )
    asked = {
        "target": target,
        "schema": schema,
        "bounds": ew.Bounds(
            inputs=_maybe(rng, 0.05, 1.0),
            outputs=float(rng.uniform(0.02, 0.5)) if by_distance else None,
            trim=rng.choice([0.0, 0.05]),
            rows_moved=None if by_distance else _maybe(rng, 0.1, 1.0, 0.8),
            cells_per_row=None if by_distance or rng.random() < 0.9 else int(rng.integers(1, 3)),
        ),
        "settings": ew.Settings(
            iterations=int(rng.integers(1, 4)),
            draws=39,
            directions=8,
            sparse=bool(rng.random() < 0.2),
        ),
        **claims[int(rng.choice(3, p=(0.6, 0.3, 0.1)))],
        "seed": int(rng.integers(1000)),
    }
    answer = ew.explain(given, rows, **asked)
    check(answer)
    assert_legal(answer)
    pd.testing.assert_frame_equal(answer.factual, rows.loc[answer.index], check_exact=True)
    known = not by_distance and answer.certificate.kind != "held-out"
    check_words(answer, model, reached if known else None)
    roll = rng.random()
    if roll < 0.1:
        again = ew.explain(given, rows, **asked)
        assert again.counterfactual.equals(answer.counterfactual), "another answer when asked again"
    elif roll < 0.2 and not schema.rules:
        check_saved(answer, given)
    elif roll < 0.4:
        assert_map(answer)
    else:
        other = answer.apply(rows)
        assert other.columns.equals(rows.columns), "apply returns other columns"
        assert other.index.equals(rows.index), "apply returns another index"


def check_words(answer: ew.Explanation, model: Any, reached: Any) -> None:
    """Compare what is said with the model's outputs: verdict, share, mean and limits."""
    now = np.asarray(model(answer.counterfactual), dtype=float).reshape(len(answer.index), -1)
    assert np.allclose(now, answer.outputs), "outputs that are not the model's"
    text = f"{answer!r} {answer.certificate} {answer.status}"
    assert "nan" not in text.lower().split(), "NaN in words"
    certificate, status = answer.certificate, answer.status
    for side in (certificate.inputs, certificate.outputs):
        assert side.at_most >= side.estimate - SLACK, "a limit below the distance"
        assert (
            side.bound is None
            or status.verdict not in (*(ew.Verdict.CERTIFIED, ew.Verdict.DESCRIBED),)
            or side.at_most <= side.bound
        ), f"{status.verdict} with a bound that is missed"
    if reached is None:
        return
    found, wanted, holds = reached(now)
    if status.reached is not None:
        assert abs(status.reached - found) <= SLACK * max(1.0, abs(found)), (
            f"says {status.reached} is reached, but it is {found}"
        )
    good = (ew.Verdict.CERTIFIED, ew.Verdict.DESCRIBED, ew.Verdict.REACHED)
    assert status.verdict not in good or holds, f"{status.verdict}: {found} of {wanted}"


def check_saved(answer: ew.Explanation, model: Any) -> None:
    """Save, load and compare, with the model and without it."""
    with tempfile.TemporaryDirectory(prefix="campaign-") as place:
        loaded = ew.load(answer.save(Path(place) / "run"), model=model)
    for name in ("factual", "counterfactual"):
        one, other = getattr(answer, name), getattr(loaded, name)
        pd.testing.assert_frame_equal(one, other, check_exact=True, check_freq=False)
    assert str(loaded.certificate) == str(answer.certificate), "another certificate when loaded"
    assert str(loaded.status) == str(answer.status), "another status when loaded"
    moved = loaded.apply(answer.factual)
    pd.testing.assert_frame_equal(moved, answer.counterfactual, check_exact=True, check_freq=False)


def frame(rng: np.random.Generator) -> pd.DataFrame:
    """Two to five columns of any kind, 8 to 60 rows, with and without missing cells."""
    n = int(rng.integers(8, 61))
    kinds: list[Any] = [
        lambda: rng.normal(size=n) * 10.0 ** rng.integers(-6, 7),
        lambda: rng.integers(0, rng.integers(2, 40), n),
        lambda: rng.integers(-5, 5, n).astype(rng.choice(["int8", "int32", "float32"])),
        lambda: rng.choice(list("wxyz"), n),
        lambda: rng.random(n) < 0.5,
        lambda: pd.Categorical(rng.choice(list("lmh"), n), list("lmh"), ordered=True),
        lambda: pd.date_range("2024-01-01", periods=n),
        lambda: np.full(n, 3.0),
        lambda: np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        lambda: pd.array(rng.integers(0, 9, n), dtype="Int64"),
        lambda: rng.exponential(size=n).astype(np.float32),
    ]
    columns: dict[Any, Any] = {"a": rng.normal(size=n)}
    for k, place in enumerate(rng.integers(0, len(kinds), int(rng.integers(1, 5)))):
        columns[f"c{k}"] = kinds[place]()
    if rng.random() < 0.15:
        columns |= {"left": (left := rng.integers(0, 2, n)), "right": 1 - left}
    if rng.random() < 0.15:
        columns["twice"] = 2 * columns["a"] + 1
    made = pd.DataFrame(columns)
    if rng.random() < 0.3:
        made.index = pd.Index(rng.permutation(n) + int(rng.integers(0, 2)) * n)
    return made


def constrained(schema: ew.Schema, rows: pd.DataFrame, rng: np.random.Generator) -> ew.Schema:
    """Some constraints of every kind."""
    for feature in schema.features:
        roll = rng.random() if feature.name != "twice" else 1.0
        if feature.name != "a" and roll < 0.15:
            schema = schema.freeze(feature.name)
        elif roll < 0.3 and feature.numeric and feature.free:
            one_way = schema.only_increase if rng.random() < 0.5 else schema.only_decrease
            schema = one_way(feature.name)
        elif roll < 0.4 and feature.numeric and feature.free:
            low, high = feature.observed
            schema = schema.range(feature.name, low, (low + 3 * high) / 4 if high > low else high)
        elif roll < 0.5 and feature.free and len(feature.levels) > 1:
            schema = schema.allowed(feature.name, feature.levels[:2])
        elif roll < 0.6:
            schema = schema.weight(feature.name, float(rng.uniform(0.1, 10)))
    if {"left", "right"} <= set(rows.columns):
        schema = schema.one_hot_group("side", ["left", "right"])
    if "twice" in rows.columns:
        schema = schema.derived("twice", "2 * a + 1")
    roll, least = rng.random(), float(rows["a"].quantile(0.2))
    if roll < 0.15:
        schema = schema.rule(lambda moved: moved.sort_values("a")["a"] >= least, "not too low")
    elif roll < 0.3:
        schema = schema.rule(f"a >= {least!r} or a < {least / 2 - 1!r}", "not too low")
    return schema


def a_model(rows: pd.DataFrame, rng: np.random.Generator) -> tuple[Any, Any, int]:
    """A function, smooth or stepped, in any unit, or a pipeline; what it says; its outputs."""
    slopes = {name: rng.normal() for name in rows.columns}
    spread = {
        name: float(np.nanstd(pd.to_numeric(rows[name], errors="coerce").astype(float))) or 1.0
        for name in rows.columns
        if rows[name].dtype.kind in "iufb"
    }
    stepped, unit, several = rng.random() < 0.4, 10.0 ** rng.integers(-3, 4), rng.random() < 0.15

    def score(frame: pd.DataFrame) -> np.ndarray:
        total = np.zeros(len(frame))
        for name, slope in slopes.items():
            if name in spread:
                values = frame[name].to_numpy(dtype=float, na_value=np.nan) / spread[name]
                total += slope * np.nan_to_num(values)
            elif rows[name].dtype.kind == "O" or hasattr(rows[name].dtype, "categories"):
                total += slope * (np.asarray(frame[name], dtype=object) == "x")
        total = np.round(total) if stepped else total
        found = 1.0 / (1.0 + np.exp(-np.clip(total, -50, 50)))
        return np.column_stack([found, 1.0 - found]) if several else unit * found

    if rng.random() < 0.7:
        return score, score, 2 if several else 1
    return *a_pipeline(rows, list(spread), score, rng), 1


def a_pipeline(
    rows: pd.DataFrame, numbers: list[str], score: Any, rng: np.random.Generator
) -> tuple[Any, Any]:
    """A fitted model of scikit-learn on the columns of numbers, and what it says."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    wanted = np.ravel(score(rows)[:, :1] if np.ndim(score(rows)) > 1 else score(rows))
    classes, seed = wanted > np.median(wanted), int(rng.integers(1000))
    if classes.all() or not classes.any():
        classes = np.arange(len(rows)) % 2 == 0
    reader = make_column_transformer((make_pipeline(SimpleImputer(), StandardScaler()), numbers))
    final, labels = (
        (LogisticRegression(), classes),
        (DecisionTreeClassifier(max_depth=3, random_state=seed), classes),
        (LinearRegression(), wanted),
        (RandomForestRegressor(n_estimators=3, max_depth=3, random_state=seed), wanted),
    )[int(rng.integers(4))]
    fitted = make_pipeline(reader, final).fit(rows, labels)
    if hasattr(fitted, "predict_proba"):
        return fitted, lambda frame: fitted.predict_proba(frame)[:, 1]
    return fitted, fitted.predict


def a_target(outputs: np.ndarray, columns: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Any kind of target; and what outputs come to by it: the number, what is asked, if it is."""
    first = np.asarray(outputs, dtype=float).reshape(len(outputs), -1)[:, 0]
    low, high = float(first.min()), float(first.max())
    level = low + (high - low or 1.0) * float(rng.uniform(-0.1, 1.1))
    if columns > 1:
        level = min(max(level, 0.0), 1.0)
    part = float(rng.uniform(0.05, 1))
    plain: list[Any] = [
        ew.targets.scale(part, about=level),
        ew.targets.sample(rng.random((20, columns)) * (high - low) + low),
        ew.targets.constant(level),
        ew.targets.group(outputs[: max(2, len(outputs) // 2)]),
    ]
    if columns == 1:
        plain.append(ew.targets.distribution(lambda u: low + (high - low) * u**2))

    def every(inside: Any) -> Any:
        return lambda now: (found := inside(now).all(axis=1).mean(), 1.0, found == 1.0)

    def part_of(inside: Any, asked: float, way: str) -> Any:
        before = inside(first).mean()

        def said(now: np.ndarray) -> tuple[float, float, bool]:
            found = float(inside(now[:, 0]).mean())
            rising = {"to": asked > before, "at_least": True, "at_most": False}[way]
            return found, asked, found >= asked - SLACK if rising else found <= asked + SLACK

        return said

    room = (high - low or 1.0) * 0.1
    kinds: list[Any] = [
        lambda: (ew.targets.at_most(level), every(lambda now: now <= level)),
        lambda: (ew.targets.at_least(level), every(lambda now: now >= level)),
        lambda: (
            ew.targets.constant(level, tolerance=room),
            every(lambda now: np.abs(now - level) <= room * (1.0 + SLACK)),
        ),
        lambda: (plain[int(rng.integers(len(plain)))], None),
    ]
    if columns == 1:
        ways = ("to", "at_least", "at_most")
        way, change = ways[int(rng.integers(3))], float(rng.uniform(-0.3, 0.3)) * (high - low)
        named = {"value" if way == "to" else way: part}
        kinds += [
            lambda: (
                ew.targets.share(**named, above=level),
                part_of(lambda now: now >= level, part, way),
            ),
            lambda: (
                ew.targets.share(**named, below=level),
                part_of(lambda now: now <= level, part, way),
            ),
            lambda: (
                ew.targets.quantile(min(part, 0.95), level),
                part_of(lambda now: now <= level, min(part, 0.95), "to"),
            ),
            lambda: (ew.targets.mean(level), mean_of(level, float(first.mean()))),
            lambda: (ew.targets.shift(change), mean_of(change, 0.0, float(first.mean()))),
        ]
    else:
        kinds += [
            lambda: (ew.targets.label(0), every(lambda now: now[:, :1] > now[:, 1:])),
            lambda: (ew.targets.shift(level - 0.5), None),
        ]
    return kinds[int(rng.integers(len(kinds)))]()


def mean_of(asked: float, before: float, origin: float = 0.0) -> Any:
    """What a mean output comes to, counted from ``origin``."""

    def said(now: np.ndarray) -> tuple[float, float, bool]:
        found, slack = float(now[:, 0].mean()) - origin, SLACK * max(1.0, abs(asked), abs(before))
        return found, asked, found >= asked - slack if asked > before else found <= asked + slack

    return said


def _maybe(rng: np.random.Generator, low: float, high: float, none: float = 0.4) -> float | None:
    return None if rng.random() < none else float(rng.uniform(low, high))
