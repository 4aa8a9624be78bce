"""The paper's pictures of the joint structure: plans, and rows in two features."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import scipy.sparse
from benchmarks.paper import plans
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_rgb

from elsewise.analysis import Column, column_named, columns_of
from elsewise.analysis import changes as changes_of
from elsewise.errors import InvalidInput
from elsewise.explanation import Explanation
from elsewise.plots._draw import (
    COUNTERFACTUAL,
    INK,
    canvas,
    canvases,
    dress,
    readable,
)
from elsewise.targets import Derived, Sample

__all__ = ["mu", "nu", "scatter"]

MOST_BINS = 100
MOST_POINTS = 1500


def mu(
    explanation: Explanation, ax: Axes | None = None, plan: scipy.sparse.csr_array | None = None
) -> Axes:
    """Draw the input plan: which factual rows a counterfactual row is paired with.

    Rows are in the order of their factual output on both axes, in at most 100 bins: mass on the
    diagonal means that rows are paired with themselves.

    Parameters
    ----------
    explanation
        What to draw.
    ax
        Where to draw; a new figure by default.
    plan
        ``plans.mu(explanation)``, if it is at hand.
    """
    order = _output_order(explanation)
    mass = _binned(plans.mu(explanation) if plan is None else plan, order, order)
    return _heat(canvas(ax, 4.4, 4.0), mass, "Input plan (mu)", "factual rows")


def nu(
    explanation: Explanation, ax: Axes | None = None, plan: scipy.sparse.csr_array | None = None
) -> Axes:
    """Draw the output plan: which part of the target a counterfactual row is paired with.

    Rows are in the order of their factual output, the target in its own order, in at most 100 bins:
    mass on the diagonal means that rows keep their order.

    Parameters
    ----------
    explanation
        What to draw.
    ax
        Where to draw; a new figure by default.
    plan
        ``plans.nu(explanation)``, if it is at hand.
    """
    order = _output_order(explanation)
    target = explanation.problem.target
    # A known distribution is represented by its quantiles, which are in order.
    wanted = np.arange(order.size)
    if isinstance(target, Sample):
        wanted = np.argsort(np.asarray(target.values)[:, 0], kind="stable")
    elif isinstance(target, Derived):
        wanted = order
    mass = _binned(plans.nu(explanation) if plan is None else plan, order, wanted)
    return _heat(canvas(ax, 4.4, 4.0), mass, "Output plan (nu)", "target")


def _shades(colour: str) -> Colormap:
    """Return a colour map from transparent to ``colour``."""
    rgb = to_rgb(colour)
    return LinearSegmentedColormap.from_list("shades", [(*rgb, 0.0), (*rgb, 1.0)])


def _output_order(explanation: Explanation) -> np.ndarray:
    return np.argsort(explanation.factual_outputs[:, 0], kind="stable")


def _binned(plan: scipy.sparse.csr_array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Sum a plan (n, m), its rows and columns in these orders, into at most 100 x 100 bins."""

    def sums(order: np.ndarray) -> scipy.sparse.csr_array:
        size = order.size
        bins = min(size, MOST_BINS)
        place = np.arange(size) * bins // size
        return scipy.sparse.csr_array((np.ones(size), (place, order)), shape=(bins, size))

    return np.asarray((sums(rows) @ plan @ sums(columns).T).toarray())


def _heat(ax: Axes, mass: np.ndarray, title: str, x: str) -> Axes:
    ax.imshow(
        mass,
        cmap=_shades(COUNTERFACTUAL),
        vmin=0,
        vmax=float(mass.max()),
        origin="lower",
        extent=(0.0, 1.0, 0.0, 1.0),
        interpolation="nearest",
        aspect="equal",
    )
    ax.plot([0, 1], [0, 1], color=INK, linewidth=0.6, alpha=0.5, linestyle=":")
    ax.set_xticks([0, 1], ["low", "high"])
    ax.set_yticks([0, 1], ["low", "high"])
    dress(ax, title=title, x=f"{x}, by output", y="counterfactual rows", grid=None)
    return ax


def scatter(
    explanation: Explanation,
    x: Hashable | None = None,
    y: Hashable | None = None,
    size: Hashable | None = None,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw rows in two features, factual beside counterfactual, coloured by the model's output.

    Parameters
    ----------
    explanation
        What to draw; of more than 1500 rows, evenly spaced ones.
    x, y
        Numbers; by default the two with the largest shares of the distance.
    size
        A third number that sets the size of the points, if wanted.
    axes
        Two axes; a new figure by default.

    Returns
    -------
    ndarray (2,) of Axes
    """
    across, up = _numbers(explanation, x, y)
    third = None if size is None else column_named(explanation, size)
    left, right = panels = canvases(axes, 2, columns=2, width=4.4, height=3.8)
    count = len(explanation.outputs)
    rows = np.unique(np.linspace(0, count - 1, min(count, MOST_POINTS)).round().astype(int))
    results = explanation.factual_outputs[rows, 0], explanation.outputs[rows, 0]
    low, high = min(part.min() for part in results), max(part.max() for part in results)
    areas = (18.0, 18.0) if third is None else _areas(third.before[rows], third.after[rows])
    note = "" if size is None else f", size: {readable(size, 20)}"
    drawn: Any = None
    for ax, points, area, result, title in (
        (left, (across.before, up.before), areas[0], results[0], "Factual"),
        (right, (across.after, up.after), areas[1], results[1], "Counterfactual"),
    ):
        drawn = ax.scatter(
            points[0][rows],
            points[1][rows],
            s=area,
            c=result,
            cmap="cividis",
            vmin=low,
            vmax=high,
            alpha=0.8,
            linewidths=0,
        )
        dress(ax, title=title + note, x=readable(across.name), y=readable(up.name), grid="both")
    right.sharex(left)
    right.sharey(left)
    left.autoscale_view()
    bar = left.figure.colorbar(drawn, ax=list(panels), shrink=0.85)
    bar.set_label("model output", color=INK)
    bar.outline.set_visible(False)
    return panels


def _numbers(
    explanation: Explanation, x: Hashable | None, y: Hashable | None
) -> tuple[Column, Column]:
    """The two features to draw: those named, else numbers, the largest changes first."""
    moved = list(changes_of(explanation).index)
    others = [
        column.name
        for column in columns_of(explanation)
        if column.numeric and column.name not in (x, y)
    ]
    others.sort(key=lambda name: moved.index(name) if name in moved else len(moved))
    wanted = [others.pop(0) if name is None and others else name for name in (x, y)]
    first, second = (None if name is None else column_named(explanation, name) for name in wanted)
    if first is None or second is None or not (first.numeric and second.numeric):
        expected, received = "two columns of numbers", f"{wanted[0]!r} and {wanted[1]!r}"
        fix = "name numbers of the frame; categories are drawn by plots.flows"
        raise InvalidInput("x, y", expected=expected, received=received, fix=fix)
    return first, second


def _areas(before: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Areas of points, on one scale before and after; missing cells are smallest."""
    both = np.concatenate([before, after])
    low, high = (np.nanmin(both), np.nanmax(both)) if not np.isnan(both).all() else (0.0, 1.0)
    unit = (np.nan_to_num(both, nan=low) - low) / max(high - low, 1e-12)
    first, second = np.split(8.0 + 70.0 * unit, 2)
    return first, second
