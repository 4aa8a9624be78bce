"""Proposals for any model: small edits of a row, drawn once and offered to every row.

An edit says, column by column, where a cell's new value comes from: a given value, a shift, the
row's anchor, its factual value, or a donor (the background row that would serve it best). The fit
draws edits where they have helped before and records them, so that replaying them on new rows needs
no randomness and no other rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from elsewise._arrays import Array, asarray_like, to_numpy, with_arrays
from elsewise.features import Attribute, attributes

if TYPE_CHECKING:
    from elsewise.features import Schema
    from elsewise.request import Problem


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
SHIFT_SCALES = np.array([0.1, 0.3, 1.0])
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


# As plain integers, which NumPy compares many times faster with.
KEEP, VALUE, SHIFT, ANCHOR, _, _, TOWARDS = map(int, Source)
HAS_VALUE = np.isin(np.arange(len(Source)), (VALUE, SHIFT, TOWARDS))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """What edits are drawn from, which kinds are drawn, and what helped so far."""

    units: tuple[Unit, ...]
    """What may move."""
    background: np.ndarray
    """(m, p): rows that values and donors come from."""
    outputs: np.ndarray
    """(m, K): the model's outputs on them."""
    smooth: bool
    """Whether the model has a slope."""
    count: int | None
    """Number of edits of an iteration; None: by the number of rows."""
    of_sources: np.ndarray
    """(7,): running mean of the improvement per `Source`."""
    of_units: np.ndarray
    """(U,): the same per unit."""
    donors: bool = False
    """Whether rows are offered donors, and points on the way to them, beside what they are."""
    pairs: bool = False
    """Whether edits change one unit and put another back."""
    sparsity: float = 0.0
    """Cost of a changed cell, in units of a move by one standard deviation, squared."""

    @classmethod
    def of(cls, problem: Problem, count: int | None = None) -> Stock:
        """Return the stock of a problem, without experience."""
        background, factual = to_numpy(problem.background), to_numpy(problem.factual)
        moving = units(problem.schema, np.concatenate([background, factual]))
        return cls(
            units=moving,
            background=background,
            outputs=to_numpy(problem.of_background()),
            smooth=problem.outputs.smooth,
            count=count,
            of_sources=np.zeros(len(Source)),
            of_units=np.zeros(len(moving)),
        )

    @property
    def numbers_only(self) -> bool:
        """Whether all that may move are numbers."""
        return all(unit.choices is None for unit in self.units)

    def draw(self, problem: Problem, rows: Array, iteration: int) -> Edits | None:
        """Draw the edits of an iteration for rows (n, p); None where slopes alone lead."""
        rng = problem.generator(f"edits {iteration}")
        if self.donors and iteration % 2:
            return donor_edits(self, rng).like(rows)
        by_slopes = self.smooth and self.numbers_only
        if by_slopes and self.sparsity == 0:
            return None
        # A model with a slope is cheap to ask, and edits are then few of its proposals. Where all
        # are numbers, slopes propose what is new, and edits only take changes back.
        count = self.count or _edit_count(rows.shape[0]) * (2 if self.smooth else 1)
        drawn = draw_edits(self, 0 if by_slopes else count, rng)
        if self.pairs:
            drawn = pair_edits(self.units, drawn, rng)
        if self.pairs or self.sparsity > 0:
            drawn = revert_edits(self.units, drawn, rng)
        return drawn.like(rows)

    def credited(self, edits: Edits, brought: Array, rows: int) -> Stock:
        """Return the stock that knows what each edit brought, (C,), summed over so many rows."""
        gains = to_numpy(brought)[: len(edits.sources)] / rows
        sources, helped = np.zeros(len(Source)), np.zeros(len(self.units))
        for place, unit in enumerate(self.units):
            used = edits.sources[:, unit.columns[0]]
            changed = used != KEEP
            if changed.any():
                helped[place] = gains[changed].sum()
                sources += np.bincount(used, gains, minlength=len(Source))
        sources[Source.KEEP] = 0.0
        # Old gains fade with 0.7 an iteration: what helped far away stops helping near the bound.
        return replace(
            self, of_sources=0.7 * self.of_sources + sources, of_units=0.7 * self.of_units + helped
        )


def _edit_count(rows: int) -> int:
    """With many rows each edit is tried many times, so fewer are enough to learn what helps."""
    return 30 + round(30 * min(1.0, math.sqrt(50 / rows)))


def draw_edits(stock: Stock, count: int, rng: np.random.Generator) -> Edits:
    """Draw ``count`` edits: one or two units each, more for donors; what helped more often."""
    moving = stock.units
    drawn = np.array([Source.VALUE, Source.SHIFT, Source.ANCHOR, Source.FACTUAL, Source.DONOR])
    kind = rng.choice(drawn, size=count, p=_odds(stock.of_sources[drawn]))
    # The units with the largest keys: drawing without replacement at the given odds.
    # Gumbel keys sort like draws one after the other, at the cost of a single batched sort.
    keys = np.log(_odds(stock.of_units)) + rng.gumbel(size=(count, len(moving)))
    rank = np.argsort(np.argsort(-keys, axis=1), axis=1)
    chosen = rank < _sizes(kind, len(moving), rng)[:, None]
    sources = np.zeros((count, stock.background.shape[1]), dtype=np.int64)
    values = np.zeros(sources.shape)
    kinds = kind, np.where((kind == SHIFT) | (kind == ANCHOR), VALUE, kind)
    for u, unit in enumerate(moving):
        own, new = _unit_edits(unit, kinds, stock.background, rng)
        first, taken = unit.columns[0], chosen[:, u, None]
        columns = slice(first, first + 1) if len(unit.columns) == 1 else list(unit.columns)
        sources[:, columns] = np.where(taken, own[:, None], KEEP)
        values[:, columns] = np.where(taken, new, 0.0)
    return _with_donors(stock, sources, values, DONORS, rng)


def donor_edits(stock: Stock, rng: np.random.Generator) -> Edits:
    """Offer each row its best donor as a whole, points on the way to it, and single units of it.

    For rows that nothing else moves: where a model is flat, no slope and no small change leads
    anywhere, but a row that already has the wanted output does.
    """
    moving = stock.units
    single = rng.permutation(len(moving))[:ONE_BY_ONE]
    ways = 1 + PARTS
    # Points anywhere on the line: over a few iterations rows find the nearest one that serves.
    parts = (np.arange(PARTS) + rng.random()) / PARTS
    sources = np.zeros((ways + single.size, stock.background.shape[1]), dtype=np.int64)
    values = np.zeros(sources.shape)
    for unit in moving:
        columns = list(unit.columns)
        sources[:ways, columns] = Source.DONOR
        if unit.choices is None:
            sources[1:ways, columns] = Source.TOWARDS
            values[1:ways, columns] = parts[:, None]
    for place, u in enumerate(single):
        sources[ways + place, list(moving[u].columns)] = Source.DONOR
    return _with_donors(stock, sources, values, MANY_DONORS, rng)


def _with_donors(
    stock: Stock, sources: np.ndarray, values: np.ndarray, most: int, rng: np.random.Generator
) -> Edits:
    """Draw the donors of edits, at most so many of the background rows."""
    size = len(stock.background)
    drawn = rng.choice(size, size=min(most, size), replace=False)
    donors, outputs = stock.background[drawn], stock.outputs[drawn]
    return Edits(sources=sources, values=values, donors=donors, donor_outputs=outputs)


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
    return np.where((kind == VALUE) | (kind == SHIFT), few, many)


def _unit_edits(
    unit: Unit, kinds: Sequence[np.ndarray], background: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """One unit's source (C,) and value (C, columns) in every edit, should it be chosen.

    ``kinds`` are the sources (C,) drawn for numbers and for levels.
    """
    kind, of_levels = kinds
    if unit.choices is not None:
        levels = unit.choices[rng.integers(len(unit.choices), size=kind.size)]
        return of_levels, levels
    scales = SHIFT_SCALES[rng.integers(len(SHIFT_SCALES), size=kind.size)]
    shift = unit.scale * scales * rng.standard_normal(kind.size)
    observed = background[rng.integers(len(background), size=kind.size), unit.columns[0]]
    if not np.isfinite(observed).all():
        kind = np.where((kind == VALUE) & np.isnan(observed), KEEP, kind)
        observed = np.nan_to_num(observed)
    return kind, np.where(kind == SHIFT, shift, observed)[:, None]


def _odds(luck: np.ndarray) -> np.ndarray:
    """Probabilities that mix past success with exploration."""
    even = np.full(luck.size, 1.0 / luck.size)
    total = luck.sum()
    return even if total <= 0 else EXPLORE * even + (1.0 - EXPLORE) * luck / total
