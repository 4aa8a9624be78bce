"""The parts a page is put together from: sections of text, pictures, cards and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from elsewise.analysis import MISSING
from elsewise.plots.charts import Chart, Flow
from elsewise.text import amount


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


class Table(NamedTuple):
    """One table; the first cell of a row names it."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


class Card(NamedTuple):
    """Pictures of one thing under its name, in a grid of others."""

    title: str
    text: str
    pictures: Sequence[Chart | Flow] = ()


class Section(NamedTuple):
    """A part of the page under its own heading."""

    anchor: str
    title: str
    text: Sequence[str] = ()
    tables: Sequence[Table] = ()
    cards: Sequence[Card] = ()
    code: str = ""
    folded: bool = False
    """Whether the reader opens it: theory and origin."""


def card(chart: Chart, text: str = "") -> Card:
    """Return a card of one chart, under its own title."""
    return Card(chart.title, text, (chart,))


def placed_bars(
    texts: Iterable[str], starts: ArrayLike, ends: ArrayLike, looks: Iterable[str]
) -> list[Bar]:
    """Return cells with bars between two values each, all on one scale; unknown values are 0.

    Examples
    --------
    >>> placed_bars(["-1", "+3"], [0.0, 0.0], [-1.0, 3.0], ["down", "up"])[0]
    Bar(text='-1', start=0.0, end=25.0, look='down')
    """
    both = np.sort(np.nan_to_num(np.array([starts, ends], dtype=np.float64)), axis=0)
    low = both.min(initial=np.inf)
    places = 100.0 * (both - low) / ((both.max(initial=-np.inf) - low) or 1.0)
    return list(map(Bar, texts, *places.round(2).tolist(), looks))


def frame_table(frame: pd.DataFrame, caption: str) -> Table:
    """Return any frame as a table of texts, its index first."""
    named = frame.index.name is not None or frame.index.nlevels > 1
    flat = frame.reset_index() if named else frame
    names = [str(name).replace("_", " ") for name in flat.columns]
    rows = flat.itertuples(index=False, name=None)
    return Table(caption, names, [[cell_text(cell, "–") for cell in row] for row in rows])


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
