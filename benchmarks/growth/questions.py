"""The one question that every whole run answers: a made-up population and a model of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import elsewise as ew

DIMENSION, DIRECTIONS, KERNEL_DIRECTIONS = 23, 69, 50
TARGET, BOUND = 0.6, 0.15


def frame(rows: int, dimension: int = DIMENSION, dtype: Any = np.float64) -> pd.DataFrame:
    """Correlated normal columns."""
    rng = np.random.default_rng(0)
    mix = np.eye(dimension) + 0.5 * rng.normal(size=(dimension, dimension)) / np.sqrt(dimension)
    values = rng.standard_normal((rows, dimension), dtype=dtype) @ mix.astype(dtype)
    return pd.DataFrame(values, columns=[f"x{j}" for j in range(dimension)])


def outcome(rows: pd.DataFrame) -> np.ndarray:
    """A noisy linear outcome, 0 or 1."""
    rng = np.random.default_rng(1)
    weights = rng.normal(size=rows.shape[1]) / np.sqrt(rows.shape[1])
    return (rows @ weights + 0.7 * rng.logistic(size=len(rows)) > 0.5).to_numpy(dtype=np.int64)


def linear_model(dimension: int = DIMENSION) -> Any:
    """A scikit-learn linear model."""
    from sklearn.linear_model import LogisticRegression

    rows = frame(5000, dimension)
    return LogisticRegression(max_iter=500).fit(rows, outcome(rows))


def network(dimension: int = DIMENSION, width: int = 128) -> Any:
    """A float32 torch network with two hidden layers, fitted to the outcome."""
    import torch

    torch.manual_seed(0)
    layers = torch.nn
    module = layers.Sequential(
        layers.Linear(dimension, width),
        layers.ReLU(),
        layers.Linear(width, width),
        layers.ReLU(),
        layers.Linear(width, 1),
        layers.Sigmoid(),
    )
    rows = frame(5000, dimension)
    inputs = torch.tensor(rows.to_numpy(), dtype=torch.float32)
    wanted = torch.tensor(outcome(rows), dtype=torch.float32)[:, None]
    optimizer = torch.optim.Adam(module.parameters(), lr=0.003)
    for _ in range(200):
        optimizer.zero_grad()
        layers.functional.mse_loss(module(inputs), wanted).backward()
        optimizer.step()
    return module.eval().requires_grad_(False)


def explained(model: Any, rows: pd.DataFrame, **settings: Any) -> ew.Explanation:
    """Every row at 0.6 or more; the output limit decides, inputs as near as possible."""
    return ew.explain(
        model,
        rows,
        target=ew.targets.at_least(TARGET),
        bounds=ew.Bounds(outputs=BOUND),
        settings=ew.Settings(**settings),
        progress=False,
    )
