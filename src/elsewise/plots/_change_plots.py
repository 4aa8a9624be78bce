"""What changed: features by their effect, moves of one feature, rows between categories."""

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
    readable,
)
from elsewise.text import amount, percent

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from elsewise.explanation import Explanation


UP, DOWN, SWAP = COUNTERFACTUAL, TARGET, INPUTS
MOST_BARS = 15
# Space between the stacked levels of a flow, as a share of its height.
GAP = 0.02
# Height of a line of text in a flow.
LINE = 0.065
MOST_LEVELS = 7
MOST_BINS = 60


def changes(explanation: Explanation, ax: Axes | None = None, most: int = MOST_BARS) -> Axes:
    """Draw what each feature's changes add to the mean output, largest effect first.

    Words say in how many rows it changes, and by how much in the median where it is a number. Of a
    run loaded without its model, bars are shares of the input distance.

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
    known = bool(table["effect"].notna().all())
    values = table["effect"].abs() if known else table["share"]
    looks = [_look(row, len(explanation.outputs)) for _, row in table.iterrows()]
    places = np.arange(len(table))
    bars = ax.barh(places, values, color=[colour for colour, _ in looks], height=0.62)
    ax.bar_label(bars, [words for _, words in looks], padding=4, fontsize="small", color=INK)
    ax.set_yticks(places, [readable(name, 26) for name in table.index])
    ax.invert_yaxis()
    # Room for the words to the right of the longest bar; ticks end where the bars do.
    longest = float(values.max()) or 1.0
    ax.set_xlim(0, 2.2 * longest)
    ax.set_xticks([0.0, 0.5 * longest, longest], ["0", amount(0.5 * longest), amount(longest)])
    what = "effect on the mean output" if known else "share of the input distance"
    return dress(ax, title="What changes most", x=what, grid="x")


def _look(row: pd.Series[Any], rows: int) -> tuple[str, str]:
    """Colour and words of one feature's bar."""
    moved = f"{round(row['rows_moved'] * rows):,} rows"
    if np.isnan(row["median_move"]):
        return SWAP, moved
    arrow, colour = ("▲", UP) if row["median_move"] > 0 else ("▼", DOWN)
    return colour, f"{moved}, {arrow} {amount(abs(row['median_move']))} in the median"


def moves(explanation: Explanation, name: Hashable, ax: Axes | None = None) -> Axes:
    """Draw the moves of one feature, over the rows in which it changes.

    A number has a histogram of its differences, a category its most frequent changes of level.

    Parameters
    ----------
    explanation
        What to draw.
    name
        Column of the frame, or name of a one-hot group.
    ax
        Where to draw; a new figure by default.
    """
    column = column_named(explanation, name)
    ax = canvas(ax, 4.2, 3.0)
    before, after = column.before[column.moved], column.after[column.moved]
    if column.numeric:
        change = (after - before)[~np.isnan(after - before)]
        width = float(np.ptp(change)) if change.size else 0.0
        bins: Any = 20 if width > 0 else 1
        if column.kind == "integer" and 0 < width <= MOST_BINS:  # a bar for every whole number
            bins = np.arange(change.min() - 0.5, change.max() + 1.0)
        counts, edges = np.histogram(change, bins=bins)
        middles = 0.5 * (edges[1:] + edges[:-1])
        colours = [DOWN if middle < 0 else UP for middle in middles]
        ax.bar(middles, counts, width=0.9 * np.diff(edges), color=colours)
        ax.axvline(0.0, color=FACTUAL, linewidth=1)
        return dress(ax, title=readable(name), x="change", y="rows")
    found, counts = np.unique(np.stack([before, after], axis=1), axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MOST_LEVELS]
    labels = [
        f"{readable(column.level(found[k][0]), 14)} → {readable(column.level(found[k][1]), 14)}"
        for k in order
    ]
    bars = ax.barh(np.arange(len(order)), counts[order], color=SWAP, height=0.62)
    ax.bar_label(bars, [f"{count:,}" for count in counts[order]], padding=4, fontsize="small")
    ax.set_yticks(np.arange(len(order)), labels)
    ax.invert_yaxis()
    ax.set_xlim(0, 1.15 * float(counts.max(initial=1)))
    return dress(ax, title=readable(name), x="rows", grid="x")


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
        expected, received = "a category", f"{column.name!r}, a {column.kind}"
        fix = "draw numbers with plots.feature"
        raise InvalidInput("name", expected=expected, received=received, fix=fix)
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
    fix = "draw numbers with plots.feature"
    raise InvalidInput("explanation", expected="a category that may move", received="none", fix=fix)


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
