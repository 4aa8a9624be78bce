"""Which limit a certificate uses and when, intervals beside it, and how many rows it needs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from benchmarks.calibration.methods import default_limit
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from elsewise.confidence import (
    Comparison,
    Interval,
    Method,
    _doubt,
    certificate_limit,
    clt_limit,
    count_movers,
    mean_interval,
    move_cap,
    notice_of,
    rows_needed,
    share_interval,
    steering_method,
)
from elsewise.confidence import _choice as choice
from elsewise.errors import InvalidInput
from elsewise.transport import Reference, direction_blocks, project, segments

UNIT = (0.0, 1.0)
BAND, COUPLING, DEFAULT = "equal-local-level band", "coupling + betting", "max(bootstrap, clt)"
SHIFT, BETTER = "rank shift", "min(coupling + betting, rank shift)"
DIRECTIONS = direction_blocks(5, np.random.default_rng(1), 20)
CAP = move_cap(DIRECTIONS, 5 * 6.0**2)


def paired(movers: int, n: int = 120, trim: float = 0.05) -> Comparison:
    """Compare outputs in [0, 1] with a target that so many of them miss by 0.1."""
    wanted = np.random.default_rng(0).uniform(0.5, 1.0, size=(1, n))
    return Comparison.paired(wanted - 0.1 * (np.arange(n) < movers), wanted, trim)


def to_constant(values: np.ndarray, level: float, trim: float) -> Comparison:
    """Compare values (1, n) with a known constant."""
    n = values.shape[1]

    def side(share: float) -> Reference:
        pieces = segments(n, n, share)
        weights = np.bincount(pieces.x, pieces.weights, minlength=n)
        return Reference(partners=np.full((1, n), level), weights=weights, spread=np.zeros(1))

    return Comparison.known_target(values, side, trim)


def moved_rows(share: float, size: float, trim: float = 0.05):
    """Return a way to draw rows of five features of which a share moves, in two features."""

    def draw(rng: np.random.Generator, n: int) -> Comparison:
        factual = rng.normal(size=(n, 5)).clip(-3.0, 3.0)
        moved = factual + size * (rng.uniform(size=(n, 1)) < share) * [1.0, 1.0, 0.0, 0.0, 0.0]
        return Comparison.paired(project(moved, DIRECTIONS), project(factual, DIRECTIONS), trim)

    return draw


def chosen(comparison: Comparison, **known: object):
    return certificate_limit(comparison, 199, np.random.default_rng(0), **known)


# The choice


@pytest.mark.parametrize(
    ("comparison", "known", "method"),
    [
        (paired(10), {"support": UNIT}, DEFAULT),
        (paired(9), {"support": UNIT}, BETTER),
        (paired(9), {"cap": 1.0}, BETTER),
        (paired(0), {"support": UNIT}, BETTER),
        (paired(9, n=60), {"support": UNIT}, COUPLING),
        (paired(2, n=400), {}, SHIFT),
        (paired(2, n=400, trim=0.0), {}, DEFAULT),
        (paired(9, trim=0.0), {"support": UNIT}, COUPLING),
        (paired(60, n=99, trim=0.0), {"support": UNIT}, COUPLING),
        (paired(60, n=100, trim=0.0), {"support": UNIT}, DEFAULT),
        (paired(60, n=99, trim=0.01), {"support": UNIT}, DEFAULT),
        (paired(9), {}, DEFAULT),
        (paired(60), {"support": UNIT, "method": "finite-sample"}, COUPLING),
        (paired(60), {"cap": 1.0, "method": "finite-sample"}, COUPLING),
        (paired(3), {"support": UNIT, "method": "asymptotic"}, DEFAULT),
        (paired(3), {"support": UNIT, "method": "exact"}, "exact"),
        (paired(0), {"cap": 0.0}, "nothing moves"),
    ],
)
def test_the_method_follows_movers_rows_and_trim(comparison, known, method):
    limit = chosen(comparison, **known)
    assert limit.method == method
    assert limit.assumption.endswith(".")
    assert limit.estimate <= limit.upper(0.975) < math.inf


def test_constants_known_targets_and_samples_choose_too():
    rng = np.random.default_rng(0)
    values = rng.beta(8.0, 1.0, size=(1, 60))
    few = np.where(np.arange(60) < 4, values, 1.0)
    assert chosen(to_constant(few, 1.0, 0.05), support=UNIT).method == BAND
    assert chosen(to_constant(few, 1.0, 0.0), support=UNIT).method == COUPLING
    assert chosen(to_constant(values, 1.0, 0.05), support=UNIT).method == DEFAULT
    for trim, method in ((0.0, BAND), (0.05, DEFAULT)):
        sample = Comparison.independent(values, rng.uniform(size=(1, 80)), trim)
        assert chosen(sample, support=UNIT).method == method
        # A cap on moves says nothing about rows that have no partner.
        assert chosen(sample, cap=1.0).method == DEFAULT


def test_several_directions_use_the_coupling():
    # A band would pay for every direction.
    comparison = moved_rows(0.02, 1.0)(np.random.default_rng(3), 150)
    assert 0 < count_movers(comparison) < 10
    assert chosen(comparison, support=(-9.0, 9.0)).method == BETTER
    assert chosen(comparison, support=(-9.0, 9.0), method="finite-sample").method == COUPLING


def test_rows_that_stay_are_zero_only_where_none_can_move():
    still = paired(0)
    known, unknown = chosen(still, cap=0.0), chosen(still)
    assert known.upper(0.975) == 0.0
    assert (known.probability(0.0), known.probability(-0.1)) == (1.0, 0.0)
    assert "known" in known.assumption
    assert unknown.upper(0.975) > 0.01
    assert chosen(still, cap=1.0).upper(0.975) > 0.01
    assert chosen(paired(0, trim=0.0), support=UNIT).upper(0.975) > 0.1
    # Of so few rows nothing is known: the limit is 0, and says loudly that it may be too small.
    few = chosen(paired(0, n=60))
    assert few.upper(0.975) == 0.0
    assert "fewer than ten rows clearly moved" in few.assumption
    assert "support" in notice_of(few)
    with pytest.raises(InvalidInput, match="cap: expected a finite number, at least the largest"):
        chosen(paired(3), cap=0.0)


def test_movers_are_more_than_rounding():
    rows = np.random.default_rng(0).normal(size=(3, 50))
    single = rows.astype(np.float32).astype(np.float64)
    assert count_movers(Comparison.paired(single, rows, 0.0)) == 0
    assert count_movers(Comparison.paired(rows + 1e-3, rows, 0.0)) == 50
    assert count_movers(Comparison.independent(rows, rows, 0.0)) is None
    tensors = Comparison.paired(torch.asarray(rows + 1e-3), torch.asarray(rows), 0.0)
    assert count_movers(tensors) == 50


def test_a_method_that_cannot_be_had_is_refused():
    with pytest.raises(InvalidInput, match="method: expected"):
        chosen(paired(20), method="finite-sample")


def test_doubts_are_said_with_their_remedy():
    rng = np.random.default_rng(0)
    heavy = rng.standard_t(2.1, size=(2, 200))
    light = rng.normal(size=(2, 200))
    for rows, trim, known, said in (
        (heavy, 0.0, {"cap": 1e9}, "tails are heavy"),
        (heavy, 0.05, {}, ""),
        # A sample without a tail may have missed it: only a known range is a reason not to warn.
        (light, 0.0, {}, "less than 5% is trimmed and the range of the values is not known"),
        (light, 0.0, {"cap": 1e9}, ""),
        (light, 0.0, {"support": (-9.0, 9.0)}, ""),
        (light[:, :80], 0.0, {}, "nothing is trimmed and there are only 80 rows"),
        (light[:, :40], 0.05, {}, "there are only 40 rows"),
    ):
        limit = chosen(Comparison.paired(rows + 0.3 * np.abs(rows), rows, trim), **known)
        assert said in notice_of(limit)
        assert bool(said) == bool(notice_of(limit)) == ("too small" in limit.assumption)
    assert "trim of 0.05" in notice_of(chosen(Comparison.paired(heavy + 1.0, heavy, 0.0)))


def test_kurtosis_is_scipys():
    x, y = np.random.default_rng(0).exponential(size=(2, 3, 400))
    found = _doubt._kurtosis(Comparison.independent(x, y**2, 0.0))
    assert found == pytest.approx(np.mean(stats.kurtosis(y**2, axis=1, fisher=False)))
    tensors = Comparison.independent(torch.asarray(x), torch.asarray(y**2), 0.0)
    assert _doubt._kurtosis(tensors) == pytest.approx(found)


def test_limits_and_their_probabilities_agree_whatever_was_chosen():
    for known in ({"support": UNIT}, {"cap": 1.0}, {}):
        for movers in (3, 60):
            limit = chosen(paired(movers), **known)
            for level in (0.5, 0.9, 0.975):
                upper = limit.upper(level)
                assert limit.probability(upper) >= level
                assert limit.probability(np.nextafter(upper, 0.0)) < level or upper == (
                    limit.estimate
                )


def test_large_work_takes_fewer_draws_and_then_none(monkeypatch):
    comparison = paired(60)
    monkeypatch.setattr(choice, "BOOTSTRAP_WORK", 120 * 250)
    few = certificate_limit(comparison, 999, np.random.default_rng(0))
    same = default_limit(comparison, 250, np.random.default_rng(0))
    assert few.upper(0.975) == same.upper(0.975)
    # 250 draws do not reach a level of 0.999.
    alone = certificate_limit(comparison, 9999, np.random.default_rng(0), level=0.999)
    assert (alone.method, alone.upper(0.9)) == ("clt", clt_limit(comparison).upper(0.9))
    monkeypatch.setattr(choice, "BOOTSTRAP_WORK", 120 * 150)
    assert certificate_limit(comparison, 999, np.random.default_rng(0)).method == "clt"


def test_exact_is_the_distance():
    limit = certificate_limit(paired(30), 99, np.random.default_rng(0), method="exact")
    assert limit.upper(0.5) == limit.upper(0.999) == limit.estimate == paired(30).distance
    assert limit.probability(limit.estimate) == 1.0
    with pytest.raises(InvalidInput, match="level"):
        limit.upper(1.0)


def test_searches_are_not_steered_by_a_limit_that_jumps():
    assert steering_method("auto", 0.05, 50) is Method.ASYMPTOTIC
    assert steering_method("auto", 0.0, 200) is Method.ASYMPTOTIC
    # Few rows and no trimming do not depend on what moves: that limit is steered by.
    assert steering_method("auto", 0.0, 99) is Method.AUTO
    for method in (Method.ASYMPTOTIC, Method.FINITE_SAMPLE, Method.EXACT):
        assert steering_method(method, 0.05, 50) is method


# Coverage where the default fails


def coverage(draw, n: int, truth: float, repetitions: int, **known: object) -> tuple[float, float]:
    """Return how often the chosen limit and the default one cover, at 0.95."""
    rng, hits = np.random.default_rng(5), np.zeros(2)
    for _ in range(repetitions):
        comparison = draw(rng, n)
        limits = (
            certificate_limit(comparison, 39, rng, level=0.95, **known),
            default_limit(comparison, 39, rng),
        )
        hits += [limit.upper(0.95) >= truth for limit in limits]
    return tuple(hits / repetitions)


def test_the_switch_catches_samples_without_a_mover():
    draw = moved_rows(0.02, 2.0)
    truth = draw(np.random.default_rng(9), 50_000).distance
    ours, default = coverage(draw, 50, truth, 200, cap=CAP)
    assert ours == 1.0
    # Without a mover, which happens in 36 % of samples, the default limit is 0.
    assert default < 0.75


def test_the_switch_catches_rare_failures():
    def draw(rng, n):
        return to_constant(1.0 - 1.0 * (rng.uniform(size=(1, n)) < 0.03), 1.0, 0.0)

    ours, default = coverage(draw, 50, math.sqrt(0.03), 300, support=UNIT)
    assert ours >= 0.95
    assert default < 0.85


@pytest.mark.parametrize("kind", ["scaled", "step", "skewed"])
def test_clear_distances_need_no_bootstrap(kind):
    """From 2000 rows and 20 standard errors on the CLT covers by itself."""
    theta, trim = direction_blocks(4, np.random.default_rng(1), 8), 0.05

    def draw(rng, n):
        x = rng.normal(size=(n, 4))
        step = {
            "scaled": lambda: 0.2 * x,
            "step": lambda: 0.3 * (x > 0.5),
            "skewed": lambda: 0.2 * np.sign(x) * rng.exponential(size=x.shape),
        }[kind]()
        return Comparison.paired(project(x + step, theta), project(x, theta), trim)

    rng, level, repetitions = np.random.default_rng(4), 0.9, 120
    truth = draw(rng, 200_000).distance
    hits = 0
    for _ in range(repetitions):
        limit = certificate_limit(draw(rng, 2000), 999, rng)
        assert limit.method == "clt"
        hits += limit.upper(level) >= truth
    assert hits / repetitions >= level - 4 * math.sqrt(level * (1 - level) / repetitions)


# Intervals


@given(hits=st.integers(0, 30), misses=st.integers(0, 30), level=st.floats(0.5, 0.999))
@settings(max_examples=60)
def test_shares_are_clopper_pearson(hits, misses, level):
    if hits + misses == 0:
        return
    values = np.repeat([0.7, 0.2], [hits, misses])
    found = share_interval(values, 0.5, level)
    oracle = stats.binomtest(hits, hits + misses).proportion_ci(level, method="exact")
    assert (found.lower, found.upper) == pytest.approx((oracle.low, oracle.high), abs=1e-9)
    assert found.lower <= found.estimate == hits / (hits + misses) <= found.upper


def test_the_cut_off_itself_counts():
    assert share_interval(np.array([0.4, 0.5]), 0.5, 0.9).estimate == 0.5


def test_means_without_support_are_students():
    # Symmetric values have no skewness to correct for.
    half = np.random.default_rng(0).normal(0.0, 2.0, size=20)
    values = 3.0 + np.concatenate([half, -half])
    found = mean_interval(values, 0.9, np.random.default_rng(0))
    oracle = stats.ttest_1samp(values, 0.0).confidence_interval(0.9)
    assert (found.lower, found.upper) == pytest.approx((oracle.low, oracle.high))
    assert found.method == "skew-corrected t"
    assert "nearly normal" in found.assumption
    assert not found.notice


def test_means_are_corrected_by_halls_transform():
    """The interval holds the means at which the transformed statistic is within Student's."""
    values = np.random.default_rng(0).lognormal(size=80)
    found = mean_interval(values, 0.9, np.random.default_rng(0))
    n, skewness = 80, np.mean((values - values.mean()) ** 3) / np.std(values, ddof=1) ** 3
    w = (values.mean() - np.array([found.lower, found.upper])) / np.std(values, ddof=1)
    transformed = w + skewness * w**2 / 3 + skewness**2 * w**3 / 27 + skewness / (6 * n)
    wanted = stats.t.ppf(0.95, n - 1) / math.sqrt(n)
    assert transformed == pytest.approx([wanted, -wanted])
    assert found.upper - found.estimate > found.estimate - found.lower


@pytest.mark.parametrize(("spread", "wanted"), [(1.0, 0.935), (1.5, 0.89)])
def test_means_of_skewed_outputs_cover(spread, wanted):
    rng, repetitions, hits, said = np.random.default_rng(0), 1500, 0, 0
    for _ in range(repetitions):
        found = mean_interval(np.exp(spread * rng.standard_normal(150)), 0.95, rng)
        hits += found.lower <= math.exp(spread**2 / 2) <= found.upper
        said += "skewed" in found.notice
    assert hits / repetitions >= wanted
    assert said / repetitions > 0.4


@pytest.mark.parametrize(("a", "b", "n"), [(2.0, 2.0, 40), (0.2, 4.0, 40), (5.0, 0.5, 300)])
def test_bets_cover_a_mean_from_both_sides(a, b, n):
    rng, level, repetitions = np.random.default_rng(2), 0.9, 300
    mean, low, high = a / (a + b), -1.0, 3.0
    misses, widths = np.zeros(2), []
    for _ in range(repetitions):
        found = mean_interval(low + (high - low) * rng.beta(a, b, size=n), level, rng, (low, high))
        assert found.lower <= found.estimate <= found.upper
        truth = low + (high - low) * mean
        misses += [found.lower > truth, found.upper < truth]
        widths.append(found.upper - found.lower)
    error = 4 * math.sqrt(0.05 * 0.95 / repetitions)
    assert np.all(misses / repetitions <= 0.05 + error)
    spread = (high - low) * math.sqrt(a * b / ((a + b) ** 2 * (a + b + 1)))
    assert np.mean(widths) <= 3.0 * 2 * stats.norm.ppf(0.95) * spread / math.sqrt(n)


def test_means_outside_their_support_are_refused():
    with pytest.raises(InvalidInput, match="support: expected lower < upper"):
        mean_interval(np.array([0.2, 1.2]), 0.9, np.random.default_rng(0), UNIT)
    rounded = np.array([0.2, 1.0 + 1e-7])
    assert mean_interval(rounded, 0.9, np.random.default_rng(0), UNIT).upper <= 1.0 + 1e-7


def test_a_known_number_has_no_interval():
    known = Interval.known(0.3)
    assert (known.estimate, known.lower, known.upper, known.level) == (0.3, None, None, None)


# How many rows


def below_target(rng, n):
    return to_constant(rng.beta(8.0, 2.0, size=(1, n)), 1.0, 0.1)


@pytest.mark.parametrize(
    ("draw", "method", "known"),
    [
        (moved_rows(0.04, 1.0), "auto", {"cap": CAP}),
        (moved_rows(0.31, 1.0), "finite-sample", {"cap": CAP}),
        (below_target, "finite-sample", {"support": UNIT}),
        (moved_rows(0.31, 1.0), "auto", {"cap": CAP}),
    ],
    ids=["few movers", "coupling", "band", "default"],
)
def test_rows_needed_do_for_those_who_follow(draw, method, known):
    """Most of those who follow the advice come under the bound, and not with twenty times more."""
    rng, level = np.random.default_rng(0), 0.975
    truth = draw(rng, 30_000).distance

    def limit_of(comparison):
        return certificate_limit(comparison, 99, rng, level=level, method=method, **known)

    bound = truth + 0.6 * (
        np.median([limit_of(draw(rng, 100)).upper(level) for _ in range(30)]) - truth
    )
    advice = []
    for _ in range(25):
        comparison = draw(rng, 100)
        limit = limit_of(comparison)
        if limit.upper(level) > bound:
            advice.append(rows_needed(comparison, limit, bound, level, rng, method)[1])
    numbers = [rows for rows in advice if rows is not None]
    assert len(numbers) >= 0.7 * len(advice)
    assert 100 < np.median(numbers) < 2000
    met = [limit_of(draw(rng, min(rows, 4000))).upper(level) <= bound for rows in numbers]
    assert np.mean(met) >= 0.6


def test_no_number_of_rows_helps_a_distance_above_its_bound():
    comparison = paired(60)
    limit = chosen(comparison, support=UNIT)
    debiased, rows = rows_needed(comparison, limit, 0.9 * limit.estimate, 0.975, limit_rng())
    assert rows is None
    assert debiased == pytest.approx(limit.estimate, rel=0.2)


def test_very_many_rows_have_no_bias_to_speak_of(monkeypatch):
    comparison = paired(60)
    monkeypatch.setattr(choice, "BOOTSTRAP_WORK", 100)
    limit = chosen(comparison, support=UNIT)
    debiased, _ = rows_needed(comparison, limit, limit.upper(0.6), 0.975, limit_rng())
    assert debiased == limit.estimate


def limit_rng() -> np.random.Generator:
    return np.random.default_rng(1)


def rows_of(n: int, share: float, dimension: int = 8):
    """Return rows on 64 directions, projected, a share of them moved by one standard deviation."""
    rng = np.random.default_rng(0)
    theta = direction_blocks(dimension, rng, 64)
    factual = rng.normal(size=(n, dimension))
    moved = factual + 1.0 * (factual[:, :1] > stats.norm.ppf(1 - share))
    return project(moved, theta), project(factual, theta)


@pytest.mark.parametrize(("n", "method"), [(2000, DEFAULT), (100_000, "clt")])
def test_very_many_rows_need_no_resamples(n, method):
    moved, factual = rows_of(n, 0.05)
    limit = certificate_limit(
        Comparison.paired(moved, factual, 0.05), 99, np.random.default_rng(0), cap=36.0
    )
    assert limit.upper(0.975) > limit.estimate
    assert limit.method == method
