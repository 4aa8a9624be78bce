"""Limits of the entropic output distance: closed forms, POT's costs, and how often they hold."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest
from benchmarks.rivals import entropic_limits
from benchmarks.rivals.entropic_limits import (
    _Solved,
    entropic_bootstrap_limit,
    entropic_clt_limit,
    entropic_distance,
)
from scipy.stats import norm

from elsewise.confidence import Comparison, UpperLimit
from elsewise.errors import InvalidInput
from elsewise.measure import target_reference
from elsewise.targets import distribution
from entropic_oracle import X, Y, pot_cost


def test_examples() -> None:
    assert not doctest.testmod(entropic_limits).failed


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
    made = Comparison.known_target(x, lambda trim: KNOWN, 0.0)
    return made, math.sqrt(gaussian_cost(0.3, 1.0, 0.8, 0.3))


@pytest.mark.slow
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
