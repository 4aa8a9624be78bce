"""Pictures of plain tables: diversity, frontier, methods side by side, calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pandas as pd

from elsewise.plots._style import (
    COUNTERFACTUAL,
    CYCLE,
    FACTUAL,
    INPUTS,
    MARKERS,
    OUTPUTS,
    TARGET,
    canvas,
    columns_of,
    dress,
    legend,
    percent_axis,
    readable,
)
from elsewise.request import Bounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["calibration", "comparison", "diversity", "frontier"]


def diversity(records: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw how diverse the counterfactual rows are against the input limit they were given.

    Parameters
    ----------
    records
        DataFrame with the columns ``inputs`` (the limit U_x) and ``diversity``; one line for each
        value of a column ``name``, if there is one.
    ax
        Where to draw; a new figure by default.
    """
    ax = canvas(ax)
    _lines(ax, columns_of(records, "inputs", "diversity"), "inputs", "diversity")
    return dress(ax, title="Diversity", x="input limit U_x", y="diversity")


class Curve(Protocol):
    """A frontier: its points, and the bounds to compare them with."""

    @property
    def table(self) -> pd.DataFrame:
        """One row per point."""

    @property
    def bounds(self) -> Bounds:
        """Bounds, if any."""


def frontier(records: pd.DataFrame | Curve, ax: Axes | None = None) -> Axes:
    """Draw how close the outputs come for how far the inputs move.

    Parameters
    ----------
    records
        An `elsewise.Frontier`, or a DataFrame with the columns ``inputs`` and ``outputs``
        (distances), and, if there are, ``inputs_limit`` and ``outputs_limit`` (upper limits) and a
        boolean ``chosen``.
    ax
        Where to draw; a new figure by default.
    """
    given: Any = getattr(records, "table", records)
    table = columns_of(given, "inputs", "outputs").sort_values("inputs")
    ax = canvas(ax)
    ax.plot(
        table["inputs"],
        table["outputs"],
        color=COUNTERFACTUAL,
        linewidth=2,
        marker="o",
        label="distance",
    )
    if {"inputs_limit", "outputs_limit"} <= set(table.columns):
        ax.plot(
            table["inputs_limit"],
            table["outputs_limit"],
            color=COUNTERFACTUAL,
            linestyle=(0, (4, 2)),
            linewidth=1.2,
            label="upper limit",
        )
    if "chosen" in table.columns:
        here = table[table["chosen"].astype(bool)]
        ax.plot(
            here["inputs"],
            here["outputs"],
            color=TARGET,
            marker="D",
            markersize=9,
            linestyle="none",
            clip_on=False,
            zorder=3,
            label="chosen" if given is records else "knee",
        )
    bounds = getattr(records, "limits", None) or Bounds()
    style: dict[str, Any] = {"linestyle": ":", "linewidth": 1.4}
    if bounds.inputs is not None:
        ax.axvline(bounds.inputs, color=INPUTS, label="input bound", **style)
    if bounds.outputs is not None:
        ax.axhline(bounds.outputs, color=OUTPUTS, label="output bound", **style)
    ax.set_xlim(0, None)
    ax.set_ylim(0, None)
    legend(ax)
    return dress(
        ax,
        title="Frontier",
        x="input distance (how far rows move)",
        y="output distance (to the target)",
        grid="both",
    )


def comparison(records: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw methods or runs side by side: input against output distance, lower left is better.

    Parameters
    ----------
    records
        DataFrame with the columns ``name``, ``inputs`` and ``outputs`` (distances), and, if there
        are, ``inputs_limit`` and ``outputs_limit``, drawn as bars up from the distances.
    ax
        Where to draw; a new figure by default.
    """
    table = columns_of(records, "name", "inputs", "outputs")
    ax = canvas(ax, 6.0, 4.0)
    for k, (_, row) in enumerate(table.iterrows()):
        reach = [
            [[0.0], [max(0.0, float(row.get(f"{side}_limit", row[side])) - row[side])]]
            for side in ("inputs", "outputs")
        ]
        ax.errorbar(
            row["inputs"],
            row["outputs"],
            xerr=reach[0],
            yerr=reach[1],
            color=CYCLE[k % len(CYCLE)],
            marker=MARKERS[k % len(MARKERS)],
            markersize=8,
            linewidth=1.2,
            linestyle="none",
            label=readable(row["name"]),
        )
    ax.set_xlim(0, None)
    ax.set_ylim(0, None)
    legend(ax)
    return dress(
        ax,
        title="Side by side: closer to the corner is better",
        x="input distance (how far rows move)",
        y="output distance (to the target)",
        grid="both",
    )


def calibration(records: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw how often limits held against how often they should.

    Parameters
    ----------
    records
        DataFrame with the columns ``nominal`` and ``coverage`` (shares), ``error`` (standard error)
        if there is one; one line for each value of a column ``name``, if there is one.
    ax
        Where to draw; a new figure by default.
    """
    table = columns_of(records, "nominal", "coverage")
    ax = canvas(ax, 4.6, 4.2)
    low = float(min(table["nominal"].min(), table["coverage"].min()))
    ax.plot([low, 1], [low, 1], color=FACTUAL, linewidth=1, linestyle=":", label="as promised")
    _lines(ax, table, "nominal", "coverage")
    percent_axis(ax, "x")
    percent_axis(ax, "y")
    return dress(
        ax, title="Calibration", x="promised", y="held in repeated experiments", grid="both"
    )


def _lines(ax: Axes, table: pd.DataFrame, x: str, y: str) -> None:
    """One line for each name, or one for all."""
    groups = table.groupby("name", sort=False) if "name" in table.columns else [("", table)]
    for k, (name, part) in enumerate(groups):
        ordered = part.sort_values(x)
        colour = CYCLE[k % len(CYCLE)]
        ax.plot(
            ordered[x],
            ordered[y],
            color=colour,
            marker=MARKERS[k % len(MARKERS)],
            linewidth=1.8,
            label=readable(name) if name else y,
        )
        if "error" in ordered.columns:
            low, high = (ordered[y] + sign * 2.0 * ordered["error"] for sign in (-1.0, 1.0))
            ax.fill_between(ordered[x], low, high, color=colour, alpha=0.15, linewidth=0)
    ax.margins(x=0.05, y=0.1)
    if len(ax.lines) > 1:
        legend(ax)
