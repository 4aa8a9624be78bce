"""The plans mu and nu of an explanation: couplings of mass one that cost the distance."""

from __future__ import annotations

import doctest

import numpy as np
import ot
import pandas as pd
import pytest
import scipy.stats
from benchmarks.paper import plans
from benchmarks.paper.plans import coupling, mu, nu
from hypothesis import given, settings
from hypothesis import strategies as st

import elsewise as ew
from elsewise.transport import reference, sorted_squared_distances

LAWS = settings(max_examples=60, deadline=None)
ROWS = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 3)), columns=["a", "b", "c"])


def explained(target: ew.targets.Target) -> ew.Explanation:
    return ew.explain(
        ew.models.function(lambda frame: 1.0 / (1.0 + np.exp(-frame["a"] - frame["b"]))),
        ROWS,
        target=target,
        bounds=ew.Bounds(outputs=0.3),
        settings=ew.Settings(iterations=5, draws=99),
        certify="in-sample",
    )


def test_examples() -> None:
    assert not doctest.testmod(plans).failed


@LAWS
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32))
def test_coupling_is_pots_plan(n: int, m: int, seed: int) -> None:
    """Without ties the optimal plan in one dimension is unique."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=n), rng.normal(size=m)
    plan = coupling(x[None], y[None]).toarray()
    expected = ot.emd_1d(x, y)
    np.testing.assert_allclose(plan, expected, atol=1e-12)


@LAWS
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 5), st.integers(0, 2**32))
def test_coupling_has_mass_one_and_even_marginals(n: int, m: int, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 4, (count, n)).astype(float), rng.normal(size=(count, m))
    plan = coupling(x, y)
    assert plan.shape == (n, m)
    assert plan.nnz <= count * (n + m - 1)
    assert plan.sum() == pytest.approx(1)
    np.testing.assert_allclose(plan.sum(axis=1), np.full(n, 1 / n))
    np.testing.assert_allclose(plan.sum(axis=0), np.full(m, 1 / m))
    single = [coupling(x[k : k + 1], y[k : k + 1]).toarray() for k in range(count)]
    np.testing.assert_allclose(plan.toarray(), np.mean(single, axis=0), atol=1e-12)
    # Its cost is the distance, ties or not.
    costs = [(x[k][:, None] - y[k]) ** 2 for k in range(count)]
    total = np.mean([np.sum(p * c) for p, c in zip(single, costs, strict=True)])
    fixed = reference(np.sort(y), n)
    assert total == pytest.approx(np.mean(sorted_squared_distances(np.sort(x), fixed)))


def test_couplings_are_plans() -> None:
    n = len(ROWS)
    explanation = explained(ew.targets.at_least(0.5))
    for plan in (mu(explanation), nu(explanation)):
        assert plan.shape == (n, n)
        assert plan.sum() == pytest.approx(1)
        np.testing.assert_allclose(plan.sum(axis=0), 1 / n)
        np.testing.assert_allclose(plan.sum(axis=1), 1 / n)
    # On one direction mu pairs ranks.
    pairs = mu(explanation, np.array([[1.0], [0.0], [0.0]])).tocoo()
    order = np.argsort(np.argsort(explanation.counterfactual["a"].to_numpy(), kind="stable"))
    factual = np.argsort(np.argsort(ROWS["a"].to_numpy(), kind="stable"))
    assert (order[pairs.row] == factual[pairs.col]).all()


def test_nu_pays_the_output_distance() -> None:
    wanted = np.linspace(0.3, 0.9, 25)
    found = explained(ew.targets.sample(wanted))
    plan = nu(found)
    assert plan.shape == (len(ROWS), 25)
    cost = np.sum(plan.toarray() * (found.outputs - wanted) ** 2)
    assert np.sqrt(cost) == pytest.approx(found.certificate.outputs.untrimmed)


@pytest.mark.parametrize(
    "target", [ew.targets.distribution(scipy.stats.beta(3, 2)), ew.targets.constant(0.6)]
)
def test_every_target_has_an_output_plan(target: ew.targets.Target) -> None:
    assert nu(explained(target)).sum() == pytest.approx(1)
