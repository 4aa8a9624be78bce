"""Distributions before and after: the outputs, all features at once, one feature at a time."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from elsewise._arrays import to_numpy
from elsewise.analysis import changes as changes_of
from elsewise.analysis import column_named
from elsewise.plots._feature_names import category_shares
from elsewise.plots._style import (
    COUNTERFACTUAL,
    FACTUAL,
    TARGET,
    canvas,
    canvases,
    dress,
    legend,
    levels_of,
    percent_axis,
    quantiles,
    readable,
)
from elsewise.targets import Constant, Derived, Sample
from elsewise.text import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from elsewise.analysis import Column
    from elsewise.explanation import Explanation


# Share of the height of a picture below which a band can hardly be seen beside its line.
THIN = 0.025


def outputs(
    explanation: Explanation, ax: Axes | None = None, column: int = 0, label: str | None = None
) -> Axes:
    """Draw the quantiles of the model's output: factual, counterfactual with a band, and target.

    The band is Dvoretzky, Kiefer and Wolfowitz's at the level of the limits: where the quantiles of
    the population would lie, all at once, if the rows were drawn from it independently. It is left
    out where it reaches beyond the largest or smallest row, and where the rows are the population.

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
    ax = canvas(ax)
    problem = explanation.problem
    after, before = explanation.outputs[:, column], explanation.factual_outputs[:, column]
    levels = levels_of(after.size)
    confidence = explanation.certificate.confidence
    if confidence is not None:
        low, high = _band(after, levels, confidence)
        band = ax.fill_between(levels, low, high, color=COUNTERFACTUAL, alpha=0.2, linewidth=0)
        band.set_label(f"{percent(confidence, exact=True)} band")
    _two_curves(ax, levels, before, after)
    _draw_wanted(ax, explanation, levels, column)
    if problem.outputs.probability:
        ax.set_ylim(0, 1)
        percent_axis(ax, "y")
    if confidence is not None and np.nanmax(high - low) < THIN * np.ptp(ax.get_ylim()):
        band.set_label(f"{band.get_label()}, hardly wider than the line")
    legend(ax)
    # Of a pipeline, its last step says what the output is.
    name = problem.outputs.description.rsplit(").", 1)[-1] if label is None else label
    return dress(ax, title="Model output", x="share of rows", y=readable(name))


def _draw_wanted(ax: Axes, explanation: Explanation, levels: np.ndarray, column: int) -> None:
    """Draw what is wanted: the ends that rows are to be within, or the target's quantiles."""
    style: dict[str, Any] = {"color": TARGET, "linestyle": (0, (4, 2)), "linewidth": 1.8}
    reached = explanation.certificate.reached
    if reached is None:
        wanted = _target_quantiles(explanation, levels, column)
        ax.plot(levels, wanted, label="target", **style)
        return
    question = reached.question
    ends = (question.wanted.lower, question.wanted.upper) if question.wanted else ()
    drawn = {values[column] for values in ends if column < len(values)}
    for end in sorted(end for end in drawn if math.isfinite(end)):
        ax.axhline(end, label="cut-off", **style)
    if question.wanted is None and not question.relative:
        ax.axhline(question.mean, label="mean asked for", **style)


def projected(explanation: Explanation, ax: Axes | None = None) -> Axes:
    """Draw the quantiles of all free features at once, projected on their mean change.

    Parameters
    ----------
    explanation
        What to draw.
    ax
        Where to draw; a new figure by default.
    """
    ax = canvas(ax)
    embedding = explanation.problem.embedding
    before = to_numpy(embedding.embed(explanation.problem.factual))
    after = to_numpy(embedding.embed(explanation.rows.codes))
    change = (after - before).mean(axis=0)
    size = float(np.linalg.norm(change))
    # Where the mean stays, every direction says the same about it: take the diagonal.
    direction = change / size if size > 0 else np.full(change.size, change.size**-0.5)
    levels = levels_of(len(before))
    _two_curves(ax, levels, before @ direction, after @ direction)
    legend(ax)
    title = "All features, along their mean change"
    return dress(ax, title=title, x="share of rows", y="standard deviations")


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
    ax = canvas(ax, 4.2, 3.0)
    if not column.numeric:
        return _paired_bars(ax, column)
    levels = levels_of(column.before.size)
    _two_curves(ax, levels, column.before, column.after)
    legend(ax)
    return dress(ax, title=readable(name), x="share of rows")


def features(
    explanation: Explanation, axes: np.ndarray | None = None, most: int = 12
) -> np.ndarray:
    """Draw one panel per free feature, the largest shares of the distance first.

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


def _two_curves(ax: Axes, levels: np.ndarray, before: np.ndarray, after: np.ndarray) -> None:
    """Draw quantiles before and after over the share of rows."""
    sides = (before, FACTUAL, "factual"), (after, COUNTERFACTUAL, "counterfactual")
    for values, colour, label in sides:
        ax.plot(levels, quantiles(values, levels), color=colour, linewidth=2, label=label)
    ax.set_xlim(0, 1)
    percent_axis(ax, "x")


def _band(
    values: np.ndarray, levels: np.ndarray, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """Band of the quantiles at these levels; NaN where it leaves the sample."""
    radius = math.sqrt(math.log(2.0 / (1.0 - confidence)) / (2.0 * values.size))
    ends = []
    for shifted in (levels - radius, levels + radius):
        inside = (shifted > 0.0) & (shifted < 1.0)
        ends.append(np.where(inside, quantiles(values, np.clip(shifted, 0.0, 1.0)), np.nan))
    return ends[0], ends[1]


def _target_quantiles(explanation: Explanation, levels: np.ndarray, column: int) -> np.ndarray:
    """Quantiles of one column of the target at these levels."""
    target = explanation.problem.target
    if isinstance(target, Sample):
        return quantiles(np.asarray(target.values)[:, column], levels)
    if isinstance(target, Derived | Constant):
        return quantiles(to_numpy(target.of(explanation.factual_outputs))[:, column], levels)
    return np.asarray(target.quantile(levels))


def _paired_bars(ax: Axes, column: Column) -> Axes:
    names, shares = category_shares(column)
    places = np.arange(len(names))
    for offset, share, colour, label in (
        (-0.2, shares[0], FACTUAL, "factual"),
        (0.2, shares[1], COUNTERFACTUAL, "counterfactual"),
    ):
        ax.barh(places + offset, share, height=0.36, color=colour, label=label)
    ax.set_yticks(places, [readable(name, 22) for name in names])
    ax.invert_yaxis()
    ax.set_xlim(0, None)
    percent_axis(ax, "x")
    legend(ax)
    return dress(ax, title=readable(column.name), x="share of rows", grid="x")
