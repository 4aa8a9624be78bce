"""Rows by actions: what an action costs a row, and whether it brings the row there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from elsewise._arrays import changed_cells, to_double, to_numpy
from elsewise._resources import block_rows
from elsewise.errors import InvalidInput, bad_column
from elsewise.features import Encoder, Kind, Legal
from elsewise.moves import row_noise
from elsewise.policy._actions import Actions, joined
from elsewise.policy._select import far_price
from elsewise.request import Problem, broken_rows
from elsewise.targets import Question, Wanted


def prices_of(problem: Problem, given: Mapping[Any, float] | None) -> list[float] | None:
    """Return a price per column, from ``given`` or the schema; None where nothing has a price."""
    features = problem.schema.features
    known = {f.name: f.cost for f in features if f.cost is not None} | dict(given or {})
    for name, price in known.items():
        _ = problem.schema[name]  # refuses unknown names
        if not (isinstance(price, int | float | np.number) and 0 <= price < np.inf):
            fix = "0 is free of charge; freeze a column that must not change"
            raise bad_column(name, "a finite price >= 0", repr(price), fix, what="cost of")
    lacking = [f.name for f in features if f.free and f.name not in known]
    if known and lacking:
        fix = f"add Schema.cost({lacking[0]!r}, per_unit=...), or freeze the column"
        expected = "a price for every column that may move"
        raise InvalidInput("cost", expected, f"none for {lacking[0]!r}", fix)
    return [float(known.get(f.name, 0.0)) for f in features] if known else None


class Standing(NamedTuple):
    """Rows before any action."""

    codes: np.ndarray
    """ndarray (n, p)."""
    outputs: np.ndarray
    """ndarray (n, K)."""
    short: np.ndarray
    """ndarray (n,): how far outside the wanted set."""
    needs: np.ndarray
    """bool (n,): outside the wanted set and legal themselves."""
    ties: np.ndarray
    """ndarray (n,): a number drawn from the row itself, which orders equal costs."""

    def take(self, index: np.ndarray) -> Standing:
        """Return some of the rows."""
        return Standing(*(part[index] for part in self))


class Table(NamedTuple):
    """Candidates with what they cost the rows of the fit."""

    actions: Actions
    costs: np.ndarray
    """ndarray (m, C): infinite where a row cannot take the action."""
    short: np.ndarray
    """ndarray (m, C): how far outside the row then is."""

    @property
    def arriving(self) -> np.ndarray:
        """Costs (m, C), infinite where the row does not arrive."""
        return np.where(self.short == 0, self.costs, np.inf)

    def take(self, index: np.ndarray) -> Table:
        """Return some of the candidates."""
        return Table(self.actions.take(index), self.costs[:, index], self.short[:, index])

    def joined(self, other: Table) -> Table:
        """Return the candidates of both."""
        tables = (np.concatenate(both, axis=1) for both in zip(self[1:], other[1:], strict=True))
        return Table(joined([self.actions, other.actions]), *tables)

    def best(self, count: int) -> Table:
        """Return the candidates that are worth most by themselves, ``count`` at most."""
        arriving = self.arriving
        worth = np.maximum(far_price(arriving) - arriving, 0.0).sum(axis=0)
        order = np.argsort(-worth, kind="stable")[:count]
        return self.take(np.sort(order[worth[order] > 0]))


@dataclass(frozen=True, slots=True)
class Trial:
    """What it takes to try actions on any rows."""

    problem: Problem
    encoder: Encoder
    question: Question
    """Which outputs a row arrives in, and in what words."""
    cost: Callable[..., Any] | list[float] | None
    """A function of the frames before and after, a price per column, or None: the squared move."""
    most: float
    """Largest cost of a row."""
    grid: np.ndarray
    """ndarray (p,): parts of a unit that a column counts in; 0 without a grid."""

    def outputs(self, codes: np.ndarray) -> np.ndarray:
        """Return the model's outputs (n, K) on codes (n, p)."""
        model = self.problem.outputs
        return to_double(model.values(model.place(codes)))

    def short(self, outputs: np.ndarray) -> np.ndarray:
        """Return how far rows with outputs (n, K) are outside the wanted set, (n,); 0 inside."""
        wanted = cast(Wanted, self.question.wanted)  # other questions are refused
        margins = wanted.margins(outputs, self.problem.outputs.probability)
        gap = np.maximum(-margins, np.finfo(np.float64).tiny)
        return np.where(wanted.contains(outputs), 0.0, gap)

    def standing(self, codes: np.ndarray) -> Standing:
        """Ask the model about rows as they are."""
        outputs = self.outputs(codes)
        short = self.short(outputs)
        broken = to_numpy(broken_rows(self.problem, codes))
        # Codes of fixed values depend on the frame they come in, so they order nothing.
        told = [f.kind is not Kind.FIXED for f in self.problem.schema.features]
        ties = row_noise(codes[:, told], self.problem.seed, 1)[:, 0]
        return Standing(codes, outputs, short, (short > 0) & ~broken, ties)

    def costs(self, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        """Return the cost (n,) of moving rows ``old`` to ``new``, codes (n, p)."""
        if self.cost is None:
            embed, place = self.problem.embedding.embed, self.problem.outputs.place
            moves = to_double(embed(place(new)) - embed(place(old)))
            return np.asarray(np.sum(moves**2, axis=1))
        if not callable(self.cost):
            features = self.problem.schema.features
            change = np.nan_to_num(np.abs(new - old))
            numbers = np.array([f.numeric or f.group is not None for f in features])
            # A row of a one-hot group leaves one column for another: half of each price.
            halves = np.array([0.5 if f.group is not None else 1.0 for f in features])
            units = np.where(numbers, change * halves, change > 0)
            return np.asarray(units @ np.array(self.cost))
        found = np.asarray(self.cost(self.encoder.present(old), self.encoder.present(new)), float)
        if found.shape != (len(old),) or not (found >= 0).all():
            received = f"shape {found.shape}, smallest {found.min(initial=np.inf):g}"
            expected = f"{len(old)} costs >= 0, one per row"
            raise InvalidInput("cost", expected, received, "return one number per row")
        return found

    def table(self, rows: Standing, actions: Actions) -> Table:
        """Return what each action costs each row, and how far outside the row then is.

        A cost is infinite where the action is not legal, changes nothing or costs too much; the
        row then is where it was. Memory is bounded by blocks of rows and actions.
        """
        shape = len(rows.codes), len(actions.add)
        costs, short = np.full(shape, np.inf), np.repeat(rows.short[:, None], shape[1], axis=1)
        size = max(1, block_rows(4 * rows.codes.shape[1]))
        legal = self.problem.schema.legal(rows.codes, broken=~rows.needs)
        for start in range(0, shape[0], size):
            block = slice(start, start + size)
            wide = max(1, size // len(rows.codes[block]))
            for first in range(0, shape[1], wide):
                here = block, slice(first, first + wide)
                part = Table(actions.take(here[1]), costs[here], short[here])
                self._fill(rows.codes[block], legal.block(block), part)
        return Table(actions, costs, short)

    def _fill(self, codes: np.ndarray, legal: Legal, table: Table) -> None:
        """Fill a part of the table in place."""
        moved = table.actions.apply(codes, self.grid)
        ok = changed_cells(codes, moved).any(axis=2)
        ok &= ~changed_cells(moved, legal.legalize(moved)).any(axis=2)
        action, row = np.nonzero(ok)
        if self.problem.obeys is not None and len(row):
            kept = self.problem.obeys(moved[action, row])
            action, row = action[kept], row[kept]
        if len(row):
            new = moved[action, row]
            gap, price = self.short(self.outputs(new)), self.costs(codes[row], new)
            paid = price <= self.most
            table.short[row[paid], action[paid]] = gap[paid]
            table.costs[row[paid], action[paid]] = price[paid]
