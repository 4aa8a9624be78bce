"""The project's own measurements: speed of the kernel, quality and time of whole runs.

``make bench`` runs everything and writes ``docs/benchmarks.md``. HELOC and COMPAS are read from
``ELSEWISE_DATA``; without it only what needs no download is measured. Speeds are compared as ratios
within one run, because machines differ and are noisy.
"""

from __future__ import annotations

import argparse
import datetime
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "2")

import pandas as pd

import elsewise as ew

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
BOUNDS = (0.2, 0.3, 0.4, 0.45)
WANTED_RATIO = 8.0
"""OT of DiCE's genetic method over ours, at least."""


class Line(NamedTuple):
    """One measured line of the table."""

    problem: str
    rows: int
    bound: float
    validity: float
    ot: float
    cells: float
    seconds: float
    wanted: str


def kernel() -> str:
    """Run the kernel benchmark in a process of its own, with one thread."""
    script = Path(__file__).with_name("kernel.py")
    done = subprocess.run([sys.executable, script], check=True, capture_output=True, text=True)
    ours, theirs, ratio = done.stdout.split()
    return (
        "n = 100,000, d = 23, N = 50, one thread, float64: the search's distance, recorded "
        f"plans and anchors {ours} s, POT's "
        f"value alone {theirs} s, **{ratio} times** faster."
    )


def heloc_networks() -> Iterator[Line]:
    """The paper's three torch models on HELOC, relaxed rows."""
    import torch
    from benchmarks.paper.questions import ask

    torch.set_num_threads(1)
    wanted = {"DNN": "0.98 / 0.10", "RBFNet": "0.96 / 0.16", "SVM": "1.00 / 0.20"}
    for name, goal in wanted.items():
        question = ask("HELOC", name)
        for bound in BOUNDS:
            yield measured(
                f"HELOC, {name}",
                question.model,
                question.rows,
                question.experiment.train,
                bound,
                goal,
                question.schema,
            )


def heloc_trees() -> Iterator[Line]:
    """Gradient-boosted trees on HELOC, whole numbers only."""
    goals = {52: "0.98 / 0.025, 2 s", 400: "0.99 / 0.016, 5 s", 2000: "30 s"}
    for name in ("HistGradientBoosting", "LightGBM"):
        for size, goal in goals.items():
            model, rows, train = trees(name, size)
            for bound in BOUNDS[:2] if size < 2000 else (0.3,):
                yield measured(f"HELOC, {name}", model, rows, train, bound, goal)


def trees(name: str, size: int) -> tuple[Any, pd.DataFrame, pd.DataFrame]:
    """Return a fitted model, rows of HELOC that it predicts 0, and the training rows."""
    from benchmarks.paper.data import heloc
    from lightgbm import LGBMClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier

    experiment = heloc()
    model = {
        "HistGradientBoosting": HistGradientBoostingClassifier(random_state=0),
        "LightGBM": LGBMClassifier(random_state=0, n_jobs=2, verbose=-1),
    }[name].fit(experiment.train, experiment.train_labels)
    pool = {
        52: experiment.explained,
        400: experiment.test,
        2000: pd.concat([experiment.test, experiment.train]),
    }[size]
    return model, pool[model.predict(pool) == 0].iloc[:size], experiment.train


def beside_dice() -> list[Line]:
    """The same 400 rows of HELOC under LightGBM: this library, then DiCE's genetic method."""
    model, rows, train = trees("LightGBM", 400)
    ours = measured("elsewise", model, rows, train, BOUNDS[0], "")
    start = time.perf_counter()
    from benchmarks.rivals import dice

    found = dice(model, rows, background=train, seed=0)
    return [ours, noted("DiCE, genetic", found, math.nan, time.perf_counter() - start, "")]


def measured(
    problem: str,
    model: Any,
    rows: pd.DataFrame,
    train: pd.DataFrame,
    bound: float,
    goal: str,
    schema: ew.Schema | None = None,
) -> Line:
    """Explain once and measure."""
    start = time.perf_counter()
    explanation = ew.explain(
        model,
        rows,
        target=ew.targets.constant(1.0),
        bounds=ew.Bounds(outputs=bound),
        schema=schema,
        background=train,
        certify="in-sample",
        seed=0,
    )
    return noted(problem, explanation, bound, time.perf_counter() - start, goal)


def noted(
    problem: str, explanation: ew.Explanation, bound: float, seconds: float, goal: str
) -> Line:
    """Describe an explanation in a line, and print it."""
    from benchmarks.rivals.compare import explanation_ot, validity

    before, after = explanation.factual, explanation.counterfactual
    line = Line(
        problem=problem,
        rows=len(before),
        bound=bound,
        validity=validity(explanation.outputs),
        ot=explanation_ot(explanation),
        cells=float((before.to_numpy() != after.to_numpy()).mean()),
        seconds=seconds,
        wanted=goal,
    )
    print(line, flush=True)
    return line


def page(kernel_line: str, lines: list[Line], rivals: list[Line]) -> str:
    """The results as Markdown."""
    head = [
        "# Benchmarks",
        "",
        f"Measured {datetime.date.today()} by `make bench`, seed 0, on a machine of "
        f"{os.cpu_count()} cores ({platform.machine()}, Python {platform.python_version()}).",
        "",
        "## Kernel",
        "",
        kernel_line,
        "",
        "## Whole runs",
        "",
        'Target "all ones", `certify="in-sample"`, one call a line, certificate included. OT: '
        "squared sliced distance on 5000 fresh directions, trim 0.1. Wanted: validity at least / "
        "OT at most (and seconds), for the best of the bounds.",
        "",
        "By default half of the cost is each row's own move and few cells change, so that OT is "
        "larger than with the paper's cost, `Settings(population_weight=1, slack=0)`. With that, "
        "what is wanted of the three networks is reached, as the tests ask of it.",
        "",
        "| problem | rows | bound | validity | OT | cells changed | seconds | wanted |",
        "|---|---|---|---|---|---|---|---|",
    ]
    body = [
        f"| {line.problem} | {line.rows} | {line.bound} | {line.validity:.3f} | {line.ot:.4f} | "
        f"{line.cells:.0%} | {line.seconds:.2f} | {line.wanted} |"
        for line in lines
    ]
    return "\n".join([*head, *body, "", *(beside(rivals) if rivals else [])])


def beside(rivals: list[Line]) -> list[str]:
    """Two methods on the same rows, in Markdown."""
    ours, theirs = rivals
    return [
        "## Beside DiCE",
        "",
        f"HELOC, LightGBM, the same {ours.rows} rows, one method after the other; ours with an "
        f"output bound of {ours.bound}, dice-ml's genetic method with one counterfactual a row and "
        "its own defaults. dice-ml works on one core, and so does most of our run.",
        "",
        "| | validity | OT | cells changed | seconds |",
        "|---|---|---|---|---|",
        *(
            f"| {line.problem} | {line.validity:.3f} | {line.ot:.4f} | {line.cells:.0%} | "
            f"{line.seconds:.1f} |"
            for line in rivals
        ),
        "",
        f"OT is {theirs.ot / ours.ot:.0f} times smaller (wanted: {WANTED_RATIO:.0f}) and the run "
        f"{theirs.seconds / ours.seconds:.0f} times faster.",
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks.md")
    arguments = parser.parse_args()
    line = kernel()
    print(line, flush=True)
    lines: list[Line] = []
    rivals: list[Line] = []
    if os.environ.get("ELSEWISE_DATA"):
        for measure in (heloc_networks, heloc_trees):
            for one in measure():
                lines.append(one)
                arguments.out.write_text(page(line, lines, rivals), encoding="utf-8")
        rivals = beside_dice()
    else:
        print("ELSEWISE_DATA is not set: HELOC is left out.")
    arguments.out.write_text(page(line, lines, rivals), encoding="utf-8")
    print(f"written to {arguments.out}")


if __name__ == "__main__":
    main()
