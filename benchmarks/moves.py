"""Do rows move that need not, and what do fewer changes cost? Writes the table of how-it-works.

    python -m benchmarks.moves                           # every problem, a few minutes
    python -m benchmarks.moves "demo question" "toy, 60 rows" --seeds 5

Each problem is answered twice, with the cost of a sliced distance alone and with the defaults, at
the same bounds. Distances are on the root scale and on fresh directions.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from benchmarks.fixtures import demo_question, readme_example, sliced_distance

import elsewise as ew

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-it-works.md"
HEAD, FOOT = "<!-- moves: written by benchmarks.moves -->", "<!-- moves: end -->"
SETTINGS = {
    "before": {"population_weight": 1.0, "slack": 0.0},
    "defaults": {},
}


class Asked(NamedTuple):
    """A question, its answer, and rows that the answer had not seen."""

    explanation: ew.Explanation
    fresh: pd.DataFrame | None = None


Problem = Callable[[int, ew.Settings], Asked]


def toy(size: int) -> Problem:
    """Three columns, of which the model reads one."""

    def ask(seed: int, settings: ew.Settings) -> Asked:
        rng = np.random.default_rng(seed)
        numbers = {"a": rng.normal(size=size), "b": rng.integers(0, 9, size)}
        rows = pd.DataFrame({**numbers, "c": rng.choice(list("xyz"), size)})
        score = ew.models.function(lambda frame: 1 / (1 + np.exp(-frame["a"].to_numpy())))
        bounds = ew.Bounds(outputs=0.1)
        target = ew.targets.at_most(0.45)
        found = ew.explain(score, rows, target=target, bounds=bounds, seed=seed, settings=settings)
        return Asked(found)

    return ask


def held_out_trees(seed: int, settings: ew.Settings) -> Asked:
    """HELOC under gradient boosting: 800 refused rows, half held out, then 700 others."""
    from benchmarks.run import trees

    model, rows, train = trees("HistGradientBoosting", 2000)
    rows = rows.sample(frac=1.0, random_state=seed)
    options: dict[str, Any] = {"bounds": ew.Bounds(outputs=0.3), "background": train, "seed": seed}
    found = ew.explain(
        model, rows[:800], target=ew.targets.constant(1.0), settings=settings, **options
    )
    return Asked(found, rows[800:1500])


def few_trees(size: int) -> Problem:
    """HELOC under LightGBM."""

    def ask(seed: int, settings: ew.Settings) -> Asked:
        from benchmarks.run import trees

        model, rows, train = trees("LightGBM", size)
        return Asked(_ones(model, rows, train, 0.3, None, seed, settings))

    return ask


def paper(dataset: str, name: str, bound: float) -> Problem:
    """A question of the paper's page, at its bound."""

    def ask(seed: int, settings: ew.Settings) -> Asked:
        from benchmarks.paper.questions import ask as pose

        question = pose(dataset, name, seed)
        given = question.model, question.rows, question.experiment.train
        return Asked(_ones(*given, bound, question.schema, seed, settings))

    return ask


def _ones(
    model: Any,
    rows: pd.DataFrame,
    train: pd.DataFrame,
    bound: float,
    schema: ew.Schema | None,
    seed: int,
    settings: ew.Settings,
) -> ew.Explanation:
    return ew.explain(
        model,
        rows,
        target=ew.targets.constant(1.0),
        bounds=ew.Bounds(outputs=bound),
        schema=schema,
        background=train,
        certify="in-sample",
        seed=seed,
        settings=settings,
    )


PROBLEMS: dict[str, Problem] = {
    "demo question": lambda seed, settings: Asked(demo_question(seed, settings)),
    "README fixture": lambda seed, settings: Asked(readme_example(seed, settings)),
    "toy, 60 rows": toy(60),
    "toy, 300 rows": toy(300),
    "HELOC HistGB, 700 fresh rows": held_out_trees,
    "HELOC DNN": paper("HELOC", "DNN", 0.25),
    "HELOC LightGBM, 52 rows": few_trees(52),
    "HELOC LightGBM, 400 rows": few_trees(400),
    "COMPAS LightGBM": paper("COMPAS", "LightGBM", 0.3),
}
NEED_DATA = ("HELOC", "COMPAS")


def measured(asked: Asked) -> dict[str, Any]:
    """What the table says of an answer, on fresh rows where there are some."""
    found = asked.explanation
    problem, encode = found.problem, found.encoder.encode
    before, after, outputs, factual = (
        found.factual,
        found.counterfactual,
        found.outputs,
        found.factual_outputs,
    )
    if asked.fresh is not None:
        before, after = asked.fresh, found.apply(asked.fresh)
        factual, outputs = (
            np.asarray(problem.outputs.values(problem.outputs.place(encode(part))))
            for part in (before, after)
        )
    x, y = (np.asarray(problem.embedding.embed(encode(part))) for part in (before, after))
    squares = np.sum((y - x) ** 2, axis=1)
    changed = ((before != after) & ~(before.isna() & after.isna())).to_numpy()
    wanted = np.asarray(problem.target.of(factual))
    worse = np.abs(outputs - wanted) > np.abs(factual - wanted) + 1e-9
    move = float(np.sqrt(squares.mean()))
    return {
        "verdict": str(found.status.verdict),
        "validity": float(np.mean(outputs[:, 0] >= 0.5)),
        "sliced": sliced_distance(x, y),
        "move": move,
        "move per dimension": move / math.sqrt(x.shape[1]),
        "cells": float(changed.mean()),
        "rows": float(changed.any(axis=1).mean()),
        "rows worse": int(worse.any(axis=1).sum()),
        "steps": len(found.map.steps),
        **_by_column(before, after, changed),
    }


def _by_column(before: pd.DataFrame, after: pd.DataFrame, changed: np.ndarray) -> dict[str, Any]:
    """What the demonstration and the toy are judged by."""
    found: dict[str, Any] = {}
    if "Duration" in before:
        found["lengthened"] = int((after["Duration"] > before["Duration"]).sum())
        found["housing"] = int(changed[:, list(before).index("Housing")].sum())
    if list(before) == ["a", "b", "c"]:
        found["b and c changed"] = int(changed[:, 1:].sum())
    return found


def table(found: dict[str, dict[str, dict[str, Any]]]) -> str:
    """The measurements as Markdown: before, then with the defaults."""
    lines = [
        "| problem | sliced distance | row move | cells changed | rows moved | at or above 0.5 |",
        "|---|---|---|---|---|---|",
    ]
    for name, ways in found.items():
        before, after = ways["before"], ways["defaults"]
        cells = [
            *(f"{before[key]:.3f} / {after[key]:.3f}" for key in ("sliced", "move")),
            *(f"{before[key]:.0%} / {after[key]:.0%}" for key in ("cells", "rows")),
            f"{before['validity']:.3f} / {after['validity']:.3f}",
        ]
        lines.append(f"| {' | '.join([name, *cells])} |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print; where all problems were measured, write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help=", ".join(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--settings", type=json.loads, help="others than the defaults, as JSON")
    given = parser.parse_args()
    ways = SETTINGS if given.settings is None else {str(given.settings): given.settings}
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for name in given.problems or PROBLEMS:
        if name.startswith(NEED_DATA) and not os.environ.get("ELSEWISE_DATA"):
            continue
        for seed in range(given.seeds):
            for label, changes in ways.items():
                start = time.process_time()
                values = measured(PROBLEMS[name](seed, ew.Settings(**changes)))
                seconds = time.process_time() - start
                if seed == 0:
                    found.setdefault(name, {})[label] = values
                shown = {
                    key: round(value, 3) if isinstance(value, float) else value
                    for key, value in values.items()
                }
                print(name, seed, label, shown, f"{seconds:.1f} s", flush=True)
    if ways is SETTINGS and len(found) == len(PROBLEMS):
        page = PAGE.read_text("utf-8")
        start, end = page.index(HEAD) + len(HEAD), page.index(FOOT)
        PAGE.write_text(f"{page[:start]}\n{table(found)}\n{page[end:]}", "utf-8")


if __name__ == "__main__":
    main()
