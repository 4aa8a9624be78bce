"""The question: a population, a model, a target, and how far each side may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from elsewise._arrays import Array, asarray_like, namespace, take, with_arrays
from elsewise.features import rows_outside
from elsewise.models import known_range
from elsewise.targets import Derived, Target

if TYPE_CHECKING:
    from elsewise.features import Embedding, Legal, Schema
    from elsewise.models import Outputs
from elsewise.request._bounds import Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Everything the solver needs to know, and nothing about frames or frameworks."""

    factual: Array
    """Array (n, p): codes of the rows to explain."""
    factual_outputs: Array
    """Array (n, K): what the model says of them, in its own precision."""
    precise_outputs: Array
    """Array (n, K): the same as the search computes it."""
    schema: Schema
    """What may change, and how."""
    embedding: Embedding
    """Codes to the space in which input distances are measured."""
    outputs: Outputs
    """The model, in its own precision: what is certified and returned."""
    precise: Outputs
    """The model as the search computes it: in double precision where it can be."""
    target: Target
    """What its outputs should look like."""
    background: Array
    """Array (m, p): codes of rows that give observed values and donors."""
    background_outputs: Array | None = None
    """Array (m, K): what the search's model says of them, once it has been asked."""
    obeys: Callable[[Array], np.ndarray] | None = None
    """Codes (n, p) to bool (n,): which rows keep every rule; None without rules."""
    bounds: Bounds = field(default_factory=Bounds)
    """How far each side may be."""
    unit: float = 1.0
    """What outputs are counted in where they are weighed against inputs."""
    seed: int = 0
    """The one source of randomness."""
    clusters: np.ndarray | None = None
    """int (n,): which rows belong together, as of one customer; None: they are independent."""

    @property
    def support(self) -> tuple[float, float] | None:
        """The ends that no output can leave, the user's or the model's; None: they are unknown."""
        return self.bounds.support or known_range(self.outputs)

    def of_background(self) -> Array:
        """Return what the search's model says of the background, Array (m, K)."""
        known = self.background_outputs
        return self.precise.values(self.background) if known is None else known

    def generator(self, purpose: str) -> np.random.Generator:
        """Return the random generator for one purpose: the same seed and purpose, the same draws.

        Purposes are named so that, say, asking for more bootstrap draws never changes directions.
        """
        return generator(self.seed, purpose)


def generator(seed: int, purpose: str) -> np.random.Generator:
    """Return the random generator of a seed for one purpose: every draw of the library is one."""
    return np.random.default_rng([seed, *purpose.encode()])


def derived_seed(seed: int, name: str) -> int:
    """Return the seed of a part, the same whichever other parts there are."""
    return int(np.random.SeedSequence([seed, *name.encode()]).generate_state(1)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """Rows at rest: what the row-wise steps need to know about where each row started."""

    codes: Array
    """Array (n, p): factual codes."""
    embedded: Array
    """Array (n, d): factual embedding."""
    outputs: Array
    """Array (n, K): the model's outputs on the factual rows."""
    legal: Legal
    """The box each cell may move in; points in rows that stay."""
    wanted: Array | None
    """Array (n, K): outputs wanted row by row, where the target is a function of the output."""
    shortfall: Array | None
    """Array (n,): how far the factual outputs are from what an at_most, at_least or share target
    asks; None where the target names no such end."""
    pinned: Array
    """Boolean array (n,): rows that stay: already as wanted, or breaking a rule or range."""
    complete: bool
    """Whether no cell is missing; then none ever is, as rows move."""

    def block(self, rows: slice) -> Population:
        """Some of the rows, one after the other."""
        return self._part(lambda array: array[rows, ...], self.legal.block(rows))

    def take(self, index: Array) -> Population:
        """Some of the rows, int (m,)."""
        return self._part(lambda array: take(array, index), self.legal.take(index))

    def _part(self, pick: Callable[[Array], Array], legal: Legal) -> Population:
        arrays = ("codes", "embedded", "outputs", "wanted", "shortfall", "pinned")
        return with_arrays(replace(self, legal=legal), pick, *arrays)


def broken_rows(problem: Problem, codes: Array) -> Array:
    """Return, bool (n,), the rows that break a rule or a declared range, and so stay."""
    broken = rows_outside(problem.schema.features, codes)
    if problem.obeys is None:
        return broken
    return broken | asarray_like(~problem.obeys(codes), broken)


def populate(problem: Problem, codes: Array | None = None) -> Population:
    """Model outputs, legal boxes and wanted outputs of rows that have not moved.

    Of the factual rows by default: the model has been asked about those already.
    """
    if codes is None or codes is problem.factual:
        codes, outputs = problem.factual, problem.precise_outputs
    else:
        outputs = problem.precise.values(codes)
    xp = namespace(codes)
    wanted, shortfall, pinned = None, None, broken_rows(problem, codes)
    if isinstance(problem.target, Derived):
        wanted = problem.target.of(outputs)
        pinned = pinned | xp.all(wanted == outputs, axis=-1)
        shortfall = problem.target.shortfall(outputs)
    legal = problem.schema.legal(codes, broken=pinned)
    return Population(
        codes=codes,
        embedded=problem.embedding.embed(codes),
        outputs=outputs,
        legal=legal,
        wanted=wanted,
        shortfall=shortfall,
        pinned=pinned,
        complete=not bool(xp.any(xp.isnan(codes))),
    )
