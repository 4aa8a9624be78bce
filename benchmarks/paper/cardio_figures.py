"""Cardio: convergence and plans of the paper's step, three models, diversity over U_x."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from benchmarks.paper import data, joint_pictures, models, plans
from benchmarks.paper.pictures import plt, save
from benchmarks.paper.tables import markdown, number
from benchmarks.rivals.compare import Case
from benchmarks.rivals.distances import diversity as mean_distance

import elsewise as ew
from elsewise.plots._draw import CYCLE, FACTUAL, TARGET, dress, legend
from elsewise.plots.charts import levels_of, quantiles

__all__ = ["convergence", "diversity", "three_models"]

ONES = 39
"""Of the 100 labels of the reference's target."""
BODY = ("age", "weight", "height")
PRESSURES = ("ap_hi", "ap_lo")
SYSTOLIC, DIASTOLIC = (0.0, 300.0), (0.0, 200.0)
"""What is drawn; some recorded pressures cannot be true."""
INPUT_BOUNDS = (0.05, 0.1, 0.2, 0.4)
ITERATIONS, TAU, KAPPA = 200, 0.1 * 1e1 / (2 * data.EXPLAINED), 1e-3
"""Of the convergence figure; the reference's script has learning rate 0.1, tau 10, kappa 1e-3."""
NEAR = 0.1
"""Half width of the band that counts as the diagonal of a plan."""


def _target_labels() -> np.ndarray:
    return np.repeat([0.0, 1.0], [data.EXPLAINED - ONES, ONES])


def _explained(model_name: str, features: tuple[str, ...] | None, **options: Any) -> ew.Explanation:
    experiment = data.cardio()
    rows, train = experiment.explained, experiment.train
    schema = ew.Schema.infer(rows, train)
    if features is not None:
        schema = schema.only(*features)
    return ew.explain(
        models.on_rows(models.network(experiment, model_name), experiment),
        rows,
        target=ew.targets.sample(_target_labels()),
        schema=options.pop("relax", lambda schema: schema)(schema),
        background=train,
        certify="in-sample",
        progress=False,
        **options,
    )


def convergence(folder: Path) -> dict[str, Any]:
    """Draw the paper's step with Interval Narrowing, U_x = 0.1 and U_y = 0.25, and its plans."""
    explanation = _explained(
        "DNN",
        None,
        relax=lambda schema: schema.continuous(*data.cardio().train.columns),
        bounds=ew.Bounds(inputs=0.1, outputs=0.25, trim=0.1),
        settings=ew.Settings(
            step="gradient",
            directions=10,
            redraw=False,
            iterations=ITERATIONS,
            epsilon=0.0,
            tau=TAU,
            balance=ew.IntervalNarrowing(lower=0.0, upper=1.0, kappa=KAPPA),
        ),
    )
    # Algorithm 1 alone: where its best iterate misses a limit, the search goes on by other means.
    shown = replace(explanation, iterations=explanation.iterations[: 1 + ITERATIONS])
    ax = ew.plots.convergence(shown)
    save(ax.figure, folder / "convergence.png", bbox_inches="tight")
    history = shown.history
    feasible = (history["inputs_limit"] <= 0.1) & (history["outputs_limit"] <= 0.25)
    return {
        "iterations": len(history) - 1,
        "first": int(feasible.idxmax()) if feasible.any() else None,
        "eta": float(history["eta"].iloc[1]),
        "last eta": float(history["eta"].iloc[-1]),
        "outcome": explanation.status.verdict.value,
        "inputs limit": explanation.certificate.inputs.upper_limit,
        "outputs limit": explanation.certificate.outputs.upper_limit,
        **_plans(explanation, folder),
    }


def _plans(explanation: ew.Explanation, folder: Path) -> dict[str, float]:
    mu, nu = plans.mu(explanation), plans.nu(explanation)
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 4.2), layout="constrained")
    joint_pictures.mu(explanation, axes[0], mu)
    joint_pictures.nu(explanation, axes[1], nu)
    save(figure, folder / "plans.png")
    before = np.argsort(explanation.factual_outputs[:, 0], kind="stable")
    wanted = np.argsort(explanation.problem.target.values[:, 0], kind="stable")
    return {
        "own": float(mu.diagonal().sum()),
        "mu": diagonal_mass(mu, before, before),
        "nu": diagonal_mass(nu, before, wanted),
        "chance": 1.0 - (1.0 - NEAR) ** 2,
    }


def diagonal_mass(
    plan: scipy.sparse.csr_array, rows: np.ndarray, columns: np.ndarray, near: float = NEAR
) -> float:
    """Return the mass of a plan within ``near`` of the diagonal, both sides in the given order."""
    place = np.empty(len(rows))
    place[rows] = (np.arange(len(rows)) + 0.5) / len(rows)
    across = np.empty(len(columns))
    across[columns] = (np.arange(len(columns)) + 0.5) / len(columns)
    entries = plan.tocoo()
    close = np.abs(place[entries.row] - across[entries.col]) <= near
    return float(entries.data[close].sum())


def three_models(folder: Path) -> dict[str, Any]:
    """Draw the outputs of three models, moved in age, weight and height only, by quantile."""
    experiment = data.cardio()
    labels = experiment.test_labels.loc[experiment.explained.index].to_numpy(np.float64)
    figure, ax = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
    levels = levels_of(data.EXPLAINED)
    ax.plot(levels, quantiles(labels, levels), color=FACTUAL, label="factual labels")
    ax.plot(levels, quantiles(_target_labels(), levels), color=TARGET, label="target labels")
    shares = []
    for name, colour in zip(models.NETWORKS, (CYCLE[0], CYCLE[2], CYCLE[3]), strict=True):
        explanation = _explained(name, BODY)
        before, after = explanation.factual_outputs[:, 0], explanation.outputs[:, 0]
        ax.plot(levels, quantiles(before, levels), color=colour, linewidth=1, linestyle=":")
        ax.plot(levels, quantiles(after, levels), color=colour, linewidth=2, label=name)
        shares.append(
            [
                name,
                number(models.accuracy(models.network(experiment, name), experiment)),
                number(float((before >= 0.5).mean()), 2),
                number(float((after >= 0.5).mean()), 2),
                number(ONES / data.EXPLAINED, 2),
                number(explanation.certificate.inputs.untrimmed),
                number(explanation.certificate.outputs.untrimmed),
            ]
        )
    legend(ax)
    dress(ax, title="Three models (dotted: before)", x="share of rows", y="predicted risk")
    save(figure, folder / "three-models.png")
    header = ["model", "test accuracy", "share at risk before", "after", "target"]
    return {"table": markdown([*header, "input distance", "output distance"], shares)}


def diversity(folder: Path) -> dict[str, Any]:
    """Draw counterfactuals of one population under four bounds U_x, blood pressures only."""
    found = {
        bound: _explained("RBFNet", PRESSURES, bounds=ew.Bounds(inputs=bound))
        for bound in INPUT_BOUNDS
    }
    figure, axes = plt.subplots(
        1, 5, figsize=(15.0, 3.6), sharex=True, sharey=True, layout="constrained"
    )
    first = found[INPUT_BOUNDS[0]]
    panels = [("factual", first.factual, first.factual_outputs[:, 0])]
    panels += [
        (f"U_x = {bound:g}", one.counterfactual, one.outputs[:, 0]) for bound, one in found.items()
    ]
    everything = np.concatenate([risk for _, _, risk in panels])
    for ax, (title, frame, risk) in zip(axes, panels, strict=True):
        drawn = ax.scatter(
            frame["ap_hi"],
            frame["ap_lo"],
            c=risk,
            cmap="cividis",
            s=18,
            vmin=everything.min(),
            vmax=everything.max(),
        )
        dress(ax, title=title, x="systolic pressure", grid="both")
    axes[0].set(xlim=SYSTOLIC, ylim=DIASTOLIC, ylabel="diastolic pressure")
    figure.colorbar(drawn, ax=list(axes), label="predicted risk")
    save(figure, folder / "diversity.png")
    rows = []
    for bound, one in found.items():
        case = Case(explanation=one)
        rows.append(
            [
                f"{bound:g}",
                number(case.diversity),
                number(one.certificate.inputs.untrimmed),
                number(one.certificate.outputs.untrimmed),
                number(float(one.outputs.mean())),
            ]
        )
    factual = mean_distance(case.embedded[0])
    header = ["U_x", "diversity", "input distance", "output distance", "mean risk"]
    return {"table": markdown(header, rows), "factual": factual}
