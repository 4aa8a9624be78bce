"""Legal rows offered to every row, not yet put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from elsewise._arrays import Array, asarray_like, changed_cells, device_of, namespace, take
from elsewise.features import Legal
from elsewise.moves._costs import SAME, Aim, input_costs
from elsewise.targets import Derived

if TYPE_CHECKING:
    from elsewise.moves._step import MoveContext
    from elsewise.request import Problem

# A number within this share of a standard deviation of its factual value is that value.
NEAR = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """C offers to every row: edits first, made of cells, then steps, which are rows already."""

    inputs: Array
    """Array (n, C): the part of each offer's cost that the inputs bear."""
    exact: bool
    """Whether ``inputs`` is exact; else its last bits depend on the batch of rows."""
    new: Array
    """bool Array (n, C): whether the offer differs from the row as it is."""
    touches: Array
    """bool Array (C, p): the columns that each offer is about."""
    cells: Array
    """Array (n, M): the cells that edits choose from, first the row's own."""
    picks: Array
    """int Array (E, p): the cell that each of E edits takes in each column."""
    steps: Array
    """Array (K, n, p): the rows after each of K steps; C = E + K."""

    def rows(self, row: Array, offer: Array) -> Array:
        """Put offers together: Array (S, p), offer ``offer[s]`` to row ``row[s]``, int (S,)."""
        xp = namespace(self.cells)
        edits, (count, n, p) = self.picks.shape[0], self.steps.shape
        if count == 0:
            return self._edited(row, offer)
        flat = xp.reshape(self.steps, (count * n, p))
        if edits == 0:
            return take(flat, offer * n + row)
        stepped = take(flat, xp.clip(offer - edits, 0, count - 1) * n + row)
        edited = self._edited(row, xp.clip(offer, 0, edits - 1))
        return xp.where((offer < edits)[:, None], edited, stepped)

    def _edited(self, row: Array, edit: Array) -> Array:
        xp = namespace(self.cells)
        places = row[:, None] * self.cells.shape[1] + take(self.picks, edit)
        return take(xp.reshape(self.cells, (-1,)), places)


def stepped_rows(now: MoveContext, aim: Aim, moved: Array) -> Offers:
    """Offer rows moved by steps, Array (K, n, p), once they are legal."""
    xp = namespace(moved)
    embedding, codes = now.problem.embedding, now.rows.codes
    legal = legal_rows(now.population.legal, embedding.reach, moved)
    count, n, p = legal.shape
    embedded = embedding.embed(xp.reshape(legal, (-1, p)), now.population.complete)
    places = xp.reshape(embedded, (count, n, -1))
    inputs = input_costs(aim, places)
    if now.price > 0:
        inputs = inputs + now.price * changed_count(legal, now.population.codes)
    return Offers(
        inputs=xp.matrix_transpose(inputs),
        exact=True,
        new=xp.matrix_transpose(xp.any(changed_cells(legal, codes), axis=-1)),
        touches=xp.broadcast_to(embedding.reach > 0, (count, p)),
        cells=codes,
        picks=xp.zeros((0, p), dtype=xp.int64, device=device_of(legal)),
        steps=legal,
    )


def side_by_side(edited: Offers, stepped: Offers) -> Offers:
    """Edits first, then steps."""
    xp = namespace(edited.cells)
    return Offers(
        inputs=xp.concat([edited.inputs, stepped.inputs], axis=1),
        exact=False,
        new=xp.concat([edited.new, stepped.new], axis=1),
        touches=xp.concat([edited.touches, stepped.touches]),
        cells=edited.cells,
        picks=edited.picks,
        steps=stepped.steps,
    )


def legal_rows(
    legal: Legal, reach: Array, moved: Array, columns: np.ndarray | None = None
) -> Array:
    """Make rows (..., n, p) legal, or cells (n, M) that lie in ``columns``, int (M,).

    Pinned rows stay: their boxes are points. In double precision, a number that is back where it
    was is that number, bit for bit.
    """
    xp = namespace(moved)
    factual = legal.factual
    if columns is not None:
        places = asarray_like(columns, factual)
        factual, reach = take(factual, places, axis=1), take(reach, places)
    elif not legal.restricted:
        inside = legal.inside(moved)
        if xp.finfo(moved.dtype).eps > NEAR:
            # Single precision has no digits for what is so near; what is not a number is no place.
            return xp.where(xp.isnan(inside), factual, inside)
        # A missing number is not away from anything: the factual cell is kept.
        return xp.where(xp.abs(inside - factual) > NEAR * reach, inside, factual)
    inside = legal.legalize(moved, columns)
    back = xp.abs(inside - factual) <= NEAR * reach
    return xp.where(back, factual, inside)


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

    Worse is farther from what an at_most, at_least or share target asks than the row began.

    Parameters
    ----------
    row
        int Array (S,): which rows; None: all of them.
    """
    began, target = now.population.shortfall, now.problem.target
    if began is None or not isinstance(target, Derived):
        return costs
    xp = namespace(outputs)
    most = (began if row is None else take(began, row)) + SAME * now.problem.unit
    return xp.where(target.shortfall(outputs) <= most, costs, xp.full_like(costs, np.inf))


def changed_count(codes: Array, factual: Array) -> Array:
    """Number of cells of each row that are not factual."""
    xp = namespace(codes)
    return xp.sum(xp.astype(changed_cells(codes, factual), codes.dtype), axis=-1)
