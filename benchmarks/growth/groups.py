"""explain_groups with two workers against one: wall time, one thread in each.

The workers are started before the clock, as they are in any session that explains more than once.
Wall time means little on a machine that does something else: rounds are repeated, the best counts.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import elsewise as ew

__all__ = ["GROUPS", "measure"]

GROUPS = 50


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
        bounds=ew.Bounds(outputs=0.1),
        jobs=jobs,
        progress=False,
    )
    spent = time.perf_counter() - start
    if found.failures:
        raise SystemExit(f"failed: {next(iter(found.failures.values())).error}")
    return spent


def measure(rows: int, rounds: int = 4) -> dict[str, float]:
    """Seconds with one worker and with two, and what it took to start them."""
    small = population(4)
    cold = seconds(2, *small)
    start_up = cold - seconds(2, *small)
    question = population(rows)
    best = {1: float("inf"), 2: float("inf")}
    for _ in range(rounds):
        for jobs in best:
            best[jobs] = min(best[jobs], seconds(jobs, *question))
    return {"one": best[1], "two": best[2], "start": start_up}
