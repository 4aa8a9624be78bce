"""The paper's pictures of plans and of rows in two features, tested on what they draw."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from benchmarks.paper.joint_pictures import mu, nu, scatter

import elsewise as ew
from elsewise.errors import InvalidInput
from people import explained

mpl.use("Agg")


@pytest.fixture(scope="module")
def explanation() -> ew.Explanation:
    return explained()


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def test_plans_are_binned_and_keep_their_mass(explanation: ew.Explanation) -> None:
    for draw in (mu, nu):
        (image,) = draw(explanation).images
        mass = np.asarray(image.get_array())
        assert max(mass.shape) <= 100
        assert mass.sum() == pytest.approx(1.0)


def test_the_plan_of_unmoved_rows_is_the_diagonal() -> None:
    same = explained(ew.targets.at_least(0.0), outputs=0.5)
    (image,) = mu(same).images
    assert np.trace(np.asarray(image.get_array())) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "target", [ew.targets.sample(np.linspace(0.2, 0.9, 70)), ew.targets.constant(0.7)]
)
def test_the_output_plan_of_other_targets(target: ew.targets.Target) -> None:
    (image,) = nu(explained(target, outputs=0.9)).images
    assert np.asarray(image.get_array()).sum() == pytest.approx(1.0)


def test_scatter_draws_rows_beside_each_other(explanation: ew.Explanation) -> None:
    left, right = scatter(explanation, "income", "debt", size="cards")
    for ax, rows, outputs in (
        (left, explanation.factual, explanation.factual_outputs),
        (right, explanation.counterfactual, explanation.outputs),
    ):
        points = ax.collections[0]
        np.testing.assert_allclose(points.get_offsets(), rows[["income", "debt"]])
        np.testing.assert_allclose(points.get_array(), outputs[:, 0])
        assert len(set(points.get_sizes())) == rows["cards"].nunique()
    assert left.get_xlim() == right.get_xlim()
    assert scatter(explanation)[0].get_xlabel() in {"income", "debt", "cards"}
    with pytest.raises(InvalidInput, match="two columns of numbers"):
        scatter(explanation, x="home")
