"""The fit is a recording; the map replays it on any row.

One iteration is a row-wise function once its monotone maps are known: per direction from the
current projection to the factual quantile, for outputs from the current output to the target
quantile. A ``Step`` holds those tables, the edits and eta; a ``Map`` is the sequence of steps. The
fit itself moves its rows by applying the step it just recorded, so replaying the map on the fit's
rows gives the fit.
"""

from __future__ import annotations

from typing import NamedTuple

from elsewise._arrays import Array, asarray_like, namespace, on_device
from elsewise._resources import block_rows
from elsewise.moves._choose import choose
from elsewise.moves._costs import Aim, View, row_costs
from elsewise.moves._edit_offers import edited_rows
from elsewise.moves._in_turn import steps_in_turn, worth_taking_in_turn
from elsewise.moves._offers import MoveContext, Offers, legal_rows, side_by_side, stepped_rows
from elsewise.moves._step import Motion, Rows, Step
from elsewise.moves._steps import SMOOTH_OFFERS, descent_step, on_grid, row_noise, smooth_steps
from elsewise.request import Population, Problem
from elsewise.transport import row_tiles, transported

__all__ = ["aim_at", "move", "start"]


def start(problem: Problem, motion: Motion, population: Population) -> Rows:
    """Line 1 of Algorithm 1: x^0 = x' + noise (legal at once; no noise by default)."""
    if motion.noise == 0.0:
        return Rows(population.codes, population.outputs)
    noise = row_noise(population.codes, problem.seed, problem.embedding.size)
    shift = motion.noise * asarray_like(noise, population.embedded)
    moved = _legal_step(problem, population, population.codes, shift)
    return Rows(moved, problem.precise.values(moved))


def aim_at(
    problem: Problem,
    motion: Motion,
    population: Population,
    step: Step,
    rows: Rows,
    embedded: Array,
) -> Aim:
    """Anchor and wanted output of every row, from the recorded maps."""
    anchor = transported(step.anchors, embedded, step.directions)
    if motion.rho < 1.0:
        anchor = motion.rho * anchor + (1.0 - motion.rho) * population.embedded
    wanted = population.wanted
    if wanted is None and step.wanted is not None:
        wanted = transported(step.wanted, rows.outputs, step.output_directions)
    return Aim(anchor=anchor, wanted=wanted, eta=step.eta, unit=problem.unit)


class Moved(NamedTuple):
    """The rows after an iteration, and what the proposals brought."""

    rows: Rows
    gains: Array
    """Array (C,): what each proposal brought, summed over the rows that took it; edits first."""
    costs: Array
    """Array (2, n): each row's cost before and after."""


def move(
    problem: Problem,
    motion: Motion,
    population: Population,
    step: Step,
    rows: Rows,
    embedded: Array,
) -> Moved:
    """Lines 8 and 9 of Algorithm 1: every row takes its step, a bounded number at a time."""
    n, p = rows.codes.shape
    offers = len(SMOOTH_OFFERS) + (0 if step.edits is None else step.edits.sources.shape[0])
    size = block_rows(offers * p, device=on_device(rows.codes))
    if n <= size:
        return _move(problem, motion, population, step, rows, embedded)
    xp = namespace(rows.codes)
    parts = [
        _move(
            problem,
            motion,
            population.block(block),
            step,
            Rows(rows.codes[block, ...], rows.outputs[block, ...]),
            embedded[block, ...],
        )
        for block in row_tiles(n, size)
    ]
    return Moved(
        Rows(
            xp.concat([part.rows.codes for part in parts]),
            xp.concat([part.rows.outputs for part in parts]),
        ),
        xp.sum(xp.stack([part.gains for part in parts]), axis=0),
        xp.concat([part.costs for part in parts], axis=1),
    )


def _move(
    problem: Problem,
    motion: Motion,
    population: Population,
    step: Step,
    rows: Rows,
    embedded: Array,
) -> Moved:
    aim = aim_at(problem, motion, population, step, rows, embedded)
    if motion.gradient:
        return _descend(problem, motion, population, aim, rows, embedded)
    price = step.sparsity / embedded.shape[-1]
    now = MoveContext(problem.embedding, population, rows.codes, embedded, aim, price)
    if step.edits is None and price == 0 and worth_taking_in_turn(rows.codes):
        steps = smooth_steps(problem, aim, _view(problem, rows, embedded))
        codes, outputs, costs, gains = steps_in_turn(problem, now, rows.outputs, steps)
    else:
        offers = _offers(problem, population, step, now, rows.outputs)
        codes, outputs, costs, gains = choose(problem, now, rows.outputs, offers)
    return Moved(Rows(codes, outputs), gains, costs)


def _descend(
    problem: Problem,
    motion: Motion,
    population: Population,
    aim: Aim,
    rows: Rows,
    embedded: Array,
) -> Moved:
    """The paper's step: along the negative gradient, whatever it leads to."""
    xp = namespace(rows.codes)
    downhill = descent_step(aim, _view(problem, rows, embedded), motion.tau)
    codes = _legal_step(problem, population, rows.codes, downhill)
    moved = Rows(codes, problem.precise.values(codes))
    before = row_costs(aim, embedded, rows.outputs)
    after = row_costs(aim, population.embed(problem.embedding, codes), moved.outputs)
    return Moved(moved, before[:0], xp.stack([before, after]))


def _offers(
    problem: Problem, population: Population, step: Step, now: MoveContext, outputs: Array
) -> Offers:
    """Legal proposals for every row, edits first."""
    edited = None if step.edits is None else edited_rows(step.edits, now)
    if edited is not None and not problem.precise.smooth:
        return edited
    xp = namespace(now.codes)
    steps = smooth_steps(problem, now.aim, _view(problem, Rows(now.codes, outputs), now.embedded))
    if step.sparsity > 0:
        # Only what has moved already moves on.
        moved = xp.astype(now.embedded != population.embedded, now.embedded.dtype)
        steps = [moved * one for one in steps]
    stepped = stepped_rows(_stepped(problem, now.codes, steps), now)
    return stepped if edited is None else side_by_side(edited, stepped)


def _view(problem: Problem, rows: Rows, embedded: Array) -> View:
    """The rows with the model's slope at them."""
    _, slope = problem.precise.values_and_gradient(rows.codes)
    return View(embedded, rows.outputs, problem.embedding.pull(slope))


def _stepped(problem: Problem, codes: Array, steps: list[Array]) -> Array:
    """Codes (C, n, p) of every row moved by each of C steps (n, d)."""
    xp = namespace(codes)
    shape = (len(steps), *codes.shape)
    repeated = xp.reshape(xp.broadcast_to(codes, shape), (-1, codes.shape[1]))
    moved = problem.embedding.push(repeated, on_grid(xp.concat(steps)))
    return xp.reshape(moved, shape)


def _legal_step(problem: Problem, population: Population, codes: Array, step: Array) -> Array:
    """Codes (n, p) moved by a step (n, d) and made legal; rows that would break a rule stay."""
    xp = namespace(codes)
    moved = _stepped(problem, codes, [step])[0, ...]
    # A step that is not a number is none.
    moved = xp.where(xp.isnan(moved), codes, moved)
    legal = legal_rows(problem.embedding, population, moved)
    if problem.obeys is None:
        return legal
    return xp.where(asarray_like(problem.obeys(legal), population.pinned)[:, None], legal, codes)
