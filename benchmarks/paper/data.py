"""The paper's data, prepared as published: split, standardized, and the rows to explain.

Tables come from `benchmarks.datasets`, which downloads them or reads the folder ``ELSEWISE_DATA``.
Splits are those of the reference experiments: 80 / 20 in the published order (cardio: shuffled with
seed 42), and 100 test rows drawn with seed 42.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks import datasets
from elsewise.datasets import german_credit as german_credit_data

__all__ = [
    "COMPAS_GROUPS",
    "Experiment",
    "cardio",
    "compas",
    "german_credit",
    "german_credit_groups",
    "german_credit_one_hot",
    "german_credit_target",
    "heloc",
    "label_encoded",
]

EXPLAINED = 100
"""Test rows that are drawn; where a target is "all ones", those predicted 0 are explained."""
SEED = 42
"""Of the rows drawn and of the cardio split, in the reference experiments."""
TRAIN_SHARE = 0.8
COMPAS_GROUPS = ("sex", "age_cat", "race", "c_charge_degree")


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One dataset, split, in its own units; a model sees ``prepared`` rows."""

    name: str
    train: pd.DataFrame
    """Training rows (n, p)."""
    train_labels: pd.Series
    """Labels (n,) of 0 and 1."""
    test: pd.DataFrame
    test_labels: pd.Series
    explained: pd.DataFrame
    """The 100 test rows drawn."""
    center: pd.Series
    """Mean (p,) of the training rows; 0 for an indicator."""
    scale: pd.Series
    """Their standard deviation (p,), ddof 1; 1 for an indicator."""
    epochs: int
    """Epochs that the networks are trained for."""

    def prepared(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return rows as a network sees them: numbers standardized, indicators as they are."""
        return (frame - self.center) / self.scale


@cache
def heloc() -> Experiment:
    """Return HELOC: 23 whole numbers, medians for missing cells; 7896 and 1975 rows."""
    data = datasets.heloc()
    return _in_order("HELOC", data.frame.fillna(data.frame.median()), data.outcome)


@cache
def compas() -> Experiment:
    """Return COMPAS: 13 indicators in four groups and two counts; 4937 and 1235 rows."""
    data = datasets.compas()
    indicators = pd.get_dummies(data.frame[list(COMPAS_GROUPS)], dtype=np.int64)
    counts = data.frame[["priors_count", "time_served"]]
    return _in_order("COMPAS", indicators.join(counts), data.outcome, list(indicators))


@cache
def german_credit() -> Experiment:
    """Return German Credit: 9 attributes, texts as the index of their level; 800 and 200 rows."""
    table, labels = _german_credit()
    texts = [name for name, column in table.items() if _is_text(column)]
    codes = table.assign(**{name: label_encoded(table[name]) for name in texts})
    return _german_rows("German Credit", codes.astype(np.float64), labels)


@cache
def german_credit_one_hot() -> Experiment:
    """Return German Credit with an indicator for each level of a text."""
    table, labels = _german_credit()
    encoded = pd.get_dummies(table, dtype=np.int64)
    indicators = [name for name in encoded if name not in table]
    return _german_rows("German Credit, one-hot", encoded, labels, indicators)


def german_credit_groups() -> dict[str, list[str]]:
    """Return the indicators of each text of German Credit."""
    texts = [name for name, column in german_credit_data().frame.items() if _is_text(column)]
    columns = german_credit_one_hot().train.columns
    return {text: [name for name in columns if name.startswith(f"{text}_")] for text in texts}


def _german_credit() -> tuple[pd.DataFrame, pd.Series]:
    data = german_credit_data()
    texts = [name for name, column in data.frame.items() if _is_text(column)]
    return data.frame.fillna(dict.fromkeys(texts, "Unknown")), data.outcome


def _german_rows(
    name: str, table: pd.DataFrame, labels: pd.Series, indicators: Sequence[str] = ()
) -> Experiment:
    positions = np.random.default_rng(0).choice(200, EXPLAINED, replace=False)
    return _in_order(name, table, labels, indicators, epochs=100, positions=positions)


def german_credit_target(size: int = EXPLAINED, seed: int = 0) -> np.ndarray:
    """Return the paper's target for German Credit: a sample (size,) of Beta(0.1, 0.9)."""
    return np.random.default_rng(seed).beta(0.1, 0.9, size)


@cache
def cardio() -> Experiment:
    """Return cardio: 11 numbers as they are; 56000 and 14000 rows."""
    data = datasets.cardio()
    train, test, train_labels, test_labels = train_test_split(
        data.frame.astype(np.float64), data.outcome, train_size=TRAIN_SHARE, random_state=SEED
    )
    return Experiment(
        name="cardio",
        train=train,
        train_labels=train_labels,
        test=test,
        test_labels=test_labels,
        explained=test.sample(EXPLAINED, random_state=SEED),
        center=train.mean(),
        scale=train.std(ddof=1),
        epochs=300,
    )


def _is_text(column: pd.Series) -> bool:
    return not pd.api.types.is_numeric_dtype(column)


def label_encoded(column: pd.Series) -> pd.Series:
    """Return the index of each value among the sorted distinct values."""
    return pd.Series(np.unique(column.to_numpy(dtype=str), return_inverse=True)[1], column.index)


def _in_order(
    name: str,
    table: pd.DataFrame,
    labels: pd.Series,
    indicators: Sequence[str] = (),
    *,
    epochs: int = 300,
    positions: np.ndarray | None = None,
) -> Experiment:
    """Split 80 / 20 in the published order; the rows to explain are drawn with seed 42."""
    size = int(TRAIN_SHARE * len(table))
    train, test = table[:size], table[size:]
    drawn = test.sample(EXPLAINED, random_state=SEED) if positions is None else test.iloc[positions]
    center, scale = train.mean(), train.std(ddof=1)
    center[list(indicators)], scale[list(indicators)] = 0.0, 1.0
    return Experiment(
        name=name,
        train=train,
        train_labels=labels[:size],
        test=test,
        test_labels=labels[size:],
        explained=drawn,
        center=center,
        scale=scale,
        epochs=epochs,
    )
