"""Whether "needs about n rows" is right: against the n at which four in five limits do."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from elsewise.confidence import rows_needed

from .methods import NOMINAL, certificate_of
from .scenarios import Scenario, scenarios

__all__ = ["CASES", "Case", "Needed", "measure"]

SAMPLES, REPETITIONS = 100, 100
"""Samples that are asked, and limits behind each median."""
STEP = 1.25
"""The simulation climbs by this factor in the number of rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A bound that some rows do not reach yet."""

    key: str
    """Scenario."""
    rows: int
    trim: float


CASES = tuple(
    Case(key=key, rows=100, trim=0.05)
    for key in (
        "outputs-1-constant-target",
        "outputs-1-known-target",
        "outputs-1-derived-target",
        "inputs-10-smooth-move",
        "inputs-10-31pc-subgroup",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """What was said and what was found."""

    scenario: str
    rows: int
    bound: float
    said: float
    """Median over samples of the number of rows said to be needed."""
    low: float
    high: float
    """Quartiles of the same."""
    none: float
    """Share of samples that said that no number of rows would do."""
    found: float
    """Number of rows at which four in five limits are under the bound."""

    @property
    def ratio(self) -> float:
        """How many times too many were said to be needed."""
        return self.said / self.found


def measure(
    case: Case, truth: float, samples: int = SAMPLES, repetitions: int = REPETITIONS
) -> Needed:
    """Ask samples how many rows would do, then look.

    The bound is half-way between the true distance and the median limit.
    """
    scenario = next(one for one in scenarios() if one.key == case.key)
    bound = (truth + _limit(scenario, case, case.rows, repetitions, 0.5)) / 2.0
    said = [_said(scenario, case, bound, repetition) for repetition in range(samples)]
    numbers = [number for number in said if number is not None]
    # A sample that sees no way is one that asks for very many rows.
    low, middle, high = np.quantile([math.inf if n is None else n for n in said], (0.25, 0.5, 0.75))
    return Needed(
        scenario=scenario.name,
        rows=case.rows,
        bound=bound,
        said=float(middle),
        low=float(low),
        high=float(high),
        none=1.0 - len(numbers) / len(said),
        found=_found(scenario, case, bound, repetitions),
    )


def _said(scenario: Scenario, case: Case, bound: float, repetition: int) -> int | None:
    rng = np.random.default_rng([13, repetition, *case.key.encode()])
    (comparison,) = scenario.comparisons(rng, case.rows, (case.trim,))
    limit = certificate_of(scenario, comparison, rng)
    return rows_needed(comparison, limit, bound, NOMINAL, rng)[1]


def _found(scenario: Scenario, case: Case, bound: float, repetitions: int) -> float:
    """Climb until four in five limits are under the bound; interpolate the last step."""
    rows, before = case.rows, math.inf
    while (limit := _limit(scenario, case, rows, repetitions, 0.8)) > bound:
        rows, before = math.ceil(rows * STEP), limit
    if math.isinf(before):
        return float(rows)
    share = (before - bound) / (before - limit)
    return rows / STEP ** (1.0 - share)


def _limit(scenario: Scenario, case: Case, rows: int, repetitions: int, quantile: float) -> float:
    limits = []
    for repetition in range(repetitions):
        rng = np.random.default_rng([17, repetition, rows, *case.key.encode()])
        (comparison,) = scenario.comparisons(rng, rows, (case.trim,))
        limits.append(certificate_of(scenario, comparison, rng).upper(NOMINAL))
    return float(np.quantile(limits, quantile))
