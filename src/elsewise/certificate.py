"""The certificate: what is claimed about the two distances, at what level, on what assumption."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from elsewise.confidence import Comparison, UpperLimit, clt_limit, default_limit
from elsewise.maps import Rows
from elsewise.problem import Limits, Population, Problem
from elsewise.sides import input_comparison, output_comparison, output_directions
from elsewise.transport import direction_blocks

__all__ = ["Certificate", "Evidence", "Kind", "certify", "certify_inputs", "certify_outputs"]

BOOTSTRAP_WORK = 300_000_000
"""Above this many resampled projections the bootstrap is left out and the CLT stands alone."""


class Kind(StrEnum):
    """What the rows behind a certificate allow it to speak of."""

    IN_SAMPLE = "in-sample"
    """Computed on the rows the map was fitted to: descriptive, as in the paper."""
    HELD_OUT = "held-out"
    """Computed on rows the fit never saw: speaks of the population they were drawn from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One side of the certificate; distances on the root scale."""

    estimate: float
    """Trimmed distance of the samples."""
    untrimmed: float
    """The same with nothing left out."""
    upper_limit: float
    """One-sided upper limit at the side's level."""
    bound: float | None
    """What was asked for; None: as small as possible."""
    probability: float | None
    """Largest level at which the limit is under the bound; None without a bound."""
    method: str
    assumption: str
    directions: int
    """Number of directions, none of which the optimizer used."""

    @property
    def met(self) -> bool:
        """Whether the upper limit is within the bound."""
        return self.bound is None or self.upper_limit <= self.bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Both sides, and what they say together."""

    inputs: Evidence
    outputs: Evidence
    kind: Kind
    confidence: float
    """Joint level of the two upper limits."""
    trim: float
    rows: int

    @property
    def met(self) -> bool:
        """Whether every given bound is met."""
        return self.inputs.met and self.outputs.met

    @property
    def probability(self) -> float | None:
        """The paper's P: the smaller attained level of the bounded sides."""
        levels = [p for p in (self.inputs.probability, self.outputs.probability) if p is not None]
        return min(levels) if levels else None

    @property
    def joint_probability(self) -> float | None:
        """Level at which both bounds hold together, by Bonferroni; None unless both are given."""
        first, second = self.inputs.probability, self.outputs.probability
        return None if first is None or second is None else max(0.0, first + second - 1.0)

    def _repr_html_(self) -> str:
        from elsewise.report._notebook import certificate_html

        return certificate_html(self)

    def __str__(self) -> str:
        lines = [f"Certificate ({self.kind}, {self.confidence:.0%} jointly, {self.rows} rows)"]
        for name, side in (("inputs", self.inputs), ("outputs", self.outputs)):
            bound = "" if side.bound is None else f", bound {side.bound:.3g}"
            verdict = "" if side.bound is None else (" - met" if side.met else " - not met")
            level = "" if side.probability is None else f", P = {side.probability:.4g}"
            lines.append(
                f"  {name}: distance {side.estimate:.4f} (untrimmed {side.untrimmed:.4f}), "
                f"upper limit {side.upper_limit:.4f}{bound}{verdict}{level}  [{side.method}]"
            )
        if self.trim > 0:
            lines.append(
                f"  Nothing is claimed about the most extreme {self.trim:.0%} at either end."
            )
        if self.kind is Kind.IN_SAMPLE:
            lines.append(
                "  Descriptive: computed on the rows the map was fitted to, not on unseen ones."
            )
        lines.append("  P is one minus the p-value of 'the distance is at least the bound'.")
        return "\n".join(lines)


def certify(
    problem: Problem, population: Population, rows: Rows, draws: int, kind: Kind
) -> Certificate:
    """Certify moved rows against both bounds, on directions the optimizer never saw."""
    return Certificate(
        inputs=certify_inputs(problem, population, rows, draws),
        outputs=certify_outputs(problem, population, rows, draws),
        kind=kind,
        confidence=problem.limits.confidence,
        trim=problem.limits.trim,
        rows=int(rows.codes.shape[0]),
    )


def certify_inputs(problem: Problem, population: Population, rows: Rows, draws: int) -> Evidence:
    """Certify the input distance on fresh directions."""
    directions = direction_blocks(
        problem.embedding.size, problem.generator("certificate directions")
    )
    comparison = input_comparison(problem, population, rows.codes, directions)
    rng = problem.generator("certificate inputs")
    return _evidence(comparison, problem.limits, problem.limits.inputs, draws, rng)


def certify_outputs(problem: Problem, population: Population, rows: Rows, draws: int) -> Evidence:
    """Certify the output distance; several output columns on fresh directions."""
    directions = output_directions(problem, problem.generator("certificate output directions"))
    comparison = output_comparison(problem, population, rows.outputs, directions)
    rng = problem.generator("certificate outputs")
    return _evidence(comparison, problem.limits, problem.limits.outputs, draws, rng)


def _evidence(
    comparison: Comparison,
    limits: Limits,
    bound: float | None,
    draws: int,
    rng: np.random.Generator,
) -> Evidence:
    count, size = comparison.shape
    limit: UpperLimit
    if count * size * draws <= BOOTSTRAP_WORK:
        limit = default_limit(comparison, draws, rng)
    else:
        limit = clt_limit(comparison)
    return Evidence(
        estimate=limit.estimate,
        untrimmed=comparison.untrimmed_distance,
        upper_limit=limit.upper(limits.side_level),
        bound=bound,
        probability=None if bound is None else limit.probability(bound),
        method=limit.method,
        assumption=limit.assumption,
        directions=count,
    )
