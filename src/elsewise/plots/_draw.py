"""Charts, bars and flows drawn by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from elsewise.plots._style import (
    COLOURS,
    COUNTERFACTUAL,
    FACTUAL,
    INK,
    canvas,
    dress,
    legend,
    percent_axis,
    readable,
)
from elsewise.plots.charts import Bars, Chart, Flow, Mark

if TYPE_CHECKING:
    from matplotlib.axes import Axes


DASHES = (0, (4, 2))
# Inches that a line of text takes in a chart.
LINE = 0.25


def draw(chart: Chart, ax: Axes | None = None, width: float = 6.0) -> Axes:
    """Draw a chart and return its axes, new ones unless they are given."""
    ax = canvas(ax, width, LINE * chart.lines)
    for mark in chart.marks:
        _draw_mark(ax, mark)
    for name, axis in (("x", chart.x), ("y", chart.y)):
        # Points that nobody sees make room for what the axis is to hold.
        ax.update_datalim([(v, v) for v in axis.holds], name == "x", name == "y")
        if axis.percent:
            percent_axis(ax, name)
    ax.autoscale_view()
    for axis, limit in ((chart.x, ax.set_xlim), (chart.y, ax.set_ylim)):
        # Shares end where they do; distances and counts begin at nothing.
        limit(0.0 if 0.0 in axis.holds else None, 1.0 if 1.0 in axis.holds else None)
    if not chart.y.label:
        ax.set_yticks([])
    if any(mark.name for mark in chart.marks):
        legend(ax)
    x, y = readable(chart.x.label, 60), readable(chart.y.label, 60)
    return dress(ax, title=readable(chart.title, 60), x=x, y=y)


def _draw_mark(ax: Axes, mark: Mark) -> None:
    style: dict[str, Any] = {"color": COLOURS[mark.look], "label": readable(mark.name, 60) or None}
    lines: dict[str, Any] = {"linestyle": DASHES if mark.dashed else "-", "linewidth": 1.8}
    if mark.kind == "line":
        ax.plot(mark.x, mark.y, **style, **lines)
    elif mark.kind == "dots":
        ax.plot(mark.x, mark.y, **style, linestyle="none", marker="o", clip_on=False)
    elif mark.kind == "area":
        low = mark.y if mark.low is None else mark.low
        ax.fill_between(mark.x, low, mark.y, **style, alpha=0.2, linewidth=0)
    elif mark.kind == "bars":
        widths = np.diff(mark.x)
        ax.bar(mark.x[:-1] + widths / 2, mark.y, width=0.9 * widths, **style, alpha=0.7)
    elif mark.kind == "across":
        ax.axhline(mark.y[0], **style, **lines)
    else:
        ax.axvline(mark.x[0], **style, **lines)


def draw_bars(bars: Bars, ax: Axes | None = None) -> Axes:
    """Draw named bars, the first on top."""
    count = len(bars.names)
    ax = canvas(ax, 6.4, 0.9 + 0.34 * count)
    starts, ends = np.asarray(bars.starts, float), np.asarray(bars.ends, float)
    drawn = ax.barh(np.arange(count), ends - starts, left=starts, height=0.62)
    for bar, look in zip(drawn, bars.looks, strict=True):
        name, _, pale = look.partition(" ")
        bar.set(color=COLOURS[name], alpha=0.45 if pale else 1.0)
    ax.set_yticks(np.arange(count), [readable(name, 28) for name in bars.names])
    ax.invert_yaxis()
    if bars.texts:
        style: dict[str, Any] = {"va": "center", "fontsize": "small", "color": INK}
        for place, (end, words) in enumerate(
            zip(np.maximum(starts, ends), bars.texts, strict=True)
        ):
            ax.annotate(words, (end, place), (4, 0), textcoords="offset points", **style)
        low = float(min(starts.min(), ends.min()))
        length = float(max(starts.max(), ends.max())) - low or 1.0
        # Bars that do not start at nothing stand off the axis; the words have room to the right.
        ax.set_xlim(low - 0.05 * length if starts.any() else low, low + 2.2 * length)
    if bars.axis.percent:
        percent_axis(ax, "x")
    return dress(ax, title=readable(bars.title), x=readable(bars.axis.label, 60), grid="x")


def draw_flow(flow: Flow, ax: Axes | None = None) -> Axes:
    """Draw the rows that change from one level to another: before left, after right."""
    ax = canvas(ax, 6.0, 0.7 + flow.height / 70.0)
    across = np.linspace(0.0, 1.0, 41)
    # 3 t^2 - 2 t^3 leaves both ends level.
    bend = across * across * (3.0 - 2.0 * across)
    for band in flow.bands:
        top = band.left + (band.right - band.left) * bend
        ax.fill_between(across, top, top + band.thickness, color=COUNTERFACTUAL, alpha=0.5, lw=0)
    for x, side, align in ((-0.04, flow.sides[0], "right"), (1.04, flow.sides[1], "left")):
        for level in side:
            words = f"{readable(level.name)}  {level.rows:,}"
            style: dict[str, Any] = {"ha": align, "va": "center", "fontsize": "small", "color": INK}
            ax.text(x, level.middle, words, **style)
    ax.set_xlim(-0.6, 1.6)
    ax.set_ylim(flow.height, 0.0)
    ax.set_xticks([0, 1], ["before", "after"])
    ax.set_yticks([])
    dress(ax, title=readable(flow.title, 60), x="rows that change", grid=None)
    ax.spines[["left", "bottom"]].set_color(FACTUAL)
    ax.spines[["left", "bottom"]].set_visible(False)
    return ax
