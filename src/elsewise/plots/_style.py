"""The visual language: colours, canvas, axes, readable names and quantile levels."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from elsewise.errors import InvalidInput
from elsewise.text import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Axis = Literal["both", "x", "y"]

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
# Looks of several runs side by side, in turn.
CYCLE_LOOKS = ("counterfactual", "target", "inputs", "outputs", "factual")

# Curves are drawn at this many quantile levels at most: small files, no single rows.
MOST_LEVELS = 200


def canvas(ax: Axes | None, width: float = 6.0, height: float = 3.7) -> Axes:
    """Return the given axes, or those of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    return ax


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
    _, grid = plt.subplots(
        rows, columns, figsize=(width * columns, height * rows), layout="constrained", squeeze=False
    )
    for unused in grid.ravel()[count:]:
        unused.set_visible(False)
    return np.asarray(grid.ravel()[:count])


def dress(ax: Axes, *, title: str = "", x: str = "", y: str = "", grid: Axis | None = "y") -> Axes:
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


def levels_of(size: int) -> np.ndarray:
    """Return the levels at which a sample of this size is drawn, mid-cell.

    Examples
    --------
    >>> levels_of(4)
    array([0.125, 0.375, 0.625, 0.875])
    """
    count = max(1, min(size, MOST_LEVELS))
    return (np.arange(count) + 0.5) / count


def quantiles(values: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return quantiles of the non-missing values; NaN where there are none.

    Examples
    --------
    >>> quantiles(np.array([3.0, 1.0, np.nan, 2.0]), np.array([0.2, 0.5]))
    array([1., 2.])
    """
    known = values[~np.isnan(values)]
    if known.size == 0:
        return np.full(levels.shape, np.nan)
    return np.asarray(np.quantile(known, levels, method="inverted_cdf"))


def columns_of(records: pd.DataFrame, *names: str) -> pd.DataFrame:
    """Return the records; refuse what is no frame with these columns."""
    if not isinstance(records, pd.DataFrame):
        expected, fix = "a pandas DataFrame", "wrap it: pandas.DataFrame(records)"
        raise InvalidInput("records", expected=expected, received=type(records).__name__, fix=fix)
    lacking = [name for name in names if name not in records.columns]
    if lacking or records.empty:
        raise InvalidInput(
            "records",
            expected=f"rows with the columns {', '.join(names)}",
            received=f"no column {lacking[0]!r}" if lacking else "no rows",
            fix="rename the columns of the frame",
        )
    return records
