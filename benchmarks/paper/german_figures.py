"""German Credit: the panel, the risk scatter, label against one-hot encoding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.paper import data, joint_pictures, models
from benchmarks.paper.data import Experiment
from benchmarks.paper.pictures import save
from benchmarks.paper.questions import with_groups
from benchmarks.paper.surprises import surprises
from benchmarks.paper.tables import entry, markdown, number
from scipy import stats

import elsewise as ew
from elsewise import datasets

__all__ = ["encodings", "panel", "scatter"]

LIMITS = ew.Bounds(inputs=0.2, outputs=0.2, trim=0.15)
"""The paper's U_x, U_y and delta."""
SCATTERED = ("Credit amount", "Age", "Duration")
YOUNG = 30
ENCODING_SEEDS = 5


def _on_people(experiment: Experiment, seed: int = 0) -> Callable[[pd.DataFrame], np.ndarray]:
    """Return the paper's network as a function of the raw table, texts and missing cells."""
    module = models.network(experiment, "DNN", seed)
    whole = datasets.german_credit().frame
    texts = [name for name in whole if not pd.api.types.is_numeric_dtype(whole[name])]
    levels = {name: sorted(whole[name].fillna("Unknown").astype(str).unique()) for name in texts}

    def risk(frame: pd.DataFrame) -> np.ndarray:
        known = frame.assign(
            **{
                name: frame[name].fillna("Unknown").map(levels[name].index).astype(np.float64)
                for name in texts
            }
        )
        return models.outputs(module, experiment.prepared(known[experiment.train.columns]))

    return risk


def _people(experiment: Experiment) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the explained and the training rows of the raw table."""
    frame = datasets.german_credit().frame
    return frame.loc[experiment.explained.index], frame.loc[experiment.train.index]


def panel(folder: Path) -> dict[str, Any]:
    """Draw the paper's panel on the raw table: categories stay categories, all rows legal."""
    experiment = data.german_credit()
    rows, train = _people(experiment)
    explanation = ew.explain(
        _on_people(experiment),
        rows,
        target=ew.targets.sample(data.german_credit_target()),
        bounds=LIMITS,
        background=train,
        certify="in-sample",
        progress=False,
    )
    axes = ew.plots.panel(explanation, most=9)
    save(axes[0].figure, folder / "german-credit.png")
    certificate = explanation.certificate
    return {
        "before": float(explanation.factual_outputs.mean()),
        "after": float(explanation.outputs.mean()),
        "inputs": certificate.inputs.untrimmed,
        "outputs": certificate.outputs.untrimmed,
        "inputs limit": certificate.inputs.upper_limit,
        "outputs limit": certificate.outputs.upper_limit,
        "met": bool(certificate.met),
    }


def scatter(folder: Path) -> dict[str, Any]:
    """Draw risk over credit amount and age, and say who moved against expectation."""
    experiment = data.german_credit()
    rows, train = _people(experiment)
    model = _on_people(experiment)
    explanation = ew.explain(
        model,
        rows,
        target=ew.targets.sample(data.german_credit_target()),
        bounds=ew.Bounds(outputs=LIMITS.outputs, trim=LIMITS.trim),
        schema=ew.Schema.infer(rows, train).only(*SCATTERED),
        background=train,
        certify="in-sample",
        progress=False,
    )
    axes = joint_pictures.scatter(explanation, *SCATTERED)
    save(axes[0].figure, folder / "german-credit-scatter.png")
    found = surprises(explanation, {"Credit amount": -1})
    step = round(float(train["Credit amount"].std()))
    lowered = model(rows.assign(**{"Credit amount": rows["Credit amount"] + step})) < model(rows)
    young = (rows["Age"] < YOUNG).to_numpy()
    return {
        "before": float(explanation.factual_outputs.mean()),
        "after": float(explanation.outputs.mean()),
        "outcome": explanation.status.verdict.value,
        "inputs": explanation.certificate.inputs.untrimmed,
        "outputs": explanation.certificate.outputs.untrimmed,
        "young lowered": float(lowered[young].mean()),
        "others lowered": float(lowered[~young].mean()),
        "young": int(young.sum()),
        "step": step,
        "surprises": [str(words) for words in found["words"]],
    }


def encodings(folder: Path) -> dict[str, Any]:
    """Compare label and one-hot encoding: the same network and question, five seeds each."""
    measured = {
        name: pd.DataFrame([_encoded(experiment, seed) for seed in range(ENCODING_SEEDS)])
        for name, experiment in (
            ("label", data.german_credit()),
            ("one-hot", data.german_credit_one_hot()),
        )
    }
    label, one_hot = measured["label"], measured["one-hot"]
    rows = []
    for column in label:
        # Seeds train different networks in the two encodings: two independent samples.
        test = stats.mannwhitneyu(label[column], one_hot[column])
        rows.append(
            [column, entry(label[column]), entry(one_hot[column]), number(float(test.pvalue))]
        )
    header = ["", "label encoding", "one-hot encoding", "p (Mann-Whitney)"]
    return {"table": markdown(header, rows), "seeds": ENCODING_SEEDS}


def _encoded(experiment: Experiment, seed: int) -> dict[str, float]:
    module = models.network(experiment, "DNN", seed)
    schema = ew.Schema.infer(experiment.explained, experiment.train)
    if experiment.name != "German Credit":
        schema = with_groups(schema, data.german_credit_groups())
    explanation = ew.explain(
        models.on_rows(module, experiment),
        experiment.explained,
        target=ew.targets.sample(data.german_credit_target(seed=seed)),
        bounds=LIMITS,
        schema=schema,
        background=experiment.train,
        certify="in-sample",
        seed=seed,
        progress=False,
    )
    before, after = explanation.factual_outputs[:, 0], explanation.outputs[:, 0]
    return {
        "test accuracy": models.accuracy(module, experiment),
        "mean risk before": float(before.mean()),
        "mean risk after": float(after.mean()),
        "output distance": explanation.certificate.outputs.untrimmed,
        "rows changed": float((before != after).mean()),
    }
