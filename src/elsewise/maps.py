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
from typing import NamedTuple

from elsewise._arrays import Array, asarray_like, namespace, on_device
from elsewise._resources import block_rows
from elsewise.edits import Edits
from elsewise.offers import (
    Now,
    Offers,
    are_many,
    choose,
    edited_rows,
    legal_rows,
    side_by_side,
    stepped_rows,
    steps_in_turn,
)
from elsewise.problem import Population, Problem, populate
from elsewise.proposals import (
    SMOOTH_OFFERS,
    Aim,
    View,
    descent_step,
    on_grid,
    row_costs,
    row_noise,
    smooth_steps,
)
from elsewise.transport import MonotoneMaps, row_tiles, transported

__all__ = ["Map", "Motion", "Rows", "Step", "aim_at", "apply_map", "move", "replay", "start"]


REPLAYED = 1 << 16
"""Rows that go through all steps of a map together, on the host; sixteen times as many on an
accelerator."""


class Rows(NamedTuple):
    """Rows on the way: where they are and what the model says there."""

    codes: Array
    """Array (n, p)."""
    outputs: Array
    """Array (n, K)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """How rows move within an iteration; part of the map, so that replaying needs nothing else."""

    gradient: bool = False
    """True: the paper's gradient step. False: propose legal rows, keep the best."""
    tau: float = 1.0
    """Step size of the gradient step."""
    noise: float = 0.0
    """Standard deviation of the noise added to the start, in embedding units."""
    rho: float = 1.0
    """Share of the transported anchor in the anchor; the rest is the factual row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One recorded iteration."""

    eta: float
    """Weight of the outputs."""
    directions: Array
    """Array (d, N): directions of the input plans."""
    anchors: MonotoneMaps
    """Current projection to factual quantile, one map per direction."""
    output_directions: Array
    """Array (K, M): directions of the output plans; [[1]] for one output column."""
    wanted: MonotoneMaps | None
    """Current output to target quantile; None where rows know what they want."""
    edits: Edits | None
    """Edits offered to every row; None where the model's slope alone leads."""
    sparsity: float = 0.0
    """Cost of a changed cell, in units of a move by one standard deviation, squared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """A sequence of recorded steps: the counterfactual map, row by row."""

    steps: tuple[Step, ...]
    motion: Motion


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
    now = Now(problem.embedding, population, rows.codes, embedded, aim, price)
    if step.edits is None and price == 0 and are_many(rows.codes):
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
    problem: Problem, population: Population, step: Step, now: Now, outputs: Array
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


def replay(problem: Problem, recorded: Map, codes: Array) -> Iterator[Rows]:
    """Yield the rows before the first step and after each."""
    return _replay(problem, recorded, populate(problem, codes))


def _replay(problem: Problem, recorded: Map, population: Population) -> Iterator[Rows]:
    motion = recorded.motion
    rows = start(problem, motion, population)
    yield rows
    for step in recorded.steps:
        embedded = population.embed(problem.embedding, rows.codes)
        rows = move(problem, motion, population, step, rows, embedded).rows
        yield rows


def apply_map(problem: Problem, recorded: Map, codes: Array) -> Rows:
    """Apply the map to rows it may never have seen, a bounded number of them at a time."""
    size = (16 if on_device(codes) else 1) * REPLAYED
    parts = [
        _applied(problem, recorded, populate(problem, codes[block, ...]))
        for block in row_tiles(codes.shape[0], size)
    ]
    if len(parts) == 1:
        return parts[0]
    xp = namespace(codes)
    return Rows(
        xp.concat([part.codes for part in parts]), xp.concat([part.outputs for part in parts])
    )


def _applied(problem: Problem, recorded: Map, population: Population) -> Rows:
    """Where the map leads; rows that stay are not taken along."""
    xp = namespace(population.codes)
    moving = ~population.pinned
    (index,) = xp.nonzero(moving)
    if index.shape[0] == moving.shape[0]:
        return deque(_replay(problem, recorded, population), maxlen=1)[0]
    codes, outputs = (
        xp.asarray(part, copy=True) for part in (population.codes, population.outputs)
    )
    if index.shape[0] > 0:
        last = deque(_replay(problem, recorded, population.take(index)), maxlen=1)[0]
        codes[moving, ...], outputs[moving, ...] = last
    return Rows(codes, outputs)
