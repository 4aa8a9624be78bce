"""A change of a model's outputs, attribute by attribute."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from elsewise.plots._style import COUNTERFACTUAL, GRID, INK, TARGET, canvas, dress, readable
from elsewise.text import amount

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from elsewise._difference import Difference


def waterfall(difference: Difference, ax: Axes | None = None, most: int = 10) -> Axes:
    """Draw the parts of a difference between the value before and the value after.

    Each bar starts where the one above ends; lines are the simultaneous intervals of the parts;
    pale bars are parts that are not named with confidence.

    Parameters
    ----------
    difference
        What `elsewise.difference` returned.
    ax
        Where to draw; a new figure by default.
    most
        At most this many attributes; the others are one bar.
    """
    table = difference.table()
    parts, named = table["part"].to_numpy()[:most], table["named"].to_numpy()[:most]
    names = [readable(name, 26) for name in table.index[:most]]
    if len(table) > most:
        parts, named = np.append(parts, table["part"].iloc[most:].sum()), np.append(named, False)
        names.append(f"{len(table) - most} others")
    ends = difference.before + np.cumsum([0.0, *parts])
    places = np.arange(1, len(parts) + 1)
    ax = canvas(ax, 6.4, 1.5 + 0.34 * len(parts))
    bars = ax.barh(places, parts, left=ends[:-1], height=0.62)
    for bar, part, bold in zip(bars, parts, named, strict=True):
        bar.set(color=COUNTERFACTUAL if part > 0 else TARGET, alpha=1.0 if bold else 0.45)
    limits = ends[: min(most, len(table)), None] + table[["low", "high"]].to_numpy()[:most]
    ax.hlines(places[: len(limits)], *limits.T, color=INK, linewidth=1.2)
    ax.vlines(ends, places[0] - 1 + np.arange(len(ends)), 1 + np.arange(len(ends)), color=GRID)
    for place, value in ((0, difference.before), (len(ends), difference.after)):
        ax.text(value, place, f" {amount(value)}", va="center", fontsize="small", color=INK)
    ax.set_yticks(range(len(ends) + 1), ["before", *names, "after"])
    ax.invert_yaxis()
    ax.use_sticky_edges = False
    ax.margins(x=0.08, y=0.03)
    return dress(ax, title="What the change goes through", x="score", grid="x")
