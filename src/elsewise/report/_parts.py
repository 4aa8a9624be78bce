"""The parts a page is put together from: sections of text, pictures, cards and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from elsewise.analysis import MISSING
from elsewise.plots.charts import Bars, Chart, Flow
from elsewise.text import amount

Picture = Chart | Flow


class Bar(NamedTuple):
    """A cell with a number drawn beside its text, between two places in per cent."""

    text: str
    start: float
    end: float
    look: str = "up"


class Change(NamedTuple):
    """A cell that changed, as texts."""

    before: str
    after: str


class Named(NamedTuple):
    """A cell that names its row, with what is to be said about it underneath."""

    name: str
    note: str


Cell = str | Bar | Change | Named


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table; the first cell of a row names it."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Pictures of one thing under its name, in a grid of others."""

    title: str
    text: str
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page under its own heading."""

    anchor: str
    title: str
    text: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    cards: tuple[Card, ...] = ()
    code: str = ""
    folded: bool = False
    """Whether the reader opens it: theory and origin."""


def card(chart: Chart, text: str = "") -> Card:
    """Return a card of one chart, under its own title."""
    return Card(title=chart.title, text=text, pictures=(chart,))


def bar_table(bars: Bars, names: str) -> Table:
    """Return bars as a table: what each is called, and where it lies."""
    ends = np.stack([np.asarray(bars.starts, float), np.asarray(bars.ends, float)])
    low, length = float(ends.min()), float(np.ptp(ends)) or 1.0
    places = (100.0 * (np.sort(ends, axis=0) - low) / length).round(2).tolist()
    cells = map(Bar, bars.texts, *places, bars.looks)
    return table(bars.title, (names, bars.axis.label), zip(bars.names, cells, strict=True))


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Table:
    """Return a table of any rows."""
    return Table(caption=caption, columns=tuple(columns), rows=tuple(map(tuple, rows)))


def frame_table(frame: pd.DataFrame, caption: str) -> Table:
    """Return any frame as a table of texts, its index first."""
    flat = frame.reset_index() if frame.index.name or frame.index.nlevels > 1 else frame
    names = [str(name).replace("_", " ") for name in flat.columns]
    rows = flat.itertuples(index=False, name=None)
    return table(caption, names, ([cell_text(cell, "–") for cell in row] for row in rows))


def cell_text(value: object, missing: str = MISSING) -> str:
    """Return any value as the text of a cell."""
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return missing
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    if isinstance(value, float | np.floating):
        return amount(float(value))
    return str(value)


def scaled_bars(values: Sequence[float], texts: Sequence[str]) -> list[Bar]:
    """Return cells with bars from zero, all on one scale; unknown numbers have none.

    Examples
    --------
    >>> [(bar.start, bar.end, bar.look) for bar in scaled_bars([-1.0, 3.0], ["-1", "+3"])]
    [(0.0, 25.0, 'down'), (25.0, 100.0, 'up')]
    """
    known = np.nan_to_num(np.asarray(values, dtype=np.float64))
    low, high = min(known.min(initial=0.0), 0.0), max(known.max(initial=0.0), 0.0)
    places = 100.0 * (np.stack([known, np.zeros_like(known)]) - low) / ((high - low) or 1.0)
    starts, ends = np.sort(places, axis=0).round(2).tolist()
    looks = ["up" if value > 0 else "down" for value in known]
    return list(map(Bar, texts, starts, ends, looks))
