"""The fit is a recording; the map replays it on any row.

One iteration is a row-wise function once its monotone maps are known: per direction from the
current projection to the factual quantile, for outputs from the current output to the target
quantile. A ``Step`` holds those tables, the edits and eta; a ``Map`` is the sequence of steps. The
fit itself moves its rows by applying the step it just recorded, so replaying the map on the fit's
rows gives the fit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from elsewise._arrays import Array, asarray_like, namespace, on_device
from elsewise.moves import (
    Motion,
    MoveContext,
    QuestionMap,
    Rows,
    Step,
    find_ways,
    move,
    start,
    take_ways,
)
from elsewise.request import Population, Problem, populate
from elsewise.transport import row_tiles

__all__ = ["AnyMap", "Map", "apply_map", "replay"]

# Rows that go through all steps of a map together, on the host; sixteen times as many on an
# accelerator.
REPLAYED = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """A sequence of recorded steps: the counterfactual map, row by row."""

    steps: tuple[Step, ...]
    motion: Motion


AnyMap = Map | QuestionMap
"""What an explanation records: steps, or a question answered row by row."""


def replay(problem: Problem, recorded: Map, population: Population) -> Iterator[Rows]:
    """Yield the rows before the first step and after each."""
    motion = recorded.motion
    rows = start(problem, motion, population)
    yield rows
    embedded = problem.embedding.embed(rows.codes, population.complete)
    for step in recorded.steps:
        moved = move(MoveContext(problem, motion, population, step, rows, embedded))
        rows, embedded = moved.rows, moved.embedded
        yield rows


def apply_map(problem: Problem, recorded: AnyMap, codes: Array) -> Rows:
    """Apply the map to rows it may never have seen, a bounded number of them at a time."""
    if isinstance(recorded, QuestionMap):
        moved, _ = take_ways(recorded, find_ways(problem, recorded, codes))
        moved = asarray_like(moved, codes)
        return Rows(moved, problem.precise.values(moved))
    size = (16 if on_device(codes) else 1) * REPLAYED
    if codes.shape[0] <= size:
        return _applied(problem, recorded, populate(problem, codes))
    tiles = [codes[block, ...] for block in row_tiles(codes.shape[0], size)]
    return Rows.joined([_applied(problem, recorded, populate(problem, tile)) for tile in tiles])


def _applied(problem: Problem, recorded: Map, population: Population) -> Rows:
    """Where the map leads; rows that stay are not taken along."""
    xp = namespace(population.codes)
    moving = ~population.pinned
    (index,) = xp.nonzero(moving)
    if index.shape[0] == moving.shape[0]:
        return deque(replay(problem, recorded, population), maxlen=1)[0]
    codes, outputs = (xp.asarray(a, copy=True) for a in (population.codes, population.outputs))
    if index.shape[0] > 0:
        last = deque(replay(problem, recorded, population.take(index)), maxlen=1)[0]
        codes[moving, ...], outputs[moving, ...] = last
    return Rows(codes, outputs)
