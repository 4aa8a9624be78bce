"""The parts a page is put together from, and templates filled with them as escaped text.

Charts and flows of `plots` are drawn as HTML and SVG. Places are in per cent of a frame. Text is
HTML beside it, so that it keeps its size on a phone, wraps instead of being cut off, and follows
the page's colours.
"""

from __future__ import annotations

import hashlib
import math
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from elsewise.analysis import MISSING
from elsewise.plots._marks import Axis, Chart, Flow, Mark
from elsewise.text import amount

if TYPE_CHECKING:
    from jinja2 import Environment


CITATION = (
    "L. You, L. Cao, M. Nilsson, B. Zhao, L. Lei. Distributional Counterfactual Explanations With "
    "Optimal Transport. AISTATS 2025."
)
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")

# What is nearer together than this has no axis of its own.
SMALLEST = 1e-290
# Distances between ticks, times a power of ten.
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
# Pixels of a line of text in a chart, and share of a bar's place that stays free on either side.
LINE, GAP = 13, 0.06


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


Cell = str | Bar | Change | tuple[str, str]


class Table(NamedTuple):
    """One table; the first cell of a row names it, alone or with a note to stand underneath."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


class Card(NamedTuple):
    """Pictures of one thing under its name, in a grid of others."""

    title: str
    text: str
    pictures: Sequence[Chart | Flow]

    @classmethod
    def of(cls, chart: Chart, text: str = "") -> Card:
        """Return a card of one chart, under its own title."""
        return cls(chart.title, text, (chart,))


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


def bar_cells(
    texts: Iterable[str], starts: ArrayLike, ends: ArrayLike, looks: Iterable[str]
) -> list[Bar]:
    """Return cells with bars between two values each, all on one scale; unknown values are 0.

    Examples
    --------
    >>> bar_cells(["-1", "+3"], [0.0, 0.0], [-1.0, 3.0], ["down", "up"])[0]
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


@cache
def _environment() -> Environment:
    """Return the templates, ready to be rendered."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    made = Environment(
        loader=FunctionLoader(read),
        autoescape=True,
        finalize=_printable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"drawing": drawing, "flow_bands": flow_bands, "allowed": _allowed}
    made.globals |= {"citation": CITATION, "read": read}
    return made


def _printable(value: Any) -> Any:
    """Replace control characters, which have no place in HTML, in texts but not in pictures."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return CONTROL.sub("\N{REPLACEMENT CHARACTER}", value)
    return value


def _allowed(text: str) -> str:
    """Return the hash by which a content security policy allows a script or a style."""
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def fill(name: str, **parts: Any) -> str:
    """Return the template of this name, filled with the parts."""
    return _environment().get_template(f"{name}.html").render(**parts)


@cache
def read(name: str) -> str:
    """Return a file of the folder of templates."""
    return files("elsewise.report").joinpath("templates", name).read_text(encoding="utf-8")


class Scale(NamedTuple):
    """A linear axis with round ticks."""

    low: float
    high: float
    step: float
    percent: bool = False

    @classmethod
    def over(cls, values: Iterable[float], *, percent: bool = False) -> Scale:
        """Return the axis that holds the finite values.

        Examples
        --------
        >>> Scale.over([3.2, 17.0]).ticks()
        ((13.04, '5'), (49.28, '10'), (85.51, '15'))
        """
        known = [float(v) for v in values if math.isfinite(v)]
        low, high = min(known, default=0.0), max(known, default=1.0)
        # Halves, because the length of an axis may be more than the largest number.
        if high / 2.0 - low / 2.0 <= max(SMALLEST, 1e-12 * abs(high)):
            room = abs(high) * 0.1 if abs(high) > SMALLEST else 1.0
            low, high = low - room, high + room
        raw = (high / 2.0 - low / 2.0) / 2.0
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(power * k for k in STEPS if power * k >= raw * 0.999)
        return cls(low, high, step, percent)

    def place(self, values: ArrayLike) -> np.ndarray:
        """Return where values are, in per cent of the axis."""
        half = np.asarray(values, dtype=np.float64) / 2.0 - self.low / 2.0
        return np.asarray(100.0 * (half / (self.high / 2.0 - self.low / 2.0)))

    def at(self, value: float) -> float:
        """Return where one value is, in per cent of the axis, and the nearer end beyond it."""
        return round(float(np.clip(self.place(value), 0.0, 100.0)), 2)

    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Return the round places of the axis, in per cent of its length, and their labels."""
        first, last = self.low / self.step - 1e-9, self.high / self.step + 1e-9
        values = (k * self.step + 0.0 for k in range(math.ceil(first), math.floor(last) + 1))
        return tuple((self.at(value), self.label(value)) for value in values)

    def label(self, value: float) -> str:
        """Return a tick's number with the decimals that the step between ticks needs."""
        unit, sign = (100.0, "%") if self.percent else (1.0, "")
        step, value = self.step * unit, value * unit
        if value == 0.0:
            return f"0{sign}"
        size = math.floor(math.log10(step))
        # A quarter of a power of ten needs one digit more than the power.
        digits = 1 if math.isclose(step, 2.5 * 10.0**size, rel_tol=1e-6) else 0
        if abs(value) >= 1e6 or step < 1e-4:
            digits = max(3, math.floor(math.log10(abs(value))) - size + 1 + digits)
            return f"{value:.{digits}g}{sign}"
        return f"{value:,.{max(0, digits - size)}f}{sign}"


def drawing(chart: Chart) -> dict[str, Any]:
    """Return what the template draws of a chart, in a frame of 100 by 100.

    Of each mark the classes of the style sheet and a path; ticks; looks and names of the legend;
    the width of the numbers of the upright axis in letters, and the height in pixels.
    """
    marks = chart.marks
    across = [mark.x for mark in marks]
    up = [mark.y for mark in marks] + [mark.low for mark in marks if mark.low is not None]
    x, y = _scale(chart.x, across), _scale(chart.y, up)
    numbers = y.ticks() if chart.y.label else ()
    return {
        "shapes": [(_look(mark), _path(mark, x, y)) for mark in marks],
        "x": x.ticks(),
        "y": numbers,
        "legend": {mark.name: _look(mark) for mark in marks if mark.name},
        "margin": max((len(label) for _, label in numbers), default=0),
        "height": LINE * chart.lines,
    }


def _scale(axis: Axis, values: list[np.ndarray]) -> Scale:
    return Scale.over(np.concatenate([axis.holds, *values]).tolist(), percent=axis.percent)


def _look(mark: Mark) -> str:
    return f"{mark.kind}{' dashed' if mark.dashed else ''} {mark.look}"


def _path(mark: Mark, x: Scale, y: Scale) -> str:
    if mark.kind == "across":
        return path([0.0, 100.0], np.repeat(y.place(mark.y), 2))
    if mark.kind == "upright":
        return path(np.repeat(x.place(mark.x), 2), [0.0, 100.0])
    left, height = x.place(mark.x), y.place(mark.y)
    if mark.kind == "bars":
        gaps = GAP * np.diff(left)
        ends = zip((left[:-1] + gaps).round(2), (left[1:] - gaps).round(2), height, strict=True)
        return "".join(f"M{a:g} 100V{100 - h:.2f}H{b:g}V100Z" for a, b, h in ends if h > 0)
    if mark.kind == "dots":  # lines of no length, which a round pen draws as dots
        return "".join(f"{path([a], [b])}h0" for a, b in zip(left, height, strict=True))
    if mark.low is None:
        return path(left, height)
    known = np.isfinite(mark.low) & np.isfinite(mark.y)
    there, low = left[known], y.place(mark.low)[known]
    around = np.append(there, there[::-1]), np.append(height[known], low[::-1])
    return f"{path(*around)}Z" if known.any() else ""


def path(x: ArrayLike, y: ArrayLike) -> str:
    """Return a line through points in per cent, y upwards; gaps where a point is unknown.

    Examples
    --------
    >>> path([0, 50, 100], [0, 25, 100])
    'M0 100L50 75L100 0'
    """
    points = np.column_stack([np.asarray(x, float), 100.0 - np.asarray(y, float)])
    known = np.isfinite(points).all(axis=1)
    parts, pen = [], "M"
    for (left, top), here in zip(points.round(2).tolist(), known, strict=True):
        if here:
            parts.append(f"{pen}{left:g} {top:g}")
        pen = "L" if here else "M"
    return "".join(parts)


def flow_bands(flow: Flow) -> list[str]:
    """Return the bands of a flow as paths across 100, downwards in pixels."""
    return [
        f"M0 {a:.1f}C50 {a:.1f} 50 {b:.1f} 100 {b:.1f}v{thick:.1f}"
        f"C50 {b + thick:.1f} 50 {a + thick:.1f} 0 {a + thick:.1f}Z"
        for a, b, thick in flow.bands
    ]
