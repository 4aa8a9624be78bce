"""The paper's three networks, trained as published, and the forests beyond it.

All networks: full-batch Adam with learning rate 0.01, squared error on 0 / 1 labels, threshold 0.5,
float32, the same weights for the same seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from benchmarks.paper.data import Experiment
from torch import nn

import elsewise as ew

__all__ = ["FORESTS", "NETWORKS", "accuracy", "forest", "network", "on_rows", "outputs"]

NETWORKS = ("DNN", "RBFNet", "SVM")
FORESTS = ("LightGBM", "RandomForest")


class RBFNet(nn.Module):
    """d Gaussian units exp(-|x - c|^2 / (2 sigma^2)), then a linear layer without a sigmoid."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.centers = nn.Parameter(torch.randn(features, features))
        self.sigmas = nn.Parameter(torch.rand(features) + 0.5)
        self.linear = nn.Linear(features, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return outputs (n, 1)."""
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


def network(experiment: Experiment, name: str, seed: int = 0) -> nn.Module:
    """Return a trained network, which takes prepared rows; each is trained once per process."""
    key = (experiment.name, name, seed)
    if key not in _TRAINED:
        _TRAINED[key] = _trained(experiment, name, seed)
    return _TRAINED[key]


_TRAINED: dict[tuple[str, str, int], nn.Module] = {}


def _trained(experiment: Experiment, name: str, seed: int) -> nn.Module:
    x = _tensor(experiment.prepared(experiment.train))
    y = torch.tensor(experiment.train_labels.to_numpy(), dtype=torch.float32)[:, None]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the order of sums, and so the weights, depends on it
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = _BUILD[name](x.shape[1])
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(experiment.epochs):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    finally:
        torch.set_num_threads(threads)
    return model.eval().requires_grad_(False)


def _tensor(rows: pd.DataFrame) -> torch.Tensor:
    return torch.tensor(rows.to_numpy(), dtype=torch.float32)


def outputs(model: nn.Module, prepared: pd.DataFrame) -> np.ndarray:
    """Return a network's outputs (n,) on prepared rows."""
    with torch.no_grad():
        return model(_tensor(prepared))[:, 0].numpy()


def accuracy(model: nn.Module, experiment: Experiment) -> float:
    """Return the share of test rows classified as labelled, at the threshold 0.5."""
    predicted = outputs(model, experiment.prepared(experiment.test)) >= 0.5
    return float(np.mean(predicted == (experiment.test_labels == 1)))


def on_rows(model: nn.Module, experiment: Experiment) -> Any:
    """Return a network for `elsewise.explain`: rows in their own units in, slopes included."""
    center, scale = (
        torch.tensor(part.to_numpy(), dtype=torch.float64)
        for part in (experiment.center, experiment.scale)
    )

    def prepare(rows: torch.Tensor) -> torch.Tensor:
        return (rows - center.to(rows.dtype)) / scale.to(rows.dtype)

    return ew.models.torch_model(model, prepare=prepare)


def forest(experiment: Experiment, name: str, seed: int = 0) -> Any:
    """Train trees on rows in their own units, with their library's defaults."""
    if name == "LightGBM":
        from lightgbm import LGBMClassifier

        # With all columns for every tree, its default, the seed would change nothing.
        model = LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1, colsample_bytree=0.8)
    else:
        from sklearn.ensemble import RandomForestClassifier

        model = RandomForestClassifier(random_state=seed, n_jobs=1)
    return model.fit(experiment.train, experiment.train_labels)
