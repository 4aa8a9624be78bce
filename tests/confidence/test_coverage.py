"""How often the limits cover the truth, in a few seconds of simulation.

The full calibration is a benchmark; these scenarios are the ones in which the basic bootstrap of
the paper's reference code fails: a moved copy of the rows, near to them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from benchmarks.calibration.methods import default_limit
from benchmarks.rivals.dkw import dkw_limit
from scipy import stats

from elsewise.confidence import Comparison, bootstrap_limit, clt_limit
from elsewise.transport import Reference, direction_blocks, project

LEVEL, TRIM, ROWS, DRAWS, REPETITIONS = 0.95, 0.1, 100, 99, 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A population that can be sampled, and its true trimmed distance."""

    draw: Callable[[np.random.Generator, int], Comparison]
    truth: float
    support: tuple[float, float] | None = None


def population_distance(draw, rows=100_000):
    return draw(np.random.default_rng(99), rows).distance


def cells(distribution, n, trim):
    """Cut a known distribution into n quantile cells by a fine midpoint rule."""
    levels = (np.arange(n * 64) + 0.5) / (n * 64)
    inside = ((levels > trim) & (levels < 1 - trim)).reshape(n, 64)
    values = distribution.ppf(levels).reshape(n, 64)
    counts = np.maximum(inside.sum(axis=1), 1)
    means = np.sum(values * inside, axis=1) / counts
    spread = np.sum(inside * (values - means[:, None]) ** 2) / inside.sum()
    weights = inside.sum(axis=1) / inside.sum()
    return Reference(partners=means[None, :], weights=weights, spread=np.array([spread]))


@cache
def inputs_of_a_smooth_move() -> Scenario:
    """Five features, of which two move a little, depending on a third."""
    directions = direction_blocks(5, np.random.default_rng(1), 10)

    def draw(rng, rows):
        factual = rng.normal(size=(rows, 5))
        moved = factual.copy()
        moved[:, :2] += 0.3 * np.tanh(factual[:, 2:3])
        return Comparison.paired(project(moved, directions), project(factual, directions), TRIM)

    return Scenario(draw=draw, truth=population_distance(draw))


@cache
def inputs_of_a_subgroup() -> Scenario:
    """Rows high in the first feature, 31 % of them, move by one standard deviation in the next."""
    directions = direction_blocks(5, np.random.default_rng(1), 10)

    def draw(rng, rows):
        factual = rng.normal(size=(rows, 5))
        moved = factual.copy()
        moved[:, 1] += factual[:, 0] > 0.5
        return Comparison.paired(project(moved, directions), project(factual, directions), TRIM)

    return Scenario(draw=draw, truth=population_distance(draw))


@cache
def inputs_far_away() -> Scenario:
    """Every row moves up in one feature, by a skewed amount that depends on another."""
    directions = direction_blocks(5, np.random.default_rng(1), 10)

    def draw(rng, rows):
        factual = rng.normal(size=(rows, 5))
        moved = factual.copy()
        moved[:, 1] += np.exp(factual[:, 0])
        return Comparison.paired(project(moved, directions), project(factual, directions), TRIM)

    return Scenario(draw=draw, truth=population_distance(draw))


@cache
def inputs_of_a_tiny_noise() -> Scenario:
    """Nearly the null: every feature gets a hundredth of a standard deviation of noise."""
    directions = direction_blocks(5, np.random.default_rng(1), 10)

    def draw(rng, rows):
        factual = rng.normal(size=(rows, 5))
        moved = factual + 0.01 * rng.normal(size=(rows, 5))
        return Comparison.paired(project(moved, directions), project(factual, directions), TRIM)

    # The sum of normals is normal: the populations differ in their standard deviations only.
    inside = stats.norm.ppf(TRIM + (1 - 2 * TRIM) * (np.arange(100_000) + 0.5) / 100_000)
    shift = math.sqrt(1 + 0.01**2) - 1
    return Scenario(draw=draw, truth=shift * math.sqrt(np.mean(inside**2)))


@cache
def outputs_near_a_known_target() -> Scenario:
    """Scores that nearly follow the wanted beta distribution."""
    target, moved = stats.beta(2.0, 2.0), stats.beta(2.2, 2.0)
    trimmed, untrimmed = cells(target, ROWS, TRIM), cells(target, ROWS, 0.0)

    def draw(rng, rows):
        scores = rng.beta(2.2, 2.0, size=(1, rows))
        return Comparison.known_target(scores, {TRIM: trimmed, 0.0: untrimmed}.__getitem__, TRIM)

    levels = TRIM + (1 - 2 * TRIM) * (np.arange(20_000) + 0.5) / 20_000
    truth = math.sqrt(np.mean((target.ppf(levels) - moved.ppf(levels)) ** 2))
    return Scenario(draw=draw, truth=truth, support=(0.0, 1.0))


@cache
def outputs_below_a_constant() -> Scenario:
    """Most scores near the wanted 1, a few failures far below."""
    weights = np.diff(np.clip(np.arange(ROWS + 1) / ROWS, TRIM, 1 - TRIM)) / (1 - 2 * TRIM)
    ones = np.ones((1, ROWS))
    trimmed = Reference(partners=ones, weights=weights, spread=np.zeros(1))
    untrimmed = Reference(partners=ones, weights=np.full(ROWS, 1 / ROWS), spread=np.zeros(1))

    def draw(rng, rows):
        scores = rng.beta(2.0, 0.5, size=(1, rows))
        return Comparison.known_target(scores, {TRIM: trimmed, 0.0: untrimmed}.__getitem__, TRIM)

    levels = TRIM + (1 - 2 * TRIM) * (np.arange(20_000) + 0.5) / 20_000
    truth = math.sqrt(np.mean((1 - stats.beta(2.0, 0.5).ppf(levels)) ** 2))
    return Scenario(draw=draw, truth=truth, support=(0.0, 1.0))


@cache
def outputs_near_a_sampled_target() -> Scenario:
    """Scores compared with an independent sample of another size."""

    def draw(rng, rows):
        scores, wanted = rng.beta(2.6, 2.0, size=(1, rows)), rng.beta(2.0, 2.0, size=(1, 3 * rows))
        return Comparison.independent(scores, wanted, TRIM)

    levels = TRIM + (1 - 2 * TRIM) * (np.arange(20_000) + 0.5) / 20_000
    gap = stats.beta(2.6, 2.0).ppf(levels) - stats.beta(2.0, 2.0).ppf(levels)
    return Scenario(draw=draw, truth=math.sqrt(np.mean(gap**2)), support=(0.0, 1.0))


SCENARIOS = {
    "smooth move": inputs_of_a_smooth_move,
    "subgroup": inputs_of_a_subgroup,
    "far away": inputs_far_away,
    "tiny noise": inputs_of_a_tiny_noise,
    "known target": outputs_near_a_known_target,
    "constant target": outputs_below_a_constant,
    "sampled target": outputs_near_a_sampled_target,
}


def basic_limit(comparison, rng):
    """Return the reference code's limit: both sides resampled independently, error reflected."""
    n = comparison.shape[1]
    distances = [
        Comparison.independent(
            comparison.moving.rows[:, rng.integers(n, size=n)],
            comparison.fixed.rows[:, rng.integers(n, size=n)],
            TRIM,
        ).distance
        for _ in range(DRAWS)
    ]
    return 2 * comparison.distance - np.quantile(distances, 1 - LEVEL)


METHODS = {
    "clt": lambda comparison, support, rng: clt_limit(comparison).upper(LEVEL),
    "bootstrap": lambda comparison, support, rng: bootstrap_limit(comparison, DRAWS, rng).upper(
        LEVEL
    ),
    "default": lambda comparison, support, rng: default_limit(comparison, DRAWS, rng).upper(LEVEL),
    "dkw": lambda comparison, support, rng: dkw_limit(comparison, support).upper(LEVEL),
    "basic": lambda comparison, support, rng: basic_limit(comparison, rng),
}


def coverage(method: str, scenario: str, repetitions: int = REPETITIONS) -> float:
    """Return the share of limits at or above the truth."""
    chosen = SCENARIOS[scenario]()
    # Two streams, so that every method sees the same samples.
    samples, rng = np.random.default_rng(2024), np.random.default_rng(2025)
    limits = np.array(
        [
            METHODS[method](chosen.draw(samples, ROWS), chosen.support, rng)
            for _ in range(repetitions)
        ]
    )
    return float(np.mean(limits >= chosen.truth))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_default_limit_covers(scenario):
    assert coverage("default", scenario) >= 0.93


@pytest.mark.parametrize("scenario", ["far away", "constant target"])
@pytest.mark.parametrize("method", ["clt", "bootstrap"])
def test_parts_of_the_default_nearly_cover(method, scenario):
    assert coverage(method, scenario) >= 0.90


@pytest.mark.parametrize("scenario", ["known target", "constant target", "sampled target"])
def test_bands_always_cover(scenario):
    assert coverage("dkw", scenario) >= 0.99


@pytest.mark.parametrize("scenario", ["smooth move", "tiny noise"])
def test_basic_bootstrap_of_unpaired_rows_fails(scenario):
    assert coverage("basic", scenario, 100) <= 0.5
