"""The limits that hold for every number of rows: oracles, laws, and how often they cover."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from benchmarks.calibration.methods import default_limit
from benchmarks.rivals.dkw import dkw_limit
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from elsewise.confidence import (
    Comparison,
    band_limit,
    coupling_limit,
    debiased_distance,
    move_cap,
    suggested_rows,
    support_cap,
)
from elsewise.confidence._band import crossing_probability
from elsewise.confidence._betting import place_bets
from elsewise.errors import InvalidInput
from elsewise.transport import Reference, direction_blocks, project, segments

UNIT = (0.0, 1.0)
LEVELS = (0.05, 0.5, 0.9, 0.95, 0.975, 1 - 1e-6)


def constant(value: float, n: int, trim: float = 0.0) -> Reference:
    """Return a known constant target as n rows see it."""
    weights = np.bincount(segments(n, n, trim).x, segments(n, n, trim).weights, minlength=n)
    return Reference(partners=np.full((1, n), value), weights=weights, spread=np.zeros(1))


def uniform(n: int, trim: float = 0.0) -> Reference:
    """Return the uniform distribution on [0, 1] as n rows see it."""
    edges = np.clip(np.arange(n + 1) / n, trim, 1 - trim)
    widths = np.diff(edges)
    middles = np.where(widths > 0, (edges[1:] + edges[:-1]) / 2, 0.5)
    weights = widths / (1 - 2 * trim)
    return Reference(
        partners=middles[None, :], weights=weights, spread=np.array([weights @ widths**2 / 12])
    )


def to_constant(values, target: float, trim: float = 0.0) -> Comparison:
    """Compare values (1, n) with a known constant."""
    n = values.shape[1]
    return Comparison.known_target(values, lambda t: constant(target, n, t), trim)


def to_uniform(values, trim: float = 0.0) -> Comparison:
    """Compare values (1, n) with the uniform distribution."""
    n = values.shape[1]
    return Comparison.known_target(values, lambda t: uniform(n, t), trim)


def enough(coverages, nominal: float, repetitions: int) -> bool:
    """Whether a share of hits is at least the nominal one, up to four standard errors."""
    return coverages >= nominal - 4 * math.sqrt(nominal * (1 - nominal) / repetitions)


# Crossing probabilities


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=2))
def test_crossing_of_one_value_is_the_length_outside(ends):
    lower, upper = sorted(ends)
    found = crossing_probability(np.array([lower]), np.array([upper]))
    assert found == pytest.approx(1.0 - (upper - lower), abs=1e-12)


@given(*(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=2).map(sorted) for _ in range(2)))
def test_crossing_of_two_values_is_the_area_outside(first, second):
    lower, upper = np.minimum(first, second), np.maximum(first, second)
    (l1, l2), (h1, h2) = lower, upper
    # Twice the area of u in [l1, h1], v in [max(l2, u), h2].
    corner = min(max(l2, l1), h1)
    area = (corner - l1) * (h2 - l2) + (h2 - (corner + h1) / 2) * (h1 - corner)
    assert crossing_probability(lower, upper) == pytest.approx(1.0 - 2.0 * area, abs=1e-12)


@pytest.mark.parametrize("n", [1, 3, 20, 500, 2000])
@pytest.mark.parametrize("slope", [0.001, 0.05, 0.5])
def test_crossing_of_a_line_through_the_origin_is_its_slope(n, slope):
    # Daniels 1945: U_(i) < slope * i / n for some i with probability slope, whatever n.
    line, free = slope * np.arange(1, n + 1) / n, np.zeros(n)
    assert crossing_probability(line, 1.0 - free) == pytest.approx(slope, abs=1e-10)
    assert crossing_probability(free, 1.0 - line[::-1]) == pytest.approx(slope, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "used"), [(20, slice(0, 20)), (100, slice(0, 100)), (100, (15, 85))])
def test_crossing_is_the_simulated_share(n, used):
    ranks = np.arange(1, n + 1)
    lower, upper = stats.beta.ppf([[0.004], [0.996]], ranks, n - ranks + 1)
    if not isinstance(used, slice):
        lower[: used[0]], upper[used[1] :] = 0.0, 1.0
    draws = np.sort(np.random.default_rng(0).uniform(size=(100_000, n)), axis=1)
    share = np.mean(np.any((draws < lower) | (draws > upper), axis=1))
    found = crossing_probability(lower, upper)
    assert abs(share - found) <= 4 * math.sqrt(found * (1 - found) / 100_000)


@given(
    n=st.integers(1, 12),
    tail=st.floats(0.001, 0.4),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=50, deadline=None)
def test_crossing_is_symmetric_and_monotone(n, tail, seed):
    ranks = np.arange(1, n + 1)
    lower, upper = stats.beta.ppf([[tail], [1 - tail]], ranks, n - ranks + 1)
    used = np.random.default_rng(seed).uniform(size=(2, n)) < 0.7
    some_lower, some_upper = np.where(used[0], lower, 0.0), np.where(used[1], upper, 1.0)
    found = crossing_probability(some_lower, some_upper)
    mirrored = crossing_probability(1.0 - some_upper[::-1], 1.0 - some_lower[::-1])
    assert found == pytest.approx(mirrored, abs=1e-12)
    assert found <= crossing_probability(lower, upper) + 1e-12


def test_crossing_at_the_extremes():
    assert crossing_probability(np.zeros(50), np.ones(50)) == pytest.approx(0.0, abs=1e-12)
    # An order statistic with an empty interval, and a smaller one bound to be larger.
    assert crossing_probability(np.array([0.0, 0.9]), np.array([0.5, 0.6])) == 1.0
    assert crossing_probability(np.array([0.6, 0.0]), np.array([1.0, 0.5])) == 1.0


# Bands


@pytest.mark.slow
def test_band_is_the_gap_between_equal_local_levels():
    rng = np.random.default_rng(0)
    n, m, trim = 60, 45, 0.1
    x, y = np.sort(rng.uniform(size=(1, n))), np.sort(rng.beta(2, 2, size=(1, m)))
    limit = band_limit(Comparison.independent(x, y, trim), UNIT)
    width = next(w for w in range(limit.widest) if limit.failing(w) <= 0.05)
    tail = 2.0 ** (-1 - width / 32)
    levels = trim + (1 - 2 * trim) * (np.arange(100_000) + 0.5) / 100_000

    def band(values):
        ranks = np.arange(1, values.size + 1)
        lower, upper = stats.beta.ppf([[tail], [1 - tail]], ranks, values.size - ranks + 1)
        padded = np.concatenate([[0.0], values.ravel(), [1.0]])
        above = 1 + np.searchsorted(lower, levels)
        return padded[np.searchsorted(upper, levels, side="right")], padded[above]

    (x_low, x_high), (y_low, y_high) = band(x), band(y)
    expected = math.sqrt(np.mean(np.maximum(x_high - y_low, y_high - x_low) ** 2))
    assert expected - 1e-6 <= limit.upper(0.95) <= expected * 1.005


@pytest.mark.slow
@pytest.mark.parametrize(("n", "trim"), [(10, 0.0), (50, 0.1), (200, 0.1), (50, 0.3)])
@pytest.mark.parametrize("target", [None, 0.0, 1.0])
def test_bands_fail_as_often_as_they_say(n, trim, target):
    draws = np.sort(np.random.default_rng(1).uniform(size=(5000, n)), axis=1)
    comparison = to_uniform(draws[:1], trim) if target is None else to_constant(draws[:1], target)
    bands = band_limit(comparison, UNIT)
    cells, width = bands.use.cells, 240
    below, above = bands.ranks(0, width)
    padded = np.pad(draws, ((0, 0), (1, 1)), constant_values=(0.0, 1.0))
    # The uniform quantile function is the identity: on [a, b] it needs x_below <= a, b <= x_above.
    fails = np.any((padded[:, below] > cells.starts) | (padded[:, above] < cells.ends), axis=1)
    expected = bands.failing(width)
    assert 0.01 < expected < 0.3
    assert abs(np.mean(fails) - expected) <= 4 * math.sqrt(expected / fails.size)


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 7, 100])
@pytest.mark.parametrize("trim", [0.0, 0.2])
def test_wider_bands_fail_less_often(n, trim):
    bands = band_limit(to_uniform(np.linspace(0.1, 0.9, n)[None, :], trim), UNIT)
    failing = [bands.failing(width) for width in range(0, bands.widest, 5)]
    assert failing[0] > 0.5
    assert failing[-1] < 1e-6
    assert np.all(np.diff(failing) <= 0.0)


def test_bands_use_the_largest_tail_that_holds():
    values = np.random.default_rng(0).uniform(size=(1, 80))
    limit = band_limit(to_uniform(values, 0.05), UNIT)
    widths = range(limit.widest)
    width = next(w for w in widths if limit.failing(w) <= 0.05)
    assert limit.upper(0.95) == limit._limit(width)
    assert limit.failing(width) > 0.05 * 0.95


def test_trimmed_ends_cost_no_level():
    values = np.full((1, 100), 0.5)
    whole, trimmed = (band_limit(to_uniform(values, trim), UNIT) for trim in (0.0, 0.2))
    assert trimmed.failing(200) < 0.7 * whole.failing(200)


def test_a_target_at_either_end_needs_one_side():
    values = np.random.default_rng(0).beta(3, 1, size=(1, 80))
    top = band_limit(to_constant(values, 1.0, 0.05), UNIT).upper(0.95)
    bottom = band_limit(to_constant(1.0 - values, 0.0, 0.05), UNIT).upper(0.95)
    assert top == pytest.approx(bottom, rel=2e-3)
    # With a support that goes on, the target is no longer at its end.
    assert top < band_limit(to_constant(values, 1.0, 0.05), (0.0, 1.0 + 1e-6)).upper(0.95)


@pytest.mark.parametrize("n", [50, 100, 500])
def test_bands_are_narrower_than_dkw(n):
    rng = np.random.default_rng(3)
    x, y = rng.beta(2.2, 2.0, size=(1, n)), rng.beta(2.0, 2.0, size=(1, n))
    for comparison in (
        Comparison.independent(x, y, 0.1),
        to_uniform(x, 0.1),
        to_constant(x, 1.0, 0.1),
        to_constant(x, 1.0),
    ):
        band, dkw = band_limit(comparison, UNIT), dkw_limit(comparison, UNIT)
        assert band.upper(0.95) < dkw.upper(0.95)


def test_many_rows_carry_the_band_on_some_ranks():
    values = np.random.default_rng(0).beta(2.2, 2.0, size=(1, 6000))
    comparison = to_uniform(values, 0.1)
    limit = band_limit(comparison, UNIT)
    below, above = limit.ranks(0, 300)
    assert set(np.unique(above % 3)) == set(np.unique(below % 3)) == {0}
    assert limit.estimate < limit.upper(0.95) < 1.02 * dkw_limit(comparison, UNIT).upper(0.95)


def test_directions_share_the_error():
    x = np.random.default_rng(0).uniform(size=(1, 60))
    one = band_limit(Comparison.paired(x**2, x, 0.1), UNIT)
    many = band_limit(Comparison.paired(np.repeat(x**2, 7, 0), np.repeat(x, 7, 0), 0.1), UNIT)
    assert many.upper(0.65) == pytest.approx(one.upper(0.95), rel=1e-12)


def test_band_without_support_is_infinite_where_it_leaves_the_sample():
    x = np.random.default_rng(0).normal(size=(1, 300))
    comparison = Comparison.paired(x + 0.2, x, 0.01)
    assert band_limit(comparison).upper(0.95) == math.inf
    assert band_limit(comparison).probability(1e9) < 0.95
    inside = band_limit(Comparison.paired(x + 0.2, x, 0.1))
    assert inside.estimate < inside.upper(0.95) < math.inf
    with pytest.raises(InvalidInput, match="support: expected every value inside it"):
        band_limit(comparison, UNIT)


def test_a_tiny_support_is_not_left_unnoticed():
    x = 1e-8 * np.random.default_rng(0).random(size=(1, 300))
    assert band_limit(Comparison.paired(x, x, 0.0), (0.0, 1e-8)).upper(0.95) < 1e-8
    with pytest.raises(InvalidInput, match="support: expected every value inside it"):
        band_limit(Comparison.paired(x, x, 0.0), (0.0, 5e-9))


# Betting


@given(
    values=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40),
    mean=st.floats(0.0, 1.0),
    steps=st.integers(1, 1000),
)
def test_level_of_a_mean_never_falls_in_floating_point(values, mean, steps):
    bets = place_bets(np.array(values), 0.95, np.random.default_rng(0))
    assert bets.level(mean) <= bets.level(mean + steps * np.spacing(mean))
    assert bets.level(0.0) == 0.0
    assert bets.level(1.0) == 1.0


@given(values=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=40), place=st.integers(0, 39))
def test_stakes_look_at_the_past_only(values, place):
    class Unshuffled:
        def permutation(self, values):
            return values

    before = np.array(values)
    after = before.copy()
    after[place:] = 1.0 - after[place:]
    stakes = [place_bets(x, 0.95, Unshuffled()).stakes[: place + 1] for x in (before, after)]
    np.testing.assert_array_equal(*stakes)


def test_wealth_without_end_is_no_error():
    bets = place_bets(np.zeros(5000), 0.95, np.random.default_rng(0))
    assert bets.level(0.9) == 1.0


@pytest.mark.parametrize("n", [30, 100, 1000])
def test_rows_that_stay_have_a_positive_limit(n):
    rows = np.random.default_rng(0).normal(size=(4, n))
    limit = coupling_limit(Comparison.paired(rows, rows, 0.0), 1.0, 0.95, np.random.default_rng(0))
    assert limit.estimate == 0.0
    # No event in n: the exact limit of a share is that of Clopper and Pearson.
    exact = 1.0 - 0.05 ** (1 / n)
    assert exact <= limit.upper(0.95) ** 2 <= 1.2 * exact
    assert limit.probability(0.0) == 0.0


def draws_of_a_mean(kind: str, rng: np.random.Generator, n: int) -> np.ndarray:
    return {
        "5 % of rows": lambda: (rng.uniform(size=n) < 0.05).astype(float),
        "31 % of rows": lambda: (rng.uniform(size=n) < 0.31).astype(float),
        "uniform": lambda: rng.uniform(size=n),
        "small and skewed": lambda: rng.beta(0.2, 3.8, size=n),
        "nearly all": lambda: rng.beta(3.8, 0.2, size=n),
    }[kind]()


@pytest.mark.parametrize("n", [5, 50])
@pytest.mark.parametrize(
    ("kind", "mean"),
    [
        ("5 % of rows", 0.05),
        ("31 % of rows", 0.31),
        ("uniform", 0.5),
        ("small and skewed", 0.05),
        ("nearly all", 0.95),
    ],
)
def test_betting_covers_a_mean_at_its_own_level_and_others(n, kind, mean):
    rng = np.random.default_rng(7)
    levels = np.array(
        [place_bets(draws_of_a_mean(kind, rng, n), 0.95, rng).level(mean) for _ in range(3000)]
    )
    # The limit at a level is above the mean exactly where the mean's own level is below it.
    for level in (0.8, 0.95, 0.99):
        assert enough(np.mean(levels < level), level, levels.size)


# Coupling


DIRECTIONS = direction_blocks(10, np.random.default_rng(1), 20)


def smooth_move(rng, n):
    """Return rows and where they go: three of ten features rise, more where they are high."""
    factual = rng.normal(size=(n, 10))
    moved = factual.copy()
    moved[:, :3] += 0.3 + 0.15 * np.tanh(factual[:, :3])
    return moved, factual


def subgroup(share):
    """Return rows and where they go: a share of them moves by 1 in the first feature."""

    def draw(rng, n):
        factual = rng.normal(size=(n, 10))
        moved = factual.copy()
        moved[:, 0] += factual[:, 0] > stats.norm.ppf(1 - share)
        return moved, factual

    return draw


def compared(draw, rng, n, trim=0.1):
    moved, factual = draw(rng, n)
    return Comparison.paired(project(moved, DIRECTIONS), project(factual, DIRECTIONS), trim)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "squared_move", "widest"),
    [(smooth_move, 4 * 3 * 0.45**2, 1.65), (subgroup(0.31), 4.0, 2.7)],
    ids=["smooth", "31 %"],
)
def test_coupling_covers_and_is_tight(draw, squared_move, widest):
    # The cap allows twice the longest move that occurs.
    truth = compared(draw, np.random.default_rng(9), 100_000).distance
    cap, rng = move_cap(DIRECTIONS, squared_move), np.random.default_rng(5)
    limits = np.array(
        [coupling_limit(compared(draw, rng, 100), cap, 0.95, rng).upper(0.95) for _ in range(200)]
    )
    assert np.mean(limits >= truth) >= 0.96
    assert np.mean(limits) <= widest * truth


@pytest.mark.slow
def test_coupling_covers_where_samples_have_few_movers():
    draw, n, repetitions, trim = subgroup(0.05), 50, 400, 0.0
    truth = compared(draw, np.random.default_rng(9), 100_000, trim).distance
    cap, rng = move_cap(DIRECTIONS, 1.0), np.random.default_rng(5)
    hits = {"coupling": 0, "default": 0}
    for _ in range(repetitions):
        comparison = compared(draw, rng, n, trim)
        hits["coupling"] += coupling_limit(comparison, cap, 0.95, rng).upper(0.95) >= truth
        hits["default"] += default_limit(comparison, 39, rng).upper(0.95) >= truth
    assert hits["coupling"] == repetitions
    assert hits["default"] <= 0.95 * repetitions


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 100])
def test_betting_covers_the_distance_to_a_constant(n):
    # E (1 - y)^2 of y ~ Beta(2, 1/2) is E z^2 of z ~ Beta(1/2, 2).
    truth = math.sqrt(0.5 * 1.5 / (2.5 * 3.5))
    rng = np.random.default_rng(11)
    limits = []
    for _ in range(1000):
        comparison = to_constant(rng.beta(2.0, 0.5, size=(1, n)), 1.0)
        cap = support_cap(comparison, UNIT)
        limits.append(coupling_limit(comparison, cap, 0.95, rng).upper(0.95))
    assert enough(np.mean(np.array(limits) >= truth), 0.95, 1000)
    assert np.mean(limits) <= (2.0 if n == 20 else 1.35) * truth


def test_caps():
    assert move_cap(DIRECTIONS, 3.0) == pytest.approx(0.3)
    two = np.array([[0.2, 0.9], [0.4, 0.5]])
    assert support_cap(Comparison.paired(two, two, 0.0), ([0.0, 0.0], [1.0, 2.0])) == 2.5
    assert support_cap(to_constant(two[:1], 0.8), UNIT) == pytest.approx(0.64)
    assert support_cap(to_constant(two[:1], 0.1), UNIT) == pytest.approx(0.81)


@given(seed=st.integers(0, 2**31), dimension=st.integers(1, 5), count=st.integers(1, 6))
@settings(max_examples=50)
def test_no_move_costs_more_than_the_cap(seed, dimension, count):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(dimension, count))
    moves = rng.normal(size=(50, dimension))
    costs = np.mean((moves @ theta) ** 2, axis=1)
    caps = [move_cap(theta, float(move @ move)) for move in moves]
    assert np.all(costs <= np.multiply(caps, 1 + 1e-12))


def test_coupling_is_the_same_in_torch():
    comparison = compared(smooth_move, np.random.default_rng(0), 30)
    other = Comparison.paired(
        torch.asarray(comparison.moving.rows), torch.asarray(comparison.fixed.rows), 0.1
    )
    found, expected = (
        coupling_limit(c, 1.0, 0.95, np.random.default_rng(0)).upper(0.95)
        for c in (other, comparison)
    )
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("cap", [0.0, 0.01, -1.0, math.inf, math.nan])
def test_a_cap_that_rows_exceed_is_refused(cap):
    comparison = compared(subgroup(0.5), np.random.default_rng(0), 30)
    with pytest.raises(InvalidInput, match=r"cap: expected .* largest cost of a row, 0\.1, rec"):
        coupling_limit(comparison, cap, 0.95, np.random.default_rng(0))


def test_couplings_that_do_not_exist_are_refused():
    values = np.random.default_rng(0).uniform(size=(1, 30))
    with pytest.raises(InvalidInput, match=r"received rows without partners. Fix: use band_limit"):
        coupling_limit(
            Comparison.independent(values, values, 0.0), 1.0, 0.95, np.random.default_rng(0)
        )
    with pytest.raises(InvalidInput, match="received rows without partners"):
        coupling_limit(to_uniform(values), 1.0, 0.95, np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="level: expected a number in"):
        coupling_limit(to_constant(values, 1.0), 1.0, 1.0, np.random.default_rng(0))


# Laws of both


def fitted():
    rng = np.random.default_rng(0)
    x, y = rng.beta(2, 1, size=(1, 40)), rng.beta(2, 2, size=(1, 30))
    pairs = Comparison.paired(np.sqrt(y), y, 0.05)
    return {
        "band-paired": band_limit(pairs, UNIT),
        "band-independent": band_limit(Comparison.independent(x, y, 0.05), UNIT),
        "band-uniform": band_limit(to_uniform(x, 0.05), UNIT),
        "band-constant": band_limit(to_constant(x, 1.0), UNIT),
        "coupling-paired": coupling_limit(pairs, 1.0, 0.95, rng),
        "coupling-constant": coupling_limit(to_constant(x, 1.0), 1.0, 0.95, rng),
        "coupling-few": coupling_limit(to_constant(x[:, :2], 1.0), 1.0, 0.95, rng),
        "coupling-still": coupling_limit(Comparison.paired(x, x, 0.1), 1e-9, 0.95, rng),
    }


FITTED = fitted()
every = pytest.mark.parametrize("name", FITTED)


@every
def test_limits_rise_with_the_level_from_the_estimate(name):
    limit = FITTED[name]
    limits = [limit.upper(level) for level in LEVELS]
    assert limits == sorted(limits)
    assert limits[0] >= limit.estimate
    assert limit.probability(np.nextafter(limit.estimate, -1.0)) == 0.0
    assert limit.probability(math.inf) == 1.0
    assert limit.assumption.endswith("holds for every number of rows.")


@every
@given(level=st.floats(0.01, 0.9999))
@settings(max_examples=25, deadline=None)
def test_probability_is_the_inverse_of_the_limit(name, level):
    limit = FITTED[name]
    upper = limit.upper(level)
    assert limit.probability(upper) >= level
    if upper > 0.0:
        assert limit.probability(np.nextafter(upper, 0.0)) < level


@every
@given(share=st.floats(0.0, 1.0))
@settings(max_examples=25, deadline=None)
def test_the_limit_is_under_a_bound_at_its_probability_and_no_further(name, share):
    limit = FITTED[name]
    bound = limit.estimate + share * (limit.upper(0.9999) - limit.estimate)
    attained = limit.probability(bound)
    if 0.0 < attained < 1.0:
        assert limit.upper(attained) <= bound
        assert limit.upper(attained + 2.0**-40) > bound


@every
@pytest.mark.parametrize("level", [0.0, 1.0, math.nan])
def test_levels_outside_the_unit_interval_are_refused(name, level):
    with pytest.raises(InvalidInput, match=r"level: expected a number in \(0, 1\)"):
        FITTED[name].upper(level)


# How many rows


@given(
    rows=st.integers(10, 10_000),
    estimate=st.floats(0.0, 1.0),
    excess=st.floats(0.01, 1.0),
    share=st.floats(0.05, 1.0),
)
def test_suggested_rows_shrink_the_excess_to_the_room(rows, estimate, excess, share):
    found = suggested_rows(estimate + excess, estimate, estimate + share * excess, rows)
    assert found == pytest.approx(rows / share**2, rel=1e-6, abs=1.001)
    assert found >= rows


def test_rows_that_do_are_enough():
    assert suggested_rows(0.5, 0.4, 0.6, 100) == 100
    # A bound under the estimate may still be above the truth.
    assert suggested_rows(0.5, 0.4, 0.39, 100, debiased=0.3) > 100


@given(bias=st.floats(0.0, 0.3), share=st.floats(0.1, 1.0))
def test_suggested_rows_bring_bias_and_excess_under_the_bound(bias, share):
    truth, excess, rows = 0.2, 0.1, 1000
    bound = truth + share * (bias + excess)
    found = suggested_rows(truth + bias + excess, truth + bias, bound, rows, truth)
    ratio = rows / found
    squared_bias = (truth + bias) ** 2 - truth**2
    limit = math.sqrt(truth**2 + squared_bias * ratio) + excess * math.sqrt(ratio)
    assert limit == pytest.approx(bound, rel=1e-3)


def test_debiased_distance_is_nearer_to_the_truth():
    rng = np.random.default_rng(0)
    comparisons = [
        Comparison.independent(rng.normal(size=(1, 50)) + 0.3, rng.normal(size=(1, 50)), 0.1)
        for _ in range(200)
    ]
    biased = np.median([comparison.distance for comparison in comparisons])
    debiased = np.median([debiased_distance(comparison, 39, rng) for comparison in comparisons])
    assert abs(debiased - 0.3) < 0.5 * (biased - 0.3)


def outputs_below_one(rng, n):
    return to_constant(rng.beta(2.0, 0.5, size=(1, n)), 1.0, 0.1)


def inputs_of_a_subgroup(rng, n):
    return compared(subgroup(0.31), rng, n)


@pytest.mark.slow
@pytest.mark.parametrize("draw", [outputs_below_one, inputs_of_a_subgroup])
def test_suggested_rows_are_those_found_by_simulation(draw):
    rng = np.random.default_rng(0)
    truth = draw(rng, 100_000).distance

    def typical_limit(samples):
        limits = [default_limit(comparison, 99, rng) for comparison in samples]
        return np.mean([(limit.upper(0.95), limit.estimate) for limit in limits], axis=0)

    samples = [draw(rng, 100) for _ in range(250)]
    limit, estimate = typical_limit(samples)
    debiased = np.mean([debiased_distance(comparison, 39, rng) for comparison in samples])
    bound = truth + 0.45 * (limit - truth)
    suggested = suggested_rows(limit, estimate, bound, 100, debiased)
    for factor, far_enough in ((1 / 1.5, np.greater), (1.5, np.less)):
        more = [draw(rng, round(suggested * factor)) for _ in range(60)]
        assert far_enough(typical_limit(more)[0], bound)
