"""The controller of eta on made-up curves from eta to a limit; no model is asked anything."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from elsewise.search._runs import LOGIT_SPAN
from elsewise.search._track_bound import GAIN, Controller

Curve = Callable[[float], float]


def follow(curve: Curve, aim: float, count: int = 60) -> list[tuple[float, float]]:
    """Logits that the controller goes through, with the limits of the curve there."""
    control, path = Controller(-2.0, 0.25), []
    for _ in range(count):
        limit = curve(control.logit)
        path.append((control.logit, limit))
        control = control.next(math.log(limit / aim))
    return path


@pytest.mark.parametrize("aim", [0.5, 0.1, 0.02])
def test_on_a_falling_curve_it_comes_to_rest_at_the_aim(aim: float) -> None:
    path = follow(lambda logit: math.exp(-0.8 * (logit + 2.0)), aim)
    limits = np.array([limit for _, limit in path])
    np.testing.assert_allclose(limits[-10:], aim, rtol=0.05)
    # Until the aim is reached for the first time, eta only rises, and by little where it matters.
    first = int(np.argmax(limits <= aim))
    rises = np.diff([logit for logit, _ in path[: first + 1]])
    assert (rises > 0).all()
    assert (rises[[logit < 1.9 for logit, _ in path[:first]]] <= 0.25 + 1e-12).all()


def test_on_steps_it_goes_to_and_fro_across_the_one_that_matters() -> None:
    """The outputs of trees: nothing on the curve is at the aim."""
    path = follow(lambda logit: 0.4 if logit < 0.7 else 0.05, 0.1, 80)
    late = np.array([logit for logit, _ in path[-30:]])
    assert (np.abs(late - 0.7) <= 1.5).all()
    assert {limit for _, limit in path[-30:]} == {0.4, 0.05}


@pytest.mark.parametrize("seed", range(5))
def test_noise_does_not_carry_it_away(seed: int) -> None:
    rng = np.random.default_rng(seed)
    path = follow(lambda logit: math.exp(-0.8 * (logit + 2.0) + 0.1 * rng.normal()), 0.1, 100)
    exact = -2.0 + math.log(10.0) / 0.8
    late = np.array([logit for logit, _ in path[-50:]])
    assert abs(late.mean() - exact) < 0.2
    assert (np.abs(late - exact) < 1.0).all()


@pytest.mark.parametrize(("level", "end"), [(0.4, LOGIT_SPAN), (0.01, -LOGIT_SPAN)])
def test_on_a_flat_curve_it_goes_to_the_end_and_stays_there(level: float, end: float) -> None:
    path = follow(lambda _: level, 0.1)
    assert path[-1][0] == end
    assert all(abs(logit) <= LOGIT_SPAN for logit, _ in path)


def test_the_gain_is_halved_on_crossing_and_doubled_otherwise() -> None:
    control = Controller(0.0, 0.25, reached=True).next(-0.01)
    assert control.gain == GAIN
    crossed = control.next(0.01)
    assert crossed.gain == GAIN / 2
    assert crossed.logit == pytest.approx(control.logit + GAIN / 2 * 0.01)
    assert crossed.next(0.01).gain == GAIN
