"""The root mean square move of a row, and how often its upper limit holds."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from elsewise.confidence import move_interval

from .cache import Piece
from .gate import NOTICED, Check
from .methods import NOMINAL
from .scenarios import BATCH_ROWS, BATCHES, DIMENSIONS, Scenario, inputs, untuned

__all__ = ["Move", "checks", "pieces"]

VERSION = "3"
"""Raise when the cases change, or `elsewise.confidence.move_interval`."""
REPETITIONS = {100: 1000, 500: 1000, 2000: 300}
LEAST, WIDEST, WIDE_ROWS = 0.94, 1.15, 500
"""Coverage wanted; limit divided by the truth, at so many rows, where all of them move."""
ALL_MOVE = ("tiny noise", "smooth move", "t3", "mixed integer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One population at one number of rows."""

    scenario: str
    dimension: int
    rows: int
    repetitions: int
    truth: float
    coverage: float
    ratio: float
    """Median limit divided by the truth."""
    noticed: float
    """Share of the misses that carry a notice; 1 where nothing is missed."""
    notices: float
    """Share of all limits that carry a notice."""


def pieces() -> list[Piece]:
    """The work: every population whose rows have partners."""
    every = [*untuned(), *(one for dimension in DIMENSIONS for one in inputs(dimension))]
    moving = [one for one in every if one.paired and one.cap is not None]
    return [
        Piece(key=f"move-{one.key}", version=f"{VERSION} {REPETITIONS}", compute=partial(_all, one))
        for one in moving
    ]


def checks(moves: list[Move]) -> list[Check]:
    """Judge all populations: the limits cover, or say why they may not, and they are near."""
    judged = [move for move in moves if move.noticed < NOTICED or move.coverage >= LEAST]
    worst = min(judged, key=lambda move: move.coverage)
    near = [move for move in moves if move.rows == WIDE_ROWS and move.scenario in ALL_MOVE]
    widest = max(near, key=lambda move: move.ratio)
    short = sum(move.coverage < LEAST for move in judged)
    far = sum(move.ratio > WIDEST for move in near)
    return [
        Check(
            name="root mean square move, every population and number of rows",
            wanted=f"none under {LEAST:g} but where the misses carry a notice",
            found=f"{short} of {len(moves)}; worst {worst.coverage:.3f} ({_place(worst)})",
            passed=short == 0,
        ),
        Check(
            name=f"root mean square move, n = {WIDE_ROWS}, all rows move: limit / truth",
            wanted=f"at most {WIDEST:g}",
            found=f"{far} of {len(near)} over it; {widest.ratio:.3f} at most ({_place(widest)})",
            passed=far == 0,
        ),
    ]


def _place(move: Move) -> str:
    return f"{move.scenario}, d = {move.dimension}, n = {move.rows}"


def _all(scenario: Scenario) -> list[dict[str, object]]:
    rng = np.random.default_rng([41, *scenario.key.encode()])
    large = [_squares(scenario, rng, BATCH_ROWS).mean() for _ in range(BATCHES)]
    truth = math.sqrt(np.mean(large))
    return [asdict(_measure(scenario, rows, truth)) for rows in REPETITIONS]


def _measure(scenario: Scenario, rows: int, truth: float) -> Move:
    assert scenario.cap is not None  # `pieces` takes no other
    limits = []
    for repetition in range(REPETITIONS[rows]):
        rng = np.random.default_rng([43, repetition, rows, *scenario.key.encode()])
        squares = _squares(scenario, rng, rows)
        limits.append(move_interval(squares, NOMINAL, scenario.cap * scenario.dimension))
    uppers = np.array([limit.upper for limit in limits])
    noticed = np.array([bool(limit.notice) for limit in limits])
    # Moves that are all equal have a limit that is the truth but for rounding.
    missed = uppers < truth * (1.0 - 1e-9)
    return Move(
        scenario=scenario.name,
        dimension=scenario.dimension,
        rows=rows,
        repetitions=len(limits),
        truth=truth,
        coverage=1.0 - float(missed.mean()),
        ratio=float(np.median(uppers)) / truth,
        noticed=float(noticed[missed].mean()) if missed.any() else 1.0,
        notices=float(noticed.mean()),
    )


def _squares(scenario: Scenario, rng: np.random.Generator, rows: int) -> np.ndarray:
    """Squared moves (n,); on complete blocks of directions the mean cost times the dimension."""
    moved, factual = scenario.draw(rng, rows)
    return scenario.dimension * np.mean((moved - factual) ** 2, axis=0)
