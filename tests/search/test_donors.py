"""Bounds on outputs of models that are flat nearly everywhere: background rows show the way."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.search.test_search import pose

import elsewise as ew
from elsewise.moves import Source, Stock, units
from elsewise.moves._edits import donor_edits
from elsewise.search import Outcome, solve


def steep(
    seed: int, d: int, slopes: tuple[float, float] = (20.0, 100.0)
) -> tuple[pd.DataFrame, object]:
    """Rows, and a sigmoid so steep that nearly all of them lie where it has no slope."""
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(rng.normal(size=(80, d)), columns=[f"x{j}" for j in range(d)])
    weights = rng.normal(size=d)
    weights *= rng.uniform(*slopes) / np.linalg.norm(weights)
    cut = float(np.quantile(rows @ weights, 0.7))

    def score(frame: pd.DataFrame) -> np.ndarray:
        return 1.0 / (1.0 + np.exp(-np.clip(frame.to_numpy() @ weights - cut, -700.0, 700.0)))

    return rows, ew.models.function(score, smooth=True, probability=True)


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from([0.1, 0.03]))
@example(0, 3, 0.03)
def test_what_donors_have_is_reached(seed: int, d: int, bound: float) -> None:
    """Every free cell may take any donor's value, so every row can have a donor's output."""
    rows, model = steep(seed, d, (50.0, 5000.0))
    # Certificates of few rows have a floor of their own, so that distances are compared.
    problem = pose(model, rows, ew.targets.constant(1.0), ew.Bounds(outputs=bound, method="exact"))
    assert (problem.factual_outputs > 0.99).any()
    solution, _ = solve(problem, ew.Settings(draws=199))
    assert solution.outcome is Outcome.MET


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from([0.2, 0.1, 0.05]))
def test_what_lies_on_the_way_to_donors_is_reached(seed: int, d: int, bound: float) -> None:
    """The nearest output that is wanted is none that any row has."""
    rows, model = steep(seed, d)
    problem = pose(model, rows, ew.targets.at_least(0.5), ew.Bounds(outputs=bound, method="exact"))
    solution, _ = solve(problem, ew.Settings(draws=199))
    assert solution.outcome is Outcome.MET


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.3, 0.5, 0.8])
def test_looser_bounds_are_met_where_tighter_ones_are(level: float) -> None:
    rows, model = steep(1, 4)
    met = []
    for bound in (0.3, 0.2, 0.1, 0.05, 0.02):
        problem = pose(model, rows, ew.targets.at_least(level), ew.Bounds(outputs=bound))
        solution, _ = solve(problem, ew.Settings(draws=199))
        met.append(solution.outcome in (Outcome.MET, Outcome.NOTHING_TO_DO))
    assert met == sorted(met, reverse=True)
    assert met[0]


def test_donors_are_offered_whole_along_the_way_and_by_units() -> None:
    frame = pd.DataFrame({"a": np.arange(40.0), "b": list("xyzw") * 10, "c": np.arange(40.0) ** 2})
    schema = ew.Schema.infer(frame).freeze("c")
    codes = schema.encoder(frame).encode(frame)
    stock = Stock(
        units=units(schema, codes),
        background=codes,
        outputs=codes[:, :1],
        smooth=True,
        count=None,
        of_sources=np.zeros(len(Source)),
        of_units=np.zeros(2),
    )
    edits = donor_edits(stock, np.random.default_rng(0))
    number, category = edits.sources[:, 0], edits.sources[:, 1]
    assert (edits.sources[:, 2] == Source.KEEP).all()
    assert ((number == Source.DONOR) & (category == Source.DONOR)).sum() == 1
    along = number == Source.TOWARDS
    assert (category[along] == Source.DONOR).all()
    parts = edits.values[along, 0]  # noqa: PD011
    assert (np.diff(parts) > 0).all()
    assert 0 < parts[0] < parts[-1] < 1
    assert sorted(zip(number[~along], category[~along], strict=True)) == [(0, 5), (5, 0), (5, 5)]


def test_the_way_over_donors_replays_and_saves(tmp_path: object) -> None:
    rows, model = steep(2, 3)
    found = ew.explain(model, rows, target=ew.targets.at_least(0.5), bounds=ew.Bounds(outputs=0.05))
    sources = [step.edits.sources for step in found.map.steps if step.edits is not None]
    assert any((table == Source.TOWARDS).any() for table in sources)
    some = rows.iloc[::3]
    pd.testing.assert_frame_equal(found.apply(some), found.counterfactual.iloc[::3])
    found.save(tmp_path / "run")
    loaded = ew.load(tmp_path / "run", model=model)
    pd.testing.assert_frame_equal(loaded.apply(some), found.counterfactual.iloc[::3])
