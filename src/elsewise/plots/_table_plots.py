"""Pictures of plain tables: frontier, runs side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pandas as pd

from elsewise.plots._style import (
    COUNTERFACTUAL,
    CYCLE,
    INPUTS,
    MARKERS,
    OUTPUTS,
    TARGET,
    canvas,
    columns_of,
    dress,
    legend,
    readable,
)
from elsewise.request import Bounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    bounds = getattr(records, "bounds", None) or Bounds()
    style: dict[str, Any] = {"linestyle": ":", "linewidth": 1.4}
    if bounds.inputs is not None:
        ax.axvline(bounds.inputs, color=INPUTS, label="input bound", **style)
    if bounds.outputs is not None:
        ax.axhline(bounds.outputs, color=OUTPUTS, label="output bound", **style)
    return _distances(ax, "Frontier")


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
    return _distances(ax, "Side by side: closer to the corner is better")


def _distances(ax: Axes, title: str) -> Axes:
    """Finish a picture of output against input distances, which begin at 0."""
    ax.set_xlim(0, None)
    ax.set_ylim(0, None)
    legend(ax)
    x, y = "input distance (how far rows move)", "output distance (to the target)"
    return dress(ax, title=title, x=x, y=y, grid="both")
