"""All results: what is missing is computed, what is there is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from . import convergence, families, heldout, row_moves, rows
from .cache import Piece, day_of, done, run
from .grid import REPETITIONS, fingerprint, measure, repetitions_of, truths_of
from .methods import TRIMS
from .scenarios import Scenario, scenarios

__all__ = ["Results", "collect"]

SEED = 2026
NEEDED_VERSION = "5"
"""Raise when `elsewise.confidence.rows_needed` or the cases change."""
CELL = ["scenario", "side", "dimension", "rows"]
"""Columns that name a piece of the grid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything the page is made of."""

    cells: pd.DataFrame
    """One line per method and cell."""
    truth_error: float
    """Largest relative standard error of a true distance that is trimmed."""
    convergence: pd.DataFrame
    """Columns dimension, apart, rows, error."""
    runs: dict[heldout.Design, list[heldout.Run]]
    needed: list[rows.Needed]
    families: list[families.Line]
    moves: list[row_moves.Move]


def collect(folder: Path, jobs: int, kept: pd.DataFrame | None = None) -> Results:
    """Compute what is missing, the cheap parts first.

    Cells of the grid that are in an earlier table ``kept``, and not in the folder, are taken from
    there: for limits that give the same numbers as then.
    """
    work = partial(run, folder, jobs=jobs)
    everything = scenarios()
    found = work([_truth(one) for one in everything], name="truths")
    truths = {one.key: values[0] for one, values in zip(everything, found, strict=True)}
    errors = work([_errors(d, apart) for d, apart in _CONVERGENCE], name="convergence")
    needed = work([_needed(case, truths) for case in rows.CASES], name="rows needed")
    several = work(families.pieces(truths), name="families")
    moves = work(row_moves.pieces(), name="moves")
    grid = [
        (one, count, _group(one, count, repetitions_of(one, count), truths[one.key]))
        for count in REPETITIONS
        for one in everything
    ]
    earlier = {} if kept is None else dict(list(kept.groupby(CELL)))
    names = [(one.name, one.side, one.dimension, count) for one, count, _ in grid]
    fresh = [
        piece
        for name, (_, _, piece) in zip(names, grid, strict=True)
        if name not in earlier or done(folder, piece) is not None
    ]
    measured = {
        piece.key: pd.DataFrame(values).assign(measured=day_of(folder, piece))
        for piece, values in zip(fresh, work(fresh, name="grid"), strict=True)
    }
    cells = pd.concat(
        [
            measured[piece.key] if piece.key in measured else earlier[name]
            for name, (_, _, piece) in zip(names, grid, strict=True)
        ],
        ignore_index=True,
    )
    chunks = work(heldout.pieces(), name="held-out")
    return Results(
        cells=cells,
        truth_error=max(error for values in found for error in values[1][1:]),
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
        moves=[row_moves.Move(**move) for part in moves for move in part],
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
