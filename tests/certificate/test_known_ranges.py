"""What a certificate takes as known: the target's values, and ranges that were stated."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest

import elsewise as ew
from elsewise.certificate import certify
from elsewise.confidence import Comparison, certificate_limit
from elsewise.errors import InvalidInput
from elsewise.moves import Rows
from elsewise.request import Kind, Request, halve, populate, pose
from elsewise.transport import reference


def amounts(frame: pd.DataFrame) -> pd.Series:
    return np.exp(1.5 * frame["x"])


def share(frame: pd.DataFrame) -> pd.Series:
    return 1.0 / (1.0 + np.exp(-frame["x"]))


def posed(model, target, rows: int = 240, **bounds):
    frame = pd.DataFrame({"x": np.sort(np.random.default_rng(0).standard_normal(rows))})
    request = Request(model=model, rows=frame, target=target)
    return pose(request, ew.Bounds(outputs=0.5, **bounds))[0]


def certified(problem):
    """Certify rows that stay where they are."""
    rows = Rows(codes=problem.factual, outputs=problem.factual_outputs)
    return certify(problem, populate(problem), rows, 99, Kind.HELD_OUT)


def test_small_targets_and_exact_ones_are_not_halved():
    for count, exact, each in (
        (30, False, 30),
        (99, False, 99),
        (100, False, 50),
        (400, True, 400),
    ):
        target = ew.targets.sample(np.linspace(0.1, 0.9, count), exact=exact)
        halves = halve(posed(share, target))
        assert len(halves.fitted.target.values) == len(halves.tested.target.values) == each


def test_an_exact_sample_is_a_known_target():
    values = np.random.default_rng(1).beta(2.0, 2.0, size=30)
    drawn, exact = (ew.targets.sample(values, exact=exact) for exact in (False, True))
    assert exact.name == "sample(30 rows, exact)"
    again = ew.targets.from_dict(exact.to_dict())
    assert again.exact
    assert not ew.targets.from_dict(drawn.to_dict()).exact
    sides = [certified(posed(share, target)).outputs for target in (drawn, exact)]
    assert sides[0].estimate == pytest.approx(sides[1].estimate, rel=1e-9)
    assert sides[1].upper_limit < sides[0].upper_limit
    assert [side.target_values for side in sides] == [30, None]
    assert "1 direction, 30 target values]" in str(certified(posed(share, drawn)))
    assert "only 30 values of the target" in sides[0].notice
    assert sides[1].notice == ""


def test_an_exact_sample_near_its_target_is_covered_closely():
    level, hits, widths = 0.975, 0, []
    large = np.random.default_rng(5).beta(2.6, 2.0, size=(1, 100_000))
    for repetition in range(150):
        rng = np.random.default_rng([1, repetition])
        wanted, output = np.sort(rng.beta(2.0, 2.0, (1, 30))), rng.beta(2.6, 2.0, (1, 150))
        truth = Comparison.independent(large, wanted, 0.05).distance
        limit = certificate_limit(
            Comparison.known_target(output, partial(reference, wanted, 150), 0.05),
            199,
            rng,
            support=(0.0, 1.0),
        ).upper(level)
        hits, widths = hits + (limit >= truth), [*widths, limit / truth]
    assert hits / 150 >= level - 4 * math.sqrt(level * (1 - level) / 150)
    assert np.median(widths) <= 2.5


def test_a_range_is_not_guessed_from_a_few_outputs():
    # The first rows are the smallest, so that their amounts lie in [0, 1].
    beyond = posed(amounts, ew.targets.shift(-0.1))
    assert not beyond.outputs.probability
    assert "mean output" in str(certified(beyond))
    # All rows are inside here; that others cannot leave is not known all the same.
    inside = posed(lambda frame: 0.12 * np.exp(0.6 * frame["x"]), ew.targets.shift(-0.1))
    assert inside.outputs.probability
    for found in (certified(beyond), certified(inside)):
        assert "[0, 1]" not in found.outputs.assumption
        assert [r.after.method for r in found.readouts if r.cutoff is None] != ["betting"]
    for stated in (
        posed(ew.models.function(share, probability=True), ew.targets.shift(0.1)),
        posed(share, ew.targets.shift(0.1), support=(0.0, 1.0)),
    ):
        assert certified(stated).readouts[0].after.method == "betting"


def test_a_range_that_was_only_guessed_is_refused_before_the_search():
    def ask(model, target):
        frame = pd.DataFrame({"x": np.linspace(-2.0, 2.0, 60)})
        bounds = ew.Bounds(outputs=0.5, method="finite-sample")
        return ew.explain(model, frame, target=target, bounds=bounds)

    with pytest.raises(InvalidInput, match=r"bounds\.support"):
        ask(share, ew.targets.shift(0.1))
    stated = ew.models.function(share, probability=True)
    with pytest.raises(InvalidInput, match=r"bounds\.support.*no wanted value leaves"):
        ask(stated, ew.targets.sample([0.2, 0.4, 1.2]))
