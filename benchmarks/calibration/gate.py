"""What the results must satisfy, computed from the table of cells."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from .methods import FINITE_SAMPLE, NOMINAL
from .scenarios import CLIFF

__all__ = ["NOTICED", "Check", "checks", "shortfall", "standard_error"]

NOTICED = 0.95
"""A cell of which so many misses carry a notice need not cover."""
ERRORS = 4.0
"""A cell fails if its coverage is so many standard errors under the nominal level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One requirement, and how it came out."""

    name: str
    wanted: str
    found: str
    passed: bool


def standard_error(repetitions: int) -> float:
    """Standard error of a coverage that is just nominal.

    >>> round(standard_error(1000), 4)
    0.0069
    """
    return math.sqrt(NOMINAL * (1.0 - NOMINAL) / repetitions)


def shortfall(cells: pd.DataFrame) -> pd.Series:
    """How many standard errors the coverage of each cell is under the nominal level."""
    return (NOMINAL - cells["coverage"]) / cells["repetitions"].map(standard_error)


def checks(cells: pd.DataFrame) -> list[Check]:
    """Judge a table of cells, one line per method and cell (see `grid.Cell`)."""
    certificate = cells[(cells["method"] == "certificate") & (cells["scenario"] != CLIFF)]
    trimmed = certificate[certificate["trim"] >= 0.05]
    if "noticed" in trimmed:
        # A cell whose misses say so themselves claims no more than it keeps.
        trimmed = trimmed[~(trimmed["noticed"] >= NOTICED)]
    finite = cells[cells["method"].isin(FINITE_SAMPLE)]
    switched = certificate[certificate["switched"] == 1.0]
    ours = cells[cells["method"] != "basic"]
    return [
        _no_cell_short("certificate, every cell with trim >= 0.05", trimmed),
        _mean_covers("certificate, mean over those cells", trimmed),
        _no_cell_short("finite-sample methods, every cell, trim 0 and few movers too", finite),
        _no_cell_short("certificate, every cell that is all finite-sample", switched),
        _never_below("every method of ours, limits below their estimate", ours),
    ]


def _no_cell_short(name: str, cells: pd.DataFrame) -> Check:
    short = shortfall(cells)
    worst = cells.iloc[int(short.to_numpy().argmax())]
    failing = int((short > ERRORS).sum())
    where = f"{worst['scenario']}, d = {worst['dimension']}, n = {worst['rows']}"
    return Check(
        name=name,
        wanted=f"none under {NOMINAL:g} - {ERRORS:g} standard errors",
        found=f"{failing} of {len(cells)}; worst {worst['coverage']:.3f} "
        f"({max(0.0, short.max()):.1f} standard errors under; {where}, trim {worst['trim']:g})",
        passed=failing == 0,
    )


def _mean_covers(name: str, cells: pd.DataFrame) -> Check:
    mean = float(cells["coverage"].mean())
    return Check(
        name=name, wanted=f"at least {NOMINAL:g}", found=f"{mean:.4f}", passed=mean >= NOMINAL
    )


def _never_below(name: str, cells: pd.DataFrame) -> Check:
    most = float(cells["below"].max())
    return Check(name=name, wanted="never", found=f"{most:.4f} at most", passed=most == 0.0)
