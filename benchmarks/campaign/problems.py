"""Random small problems: all schema kinds, models and targets; every answer is checked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import elsewise as ew

from .inputs import check
from .verdicts import Attempt

sys.path.append(str(Path(__file__).parents[2] / "tests"))  # legality.py: what a legal row is

COUNT = 10_000


def attempts() -> Iterator[Attempt]:
    """Every attempt, in one order."""
    for seed in range(COUNT):
        yield Attempt(f"problem {seed}", lambda seed=seed: solve(seed))


def solve(seed: int) -> None:
    """Explain a random problem: rows are legal, outputs the model's, and no number is NaN."""
    from legality import assert_legal

    rng = np.random.default_rng([seed, 16])
    rows = frame(rng)
    schema = constrained(ew.Schema.infer(rows), rows, rng)
    model = a_model(rows, rng)
    answer = ew.explain(
        model,
        rows,
        target=a_target(rng),
        schema=schema,
        bounds=ew.Bounds(
            inputs=_maybe(rng, 0.05, 1.0),
            outputs=_maybe(rng, 0.02, 0.5),
            trim=rng.choice([0.0, 0.05]),
        ),
        settings=ew.Settings(
            iterations=int(rng.integers(1, 4)),
            draws=39,
            directions=8,
            sparse=bool(rng.random() < 0.2),
        ),
        seed=int(rng.integers(1000)),
    )
    check(answer)
    assert_legal(answer)
    now = np.asarray(model(answer.counterfactual), dtype=float).reshape(len(rows), -1)
    assert np.allclose(now, answer.outputs), "outputs that are not the model's"
    if not answer.encoder.schema.rules:
        again = answer.apply(rows)
        assert again.columns.equals(rows.columns), "apply returns other columns"
    text = f"{answer!r} {answer.certificate} {answer.status}"
    assert "nan" not in text.lower().split(), "NaN in words"


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
    made = pd.DataFrame(columns)
    if rng.random() < 0.3:
        made.index = pd.Index(rng.permutation(n) + int(rng.integers(0, 2)) * n)
    return made


def constrained(schema: ew.Schema, rows: pd.DataFrame, rng: np.random.Generator) -> ew.Schema:
    """Some constraints of every kind."""
    for feature in schema.features:
        roll = rng.random()
        if feature.name != "a" and roll < 0.15:
            schema = schema.freeze(feature.name)
        elif roll < 0.3 and feature.numeric and feature.free:
            schema = schema.only_increase(feature.name)
        elif roll < 0.4 and feature.numeric and feature.free:
            low, high = feature.observed
            schema = schema.range(feature.name, low, (low + 3 * high) / 4 if high > low else high)
        elif roll < 0.5 and feature.free and len(feature.levels) > 1:
            schema = schema.allowed(feature.name, feature.levels[:2])
        elif roll < 0.6:
            schema = schema.weight(feature.name, float(rng.uniform(0.1, 10)))
    if rng.random() < 0.2:
        least = float(rows["a"].quantile(0.2))
        schema = schema.rule(lambda moved: moved.sort_values("a")["a"] >= least, "not too low")
    return schema


def a_model(rows: pd.DataFrame, rng: np.random.Generator) -> Any:
    """A function of the columns, smooth or stepped, in any unit, of one or two outputs."""
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
                total += slope * (frame[name].astype(object).astype(str) == "x").to_numpy()
        total = np.round(total) if stepped else total
        found = 1.0 / (1.0 + np.exp(-np.clip(total, -50, 50)))
        return np.column_stack([found, 1.0 - found]) if several else unit * found

    return score


def a_target(rng: np.random.Generator) -> Any:
    """Any kind of target."""
    level = float(rng.uniform(0, 1))
    kinds = [
        lambda: ew.targets.at_most(level),
        lambda: ew.targets.at_least(level),
        lambda: ew.targets.constant(level),
        lambda: ew.targets.shift(level - 0.5),
        lambda: ew.targets.scale(level, about=0.5),
        lambda: ew.targets.share(max(level, 0.05)),
        lambda: ew.targets.sample(rng.random(20)),
        lambda: ew.targets.distribution(lambda u: 0.2 + level * u),
    ]
    return kinds[int(rng.integers(len(kinds)))]()


def _maybe(rng: np.random.Generator, low: float, high: float) -> float | None:
    return None if rng.random() < 0.4 else float(rng.uniform(low, high))
