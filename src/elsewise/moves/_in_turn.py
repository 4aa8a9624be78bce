"""Steps along a model's slope, one after the other: for many rows, where memory and time count.

The cheapest offer is the same whether all are made at once or in turn. In turn, few steps' rows are
there at a time, and the model is asked only about rows whose inputs cost less than the best offer
so far, which after the first step are few.
"""

from __future__ import annotations

import numpy as np

from elsewise._arrays import Array, namespace, on_device, take
from elsewise._resources import parallel
from elsewise.moves._offers import legal_steps, no_worse, obeying
from elsewise.moves._step import MoveContext, Moved, Place
from elsewise.moves._steps import Aim, output_costs, row_costs
from elsewise.transport import row_tiles

# From so many rows on, asking the model several times costs less than making all offers.
MANY_ROWS, MANY_DEVICE_ROWS = 1 << 11, 1 << 17
# If the model is to be asked about more than this share of the rows, it is asked about all.
MOST = 0.6
# Rows moved at once by a thread, so that they stay in its cache.
TILE_ROWS = 1024


def worth_taking_in_turn(codes: Array) -> bool:
    """Tell whether rows (n, p) are so many that steps are better taken in turn."""
    return bool(codes.shape[0] >= (MANY_DEVICE_ROWS if on_device(codes) else MANY_ROWS))


def steps_in_turn(now: MoveContext, aim: Aim, steps: list[Array]) -> Moved:
    """Let each row take the cheapest of some steps (n, d), or stay."""
    problem, (codes, outputs) = now.problem, now.rows
    xp = namespace(codes)
    device = on_device(codes)
    offered = legal_steps if device else _by_tiles
    # An accelerator would rather be asked about the last ones, which few rows can use, at once.
    turns = [steps[:1], steps[1:]] if device and len(steps) > 1 else [[step] for step in steps]
    before = row_costs(aim, now.embedded, outputs)
    here = Place(*(xp.asarray(part, copy=True) for part in (codes, outputs, before)))
    for turn in turns:
        legal, paid = offered(now, aim, turn)
        # Output costs are never negative: what the inputs alone make too dear is not evaluated.
        worth = xp.reshape(paid < here.costs, (-1,))
        moved, inputs = xp.reshape(legal, (-1, codes.shape[1])), xp.reshape(paid, (-1,))
        worth = obeying(problem, moved, worth)
        (index,) = xp.nonzero(worth)
        if len(turn) == 1 and index.shape[0] > MOST * worth.shape[0]:
            here = here.or_cheaper(_evaluate_all(now, aim, worth, moved, inputs))
        elif index.shape[0] > 0:
            _accept_cheapest(now, aim, here, index, take(moved, index), inputs)
    # Gains steer which edits are drawn; steps are not drawn, so theirs need not be known.
    return Moved.to(now, here, before, xp.zeros_like(before[: len(steps)]))


def _evaluate_all(now: MoveContext, aim: Aim, worth: Array, moved: Array, inputs: Array) -> Place:
    """All rows where they have ``moved``; what is not worth trying, bool (n,), costs infinitely."""
    xp = namespace(moved)
    outputs = now.problem.precise.values(moved)
    costs = inputs + output_costs(aim.wanted, aim.output_weight, outputs)
    costs = no_worse(now, outputs, costs)
    return Place(moved, outputs, xp.where(worth, costs, xp.full_like(costs, np.inf)))


def _accept_cheapest(
    now: MoveContext, aim: Aim, here: Place, index: Array, moved: Array, inputs: Array
) -> None:
    """Let rows go, in place, to the cheapest of a few offers that costs less than where they are.

    Parameters
    ----------
    index
        int Array (S,): which offers to look at; offer k to row i is number k n + i.
    moved
        Array (S, p): where those lead.
    inputs
        Array (C n,): input costs of all offers.
    """
    xp = namespace(moved)
    n = here.costs.shape[0]
    row = index % n
    outputs = now.problem.precise.values(moved)
    wanted = take(aim.wanted, row)
    costs = take(inputs, index) + output_costs(wanted, aim.output_weight, outputs)
    costs = no_worse(now, outputs, costs, row)
    better = costs < take(here.costs, row)
    total = xp.full_like(inputs, np.inf)
    total[index] = xp.where(better, costs, xp.full_like(costs, np.inf))
    best = xp.argmin(xp.reshape(total, (-1, n)), axis=0)
    (chosen,) = xp.nonzero(better & (take(best, row) * n + row == index))
    row = take(row, chosen)
    for part, new in zip(here, (moved, outputs, costs), strict=True):
        part[row] = take(new, chosen)


def _by_tiles(now: MoveContext, aim: Aim, steps: list[Array]) -> tuple[Array, Array]:
    """Legal steps, a few rows at a time, in threads."""
    xp = namespace(steps[0])

    def of_tile(rows: slice) -> tuple[Array, Array]:
        return legal_steps(now.block(rows), aim.block(rows), [step[rows, :] for step in steps])

    made = parallel(of_tile, row_tiles(steps[0].shape[0], TILE_ROWS))
    moved, inputs = (xp.concat(parts, axis=1) for parts in zip(*made, strict=True))
    return moved, inputs
