"""Each row takes the cheapest of its offers, or stays."""

from __future__ import annotations

import numpy as np

from elsewise._arrays import Array, changed_cells, device_of, namespace, take, take_ranked
from elsewise.moves._offers import Offers, changed_count, no_worse, obeying
from elsewise.moves._step import MoveContext, Moved, Place
from elsewise.moves._steps import GRID, Aim, input_costs, output_costs, row_costs

# The best offers to a row are tried together as well, at most this many.
MERGED = 3
# Rounding errors that an inexact cost may have, in units of the machine's precision.
SLACK = 1e3


def choose(now: MoveContext, aim: Aim, offers: Offers) -> Moved:
    """Let each row take its cheapest offer, or several of the best at once, or stay."""
    here, outputs = now.rows
    xp = namespace(here)
    n, count = offers.inputs.shape
    before = row_costs(aim, now.embedded, outputs)
    if now.price > 0:
        before = before + now.price * changed_count(here, now.population.codes)
    before = _to_twelve_digits(before)
    stay = Place(here, outputs, before)
    # Output costs are never negative: what the inputs alone make too dear need not be evaluated.
    room = before if offers.exact else (1.0 + SLACK * xp.finfo(before.dtype).eps) * before
    worth = offers.new & (offers.inputs <= room[:, None])
    row, offer = xp.nonzero(worth)
    if row.shape[0] == 0:
        return Moved.to(now, stay, before, xp.zeros_like(offers.inputs[0, :]))
    codes = offers.rows(row, offer)
    inputs = offers.inputs[worth] if offers.exact else _priced(now, aim, row, codes)
    tried = _evaluated(now, aim, row, codes, inputs, take(before, row))
    costs = xp.full_like(offers.inputs, np.inf)
    costs[worth] = tried.costs
    best = xp.argmin(costs, axis=1)
    index = xp.arange(n, device=device_of(best)) * count + best
    # Where in the list of candidates each row's best is; any place for rows without one.
    # Counting the candidates up to each place of the (n, C) table gives its place in the list.
    number = xp.cumulative_sum(xp.astype(xp.reshape(worth, (-1,)), xp.int64)) - 1
    found = xp.clip(take(number, index), 0, row.shape[0] - 1)
    least = take(xp.reshape(costs, (-1,)), index)
    last = one = stay.or_cheaper(Place(take(codes, found), take(tried.outputs, found), least))
    # An offer is credited where it is the one taken: equal costs credit all that tie.
    used = (costs < before[:, None]) & (costs <= one.costs[:, None])
    if not offers.exact:  # steps are lengths of one step, nothing to put together
        several, among = _several(now, aim, offers, costs, stay, one)
        last = one.or_cheaper(several)
        used = used | (among & (several.costs < one.costs)[:, None])
    brought = xp.where(used, before[:, None] - costs, xp.zeros_like(costs))
    return Moved.to(now, last, before, xp.sum(brought, axis=0))


def _several(
    now: MoveContext, aim: Aim, offers: Offers, costs: Array, stay: Place, one: Place
) -> tuple[Place, Array]:
    """The best offers to each row at once, and which those are, bool Array (n, C).

    What helps on its own often helps together, and an iteration gets further. Of two offers that
    are about the same column, the better has it.
    """
    xp = namespace(costs)
    everyone = xp.arange(costs.shape[0], device=device_of(costs))
    order = xp.argsort(costs, axis=1, stable=True)
    ranked = take_ranked(costs, order)[:, :MERGED]
    helps = ranked < stay.costs[:, None]
    codes, touched = one.codes, take(offers.touches, order[:, 0])
    for k in range(1, ranked.shape[1]):
        offer = order[:, k]
        more = helps[:, k, None] & take(offers.touches, offer) & ~touched
        codes = xp.where(more, offers.rows(everyone, offer), codes)
        touched = touched | more
    another = xp.any(changed_cells(codes, one.codes), axis=-1)
    place = Place(codes, xp.zeros_like(one.outputs), xp.full_like(one.costs, np.inf))
    (row,) = xp.nonzero(another)
    if row.shape[0] > 0:
        some = take(codes, row)
        inputs = _priced(now, aim, row, some)
        tried = _evaluated(now, aim, row, some, inputs, take(one.costs, row))
        place.outputs[another, ...] = tried.outputs
        place.costs[another] = tried.costs
    worst = xp.max(xp.where(helps, ranked, xp.full_like(ranked, -np.inf)), axis=1)
    return place, costs <= worst[:, None]


def _priced(now: MoveContext, aim: Aim, row: Array, codes: Array) -> Array:
    """Input costs (S,) of the rows ``row``, int (S,), were they at ``codes`` (S, p)."""
    own = aim._replace(anchor=take(aim.anchor, row))
    inputs = input_costs(own, now.problem.embedding.embed(codes, now.population.complete))
    if now.price == 0:
        return inputs
    factual = take(now.population.codes, row)
    return inputs + now.price * changed_count(codes, factual)


def _evaluated(
    now: MoveContext, aim: Aim, row: Array, codes: Array, inputs: Array, most: Array
) -> Place:
    """Ask the model about candidates ``codes`` (S, p) that may cost less than ``most`` (S,).

    Costs are infinite where one breaks a rule, or its inputs alone are too dear; outputs are 0.
    """
    xp = namespace(codes)
    worth = inputs < most
    worth = obeying(now.problem, codes, worth)
    wanted = take(aim.wanted, row)
    outputs = xp.zeros_like(wanted)
    if bool(xp.all(worth)):
        outputs = now.problem.precise.values(codes)
    elif bool(xp.any(worth)):
        outputs[worth, ...] = now.problem.precise.values(codes[worth, ...])
    total = inputs + output_costs(wanted, aim.output_weight, outputs)
    total = no_worse(now, outputs, _to_twelve_digits(total), row)
    return Place(codes, outputs, xp.where(worth, total, xp.full_like(total, np.inf)))


def _to_twelve_digits(costs: Array) -> Array:
    """Round costs, so that those that differ in their last bits only tie.

    The last bits of a model's outputs depend on the batch a row comes in; which of two offers that
    are as good a row takes must not. Single precision has no such digits to spare.
    """
    if namespace(costs).finfo(costs.dtype).eps > GRID:
        return costs
    wide = costs * (2.0**12 + 1.0)
    return wide - (wide - costs)
