"""All results: what is missing is computed, what is there is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from . import convergence, families, heldout, rows
from .cache import Piece, run
from .grid import REPETITIONS, fingerprint, measure, truths_of
from .methods import TRIMS
from .scenarios import Scenario, scenarios

__all__ = ["Results", "collect"]

SEED = 2026
NEEDED_VERSION = "4"
"""Raise when `elsewise.confidence.rows_needed` or the cases change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything the page is made of."""

    cells: pd.DataFrame
    """One line per method and cell."""
    truth_error: float
    """Largest relative standard error of a true distance."""
    convergence: pd.DataFrame
    """Columns dimension, apart, rows, error."""
    runs: dict[heldout.Design, list[heldout.Run]]
    needed: list[rows.Needed]
    families: list[families.Line]


def collect(folder: Path, jobs: int) -> Results:
    """Compute what is missing, the cheap parts first."""
    work = partial(run, folder, jobs=jobs)
    everything = scenarios()
    found = work([_truth(one) for one in everything], name="truths")
    truths = {one.key: values[0] for one, values in zip(everything, found, strict=True)}
    errors = work([_errors(d, apart) for d, apart in _CONVERGENCE], name="convergence")
    needed = work([_needed(case, truths) for case in rows.CASES], name="rows needed")
    several = work(families.pieces(truths), name="families")
    grid = [
        _group(one, count, repetitions, truths[one.key])
        for count, repetitions in REPETITIONS.items()
        for one in everything
    ]
    cells = pd.DataFrame([cell for group in work(grid, name="grid") for cell in group])
    chunks = work(heldout.pieces(), name="held-out")
    return Results(
        cells=cells,
        truth_error=max(error for values in found for error in values[1]),
        convergence=pd.DataFrame(
            [
                {"dimension": d, "apart": apart, "rows": count, "error": error}
                for (d, apart), values in zip(_CONVERGENCE, errors, strict=True)
                for count, error in zip(convergence.ROWS, values, strict=True)
            ]
        ),
        runs=heldout.joined(chunks),
        needed=[rows.Needed(**values) for values in needed],
        families=[families.Line(**line) for lines in several for line in lines],
    )


_CONVERGENCE = [(d, apart) for apart in (True, False) for d in convergence.DIMENSIONS]


def _truth(scenario: Scenario) -> Piece:
    return Piece(
        key=f"truth-{scenario.key}", version="1", compute=lambda: truths_of(scenario, TRIMS)
    )


def _group(scenario: Scenario, count: int, repetitions: int, truths: list[float]) -> Piece:
    def compute() -> list[dict[str, object]]:
        return [asdict(cell) for cell in measure(scenario, count, repetitions, truths, SEED)]

    return Piece(
        key=f"grid-{scenario.key}-{count}",
        version=fingerprint(scenario, count, repetitions, truths, SEED),
        compute=compute,
    )


def _errors(dimension: int, apart: bool) -> Piece:
    compute: Callable[[], list[float]] = partial(convergence.errors, dimension, apart=apart)
    name = "apart" if apart else "equal"
    return Piece(key=f"convergence-{dimension}-{name}", version="1", compute=compute)


def _needed(case: rows.Case, truths: dict[str, list[float]]) -> Piece:
    truth = truths[case.key][TRIMS.index(case.trim)]
    return Piece(
        key=f"needed-{case.key}-{case.rows}",
        version=f"{NEEDED_VERSION} {case}",
        compute=lambda: asdict(rows.measure(case, truth)),
    )
