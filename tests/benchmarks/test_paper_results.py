"""The published experiments: as valid, closer, and with few questions to the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch
from benchmarks.paper import data, models
from benchmarks.paper.methods import PAPERS_COST
from benchmarks.rivals.compare import explanation_ot, validity

import elsewise as ew
import paper

pytestmark = pytest.mark.slow

LIMITS = (0.2, 0.3, 0.4, 0.45)
# Model: least validity, largest OT (5000 fresh directions, trim 0.1, normalised once).
WANTED = {"DNN": (0.98, 0.10), "RBFNet": (0.96, 0.16), "SVM": (1.00, 0.20)}
CALLS = 300
"""Forward passes an explanation may take: the cost that does not depend on the machine."""


@pytest.fixture(autouse=True)
def one_core() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def counted(module: torch.nn.Module, call: Callable[[], ew.Explanation]) -> ew.Explanation:
    """Return an explanation; the forward passes it took, of copies of the module too, are few."""
    passes: list[None] = []
    handle = module.register_forward_hook(lambda *_: passes.append(None))
    explanation = call()
    handle.remove()
    assert 0 < len(passes) <= CALLS
    return explanation


@pytest.mark.parametrize("name", models.NETWORKS)
def test_heloc(name: str) -> None:
    question = paper.ask("HELOC", name)

    def explain(limit: float) -> ew.Explanation:
        return ew.explain(
            question.model,
            question.rows,
            target=ew.targets.constant(1.0),
            bounds=ew.Bounds(outputs=limit),
            schema=question.schema,
            background=question.experiment.train,
            certify="in-sample",
            seed=0,
            settings=PAPERS_COST,
        )

    least, largest = WANTED[name]
    found = {}
    for limit in LIMITS:
        explanation = counted(question.model.module, lambda limit=limit: explain(limit))
        found[limit] = (
            validity(explanation.outputs),
            explanation_ot(explanation),
        )
        assert explanation.certificate.outputs.met == explanation.ok
    assert any(valid >= least and ot <= largest for valid, ot in found.values()), found


def test_german_credit_in_the_papers_setting() -> None:
    """The paper's N = 10 fixed directions: both distances small, on those directions.

    On directions the optimizer never saw the input distance is larger, and drawing new
    directions at every iteration, the default, makes that honest number smaller.
    """
    experiment = data.german_credit()
    model = models.network(experiment, "DNN")
    rows, train = (experiment.prepared(part) for part in (experiment.explained, experiment.train))
    target = data.german_credit_target()

    def explain(settings: ew.Settings) -> ew.Explanation:
        return ew.explain(
            model,
            rows,
            target=ew.targets.sample(target),
            bounds=ew.Bounds(inputs=0.2, outputs=0.2, trim=0.15),
            background=train,
            certify="in-sample",
            seed=0,
            settings=settings,
        )

    papers = replace(PAPERS_COST, directions=10, redraw=False)
    explanation = counted(model, lambda: explain(papers))
    assert explanation.ok, explanation
    assert explanation.certificate.met
    history = explanation.history
    feasible = (history["inputs_limit"] <= 0.2) & (history["outputs_limit"] <= 0.2)
    assert feasible.idxmax() <= 10
    assert feasible.any()
    assert history["inputs"].iloc[-1] < 0.05
    assert history["outputs"].iloc[-1] < 0.05
    assert explain(PAPERS_COST).certificate.inputs.estimate < (
        explanation.certificate.inputs.estimate
    )
