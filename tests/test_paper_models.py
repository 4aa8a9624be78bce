"""The models under explanation are the paper's: same data, same protocol, same accuracy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

import paper


def test_heloc_is_prepared_as_published(heloc: paper.Experiment) -> None:
    assert heloc.train.shape == (7896, 23)
    assert heloc.test.shape == (1975, 23)
    assert heloc.explained.shape == (100, 23)
    assert len(heloc.train) + len(heloc.test) == 10459 - paper.HELOC_EMPTY_ROWS
    assert not heloc.train.isna().any(axis=None)
    np.testing.assert_allclose(heloc.train.mean(), 0, atol=1e-12)
    np.testing.assert_allclose(heloc.train.std(ddof=1), 1)
    assert set(heloc.train_labels) == {0, 1}
    assert heloc.explained.index.isin(heloc.test.index).all()


@pytest.mark.parametrize("name", paper.MODELS)
def test_heloc_accuracy_is_the_published_one(heloc: paper.Experiment, name: str) -> None:
    model = paper.trained(heloc, name)
    accuracy = paper.accuracy(model, heloc.test, heloc.test_labels)
    print(
        f"HELOC {name}: accuracy {accuracy:.4f}, published {paper.PUBLISHED_HELOC_ACCURACY[name]}"
    )
    assert accuracy == pytest.approx(paper.PUBLISHED_HELOC_ACCURACY[name], abs=0.015)


@pytest.mark.parametrize("name", paper.MODELS)
@pytest.mark.usefixtures("heloc")
def test_heloc_problem_explains_the_refused_rows(name: str) -> None:
    model, train, rows = paper.heloc_problem(name)
    assert len(train) == 7896
    assert 50 <= len(rows) <= 56  # published: 51 to 52, by the model's seed
    assert (paper.outputs(model, rows) <= 0.5).all()


def test_same_seed_gives_the_same_weights() -> None:
    experiment = paper.german_credit()
    first, second, other = (paper._train(experiment, "DNN", seed) for seed in (3, 3, 4))
    weights = [torch.cat([p.flatten() for p in m.parameters()]) for m in (first, second, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_german_credit_problem() -> None:
    model, train, rows, target = paper.german_credit_problem()
    assert train.shape == (800, 9)
    assert rows.shape == (100, 9)
    assert target.shape == (100,)
    assert ((target >= 0) & (target <= 1)).all()
    assert 0.2 < paper.outputs(model, rows).mean() < 0.4  # published: 31.3 %


def test_german_credit_model_beats_the_majority() -> None:
    experiment = paper.german_credit()
    accuracy = paper.accuracy(
        paper.trained(experiment, "DNN"), experiment.train, experiment.train_labels
    )
    assert accuracy > 1 - experiment.train_labels.mean() + 0.02


def test_label_encoding_keeps_unknown_as_a_level() -> None:
    column = pd.Series(["b", "Unknown", "a", "b"])
    assert paper._label_encoded(column).to_list() == [2, 0, 1, 2]


def test_without_data_a_test_is_skipped_or_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ELSEWISE_DATA", raising=False)
    monkeypatch.delenv("ELSEWISE_REQUIRE_DATA", raising=False)
    with pytest.raises(pytest.skip.Exception, match="ELSEWISE_DATA"):
        paper.data_folder()
    monkeypatch.setenv("ELSEWISE_REQUIRE_DATA", "1")
    with pytest.raises(pytest.fail.Exception, match="ELSEWISE_DATA"):
        paper.data_folder()
