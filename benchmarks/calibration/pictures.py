"""The pictures of the page, drawn from the tables."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from elsewise.plots._draw import (
    COUNTERFACTUAL,
    CYCLE,
    FACTUAL,
    INK,
    MARKERS,
    TARGET,
    dress,
    percent_axis,
)

from .gate import ERRORS, standard_error
from .grid import REPETITIONS
from .methods import LEVELS, NOMINAL
from .scenarios import CLIFF

__all__ = ["draw_all"]

NAMES = {
    "certificate": "certificate",
    "basic": "reference code's bootstrap",
    "bootstrap": "bootstrap alone",
    "clt": "CLT alone",
    "coupling": "coupling + betting",
    "band": "equal-local-level band",
    "dkw": "DKW band",
}
SIDES = ("outputs", "inputs")
SHOWN = (("basic", TARGET, 0.18), ("certificate", COUNTERFACTUAL, -0.18))
"""Method, colour, and on which side of its number of rows it is drawn."""


def draw_all(cells: pd.DataFrame, convergence: pd.DataFrame, folder: Path) -> dict[str, str]:
    """Draw every picture into a folder; return file names by what they show."""
    folder.mkdir(parents=True, exist_ok=True)
    cells = cells[cells["scenario"] != CLIFF]
    figures = {
        "coverage": coverage(cells),
        "width": width(cells),
        "levels": levels(cells),
        "convergence": error(convergence),
    }
    names = {}
    for name, figure in figures.items():
        names[name] = f"calibration-{name}.png"
        figure.savefig(folder / names[name], dpi=110)
        plt.close(figure)
    return names


def coverage(cells: pd.DataFrame) -> plt.Figure:
    """Every trimmed cell: how often the certificate and the reference's bootstrap hold."""
    figure, axes = _pair("Share of limits that hold, each dot a cell with trim >= 0.05")
    rng = np.random.default_rng(0)
    places = {count: place for place, count in enumerate(REPETITIONS)}
    for ax, side in zip(axes, SIDES, strict=True):
        part = cells[(cells["side"] == side) & (cells["trim"] > 0)]
        for method, colour, shift in (
            ("basic", TARGET, 0.18),
            ("certificate", COUNTERFACTUAL, -0.18),
        ):
            shown = part[part["method"] == method]
            at = shown["rows"].map(places) + shift + rng.uniform(-0.1, 0.1, len(shown))
            ax.plot(
                at,
                shown["coverage"],
                color=colour,
                marker="o",
                markersize=4,
                alpha=0.6,
                markeredgewidth=0,
                linestyle="none",
                label=NAMES[method],
            )
        for count, repetitions in REPETITIONS.items():
            floor = NOMINAL - ERRORS * standard_error(repetitions)
            ax.hlines(floor, places[count] - 0.4, places[count] + 0.4, color=INK, linewidth=1.2)
        ax.axhline(NOMINAL, color=FACTUAL, linestyle=":", linewidth=1)
        ax.set_xticks(list(places.values()), [f"{count:,}" for count in places])
        ax.set_ylim(-0.04, 1.04)
        percent_axis(ax, "y")
        dress(ax, title=side, x="rows", y="limits at or above the truth")
    axes[0].plot([], [], color=INK, linewidth=1.2, label="gate: 95 % less 4 standard errors")
    return _with_legend(figure, axes[0])


def width(cells: pd.DataFrame) -> plt.Figure:
    """What each method costs: limits divided by the truth, against the number of rows."""
    figure, axes = _pair("Median limit divided by the truth, trim 0.05, middle scenario")
    for ax, side in zip(axes, SIDES, strict=True):
        part = cells[(cells["side"] == side) & (cells["trim"] == 0.05) & cells["ratio"].notna()]
        for place, method in enumerate(("certificate", "basic", "coupling", "band", "dkw")):
            middle = part[part["method"] == method].groupby("rows")["ratio"].median()
            if middle.empty:
                continue
            ax.plot(
                middle.index,
                middle,
                color=CYCLE[place],
                marker=MARKERS[place],
                linewidth=1.8,
                label=NAMES[method],
            )
        ax.axhline(1.0, color=FACTUAL, linestyle=":", linewidth=1)
        ax.set_xscale("log")
        ax.set_yscale("log")
        _ticks(ax, "x", tuple(REPETITIONS))
        _ticks(ax, "y", (0.3, 0.5, 1, 2, 5, 10))
        dress(ax, title=side, x="rows", y="limit / truth", grid="both")
    return _with_legend(figure, axes[0])


def levels(cells: pd.DataFrame) -> plt.Figure:
    """Promised against kept, at four levels, mean over the trimmed cells."""
    columns = ("coverage_80", "coverage_90", "coverage", "coverage_975")
    figure, axes = _pair("Mean over cells with trim >= 0.05", height=4.4)
    for ax, side in zip(axes, SIDES, strict=True):
        part = cells[(cells["side"] == side) & (cells["trim"] > 0)]
        records = [
            {"name": NAMES[method], "nominal": level, "coverage": part[at][column].mean()}
            for method in ("certificate", "basic", "bootstrap", "clt")
            for at in [part["method"] == method]
            for level, column in zip(LEVELS, columns, strict=True)
        ]
        _promised(ax, pd.DataFrame(records), side)
    return _with_legend(figure, axes[0])


def _promised(ax: Axes, records: pd.DataFrame, title: str) -> None:
    """How often limits held (coverage) against how often they should (nominal), by name."""
    low = float(min(records["nominal"].min(), records["coverage"].min()))
    ax.plot([low, 1], [low, 1], color=FACTUAL, linewidth=1, linestyle=":", label="as promised")
    for k, (name, part) in enumerate(records.groupby("name", sort=False)):
        line = part.sort_values("nominal")
        style = {"color": CYCLE[k % len(CYCLE)], "marker": MARKERS[k % len(MARKERS)]}
        ax.plot(line["nominal"], line["coverage"], linewidth=1.8, label=name, **style)
    ax.margins(x=0.05, y=0.1)
    percent_axis(ax, "x")
    percent_axis(ax, "y")
    dress(ax, title=title, x="promised", y="held in repeated experiments", grid="both")


def error(convergence: pd.DataFrame) -> plt.Figure:
    """|SW - SW_hat| against the number of rows, for several dimensions."""
    figure, axes = _pair("Mean of |SW - estimate|, two independent samples")
    for ax, apart, title in zip(
        axes, (True, False), ("populations apart (SW = 0.36)", "equal populations"), strict=True
    ):
        part = convergence[convergence["apart"] == apart]
        for place, (dimension, line) in enumerate(part.groupby("dimension")):
            ax.plot(
                line["rows"],
                line["error"],
                color=CYCLE[place],
                marker=MARKERS[place],
                linewidth=1.8,
                label=f"d = {dimension}",
            )
        first = part.groupby("rows")["error"].mean()
        rows = np.array(first.index, dtype=float)
        ax.plot(
            rows,
            first.iloc[0] * np.sqrt(rows[0] / rows),
            color=FACTUAL,
            linestyle=":",
            linewidth=1,
            label="1 / sqrt(n)",
        )
        ax.set_xscale("log")
        ax.set_yscale("log")
        _ticks(ax, "x", (50, 200, 1000, 5000))
        _ticks(ax, "y", (0.003, 0.01, 0.03, 0.1, 0.3))
        ax.set_ylim(0.002, 0.4)
        dress(ax, title=title, x="rows", y="mean error", grid="both")
    return _with_legend(figure, axes[0])


def _pair(title: str, height: float = 4.0) -> tuple[plt.Figure, np.ndarray]:
    figure, axes = plt.subplots(1, 2, figsize=(9.0, height), layout="constrained")
    figure.suptitle(title, color=INK, fontsize="medium", x=0.01, ha="left")
    return figure, axes


def _with_legend(figure: plt.Figure, ax: Axes) -> plt.Figure:
    """Put one legend for all panels below them, where it hides nothing."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=len(labels) if len(labels) < 4 else 3,
        frameon=False,
        fontsize="small",
        labelcolor=INK,
    )
    return figure


def _ticks(ax: Axes, axis: str, values: tuple[float, ...]) -> None:
    chosen = ax.xaxis if axis == "x" else ax.yaxis
    chosen.set_ticks(values, [f"{value:,g}" if value < 1 else f"{value:,.0f}" for value in values])
    chosen.set_minor_locator(plt.NullLocator())
