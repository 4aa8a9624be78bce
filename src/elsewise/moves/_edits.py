"""Proposals for any model: small edits of a row, drawn once and offered to every row.

An edit says, column by column, where a cell's new value comes from: a given value, a shift, the
row's anchor, its factual value, or a donor (the background row that would serve it best). The fit
draws edits where they have helped before and records them, so that replaying them on new rows needs
no randomness and no other rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from elsewise._arrays import Array, asarray_like, with_arrays
from elsewise.features import Attribute, attributes

if TYPE_CHECKING:
    from elsewise.features import Schema


# Background rows offered as donors in one iteration.
DONORS = 64
# The same where rows are offered nothing but donors, and parts of the way to one.
MANY_DONORS = 256
PARTS = 12
# Units taken from a donor one by one, at most.
ONE_BY_ONE = 48
# Units put back in one iteration, at most.
MOST_REVERTED = 128
# Sizes of shifts, in standard deviations of the feature.
SHIFT_SCALES = (0.1, 0.3, 1.0)
# Share of edits drawn without regard to past success.
EXPLORE = 0.3


class Source(IntEnum):
    """Where a cell's new value comes from."""

    KEEP = 0
    VALUE = 1
    SHIFT = 2
    ANCHOR = 3
    FACTUAL = 4
    DONOR = 5
    TOWARDS = 6
    """A part of the way from the factual value to the donor's; the value says which."""


class Unit(NamedTuple):
    """Columns that move together: a number, a category, or a one-hot group."""

    columns: tuple[int, ...]
    choices: np.ndarray | None
    """ndarray (L, len(columns)): the values it can take; None for a number."""
    scale: float
    """Standard deviation of a number."""


def units(schema: Schema, seen: np.ndarray) -> tuple[Unit, ...]:
    """List what may move, one unit per number, category or one-hot group.

    Parameters
    ----------
    seen
        ndarray (m, p): codes of rows; a category moves to levels seen in them, or to the levels
        that the schema allows by name.
    """
    # Groups last: edits are drawn by the places of the units, so that the order is kept for good.
    moving = sorted(attributes(schema), key=lambda attribute: attribute.grouped)
    found = [_unit(attribute, seen) for attribute in moving if attribute.free]
    return tuple(unit for unit in found if unit.choices is None or unit.choices.size)


def _unit(attribute: Attribute, seen: np.ndarray) -> Unit:
    """The free columns of an attribute and what they can be."""
    first, j = attribute.features[0], attribute.places[0]
    if attribute.grouped:
        pairs = zip(attribute.places, attribute.features, strict=True)
        columns = tuple(place for place, feature in pairs if feature.free)
        return Unit(columns, np.eye(len(columns)), 1.0)
    if attribute.numeric:
        return Unit((j,), None, first.scale)
    codes = np.unique(seen[~np.isnan(seen[:, j]), j])
    if first.allowed is not None:
        codes = np.array([float(first.levels.index(level)) for level in first.allowed])
    return Unit((j,), codes[:, None], 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """The edits of one iteration, as recorded."""

    sources: np.ndarray
    """int ndarray (C, p): a `Source` per edit and column; says what to compute, so always NumPy."""
    values: Array
    """(C, p): the value or the shift, where the source asks for one."""
    donors: Array
    """(D, p): codes of the donors."""
    donor_outputs: Array
    """(D, K): the model's outputs on the donors."""

    def like(self, reference: Array) -> Edits:
        """The edits in the library and on the device of ``reference``."""
        names = ("values", "donors", "donor_outputs")
        return with_arrays(self, lambda array: asarray_like(array, reference), *names)


class EditScores(NamedTuple):
    """What helped so far: a running mean of the improvement per source and per unit."""

    sources: np.ndarray
    """ndarray (7,): one per `Source`."""
    units: np.ndarray
    """ndarray (U,)."""

    @classmethod
    def none(cls, count: int) -> EditScores:
        """No experience yet."""
        return cls(np.zeros(len(Source)), np.zeros(count))


def draw_edits(
    moving: Sequence[Unit],
    background: np.ndarray,
    background_outputs: np.ndarray,
    luck: EditScores,
    count: int,
    rng: np.random.Generator,
) -> Edits:
    """Draw ``count`` edits: one or two units each, more for donors.

    Parameters
    ----------
    moving
        What may move.
    background, background_outputs
        ndarrays (m, p) and (m, K): where observed values and donors come from.
    luck
        Past success; a share of the edits ignores it.
    """
    kinds = np.array([Source.VALUE, Source.SHIFT, Source.ANCHOR, Source.FACTUAL, Source.DONOR])
    kind = rng.choice(kinds, size=count, p=_odds(luck.sources[kinds]))
    # The units with the largest keys: drawing without replacement at the given odds.
    # Gumbel keys sort like draws one after the other, at the cost of a single batched sort.
    keys = np.log(_odds(luck.units)) + rng.gumbel(size=(count, len(moving)))
    rank = np.argsort(np.argsort(-keys, axis=1), axis=1)
    chosen = rank < _sizes(kind, len(moving), rng)[:, None]
    sources = np.zeros((count, background.shape[1]), dtype=np.int64)
    values = np.zeros(sources.shape)
    for u, unit in enumerate(moving):
        own, new = _unit_edits(unit, kind, background, rng)
        columns = list(unit.columns)
        sources[:, columns] = np.where(chosen[:, u], own, Source.KEEP)[:, None]
        values[:, columns] = np.where(chosen[:, u, None], new, 0.0)
    return _with_donors(sources, values, background, background_outputs, DONORS, rng)


def donor_edits(
    moving: Sequence[Unit],
    background: np.ndarray,
    background_outputs: np.ndarray,
    rng: np.random.Generator,
) -> Edits:
    """Offer each row its best donor as a whole, points on the way to it, and single units of it.

    For rows that nothing else moves: where a model is flat, no slope and no small change leads
    anywhere, but a row that already has the wanted output does.
    """
    single = rng.permutation(len(moving))[:ONE_BY_ONE]
    ways = 1 + PARTS
    # Points anywhere on the line: over a few iterations rows find the nearest one that serves.
    parts = (np.arange(PARTS) + rng.random()) / PARTS
    sources = np.zeros((ways + single.size, background.shape[1]), dtype=np.int64)
    values = np.zeros(sources.shape)
    for unit in moving:
        columns = list(unit.columns)
        sources[:ways, columns] = Source.DONOR
        if unit.choices is None:
            sources[1:ways, columns] = Source.TOWARDS
            values[1:ways, columns] = parts[:, None]
    for place, u in enumerate(single):
        sources[ways + place, list(moving[u].columns)] = Source.DONOR
    return _with_donors(sources, values, background, background_outputs, MANY_DONORS, rng)


def _with_donors(
    sources: np.ndarray,
    values: np.ndarray,
    background: np.ndarray,
    outputs: np.ndarray,
    most: int,
    rng: np.random.Generator,
) -> Edits:
    """Draw the donors of edits, at most so many of the background rows."""
    drawn = rng.choice(len(background), size=min(most, len(background)), replace=False)
    donors, donor_outputs = background[drawn], outputs[drawn]
    return Edits(sources=sources, values=values, donors=donors, donor_outputs=donor_outputs)


def revert_edits(moving: Sequence[Unit], like: Edits, rng: np.random.Generator) -> Edits:
    """One edit per unit that takes it back to its factual value; donors as in ``like``.

    Of a wide table, for some of the units: every row is offered every edit.
    """
    if len(moving) > MOST_REVERTED:
        chosen = rng.choice(len(moving), MOST_REVERTED, replace=False)
        moving = [moving[k] for k in np.sort(chosen)]
    shape = (len(moving), like.values.shape[1])
    sources = np.zeros(shape, dtype=np.int64)
    for u, unit in enumerate(moving):
        sources[u, list(unit.columns)] = Source.FACTUAL
    sources = np.concatenate([sources, like.sources])
    return replace(like, sources=sources, values=np.concatenate([np.zeros(shape), like.values]))


def pair_edits(moving: Sequence[Unit], drawn: Edits, rng: np.random.Generator) -> Edits:
    """Let about half of the edits put one more unit, which they leave, back to its factual value.

    Where each change is worth its cost, another may still be worth more in its place.
    """
    count = len(drawn.sources)
    back = np.where(rng.random(count) < 0.5, rng.integers(len(moving), size=count), -1)
    sources = drawn.sources.copy()
    for u, unit in enumerate(moving):
        put = (back == u) & (sources[:, unit.columns[0]] == Source.KEEP)
        sources[np.ix_(put, unit.columns)] = Source.FACTUAL
    return replace(drawn, sources=sources)


def _sizes(kind: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """How many units each edit changes: new values one or two, what exists already 1, 2, 4, ..."""
    few = 1 + (rng.random(kind.size) < 0.35)
    many = 2 ** rng.integers(0, count.bit_length() + 1, size=kind.size)
    return np.where((kind == Source.VALUE) | (kind == Source.SHIFT), few, many)


def _unit_edits(
    unit: Unit, kind: np.ndarray, background: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """One unit's source (C,) and value (C, columns) in every edit, should it be chosen."""
    if unit.choices is not None:
        levels = unit.choices[rng.integers(len(unit.choices), size=kind.size)]
        moves = (kind == Source.SHIFT) | (kind == Source.ANCHOR)
        return np.where(moves, Source.VALUE, kind), levels
    shift = unit.scale * rng.choice(SHIFT_SCALES, kind.size) * rng.standard_normal(kind.size)
    observed = background[rng.integers(len(background), size=kind.size), unit.columns[0]]
    missing = (kind == Source.VALUE) & np.isnan(observed)
    value = np.where(kind == Source.SHIFT, shift, np.nan_to_num(observed))
    return np.where(missing, Source.KEEP, kind), value[:, None]


def _odds(luck: np.ndarray) -> np.ndarray:
    """Probabilities that mix past success with exploration."""
    even = np.full(luck.size, 1.0 / luck.size)
    total = luck.sum()
    return even if total <= 0 else EXPLORE * even + (1.0 - EXPLORE) * luck / total


def update_scores(
    luck: EditScores, edits: Edits, moving: Sequence[Unit], gains: np.ndarray
) -> EditScores:
    """Update past success with the mean gain (C,) each edit brought to the rows that took it."""
    sources, helped = np.zeros(len(Source)), np.zeros(len(moving))
    table = edits.sources
    for unit_index, unit in enumerate(moving):
        used = table[:, unit.columns[0]]
        helped[unit_index] = gains[used != Source.KEEP].sum()
        sources += np.bincount(used, gains, minlength=len(Source)) * (used != Source.KEEP).any()
    sources[Source.KEEP] = 0.0
    # Old gains fade with 0.7 an iteration: what helped far from the bound stops helping near it.
    return EditScores(0.7 * luck.sources + sources, 0.7 * luck.units + helped)
