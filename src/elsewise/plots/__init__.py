"""Pictures of an explanation: compute nothing heavy, return Axes, never show.

Pictures of an explanation take ``(explanation, ax=None)`` and return the Axes; those of several
panels (`features`, `panel`) return an array of Axes. Pictures of plain tables (`frontier`,
`comparison`, `policy`) take a DataFrame in place of the explanation, `waterfall` a `Difference`.
What they show is worked out in `elsewise.plots.charts`, which the pages of `report` draw from too.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from elsewise.analysis import changes as changes_of
from elsewise.analysis import column_named
from elsewise.errors import InvalidInput
from elsewise.plots import charts
from elsewise.plots._draw import canvases, draw, draw_bars, draw_flow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from elsewise._difference import Difference
    from elsewise.analysis import Frontier
    from elsewise.explanation import Explanation
    from elsewise.plots._marks import Chart

__all__ = [
    "changes",
    "charts",
    "comparison",
    "convergence",
    "feature",
    "features",
    "flows",
    "frontier",
    "moves",
    "outputs",
    "panel",
    "policy",
    "projected",
    "waterfall",
]

# Panels in a row of the paper's figure.
PANEL_COLUMNS = 3


def outputs(
    explanation: Explanation, ax: Axes | None = None, column: int = 0, label: str | None = None
) -> Axes:
    """Draw the quantiles of the model's output: before, after with a band, and what is wanted.

    The band is where the quantiles of the population lie, all at once, at the level of the limits.

    Parameters
    ----------
    explanation
        What to draw.
    ax
        Where to draw; a new figure by default.
    column
        Which of several outputs.
    label
        What the output is called; by default as the model does.
    """
    return draw(charts.outputs(explanation, column, label), ax)


def projected(explanation: Explanation, ax: Axes | None = None) -> Axes:
    """Draw the quantiles of all free features at once, projected on their mean change."""
    return draw(charts.projected(explanation), ax)


def feature(explanation: Explanation, name: Hashable, ax: Axes | None = None) -> Axes:
    """Draw one feature before and after: quantile curves for a number, paired bars for a category.

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
    if not column.numeric:
        return draw_bars(charts.pair_bars(column), ax)
    return draw(charts.feature(column), ax, 4.2)


def features(
    explanation: Explanation, axes: np.ndarray | None = None, most: int = 12
) -> np.ndarray:
    """Draw one panel per free feature, the largest effects on the output first.

    Parameters
    ----------
    explanation
        What to draw.
    axes
        Where to draw, one per panel; a new figure by default.
    most
        At most this many features.

    Returns
    -------
    ndarray of Axes
    """
    names = list(changes_of(explanation).index[:most])
    panels = canvases(axes, len(names), columns=3)
    for name, ax in zip(names, panels, strict=True):
        feature(explanation, name, ax)
    return panels


def changes(explanation: Explanation, ax: Axes | None = None, most: int = 15) -> Axes:
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
    return draw_bars(charts.change_bars(explanation, most), ax)


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
    if not column.numeric:
        return draw_bars(charts.level_bars(column), ax)
    return draw(charts.moves(column), ax, 4.2)


def flows(explanation: Explanation, name: Hashable | None = None, ax: Axes | None = None) -> Axes:
    """Draw how the rows that change a category move between its levels: before left, after right.

    Parameters
    ----------
    explanation
        What to draw.
    name
        A category; by default the one with the largest effect that some row changes.
    ax
        Where to draw; a new figure by default.
    """
    names = list(changes_of(explanation).index) if name is None else [name]
    columns = [column_named(explanation, one) for one in names]
    for column in columns:
        found = None if column.numeric else charts.flow(column)
        if found is not None:
            return draw_flow(found, ax)
    received = "none" if name is None else f"{columns[0].name!r}, a {columns[0].kind}"
    expected, fix = "a category that some row changes", "draw numbers with plots.moves"
    raise InvalidInput("name", expected=expected, received=received, fix=fix)


def convergence(explanation: Explanation, ax: Axes | None = None) -> Axes:
    """Draw both upper limits over the iterations, their bounds, and the weight eta at the right.

    Of a side without a bound it is the distance.
    """
    return _draw_both(charts.convergence(explanation), charts.weight(explanation), ax)


def frontier(records: pd.DataFrame | Frontier, ax: Axes | None = None) -> Axes:
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
    return draw(charts.frontier(records), ax)


def comparison(records: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw methods or runs side by side: input against output distance, lower left is better.

    Parameters
    ----------
    records
        DataFrame with the columns ``name``, ``inputs`` and ``outputs`` (distances), and, if there
        are, ``inputs_limit`` and ``outputs_limit``, up to which lines are drawn.
    ax
        Where to draw; a new figure by default.
    """
    return draw(charts.comparison(records), ax)


def policy(records: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the share of rows in need that arrive, and what a row pays, for growing policies.

    Parameters
    ----------
    records
        What `Policy.curve` returned; against the budget where it has finite ones.
    ax
        Where to draw; a new figure by default.
    """
    return _draw_both(*charts.policy(records), ax)


def waterfall(difference: Difference, ax: Axes | None = None, most: int = 10) -> Axes:
    """Draw the parts of a difference between the value before and the value after.

    Each bar starts where the one above ends; beside it stands the part with its simultaneous
    interval; pale bars are parts that are not named with confidence.

    Parameters
    ----------
    difference
        What `elsewise.difference` returned.
    ax
        Where to draw; a new figure by default.
    most
        At most this many attributes; the others are one bar.
    """
    return draw_bars(charts.waterfall_bars(difference, most), ax)


def panel(explanation: Explanation, most: int = 6) -> np.ndarray:
    """Compose the paper's figure: outputs and all features, the changes, then feature by feature.

    Parameters
    ----------
    explanation
        What to draw.
    most
        At most this many features get a picture of their own.

    Returns
    -------
    ndarray of Axes
        In reading order; their figure is ``axes[0].figure``.
    """
    names = list(changes_of(explanation).index[:most])
    axes = canvases(None, PANEL_COLUMNS + len(names), PANEL_COLUMNS, width=4.0, height=3.6)
    outputs(explanation, axes[0])
    projected(explanation, axes[1])
    changes(explanation, axes[2], most=8)
    features(explanation, axes[PANEL_COLUMNS:], most)
    return axes


def _draw_both(chart: Chart, beside: Chart, ax: Axes | None) -> Axes:
    """Draw two charts in one place, the second with its numbers at the right."""
    ax = draw(chart, ax)
    other = draw(beside, ax.twinx())
    other.set_title("", loc="left")
    other.set_xlabel("")
    other.grid(visible=False)
    other.spines["right"].set_visible(True)
    return ax
