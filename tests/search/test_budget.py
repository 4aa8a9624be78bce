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


class Slow:
    """A model of which every call takes a second of a clock of its own."""

    def __init__(self) -> None:
        self.calls = 0

    def perf_counter(self) -> float:
        return float(self.calls)

    def __call__(self, rows: pd.DataFrame) -> np.ndarray:
        self.calls += 1
        return np.asarray(1.0 / (1.0 + np.exp(-rows.sum(axis=1))))


QUESTIONS = {
    "distance": {"target": ew.targets.at_most(0.3), "bounds": ew.Bounds(outputs=0.05)},
    "both": {"target": ew.targets.at_most(0.3), "bounds": ew.Bounds(inputs=0.3, outputs=0.05)},
    "no bounds": {"target": ew.targets.constant(0.3)},
    "every row": {"target": ew.targets.at_most(0.3)},
    "share": {"target": ew.targets.share(0.9, below=0.3)},
    "mean": {"target": ew.targets.mean(0.1)},
}


@pytest.mark.parametrize("seconds", [1, 2, 4, 6, 8, 10, 20, 40])
@pytest.mark.parametrize("certify", ["in-sample", "held-out"])
@pytest.mark.parametrize("asked", QUESTIONS)
def test_a_slow_model_is_not_asked_after_its_time(
    asked: str, certify: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever time is up in: after it, the model is asked once more, for what is returned."""
    model = Slow()
    monkeypatch.setattr(_runs, "time", model)
    monkeypatch.setattr(_explain, "time", model)
    found = ew.explain(
        model,
        ROWS,
        certify=certify,
        settings=ew.Settings(seconds=seconds, draws=99),
        **QUESTIONS[asked],
    )
    assert model.calls <= max(seconds + 1, 2)
    assert found.ok or found.status.verdict == "not found in the budget"


def test_what_was_found_in_time_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search of rows that ends in the middle moves those that have a way by then."""
    model = Slow()
    monkeypatch.setattr(_runs, "time", model)
    monkeypatch.setattr(_explain, "time", model)
    settings = ew.Settings(seconds=16, draws=99)
    target = ew.targets.share(0.9, below=0.3)
    found = ew.explain(model, ROWS, target=target, certify="in-sample", settings=settings)
    assert model.calls <= 17
    assert (found.counterfactual != ROWS).any(axis=1).sum() > 50
