"""What charts, bars and flows consist of: records, in the units of the data, for every renderer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Mark(NamedTuple):
    """Something drawn between two axes."""

    kind: str
    """"line", "dots", "area", "bars" (``x`` are their edges), or a line over the whole picture:
    "across" at a ``y``, "upright" at an ``x``."""
    look: str
    """What it stands for, which gives its colour: see `elsewise.plots._draw.COLOURS`."""
    x: np.ndarray
    y: np.ndarray
    name: str = ""
    """What the legend calls it; nothing where it needs no name."""
    low: np.ndarray | None = None
    """Lower edge of an area."""
    dashed: bool = False


class Axis(NamedTuple):
    """What an axis measures."""

    label: str = ""
    percent: bool = False
    """Whether its numbers are shares or probabilities."""
    holds: tuple[float, ...] = ()
    """Values that it shows, whatever is drawn."""


@dataclass(frozen=True, slots=True)
class Chart:
    """Marks between two axes; the upright axis has no numbers where it has no label."""

    title: str
    description: str
    """What it shows, for those who cannot see it."""
    marks: tuple[Mark, ...]
    x: Axis
    y: Axis
    lines: int = 15
    """Height, in lines of text."""


@dataclass(frozen=True, slots=True)
class Bars:
    """Named bars that lie between two values each."""

    title: str
    axis: Axis
    names: Sequence[str]
    ends: ArrayLike
    looks: Sequence[str]
    texts: Sequence[str] = ()
    """What is written beside each; nothing where the axis says it."""
    starts: ArrayLike = 0.0


class Level(NamedTuple):
    """A level on one side of a flow: its name, its rows, and the middle of its place."""

    name: str
    rows: int
    middle: float


class Band(NamedTuple):
    """Rows that go from one level to another: upper edge on either side, and thickness."""

    left: float
    right: float
    thickness: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Rows that change from one level of a category to another, downwards in pixels."""

    title: str
    description: str
    height: float
    sides: Sequence[Sequence[Level]]
    """The levels before, and those after."""
    bands: Sequence[Band]


def mark(
    kind: str,
    look: str,
    x: ArrayLike = (),
    y: ArrayLike = (),
    name: str = "",
    *,
    low: np.ndarray | None = None,
    dashed: bool = False,
) -> Mark:
    """Return a mark of any numbers, as arrays of floats."""
    return Mark(kind, look, np.asarray(x, float), np.asarray(y, float), name, low, dashed)
