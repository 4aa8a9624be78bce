"""Charts, bars and flows drawn by matplotlib, in one visual language of colours, axes and names."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from elsewise.errors import InvalidInput
from elsewise.plots._marks import Bars, Chart, Flow, Mark
from elsewise.text import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Lines = Literal["both", "x", "y"] | None

# Okabe and Ito's palette: told apart with any colour vision and in print.
FACTUAL, COUNTERFACTUAL, TARGET = "#56606b", "#0072b2", "#d55e00"
INPUTS, OUTPUTS = "#009e73", "#b5568c"
INK, GRID = "#1f2933", "#d3d9df"
CYCLE = (COUNTERFACTUAL, TARGET, INPUTS, OUTPUTS, "#e69f00", FACTUAL)
MARKERS = "osD^vP"
# What a mark stands for, and its colour.
COLOURS = {
    "factual": FACTUAL,
    "counterfactual": COUNTERFACTUAL,
    "target": TARGET,
    "inputs": INPUTS,
    "outputs": OUTPUTS,
    "up": COUNTERFACTUAL,
    "down": TARGET,
    "swap": INPUTS,
    "quiet": FACTUAL,
}


def canvas(ax: Axes | None, width: float = 6.0, height: float = 3.7) -> Axes:
    """Return the given axes, or those of a new figure."""
    found: Axes = canvases(ax, 1, 1, width, height)[0]
    return found


def canvases(
    axes: Any, count: int, columns: int, width: float = 3.4, height: float = 2.6
) -> np.ndarray:
    """Return ``count`` axes as a flat array: the given ones, or a grid in a new figure."""
    if axes is not None:
        given = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
        if given.size < count:
            expected, fix = f"{count} axes, one per panel", "leave axes out for a new figure"
            raise InvalidInput("axes", expected=expected, received=f"{given.size}", fix=fix)
        return given[:count]
    import matplotlib.pyplot as plt

    columns = min(columns, count)
    rows = math.ceil(count / columns)
    size = width * columns, height * rows
    _, grid = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for unused in grid.ravel()[count:]:
        unused.set_visible(False)
    return np.asarray(grid.ravel()[:count])


def dress(ax: Axes, *, title: str = "", x: str = "", y: str = "", grid: Lines = "y") -> Axes:
    """Give axes the common look and readable labels."""
    ax.set_title(title, loc="left", color=INK, fontsize="medium", fontweight="bold")
    ax.set_xlabel(x, color=INK)
    ax.set_ylabel(y, color=INK)
    ax.tick_params(colors=INK, length=0, pad=6, labelsize="small")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GRID)
    ax.set_axisbelow(True)
    if grid is not None:
        ax.grid(axis=grid, color=GRID, linewidth=0.8)
    return ax


def legend(ax: Axes, **options: Any) -> None:
    """Add a legend without a frame."""
    defaults = {"frameon": False, "fontsize": "small", "labelcolor": INK, "handlelength": 1.6}
    ax.legend(**(defaults | options))


def percent_axis(ax: Axes, axis: str = "x") -> None:
    """Show shares as percentages."""
    from matplotlib.ticker import PercentFormatter

    getattr(ax, f"{axis}axis").set_major_formatter(PercentFormatter(1.0, symbol="%"))


def readable(name: Hashable, width: int = 34) -> str:
    r"""Return a name as one short line that is drawn as it is, never read as a formula.

    Examples
    --------
    >>> readable("a name\nof two lines"), readable("x" * 99, width=6), readable("$5")
    ('a name of two lines', 'xxxxx…', '\\$5')
    """
    return one_line(name, width).replace("$", r"\$")


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
        for place, end in enumerate(np.maximum(starts, ends)):
            words = bars.texts[place]
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
