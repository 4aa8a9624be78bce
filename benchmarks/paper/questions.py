"""What every method is asked: a trained model, rows it predicts 0, and what may change of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.paper import data, models
from benchmarks.paper.data import Experiment

import elsewise as ew

__all__ = ["EXPERIMENTS", "THRESHOLD", "Question", "ask", "compas_groups", "seen_by_network"]

EXPERIMENTS = {"HELOC": data.heloc, "COMPAS": data.compas}
THRESHOLD = 0.5
"""Output from which a row is predicted 1."""
CALIBRATION_SEED = 7
"""Draws the training rows on which our one setting, the output bound, is chosen."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """One population under one model."""

    experiment: Experiment
    model_name: str
    seed: int
    """Of the model's training and of every method."""
    model: Any
    """The model, as `elsewise.explain` takes it: rows in their own units in, scores out."""
    accuracy: float
    """Share of test rows classified as labelled."""
    rows: pd.DataFrame
    """Rows that the model predicts 0."""
    schema: ew.Schema
    """What may change: real numbers for HELOC under networks, as published, else legal rows."""


@cache
def ask(dataset: str, model_name: str, seed: int = 0, *, calibration: bool = False) -> Question:
    """Train a model, and ask about the 100 test rows, or for calibration 100 training rows."""
    experiment = EXPERIMENTS[dataset]()
    drawn = experiment.explained
    if calibration:
        drawn = experiment.train.sample(data.EXPLAINED, random_state=CALIBRATION_SEED)
    if model_name in models.NETWORKS:
        module = models.network(experiment, model_name, seed)
        model = models.on_rows(module, experiment)
        tested, scores = (
            models.outputs(module, experiment.prepared(part)) for part in (experiment.test, drawn)
        )
    else:
        model = models.forest(experiment, model_name, seed)
        tested, scores = (model.predict_proba(part)[:, 1] for part in (experiment.test, drawn))
    rows = drawn[scores < THRESHOLD]
    return Question(
        experiment=experiment,
        model_name=model_name,
        seed=seed,
        model=model,
        accuracy=float(np.mean((tested >= THRESHOLD) == (experiment.test_labels == 1))),
        rows=rows,
        schema=_schema(experiment, rows, relaxed=model_name in models.NETWORKS),
    )


def _schema(experiment: Experiment, rows: pd.DataFrame, *, relaxed: bool) -> ew.Schema:
    schema = ew.Schema.infer(rows, experiment.train)
    if experiment.name == "COMPAS":
        return with_groups(schema, compas_groups())
    return schema.continuous(*rows.columns) if relaxed else schema


def compas_groups() -> dict[str, list[str]]:
    """Return the indicators of each group."""
    columns = data.compas().train.columns
    return {
        group: [name for name in columns if name.startswith(f"{group}_")]
        for group in data.COMPAS_GROUPS
    }


def with_groups(schema: ew.Schema, groups: Mapping[str, Sequence[str]]) -> ew.Schema:
    """Return the schema with one-hot groups, distances as a network sees the columns.

    There an indicator counts 1; in a group it counts 1 / sqrt(2), so that a swap counts 1.
    """
    for group, columns in groups.items():
        schema = schema.one_hot_group(group, columns)
        for name in columns:
            schema = schema.weight(name, np.sqrt(2.0))
    return schema


def seen_by_network(experiment: Experiment, schema: ew.Schema) -> ew.Schema:
    """Return the schema with every column a real number, as the paper's step needs it.

    Distances are between prepared rows: an indicator is not divided by its standard deviation.
    """
    schema = schema.continuous(*(feature.name for feature in schema.features))
    for feature in schema.features:
        schema = schema.weight(feature.name, feature.scale / experiment.scale[feature.name])
    return schema
