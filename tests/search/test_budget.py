"""``Settings(seconds=)`` is one budget for everything, checked between steps; no real clock."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import elsewise as ew
from elsewise import _explain
from elsewise.search import _runs

ROWS = pd.DataFrame(np.random.default_rng(0).normal(size=(240, 3)), columns=list("abc"))


def explained(monkeypatch: pytest.MonkeyPatch, seconds: float, **bounds: float) -> ew.Explanation:
    """Explain with a clock that goes on by one second whenever somebody looks at it."""
    ticks = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: float(next(ticks)))
    monkeypatch.setattr(_runs, "time", clock)
    monkeypatch.setattr(_explain, "time", clock)
    return ew.explain(
        ew.models.function(lambda rows: np.tanh(rows.sum(axis=1)), smooth=True),
        ROWS,
        target=ew.targets.at_least(0.9),
        bounds=ew.Bounds(**bounds),
        settings=ew.Settings(seconds=seconds, draws=99),
        seed=0,
    )


@pytest.mark.parametrize(
    "bounds",
    [{"inputs": 0.3, "outputs": 0.3}, {"outputs": 0.3}, {"inputs": 0.3}, {"outputs": 1e-6}],
    ids=str,
)
@pytest.mark.parametrize("seconds", [2, 12])
def test_every_phase_ends_in_time(
    bounds: dict[str, float], seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searches that follow each other share the budget: at most one step per look at the clock."""
    found = explained(monkeypatch, seconds, **bounds)
    assert len(found.iterations) <= 0.75 * seconds + 3
    assert found.certificate is not None


def test_without_a_budget_nobody_looks_at_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_runs, "time", None)
    assert not _runs.clock(None, None)()
