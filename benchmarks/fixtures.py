"""Two questions kept as they were on 2026-11-18, so that later changes are measured against them.

Model, rows, target, bounds and seed are written out here and do not follow the README or the demo,
which may change. ``results/fixtures.json`` holds what was measured that day.

    python -m benchmarks.fixtures            # today's measurements beside the stored ones
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import elsewise as ew

__all__ = ["FIXTURES", "STORED", "credit_model", "demo_question", "measured", "readme_example"]

STORED = Path(__file__).parent / "results" / "fixtures.json"
SEED = 0
DIRECTIONS = 5000
"""Directions of the sliced distance, none of which the search saw."""
CHUNK = 250
RUNS = 3


def credit_model(frame: pd.DataFrame, outcome: pd.Series) -> Any:
    """Fit a logistic regression on scaled numbers and one-hot texts, a missing text a level."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    prepare = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        remainder=StandardScaler(),
    )
    return make_pipeline(prepare, LogisticRegression()).fit(frame, outcome)


def readme_example(seed: int = SEED, settings: ew.Settings | None = None) -> ew.Explanation:
    """Explain 242 of 800 applicants with a risk above 40 %: at most 35 %, give or take 0.06."""
    data = ew.datasets.german_credit()
    past = data.frame[:800]
    model = credit_model(past, data.outcome[:800])
    refused = past[model.predict_proba(past)[:, 1] > 0.4]
    return ew.explain(
        model,
        refused,
        target=ew.targets.at_most(0.35),
        schema=ew.Schema.infer(refused, past).freeze("Age", "Sex"),
        background=past,
        seed=seed,
        progress=False,
        bounds=ew.Bounds(inputs=0.25, outputs=0.06),
        settings=settings,
    )


def demo_question(seed: int = SEED, settings: ew.Settings | None = None) -> ew.Explanation:
    """Explain the 188 of 1000 applicants with a risk above 50 %: at most 40 %, give or take 0.1."""
    data = ew.datasets.german_credit()
    model = credit_model(data.frame, data.outcome)
    refused = data.frame[model.predict_proba(data.frame)[:, 1] > 0.5]
    return ew.explain(
        model,
        refused,
        target=ew.targets.at_most(0.4),
        schema=ew.Schema.infer(refused, data.frame).freeze("Age", "Sex", "Job", "Purpose"),
        background=data.frame,
        seed=seed,
        progress=False,
        bounds=ew.Bounds(inputs=0.3, outputs=0.1),
        settings=settings,
    )


FIXTURES: dict[str, Callable[[int], ew.Explanation]] = {
    "README example": readme_example,
    "demo question": demo_question,
}


def measured(explanation: ew.Explanation) -> dict[str, Any]:
    """Return what a fixture is judged by, as JSON values."""
    before, after = explanation.factual, explanation.counterfactual
    changed = (before != after) & ~(before.isna() & after.isna())
    certificate = explanation.certificate
    outputs, factual = explanation.outputs[:, 0], explanation.factual_outputs[:, 0]
    embedding = explanation.problem.embedding
    x, y = (
        np.asarray(embedding.embed(explanation.encoder.encode(part))) for part in (before, after)
    )
    moves = np.sqrt(np.sum((y - x) ** 2, axis=1))
    longer = after["Duration"] - before["Duration"]
    return {
        "status": str(explanation.status.verdict),
        "rows": len(before),
        "inputs, distance": certificate.inputs.estimate,
        "inputs, limit": certificate.inputs.upper_limit,
        "inputs, bound": certificate.inputs.bound,
        "outputs, distance": certificate.outputs.estimate,
        "outputs, limit": certificate.outputs.upper_limit,
        "outputs, bound": certificate.outputs.bound,
        "sliced distance": sliced_distance(x, y),
        "root mean square move": float(np.sqrt(np.mean(moves**2))),
        "rows moved": int(changed.any(axis=1).sum()),
        "cells changed": int(changed.to_numpy().sum()),
        "mean output before": float(factual.mean()),
        "mean output after": float(outputs.mean()),
        "rows with a worse output": int((outputs > factual + 1e-9).sum()),
        "Duration, rows lengthened": int((longer > 0).sum()),
        "Duration, rows shortened": int((longer < 0).sum()),
        "Housing, rows moved": int(changed["Housing"].sum()),
        "Housing, net change": _net_change(before["Housing"], after["Housing"]),
        **{f"rows moved, {name}": int(changed[name].sum()) for name in before.columns},
        **_small_moves(before, after, explanation.problem.schema),
    }


def sliced_distance(x: np.ndarray, y: np.ndarray) -> float:
    """Return the sliced 2-Wasserstein distance of (n, d) from (n, d) on fresh directions.

    Nothing is trimmed; the directions are independent and uniform.
    """
    directions = np.random.default_rng(SEED).standard_normal((x.shape[1], DIRECTIONS))
    directions /= np.linalg.norm(directions, axis=0)
    parts = np.split(directions, DIRECTIONS // CHUNK, axis=1)
    gaps = [np.sort(x @ part, axis=0) - np.sort(y @ part, axis=0) for part in parts]
    return float(np.sqrt(np.mean([np.mean(gap**2) for gap in gaps])))


def _net_change(before: pd.Series, after: pd.Series) -> int:
    """Rows that must change category for the counts to become what they are afterwards."""
    counts = after.value_counts(dropna=False).sub(before.value_counts(dropna=False), fill_value=0)
    return int(counts.abs().sum() / 2)


def _small_moves(before: pd.DataFrame, after: pd.DataFrame, schema: ew.Schema) -> dict[str, float]:
    """Share of rows in which a number changes by less than 0.05 standard deviations."""
    found = {}
    for name in before.select_dtypes("number").columns:
        size = (after[name] - before[name]).abs() / schema[name].scale
        found[f"share of small moves, {name}"] = float(((size > 0) & (size < 0.05)).mean())
    return found


def run(name: str) -> dict[str, Any]:
    """Measure a fixture; processor time is that of model and explanation, the least of `RUNS`."""
    seconds = []
    for _ in range(RUNS):
        start = time.process_time()
        explanation = FIXTURES[name](SEED)
        seconds.append(time.process_time() - start)
    return {**measured(explanation), "processor seconds": round(min(seconds), 2)}


def main() -> None:
    """Print what is measured now beside what is stored."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, help="write the measurements to this file")
    asked = parser.parse_args()
    stored = json.loads(STORED.read_text("utf-8")) if STORED.exists() else {}
    found = {name: run(name) for name in FIXTURES}
    print(f"{'':40} {stored.get('date', 'stored'):>14} {'now':>14}")
    for name, values in found.items():
        old = stored.get("results", {}).get(name, {})
        print(f"\n{name}")
        for key in dict.fromkeys([*old, *values]):
            print(f"  {key:38} {_text(old.get(key)):>14} {_text(values.get(key)):>14}")
    if asked.out:
        content = {
            "date": time.strftime("%Y-%m-%d"),
            "seed": SEED,
            "machine": f"{os.cpu_count()} cores",
            "load": round(os.getloadavg()[0], 1),
        }
        asked.out.write_text(json.dumps({**content, "results": found}, indent=1) + "\n", "utf-8")


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "-" if value is None else str(value)


if __name__ == "__main__":
    main()
