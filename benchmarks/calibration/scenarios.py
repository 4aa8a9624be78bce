"""The populations of the grid: what can be drawn, and the distances that are true of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from scipy.special import ndtri

from elsewise.confidence import Comparison, move_cap
from elsewise.measure import target_reference
from elsewise.targets import Constant, DistributionTarget, constant, distribution
from elsewise.transport import direction_blocks, project

from . import laws

__all__ = [
    "BATCHES",
    "BATCH_ROWS",
    "CLIFF",
    "DIMENSIONS",
    "Scenario",
    "inputs",
    "large_sample_distances",
    "outputs",
    "scenarios",
    "untuned",
]

DIMENSIONS = (2, 10, 23)
DIRECTIONS = {2: 4, 10: 10, 23: 23}
"""Complete blocks: two in two dimensions, one in ten and in 23."""

Draw = Callable[
    [np.random.Generator, int], tuple[np.ndarray, np.ndarray | DistributionTarget | Constant]
]
"""Rows wanted to moved values (N, n) and what they are compared with: values (N, n), or a law."""

CLIFF = "failures past the trim"
"""Beyond the grid: just more failures than are trimmed, so that few rows decide the distance."""

BATCH_ROWS, BATCHES = 200_000, 20
"""Truths without a formula: mean of the squared distances of so many large samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A population that can be sampled."""

    name: str
    side: str
    """"inputs" or "outputs"."""
    dimension: int
    """Number of features; 1 for outputs."""
    draw: Draw
    paired: bool
    """Whether what the rows are compared with comes from the same draw."""
    truth: Callable[[float], float] | None
    """Trim to distance; None where only large samples tell."""
    cap: float | None = None
    """Largest cost of a row, known beforehand."""
    support: tuple[float, float] | None = None
    """Smallest and largest possible value, known beforehand."""
    direct: bool = False
    """Whether the library's own certificate is asked, because its resamples cannot be shared."""

    @property
    def key(self) -> str:
        """Name in file names."""
        return f"{self.side}-{self.dimension}-{self.name.replace(' ', '-').replace('%', 'pc')}"

    def comparisons(
        self, rng: np.random.Generator, rows: int, trims: tuple[float, ...]
    ) -> tuple[Comparison, ...]:
        """Draw a sample once; compare it at every trim."""
        moving, fixed = self.draw(rng, rows)
        if isinstance(fixed, DistributionTarget | Constant):
            like, theta = moving.T, np.ones((1, 1))
            cells = {
                trim: target_reference(fixed, rows, trim, like, theta) for trim in (0.0, *trims)
            }
            first = Comparison.known_target(moving, cells.__getitem__, trims[0])
        else:
            compare = Comparison.paired if self.paired else Comparison.independent
            first = compare(moving, fixed, trims[0])
        return tuple(replace(first, trim=trim) for trim in trims)


def large_sample_distances(
    scenario: Scenario,
    trims: tuple[float, ...],
    rows: int = BATCH_ROWS,
    batches: int = BATCHES,
    seed: int = 99,
) -> tuple[np.ndarray, np.ndarray]:
    """Distances (T,) from large samples, and their relative standard errors (T,)."""
    rng = np.random.default_rng([seed, *scenario.key.encode()])
    squares = np.array(
        [
            [comparison.distance**2 for comparison in scenario.comparisons(rng, rows, trims)]
            for _ in range(batches)
        ]
    )
    means = squares.mean(axis=0)
    errors = squares.std(axis=0, ddof=1) / math.sqrt(batches) / (2.0 * means)
    return np.sqrt(means), errors


def outputs() -> Iterator[Scenario]:
    """Scores in [0, 1] and what they should look like."""
    pairs = {
        "beta near": (laws.beta(2.2, 2.0), laws.beta(2.0, 2.0)),
        "beta far": (laws.beta(2.0, 5.0), laws.beta(5.0, 2.0)),
        "beta null": (laws.beta(2.0, 2.0), laws.beta(2.0, 2.0)),
        "saturated": (laws.saturated(0.0), laws.saturated(1.0)),
        "two-point": (laws.labels(0.35), laws.labels(0.4)),
    }
    for name, (moved, wanted) in pairs.items():
        yield _scores(name, moved, wanted, _sampled(moved, wanted))
    law = distribution(stats.beta(2.0, 2.0))
    moved = laws.beta(2.2, 2.0)
    yield _scores("known target", moved, laws.beta(2.0, 2.0), _against(moved, law))
    ones = constant(1.0)
    for name, moved in {
        "constant target": laws.beta(2.0, 0.5),
        "rare failures": laws.with_failures(0.03),
        CLIFF: laws.with_failures(0.08),
    }.items():
        yield _scores(name, moved, laws.constant(1.0), _against(moved, ones))
    yield Scenario(
        name="derived target",
        side="outputs",
        dimension=1,
        draw=_lowered,
        paired=True,
        truth=None,
        support=(0.0, 1.0),
    )


def untuned() -> Iterator[Scenario]:
    """Outputs that no limit was tuned on: small targets, few movers under nudges, tails, trees."""

    def scenario(name: str, draw: Draw, **fields: object) -> Scenario:
        return Scenario(
            **{"side": "outputs", "dimension": 1, "paired": True, "truth": None}
            | {"name": name, "draw": draw}
            | fields
        )

    unit = {"support": (0.0, 1.0)}
    for count in (15, 30, 100):
        yield scenario(f"target of {count} values", _small_target(count), paired=False, **unit)
    yield scenario("1% moves and a nudge", _nudged, cap=64.0)
    yield scenario("lognormal", _reduced(lambda rng, size: np.exp(rng.standard_normal(size))))
    yield scenario("Pareto", _reduced(lambda rng, size: 1.0 + rng.pareto(2.1, size)))
    yield scenario("zero-inflated", _reduced(_with_zeros))
    yield scenario("stump", _stump, direct=True, **unit)


def _small_target(count: int) -> Draw:
    def draw(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
        def scores(size: int, zeros: float) -> np.ndarray:
            return np.where(rng.random((1, size)) < zeros, 0.0, rng.uniform(0.9, 1.0, (1, size)))

        # The truth is that of the law the target was drawn from.
        return scores(rows, 0.02), scores(rows if rows >= BATCH_ROWS else count, 0.12)

    return draw


def _nudged(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    factual = rng.standard_normal((1, rows))
    return factual + 0.02 + 3.0 * (rng.random((1, rows)) < 0.01), factual


def _reduced(amounts: Callable[[np.random.Generator, tuple[int, int]], np.ndarray]) -> Draw:
    """Amounts wanted at 2 at most, of which a fifth of the excess is left."""

    def draw(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
        factual = amounts(rng, (1, rows))
        wanted = np.minimum(factual, 2.0)
        return wanted + 0.2 * (factual - wanted), wanted

    return draw


def _with_zeros(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    return np.exp(rng.standard_normal(size)) * (rng.random(size) < 0.7)


def _stump(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Three outputs, wanted at 0.45 at most; three in ten of those above stay there."""
    factual = rng.choice([0.2, 0.4, 0.7], p=[0.4, 0.4, 0.2], size=(1, rows))
    stays = rng.random((1, rows)) < 0.3
    return np.where((factual > 0.45) & ~stays, 0.4, factual), np.minimum(factual, 0.45)


def inputs(dimension: int) -> Iterator[Scenario]:
    """Rows, and where they were moved."""
    rng = np.random.default_rng([7, dimension])
    theta = direction_blocks(dimension, rng, DIRECTIONS[dimension])
    others = np.ones(dimension)
    others[0] = 0.0

    def scenario(name: str, draw: Draw, reach: np.ndarray | None, **fields: object) -> Scenario:
        # The cap knows the largest move only up to a factor of two, as feature ranges would.
        cap = None if reach is None else move_cap(theta, 4.0 * float(reach @ reach))
        return Scenario(
            name=name,
            side="inputs",
            dimension=dimension,
            draw=lambda rng, rows: tuple(project(side, theta) for side in draw(rng, rows)),
            **{"paired": True, "truth": None, "cap": cap} | fields,
        )

    def moved(name: str, size: float, move: laws.Quantile, breaks: tuple[float, ...]) -> Scenario:
        def draw(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
            factual = rng.standard_normal((rows, dimension))
            return factual + size * move(factual[:, :1]) * others, factual

        def truth(trim: float) -> float:
            return laws.moved_normal_distance(theta, size * others, move, breaks, trim)

        return scenario(name, draw, size * others, truth=truth)

    yield scenario(
        "tiny noise",
        _noisy(dimension),
        np.full(dimension, NOISE * NOISE_ENDS),
        truth=lambda trim: laws.normal_gap_distance(np.zeros(1), NOISY_SD, trim),
    )
    yield moved("smooth move", 0.8, lambda first: 0.625 + 0.375 * np.tanh(first), ())
    for share in (0.31, 0.05, 0.01):
        start = float(ndtri(1.0 - share))
        yield moved(f"{share:.0%} subgroup", 0.5, _above(start), (start,))
    yield scenario("t3", _stretched(dimension), np.full(dimension, 0.2 * T3_ENDS))
    whole = np.zeros(dimension)
    whole[: dimension // 2], whole[-1] = 1.0 / math.sqrt(2.0), 0.2
    yield scenario("mixed integer", _counted(dimension), whole)
    yield scenario(
        "independent",
        _apart(dimension),
        None,
        paired=False,
        truth=lambda trim: laws.normal_gap_distance(0.2 * theta.sum(axis=0), 1.1, trim),
    )


def scenarios() -> tuple[Scenario, ...]:
    """Every scenario of the grid."""
    return (*outputs(), *untuned(), *(one for dimension in DIMENSIONS for one in inputs(dimension)))


NOISE, NOISE_ENDS = 0.01, 8.0
NOISY_SD = math.sqrt(1.0 + NOISE * NOISE)
T3_ENDS = 15.0
"""Range of the heavy-tailed features, in standard deviations: one row in 7000 is cut off."""


def _scores(name: str, moved: laws.Quantile, wanted: laws.Quantile, draw: Draw) -> Scenario:
    return Scenario(
        name=name,
        side="outputs",
        dimension=1,
        draw=draw,
        paired=False,
        truth=lambda trim: laws.quantile_distance(moved, wanted, trim),
        support=(0.0, 1.0),
    )


def _sampled(moved: laws.Quantile, wanted: laws.Quantile) -> Draw:
    def draw(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
        return moved(rng.random((1, rows))), wanted(rng.random((1, rows)))

    return draw


def _against(moved: laws.Quantile, target: DistributionTarget | Constant) -> Draw:
    return lambda rng, rows: (moved(rng.random((1, rows))), target)


def _lowered(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores wanted at 0.4 at most, of which those that had to move stop a little above."""
    factual = rng.beta(2.0, 2.0, size=(1, rows))
    wanted = np.minimum(factual, 0.4)
    return wanted + 0.1 * (factual - wanted) * rng.random((1, rows)), wanted


def _above(start: float) -> laws.Quantile:
    return lambda first: np.where(first > start, 1.0, 0.0)


def _noisy(dimension: int) -> Draw:
    """Every feature gets a hundredth of a standard deviation of noise: nearly the null."""

    def draw(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
        factual = rng.standard_normal((rows, dimension))
        return factual + NOISE * rng.standard_normal((rows, dimension)), factual

    return draw


def _stretched(dimension: int) -> Draw:
    """Heavy-tailed features (t with three degrees of freedom), all stretched by a fifth."""

    def draw(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
        raw = rng.standard_t(3, size=(rows, dimension)) / math.sqrt(3.0)
        factual = np.clip(raw, -T3_ENDS, T3_ENDS)
        return 1.2 * factual, factual

    return draw


def _counted(dimension: int) -> Draw:
    """Half of the features are counts, up by one where the last feature is positive."""

    def draw(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
        factual = rng.standard_normal((rows, dimension))
        counts = dimension // 2
        factual[:, :counts] = rng.poisson(2.0, size=(rows, counts)) / math.sqrt(2.0)
        moved = factual.copy()
        moved[:, :counts] += (factual[:, -1:] > 0.0) / math.sqrt(2.0)
        moved[:, -1] += 0.2
        return moved, factual

    return draw


def _apart(dimension: int) -> Draw:
    """Two samples drawn independently, of populations a little apart."""

    def draw(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
        moved = 0.2 + 1.1 * rng.standard_normal((rows, dimension))
        return moved, rng.standard_normal((rows, dimension))

    return draw
