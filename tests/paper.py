"""The paper's experiments, prepared as published: data, three torch models, explained rows.

Not a test module. The files are found through the environment variable ``ELSEWISE_DATA`` (a folder
with the sub-folders ``heloc`` and ``german_credit``). Everything here is float64 frames outside and
float32 modules inside, standardized with the training block's mean and standard deviation (ddof 1).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

MODELS = ("DNN", "RBFNet", "SVM")
HELOC_EMPTY_ROWS = 588
PUBLISHED_HELOC_ACCURACY = {"DNN": 0.749, "RBFNet": 0.736, "SVM": 0.750}


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One dataset, split and standardized: frames (n, p), labels (n,) of 0 and 1."""

    name: str
    train: pd.DataFrame
    train_labels: pd.Series
    test: pd.DataFrame
    test_labels: pd.Series
    explained: pd.DataFrame
    epochs: int


def data_folder() -> Path:
    """Return the data folder; without one, skip the test, or fail it where data is required."""
    folder = os.environ.get("ELSEWISE_DATA", "")
    if folder and Path(folder).is_dir():
        return Path(folder)
    reason = f"ELSEWISE_DATA is {folder!r}, not a folder with the experiments' data"
    if os.environ.get("ELSEWISE_REQUIRE_DATA") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


# --- data -----------------------------------------------------------------------------------------


def heloc() -> Experiment:
    """Return HELOC: 23 numeric features, 7896 training and 1975 test rows, 100 explained."""
    return _heloc(data_folder())


@cache
def _heloc(folder: Path) -> Experiment:
    table, labels = _heloc_table(folder)
    positions = json.loads((folder / "heloc" / "explain_test_indices.json").read_text())
    return _experiment("heloc", table, labels, np.asarray(positions), epochs=300)


def _heloc_table(folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Return the 9871 usable rows, medians for missing cells, and the labels."""
    table = pd.read_csv(folder / "heloc" / "heloc_dataset_v1.csv")
    labels = (table.pop("RiskPerformance") == "Good").astype(np.int64)
    # Negative values are codes for "no information"; rows that hold nothing else are dropped.
    table = table.astype(np.float64).where(table >= 0)
    known = table.notna().any(axis=1)
    table, labels = table[known].reset_index(drop=True), labels[known].reset_index(drop=True)
    return table.fillna(table.median()), labels


def heloc_integers() -> tuple[pd.DataFrame, pd.Series, pd.DataFrame, pd.DataFrame]:
    """Return HELOC as whole numbers: training rows, labels, test rows, the 100 explained rows."""
    folder = data_folder()
    table, labels = _heloc_table(folder)
    table = table.round()
    size = int(0.8 * len(table))
    positions = json.loads((folder / "heloc" / "explain_test_indices.json").read_text())
    test = table[size:]
    return table[:size], labels[:size], test, test.iloc[positions]


def compas_problem(
    model_name: str, seed: int = 0
) -> tuple[nn.Module, Callable[[torch.Tensor], torch.Tensor], pd.DataFrame, pd.DataFrame]:
    """Return a trained model, its scaling, the training frame and the rows predicted 0.

    The frame has the model's 15 columns: one-hot sex, age, race and charge degree as 0 / 1, and two
    counts as they are; the scaling standardizes the counts.
    """
    table, labels, positions = _compas_table(data_folder())
    size = int(0.8 * len(table))
    train, test = table[:size], table[size:]
    center = torch.tensor([0.0 if set(train[c]) <= {0, 1} else train[c].mean() for c in train])
    scale = torch.tensor([1.0 if set(train[c]) <= {0, 1} else train[c].std() for c in train])

    def prepare(codes: torch.Tensor) -> torch.Tensor:
        return (codes - center.to(codes.dtype)) / scale.to(codes.dtype)

    inputs = prepare(as_tensor(train))
    model = _fitted(model_name, inputs, labels[:size], epochs=300, seed=seed)
    rows = test.iloc[positions]
    with torch.no_grad():
        refused = model(prepare(as_tensor(rows))).reshape(-1).numpy() < 0.5
    return model, prepare, train, rows[refused]


COMPAS_GROUPS = ("sex", "age_cat", "race", "c_charge_degree")


@cache
def _compas_table(folder: Path) -> tuple[pd.DataFrame, pd.Series, list[int]]:
    table = pd.read_csv(folder / "compas" / "compas-scores-two-years.csv")
    table = table[
        (table["days_b_screening_arrest"].abs() <= 30)
        & (table["is_recid"] != -1)
        & (table["c_charge_degree"] != "O")
        & table["score_text"].notna()
    ].reset_index(drop=True)
    jailed = pd.to_datetime(table["c_jail_out"]) - pd.to_datetime(table["c_jail_in"])
    frame = pd.get_dummies(table[list(COMPAS_GROUPS)], dtype=np.int64).assign(
        priors_count=table["priors_count"], time_served=jailed.dt.days.clip(lower=0)
    )
    positions = json.loads((folder / "compas" / "explain_test_indices.json").read_text())
    return frame, 1 - table["two_year_recid"], positions


def german_credit() -> Experiment:
    """Return German Credit: 9 attributes, label-encoded; 800 training and 200 test rows."""
    return _german_credit()


@cache
def _german_credit() -> Experiment:
    from elsewise import datasets

    data = datasets.german_credit()
    columns = {
        name: _label_encoded(column.fillna("Unknown")) if _is_text(column) else column
        for name, column in data.frame.items()
    }
    table = pd.DataFrame(columns).astype(np.float64)
    positions = np.random.default_rng(0).choice(200, 100, replace=False)
    return _experiment("german_credit", table, data.outcome, positions, epochs=100)


def german_credit_target(size: int = 100, seed: int = 0) -> np.ndarray:
    """Return the paper's target for German Credit: a sample (size,) of Beta(0.1, 0.9)."""
    return np.random.default_rng(seed).beta(0.1, 0.9, size)


def _is_text(column: pd.Series) -> bool:
    return not pd.api.types.is_numeric_dtype(column)


def _label_encoded(column: pd.Series) -> pd.Series:
    """Return the index of each value among the sorted distinct values."""
    return pd.Series(np.unique(column.to_numpy(dtype=str), return_inverse=True)[1], column.index)


def _experiment(
    name: str, table: pd.DataFrame, labels: pd.Series, positions: np.ndarray, *, epochs: int
) -> Experiment:
    """Split 80 / 20 without shuffling and standardize with the training rows."""
    size = int(0.8 * len(table))
    center, scale = table[:size].mean(), table[:size].std(ddof=1)
    standardized = (table - center) / scale
    test = standardized[size:]
    return Experiment(
        name=name,
        train=standardized[:size],
        train_labels=labels[:size],
        test=test,
        test_labels=labels[size:],
        explained=test.iloc[positions],
        epochs=epochs,
    )


# --- models ---------------------------------------------------------------------------------------


class RBFNet(nn.Module):
    """d Gaussian units exp(-|x - c|^2 / (2 sigma^2)), then a linear layer without a sigmoid."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.centers = nn.Parameter(torch.randn(features, features))
        self.sigmas = nn.Parameter(torch.rand(features) + 0.5)
        self.linear = nn.Linear(features, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # |x - c|^2 expanded, so that no array (n, d, d) is built.
        squared = (x**2).sum(1)[:, None] - 2 * x @ self.centers.T + (self.centers**2).sum(1)
        return self.linear(torch.exp(-squared / (2 * self.sigmas**2)))


def _dnn(features: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(features, 10),
        nn.ReLU(),
        nn.Linear(10, 10),
        nn.ReLU(),
        nn.Linear(10, 1),
        nn.Sigmoid(),
    )


def _svm(features: int) -> nn.Module:
    return nn.Linear(features, 1)


_BUILD: dict[str, Callable[[int], nn.Module]] = {"DNN": _dnn, "RBFNet": RBFNet, "SVM": _svm}


def as_tensor(frame: pd.DataFrame) -> torch.Tensor:
    return torch.tensor(frame.to_numpy(), dtype=torch.float32)


def outputs(model: nn.Module, frame: pd.DataFrame) -> np.ndarray:
    """Return the model's outputs (n,) on a standardized frame."""
    with torch.no_grad():
        return model(as_tensor(frame))[:, 0].numpy()


def accuracy(model: nn.Module, frame: pd.DataFrame, labels: pd.Series) -> float:
    """Return the share of rows classified as labelled, at the threshold 0.5."""
    return float(np.mean((outputs(model, frame) > 0.5) == (labels.to_numpy() == 1)))


def trained(experiment: Experiment, model_name: str, seed: int = 0) -> nn.Module:
    """Return a trained model of the paper, the same weights for the same seed."""
    key = (experiment.name, model_name, seed)
    if key not in _TRAINED:
        _TRAINED[key] = _train(experiment, model_name, seed)
    return _TRAINED[key]


_TRAINED: dict[tuple[str, str, int], nn.Module] = {}


def _train(experiment: Experiment, model_name: str, seed: int) -> nn.Module:
    x = as_tensor(experiment.train)
    return _fitted(model_name, x, experiment.train_labels, epochs=experiment.epochs, seed=seed)


def _fitted(
    model_name: str, x: torch.Tensor, labels: pd.Series, *, epochs: int, seed: int
) -> nn.Module:
    """Minimize the squared error on 0/1 labels with full-batch Adam, learning rate 0.01."""
    y = torch.tensor(labels.to_numpy(), dtype=torch.float32)[:, None]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = _BUILD[model_name](x.shape[1])
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(epochs):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    finally:
        torch.set_num_threads(threads)
    return model.eval().requires_grad_(False)


# --- problems -------------------------------------------------------------------------------------


def heloc_problem(model_name: str, seed: int = 0) -> tuple[nn.Module, pd.DataFrame, pd.DataFrame]:
    """Return a trained model, the training frame, and the explained rows it predicts 0."""
    experiment = heloc()
    model = trained(experiment, model_name, seed)
    rows = experiment.explained
    return model, experiment.train, rows[outputs(model, rows) <= 0.5]


def german_credit_problem(
    model_name: str = "DNN", seed: int = 0
) -> tuple[nn.Module, pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Return a trained model, the training frame, 100 test rows and the target sample (100,)."""
    experiment = german_credit()
    model = trained(experiment, model_name, seed)
    return model, experiment.train, experiment.explained, german_credit_target(seed=seed)
