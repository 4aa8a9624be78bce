"""The models under explanation are the paper's: same data, same protocol, same accuracy."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch
from benchmarks.paper import data, models, published
from benchmarks.paper.data import Experiment

import needs
import paper

pytestmark = pytest.mark.slow

HELOC_EMPTY_ROWS = 588


def test_heloc_is_prepared_as_published(heloc: Experiment) -> None:
    assert heloc.train.shape == (7896, 23)
    assert heloc.test.shape == (1975, 23)
    assert heloc.explained.shape == (100, 23)
    assert len(heloc.train) + len(heloc.test) == 10459 - HELOC_EMPTY_ROWS
    assert not heloc.train.isna().any(axis=None)
    assert (heloc.train == heloc.train.round()).all(axis=None)
    prepared = heloc.prepared(heloc.train)
    np.testing.assert_allclose(prepared.mean(), 0, atol=1e-12)
    np.testing.assert_allclose(prepared.std(ddof=1), 1)
    assert set(heloc.train_labels) == {0, 1}
    assert heloc.explained.index.isin(heloc.test.index).all()


@pytest.mark.parametrize(("name", "load"), [("heloc", data.heloc), ("compas", data.compas)])
def test_the_explained_rows_are_those_of_the_reference(name: str, load: object) -> None:
    """Drawn with seed 42, they are the positions the reference experiments explain."""
    positions = needs.data_folder() / name / "explain_test_indices.json"
    experiment = load()
    expected = experiment.test.iloc[json.loads(positions.read_text())]
    pd.testing.assert_frame_equal(experiment.explained, expected)


@pytest.mark.usefixtures("heloc")
def test_compas_keeps_indicators_as_they_are() -> None:
    compas = data.compas()
    assert compas.train.shape == (4937, 15)
    assert compas.test.shape == (1235, 15)
    prepared = compas.prepared(compas.train)
    indicators = [name for name in prepared if name.startswith(data.COMPAS_GROUPS)]
    assert len(indicators) == 13
    pd.testing.assert_frame_equal(prepared[indicators], compas.train[indicators], check_dtype=False)
    np.testing.assert_allclose(prepared.drop(columns=indicators).std(ddof=1), 1)


@pytest.mark.parametrize("name", models.NETWORKS)
def test_heloc_accuracy_is_the_published_one(heloc: Experiment, name: str) -> None:
    accuracy = models.accuracy(models.network(heloc, name), heloc)
    # Training ends elsewhere where a processor rounds otherwise: 0.733 to 0.745 were seen for DNN.
    assert accuracy == pytest.approx(published.ACCURACY["HELOC", name], abs=0.02)


@pytest.mark.parametrize("name", models.NETWORKS)
def test_a_question_explains_the_refused_rows(name: str) -> None:
    question = paper.ask("HELOC", name)
    experiment = question.experiment
    assert 50 <= len(question.rows) <= 56  # published: 51 to 52, by the model's seed
    module = models.network(experiment, name)
    assert (models.outputs(module, experiment.prepared(question.rows)) < 0.5).all()
    assert question.accuracy == models.accuracy(module, experiment)


def test_same_seed_gives_the_same_weights() -> None:
    experiment = data.german_credit()
    first, second, other = (models._trained(experiment, "DNN", seed) for seed in (3, 3, 4))
    weights = [torch.cat([p.flatten() for p in m.parameters()]) for m in (first, second, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_german_credit_is_prepared_as_published() -> None:
    experiment = data.german_credit()
    assert experiment.train.shape == (800, 9)
    assert experiment.explained.shape == (100, 9)
    target = data.german_credit_target()
    assert target.shape == (100,)
    assert ((target >= 0) & (target <= 1)).all()
    module = models.network(experiment, "DNN")
    risk = models.outputs(module, experiment.prepared(experiment.explained))
    assert risk.mean() == pytest.approx(0.313, abs=0.02)  # published: 31.3 %


def test_german_credit_model_beats_the_majority() -> None:
    experiment = data.german_credit()
    module = models.network(experiment, "DNN")
    predicted = models.outputs(module, experiment.prepared(experiment.train)) >= 0.5
    accuracy = np.mean(predicted == (experiment.train_labels == 1))
    assert accuracy > 1 - experiment.train_labels.mean() + 0.02


def test_one_hot_german_credit_has_one_level_of_each_text() -> None:
    experiment = data.german_credit_one_hot()
    groups = data.german_credit_groups()
    assert set(groups) == {"Sex", "Housing", "Saving accounts", "Checking account", "Purpose"}
    for columns in groups.values():
        assert (experiment.train[columns].sum(axis=1) == 1).all()
        assert (experiment.scale[columns] == 1).all()


def test_label_encoding_keeps_unknown_as_a_level() -> None:
    column = pd.Series(["b", "Unknown", "a", "b"])
    assert data.label_encoded(column).to_list() == [2, 0, 1, 2]


def test_without_data_a_test_is_skipped_or_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ELSEWISE_DATA", raising=False)
    monkeypatch.delenv("ELSEWISE_REQUIRE_DATA", raising=False)
    with pytest.raises(pytest.skip.Exception, match="ELSEWISE_DATA"):
        needs.require("data")
    monkeypatch.setenv("ELSEWISE_REQUIRE_DATA", "1")
    with pytest.raises(pytest.fail.Exception, match="ELSEWISE_DATA"):
        needs.require("data")
