"""Laws of the limits, and oracles for every number they are made of."""

from __future__ import annotations

import doctest
import math

import array_api_strict
import numpy as np
import ot
import pytest
import torch
from benchmarks.calibration.methods import default_limit
from benchmarks.rivals.dkw import dkw_limit
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from elsewise import confidence
from elsewise.confidence import (
    Comparison,
    Pairing,
    UpperLimit,
    bootstrap_limit,
    clt_limit,
)
from elsewise.confidence._bootstrap import SORTS, _resample, _Table, bootstrap_distances
from elsewise.confidence._clt import influence
from elsewise.errors import InvalidInput
from elsewise.transport import Ranked, Reference, segments

LEVELS = (0.05, 0.5, 0.9, 0.95, 0.975)


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


def weighted_square(x, a, y, b, trim):
    """Trimmed squared distance of weighted samples, straight from the definition."""
    i, j = np.argsort(x), np.argsort(y)
    fx, fy = np.cumsum(a[i]), np.cumsum(b[j])
    levels = np.concatenate([[trim, 1 - trim], fx[:-1], fy[:-1]])
    levels = np.sort(levels[(levels >= trim) & (levels <= 1 - trim)])
    middles = (levels[1:] + levels[:-1]) / 2
    quantiles_x = x[i][np.searchsorted(fx, middles)]
    quantiles_y = y[j][np.searchsorted(fy, middles)]
    return np.diff(levels) @ (quantiles_x - quantiles_y) ** 2 / (1 - 2 * trim)


def samples(seed=0, directions=3, n=20, m=13):
    """Return rows, their moved copies, and an independent sample."""
    rng = np.random.default_rng(seed)
    factual = rng.normal(size=(directions, n))
    moved = factual + 0.3 * factual**2 + 0.1 * rng.normal(size=(directions, n))
    return moved, factual, rng.normal(size=(directions, m))


def comparisons(trim=0.07):
    """Return one comparison of each kind."""
    moved, factual, other = samples()
    probabilities = np.random.default_rng(1).beta(2.0, 1.0, size=(1, 20))
    return {
        "paired": Comparison.paired(moved, factual, trim),
        "independent": Comparison.independent(moved, other, trim),
        "uniform": Comparison.known_target(probabilities, lambda t: uniform(20, t), trim),
        "constant": Comparison.known_target(probabilities, lambda t: constant(1.0, 20, t), trim),
    }


KINDS = tuple(comparisons())


def limits(kind: str) -> dict[str, UpperLimit]:
    """Return every limit of one comparison."""
    comparison = comparisons()[kind]
    rng = np.random.default_rng(2)
    support = (-9.0, 9.0) if kind in {"paired", "independent"} else (0.0, 1.0)
    return {
        "clt": clt_limit(comparison),
        "bootstrap": bootstrap_limit(comparison, 99, rng),
        "dkw": dkw_limit(comparison, support),
        "default": default_limit(comparison, 99, rng),
    }


FITTED = {(kind, name): limit for kind in KINDS for name, limit in limits(kind).items()}
fitted = pytest.mark.parametrize("limit", FITTED.values(), ids=map("-".join, FITTED))


# Distances


@pytest.mark.parametrize("trim", [0.0, 0.05, 0.1, 0.23])
def test_distance_of_unequal_samples_is_the_definition(trim):
    moved, _, other = samples()
    n, m = moved.shape[1], other.shape[1]
    expected = [
        weighted_square(x, np.full(n, 1 / n), y, np.full(m, 1 / m), trim)
        for x, y in zip(moved, other, strict=True)
    ]
    comparison = Comparison.independent(moved, other, trim)
    assert comparison.distance == pytest.approx(math.sqrt(np.mean(expected)), abs=1e-14)


def test_untrimmed_distance_is_the_optimal_transport_cost():
    moved, _, other = samples()
    expected = np.mean([ot.emd2_1d(x, y) for x, y in zip(moved, other, strict=True)])
    comparison = Comparison.independent(moved, other, 0.1)
    assert comparison.untrimmed_distance == pytest.approx(math.sqrt(expected), abs=1e-14)
    assert comparison.untrimmed_distance > comparison.distance


def test_untrimmed_distance_to_a_known_target():
    values = np.zeros((1, 10))
    comparison = Comparison.known_target(values, lambda t: uniform(10, t), 0.1)
    assert comparison.untrimmed_distance == pytest.approx(math.sqrt(1 / 3))
    assert comparison.distance == pytest.approx(math.sqrt((0.9**3 - 0.1**3) / 3 / 0.8))


# Influence functions


def numerical_influence(square, n, step=1e-6):
    """Differentiate ``square(weights)`` towards each row's point mass."""
    base = np.full(n, 1 / n)
    towards = [(np.eye(n)[i] - base) * step for i in range(n)]
    return np.array([square(base + d) - square(base - d) for d in towards]) / (2 * step)


@pytest.mark.parametrize("trim", [0.0, 0.07])
def test_paired_influence_is_the_numerical_derivative(trim):
    moved, factual, _ = samples()

    def square(weights):
        rows = zip(moved, factual, strict=True)
        return np.mean([weighted_square(x, weights, y, weights, trim) for x, y in rows])

    _, (rows,) = influence(Comparison.paired(moved, factual, trim))
    np.testing.assert_allclose(rows, numerical_influence(square, 20), atol=1e-8)


@pytest.mark.parametrize("trim", [0.0, 0.07])
@pytest.mark.parametrize("m", [13, 20, 40])
def test_independent_influence_is_the_numerical_derivative(trim, m):
    moved, _, other = samples(m=m)

    def square_moved(weights):
        rows = zip(moved, other, strict=True)
        return np.mean([weighted_square(x, weights, y, np.full(m, 1 / m), trim) for x, y in rows])

    def square_other(weights):
        rows = zip(moved, other, strict=True)
        return np.mean([weighted_square(x, np.full(20, 1 / 20), y, weights, trim) for x, y in rows])

    _, (f, g) = influence(Comparison.independent(moved, other, trim))
    np.testing.assert_allclose(f, numerical_influence(square_moved, 20), atol=1e-8)
    np.testing.assert_allclose(g, numerical_influence(square_other, m), atol=1e-8)


@pytest.mark.parametrize("trim", [0.0, 0.07])
def test_known_influence_is_the_numerical_derivative(trim):
    values = np.random.default_rng(1).beta(2.0, 1.0, size=(1, 20))
    # A sample of many quantiles stands for the uniform distribution.
    grid = (np.arange(20_000) + 0.5) / 20_000

    def square(weights):
        return weighted_square(values[0], weights, grid, np.full(grid.size, 1 / grid.size), trim)

    _, (rows,) = influence(Comparison.known_target(values, lambda t: uniform(20, t), trim))
    np.testing.assert_allclose(rows, numerical_influence(square, 20, 1e-3), atol=1e-3)
    assert np.abs(rows).max() > 0.1

    def square_to_one(weights):
        return weighted_square(values[0], weights, np.ones(1), np.ones(1), trim)

    _, (rows,) = influence(Comparison.known_target(values, lambda t: constant(1.0, 20, t), trim))
    np.testing.assert_allclose(rows, numerical_influence(square_to_one, 20), atol=1e-8)


def test_clt_of_a_mean_is_the_textbook_one():
    # To a constant, the squared distance is the mean of (1 - y)^2; its root has the delta method.
    values = np.random.default_rng(3).beta(2.0, 1.0, size=(1, 50))
    squares = (1 - values[0]) ** 2
    limit = clt_limit(Comparison.known_target(values, lambda t: constant(1.0, 50, t), 0.0))
    centred = squares - squares.mean()
    error = squares.std(ddof=1) / math.sqrt(50)
    skewness = max(0.0, np.sum((centred / 50) ** 3) / error**3)
    z = ndtri(0.95)
    estimate = math.sqrt(squares.mean())
    expected = estimate + error / (2 * estimate) * (z + skewness * (2 * z * z + 1) / 6)
    assert limit.upper(0.95) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("convert", [torch.asarray, array_api_strict.asarray])
def test_clt_is_the_same_in_every_array_library(kind, convert):
    comparison = comparisons()[kind]
    moving = convert(comparison.moving.rows)
    if comparison.pairing is Pairing.KNOWN:
        other = Comparison.known_target(moving, comparison.side, comparison.trim)
    elif comparison.pairing is Pairing.PAIRED:
        other = Comparison.paired(moving, convert(comparison.fixed.rows), comparison.trim)
    else:
        other = Comparison.independent(moving, convert(comparison.fixed.rows), comparison.trim)
    expected, limit = clt_limit(comparison), clt_limit(other)
    assert limit.estimate == pytest.approx(expected.estimate, rel=1e-12)
    assert limit.upper(0.95) == pytest.approx(expected.upper(0.95), rel=1e-12)
    draws = bootstrap_limit(other, 19, np.random.default_rng(0))
    assert draws.upper(0.9) == pytest.approx(
        bootstrap_limit(comparison, 19, np.random.default_rng(0)).upper(0.9), rel=1e-12
    )


def test_ties_do_not_depend_on_row_order():
    rng = np.random.default_rng(0)
    factual = rng.integers(0, 4, size=(1, 60)).astype(float)
    moved = factual + (factual > 1)
    shuffle = rng.permutation(60)
    first = clt_limit(Comparison.paired(moved, factual, 0.05)).upper(0.95)
    second = clt_limit(Comparison.paired(moved[:, shuffle], factual[:, shuffle], 0.05)).upper(0.95)
    assert first == pytest.approx(second, rel=1e-13)


def test_single_precision_is_computed_in_double():
    moved, factual, _ = samples()
    single = Comparison.paired(moved.astype(np.float32), factual.astype(np.float32), 0.05)
    assert single.moving.sorted.dtype == np.float64


# Bootstrap


@pytest.mark.parametrize("kind", KINDS)
def test_draws_are_those_of_resampling_and_sorting(kind):
    comparison = comparisons()[kind]
    drawn = bootstrap_distances(comparison, 25, np.random.default_rng(5))
    moving_rng, fixed_rng = np.random.default_rng(5).spawn(2)
    expected = []
    for _ in range(25):
        rows = moving_rng.integers(20, size=20)
        moving = comparison.moving.rows[:, rows]
        if comparison.pairing is Pairing.KNOWN:
            again = Comparison.known_target(moving, comparison.side, comparison.trim)
        elif comparison.pairing is Pairing.PAIRED:
            again = Comparison.paired(moving, comparison.fixed.rows[:, rows], comparison.trim)
        else:
            rows = fixed_rng.integers(13, size=13)
            again = Comparison.independent(moving, comparison.fixed.rows[:, rows], comparison.trim)
        expected.append(again.distance)
    np.testing.assert_allclose(drawn, expected, rtol=1e-12)


@pytest.mark.parametrize("way", SORTS, ids=str)
def test_resamples_are_the_sorted_rows_that_were_drawn(way, monkeypatch):
    """However ranks are sorted, each resample is the plain sort of what was drawn."""
    monkeypatch.setattr("elsewise.confidence._bootstrap._quickest_sort", lambda: way)
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(size=(3, 200)), 1)  # with ties
    drawn = rng.integers(200, size=(7, 200))
    order = np.argsort(values, axis=-1, kind="stable")
    ranked = Ranked(np.take_along_axis(values, order, axis=-1), order)
    np.testing.assert_array_equal(
        _resample(_Table.of(ranked), drawn), np.sort(values[:, drawn], axis=-1)
    )


def test_limit_is_the_stated_order_statistic():
    comparison = comparisons()["independent"]
    distances = np.sort(bootstrap_distances(comparison, 199, np.random.default_rng(0)))
    limit = bootstrap_limit(comparison, 199, np.random.default_rng(0))
    # ceil(0.95 * 200) = 190 and ceil(0.975 * 200) = 195, counting from 1.
    assert limit.upper(0.95) == max(limit.estimate, distances[189])
    assert limit.upper(0.975) == max(limit.estimate, distances[194])
    assert limit.probability(math.inf) == 199 / 200


@pytest.mark.parametrize("draws", [1, 6, 99, 199])
def test_every_attainable_level_is_met_to_the_last_bit(draws):
    comparison = comparisons()["constant"]
    limit = bootstrap_limit(comparison, draws, np.random.default_rng(0))
    distances = np.sort(bootstrap_distances(comparison, draws, np.random.default_rng(0)))
    distances = np.maximum(distances, limit.estimate)
    for rank in range(1, draws + 1):
        level = rank / (draws + 1)
        assert limit.upper(level) == distances[rank - 1]
        assert limit.upper(np.nextafter(level, 0.0)) == distances[rank - 1]
        if rank < draws:
            assert limit.upper(np.nextafter(level, 1.0)) == distances[rank]


def test_too_few_draws_are_refused_with_the_number_needed():
    limit = bootstrap_limit(comparisons()["paired"], 18, np.random.default_rng(0))
    with pytest.raises(InvalidInput, match=r"draws: expected at least 19 for level 0\.95"):
        limit.upper(0.95)
    enough = bootstrap_limit(comparisons()["paired"], 19, np.random.default_rng(0))
    assert enough.upper(0.95) >= enough.estimate
    with pytest.raises(InvalidInput, match="at least 1, received 0"):
        bootstrap_limit(comparisons()["paired"], 0, np.random.default_rng(0))


# DKW


def radius(errors: float, n: int, level: float = 0.95) -> float:
    return math.sqrt(math.log(errors / (1 - level)) / (2 * n))


@pytest.mark.parametrize("n", [50, 300])
def test_dkw_levels(n):
    middle = np.full((1, n), 0.5)
    support = (0.0, 1.0)

    def known(values, target):
        return Comparison.known_target(values, lambda t: constant(target, n, t), 0.0)

    # Identical point masses: the bands are at the support's ends on u < radius and u > 1 - radius.
    cases = [
        (known(np.ones((1, n)), 1.0), math.sqrt(radius(1, n))),
        (known(np.zeros((1, n)), 0.0), math.sqrt(radius(1, n))),
        (known(middle, 0.5), 0.5 * math.sqrt(2 * radius(2, n))),
        (Comparison.independent(middle, middle, 0.0), 0.5 * math.sqrt(2 * radius(4, n))),
        (
            Comparison.paired(np.full((7, n), 0.5), np.full((7, n), 0.5), 0.0),
            0.5 * math.sqrt(2 * radius(28, n)),
        ),
    ]
    for comparison, expected in cases:
        limit = dkw_limit(comparison, support).upper(0.95)
        assert expected <= limit <= expected * 1.01


def test_dkw_is_the_gap_between_the_bands():
    rng = np.random.default_rng(0)
    n, m, trim = 60, 45, 0.1
    x, y = np.sort(rng.uniform(size=(1, n))), np.sort(rng.beta(2, 2, size=(1, m)))
    levels = trim + (1 - 2 * trim) * (np.arange(200_000) + 0.5) / 200_000

    def band(values, error):
        size = values.size
        padded = np.concatenate([[0.0], values.ravel(), [1.0]])
        above = np.minimum(np.ceil(size * (levels + error)), size + 1).astype(int)
        below = np.maximum(np.ceil(size * (levels - error)), 0).astype(int)
        return padded[below], padded[above]

    (x_low, x_high), (y_low, y_high) = band(x, radius(4, n)), band(y, radius(4, m))
    gap = np.maximum(x_high - y_low, y_high - x_low)
    expected = math.sqrt(np.mean(gap**2))
    limit = dkw_limit(Comparison.independent(x, y, trim), (0.0, 1.0)).upper(0.95)
    assert expected - 1e-6 <= limit <= expected * 1.005


def test_dkw_bounds_a_known_distribution_inside_its_cells():
    n, trim = 60, 0.1
    x = np.sort(np.random.default_rng(0).beta(2, 2, size=(1, n)))
    levels = trim + (1 - 2 * trim) * (np.arange(200_000) + 0.5) / 200_000
    padded = np.concatenate([[0.0], x[0], [1.0]])
    error = radius(2, n)
    high = padded[np.minimum(np.ceil(n * (levels + error)), n + 1).astype(int)]
    low = padded[np.maximum(np.ceil(n * (levels - error)), 0).astype(int)]
    expected = math.sqrt(np.mean(np.maximum(high - levels, levels - low) ** 2))
    comparison = Comparison.known_target(x, lambda t: uniform(n, t), trim)
    limit = dkw_limit(comparison, (0.0, 1.0)).upper(0.95)
    assert expected <= limit <= expected * 1.03


def test_dkw_without_support_is_infinite_where_a_band_leaves_the_sample():
    moved, factual, _ = samples(n=2000)
    assert dkw_limit(Comparison.paired(moved, factual, 0.01)).upper(0.95) == math.inf
    assert dkw_limit(Comparison.paired(moved, factual, 0.01)).probability(1e9) == 0.0
    inside = dkw_limit(Comparison.paired(moved, factual, 0.1))
    assert inside.estimate < inside.upper(0.95) < math.inf
    assert inside.probability(math.inf) == 1.0


def test_dkw_takes_one_support_per_direction():
    moved, factual, _ = samples()
    comparison = Comparison.paired(moved, factual, 0.05)
    same = dkw_limit(comparison, (-9.0, 9.0)).upper(0.95)
    assert dkw_limit(comparison, (np.full(3, -9.0), np.full(3, 9.0))).upper(0.95) == same
    assert dkw_limit(comparison, (np.full(3, -9.0), np.array([9.0, 9.0, 99.0]))).upper(0.95) > same


def test_dkw_refuses_a_support_that_the_values_leave():
    comparison = comparisons()["paired"]
    with pytest.raises(InvalidInput, match="support: expected every value inside it"):
        dkw_limit(comparison, (0.0, 1.0))
    with pytest.raises(InvalidInput, match="support: expected lower < upper"):
        dkw_limit(comparison, (1.0, 0.0))


# Laws of every limit


@fitted
@settings(max_examples=60, deadline=None)
@given(level=st.floats(1e-3, 0.989), share=st.floats(0.0, 3.0))
def test_limit_and_probability_agree_exactly(limit, level, share):
    bound = share * limit.upper(0.95)
    probability = limit.probability(bound)
    assert 0.0 <= probability <= 1.0
    assert (limit.upper(level) <= bound) == (probability >= level)
    # The sharpest bounds and levels: a limit itself, its neighbour below, a probability itself.
    exact = limit.upper(level)
    assert limit.probability(exact) >= level
    assert limit.probability(np.nextafter(exact, -math.inf)) < level
    if 0.0 < probability < 0.99:
        assert limit.upper(probability) <= bound
        assert limit.upper(np.nextafter(probability, 1.0)) > bound


@fitted
def test_limits_grow_with_the_level_from_the_estimate(limit):
    uppers = [limit.upper(level) for level in LEVELS]
    assert uppers == sorted(uppers)
    assert uppers[0] >= limit.estimate > 0.0
    assert limit.probability(np.nextafter(limit.estimate, 0.0)) == 0.0
    assert limit.assumption.endswith(".")


@fitted
@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, math.nan])
def test_levels_outside_the_unit_interval_are_refused(limit, level):
    with pytest.raises(InvalidInput, match=r"level: expected a number in \(0, 1\)"):
        limit.upper(level)


@pytest.mark.parametrize("kind", KINDS)
def test_default_is_the_larger_of_its_two_parts(kind):
    comparison = comparisons()[kind]
    parts = (bootstrap_limit(comparison, 99, np.random.default_rng(7)), clt_limit(comparison))
    limit = default_limit(comparison, 99, np.random.default_rng(7))
    for level in LEVELS:
        assert limit.upper(level) == max(part.upper(level) for part in parts)
    for bound in limit.estimate * np.array([0.9, 1.0, 1.1, 2.0]):
        assert limit.probability(bound) == min(part.probability(bound) for part in parts)
    assert limit.method == "max(bootstrap, clt)"


def test_probability_of_the_clt_starts_at_the_median():
    limit = FITTED["paired", "clt"]
    assert limit.upper(0.1) == limit.upper(0.5)
    assert limit.probability(limit.upper(0.5)) == 0.5
    assert limit.probability(np.nextafter(limit.upper(0.5), 0.0)) == 0.0


def test_rows_that_stay_give_zero_and_never_divide_by_it():
    rows = np.random.default_rng(0).normal(size=(4, 30))
    comparison = Comparison.paired(rows, rows, 0.05)
    for limit in (
        clt_limit(comparison),
        bootstrap_limit(comparison, 99, np.random.default_rng(0)),
        default_limit(comparison, 99, np.random.default_rng(0)),
    ):
        assert limit.estimate == limit.upper(0.95) == 0.0
        assert limit.probability(0.0) >= 0.99
        assert limit.probability(-1.0) == 0.0
    assert dkw_limit(comparison, (-9.0, 9.0)).upper(0.95) > 0.0


def test_a_common_shift_is_known_without_error():
    # Every row moves by the same amount, so paired resamples all have the same distance.
    rows = np.arange(30.0)[None, :]
    limit = default_limit(Comparison.paired(rows + 2.0, rows, 0.1), 99, np.random.default_rng(0))
    assert limit.estimate == pytest.approx(2.0)
    assert limit.upper(0.95) == pytest.approx(2.0)
    assert limit.probability(3.0) >= 0.99


@given(scale=st.sampled_from([1e-60, 1e-6, 0.3, 1e6, 1e60]), shift=st.floats(-100.0, 100.0))
@settings(max_examples=30, deadline=None)
def test_limits_follow_a_change_of_units(scale, shift):
    moved, factual, _ = samples()
    before = clt_limit(Comparison.paired(moved, factual, 0.07)).upper(0.95)
    after = clt_limit(Comparison.paired(scale * (moved + shift), scale * (factual + shift), 0.07))
    assert after.upper(0.95) == pytest.approx(scale * before, rel=1e-9)


# The door


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: Comparison.paired(x, x[:, 1:], 0.0), r"fixed: expected the moving rows' shape"),
        (lambda x: Comparison.paired(x[:, :1], x[:, :1], 0.0), r"moving: expected shape \(N, n\)"),
        (lambda x: Comparison.paired(x[0], x[0], 0.0), r"moving: expected shape \(N, n\)"),
        (lambda x: Comparison.independent(x, x[:, :1], 0.0), r"fixed: expected shape \(2, m\)"),
        (lambda x: Comparison.independent(x, x[:1], 0.0), r"fixed: expected shape \(2, m\)"),
        (lambda x: Comparison.paired(x, x, 0.5), r"trim: expected a number in \[0, 0.5\)"),
        (lambda x: Comparison.paired(x, x, math.nan), r"trim: expected a number in \[0, 0.5\)"),
    ],
)
def test_comparisons_that_make_no_sense_are_refused(build, message):
    with pytest.raises(InvalidInput, match=message):
        build(np.arange(10.0).reshape(2, 5))


def test_public_names():
    assert all(hasattr(confidence, name) for name in confidence.__all__)


def test_examples_of_the_bands() -> None:
    from benchmarks.rivals import dkw

    assert not doctest.testmod(dkw).failed
