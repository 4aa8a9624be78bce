"""Entropic plans, and a search that records them."""

from __future__ import annotations

import doctest
import math
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import torch
from benchmarks.paper.plans import coupling
from benchmarks.rivals import entropic
from benchmarks.rivals.entropic import entropic_plans, entropic_search

import elsewise as ew
from elsewise._arrays import to_numpy
from elsewise.errors import InvalidInput
from elsewise.transport import (
    potentials,
    reference,
    sorted_squared_distances,
)
from entropic_oracle import X, Y, pot_cost, pot_plan


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 5.0])
def test_costs_and_plans_are_those_of_pot(epsilon: float) -> None:
    found = entropic_plans(X, Y, np.full(3, epsilon), 1e-9)
    for k in range(3):
        plan = pot_plan(X[k], Y[k], epsilon)
        assert found.costs[k] == pytest.approx(pot_cost(X[k], Y[k], epsilon), rel=1e-6)
        assert found.targets[k] == pytest.approx(plan @ Y[k] * X.shape[1], abs=1e-6)
        f, g = found.x_potentials[k], found.y_potentials[k]
        own = np.exp((f[:, None] + g - (X[k][:, None] - Y[k]) ** 2) / epsilon)
        assert own / own.size == pytest.approx(plan, abs=1e-8)


@pytest.mark.parametrize("m", [20, 13, 30])
def test_exact_potentials_are_dual_to_the_plan(m: int) -> None:
    x, y = X[:1], np.sort(np.random.default_rng(7).normal(size=(1, m)))
    slack = (x[0][:, None] - y[0]) ** 2 - (x[0, 0] - y[0, 0]) ** 2
    slack = slack - potentials(x, y)[0][:, None] - potentials(y, x)[0]
    assert slack.min() >= -1e-12
    assert np.abs(slack[coupling(x, y).toarray() > 0]).max() <= 1e-12


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 10.0])
def test_laws_of_the_plans(epsilon: float) -> None:
    found = entropic_plans(X, Y, np.full(3, epsilon))
    assert np.all(np.diff(found.targets) >= -1e-9)
    exact = reference(Y, X.shape[1])
    assert np.all(found.costs >= sorted_squared_distances(X, exact) - 1e-9)
    if epsilon == 1e-6:
        assert found.targets == pytest.approx(exact.partners, abs=5e-3)
    if epsilon == 10.0:
        far = entropic_plans(X, Y, np.full(3, 1e6)).targets
        assert far == pytest.approx(np.broadcast_to(Y.mean(1, keepdims=True), far.shape), abs=1e-3)


def test_the_gradient_is_the_gap_to_the_mean_partner() -> None:
    epsilon, step = np.full(3, 0.3), 1e-5
    found = entropic_plans(X, Y, epsilon, 1e-10)
    gradient = 2.0 * (X - found.targets) / X.shape[1]
    for row in (0, 7, 19):
        up, down = (
            entropic_plans(X + sign * step * np.eye(20)[row], Y, epsilon, 1e-10).costs
            for sign in (1.0, -1.0)
        )
        assert (up - down) / (2.0 * step) == pytest.approx(gradient[:, row], abs=1e-6)


def test_torch_gives_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    epsilon = np.array([0.1, 0.5, 2.0])
    expected = entropic_plans(X, Y, epsilon, 1e-9)
    monkeypatch.setattr("benchmarks.rivals.entropic.PART", 1)  # one direction at a time
    found = entropic_plans(*(torch.asarray(a) for a in (X, Y, epsilon)), 1e-9)
    for ours, theirs in zip(expected, found, strict=True):
        assert to_numpy(theirs) == pytest.approx(ours, abs=1e-6)


def test_too_large_plans_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.rivals.entropic.LARGEST", 100)
    with pytest.raises(InvalidInput, match=r"rows: .* 20 x 13.*explain a sample"):
        entropic_plans(X, Y, np.ones(3))


# In the search


def people(rows: int = 80) -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(1).normal(size=(rows, 2)), columns=["a", "b"])


def explained(entropy: float | None) -> ew.Explanation:
    with nullcontext() if entropy is None else entropic_search(entropy):
        return ew.explain(
            ew.models.function(lambda frame: frame["a"] + frame["b"], smooth=True),
            people(),
            target=ew.targets.sample(np.random.default_rng(2).normal(1.0, 1.4, 60)),
            bounds=ew.Bounds(outputs=0.9),
            certify="in-sample",
            settings=ew.Settings(draws=99, population_weight=1.0, slack=0.0),
        )


@pytest.mark.parametrize("entropy", [0.0, -1.0, math.nan, math.inf])
def test_epsilon_must_be_positive(entropy: float) -> None:
    with pytest.raises(InvalidInput, match=r"epsilon: .* > 0"), entropic_search(entropy):
        pass


def test_a_search_with_entropy_is_a_map_that_is_replayed() -> None:
    explanation = explained(0.2)
    assert explanation.ok
    moved = explanation.apply(explanation.factual)
    pd.testing.assert_frame_equal(moved, explanation.counterfactual)


def test_examples() -> None:
    assert not doctest.testmod(entropic).failed


@pytest.mark.slow
def test_more_entropy_gives_less_diverse_rows() -> None:
    """A population pulled by entropic plans loses epsilon / 2 of its variance.

    For normal populations that is exact: the gradient vanishes at the variance s^2 - epsilon / 2.
    """
    spreads = [explained(entropy).counterfactual.std().mean() for entropy in (None, 0.2, 0.6)]
    assert spreads[1] / spreads[0] == pytest.approx(math.sqrt(1.0 - 0.1), abs=0.03)
    assert spreads[2] / spreads[0] == pytest.approx(math.sqrt(1.0 - 0.3), abs=0.05)
