"""The eta rule, Interval Narrowing and Set Shrinking."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elsewise.errors import InvalidInput
from elsewise.settings import IntervalNarrowing, SetShrinking, balance_gaps

INF = math.inf
gaps = st.floats(-10, 10) | st.sampled_from([-INF, INF, 0.0, -0.0])
units = st.floats(0, 1)


@pytest.mark.parametrize(
    ("gap_inputs", "gap_outputs", "expected"),
    [
        (-1.0, 2.0, 0.0),  # only the inputs break their limit
        (-1.0, 0.0, 0.0),
        (-INF, 1.0, 0.0),
        (-INF, INF, 0.0),
        (1.0, -2.0, 1.0),  # only the outputs do
        (0.0, -1.0, 1.0),
        (1.0, -INF, 1.0),
        (-1.0, -3.0, 0.75),  # both: the larger violation gets more
        (-3.0, -1.0, 0.25),
        (-INF, -1.0, 0.0),
        (-1.0, -INF, 1.0),
        (-INF, -INF, 0.5),
        (1.0, 3.0, 0.25),  # none: the smaller room gets more
        (3.0, 1.0, 0.75),
        (0.0, 1.0, 0.0),
        (1.0, 0.0, 1.0),
        (INF, 1.0, 1.0),
        (1.0, INF, 0.0),
        (INF, INF, 0.5),
        (0.0, 0.0, 0.5),
        (-0.0, 0.0, 0.5),
    ],
)
def test_rule_table(gap_inputs, gap_outputs, expected):
    assert balance_gaps(gap_inputs, gap_outputs) == expected


@given(gaps, gaps)
def test_rule_is_a_weight_and_symmetric(a, b):
    assert 0 <= balance_gaps(a, b) <= 1
    assert balance_gaps(a, b) + balance_gaps(b, a) == pytest.approx(1)


@given(st.floats(0.01, 10), st.floats(0.01, 10), st.floats(0.01, 10))
def test_a_worse_violation_never_weighs_less(a, b, worse):
    assert balance_gaps(-a, -b - worse) >= balance_gaps(-a, -b)
    assert balance_gaps(a, b + worse) <= balance_gaps(a, b)


@pytest.mark.parametrize("pair", [(math.nan, 0.0), (0.0, math.nan)])
def test_nan_gap_is_refused(pair):
    with pytest.raises(InvalidInput, match="expected a number or an infinity"):
        balance_gaps(*pair)


@given(units, units, st.floats(0.01, 0.99), st.lists(st.tuples(gaps, gaps), max_size=30))
def test_interval_narrows_by_kappa_and_holds_eta(one, other, kappa, sequence):
    balance = IntervalNarrowing(lower=min(one, other), upper=max(one, other), kappa=kappa)
    for a, b in sequence:
        eta, narrower = balance.choose(a, b)
        assert balance.lower <= eta <= balance.upper
        length = balance.upper - balance.lower
        assert narrower.upper - narrower.lower == pytest.approx((1 - kappa) * length, abs=1e-15)
        assert balance.lower <= narrower.lower <= narrower.upper <= balance.upper
        assert narrower.kappa == kappa
        if kappa < 0.5 and length > 1e-9:  # then the cut does not reach eta
            assert narrower.lower <= eta <= narrower.upper
        balance = narrower


def test_interval_ends_and_middle():
    balance = IntervalNarrowing(lower=0.2, upper=0.6, kappa=0.25)
    eta, after = balance.choose(-1, 1)
    assert (eta, after.lower) == (0.2, 0.2)
    assert after.upper == pytest.approx(0.5)
    eta, after = balance.choose(1, -1)
    assert (eta, after.upper) == (0.6, 0.6)
    assert after.lower == pytest.approx(0.3)
    eta, after = IntervalNarrowing(kappa=0.25).choose(-INF, -INF)  # the middle cuts above
    assert (eta, after.lower, after.upper) == (0.5, 0.0, 0.75)


def test_point_interval_stays():
    eta, after = IntervalNarrowing(lower=0.3, upper=0.3).choose(0.7, 0.1)
    assert (eta, after.lower, after.upper) == (0.3, 0.3, 0.3)


@pytest.mark.parametrize(
    "ends", [(-0.1, 1.0), (0.0, 1.1), (0.6, 0.5), (math.nan, 1.0), (0.0, math.nan)]
)
def test_interval_refuses_ends(ends):
    with pytest.raises(InvalidInput, match="0 <= lower <= upper <= 1"):
        IntervalNarrowing(lower=ends[0], upper=ends[1])


@pytest.mark.parametrize("kappa", [0.0, 1.0, -0.1, math.nan])
def test_interval_refuses_kappa(kappa):
    with pytest.raises(InvalidInput, match="kappa: expected a number strictly between 0 and 1"):
        IntervalNarrowing(kappa=kappa)


@given(
    st.lists(units | st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=1, max_size=12),
    st.lists(st.tuples(gaps, gaps), min_size=1, max_size=20),
)
def test_set_gives_the_nearest_and_loses_one_copy_of_it(values, sequence):
    balance = SetShrinking(values)
    assert balance.values == tuple(sorted(values))
    for a, b in sequence:
        wish = balance_gaps(a, b)
        eta, smaller = balance.choose(a, b)
        distance = min(abs(value - wish) for value in balance.values)
        assert eta == min(v for v in balance.values if abs(v - wish) == distance)
        removed = Counter(balance.values) - Counter(smaller.values)
        if len(balance.values) > 1:
            assert removed == Counter([eta])
        else:
            assert removed == Counter()
            assert smaller.values == (eta,)
        balance = smaller


def test_set_ties_give_the_smaller():
    assert SetShrinking([0.75, 0.25]).choose(0, 0)[0] == 0.25


def test_set_accepts_any_iterable():
    assert SetShrinking(value / 2 for value in range(3)).values == (0.0, 0.5, 1.0)


@pytest.mark.parametrize("values", [[], [0.5, 1.5], [-0.1], [math.nan], [INF]])
def test_set_refuses(values):
    with pytest.raises(InvalidInput, match="at least one number, each in"):
        SetShrinking(values)
