"""One iteration of the rows: `MoveContext` in, `Moved` out.

The fit and the replay of its map on new rows both go through `move`, so that replaying the map on
the fit's rows gives the fit.
"""

from __future__ import annotations

from elsewise._arrays import Array, asarray_like, namespace, on_device
from elsewise._resources import block_rows
from elsewise.moves._choose import choose
from elsewise.moves._in_turn import steps_in_turn, worth_taking_in_turn
from elsewise.moves._offers import Offers, edited_rows, side_by_side, stepped_rows
from elsewise.moves._step import Motion, MoveContext, Moved, Place, Rows
from elsewise.moves._steps import (
    SMOOTH_OFFERS,
    Aim,
    View,
    descent_step,
    on_grid,
    row_costs,
    row_noise,
    smooth_steps,
)
from elsewise.request import Population, Problem
from elsewise.transport import row_tiles, transported


def start(problem: Problem, motion: Motion, population: Population) -> Rows:
    """Line 1 of Algorithm 1: x^0 = x' + noise (legal at once; no noise by default)."""
    if motion.noise == 0.0:
        return Rows(population.codes, population.outputs)
    noise = row_noise(population.codes, problem.seed, problem.embedding.size)
    shift = motion.noise * asarray_like(noise, population.embedded)
    moved = _legal_step(problem, population, population.codes, shift)
    return Rows(moved, problem.precise.values(moved))


def move(now: MoveContext) -> Moved:
    """Lines 8 and 9 of Algorithm 1: every row takes its step, a bounded number at a time."""
    codes, edits = now.rows.codes, now.step.edits
    n, p = codes.shape
    offers = len(SMOOTH_OFFERS) + (0 if edits is None else edits.sources.shape[0])
    # Offers are (n, C, p): the only arrays of a step that grow with the number of offers.
    size = block_rows(offers * p, device=on_device(codes))
    in_turn = worth_taking_in_turn(codes)  # by all rows: memory must not decide how
    if n <= size:
        return _move(now, in_turn)
    xp = namespace(codes)
    parts = [_move(now.block(block), in_turn) for block in row_tiles(n, size)]
    rows, embedded, costs, gains = zip(*parts, strict=True)
    return Moved(
        Rows.joined(rows),
        xp.concat(embedded),
        xp.concat(costs, axis=1),
        xp.sum(xp.stack(gains), axis=0),
    )


def _move(now: MoveContext, in_turn: bool) -> Moved:
    aim = _aim(now)
    if now.motion.gradient:
        return _descend(now, aim)
    if now.step.edits is None and now.price == 0 and in_turn:
        return steps_in_turn(now, aim, _smooth_steps(now, aim))
    return choose(now, aim, _offers(now, aim))


def _aim(now: MoveContext) -> Aim:
    """Anchor and wanted output of every row, from the recorded maps."""
    step, population, weight = now.step, now.population, now.motion.population_weight
    # c_i = phi(x_i) + (d / N) sum_k theta_k (t_ik - theta_k . phi(x_i)): with the plans of eq. (12)
    # fixed, Q_x is a square around this point, up to a constant.
    anchor = transported(step.anchors, now.embedded, step.directions)
    if weight < 1.0:
        # weight |phi - c|^2 + (1 - weight) |phi - phi(x')|^2 is a square around their mean.
        anchor = weight * anchor + (1.0 - weight) * population.embedded
    wanted = population.wanted
    if wanted is None and step.wanted is not None:
        wanted = transported(step.wanted, now.rows.outputs, step.output_directions)
    return Aim(anchor=anchor, wanted=wanted, eta=step.eta, unit=now.problem.unit)


def _descend(now: MoveContext, aim: Aim) -> Moved:
    """The paper's step: along the negative gradient, whatever it leads to."""
    problem, population = now.problem, now.population
    downhill = descent_step(aim, _view(now), now.motion.tau)
    codes = _legal_step(problem, population, now.rows.codes, downhill)
    outputs = problem.precise.values(codes)
    before = row_costs(aim, now.embedded, now.rows.outputs)
    after = row_costs(aim, problem.embedding.embed(codes, population.complete), outputs)
    return Moved.to(now, Place(codes, outputs, after), before, before[:0])


def _offers(now: MoveContext, aim: Aim) -> Offers:
    """Legal offers to every row, edits first."""
    edits = now.step.edits
    edited = None if edits is None else edited_rows(now, aim, edits)
    if edited is not None and not now.problem.precise.smooth:
        return edited
    steps = _smooth_steps(now, aim)
    if now.step.sparsity > 0:
        # Only what has moved already moves on: a step along the slope would change every number.
        moved = now.embedded != now.population.embedded
        moved = namespace(moved).astype(moved, now.embedded.dtype)
        steps = [moved * one for one in steps]
    stepped = stepped_rows(now, aim, steps)
    return stepped if edited is None else side_by_side(edited, stepped)


def _smooth_steps(now: MoveContext, aim: Aim) -> list[Array]:
    """Steps (n, d) along the model's slope."""
    return smooth_steps(aim, _view(now), probability=now.problem.outputs.probability)


def _view(now: MoveContext) -> View:
    """The rows with the model's slope at them."""
    _, slope = now.problem.precise.values_and_gradient(now.rows.codes)
    return View(now.embedded, now.rows.outputs, now.problem.embedding.pull(slope))


def _legal_step(problem: Problem, population: Population, codes: Array, step: Array) -> Array:
    """Codes (n, p) moved by a step (n, d) and made legal; rows that would break a rule stay."""
    xp = namespace(codes)
    moved = problem.embedding.push(codes, on_grid(step))
    # A step that is not a number is none.
    moved = xp.where(xp.isnan(moved), codes, moved)
    legal = population.legal.nearest(moved, problem.embedding.reach)
    if problem.obeys is None:
        return legal
    return xp.where(asarray_like(problem.obeys(legal), population.pinned)[:, None], legal, codes)
