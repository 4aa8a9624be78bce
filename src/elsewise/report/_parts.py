"""The parts a page is put together from: pictures, tables, sections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from elsewise import plots
from elsewise.text import amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One picture."""

    svg: str
    caption: str
    small: bool = False
    """Whether it stands in a row of several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table; cells are texts, the first of a row names it."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page under its own heading."""

    anchor: str
    title: str
    text: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    code: str = ""
    beside: bool = False
    """Whether its one figure and its one table stand side by side."""


def figure(
    draw: Callable[..., Any],
    name: str,
    caption: str,
    description: str,
    size: tuple[float, float] = (4.7, 3.1),
    *,
    small: bool = False,
) -> Figure:
    """Draw a picture for the page."""
    svg = plots.to_svg(draw, name=name, title=caption, description=description, size=size)
    return Figure(svg=svg, caption=caption, small=small)


def table_section(
    anchor: str,
    title: str,
    caption: str,
    columns: Sequence[str],
    rows: Iterable[tuple[str, ...]],
    text: Sequence[str] = (),
) -> Section:
    """Return a section of one table, with some text above it."""
    table = Table(caption=caption, columns=tuple(columns), rows=tuple(rows))
    return Section(anchor=anchor, title=title, text=tuple(text), tables=(table,))


def frame_table(frame: pd.DataFrame, caption: str) -> Table:
    """Return any frame as a table of texts, its index first."""
    flat = frame.reset_index() if frame.index.name or frame.index.nlevels > 1 else frame
    return Table(
        caption=caption,
        columns=tuple(str(name).replace("_", " ") for name in flat.columns),
        rows=tuple(tuple(map(cell_text, row)) for row in flat.itertuples(index=False, name=None)),
    )


def cell_text(value: object) -> str:
    """Return any value as the text of a cell."""
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    if isinstance(value, float | np.floating):
        return amount(float(value))
    return str(value)
