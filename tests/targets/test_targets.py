"""Targets: what they accept, what they say about rows, cells of known distributions, saving."""

from __future__ import annotations

import json
import math

import array_api_strict
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from elsewise import targets
from elsewise.errors import InvalidInput

LIBRARIES = {
    "numpy": np.asarray,
    "numpy32": lambda values: np.asarray(values, dtype=np.float32),
    "strict": lambda values: array_api_strict.asarray(values),
    "torch": lambda values: torch.asarray(values, dtype=torch.float64),
    "torch32": lambda values: torch.asarray(values, dtype=torch.float32),
}

ROWS = np.array([[0.25, 0.5], [0.75, -1.0], [0.5, 2.0]])

RULES = [
    (targets.constant(1.0), np.ones_like(ROWS)),
    (targets.constant([1.0, 2.0]), np.array([[1.0, 2.0]] * 3)),
    (targets.at_least(0.5), np.maximum(ROWS, 0.5)),
    (targets.at_least([0.5, 0.0]), np.maximum(ROWS, [0.5, 0.0])),
    (targets.at_most(0.5), np.minimum(ROWS, 0.5)),
    (targets.shift(-0.25), ROWS - 0.25),
    (targets.shift(np.array([1.0, -1.0])), ROWS + np.array([1.0, -1.0])),
    (targets.scale(2.0), 2 * ROWS),
    (targets.scale(0.5, about=[1.0, 0.0]), [1.0, 0.0] + 0.5 * (ROWS - [1.0, 0.0])),
]

LAWS = [
    stats.uniform(-1, 3),
    stats.norm(),
    stats.norm(1e3, 2),
    stats.expon(scale=2),
    stats.beta(0.1, 0.9),
    stats.gamma(0.1),
    stats.t(3),
    stats.lognorm(1),
    stats.poisson(3),
    stats.binom(10, 0.3),
    stats.bernoulli(0.3),
]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("target", "expected"), RULES, ids=lambda case: getattr(case, "name", ""))
def test_derived_rows_in_every_library(target, expected, library):
    outputs = LIBRARIES[library](ROWS)
    wanted = target.of(outputs)
    assert type(wanted) is type(outputs)
    assert wanted.dtype == outputs.dtype
    np.testing.assert_array_equal(np.asarray(wanted), expected)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=10), st.floats(-1e3, 1e3))
def test_rows_that_comply_keep_their_bits(values, level):
    outputs = np.array(values)[:, None]
    for target, complies in (
        (targets.at_least(level), outputs >= level),
        (targets.at_most(level), outputs <= level),
        (targets.shift(0.0), outputs == outputs),
        (targets.scale(1.0, about=level), outputs == outputs),
    ):
        assert np.array_equal(target.of(outputs)[complies], outputs[complies])


@pytest.mark.parametrize(
    "target", [targets.at_least([0.1, 0.2]), targets.constant([1]), targets.scale(1, [1, 2])]
)
def test_columns_must_fit(target):
    with pytest.raises(InvalidInput, match=r"outputs: expected an array \(n, "):
        target.of(np.zeros((4, 3)))
    with pytest.raises(InvalidInput, match="shape"):
        target.of(np.zeros(4))


def test_scale_vectors_must_agree():
    with pytest.raises(InvalidInput, match="about: expected a number, or 2 numbers"):
        targets.scale([1.0, 2.0], about=[0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("target", "name", "columns", "words"),
    [
        (targets.at_least(0.6), "at_least(0.6)", None, "at least 0.6"),
        (targets.at_most([0.6, 1]), "at_most([0.6, 1])", 2, "at most [0.6, 1]"),
        (targets.shift(-0.1), "shift(-0.1)", None, "moved by -0.1"),
        (targets.scale(2, 0.5), "scale(2, about=0.5)", None, "from 0.5 multiplied by 2"),
        (targets.constant(1), "constant(1)", None, "equal to 1"),
        (targets.constant([1, 2]), "constant([1, 2])", 2, "equal to [1, 2]"),
        (targets.sample([1, 2, 3]), "sample(3 rows)", 1, "a sample of 3 rows"),
        (targets.group(ROWS), "group(3 rows)", 2, "a group of 3 rows"),
        (
            targets.distribution(stats.beta(2, b=5)),
            "distribution(beta(2, b=5))",
            1,
            "distributed as beta(2, b=5)",
        ),
        (
            targets.distribution(np.sqrt),
            "distribution(quantile function)",
            1,
            "distributed as quantile function",
        ),
    ],
    ids=lambda case: getattr(case, "name", None),
)
def test_names_columns_words(target, name, columns, words):
    assert target.name == name
    assert target.columns == columns
    assert words in target.describe()


@pytest.mark.parametrize(
    "values",
    [
        [0.25, 0.5],
        np.array([0.25, 0.5], dtype=np.float32),
        pd.Series([0.25, 0.5], index=[7, 9]),
        pd.Series([0.25, 0.5], dtype="Float64"),
        pd.DataFrame({"score": [0.25, 0.5]}),
        torch.tensor([[0.25], [0.5]], requires_grad=True),
        np.array([0.25, 0.5], dtype=object),
    ],
    ids=lambda values: type(values).__name__,
)
def test_sample_accepts(values):
    rows = targets.sample(values).values  # noqa: PD011
    assert rows.dtype == np.float64
    np.testing.assert_array_equal(rows, [[0.25], [0.5]])
    with pytest.raises(ValueError, match="read-only"):
        rows[0, 0] = 1.0


def test_sample_does_not_lock_the_users_array():
    values = np.ones(3)
    target = targets.sample(values)
    values[0] = 2.0
    assert target.to_dict()["arguments"] == [[[1.0], [1.0], [1.0]]]


@pytest.mark.parametrize(
    "values", [["a", "b"], ["1", "2"], [1.0, math.nan], [math.inf], [None, 1.0], [1j]]
)
def test_values_must_be_finite_numbers(values):
    for make, argument in (
        (targets.sample, "values"),
        (targets.group, "scores"),
        (targets.constant, "level"),
        (targets.at_least, "level"),
        (targets.at_most, "level"),
        (targets.shift, "amount"),
        (targets.scale, "factor"),
    ):
        if None in values and argument == "level":
            continue  # a column that nobody cares about
        with pytest.raises(InvalidInput, match=f"{argument}: expected finite numbers"):
            make(values)


@pytest.mark.parametrize("values", [[], np.zeros((0, 2)), 1.0, np.zeros((2, 2, 2))])
def test_sample_needs_rows(values):
    with pytest.raises(InvalidInput, match="values: expected at least one row"):
        targets.sample(values)


@pytest.mark.parametrize("level", [[], np.zeros((2, 2))])
def test_level_needs_a_number_or_one_per_column(level):
    with pytest.raises(InvalidInput, match="level: expected a number, or one number per output"):
        targets.constant(level)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{law.dist.name}{law.args}")
@pytest.mark.parametrize("size", [1, 2, 7, 300])
def test_cells_add_up_to_the_moments(law, size):
    breaks = np.linspace(0, 1, size + 1)
    means, variances = targets.distribution(law).cells(breaks)
    weights = np.diff(breaks)
    assert np.all(variances >= 0)
    assert np.all(np.diff(means) >= -1e-9 * law.std())
    assert weights @ means == pytest.approx(law.mean(), abs=1e-8 * law.std())
    second = law.var() + law.mean() ** 2
    assert weights @ (means**2 + variances) == pytest.approx(second, rel=2e-8)


BREAKS = np.array([0.0, 0.01, 0.3, 0.5, 0.77, 0.999, 1.0])


def test_cells_of_the_uniform():
    means, variances = targets.distribution(stats.uniform(2, 3)).cells(BREAKS)
    np.testing.assert_allclose(means, 2 + 3 * (BREAKS[1:] + BREAKS[:-1]) / 2, rtol=1e-12)
    np.testing.assert_allclose(variances, (3 * np.diff(BREAKS)) ** 2 / 12, rtol=1e-9)


def test_cells_of_the_normal():
    # d/dz of -pdf is z pdf, and of cdf - z pdf is z^2 pdf.
    z = stats.norm.ppf(BREAKS)
    pdf = stats.norm.pdf(z)
    tail = np.where(np.isfinite(z), z, 0.0) * pdf
    means, variances = targets.distribution(stats.norm()).cells(BREAKS)
    expected = -np.diff(pdf) / np.diff(BREAKS)
    np.testing.assert_allclose(means, expected, atol=1e-8)
    second = 1 - np.diff(tail) / np.diff(BREAKS)
    np.testing.assert_allclose(variances, second - expected**2, atol=1e-8)


def test_cells_of_the_exponential():
    # With v = 1 - u the quantile is -log v; its integrals are v - v log v and so on.
    v = 1 - BREAKS
    log = np.log(np.where(v > 0, v, 1.0))
    first, second = v - v * log, v * log**2 - 2 * v * log + 2 * v
    expected = -np.diff(first) / np.diff(BREAKS)
    means, variances = targets.distribution(stats.expon()).cells(BREAKS)
    np.testing.assert_allclose(means, expected, atol=1e-8)
    moment = -np.diff(second) / np.diff(BREAKS)
    np.testing.assert_allclose(variances, moment - expected**2, atol=1e-8)


@pytest.mark.parametrize("breaks", [BREAKS, np.linspace(0.05, 0.95, 10), np.linspace(0, 1, 21)])
def test_cells_of_a_u_shaped_beta(breaks):
    law = stats.beta(0.1, 0.9)
    means, variances = targets.distribution(law).cells(breaks)
    for low, high, mean, variance in zip(breaks[:-1], breaks[1:], means, variances, strict=True):
        expected = integrate.quad(law.ppf, low, high, epsabs=1e-13)[0] / (high - low)
        assert mean == pytest.approx(expected, abs=1e-9)
        spread = integrate.quad(
            lambda u, center=expected: (law.ppf(u) - center) ** 2, low, high, epsabs=1e-13
        )
        assert variance == pytest.approx(spread[0] / (high - low), abs=1e-9)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=8),
    st.lists(st.floats(0.001, 0.999), unique=True, max_size=6),
)
def test_cells_of_a_step_function(values, inner):
    values = np.sort(np.array(values, dtype=np.float64))
    size = values.size

    def quantile(levels):
        return values[np.clip(np.ceil(size * levels).astype(int) - 1, 0, size - 1)]

    breaks = np.array([0.0, *sorted(inner), 1.0])
    means, variances = targets.distribution(quantile).cells(breaks)
    for low, high, mean, variance in zip(breaks[:-1], breaks[1:], means, variances, strict=True):
        edges = np.clip(np.arange(size + 1) / size, low, high)
        share = np.diff(edges) / (high - low)
        assert mean == pytest.approx(share @ values, abs=1e-7)
        assert variance == pytest.approx(share @ (values - share @ values) ** 2, abs=1e-7)


@settings(deadline=None, max_examples=30)
@given(
    st.sampled_from(LAWS),
    st.lists(st.floats(0.001, 0.999), unique=True, max_size=6),
    st.floats(0.001, 0.999),
)
def test_splitting_a_cell_keeps_its_moments(law, inner, cut):
    target = targets.distribution(law)
    coarse = np.unique([0.0, *inner, 1.0])
    fine = np.union1d(coarse, [cut])

    def moments(breaks):
        means, variances = target.cells(breaks)
        weights = np.diff(breaks)
        cell = np.searchsorted(coarse, breaks[:-1], side="right") - 1
        centred = means - law.mean()
        return np.bincount(cell, weights * means), np.bincount(
            cell, weights * (centred**2 + variances)
        )

    for one, other in zip(moments(coarse), moments(fine), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-7 * law.var() + 1e-9 * law.std())


def test_cells_of_a_translated_law_are_translated():
    means, variances = targets.distribution(stats.norm(0, 2)).cells(BREAKS)
    moved, same = targets.distribution(stats.norm(50, 2)).cells(BREAKS)
    np.testing.assert_allclose(moved, means + 50, atol=1e-8)
    np.testing.assert_allclose(same, variances, atol=1e-7)


def test_a_jump_rarer_than_the_table_is_found():
    means, variances = targets.distribution(stats.bernoulli(1e-7)).cells([0.0, 0.5, 1.0])
    np.testing.assert_allclose(means, [0.0, 2e-7], rtol=1e-6)
    np.testing.assert_allclose(variances, [0.0, 2e-7], rtol=1e-6)


def test_a_flat_quantile_function_has_no_variance():
    means, variances = targets.distribution(lambda u: np.full_like(u, 0.7)).cells(BREAKS)
    np.testing.assert_allclose(means, 0.7, rtol=1e-14)
    np.testing.assert_allclose(variances, 0.0, atol=1e-28)


@pytest.mark.parametrize("law", [stats.cauchy(), stats.t(2), stats.pareto(1.5), stats.t(1)])
def test_infinite_variance_is_refused_unless_trimmed(law):
    target = targets.distribution(law)
    with pytest.raises(InvalidInput, match="finite variance"):
        target.cells([0.0, 0.5, 1.0])
    means, _ = target.cells([0.1, 0.5, 0.9])
    assert np.all(np.isfinite(means))


def test_unfrozen_family_without_parameters():
    assert targets.distribution(stats.norm).name == "distribution(norm())"


@pytest.mark.parametrize("known", [stats.beta, 3.0, "beta", stats.multivariate_normal([0, 0])])
def test_distribution_refuses_what_has_no_quantiles(known):
    with pytest.raises(InvalidInput, match=r"known: expected a frozen scipy\.stats distribution"):
        targets.distribution(known)


@pytest.mark.parametrize("law", [stats.beta(-1, 2), stats.norm([0, 1], 1)])
def test_distribution_refuses_bad_parameters(law):
    with pytest.raises(InvalidInput, match="one distribution with valid parameters"):
        targets.distribution(law)


@pytest.mark.parametrize(
    ("function", "received"),
    [
        (lambda u: -u, "outputs that decrease"),
        (lambda u: 1.0, "an output of shape"),
        (lambda u: math.sqrt(u), "TypeError"),
        (lambda u: np.where(u > 0.5, np.nan, u), "not finite"),
    ],
)
def test_distribution_refuses_what_is_no_quantile_function(function, received):
    with pytest.raises(InvalidInput, match=received):
        targets.distribution(function)


def test_a_hole_between_the_checked_levels_is_refused_when_met():
    target = targets.distribution(lambda u: np.where(u < 1e-9, np.nan, u))
    with pytest.raises(InvalidInput, match="not finite"):
        target.cells([0.0, 1.0])


@pytest.mark.parametrize(
    "target",
    [target for target, _ in RULES]
    + [targets.sample([0.1, 0.7]), targets.group(ROWS)]
    + [targets.distribution(law) for law in (*LAWS, stats.gamma(2, loc=1))],
    ids=lambda target: target.name,
)
def test_saving_keeps_everything(target):
    again = targets.from_dict(json.loads(json.dumps(target.to_dict())))
    assert type(again) is type(target)
    assert again.name == target.name
    assert again.to_dict() == target.to_dict()
    if isinstance(target, targets.DistributionTarget):
        np.testing.assert_array_equal(again.cells(BREAKS), target.cells(BREAKS))


@pytest.mark.parametrize(
    ("known", "error"),
    [
        (np.sqrt, 1e-5),
        (stats.norm.ppf, 1e-3),
        (stats.rv_histogram(np.histogram([0.1, 0.2, 0.2, 0.9], bins=4), density=False), 1e-3),
        # Interpolation smears a jump of 2 over one of 1024 intervals, cells are a tenth wide.
        (stats.rv_discrete(values=([1, 2, 4], [0.2, 0.5, 0.3])), 0.05),
    ],
    ids=["sqrt", "norm.ppf", "histogram", "discrete"],
)
def test_saving_without_a_name_keeps_a_table(known, error):
    target = targets.distribution(known)
    again = targets.from_dict(json.loads(json.dumps(target.to_dict())))
    assert again.name == "distribution(interpolated table of 1025 quantiles)"
    assert again.to_dict() == target.to_dict()
    breaks = np.linspace(0, 1, 11)
    for one, other in zip(target.cells(breaks), again.cells(breaks), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=error)


def test_from_dict_refuses_an_unknown_kind():
    with pytest.raises(InvalidInput, match="a kind among sample, group, constant"):
        targets.from_dict({"kind": "wish"})


def test_public_names():
    assert sorted(targets.__all__) == targets.__all__
    assert all(hasattr(targets, name) for name in targets.__all__)
