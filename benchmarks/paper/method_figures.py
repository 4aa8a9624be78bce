"""All methods in one picture: validity against OT, and the frontier with every method on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from benchmarks.paper import published
from benchmarks.paper.methods import COSTS, TARGETS
from benchmarks.paper.models import NETWORKS
from benchmarks.paper.pictures import plt, save
from benchmarks.paper.questions import ask
from benchmarks.paper.tables import COUNTERPARTS, LABELS, chosen, spread
from matplotlib.ticker import NullFormatter

import elsewise as ew
from elsewise.plots._draw import COUNTERFACTUAL, CYCLE, FACTUAL, MARKERS, dress, legend

__all__ = ["frontier", "frontier_curves", "overview"]

OURS = "#cc3311"
RIVALS = [name for name in LABELS if name not in (*COSTS, "GLOBE-CE legal")]
STYLES = {
    name: {"color": colour, "marker": marker}
    for name, colour, marker in zip(RIVALS, CYCLE, MARKERS, strict=True)
}
STYLES["ours"] = {"color": OURS, "marker": "*", "markersize": 13}


def overview(cells: pd.DataFrame, folder: Path) -> None:
    """Draw validity against OT for the six rows of Table 1; published values hollow."""
    figure, axes = plt.subplots(2, 3, figsize=(13.0, 7.6), sharex=True, layout="constrained")
    for ax, (dataset, model) in zip(axes.ravel(), published.ACCURACY, strict=True):
        part = chosen(cells, dataset=dataset, model=model)
        if dataset == "COMPAS":
            part = part[(part["method"] != "ours") | (part["target"] != "ones")]
            part = part[(part["method"] != "DISCOUNT") | (part["target"] == "ones")]
        for method in STYLES:
            found = chosen(part, method=method)
            if len(found):
                _point(ax, method, found["validity"], found["ot"])
        for name in dict.fromkeys(COUNTERPARTS.values()):
            row = published.TABLE[dataset, model, name]
            style = STYLES[next(method for method in COUNTERPARTS if COUNTERPARTS[method] == name)]
            ax.plot(
                row.coverage,
                max(published.corrected_ot(row.ot), 1e-3),
                linestyle="none",
                fillstyle="none",
                markersize=9,
                **style,
            )
        ax.set_yscale("log")
        ax.yaxis.set_minor_formatter(NullFormatter())
        dress(ax, title=f"{dataset}, {model}", x="validity", y="OT", grid="both")
    legend(axes[0, 0], loc="lower right")
    save(figure, folder / "overview.png")


def _point(ax: Any, method: str, x: pd.Series, y: pd.Series) -> None:
    across, up = spread(x), spread(y)
    ax.errorbar(
        across.median,
        up.median,
        xerr=[[across.median - across.low], [across.high - across.median]],
        yerr=[[up.median - up.low], [up.high - up.median]],
        linestyle="none",
        linewidth=1.2,
        label=LABELS[method].strip("*"),
        **({"markersize": 8} | STYLES[method]),
    )


def frontier_curves(folder: Path) -> dict[str, Any]:
    """Trace our frontier on HELOC for each network, seed 0, distances untrimmed."""
    return {model: _curve(model) for model in NETWORKS}


def _curve(model: str) -> dict[str, list[float]]:
    question = ask("HELOC", model, 0)
    curve = ew.frontier(
        question.model,
        question.rows,
        target=TARGETS["ones"],
        schema=question.schema,
        background=question.experiment.train,
        bounds=ew.Bounds(trim=0.0),
        certify="in-sample",
        progress=False,
    )
    return {side: curve.table[side].tolist() for side in ("inputs", "outputs")}


def frontier(cells: pd.DataFrame, curves: dict[str, Any], folder: Path) -> None:
    """Draw every method as a point beside the curve of all that we can reach."""
    figure, axes = plt.subplots(1, 3, figsize=(14.0, 4.4), sharey=True, layout="constrained")
    for ax, model in zip(axes, NETWORKS, strict=True):
        curve = curves[model]
        ax.plot(
            curve["inputs"],
            curve["outputs"],
            color=COUNTERFACTUAL,
            linewidth=2,
            label="elsewise, frontier (seed 0)",
            zorder=1,
        )
        part = chosen(cells, dataset="HELOC", model=model)
        for method in STYLES:
            found = chosen(part, method=method)
            if len(found):
                _point(ax, method, found["input distance"], found["distance to ones"])
        ax.axhline(0.5, color=FACTUAL, linewidth=0.8, linestyle=":")
        ax.set_xscale("symlog", linthresh=0.5)
        ax.set_xlim(0, None)
        ax.set_ylim(0, None)
        dress(ax, title=f"HELOC, {model}", x="input distance", grid="both")
    axes[0].set_ylabel("output distance to all ones")
    legend(axes[-1])
    save(figure, folder / "frontier.png")
