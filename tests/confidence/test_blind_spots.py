"""Laws that nobody tuned the limits on: each limit covers, or says that it may be too small."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from elsewise.confidence import (
    Comparison,
    UpperLimit,
    certificate_limit,
    move_cap,
    move_interval,
    notice_of,
    rank_shift_limit,
    share_above,
)
from elsewise.confidence._limit import best_of_two
from elsewise.transport import direction_blocks, project

LEVEL = 0.975
FIVE = direction_blocks(5, np.random.default_rng(3))
FIVE_CAP = move_cap(FIVE, 5 * 64.0)

Draw = Callable[[np.random.Generator, int], Comparison]


def limits_of(draw: Draw, n: int, repetitions: int, **known: object) -> list[UpperLimit]:
    """Return the certificate's limits of independent samples."""
    rngs = [np.random.default_rng([15, repetition]) for repetition in range(repetitions)]
    return [certificate_limit(draw(rng, n), 199, rng, level=LEVEL, **known) for rng in rngs]


def truth_of(draw: Draw, rows: int = 100_000, samples: int = 3) -> float:
    """Return the distance of the populations, from large samples."""
    drawn = [draw(np.random.default_rng([7, k]), rows).distance for k in range(samples)]
    return math.sqrt(np.mean(np.square(drawn)))


def least(repetitions: int) -> float:
    """Return the nominal level minus four standard errors."""
    return LEVEL - 4 * math.sqrt(LEVEL * (1 - LEVEL) / repetitions)


def coverage(limits: list[UpperLimit], truth: float) -> float:
    return float(np.mean([limit.upper(LEVEL) >= truth for limit in limits]))


def small_target(m: int, low: float = 0.12) -> Draw:
    """Scores near 1 against m wanted ones, of which a share is 0 that a small sample misses."""

    def scores(rng: np.random.Generator, n: int, zeros: float) -> np.ndarray:
        return np.where(rng.random((1, n)) < zeros, 0.0, rng.uniform(0.9, 1.0, (1, n)))

    return lambda rng, n: Comparison.independent(
        scores(rng, n, 0.02), scores(rng, n if n > 10_000 else m, low), 0.05
    )


def few_movers(share: float, nudge: float, dimension: int = 5) -> Draw:
    """A share of rows moves by 3 standard deviations, every row by a nudge."""

    def draw(rng: np.random.Generator, n: int) -> Comparison:
        theta = FIVE if dimension == 5 else np.ones((1, 1))
        rows = rng.standard_normal((n, dimension))
        moved = rows + nudge
        moved[rng.random(n) < share, -1] += 3.0
        return Comparison.paired(project(moved, theta), project(rows, theta), 0.05)

    return draw


def failing(share: float, n_values: int = 3) -> Draw:
    """Outputs of a stump, wanted at 0.45 at most, of which a share of those above stays there."""

    def draw(rng: np.random.Generator, n: int) -> Comparison:
        output = rng.choice([0.2, 0.4, 0.7], p=[0.4, 0.4, 0.2], size=(1, n))
        stays = rng.random((1, n)) < share
        moved = np.where((output > 0.45) & ~stays, 0.4, output)
        return Comparison.paired(moved, np.minimum(output, 0.45), 0.05)

    return draw


# (a) The smaller of the samples


@pytest.mark.parametrize("m", [15, 30])
def test_a_small_target_sample_is_seen(m):
    limits = limits_of(small_target(m), 500, 150, support=(0.0, 1.0))
    truth = truth_of(small_target(m))
    assert coverage(limits, truth) < 0.95
    for limit in limits:
        assert f"only {m} values of the target" in notice_of(limit)


def test_a_target_sample_of_100_values_covers():
    limits = limits_of(small_target(100), 500, 150, support=(0.0, 1.0))
    assert coverage(limits, truth_of(small_target(100))) >= least(150)
    assert not any(map(notice_of, limits))


def test_a_small_target_that_is_not_trimmed_gets_a_band():
    drawn = small_target(60)(np.random.default_rng(0), 500)
    untrimmed = Comparison.independent(drawn.moving.rows, drawn.fixed.rows, 0.0)
    limit = certificate_limit(untrimmed, 199, np.random.default_rng(0), support=(0.0, 1.0))
    assert limit.method == "equal-local-level band"


# (b) Movers by size, and the ranks that few of them can pass


@pytest.mark.parametrize(
    ("share", "nudge", "n", "dimension", "widest"),
    [
        (0.01, 0.0, 150, 5, 20.0),
        (0.01, 0.02, 150, 5, 20.0),
        (0.01, 0.02, 150, 1, 20.0),
        (0.003, 0.02, 1000, 1, 6.0),
        (0.01, 0.0, 1000, 5, 7.0),
    ],
)
def test_few_movers_are_covered_and_not_by_a_hundred_times(share, nudge, n, dimension, widest):
    draw = few_movers(share, nudge, dimension)
    repetitions = 40 if n == 1000 else 150
    limits = limits_of(draw, n, repetitions, cap=FIVE_CAP if dimension == 5 else 64.0)
    truth = truth_of(draw, 40_000)
    assert coverage(limits, truth) >= least(repetitions)
    assert np.median([limit.upper(LEVEL) for limit in limits]) <= widest * truth


def test_a_rank_shift_needs_no_cap():
    draw = few_movers(0.003, 0.0)
    limits = limits_of(draw, 1000, 40)
    assert {limit.method for limit in limits} == {"rank shift"}
    assert coverage(limits, truth_of(draw, 40_000)) >= least(40)


def test_a_rank_shift_is_the_definition():
    """The largest gap of Q(u + a) and Q(u - b) to Q(u), a + b = p, on a fine grid of levels."""
    rng, n, movers, level, trim = np.random.default_rng(2), 60, 2, 0.9, 0.1
    rows = rng.exponential(size=(3, n))
    far = np.arange(n) < movers
    comparison = Comparison.paired(rows + 5.0 * far, rows, trim)
    found = rank_shift_limit(comparison, far, (0.0, 30.0)).upper(level)
    share = share_above(movers, n, level)
    u = trim + (1 - 2 * trim) * (np.arange(40_000) + 0.5) / 40_000

    def quantile(values: np.ndarray, at: np.ndarray) -> np.ndarray:
        inside = values[np.clip((at * n).astype(int), 0, n - 1)]
        return np.where(at < 0.0, 0.0, np.where(at >= 1.0, 30.0, inside))

    squares = []
    for values in np.sort(rows, axis=-1):
        ways = []
        for up in np.linspace(0.0, share, 101):
            own = quantile(values, u)
            gaps = quantile(values, u + up) - own, own - quantile(values, u - (share - up))
            ways.append(np.mean(np.maximum(*gaps) ** 2))
        squares.append(max(ways))
    exact = math.sqrt(np.mean(squares))
    assert exact * 0.999 <= found <= 1.1 * exact


def test_a_rank_shift_is_infinite_once_the_movers_reach_the_trim():
    rows = np.random.default_rng(0).normal(size=(1, 200))
    far = np.arange(200) < 9
    comparison = Comparison.paired(rows + 9.0 * far, rows, 0.05)
    assert rank_shift_limit(comparison, far).upper(LEVEL) == math.inf
    assert rank_shift_limit(comparison, far, (-9.0, 20.0)).upper(LEVEL) < math.inf


@pytest.mark.parametrize("nudge", [0.0, 0.01])
def test_rank_shifts_and_their_probabilities_agree(nudge):
    rows = np.random.default_rng(0).normal(size=(2, 200))
    far = np.arange(200) < 3
    comparison = Comparison.paired(rows + 2.0 * far + nudge * rows, rows, 0.1)
    shift = rank_shift_limit(comparison, far, (-20.0, 20.0))
    for limit in (shift, best_of_two(shift, shift)):
        for level in (0.3, 0.9, 0.975, 0.9999):
            upper = limit.upper(level)
            assert limit.probability(upper) >= level
            assert limit.probability(np.nextafter(upper, 0.0)) < level
            assert limit.upper(level) >= limit.estimate
        assert limit.probability(limit.estimate * 0.99) == 0.0


# (c) No trimming and an unknown range


def test_an_untrimmed_limit_of_unknown_range_is_always_noticed():
    def draw(rng: np.random.Generator, n: int) -> Comparison:
        output = np.exp(1.2 * rng.standard_normal((1, n)))
        wanted = np.minimum(output, 2.0)
        return Comparison.paired(wanted + 0.2 * (output - wanted), wanted, 0.0)

    assert all(map(notice_of, limits_of(draw, 200, 40)))


# (d) The cliff between nine and ten


def test_nine_failures_are_not_worse_than_ten():
    output = np.concatenate([np.linspace(0.0, 0.4, 700), np.full(300, 0.4)])[None]

    def limit_of(failures: int) -> UpperLimit:
        moved = output.copy()
        moved[0, -failures:] = 0.9
        comparison = Comparison.paired(moved, output, 0.05)
        rng = np.random.default_rng(0)
        return certificate_limit(comparison, 999, rng, support=(0.0, 1.0), level=LEVEL)

    nine, ten = limit_of(9), limit_of(10)
    assert nine.upper(LEVEL) - ten.upper(LEVEL) < 0.01
    assert nine.probability(0.05) > 0.999


def test_outputs_of_a_stump():
    limits = limits_of(failing(0.3), 150, 150, support=(0.0, 1.0))
    truth = truth_of(failing(0.3))
    assert coverage(limits, truth) >= least(150)
    assert np.median([limit.upper(LEVEL) for limit in limits]) <= 4.0 * truth


# The root mean square move of a row


@pytest.mark.parametrize(
    ("share", "nudge", "n"),
    [(0.03, 0.0, 100), (0.01, 0.02, 100), (0.05, 0.0, 500), (1.0, 0.0, 100)],
)
def test_the_limit_of_the_move_covers_or_is_noticed(share, nudge, n):
    """Squared moves of 3 standard deviations by a share of the rows, and of all by a nudge."""
    truth, hits, noticed = math.sqrt(9.0 * share + nudge**2), 0, []
    for repetition in range(300):
        rng = np.random.default_rng([33, repetition])
        squares = nudge**2 + 9.0 * (rng.random(n) < share)
        found = move_interval(squares, 0.95, cap=64.0)
        hits += found.upper >= truth * (1 - 1e-9)
        noticed += [] if found.upper >= truth else [bool(found.notice)]
    assert hits / 300 >= 0.94 or np.mean(noticed) >= 0.95
    assert (hits / 300 >= 0.94) == (nudge == 0.0)


def test_the_limit_of_heavy_tailed_moves():
    """All rows are stretched by a fifth, and the features have tails like Student's t(3)."""

    def squares(rng: np.random.Generator, n: int) -> np.ndarray:
        return 0.04 * np.sum(np.clip(rng.standard_t(3, (n, 10)), -26.0, 26.0) ** 2, axis=1) / 3.0

    truth = math.sqrt(np.mean(squares(np.random.default_rng(1), 1_000_000)))
    limits = []
    for repetition in range(300):
        rng = np.random.default_rng([34, repetition])
        limits.append(move_interval(squares(rng, 500), 0.95).upper)
    assert np.mean(np.array(limits) >= truth) >= 0.94
    assert np.median(limits) <= 1.15 * truth
