"""Legal rows offered to every row, not yet put together: by edits, and by steps along slopes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from elsewise._arrays import Array, asarray_like, changed_cells, device_of, namespace, take
from elsewise.features import Embedding
from elsewise.moves._edits import HAS_VALUE, KEEP, Edits, Source
from elsewise.moves._step import MoveContext
from elsewise.moves._steps import SAME, Aim, cross_squares, input_costs, on_grid
from elsewise.targets import Derived

if TYPE_CHECKING:
    from elsewise.request import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """C offers to every row, each made of cells that several offers may share."""

    inputs: Array
    """Array (n, C): the part of each offer's cost that the inputs bear."""
    exact: bool
    """Whether these are steps alone, so that ``inputs`` is exact; else its last bits depend on the
    batch of rows."""
    new: Array
    """bool Array (n, C): whether the offer differs from the row as it is."""
    touches: Array
    """bool Array (C, p): the columns that each offer is about."""
    cells: Array
    """Array (n, M): the cells that offers choose from."""
    picks: Array
    """int Array (C, p): the cell that each offer takes in each column."""

    def rows(self, row: Array, offer: Array) -> Array:
        """Put offers together: Array (S, p), offer ``offer[s]`` to row ``row[s]``, int (S,)."""
        places = row[:, None] * self.cells.shape[1] + take(self.picks, offer)
        return take(namespace(self.cells).reshape(self.cells, (-1,)), places)


def legal_steps(now: MoveContext, aim: Aim, steps: list[Array]) -> tuple[Array, Array]:
    """Rows (K, n, p) moved by K steps (n, d) and made legal; what their inputs cost, (K, n)."""
    step, people = on_grid(namespace(aim.anchor).stack(steps)), now.population
    legal, embedded = now.problem.embedding.stepped(
        now.rows.codes, step, people.legal, people.complete
    )
    return legal, input_costs(aim, embedded)


def stepped_rows(now: MoveContext, aim: Aim, steps: list[Array]) -> Offers:
    """Offer every row the legal rows nearest to where K steps (n, d) lead."""
    xp, codes = namespace(now.rows.codes), now.rows.codes
    legal, inputs = legal_steps(now, aim, steps)
    count, n, p = legal.shape
    if now.price > 0:
        inputs = inputs + now.price * changed_count(legal, now.population.codes)
    return Offers(
        inputs=xp.matrix_transpose(inputs),
        exact=True,
        new=xp.matrix_transpose(xp.any(changed_cells(legal, codes), axis=-1)),
        touches=xp.broadcast_to(now.problem.embedding.reach > 0, (count, p)),
        cells=xp.reshape(xp.permute_dims(legal, (1, 0, 2)), (n, count * p)),
        picks=xp.reshape(xp.arange(count * p, device=device_of(legal)), (count, p)),
    )


def side_by_side(edited: Offers, stepped: Offers) -> Offers:
    """Edits first, then steps."""
    xp = namespace(edited.cells)
    return Offers(
        inputs=xp.concat([edited.inputs, stepped.inputs], axis=1),
        exact=False,
        new=xp.concat([edited.new, stepped.new], axis=1),
        touches=xp.concat([edited.touches, stepped.touches]),
        cells=xp.concat([edited.cells, stepped.cells], axis=1),
        picks=xp.concat([edited.picks, edited.cells.shape[1] + stepped.picks]),
    )


def edited_rows(now: MoveContext, aim: Aim, edits: Edits) -> Offers:
    """Offer every row each of the edits."""
    codes = now.rows.codes
    xp = namespace(codes)
    layout = _layout(edits.sources)
    columns = asarray_like(layout.columns, codes)
    own = take(codes, columns, axis=1)
    made = _made(now, aim, edits, layout)
    cells = now.population.legal.nearest(made, now.problem.embedding.reach, layout.columns)
    takes = asarray_like(layout.takes, codes)
    inputs = _input_costs(now, aim, layout, cells, takes)
    if now.price > 0:
        factual = take(now.population.codes, columns, axis=1)
        more = xp.astype(changed_cells(cells, factual), takes.dtype)
        more = more - xp.astype(changed_cells(own, factual), takes.dtype)
        changed = changed_count(codes, now.population.codes)
        inputs = inputs + now.price * (changed[:, None] + xp.matmul(more, takes))
    return Offers(
        inputs=inputs,
        exact=False,
        new=xp.matmul(xp.astype(changed_cells(cells, own), takes.dtype), takes) > 0,
        touches=asarray_like(edits.sources != KEEP, codes),
        cells=xp.concat([codes, cells], axis=1),
        picks=asarray_like(layout.picks, codes),
    )


class _Layout(NamedTuple):
    """The cells that edits need, by source: cells that several edits take are there once."""

    sources: np.ndarray
    """int ndarray (M,), ascending."""
    edits: np.ndarray
    """int ndarray (M,): the edit whose value it is; 0 where the source needs none."""
    columns: np.ndarray
    """int ndarray (M,)."""
    picks: np.ndarray
    """int ndarray (E, p): the cell each edit takes in each column, after the row's own p."""
    takes: np.ndarray
    """ndarray (M, E): 1 where the edit takes the cell, else 0."""


def _layout(sources: np.ndarray) -> _Layout:
    """Lay out the cells of edits with these sources, int (E, p)."""
    count, p = sources.shape
    edit, column = np.nonzero(sources != KEEP)
    source = sources[edit, column]
    key = (source * count + np.where(HAS_VALUE[source], edit, 0)) * p + column
    cells, which = np.unique(key, return_inverse=True)
    picks = np.tile(np.arange(p), (count, 1))
    picks[edit, column] = p + which
    takes = np.zeros((cells.size, count))
    takes[which, edit] = 1.0
    return _Layout(cells // (count * p), cells // p % count, cells % p, picks, takes)


def _made(now: MoveContext, aim: Aim, edits: Edits, layout: _Layout) -> Array:
    """The cells (n, M) of a layout, before they are made legal."""
    codes, embedding = now.rows.codes, now.problem.embedding
    xp = namespace(codes)

    def columns(source: Source) -> Array:
        return asarray_like(layout.columns[layout.sources == int(source)], codes)

    def values(source: Source) -> Array:
        places = (layout.edits * codes.shape[1] + layout.columns)[layout.sources == int(source)]
        return take(xp.reshape(edits.values, (-1,)), asarray_like(places, codes))

    new = values(Source.VALUE)
    parts = [
        xp.broadcast_to(new, (codes.shape[0], new.shape[0])),
        take(codes, columns(Source.SHIFT), axis=1) + values(Source.SHIFT),
    ]
    if (layout.sources == int(Source.ANCHOR)).any():
        anchor = embedding.push(codes, on_grid(aim.anchor - now.embedded))
        parts.append(take(anchor, columns(Source.ANCHOR), axis=1))
    parts.append(take(now.population.codes, columns(Source.FACTUAL), axis=1))
    if layout.sources[-1:] >= Source.DONOR:
        donor = take(edits.donors, _best_donors(edits, embedding, aim))
        parts.append(take(donor, columns(Source.DONOR), axis=1))
    if layout.sources[-1:] == Source.TOWARDS:
        donor = take(edits.donors, _best_donors(edits, embedding, aim, now.population.outputs))
        ends = now.population.codes, donor
        here, there = (take(end, columns(Source.TOWARDS), axis=1) for end in ends)
        parts.append(here + values(Source.TOWARDS) * (there - here))
    return xp.concat(parts, axis=1)


def _best_donors(
    edits: Edits, embedding: Embedding, aim: Aim, factual: Array | None = None
) -> Array:
    """Index (n,) of the donor with the smallest q_i for each row.

    Given factual outputs (n, K), for a point on the line to it: of one output, the nearest donor
    between which and the row the wanted output lies, however far past it.
    """
    xp = namespace(aim.anchor)
    d, k = aim.anchor.shape[-1], aim.wanted.shape[-1]
    inputs = cross_squares(aim.anchor, embedding.embed(edits.donors))
    outputs = cross_squares(aim.wanted, edits.donor_outputs)
    costs = (1.0 - aim.eta) / d * inputs + aim.output_weight / k * outputs
    if factual is not None and k == 1:
        short = (edits.donor_outputs[:, 0] - aim.wanted) * (factual - aim.wanted) > 0.0
        costs = xp.where(short, xp.full_like(inputs, np.inf), inputs)
    return xp.argmin(costs, axis=-1)


def _input_costs(now: MoveContext, aim: Aim, layout: _Layout, cells: Array, takes: Array) -> Array:
    """Input costs (n, E): what the row pays now, and the difference that each taken cell makes."""
    xp = namespace(cells)
    embedded, source, dimensions = now.problem.embedding.embed_columns(cells, layout.columns)
    here = asarray_like(dimensions, cells)
    goal = take(aim.anchor, here, axis=1)
    after, before = embedded - goal, take(now.embedded, here, axis=1) - goal
    share = (1.0 - aim.eta) / now.embedded.shape[-1]
    # A sum over the cells of an edit is a product of matrices.
    dearer = xp.matmul(after * after - before * before, take(takes, source))
    return input_costs(aim, now.embedded)[:, None] + share * dearer


def obeying(problem: Problem, codes: Array, worth: Array) -> Array:
    """Those of the rows (n, p) worth asking about, bool (n,), that keep every rule."""
    xp = namespace(worth)
    if problem.obeys is None or not bool(xp.any(worth)):
        return worth
    keeps = xp.zeros_like(worth)
    keeps[worth] = asarray_like(problem.obeys(codes[worth, ...]), worth)
    return keeps


def no_worse(now: MoveContext, outputs: Array, costs: Array, row: Array | None = None) -> Array:
    """Costs (S,) of rows that would have these outputs; infinite where one would be worse off.

    Worse is farther from what an at_most, at_least or share target asks than the row began; where
    changes are taken back, also than it is now, beyond ``Motion.near``.

    Parameters
    ----------
    row
        int Array (S,): which rows; None: all of them.
    """
    began, target = now.population.shortfall, now.problem.target
    if began is None or not isinstance(target, Derived):
        return costs
    xp = namespace(outputs)
    same, near = SAME * now.problem.unit, now.motion.near
    if now.step.sparsity > 0 and near is not None:
        here: Array = target.shortfall(now.rows.outputs)
        began = xp.minimum(began, xp.clip(here, near, None))
    most = (began if row is None else take(began, row)) + same
    return xp.where(target.shortfall(outputs) <= most, costs, xp.full_like(costs, np.inf))


def changed_count(codes: Array, factual: Array) -> Array:
    """Number of cells of each row that are not factual."""
    xp = namespace(codes)
    return xp.sum(xp.astype(changed_cells(codes, factual), codes.dtype), axis=-1)
