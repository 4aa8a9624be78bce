"""Edits as offers: which cells they need, what those cost, which edit takes which."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from elsewise._arrays import Array, asarray_like, changed_cells, namespace, take
from elsewise.features import Embedding
from elsewise.moves._costs import Aim, cross_squares, input_costs
from elsewise.moves._edits import Edits, Source
from elsewise.moves._offers import Offers, changed_count, legal_rows
from elsewise.moves._step import MoveContext
from elsewise.moves._steps import on_grid


def edited_rows(now: MoveContext, aim: Aim, edits: Edits) -> Offers:
    """Offer every row each of the edits."""
    codes = now.rows.codes
    xp = namespace(codes)
    layout = _layout(edits.sources)
    columns = asarray_like(layout.columns, codes)
    own = take(codes, columns, axis=1)
    made = _made(now, aim, edits, layout)
    cells = legal_rows(now.population.legal, now.problem.embedding.reach, made, layout.columns)
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
        touches=asarray_like(edits.sources != Source.KEEP, codes),
        cells=xp.concat([codes, cells], axis=1),
        picks=asarray_like(layout.picks, codes),
        steps=codes[None, ...][:0, ...],
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
    edit, column = np.nonzero(sources != Source.KEEP)
    source = sources[edit, column]
    valued = np.isin(source, (Source.VALUE, Source.SHIFT, Source.TOWARDS))
    key = (source * count + np.where(valued, edit, 0)) * p + column
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
        return asarray_like(layout.columns[layout.sources == source], codes)

    def values(source: Source) -> Array:
        places = (layout.edits * codes.shape[1] + layout.columns)[layout.sources == source]
        return take(xp.reshape(edits.values, (-1,)), asarray_like(places, codes))

    new = values(Source.VALUE)
    parts = [
        xp.broadcast_to(new, (codes.shape[0], new.shape[0])),
        take(codes, columns(Source.SHIFT), axis=1) + values(Source.SHIFT),
    ]
    if Source.ANCHOR in layout.sources:
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
