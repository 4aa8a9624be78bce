"""The cells of the grid: a population, a number of rows, a trim, a method."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

import numpy as np

from .methods import (
    ASYMPTOTIC,
    DRAWS,
    LEVELS,
    METHODS,
    TRIMS,
    Answers,
    answers_of,
    certificate_of,
    seconds_of,
)
from .scenarios import Scenario, large_sample_distances

__all__ = ["REPETITIONS", "Cell", "fingerprint", "measure", "repetitions_of", "truths_of"]

REPETITIONS = {50: 400, 100: 400, 500: 200, 2000: 100}
"""Of outputs; inputs, whose limits cost more, are repeated half as often."""
FINITE_REPETITIONS = 100
"""Finite-sample methods are asked in so many of them: they hardly ever miss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One method in one cell of the grid."""

    scenario: str
    side: str
    dimension: int
    rows: int
    trim: float
    method: str
    repetitions: int
    truth: float
    coverage: float
    """Share of limits at the nominal level that are at or above the truth."""
    ratio: float | None
    """Median limit divided by the truth; None where the truth is 0."""
    limit: float
    """Median limit."""
    below: float
    """Share of limits below their estimate."""
    infinite: float
    """Share of infinite limits."""
    milliseconds: float | None
    """Processor time of one limit; None for the reference's bootstrap, which shares resamples."""
    coverage_80: float | None
    coverage_90: float | None
    coverage_975: float | None
    switched: float | None
    """Share of samples for which the certificate chose a finite-sample method."""
    noticed: float | None = None
    """Share of the certificate's misses that carry a notice; None where nothing is missed."""


def repetitions_of(scenario: Scenario, rows: int) -> int:
    """How often a cell with so many rows is repeated."""
    return REPETITIONS[rows] // (2 if scenario.side == "inputs" else 1)


def truths_of(
    scenario: Scenario, trims: tuple[float, ...] = TRIMS
) -> tuple[list[float], list[float]]:
    """True distances at every trim, and their relative standard errors (0 by quadrature)."""
    if scenario.truth is not None:
        return [scenario.truth(trim) for trim in trims], [0.0] * len(trims)
    distances, errors = large_sample_distances(scenario, trims)
    return distances.tolist(), errors.tolist()


def fingerprint(scenario: Scenario, rows: int, *settings: object) -> str:
    """Hash of the settings, of the limits of one small sample, and of what is chosen for one of n.

    Rewriting the library without changing its numbers keeps it; another method changes it.
    """
    rng = np.random.default_rng([11, *scenario.key.encode()])
    comparisons = scenario.comparisons(rng, 40, TRIMS)
    probe = answers_of(scenario, comparisons, np.full(len(TRIMS), 0.1), rng)
    numbers = {name: [f"{u:.6g}" for u in answer.upper] for name, answer in probe.methods.items()}
    chosen = [
        certificate_of(scenario, comparison, rng, draws=1).method
        for comparison in scenario.comparisons(rng, rows, TRIMS)
    ]
    content = json.dumps([rows, settings, DRAWS, LEVELS, TRIMS, probe.chosen, chosen, numbers])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def measure(
    scenario: Scenario, rows: int, repetitions: int, truths: list[float], seed: int
) -> list[Cell]:
    """Repeat an experiment; return a cell for every trim and method."""
    answers: list[Answers] = []
    seconds: dict[tuple[int, str], float] = {}
    for repetition in range(repetitions):
        rng = np.random.default_rng([seed, repetition, rows, *scenario.key.encode()])
        comparisons = scenario.comparisons(rng, rows, TRIMS)
        drawing, timing = rng.spawn(2)
        finite = repetition < FINITE_REPETITIONS
        answers.append(
            answers_of(scenario, comparisons, np.array(truths), drawing, finite_sample=finite)
        )
        # Each trim is timed once, after a call that filled the caches.
        if 0 < repetition <= len(TRIMS):
            place = repetition - 1
            taken = seconds_of(scenario, comparisons[place], timing)
            seconds |= {(place, method): value for method, value in taken.items()}
    return [
        _cell(scenario, rows, place, method, truths[place], answers, seconds.get((place, method)))
        for place in range(len(TRIMS))
        for method in METHODS
        if method in answers[0].methods
    ]


def _cell(
    scenario: Scenario,
    rows: int,
    place: int,
    method: str,
    truth: float,
    answers: list[Answers],
    seconds: float | None,
) -> Cell:
    answers = [each for each in answers if method in each.methods]
    uppers = np.array([each.methods[method].upper[place] for each in answers])
    covers = np.array([each.methods[method].covers[place] for each in answers])
    estimates = np.array([each.estimates[place] for each in answers])
    switched = float(np.mean([each.chosen[place] not in ASYMPTOTIC for each in answers]))
    means = [None if np.isnan(share) else float(share) for share in covers.mean(axis=0)]
    shares = dict(zip(LEVELS, means, strict=True))
    median = float(np.median(uppers))
    said = np.array([each.noticed[place] for each in answers])[uppers < truth]
    return Cell(
        scenario=scenario.name,
        side=scenario.side,
        dimension=scenario.dimension,
        rows=rows,
        trim=TRIMS[place],
        method=method,
        repetitions=len(answers),
        truth=truth,
        coverage=float(np.mean(uppers >= truth)),
        ratio=median / truth if truth > 0 else None,
        limit=median,
        below=float(np.mean(uppers < estimates)),
        infinite=float(np.mean(np.isinf(uppers))),
        milliseconds=None if seconds is None else 1000.0 * seconds,
        coverage_80=shares[0.8],
        coverage_90=shares[0.9],
        coverage_975=shares[0.975],
        switched=switched if method == "certificate" else None,
        noticed=float(np.mean(said)) if method == "certificate" and said.size else None,
    )
