"""What changed: features by share of the distance, and rows moving between categories."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from elsewise.analysis import changes as changes_of
from elsewise.analysis import column_named
from elsewise.errors import InvalidInput
from elsewise.features import Kind
from elsewise.plots._feature_names import grouped_levels
from elsewise.plots._style import (
    COUNTERFACTUAL,
    FACTUAL,
    INK,
    INPUTS,
    TARGET,
    canvas,
    dress,
    legend,
    percent_axis,
    readable,
)
from elsewise.text import amount, percent

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from elsewise.explanation import Explanation

__all__ = ["changes", "flows"]

UP, DOWN, SWAP = COUNTERFACTUAL, TARGET, INPUTS
MOST_BARS = 15
# Space between the stacked levels of a flow, as a share of its height.
GAP = 0.02
# Height of a line of text in a flow.
LINE = 0.065
MOST_LEVELS = 7


def changes(explanation: Explanation, ax: Axes | None = None, most: int = MOST_BARS) -> Axes:
    """Draw the share of the distance each feature carries, with its direction and size.

    Numbers say their mean before and after in their own units, categories the share of rows that
    change.

    Parameters
    ----------
    explanation
        What to draw.
    ax
        Where to draw; a new figure by default.
    most
        At most this many features.
    """
    table = changes_of(explanation).iloc[:most]
    ax = canvas(ax, 6.4, 0.9 + 0.34 * len(table))
    places = np.arange(len(table))
    looks = [_look(row) for _, row in table.iterrows()]
    bars = ax.barh(places, table["share"], color=[colour for colour, _ in looks], height=0.62)
    ax.bar_label(bars, [words for _, words in looks], padding=4, fontsize="small", color=INK)
    ax.set_yticks(places, [readable(name, 26) for name in table.index])
    ax.invert_yaxis()
    # Room for the words to the right of the longest bar.
    ax.set_xlim(0, 2.0 * max(float(table["share"].max()), 0.05))
    percent_axis(ax, "x")
    return dress(ax, title="What changes most", x="share of the input distance", grid="x")


def _look(row: pd.Series[Any]) -> tuple[str, str]:
    """Colour and words of one feature's bar."""
    before, after = row.get("mean_before", np.nan), row.get("mean_after", np.nan)
    moved = f"{percent(row['rows_moved'])} of rows change"
    if np.isnan(before):
        return SWAP, moved
    if amount(before) == amount(after):
        return FACTUAL, f"{moved}, mean still {amount(after)}"
    arrow, colour = ("▲", UP) if after > before else ("▼", DOWN)
    return colour, f"{arrow} mean {amount(before)} → {amount(after)}"


def flows(explanation: Explanation, name: Hashable | None = None, ax: Axes | None = None) -> Axes:
    """Draw how rows move between the levels of a category: factual left, counterfactual right.

    Parameters
    ----------
    explanation
        What to draw.
    name
        A category; by default the free one with the largest share of the distance.
    ax
        Where to draw; a new figure by default.
    """
    from matplotlib.patches import PathPatch

    column = column_named(explanation, _first_category(explanation) if name is None else name)
    if column.numeric:
        raise InvalidInput(
            "name",
            expected="a category",
            received=f"{column.name!r}, a {column.kind}",
            fix="draw numbers with plots.feature",
        )
    names, (start, end) = grouped_levels(column, MOST_LEVELS)
    mass = np.zeros((len(names), len(names)))
    np.add.at(mass, (start, end), 1.0 / start.size)
    ax = canvas(ax, 6.0, 4.0)
    left, right = _tops(mass.sum(axis=1)), _tops(mass.sum(axis=0))
    from_top, to_top = left.copy(), right.copy()
    for i, k in np.ndindex(*mass.shape):
        if mass[i, k] == 0:
            continue
        path = _ribbon(float(from_top[i]), float(to_top[k]), float(mass[i, k]))
        moved = i != k
        ax.add_patch(
            PathPatch(
                path,
                facecolor=COUNTERFACTUAL if moved else FACTUAL,
                alpha=0.55 if moved else 0.18,
                linewidth=0,
            )
        )
        from_top[i] -= mass[i, k]
        to_top[k] -= mass[i, k]
    _labels(ax, 0.0, left, mass.sum(axis=1), names, "right")
    _labels(ax, 1.0, right, mass.sum(axis=0), names, "left")
    ax.set_xlim(-0.5, 1.5)
    ax.set_ylim(min(left[-1] - mass.sum(axis=1)[-1], right[-1] - mass.sum(axis=0)[-1]) - GAP, 1.06)
    ax.set_xticks([0, 1], ["factual", "counterfactual"])
    ax.set_yticks([])
    ax.plot([], [], color=COUNTERFACTUAL, alpha=0.55, linewidth=6, label="rows that change")
    ax.plot([], [], color=FACTUAL, alpha=0.3, linewidth=6, label="rows that stay")
    legend(ax, loc="upper center", ncols=2, bbox_to_anchor=(0.5, -0.1))
    dress(ax, title=readable(column.name), grid=None)
    ax.spines[["left", "bottom"]].set_visible(False)
    return ax


def _first_category(explanation: Explanation) -> Hashable:
    table = changes_of(explanation)
    for name, kind in zip(table.index, table["kind"], strict=True):
        if kind not in (Kind.NUMBER, Kind.INTEGER):
            found: Hashable = name
            return found
    raise InvalidInput(
        "explanation",
        expected="a category that may move",
        received="none",
        fix="draw numbers with plots.feature",
    )


def _tops(shares: np.ndarray) -> np.ndarray:
    """Upper end of each stacked level, from 1 downwards."""
    above = np.concatenate([[0.0], np.cumsum(shares)[:-1]])
    return np.asarray(1.0 - above - GAP * np.arange(shares.size))


def _ribbon(left: float, right: float, height: float) -> Any:
    """Band from x = 0 to x = 1, from one height to another."""
    from matplotlib.path import Path

    corners = [(0.0, left), (0.5, left), (0.5, right), (1.0, right)]
    back = [(x, y - height) for x, y in reversed(corners)]
    codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3]
    return Path([*corners, *back], codes)


def _labels(
    ax: Axes, x: float, tops: np.ndarray, shares: np.ndarray, names: list[str], side: str
) -> None:
    offset = -0.04 if side == "right" else 0.04
    shown = np.flatnonzero(shares > 0)
    middles = _apart((tops - shares / 2)[shown])
    for k, middle in zip(shown, middles, strict=True):
        text = f"{readable(names[k], 18)}  {percent(shares[k])}"
        ax.text(x + offset, middle, text, ha=side, va="center", fontsize="small", color=INK)


def _apart(middles: np.ndarray) -> np.ndarray:
    """Move falling heights as little down and up as it takes to be a line of text apart."""
    steps = LINE * np.arange(middles.size)
    # Falling by at least a line is being sorted once a line has been taken off for each step.
    down = np.minimum.accumulate(middles + steps)
    up = np.maximum.accumulate((middles + steps)[::-1])[::-1]
    return np.asarray((down + up) / 2 - steps)
