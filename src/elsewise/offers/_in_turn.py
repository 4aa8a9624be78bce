"""Steps along a model's slope, one after the other: for many rows, where memory and time count.

The cheapest offer is the same whether all are made at once or in turn. In turn, only one step's
rows are there at a time, and the model is asked only about rows whose inputs cost less than the
best offer so far, which after the first step are few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from elsewise._arrays import Array, asarray_like, namespace, on_device
from elsewise._resources import parallel
from elsewise.offers._choice import Choice
from elsewise.offers._offers import Now, legal_rows
from elsewise.proposals import input_costs, on_grid, output_costs, row_costs
from elsewise.transport import row_tiles

if TYPE_CHECKING:
    from elsewise.problem import Problem

__all__ = ["are_many", "steps_in_turn"]

MANY_ROWS, MANY_DEVICE_ROWS = 1 << 11, 1 << 17
"""From so many rows on, asking the model several times costs less than making all offers."""
MOST = 0.6
"""If the model is to be asked about more than this share of the rows, it is asked about all."""
TILE_ROWS = 1024
"""Rows moved at once by a thread, so that they stay in its cache."""


def are_many(codes: Array) -> bool:
    """Tell whether rows (n, p) are so many that steps are better taken in turn."""
    return bool(codes.shape[0] >= (MANY_DEVICE_ROWS if on_device(codes) else MANY_ROWS))


def steps_in_turn(problem: Problem, now: Now, outputs: Array, steps: list[Array]) -> Choice:
    """Let each row take the cheapest of some steps (n, d), or stay.

    Parameters
    ----------
    outputs
        Array (n, K): the model's outputs on the rows as they are.
    """
    xp = namespace(now.codes)
    n = now.codes.shape[0]
    offered = _offered if on_device(now.codes) else _offered_by_tiles
    before = row_costs(now.aim, now.embedded, outputs)
    codes, costs = now.codes, before
    for step in steps:
        moved, inputs = offered(now, step)
        # Output costs are never negative: what the inputs alone make too dear is not evaluated.
        worth = inputs < costs
        if problem.obeys is not None and bool(xp.any(worth)):
            keeps = xp.zeros_like(worth)
            keeps[worth] = asarray_like(problem.obeys(moved[worth, ...]), worth)
            worth = keeps
        asked = int(xp.count_nonzero(worth))
        if asked == 0:
            continue
        if asked > MOST * n:
            tried = problem.precise.values(moved)
        else:
            tried = xp.zeros_like(outputs)
            tried[worth, ...] = problem.precise.values(moved[worth, ...])
        total = inputs + output_costs(now.aim.wanted, now.aim.output_weight, tried)
        better = worth & (total < costs)
        codes = xp.where(better[:, None], moved, codes)
        outputs = xp.where(better[:, None], tried, outputs)
        costs = xp.where(better, total, costs)
    nothing = xp.zeros_like(costs[: len(steps)])
    return Choice(codes, outputs, xp.stack([before, costs]), nothing)


def _offered_by_tiles(now: Now, step: Array) -> tuple[Array, Array]:
    """The same, a few rows at a time, in threads."""
    xp = namespace(now.codes)
    tiles = row_tiles(now.codes.shape[0], TILE_ROWS)
    made = parallel(lambda rows: _offered(now.block(rows), step[rows, :]), tiles)
    moved, inputs = (xp.concat(parts) for parts in zip(*made, strict=True))
    return moved, inputs


def _offered(now: Now, step: Array) -> tuple[Array, Array]:
    """Rows (n, p) moved by a step (n, d) and made legal, and what their inputs cost (n,)."""
    embedding, population = now.embedding, now.population
    moved = embedding.push(now.codes, on_grid(step))
    legal = legal_rows(embedding, population, moved)
    return legal, input_costs(now.aim, population.embed(embedding, legal))
