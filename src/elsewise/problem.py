"""The question: a population, a model, a target, and how far each side may be."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from elsewise._arrays import Array, asarray_like, namespace, take
from elsewise.confidence import Method
from elsewise.errors import InvalidInput
from elsewise.features.legal import rows_outside
from elsewise.targets import Constant, Derived, Target

if TYPE_CHECKING:
    from elsewise.features import Embedding, Legal, Schema
    from elsewise.models import Outputs

__all__ = ["Limits", "Population", "Problem", "broken_rows", "generator", "populate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How far the counterfactual may be from the factual inputs and from the target outputs.

    Distances are 2-Wasserstein distances on the root scale: inputs sliced, in standard deviations
    of the background; outputs in the model's own units. ``None`` means "as small as possible".

    Examples
    --------
    >>> Limits(inputs=0.2, outputs=0.1).side_level
    0.975
    """

    inputs: float | None = None
    """Bound on the upper limit of the input distance."""
    outputs: float | None = None
    """Bound on the upper limit of the output distance."""
    confidence: float = 0.95
    """Confidence that both statements hold together."""
    trim: float = 0.05
    """Share of mass at either end about which nothing is certified."""
    method: str = "auto"
    """Kind of the upper limits: "auto" (asymptotic; finite-sample where few rows moved, or where
    nothing is trimmed and rows are few), "asymptotic", "finite-sample", or "exact" (the rows are
    the population and no limit is claimed, see ``population="all"`` of `explain`)."""
    support: tuple[float, float] | None = None
    """Ends that no output can leave; known to be 0 and 1 for probabilities."""
    cutoff: float | None = None
    """The output that counts as passing in the certificate's shares; None: 0.5 for probabilities,
    else what the target names, or the median output."""

    def __post_init__(self) -> None:
        for name in ("inputs", "outputs"):
            bound = getattr(self, name)
            if bound is not None and not (_is_number(bound) and 0 < bound < math.inf):
                raise InvalidInput(
                    f"limits.{name}",
                    expected="a positive number, or None for 'as small as possible'",
                    received=repr(bound),
                    fix=f"leave {name} out, or give a distance such as 0.2",
                )
        if not (_is_number(self.confidence) and 0 < self.confidence < 1):
            raise InvalidInput(
                "limits.confidence",
                expected="a number strictly between 0 and 1",
                received=repr(self.confidence),
                fix="0.95 is usual",
            )
        if not (_is_number(self.trim) and 0 <= self.trim < 0.5):
            raise InvalidInput(
                "limits.trim",
                expected="a number in [0, 0.5)",
                received=repr(self.trim),
                fix="0.05 leaves out 5 % at either end",
            )
        if self.method not in list(Method):
            raise InvalidInput(
                "limits.method",
                expected=", ".join(repr(kind.value) for kind in Method),
                received=repr(self.method),
                fix="'auto' chooses",
            )
        if self.support is not None and not _is_range(self.support):
            raise InvalidInput(
                "limits.support",
                expected="two finite numbers, lower < upper, or None",
                received=repr(self.support),
                fix="give the ends that no output can leave, such as (0, 100)",
            )
        if self.cutoff is not None and not (_is_number(self.cutoff) and math.isfinite(self.cutoff)):
            raise InvalidInput(
                "limits.cutoff",
                expected="a finite number, or None",
                received=repr(self.cutoff),
                fix="give the output from which on a row counts as passing",
            )

    @property
    def side_level(self) -> float:
        """Level of each side, so that both hold jointly at ``confidence`` (Bonferroni)."""
        return (1.0 + self.confidence) / 2.0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_range(ends: object) -> bool:
    if not (isinstance(ends, tuple | list) and len(ends) == 2 and all(map(_is_number, ends))):
        return False
    low, high = ends
    return bool(-math.inf < low < high < math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Everything the solver needs to know, and nothing about frames or frameworks."""

    factual: Array
    """Array (n, p): codes of the rows to explain."""
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
    obeys: Callable[[Array], np.ndarray] | None = None
    """Codes (n, p) to bool (n,): which rows keep every rule; None without rules."""
    limits: Limits = field(default_factory=Limits)
    """How far each side may be."""
    unit: float = 1.0
    """What outputs are counted in where they are weighed against inputs."""
    seed: int = 0
    """The one source of randomness."""

    def generator(self, purpose: str) -> np.random.Generator:
        """Return the random generator for one purpose: the same seed and purpose, the same draws.

        Purposes are named so that, say, asking for more bootstrap draws never changes directions.
        """
        return generator(self.seed, purpose)


def generator(seed: int, purpose: str) -> np.random.Generator:
    """Return the random generator of a seed for one purpose."""
    return np.random.default_rng([seed, *purpose.encode()])


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
    pinned: Array
    """Boolean array (n,): rows that stay: already as wanted, or breaking a rule or range."""
    complete: bool
    """Whether no cell is missing; then none ever is, as rows move."""

    def embed(self, embedding: Embedding, codes: Array) -> Array:
        """Return phi(codes), (n, d), of these rows, wherever they have moved."""
        return embedding.embed_present(codes) if self.complete else embedding.embed(codes)

    def block(self, rows: slice) -> Population:
        """Some of the rows, one after the other."""
        return Population(
            codes=self.codes[rows, ...],
            embedded=self.embedded[rows, ...],
            outputs=self.outputs[rows, ...],
            legal=self.legal.block(rows),
            wanted=None if self.wanted is None else self.wanted[rows, ...],
            pinned=self.pinned[rows],
            complete=self.complete,
        )

    def take(self, index: Array) -> Population:
        """Some of the rows, int (m,)."""
        return Population(
            codes=take(self.codes, index),
            embedded=take(self.embedded, index),
            outputs=take(self.outputs, index),
            legal=self.legal.take(index),
            wanted=None if self.wanted is None else take(self.wanted, index),
            pinned=take(self.pinned, index),
            complete=self.complete,
        )


def broken_rows(problem: Problem, codes: Array) -> Array:
    """Return, bool (n,), the rows that break a rule or a declared range, and so stay."""
    broken = rows_outside(problem.schema.features, codes)
    if problem.obeys is None:
        return broken
    return broken | asarray_like(~problem.obeys(codes), broken)


def populate(problem: Problem, codes: Array) -> Population:
    """Look at rows before they move."""
    xp = namespace(codes)
    outputs = problem.precise.values(codes)
    wanted, pinned = None, broken_rows(problem, codes)
    if isinstance(problem.target, Derived | Constant):
        wanted = problem.target.of(outputs)
        pinned = pinned | xp.all(wanted == outputs, axis=-1)
    legal = problem.schema.legal(codes, broken=pinned)
    return Population(
        codes=codes,
        embedded=problem.embedding.embed(codes),
        outputs=outputs,
        legal=legal,
        wanted=wanted,
        pinned=pinned,
        complete=not bool(xp.any(xp.isnan(codes))),
    )
