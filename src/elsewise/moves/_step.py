"""The fit is a recording; the map replays it on any row.

One iteration is a row-wise function once its monotone maps are known: per direction from the
current projection to the factual quantile, for outputs from the current output to the target
quantile. A ``Step`` holds those tables, the edits and eta; a ``Map`` is the sequence of steps. The
fit itself moves its rows by applying the step it just recorded, so replaying the map on the fit's
rows gives the fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from elsewise._arrays import Array, namespace
from elsewise.moves._edits import Edits
from elsewise.transport import MonotoneMaps

if TYPE_CHECKING:
    from elsewise.request import Population, Problem


class Rows(NamedTuple):
    """Rows on the way: where they are and what the model says there."""

    codes: Array
    """Array (n, p)."""
    outputs: Array
    """Array (n, K)."""

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Return the rows of all parts, one after the other."""
        codes, outputs = zip(*parts, strict=True)
        xp = namespace(codes[0])
        return cls(xp.concat(codes), xp.concat(outputs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """How rows move within an iteration; part of the map, so that replaying needs nothing else."""

    gradient: bool = False
    """True: the paper's gradient step. False: propose legal rows, keep the best."""
    tau: float = 1.0
    """Step size of the gradient step."""
    noise: float = 0.0
    """Standard deviation of the noise added to the start, in embedding units."""
    population_weight: float = 1.0
    """Share of the transported anchor in the anchor; the rest is the factual row."""
    near: float | None = None
    """How near to what an at_most, at_least or share target asks is near enough: where changes are
    taken back a row stays so near, or no farther than it is. None: nothing keeps it there."""


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


class MoveContext(NamedTuple):
    """Everything that `move` reads: the question, the recorded step, and the rows as they are."""

    problem: Problem
    motion: Motion
    population: Population
    """Where the rows started."""
    step: Step
    rows: Rows
    embedded: Array
    """Array (n, d): the rows' embedding."""

    @property
    def price(self) -> float:
        """Cost of a changed cell, in the units of q_i; 0 where it costs nothing."""
        dimension: int = self.embedded.shape[-1]
        return (1.0 - self.step.eta) * self.step.sparsity / dimension

    def block(self, rows: slice) -> MoveContext:
        """Some of the rows, one after the other."""
        return self._replace(
            population=self.population.block(rows),
            rows=Rows(*(part[rows, ...] for part in self.rows)),
            embedded=self.embedded[rows, ...],
        )


class Place(NamedTuple):
    """Where rows are, or could be, and what that costs them."""

    codes: Array
    """Array (n, p)."""
    outputs: Array
    """Array (n, K)."""
    costs: Array
    """Array (n,)."""

    def or_cheaper(self, other: Place) -> Place:
        """Here, or there for the rows to which that is cheaper; a tie leaves a row here."""
        xp = namespace(self.costs)
        there = other.costs < self.costs
        return Place(
            xp.where(there[:, None], other.codes, self.codes),
            xp.where(there[:, None], other.outputs, self.outputs),
            xp.where(there, other.costs, self.costs),
        )


class Moved(NamedTuple):
    """The rows after an iteration, and what that brought."""

    rows: Rows
    embedded: Array
    """Array (n, d): their embedding."""
    costs: Array
    """Array (2, n): each row's cost before and after."""
    gains: Array
    """Array (C,): what each offer brought, summed over the rows that took it; edits first."""

    @classmethod
    def to(cls, now: MoveContext, last: Place, before: Array, gains: Array) -> Moved:
        """Return the rows at the place they took, with their costs (n,) before."""
        embedded = now.problem.embedding.embed(last.codes, now.population.complete)
        costs = namespace(before).stack([before, last.costs])
        return cls(Rows(last.codes, last.outputs), embedded, costs, gains)
