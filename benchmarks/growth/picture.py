"""The picture of growth: time and memory against the number of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from .results import Cell, asked, exponent

__all__ = ["draw"]

INK, BLUE, ORANGE, GREY, GREEN = "#222222", "#2166ac", "#d6604d", "#888888", "#1b7837"


def draw(results: dict[str, Any], device: dict[str, Any] | None, path: Path) -> None:
    """Draw kernel, limits, whole runs and memory."""
    style = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with plt.rc_context(style):
        figure, axes = plt.subplots(1, 4, figsize=(13, 4.4), layout="constrained")
        _kernel(axes[0], results, device)
        _limits(axes[1], results)
        _whole(axes[2], results, device)
        _memory(axes[3], results)
        figure.savefig(path, dpi=130)
        plt.close(figure)


def _line(ax: Axes, cells: list[Cell], name: str, label: str, color: str, **style: Any) -> None:
    points = [(a["rows"], v[name]) for a, v in cells if name in v]
    if not points:
        return
    rows, values = zip(*points, strict=True)
    if max(rows) >= 100_000:
        label = f"{label}, n^{exponent(cells, name):.2f}"
    ax.loglog(rows, values, marker="o", ms=3.5, lw=1.4, color=color, label=label, **style)


def _finish(ax: Axes, title: str, unit: str) -> None:
    ax.set_title(title, loc="left", fontsize=10, color=INK)
    ax.set_xlabel("rows")
    ax.set_ylabel(unit)
    ax.grid(True, which="major", color="#e6e6e6", lw=0.6)
    # Below the axes, where it hides nothing.
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0.0, -0.18))


def _device_cells(device: dict[str, Any] | None, kind: str) -> list[Cell]:
    if device is None:
        return []
    return [({"rows": int(rows)}, values) for rows, values in device[kind].items()]


def _kernel(ax: Axes, results: dict[str, Any], device: dict[str, Any] | None) -> None:
    double = asked(results, "kernel", dimension=23, directions=50, dtype="float64")
    single = asked(results, "kernel", dimension=23, directions=50, dtype="float32")
    _line(ax, double, "pot", "POT, value alone", ORANGE)
    _line(ax, double, "seconds_1", "float64", BLUE)
    _line(ax, single, "seconds_1", "float32", BLUE, ls="--", mfc="white")
    _line(ax, double, "argsort", "bare argsort, one side", GREY)
    _line(ax, _device_cells(device, "kernel"), "seconds", "H200, float32, N = 69", GREEN)
    _finish(ax, "Value and gradient, N = 50, one thread", "seconds")


def _limits(ax: Axes, results: dict[str, Any]) -> None:
    cells = asked(results, "limits", directions=69)
    _line(ax, cells, "clt", "CLT", BLUE)
    _line(ax, cells, "bootstrap", "bootstrap, 999 draws", ORANGE)
    _finish(ax, "Bounds, N = 69, one thread", "seconds")


def _whole(ax: Axes, results: dict[str, Any], device: dict[str, Any] | None) -> None:
    _line(ax, asked(results, "whole", dimension=23), "seconds", "2 cores, linear model", BLUE)
    _line(ax, _device_cells(device, "whole"), "seconds", "H200, network", GREEN)
    _finish(ax, "explain(), certificate included, N = 69", "seconds")


def _memory(ax: Axes, results: dict[str, Any]) -> None:
    points = [(a["rows"], v["megabytes"]) for a, v in asked(results, "whole", dimension=23)]
    if points:
        rows, values = zip(*points, strict=True)
        ax.loglog(rows, values, "o-", ms=3.5, lw=1.4, color=BLUE, label="explain(), whole process")
        data = [n * 23 * 8 / 1e6 for n in rows]
        ax.loglog(rows, data, "-", lw=1.0, color=GREY, label="the rows themselves")
    _finish(ax, "Peak memory", "megabytes")
