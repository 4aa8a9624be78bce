"""explain_groups with two workers against one: wall time, one thread in each.

Prints the seconds of both and their ratio, wanted at least 1.7. The workers are started before the
clock, as they are in any session that explains more than once; their start is printed by itself.
Wall time means little on a machine that does something else: rounds are repeated, the best counts.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import time

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import elsewise as ew

GROUPS, WANTED = 50, 1.7


def population(rows: int) -> tuple[LogisticRegression, pd.DataFrame, pd.Series]:
    """A linear model, ten numbers a row, and a group for every row."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(rows * GROUPS, 10)), columns=list("abcdefghij"))
    chance = frame.sum(axis=1) / 2 - 1 + rng.logistic(size=len(frame))
    group = pd.Series(np.arange(len(frame)) % GROUPS, name="group")
    return LogisticRegression().fit(frame, chance > 0), frame, group


def seconds(jobs: int, model: object, frame: pd.DataFrame, group: pd.Series) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    found = ew.explain_groups(
        model,
        frame,
        by=group,
        target=ew.targets.at_least(0.5),
        limits=ew.Limits(outputs=0.1),
        jobs=jobs,
        progress=False,
    )
    spent = time.perf_counter() - start
    if found.failures:
        raise SystemExit(f"failed: {next(iter(found.failures.values())).error}")
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200, help="rows of each group")
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    small = population(4)
    cold = seconds(2, *small)
    start_up = cold - seconds(2, *small)
    model, frame, group = population(arguments.rows)
    best = {1: float("inf"), 2: float("inf")}
    for _ in range(arguments.rounds):
        for jobs in best:
            best[jobs] = min(best[jobs], seconds(jobs, model, frame, group))
    ratio = best[1] / best[2]
    print(
        f"explain_groups, {GROUPS} groups of {arguments.rows} rows: one worker {best[1]:.1f} s, "
        f"two {best[2]:.1f} s (their start, not counted: {start_up:.1f} s), ratio {ratio:.2f}, "
        f"wanted at least {WANTED}"
    )


if __name__ == "__main__":
    main()
