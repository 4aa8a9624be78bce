"""Steps along a model's slope, one after the other: for many rows, where memory and time count.

The cheapest offer is the same whether all are made at once or in turn. In turn, only one step's
rows are there at a time, and the model is asked only about rows whose inputs cost less than the
best offer so far, which after the first step are few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from elsewise._arrays import Array, asarray_like, namespace, on_device, put_rows
from elsewise._resources import parallel
from elsewise.offers._choice import Choice
from elsewise.offers._offers import Now, legal_rows
from elsewise.proposals import Aim, input_costs, on_grid, output_costs, row_costs
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
    offered = _offered if on_device(now.codes) else _offered_by_tiles
    before = row_costs(now.aim, now.embedded, outputs)
    here = _Here(*(xp.asarray(part, copy=True) for part in (now.codes, outputs, before)))
    for step in steps:
        moved, inputs = offered(now, step)
        # Output costs are never negative: what the inputs alone make too dear is not evaluated.
        worth = inputs < here.costs
        if problem.obeys is not None and bool(xp.any(worth)):
            keeps = xp.zeros_like(worth)
            keeps[worth] = asarray_like(problem.obeys(moved[worth, ...]), worth)
            worth = keeps
        (index,) = xp.nonzero(worth)
        if index.shape[0] > MOST * worth.shape[0]:
            here = here.or_cheaper(now.aim, worth, moved, inputs, problem.precise.values(moved))
        elif index.shape[0] > 0:
            some = here.take(index)
            moved, inputs = xp.take(moved, index, axis=0), xp.take(inputs, index, axis=0)
            aim = now.aim._replace(wanted=xp.take(now.aim.wanted, index, axis=0))
            values = problem.precise.values(moved)
            here.put(index, some.or_cheaper(aim, True, moved, inputs, values))
    nothing = xp.zeros_like(before[: len(steps)])
    return Choice(here.codes, here.outputs, xp.stack([before, here.costs]), nothing)


class _Here(NamedTuple):
    """Where rows are by now."""

    codes: Array
    """Array (n, p)."""
    outputs: Array
    """Array (n, K)."""
    costs: Array
    """Array (n,)."""

    def or_cheaper(
        self, aim: Aim, worth: Array | bool, moved: Array, inputs: Array, outputs: Array
    ) -> _Here:
        """Here, or where rows have ``moved``, if that is worth trying and costs less."""
        xp = namespace(self.costs)
        costs = inputs + output_costs(aim.wanted, aim.output_weight, outputs)
        better = (costs < self.costs) & worth
        return _Here(
            xp.where(better[:, None], moved, self.codes),
            xp.where(better[:, None], outputs, self.outputs),
            xp.where(better, costs, self.costs),
        )

    def take(self, index: Array) -> _Here:
        """Some of the rows, int (m,)."""
        xp = namespace(self.costs)
        return _Here(*(xp.take(part, index, axis=0) for part in self))

    def put(self, index: Array, some: _Here) -> None:
        """Write some of the rows back, in place."""
        for part, rows in zip(self, some, strict=True):
            put_rows(part, index, rows)


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
