"""Legal rows on the paper's data: trees on whole numbers, one-hot groups on COMPAS."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
import torch
from benchmarks.paper import models
from benchmarks.paper.data import Experiment
from benchmarks.paper.methods import PAPERS_COST
from benchmarks.paper.questions import Question, compas_groups
from benchmarks.rivals.compare import explanation_ot, validity
from benchmarks.rivals.distances import sliced_ot
from sklearn.ensemble import HistGradientBoostingClassifier

import elsewise as ew
import paper

pytestmark = pytest.mark.slow

BOUNDS = (0.2, 0.3)


@pytest.fixture(scope="module", params=["HistGradientBoosting", "LightGBM"])
def trees(request: pytest.FixtureRequest, heloc: Experiment) -> tuple[object, Experiment]:
    from lightgbm import LGBMClassifier

    model = {
        "HistGradientBoosting": HistGradientBoostingClassifier(random_state=0),
        "LightGBM": LGBMClassifier(random_state=0, n_jobs=1, verbose=-1),
    }[request.param]
    return model.fit(heloc.train, heloc.train_labels), heloc


@pytest.mark.parametrize(("size", "least", "ot"), [(52, 0.98, 0.025), (400, 0.99, 0.016)])
def test_trees_on_heloc(trees: tuple, size: int, least: float, ot: float) -> None:
    """Whole numbers, nearly all rows flipped, far nearer than rivals come."""
    model, experiment = trees
    train = experiment.train
    pool = experiment.explained if size == 52 else experiment.test
    rows = pool[model.predict(pool) == 0].iloc[:size]
    reached = []
    for bound in BOUNDS:
        explanation = ew.explain(
            model,
            rows,
            target=ew.targets.constant(1.0),
            bounds=ew.Bounds(outputs=bound),
            background=train,
            certify="in-sample",
            seed=0,
        )
        after = explanation.counterfactual
        assert explanation.certificate.met
        assert (after.to_numpy() == np.round(after.to_numpy())).all()
        assert (explanation.outputs[:, 0] == model.predict_proba(after)[:, 1]).all()
        low, high = train.min().clip(upper=rows.min()), train.max().clip(lower=rows.max())
        assert ((after >= low) & (after <= high)).all(axis=None)
        reached.append((validity(explanation.outputs), explanation_ot(explanation)))
    assert any(v >= least and d <= ot for v, d in reached), reached


@pytest.fixture(scope="module", params=models.NETWORKS)
def compas(request: pytest.FixtureRequest) -> Iterator[Question]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield paper.ask("COMPAS", request.param)
    torch.set_num_threads(threads)


GOALS = {
    "at_least": {"DNN": 0.10, "RBFNet": 0.16, "SVM": 0.105},
    "ones": {"DNN": 0.12, "RBFNet": 0.26, "SVM": 0.15},
}
# at_least(0.6) starts at a distance of about 0.25: bounds of 0.2 and more would ask little.
TRIED = {"at_least": (0.05,), "ones": (0.3, 0.4)}


@pytest.mark.parametrize("target", GOALS)
def test_compas_with_legal_groups(compas: Question, target: str) -> None:
    """Exactly one 1 per group, whole counts, validity at least 0.97 at the stated distance."""
    goal = {"at_least": ew.targets.at_least(0.6), "ones": ew.targets.constant(1.0)}[target]
    rows, experiment = compas.rows, compas.experiment

    def seen(frame: pd.DataFrame) -> np.ndarray:
        return experiment.prepared(frame).to_numpy()

    reached = []
    for bound in TRIED[target]:
        explanation = ew.explain(
            compas.model,
            rows,
            target=goal,
            bounds=ew.Bounds(outputs=bound),
            schema=compas.schema,
            background=experiment.train,
            certify="in-sample",
            seed=0,
            settings=PAPERS_COST,
        )
        after = explanation.counterfactual
        for columns in compas_groups().values():
            assert (after[columns].sum(axis=1) == 1).all()
            assert set(np.unique(after[columns])) <= {0, 1}
        assert (after.dtypes == rows.dtypes).all()
        distance = sliced_ot(seen(after), seen(rows))
        assert explanation_ot(explanation) == pytest.approx(distance, rel=0.05)
        reached.append((validity(explanation.outputs), distance))
    largest = GOALS[target][compas.model_name]
    assert any(v >= 0.97 and d <= largest for v, d in reached), reached
