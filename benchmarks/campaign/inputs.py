"""Wrong and odd inputs: every argument with every value that somebody may pass by mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

import elsewise as ew

from .verdicts import Attempt

NAN, INF = float("nan"), float("inf")
VALUES: dict[str, Any] = {
    "None": None,
    "True": True,
    "0": 0,
    "-1": -1,
    "2.5": 2.5,
    "nan": NAN,
    "inf": INF,
    "1e300": 1e300,
    "10**30": 10**30,
    "text": "no",
    "empty": "",
    "list": [1],
    "dict": {},
    "bytes": b"x",
    "object": object(),
    "np.float32": np.float32(0.5),
    "np.int64": np.int64(3),
    "array": np.zeros(3),
    "frame": pd.DataFrame({"a": [1.0]}),
}
RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(
    {"a": RNG.normal(size=40), "b": RNG.integers(0, 9, 40), "c": RNG.choice(list("xyz"), 40)}
)
FAST = {"iterations": 2, "draws": 39, "directions": 8}


def score(frame: pd.DataFrame) -> np.ndarray:
    """Return probabilities that depend on the column a alone."""
    return 1.0 / (1.0 + np.exp(-frame["a"].to_numpy(dtype=float)))


def explain(model: Any = score, rows: Any = ROWS, **more: Any) -> ew.Explanation:
    """Explain quickly, and check that nothing about the answer is NaN."""
    asked = {"target": ew.targets.at_most(0.45), "bounds": ew.Bounds(outputs=0.1)}
    answer = ew.explain(model, rows, **(asked | {"settings": ew.Settings(**FAST)} | more))
    check(answer)
    return answer


def check(answer: ew.Explanation) -> None:
    """Refuse NaN certificates, and rows of another shape, index or dtypes."""
    certificate = answer.certificate
    for side in (certificate.inputs, certificate.outputs):
        assert not np.isnan(side.at_most), "a NaN certificate"
    before, after = answer.factual, answer.counterfactual
    assert before.index.equals(after.index), "another index"
    assert (before.dtypes == after.dtypes).all(), "other dtypes"
    for feature in answer.encoder.schema.features:
        place = answer.encoder.schema.names.index(feature.name)
        same = before.iloc[:, place].equals(after.iloc[:, place])
        derived = feature.derived is not None
        assert feature.free or derived or same, f"frozen {feature.name!r} moved"


def attempts() -> Iterator[Attempt]:
    """Every attempt, in one order."""
    for label, value in VALUES.items():
        for field in fields(ew.Settings):
            yield _attempt(
                f"Settings({field.name}={label})",
                lambda f=field, v=value: explain(settings=ew.Settings(**(FAST | {f.name: v}))),
            )
        for field in fields(ew.Bounds):
            yield _attempt(
                f"Bounds({field.name}={label})",
                lambda f=field, v=value: explain(
                    bounds=ew.Bounds(**({"outputs": 0.1} | {f.name: v}))
                ),
            )
        for name in (
            "constant",
            "at_least",
            "at_most",
            "shift",
            "scale",
            "share",
            "sample",
            "group",
        ):
            yield _attempt(
                f"targets.{name}({label})",
                lambda n=name, v=value: explain(target=getattr(ew.targets, n)(v)),
            )
        yield _attempt(f"distribution({label})", lambda v=value: ew.targets.distribution(v))
        for name in ("target", "schema", "background", "bounds", "certify", "population", "seed"):
            yield _attempt(f"explain({name}={label})", lambda n=name, v=value: explain(**{n: v}))
        for name in ("settings", "stop", "model", "rows"):
            yield _attempt(f"explain({name}={label})", lambda n=name, v=value: explain(**{n: v}))
        for name in ("range", "allowed", "weight"):
            yield _attempt(
                f"Schema.{name}('a', {label})",
                lambda n=name, v=value: explain(schema=getattr(ew.Schema.infer(ROWS), n)("a", v)),
            )
        for name in ("freeze", "only", "continuous", "integer", "only_increase", "rule"):
            yield _attempt(
                f"Schema.{name}({label})",
                lambda n=name, v=value: explain(schema=getattr(ew.Schema.infer(ROWS), n)(v)),
            )
    for name, frame in frames().items():
        yield _attempt(f"rows: {name}", lambda f=frame: explain(rows=f()))
        yield _attempt(f"background: {name}", lambda f=frame: explain(background=f()))
    for name, model in models().items():
        yield _attempt(f"model: {name}", lambda m=model: explain(m))


def _attempt(key: str, run: Callable[[], object]) -> Attempt:
    return Attempt(key, run)


def frames() -> dict[str, Callable[[], Any]]:
    """Frames as they come: odd cells, odd labels, odd sizes."""
    cells: dict[str, Any] = {
        "Decimal": [Decimal(k) for k in range(40)],
        "bytes": [b"a", b"b"] * 20,
        "period": pd.period_range("2024-01", periods=40, freq="M"),
        "date with zone": pd.date_range("2024-01-01", periods=40, tz="UTC"),
        "timedelta": pd.to_timedelta(np.arange(40), unit="h"),
        "interval": pd.interval_range(0, 40),
        "complex": np.arange(40) * 1j,
        "mixed": [1, "a"] * 20,
        "lists": [[1]] * 40,
        "surrogate": pd.Series(["\ud800", "b"] * 20, dtype=object),
        "control": ["\x1b[2K", "\x00"] * 20,
        "formula": ["=1+1", "@x"] * 20,
        "whole float64 range": np.where(np.arange(40) % 2, 1.79e308, -1.79e308),
        "subnormal": (np.arange(40) % 5) * 5e-324,
        "infinite": [np.inf, 0.0] * 20,
        "all missing": [np.nan] * 40,
        "half missing": [np.nan, 1.0] * 20,
        "int8": (np.arange(40) % 100).astype(np.int8),
        "uint64": np.arange(40, dtype=np.uint64) + 2**63,
        "int64 past 2**53": np.arange(40) + 2**53,
        "float16": np.linspace(0, 1, 40).astype(np.float16),
        "nullable": pd.array([1, None] * 20, dtype="Int64"),
        "category of 60 levels": pd.Categorical.from_codes(range(40), [f"l{k}" for k in range(60)]),
        "ordered": pd.Categorical(list("xy") * 20, ordered=True),
        "empty levels": pd.Categorical([None] * 40, categories=["x"]),
        "sparse": pd.arrays.SparseArray([0.0, 1.0] * 20),
        "constant": [1] * 40,
        "objects": [object() for _ in range(40)],
    }
    made = {name: lambda v=values: ROWS.assign(z=v) for name, values in cells.items()}
    return made | {
        "columns of one name": lambda: ROWS.set_axis(["a", "a", "c"], axis=1),
        "columns of two levels": lambda: ROWS.set_axis(
            pd.MultiIndex.from_tuples([("u", "a"), ("u", "b"), ("v", "c")]), axis=1
        ),
        "numbers as names": lambda: ROWS.assign(**{"a": ROWS["a"]}).rename(columns={"b": 0}),
        "index of two levels": lambda: ROWS.set_axis(
            pd.MultiIndex.from_product([range(20), list("xy")]), axis=0
        ),
        "index twice": lambda: ROWS.set_axis([1] * 40, axis=0),
        "shuffled index": lambda: ROWS.sample(frac=1, random_state=0),
        "dates as index": lambda: ROWS.set_axis(pd.date_range("2024", periods=40), axis=0),
        "Decimal index": lambda: ROWS.set_axis([Decimal(k) for k in range(40)], axis=0),
        "one row": lambda: ROWS[:1],
        "no rows": lambda: ROWS[:0],
        "no columns": lambda: ROWS[[]],
        "a dictionary": lambda: ROWS.to_dict(),
        "an array": lambda: ROWS.to_numpy(),
    }


def models() -> dict[str, Any]:
    """Models that fail, change their mind or answer about other rows."""
    rng = np.random.default_rng(1)

    def leave(frame: pd.DataFrame) -> Any:
        raise SystemExit(3)

    def write(frame: pd.DataFrame) -> Any:
        frame["a"] = 0.0
        return np.zeros(len(frame))

    return {
        "raises": lambda frame: 1 / 0,
        "exits": leave,
        "writes to its frame": write,
        "NaN": lambda frame: np.full(len(frame), np.nan),
        "infinite": lambda frame: np.full(len(frame), np.inf),
        "1e300": lambda frame: 1e300 * score(frame),
        "1e-300": lambda frame: 1e-300 * score(frame),
        "masked": lambda frame: np.ma.masked_less(score(frame), 0.5),
        "complex": lambda frame: score(frame) * 1j,
        "text": lambda frame: np.full(len(frame), "x"),
        "None": lambda frame: None,
        "one number": lambda frame: 0.5,
        "one row too many": lambda frame: np.zeros(len(frame) + 1),
        "three axes": lambda frame: np.zeros((len(frame), 1, 1)),
        "no columns": lambda frame: np.zeros((len(frame), 0)),
        "sorted Series": lambda frame: frame["a"].sort_values(),
        "own index": lambda frame: pd.Series(score(frame), index=range(7, 7 + len(frame))),
        "random": lambda frame: rng.random(len(frame)),
        "random for a fifth": lambda frame: np.where(
            rng.random(len(frame)) < 0.2, rng.random(len(frame)), score(frame)
        ),
        "of the batch": lambda frame: score(frame) - score(frame).mean(),
        "constant": lambda frame: np.full(len(frame), 0.9),
        "booleans": lambda frame: frame["a"] > 0,
        "missing": lambda frame: pd.array([None] * len(frame), dtype="Float64"),
        "list": lambda frame: score(frame).tolist(),
        "a class": type("Model", (), {}),
    }
