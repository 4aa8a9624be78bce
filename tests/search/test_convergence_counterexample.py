"""Set Shrinking does not give the convergence bound of the paper with Delta = 0.

The toy is an instance of the paper's problem: one row, one feature, x' = 0, b(x) = x, y* = 1, so
Q_x = x^2 and Q_y = (x - 1)^2. Eta comes from the set of 200 zeros and 200 ones.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elsewise.settings import SetShrinking

LIPSCHITZ = 2.0  # of the gradient of Q = (1 - eta) x^2 + eta (x - 1)^2, for every eta
LARGEST = 1.0  # B: of Q_x and Q_y on [0, 1], which no iterate leaves


def descend(x, balance, gaps, steps, bound=LIPSCHITZ):
    """Run gradient descent with step 1 / bound; return points, etas and gradients."""
    points, etas, gradients = [x], [], []
    for t in range(steps):
        eta, balance = balance.choose(*gaps(t, x))
        gradient = 2.0 * (x - eta)
        x = x - gradient / bound
        points.append(x)
        etas.append(eta)
        gradients.append(gradient)
    return np.array(points), np.array(etas), np.array(gradients)


def bound_terms(x0, etas, gradients, bound=LIPSCHITZ):
    """Return, for every prefix T: min |grad|, the sum form, C^2 Q(v0) and C^2 Delta."""
    constant = np.sqrt(2 * bound) + LIPSCHITZ * np.sqrt(2 / bound)  # C with rho = 1
    start = x0**2 + (x0 - 1) ** 2
    travelled = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(etas)))])
    smallest = np.minimum.accumulate(np.abs(gradients))
    total = np.cumsum(gradients**2)
    return smallest, total, constant**2 * start, constant**2 * LARGEST * travelled


def blocks(t, x):
    """Gaps that ask for the inputs 200 times, then for the outputs."""
    return (-1.0, 1.0) if t < 200 else (1.0, -1.0)


def limits_060(t, x):
    """Gaps of the limits |x| <= 0.6 and |x - 1| <= 0.6, which every x in [0.4, 0.6] meets."""
    return 0.6 - abs(x), 0.6 - abs(x - 1)


def test_two_blocks_break_the_proof_but_not_the_bound():
    """200 zeros, then 200 ones: two steps of the proof are false, the result survives.

    The proof replaces the fall of (1 - eta) Q_x + eta Q_y by that of Q_x + Q_y, because "descent
    makes both fall". It makes one fall and the other rise: from x = 1/2 the first block has
    sum |grad|^2 = 1 against a claimed bound of -8, the second 4 against 0. The end of the chain,
    5 <= C^2 (Q_x + Q_y)(v0) = 8, happens to hold: eta turned only once.
    """
    points, etas, gradients = descend(0.5, SetShrinking([0.0, 1.0] * 200), blocks, 400)
    assert etas.tolist() == [0.0] * 200 + [1.0] * 200

    both = points**2 + (points - 1) ** 2
    for begin, end, claimed in ((0, 200, -8.0), (200, 400, 0.0)):
        fall = 16.0 * (both[begin] - both[end])
        assert fall == pytest.approx(claimed)
        assert np.sum(gradients[begin:end] ** 2) > fall

    smallest, total, start, _ = bound_terms(0.5, etas, gradients)
    assert start == pytest.approx(8.0)
    assert total[-1] == pytest.approx(5.0)
    assert np.all(smallest**2 * np.arange(1, 401) <= start)


def test_two_blocks_break_the_sum_with_a_shorter_step():
    """The inequality behind the bound fails for the same blocks with tau = 1/20.

    Any bound on the curvature serves as the paper's L-bar; with 20 instead of the tight 2, C^2
    nears 2 L-bar and sum |grad|^2 = 26.3 exceeds C^2 (Q_x + Q_y)(v0) = 24.2 from x = 1/2. The
    minimum over t still meets its bound, because each block is long enough to converge.
    With Delta = B |eta_2 - eta_1| both hold.
    """
    _, etas, gradients = descend(0.5, SetShrinking([0.0, 1.0] * 200), blocks, 400, bound=20.0)
    smallest, total, start, delta = bound_terms(0.5, etas, gradients, bound=20.0)
    assert start == pytest.approx(24.2)
    assert total[-1] == pytest.approx(26.3, abs=0.02)
    assert np.all(smallest**2 * np.arange(1, 401) <= start)
    assert np.all(total <= start + delta)


def test_alternation_breaks_the_theorem():
    """The same set in the order 1, 0, 1, 0, ...: the theorem itself fails, in both forms.

    Q_x = x^2, Q_y = (x - 1)^2, tau = 1/L, limits 0.6 on |x| and |x - 1|: at x = 0 only the
    outputs break their limit, so eta = 1 and x jumps to 1, where only the inputs do, so eta = 0.
    |grad| = 2 at every step, while the claimed 4 sqrt(1 / (T + 1)) falls below 2 at T = 4. With
    Delta = B sum_k |eta_{k+1} - eta_k| the bound holds; the set is finite, so Delta is too, at
    most B (K - 1): the rate returns once eta has settled.
    """
    steps = 398  # then 200 - 199 copies of each are left
    _, etas, gradients = descend(0.0, SetShrinking([0.0] * 200 + [1.0] * 200), limits_060, steps)
    assert etas.tolist() == [1.0, 0.0] * (steps // 2)
    assert np.all(np.abs(gradients) == 2.0)

    smallest, total, start, delta = bound_terms(0.0, etas, gradients)
    count = np.arange(1, steps + 1)
    broken = count > 4
    assert np.all((smallest > np.sqrt(start / count)) == broken)
    assert np.all((total > start) == broken)
    assert np.all(smallest <= np.sqrt((start + delta) / count))
    assert np.all(total <= start + delta)


def test_the_last_element_converges():
    _, etas, gradients = descend(0.0, SetShrinking([0.0] * 3 + [1.0] * 3), limits_060, 20)
    assert len(set(etas[5:])) == 1
    assert np.all(gradients[6:] == 0)
    _, total, start, delta = bound_terms(0.0, etas, gradients)
    assert np.all(delta <= 16 * LARGEST * 5)
    assert np.all(total <= start + delta)


unit = st.floats(0, 1)


@settings(deadline=None)
@given(
    unit,
    st.lists(unit, min_size=1, max_size=30),
    st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=40),
    st.floats(LIPSCHITZ, 50),
)
def test_corrected_bound_holds_for_every_run(x0, values, gaps, bound):
    points, etas, gradients = descend(
        x0, SetShrinking(values), lambda t, x: gaps[t], len(gaps), bound
    )
    assert np.all((points >= -1e-12) & (points <= 1 + 1e-12))
    smallest, total, start, delta = bound_terms(x0, etas, gradients, bound)
    assert np.all(total <= start + delta + 1e-9)
    count = np.arange(1, len(gaps) + 1)
    assert np.all(smallest <= np.sqrt((start + delta) / count) + 1e-9)
