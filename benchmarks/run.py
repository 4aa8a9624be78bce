"""The project's own measurements: speed of the kernel, quality and time of whole runs.

``make bench`` runs everything and writes ``docs/benchmarks.md``. HELOC and COMPAS are read from
``ELSEWISE_DATA``; without it only what needs no download is measured. Speeds are compared as ratios
within one run, because machines differ and are noisy.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "2")

import pandas as pd

import elsewise as ew

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
BOUNDS = (0.2, 0.3, 0.4, 0.45)


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
        f"n = 100,000, d = 23, N = 50, one thread, float64: value and gradient {ours} s, POT's "
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
    from benchmarks.paper.data import heloc
    from lightgbm import LGBMClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier

    experiment = heloc()
    train, test = experiment.train, experiment.test
    models = {
        "HistGradientBoosting": HistGradientBoostingClassifier(random_state=0),
        "LightGBM": LGBMClassifier(random_state=0, n_jobs=2, verbose=-1),
    }
    goals = {52: "0.98 / 0.025, 2 s", 400: "0.99 / 0.016, 5 s", 2000: "30 s"}
    for name, model in models.items():
        model.fit(train, experiment.train_labels)
        everyone = pd.concat([test, train])
        for size, goal in goals.items():
            pool = {52: experiment.explained, 400: test, 2000: everyone}[size]
            rows = pool[model.predict(pool) == 0].iloc[:size]
            for bound in BOUNDS[:2] if size < 2000 else (0.3,):
                yield measured(f"HELOC, {name}", model, rows, train, bound, goal)


def measured(
    problem: str,
    model: object,
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
        limits=ew.Limits(outputs=bound),
        schema=schema,
        background=train,
        certify="in-sample",
        seed=0,
    )
    seconds = time.perf_counter() - start
    changed = explanation.counterfactual.to_numpy() != rows.to_numpy()
    line = Line(
        problem=problem,
        rows=len(rows),
        bound=bound,
        validity=ew.metrics.validity(explanation.outputs),
        ot=ew.metrics.explanation_ot(explanation),
        cells=float(changed.mean()),
        seconds=seconds,
        wanted=goal,
    )
    print(line, flush=True)
    return line


def page(kernel_line: str, lines: list[Line]) -> str:
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
        "| problem | rows | bound | validity | OT | cells changed | seconds | wanted |",
        "|---|---|---|---|---|---|---|---|",
    ]
    body = [
        f"| {line.problem} | {line.rows} | {line.bound} | {line.validity:.3f} | {line.ot:.4f} | "
        f"{line.cells:.0%} | {line.seconds:.2f} | {line.wanted} |"
        for line in lines
    ]
    return "\n".join([*head, *body, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks.md")
    arguments = parser.parse_args()
    line = kernel()
    print(line, flush=True)
    lines: list[Line] = []
    if os.environ.get("ELSEWISE_DATA"):
        for measure in (heloc_networks, heloc_trees):
            for one in measure():
                lines.append(one)
                arguments.out.write_text(page(line, lines), encoding="utf-8")
    else:
        print("ELSEWISE_DATA is not set: HELOC is left out.")
    arguments.out.write_text(page(line, lines), encoding="utf-8")
    print(f"written to {arguments.out}")


if __name__ == "__main__":
    main()
