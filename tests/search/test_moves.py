"""Rows move for their own sake, no farther than a bound allows, and never the wrong way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from benchmarks.fixtures import readme_example
from hypothesis import given, settings
from hypothesis import strategies as st

import elsewise as ew
from elsewise.errors import InvalidInput
from elsewise.maps import apply_map

NUMBERS = ["a", "b"]
Score = Callable[[pd.DataFrame], np.ndarray]


def rows(size: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(size, 2)), columns=NUMBERS)
    return frame.assign(whole=rng.integers(0, 9, size), c=rng.choice(list("xyz"), size))


def score(frame: pd.DataFrame) -> np.ndarray:
    raw = frame["a"] + 0.5 * np.tanh(frame["b"]) + 0.1 * frame["whole"] - 0.4
    return 1.0 / (1.0 + np.exp(-(raw + 0.6 * (frame["c"] == "x")).to_numpy(dtype=float)))


def steps(frame: pd.DataFrame) -> np.ndarray:
    return np.round(6 * score(frame)) / 6


TARGETS = {
    "at_most": ew.targets.at_most(0.45),
    "at_least": ew.targets.at_least(0.6),
    "share": ew.targets.share(0.8, above=0.5),
    "falling share": ew.targets.share(0.2, above=0.5),
}
BOUNDS = {
    "outputs": ew.Bounds(outputs=0.12),
    "inputs": ew.Bounds(inputs=0.3),
    "both": ew.Bounds(inputs=0.5, outputs=0.15),
    "none": ew.Bounds(),
    "moves": ew.Bounds(outputs=0.15, moves=0.9),
}
MODELS: dict[str, Score] = {"smooth": score, "steps": steps}
SAMPLE = ew.targets.sample(np.linspace(0.3, 0.9, 50))


def explain(
    model: str, target: object, bounds: ew.Bounds, seed: int, **more: object
) -> ew.Explanation:
    smooth = ew.models.function(MODELS[model], smooth=model == "smooth", probability=True)
    quick = {"iterations": 6, "draws": 79, "directions": 8} | more
    return ew.explain(
        smooth,
        rows(60, seed),
        target=target,
        bounds=bounds,
        seed=seed,
        settings=ew.Settings(**quick),
    )


def falls_short(name: str, outputs: np.ndarray) -> np.ndarray:
    """How far outputs are outside what a target wants."""
    level, sign = {"at_most": (0.45, 1), "at_least": (0.6, -1)}.get(name, (0.5, -1))
    if name == "falling share":  # a row at the cut-off passes, and has to leave
        return np.maximum(outputs[:, 0] - level, 0.0) + 1e-12 * (outputs[:, 0] == level)
    return np.maximum(sign * (outputs[:, 0] - level), 0.0)


@given(
    seed=st.integers(0, 10**6),
    model=st.sampled_from(list(MODELS)),
    name=st.sampled_from(list(TARGETS)),
    weight=st.sampled_from([0.0, 0.5, 1.0]),
)
@settings(max_examples=8)
def test_no_row_ends_worse_than_it_began(seed: int, model: str, name: str, weight: float) -> None:
    found = explain(model, TARGETS[name], BOUNDS["outputs"], seed, population_weight=weight)
    fresh = rows(40, seed + 1)
    for before, after in (
        (found.factual, found.counterfactual),
        (fresh, found.apply(fresh)),
    ):
        was, now = (falls_short(name, MODELS[model](frame)[:, None]) for frame in (before, after))
        assert (now <= was + 1e-9).all()
        stays = was == 0.0
        pd.testing.assert_frame_equal(after[stays], before[stays], check_exact=True)


@given(
    seed=st.integers(0, 10**6),
    model=st.sampled_from(list(MODELS)),
    bounds=st.sampled_from(list(BOUNDS)),
)
@settings(max_examples=8)
def test_taking_changes_back_breaks_nothing(seed: int, model: str, bounds: str) -> None:
    """No verdict is worse, rows move little farther, and the map is what was done."""
    asked = BOUNDS[bounds]
    plain, tidy = (explain(model, SAMPLE, asked, seed, slack=slack) for slack in (0.0, 0.05))
    if plain.certificate.met:
        assert tidy.certificate.met
        assert tidy.status.ok == plain.status.ok
    moves = [found.certificate.row_move.estimate for found in (plain, tidy)]
    assert moves[1] <= 1.05 * moves[0] + 1e-9
    again = tidy.apply(tidy.factual)
    pd.testing.assert_frame_equal(again, tidy.counterfactual, rtol=0, atol=1e-9)
    parts = [tidy.apply(part) for part in (tidy.factual[:7], tidy.factual[7:])]
    pd.testing.assert_frame_equal(pd.concat(parts), again, rtol=0, atol=1e-9)


@pytest.mark.parametrize("model", list(MODELS))
@pytest.mark.parametrize("name", list(TARGETS))
def test_taking_changes_back_takes_no_row_out_of_what_is_wanted(model: str, name: str) -> None:
    """Also of rows the map has not seen: those near enough stay so, others do not go back."""
    bound = 0.12 if name.startswith("at") else 0.06
    found = explain(model, TARGETS[name], ew.Bounds(outputs=bound), 5, sparse=True)
    problem, recorded = found.problem, found.map
    near = recorded.motion.near
    assert near is not None
    assert 0.0 < near <= bound if name.startswith("at") else near == 0.0
    first = tuple(step for step in recorded.steps if step.sparsity == 0.0)
    assert len(first) < len(recorded.steps)
    for frame in (found.factual, rows(200, 6)):
        codes = found.encoder.encode(frame)
        began, before, after = (
            falls_short(name, np.asarray(apply_map(problem, map_, codes).outputs))
            for map_ in (replace(recorded, steps=()), replace(recorded, steps=first), recorded)
        )
        assert (after <= np.maximum(before, near) + 1e-9).all()
        assert (before < began).any()


def test_a_verdict_on_rows_held_out_survives_taking_changes_back() -> None:
    """Prices that cost the rows of the fit nothing must not send other rows back."""
    found = readme_example()
    assert found.ok
    within = found.outputs[:, 0] <= 0.35 + 0.06
    assert within.mean() >= 0.9


def test_fewer_cells_change_where_that_costs_little() -> None:
    found = {
        slack: explain("smooth", TARGETS["at_most"], BOUNDS["both"], 0, slack=slack)
        for slack in (0.0, 0.05)
    }
    cells = {
        slack: int((each.factual != each.counterfactual).to_numpy().sum())
        for slack, each in found.items()
    }
    assert cells[0.05] <= 0.7 * cells[0.0]
    assert all(step.sparsity == 0.0 for step in found[0.0].map.steps)


@pytest.mark.parametrize("size", [60, 300])
def test_columns_that_the_model_does_not_read_stay(size: int) -> None:
    """Rows of which the model reads one column, and which shall not rise in it."""
    rng = np.random.default_rng(0)
    given = {"a": rng.normal(size=size), "b": rng.integers(0, 9, size)}
    frame = pd.DataFrame({**given, "c": rng.choice(list("xyz"), size)})
    model = ew.models.function(lambda rows: 1 / (1 + np.exp(-rows["a"].to_numpy())))
    bounds = ew.Bounds(outputs=0.1)
    found = ew.explain(model, frame, target=ew.targets.at_most(0.45), bounds=bounds)
    before, after = found.factual_outputs, found.outputs
    assert (after <= before + 1e-9).all()
    assert np.mean(after >= 0.5) <= np.mean(before >= 0.5)
    pd.testing.assert_frame_equal(found.counterfactual[["b", "c"]], frame[["b", "c"]])


# --- a bound on the rows' own moves ---------------------------------------------------------------


@pytest.mark.parametrize("asked", ["distance", "row by row", "share", "mean"])
def test_moves_are_bounded(asked: str) -> None:
    target = {
        "distance": SAMPLE,
        "row by row": TARGETS["at_least"],
        "share": TARGETS["share"],
        "mean": ew.targets.mean(0.7),
    }[asked]
    bounds = ew.Bounds(outputs=0.12) if asked == "distance" else ew.Bounds()
    free = explain("smooth", target, bounds, 0)
    assert free.certificate.moves_bound is None
    most = free.certificate.row_move.upper
    for share in (1.2, 0.5):
        limits = ew.Bounds(outputs=bounds.outputs, moves=share * most)
        found = explain("smooth", target, limits, 0)
        certificate = found.certificate
        assert certificate.moves_bound == share * most
        line = next(text for text in str(certificate).split("\n") if "a row moves by" in text)
        assert ("<= bound" in line) == (certificate.at_most["moves"] <= share * most)
        if share > 1.0:
            assert found.ok
            assert certificate.at_most["moves"] <= share * most
        else:
            assert not found.ok
            assert found.status.binding == "moves"


def test_a_bound_on_moves_alone_brings_outputs_as_near_as_it_allows() -> None:
    near, far = (explain("smooth", SAMPLE, ew.Bounds(moves=most), 0) for most in (0.6, 0.25))
    for found, most in ((near, 0.6), (far, 0.25)):
        assert found.ok
        assert 0.7 * most < found.certificate.at_most["moves"] <= most
    assert near.certificate.outputs.estimate < far.certificate.outputs.estimate


def test_the_bound_on_moves_is_checked_and_kept(tmp_path: object) -> None:
    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(InvalidInput, match="moves"):
            ew.Bounds(moves=wrong)
    found = explain("smooth", SAMPLE, ew.Bounds(outputs=0.15, moves=0.9), 0)
    found.save(tmp_path / "run")
    loaded = ew.load(tmp_path / "run", model=found.model)
    assert loaded.certificate == found.certificate
    assert loaded.problem.bounds.moves == 0.9
