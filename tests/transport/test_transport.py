"""Laws of transport, checked against POT's linear programs, SciPy, quadrature and differences."""

from __future__ import annotations

import itertools

import array_api_strict
import numpy as np
import ot
import pytest
import scipy.integrate
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from elsewise._arrays import to_numpy
from elsewise.transport import (
    MonotoneMaps,
    Ranked,
    _ranking,
    direction_blocks,
    fit_monotone_maps,
    project,
    rank,
    reference,
    segments,
    sliced_squared_distance,
    sliced_squared_distance_and_gradient,
    sorted_squared_distances,
)

LAWS = settings(max_examples=50)
NUMBERS = st.floats(-100, 100).map(lambda value: round(value, 6))
TRIMS = st.sampled_from([0.0, 0.05, 0.1, 1 / 3, 0.49])
ONE = np.ones((1, 1))


def samples(max_size: int = 12) -> st.SearchStrategy[np.ndarray]:
    """Arrays (n, 1), ties among them."""
    sizes = st.integers(1, max_size)
    return sizes.flatmap(lambda n: hnp.arrays(np.float64, (n, 1), elements=NUMBERS))


@st.composite
def clouds(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Populations (n, d) and (m, d) of Gaussian rows, and directions (d, N)."""
    n, m, d = draw(st.integers(1, 9)), draw(st.integers(1, 9)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    x, y = rng.normal(size=(n, d)), 2.0 + 3.0 * rng.normal(size=(m, d))
    return x, y, direction_blocks(d, rng, minimum=6)


def quantile_distance(x: np.ndarray, y: np.ndarray, trim: float) -> float:
    """Integrate (F^-1 - G^-1)^2 over [trim, 1 - trim], piece by piece between all jumps."""
    x, y = np.sort(x.ravel()), np.sort(y.ravel())

    def squared_gap(u: float) -> float:
        at = [values[min(int(np.floor(u * values.size)), values.size - 1)] for values in (x, y)]
        return float((at[0] - at[1]) ** 2)

    jumps = np.concatenate([np.arange(1, v.size) / v.size for v in (x, y)])
    inside = np.unique(jumps[(jumps > trim) & (jumps < 1 - trim)])
    edges = np.concatenate([[trim], inside, [1 - trim]])
    pieces = [
        scipy.integrate.fixed_quad(np.vectorize(squared_gap), a, b, n=3)[0]
        for a, b in itertools.pairwise(edges)
    ]
    return float(np.sum(pieces) / (1 - 2 * trim))


# --- the distance ---------------------------------------------------------------------------------


@LAWS
@given(clouds(), TRIMS)
def test_distance_is_symmetric_and_zero_on_itself(
    cloud: tuple[np.ndarray, np.ndarray, np.ndarray], trim: float
) -> None:
    x, y, theta = cloud
    there = sliced_squared_distance(x, y, theta, trim)
    assert there == pytest.approx(sliced_squared_distance(y, x, theta, trim), rel=1e-9, abs=1e-9)
    assert there >= 0
    assert sliced_squared_distance(x, x, theta, trim) == 0
    assert sliced_squared_distance(x[::-1], x, theta, trim) == pytest.approx(0, abs=1e-12)


@LAWS
@given(clouds(), TRIMS, st.integers(0, 2**32))
def test_translation_costs_its_length(
    cloud: tuple[np.ndarray, np.ndarray, np.ndarray], trim: float, seed: int
) -> None:
    """Complete orthonormal blocks see |shift|^2 / d exactly, whatever their rotation."""
    x, _, theta = cloud
    d = x.shape[1]
    shift = 5.0 * np.random.default_rng(seed).normal(size=d)
    moved = sliced_squared_distance(x + shift, x, theta, trim)
    assert moved == pytest.approx(shift @ shift / d, rel=1e-9)
    if d == 1:
        assert np.sqrt(moved) == pytest.approx(abs(shift[0]))


@LAWS
@given(samples(), samples())
def test_distance_is_the_linear_programs(x: np.ndarray, y: np.ndarray) -> None:
    mine = sliced_squared_distance(x, y, ONE)
    assert mine == pytest.approx(ot.emd2_1d(x, y), rel=1e-9, abs=1e-9)
    assert mine == pytest.approx(
        float(ot.wasserstein_1d(x[:, 0], y[:, 0], p=2)), rel=1e-6, abs=1e-6
    )
    cost = (x - y.T) ** 2
    lp = ot.emd2(np.full(len(x), 1 / len(x)), np.full(len(y), 1 / len(y)), cost)
    assert mine == pytest.approx(float(lp), rel=1e-9, abs=1e-9)


@LAWS
@given(samples(), st.floats(-50, 50), st.floats(0.1, 5))
def test_distance_between_affine_images_is_scipys(x: np.ndarray, a: float, b: float) -> None:
    """SciPy has W1 only; where one sample dominates the other and moves evenly, W2 = W1."""
    shifted = np.sqrt(sliced_squared_distance(x, x + a, ONE))
    assert shifted == pytest.approx(
        scipy.stats.wasserstein_distance(x[:, 0], x[:, 0] + a), rel=1e-6, abs=1e-6
    )
    # Against a point mass both are moments: W1 the mean deviation, W2 the root mean square.
    point = np.full((3, 1), b)
    assert sliced_squared_distance(x, point, ONE) == pytest.approx(np.mean((x - b) ** 2))
    assert sliced_squared_distance(x, point, ONE) >= (
        scipy.stats.wasserstein_distance(x[:, 0], point[:, 0]) ** 2 * (1 - 1e-9)
    )


@LAWS
@given(samples(), samples(), TRIMS)
def test_trimmed_distance_is_an_integral(x: np.ndarray, y: np.ndarray, trim: float) -> None:
    expected = quantile_distance(x, y, trim)
    assert sliced_squared_distance(x, y, ONE, trim) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_sliced_distance_is_pots() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 5)), 1 + rng.normal(size=(21, 5))
    theta = direction_blocks(5, rng)
    expected = ot.sliced_wasserstein_distance(x, y, projections=theta, p=2) ** 2
    assert sliced_squared_distance(x, y, theta) == pytest.approx(float(expected), rel=1e-9)


def test_distance_of_gaussians_is_the_closed_form() -> None:
    """W2^2 = (mean gap)^2 + (sd gap)^2, at quantiles fine enough for 1 % ."""
    levels = (np.arange(20_000) + 0.5) / 20_000
    x = scipy.stats.norm(1, 2).ppf(levels)[:, None]
    y = scipy.stats.norm(-2, 3).ppf(levels[::2])[:, None]
    assert sliced_squared_distance(x, y, ONE) == pytest.approx(9 + 1, rel=1e-2)


@LAWS
@given(clouds(), TRIMS)
def test_gradient_is_that_of_finite_differences(
    cloud: tuple[np.ndarray, np.ndarray, np.ndarray], trim: float
) -> None:
    """Rows are Gaussian, so ties are at distance >> h almost surely; the seeds here have none."""
    x, y, theta = cloud
    value, gradient = sliced_squared_distance_and_gradient(x, y, theta, trim)
    assert value == pytest.approx(sliced_squared_distance(x, y, theta, trim), rel=1e-12, abs=1e-12)
    h = 1e-6
    differences = np.empty_like(x)
    for place in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[place] += h
        down[place] -= h
        differences[place] = (
            sliced_squared_distance(up, y, theta, trim)
            - sliced_squared_distance(down, y, theta, trim)
        ) / (2 * h)
    np.testing.assert_allclose(gradient, differences, rtol=1e-4, atol=1e-6)


# --- the parts of the distance --------------------------------------------------------------------


@LAWS
@given(st.integers(1, 40), st.integers(1, 40), TRIMS)
def test_segments_cut_both_quantile_functions(n: int, m: int, trim: float) -> None:
    x, y, weights = segments(n, m, trim)
    assert weights.sum() == pytest.approx(1)
    assert (weights > 0).all()
    assert len(weights) <= n + m - 1
    # The share of each rank is its cell's part of [trim, 1 - trim].
    for size, ranks in ((n, x), (m, y)):
        assert (np.diff(ranks) >= 0).all()
        edges = np.clip(np.arange(size + 1) / size, trim, 1 - trim)
        share = np.bincount(ranks, weights, minlength=size)
        np.testing.assert_allclose(share, np.diff(edges) / (1 - 2 * trim), atol=1e-12)


def test_segments_cannot_be_changed() -> None:
    for array in segments(7, 5, 0.1):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@LAWS
@given(samples(), st.integers(1, 12), TRIMS)
def test_reference_has_cell_means_and_variances(y: np.ndarray, n: int, trim: float) -> None:
    """The overlap (n, m) of every quantile cell with every value of y says it all."""
    values = np.sort(y[:, 0])
    fixed = reference(values[None], n, trim)
    mine, theirs = (np.clip(np.arange(k + 1) / k, trim, 1 - trim) for k in (n, values.size))
    overlap = np.minimum.outer(mine[1:], theirs[1:]) - np.maximum.outer(mine[:-1], theirs[:-1])
    overlap = np.maximum(overlap, 0) / (1 - 2 * trim)
    weights = overlap.sum(axis=1)
    np.testing.assert_allclose(fixed.weights, weights, atol=1e-12)
    inside = weights > 1e-9
    means = overlap[inside] @ values / weights[inside]
    np.testing.assert_allclose(fixed.partners[0, inside], means, rtol=1e-6, atol=1e-6)
    spread = np.sum(overlap * (values - fixed.partners[0][:, None]) ** 2)
    assert float(fixed.spread[0]) == pytest.approx(spread, rel=1e-9, abs=1e-9)


def test_rank_sorts_and_remembers() -> None:
    values = np.random.default_rng(1).integers(0, 4, size=(3, 9)).astype(float)
    ranked = rank(values)
    assert isinstance(ranked, Ranked)
    np.testing.assert_array_equal(ranked.sorted, np.sort(values))
    np.testing.assert_array_equal(np.take_along_axis(values, ranked.order, -1), ranked.sorted)
    np.testing.assert_array_equal(ranked.rows, values)


@LAWS
@given(st.integers(1, 80), st.integers(1, 70), st.integers(0, 2**32))
def test_directions_come_in_complete_orthonormal_blocks(d: int, minimum: int, seed: int) -> None:
    theta = direction_blocks(d, np.random.default_rng(seed), minimum)
    count = theta.shape[1]
    assert theta.shape[0] == d
    assert count % d == 0
    if d > 1:
        assert minimum <= count < minimum + d
    for start in range(0, count, d):
        block = theta[:, start : start + d]
        np.testing.assert_allclose(block.T @ block, np.eye(d), atol=1e-12)
    np.testing.assert_allclose(theta @ theta.T / count, np.eye(d) / d, atol=1e-12)


def test_directions_are_uniform_on_the_sphere() -> None:
    """First entry of a uniform direction in 3-D is uniform on [-1, 1] (Archimedes)."""
    theta = direction_blocks(3, np.random.default_rng(0), minimum=3000)
    assert scipy.stats.kstest(theta[0], scipy.stats.uniform(-1, 2).cdf).pvalue > 0.01


def test_same_generator_same_directions() -> None:
    first, second = (direction_blocks(5, np.random.default_rng(7)) for _ in range(2))
    assert first.tobytes() == second.tobytes()
    other = direction_blocks(5, np.random.default_rng(8))
    assert not np.array_equal(first, other)


# --- monotone maps --------------------------------------------------------------------------------


@LAWS
@given(
    samples(30), st.sampled_from([0.0, 0.5, 1.0, 3.0]), hnp.arrays(float, (1, 9), elements=NUMBERS)
)
def test_identity_stays_exactly_the_identity(
    x: np.ndarray, smoothing: float, points: np.ndarray
) -> None:
    values = np.sort(x.T)
    maps = fit_monotone_maps(values, values, smoothing)
    assert not maps.prepared()(points).any()
    np.testing.assert_array_equal(maps(points), points)


@LAWS
@given(samples(30), st.floats(-9, 9), st.sampled_from([0.0, 0.5, 1.0, 3.0]))
def test_translation_is_kept_everywhere(x: np.ndarray, shift: float, smoothing: float) -> None:
    values = np.sort(x.T)
    maps = fit_monotone_maps(values, values + shift, smoothing)
    points = np.linspace(-300, 300, 41)[None]
    np.testing.assert_allclose(maps(points), points + shift, atol=1e-9)


@LAWS
@given(samples(30), st.integers(0, 2**32))
def test_unsmoothed_map_interpolates_the_pairs_with_ties_averaged(x: np.ndarray, seed: int) -> None:
    values = np.sort(np.round(x.T))
    partners = np.sort(np.random.default_rng(seed).normal(0, 50, values.shape))
    maps = fit_monotone_maps(values, partners, smoothing=0)
    distinct = np.unique(values)
    means = np.array([partners[values == value].mean() for value in distinct])
    np.testing.assert_allclose(maps(distinct[None])[0], means, atol=1e-9)
    # Between knots linear, outside slope 1.
    points = np.linspace(values.min() - 20, values.max() + 20, 57)
    expected = np.interp(points, distinct, means)
    expected += np.minimum(points - distinct[0], 0) + np.maximum(points - distinct[-1], 0)
    np.testing.assert_allclose(maps(points[None])[0], expected, atol=1e-9)


@LAWS
@given(samples(40), st.sampled_from([0.5, 1.0, 2.0]), st.integers(0, 2**32))
def test_smoothed_map_is_monotone_in_bounds_and_small(
    x: np.ndarray, smoothing: float, seed: int
) -> None:
    values = np.sort(x.T)
    n = values.shape[1]
    partners = np.sort(np.random.default_rng(seed).normal(0, 50, values.shape))
    maps = fit_monotone_maps(values, partners, smoothing)
    assert maps.knots.shape == maps.displacements.shape
    assert maps.knots.shape[1] <= max(5 * np.sqrt(n) / smoothing, 2)
    points = np.linspace(values.min(), values.max(), 101)[None]
    image = maps(points)
    assert (np.diff(image) >= -1e-9).all()
    assert image.min() >= partners.min() - 1e-9
    assert image.max() <= partners.max() + 1e-9
    low, high = maps.prepared()(np.array([[values.min() - 7, values.max() + 7]]))[0]
    first, last = maps.prepared()(np.array([[values.min(), values.max()]]))[0]
    assert (low, high) == pytest.approx((first, last), rel=1e-12)


@LAWS
@given(st.integers(0, 2**32), st.sampled_from([0.0, 1.0]))
def test_map_does_not_jump_where_rows_share_a_value(seed: int, smoothing: float) -> None:
    """Half the rows sit on one atom, equal up to rounding that grew; a new row joins them."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(80, 3))
    rows[20:60] = rows[20]
    theta = direction_blocks(3, rng, minimum=6)
    noise = 1.0 + 1e-12 * rng.choice([-1, 0, 1], size=(theta.shape[1], 80))
    values = np.sort(project(rows, theta) * noise)
    partners = np.sort(project(rng.normal(size=(80, 3)), theta))
    maps = fit_monotone_maps(values, partners, smoothing)
    atom = project(rows[20:21], theta)
    around = atom * (1.0 + 1e-12 * np.array([-1, -0.5, 0, 0.5, 1]))
    assert np.ptp(maps.prepared()(around), axis=1).max() < 1e-9


def test_smoothing_averages_over_a_window() -> None:
    """With n = 103 and smoothing 1 blocks have 3 ranks, and windows 3 blocks around each knot."""
    rng = np.random.default_rng(0)
    values, partners = np.sort(rng.normal(size=(2, 1, 103)))
    maps = fit_monotone_maps(values, partners, 1.0)
    assert maps.knots.shape == (1, 34)
    for knot in range(2, 32):
        window = slice(3 * (knot - 1), 3 * (knot + 2))
        assert maps.knots[0, knot] == pytest.approx(values[0, window].mean())
        expected = (partners - values)[0, window].mean()
        assert maps.displacements[0, knot] == pytest.approx(expected)
    ends = [0, -1]
    np.testing.assert_array_equal(maps.knots[0, ends], values[0, ends])
    np.testing.assert_array_equal(maps(values[:, ends]), partners[:, ends])


def test_maps_of_several_directions_are_independent() -> None:
    rng = np.random.default_rng(3)
    values = np.sort(rng.normal(size=(4, 25)) * np.array([[1e-3], [1], [50], [0]]) + 1e3)
    partners = np.sort(rng.normal(size=(4, 25)))
    points = np.concatenate([values, values + rng.normal(size=(4, 25))], axis=1)
    together = fit_monotone_maps(values, partners)(points)
    for k in range(4):
        alone = fit_monotone_maps(values[k : k + 1], partners[k : k + 1])(points[k : k + 1])
        np.testing.assert_allclose(together[k], alone[0], rtol=1e-12, atol=1e-9)


# --- one kernel, three libraries ------------------------------------------------------------------

X = np.random.default_rng(10).normal(size=(14, 3))
Y = 1.0 + np.random.default_rng(11).normal(size=(9, 3))
TIED = np.sort(np.round(np.random.default_rng(12).normal(size=(4, 30)), 1))
PARTNERS = np.sort(np.random.default_rng(13).normal(size=(4, 30)))
POINTS = np.random.default_rng(14).normal(0, 3, size=(4, 17))
THETA = direction_blocks(3, np.random.default_rng(15), minimum=9)
MAPS = fit_monotone_maps(TIED, PARTNERS, 1.0)


def fields(value: object) -> list[np.ndarray]:
    """Return every array of a result, as NumPy."""
    if isinstance(value, tuple):
        return [array for part in value for array in fields(part)]
    if hasattr(value, "toarray"):
        return [value.toarray()]
    if hasattr(value, "__dataclass_fields__"):
        return [
            array for name in value.__dataclass_fields__ for array in fields(getattr(value, name))
        ]
    return [to_numpy(value)]


PUBLIC = {
    "project": lambda a: project(a(X), a(THETA)),
    "rank": lambda a: rank(project(a(X), a(THETA))),
    "rows": lambda a: rank(project(a(X), a(THETA))).rows,
    "reference": lambda a: reference(a(np.sort(Y.T)), 14, 0.1),
    "reference of equal size": lambda a: reference(a(np.sort(Y.T)), 9, 0.1),
    "sorted_squared_distances": lambda a: sorted_squared_distances(
        a(np.sort(X.T)), reference(a(np.sort(Y.T)), 14, 0.1)
    ),
    "sliced_squared_distance": lambda a: sliced_squared_distance(a(X), a(Y), a(THETA), 0.05),
    "sliced_squared_distance_and_gradient": lambda a: sliced_squared_distance_and_gradient(
        a(X), a(Y), a(THETA), 0.05
    ),
    "fit_monotone_maps": lambda a: fit_monotone_maps(a(TIED), a(PARTNERS), 1.0),
    "fit_monotone_maps unsmoothed": lambda a: fit_monotone_maps(a(TIED), a(PARTNERS), 0.0),
    "MonotoneMaps": lambda a: MonotoneMaps(
        knots=a(MAPS.knots), displacements=a(MAPS.displacements)
    )(a(POINTS)),
    "MonotoneMaps of one knot": lambda a: MonotoneMaps(
        knots=a(MAPS.knots[:, :1]), displacements=a(MAPS.displacements[:, :1])
    )(a(POINTS)),
}


@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.parametrize("library", [torch, array_api_strict], ids=["torch", "strict"])
def test_every_library_gives_the_same_numbers(name: str, library: object) -> None:
    call = PUBLIC[name]
    expected = call(np.asarray)
    received = call(lambda array: library.asarray(np.array(array)))
    arrays = [a for a in fields(received) if a.ndim]
    assert arrays or isinstance(received, float)
    for mine, theirs in zip(fields(expected), fields(received), strict=True):
        assert mine.dtype.kind == theirs.dtype.kind
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["project", "reference", "fit_monotone_maps", "MonotoneMaps"])
def test_results_stay_in_the_library_and_precision_of_the_input(name: str) -> None:
    received = PUBLIC[name](lambda array: torch.asarray(np.array(array), dtype=torch.float32))
    fields_ = getattr(received, "__dataclass_fields__", None)
    tensors = [received] if fields_ is None else [getattr(received, field) for field in fields_]
    for tensor in tensors:
        assert isinstance(tensor, torch.Tensor)
        assert tensor.dtype == torch.float32


CLOSE = 1e9 + np.arange(3.0)[:, None] + 1e-6 * np.random.default_rng(0).normal(size=(3, 40_000))
MANY = {
    "normal": np.random.default_rng(0).normal(size=(3, 200_000)),
    "ties": np.random.default_rng(0).integers(-50, 50, size=(3, 40_000)).astype(float),
    "one value": np.zeros((2, 40_000)),
    "both zeros": np.copysign(0.0, np.random.default_rng(0).normal(size=(2, 40_000))),
    "heavy tails": np.random.default_rng(0).standard_cauchy(size=(3, 40_000)) ** 3,
    "nearly equal": CLOSE,
    "few nearly equal": np.where(np.arange(40_000) < 20, CLOSE, np.arange(40_000.0)),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", MANY)
def test_many_values_are_ranked_as_by_argsort(name: str, dtype: type) -> None:
    values = MANY[name].astype(dtype)
    found = rank(values)
    np.testing.assert_array_equal(found.sorted, np.sort(values, axis=-1))
    np.testing.assert_array_equal(np.take_along_axis(values, found.order, -1), found.sorted)
    np.testing.assert_array_equal(
        np.sort(found.order), np.broadcast_to(np.arange(values.shape[1]), values.shape)
    )


def test_packing_gives_up_where_values_are_too_close() -> None:
    assert _ranking._packed(MANY["normal"]) is not None
    assert _ranking._packed(MANY["nearly equal"]) is None
    assert _ranking._packed(np.arange(5)) is None
