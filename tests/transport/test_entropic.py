"""Entropic plans, their place in the search, and the limits of the entropic output distance."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import ot
import pandas as pd
import pytest
import torch
from scipy.special import rel_entr
from scipy.stats import norm

import elsewise as ew
from elsewise._arrays import to_numpy
from elsewise.confidence import (
    Comparison,
    UpperLimit,
    entropic_bootstrap_limit,
    entropic_clt_limit,
    entropic_distance,
)
from elsewise.confidence._entropic import _Solved
from elsewise.errors import InvalidInput
from elsewise.measure import target_reference
from elsewise.targets import distribution
from elsewise.transport import (
    coupling,
    entropic_plans,
    potentials,
    reference,
    sorted_squared_distances,
)

RNG = np.random.default_rng(0)
X = np.sort(RNG.normal(0.3, 1.0, (3, 20)))
Y = np.sort(np.round(RNG.gamma(2.0, 0.6, (3, 13)), 1))  # ties, another size, skewed


def pot_plan(x: np.ndarray, y: np.ndarray, epsilon: float, **weights: np.ndarray) -> np.ndarray:
    """Return POT's plan, in the log domain."""
    a = weights.get("a", np.full(x.size, 1.0 / x.size))
    b = weights.get("b", np.full(y.size, 1.0 / y.size))
    squares = (x[:, None] - y) ** 2
    return np.asarray(
        ot.sinkhorn(a, b, squares, epsilon, method="sinkhorn_log", stopThr=1e-11, numItermax=20000)
    )


def pot_cost(x: np.ndarray, y: np.ndarray, epsilon: float, **weights: np.ndarray) -> float:
    """Return the transport cost plus epsilon times the relative entropy, from POT's plan."""
    plan = pot_plan(x, y, epsilon, **weights)
    product = plan.sum(axis=1)[:, None] * plan.sum(axis=0)
    relative = np.sum(rel_entr(plan, product))
    return float(np.sum(plan * (x[:, None] - y) ** 2) + epsilon * relative)


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
    x, y = X[:1], np.sort(RNG.normal(size=(1, m)))
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
    monkeypatch.setattr("elsewise.transport._entropic.PART", 1)  # one direction at a time
    found = entropic_plans(*(torch.asarray(a) for a in (X, Y, epsilon)), 1e-9)
    for ours, theirs in zip(expected, found, strict=True):
        assert to_numpy(theirs) == pytest.approx(ours, abs=1e-6)


def test_too_large_plans_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elsewise.transport._entropic.LARGEST", 100)
    with pytest.raises(InvalidInput, match=r"entropy: .* 20 x 13.*explain a sample"):
        entropic_plans(X, Y, np.ones(3))


# In the search


def people(rows: int = 80) -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(1).normal(size=(rows, 2)), columns=["a", "b"])


def explained(entropy: float | None) -> ew.Explanation:
    return ew.explain(
        ew.models.function(lambda frame: frame["a"] + frame["b"], smooth=True),
        people(),
        target=ew.targets.sample(np.random.default_rng(2).normal(1.0, 1.4, 60)),
        bounds=ew.Bounds(outputs=0.9),
        certify="in-sample",
        settings=ew.Settings(entropy=entropy, draws=99),
    )


@pytest.mark.parametrize("entropy", [0.0, -1.0, math.nan, math.inf])
def test_epsilon_must_be_positive(entropy: float) -> None:
    with pytest.raises(InvalidInput, match=r"settings\.entropy: .* > 0.*leave it out"):
        ew.Settings(entropy=entropy)


def test_a_fit_with_entropy_is_a_map_that_is_saved_and_replayed(tmp_path: Path) -> None:
    explanation = explained(0.2)
    assert explanation.ok
    moved = explanation.apply(explanation.factual)
    pd.testing.assert_frame_equal(moved, explanation.counterfactual)
    assert ew.load(explanation.save(tmp_path / "run")).settings.entropy == 0.2


def test_more_entropy_gives_less_diverse_rows() -> None:
    """A population pulled by entropic plans loses epsilon / 2 of its variance.

    For normal populations that is exact: the gradient vanishes at the variance s^2 - epsilon / 2.
    """
    spreads = [explained(entropy).counterfactual.std().mean() for entropy in (None, 0.2, 0.6)]
    assert spreads[1] / spreads[0] == pytest.approx(math.sqrt(1.0 - 0.1), abs=0.03)
    assert spreads[2] / spreads[0] == pytest.approx(math.sqrt(1.0 - 0.3), abs=0.05)


# Bounds


def gaussian_cost(shift: float, a: float, b: float, epsilon: float) -> float:
    """OT_eps between N(0, a^2) and N(shift, b^2), in closed form (Janati et al., 2020)."""
    covariance = math.sqrt((a * b) ** 2 + (epsilon / 4.0) ** 2) - epsilon / 4.0
    relative = -0.5 * math.log(1.0 - (covariance / (a * b)) ** 2)
    return shift**2 + a * a + b * b - 2.0 * covariance + epsilon * relative


def test_the_distance_of_normal_samples_is_the_closed_form() -> None:
    grid = norm.ppf((np.arange(1500) + 0.5) / 1500)[None, :]
    found = entropic_distance(Comparison.independent(grid, 0.4 + 1.5 * grid, 0.0), 0.7)
    assert found**2 == pytest.approx(gaussian_cost(0.4, 1.0, 1.5, 0.7), rel=5e-3)


def test_influences_are_derivatives_with_respect_to_weights() -> None:
    x, y, epsilon, step = X[0], Y[0], 0.4, 1e-4
    base = _Solved.of(Comparison.independent(X[:1], Y[:1], 0.0), epsilon)
    own = base.f - base.f.mean()
    even = np.full(20, 1.0 / 20)
    for row in (0, 11):
        tilt = step * (np.eye(20)[row] - even)
        up, down = (pot_cost(x, y, epsilon, a=even + sign * tilt) for sign in (1.0, -1.0))
        assert (up - down) / (2.0 * step) == pytest.approx(own[row], abs=1e-4)


def test_resampled_costs_are_those_of_resampled_rows() -> None:
    base = _Solved.of(Comparison.independent(X[:1], Y[:1], 0.0), 0.4)
    counts = np.random.default_rng(3).multinomial(20, np.full(20, 0.05), size=4)
    others = np.random.default_rng(4).multinomial(13, np.full(13, 1 / 13), size=4)
    found = base.costs(counts.T / 20, others.T / 13)
    for k in range(4):
        expected = pot_cost(np.repeat(X[0], counts[k]), np.repeat(Y[0], others[k]), 0.4)
        assert found[k] == pytest.approx(expected, rel=1e-4)


KNOWN = target_reference(distribution(norm(0.3, 0.8)), 80, 0.0, np.ones((80, 1)), np.ones((1, 1)))


def case(kind: str, rng: np.random.Generator) -> tuple[Comparison, float]:
    """Return a sample of 80 rows under one pairing, and the true entropic distance."""
    x = rng.normal(0.0, 1.0, (1, 80))
    if kind == "independent":
        made = Comparison.independent(x, rng.normal(0.5, 1.3, (1, 60)), 0.0)
        return made, math.sqrt(gaussian_cost(0.5, 1.0, 1.3, 0.3))
    if kind == "paired":
        made = Comparison.paired(x, 0.2 + x + 0.5 * rng.normal(size=x.shape), 0.0)
        return made, math.sqrt(gaussian_cost(0.2, 1.0, math.sqrt(1.25), 0.3))
    made = Comparison.known_target(x, KNOWN, KNOWN, 0.0)
    return made, math.sqrt(gaussian_cost(0.3, 1.0, 0.8, 0.3))


@pytest.mark.parametrize("kind", ["independent", "paired", "known"])
def test_limits_cover_the_population(kind: str) -> None:
    rng = np.random.default_rng(5)
    held, widths = np.zeros(2), np.zeros(2)
    repetitions = 100
    for _ in range(repetitions):
        comparison, truth = case(kind, rng)
        limits: list[UpperLimit] = [
            entropic_clt_limit(comparison, 0.3),
            entropic_bootstrap_limit(comparison, 0.3, 59, rng),
        ]
        uppers = np.array([limit.upper(0.95) for limit in limits])
        assert np.all(uppers >= limits[0].estimate)
        held += uppers >= truth
        widths += uppers / truth
    # Four standard errors under the nominal level; and no limit is bought by its width.
    assert np.all(held / repetitions >= 0.95 - 4.0 * math.sqrt(0.95 * 0.05 / repetitions))
    assert np.all(widths / repetitions < 1.4)


def test_limit_and_probability_agree() -> None:
    comparison = Comparison.paired(X[:1] + 0.5, X[:1], 0.0)
    rng = np.random.default_rng(6)
    for limit in (
        entropic_clt_limit(comparison, 0.2),
        entropic_bootstrap_limit(comparison, 0.2, 99, rng),
    ):
        assert limit.probability(limit.upper(0.9)) >= 0.9
        assert limit.probability(limit.estimate * 0.99) == 0.0
        assert "entropic" in limit.method
        assert "entropic cost" in limit.assumption


@pytest.mark.parametrize(
    ("comparison", "epsilon", "message"),
    [
        (Comparison.paired(X[:1], X[:1], 0.0), 0.0, r"epsilon: .* > 0.*Fix: try 0\.1"),
        (Comparison.paired(X, X, 0.0), 0.1, "no limit of a sliced entropic cost is known"),
        (Comparison.paired(X[:1], X[:1], 0.05), 0.1, "build the comparison with trim=0"),
    ],
)
def test_what_has_no_limit_is_refused(comparison: Comparison, epsilon: float, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        entropic_clt_limit(comparison, epsilon)
    with pytest.raises(InvalidInput, match=message):
        entropic_bootstrap_limit(comparison, epsilon, 99, np.random.default_rng(0))


def test_draws_are_checked() -> None:
    comparison = Comparison.paired(X[:1], X[:1], 0.0)
    with pytest.raises(InvalidInput, match="draws"):
        entropic_bootstrap_limit(comparison, 0.1, 0, np.random.default_rng(0))
