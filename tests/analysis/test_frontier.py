"""The frontier: laws of the curve, its points, its knee, and what explain does without limits."""

from __future__ import annotations

import re
from itertools import permutations
from pathlib import Path

import joblib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import elsewise as ew
from elsewise._arrays import to_numpy
from elsewise.analysis._frontier import _replayed
from elsewise.cli import main
from elsewise.errors import InvalidInput, SavedRunError
from elsewise.maps import apply_map
from elsewise.request import Kind, halve, pose
from elsewise.search import begin, finish, knee, knee_reason, monotone_front, pareto_front, trace
from elsewise.settings import Settings

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(
    {
        "a": RNG.normal(size=60),
        "b": RNG.normal(size=60),
        "home": RNG.choice(["own", "rent", "free"], 60),
    }
)
FEW = Settings(draws=99, iterations=3)


def chance(frame: pd.DataFrame) -> np.ndarray:
    level = frame["a"] - 0.7 * frame["b"] + (frame["home"] == "own") - 1.0
    return np.asarray(1.0 / (1.0 + np.exp(-level)))


def steps(frame: pd.DataFrame) -> np.ndarray:
    return np.asarray(
        0.1 + 0.3 * (frame["a"] > 0) + 0.4 * ((frame["home"] == "own") & (frame["b"] < 1))
    )


SMOOTH = ew.models.function(chance, smooth=True, probability=True)
STEPPED = ew.models.function(steps, probability=True)


@pytest.fixture(scope="module")
def curve() -> ew.Frontier:
    return ew.frontier(
        SMOOTH,
        ROWS,
        target=ew.targets.at_least(0.6),
        bounds=ew.Bounds(outputs=0.1),
        settings=FEW,
        points=5,
    )


def falls(table: pd.DataFrame, first: str, second: str) -> bool:
    inputs, outputs = table[first].to_numpy(), table[second].to_numpy()
    return bool(np.all(np.diff(inputs) > 0) and np.all(np.diff(outputs) < 0))


@pytest.mark.parametrize("model", [SMOOTH, STEPPED])
@pytest.mark.parametrize("certify", ["in-sample", "held-out"])
def test_both_curves_fall_and_no_point_is_beaten(model: ew.models.Function, certify: str) -> None:
    target = ew.targets.at_least(0.6)
    found = ew.frontier(model, ROWS, target=target, certify=certify, settings=FEW, points=4)
    table = found.table
    assert len(table) >= 3
    assert falls(table, "inputs", "outputs")
    assert falls(table, "inputs_limit", "outputs_limit")
    assert (table["inputs_limit"] >= table["inputs"]).all()
    assert (table["outputs_limit"] >= table["outputs"]).all()
    assert found.kind == certify
    assert found.rows == (30 if certify == "held-out" else 60)
    first = table.iloc[0]
    assert first[["eta", "inputs", "moved"]].tolist() == [0.0, 0.0, 0.0]
    assert table["chosen"].to_numpy().nonzero()[0].tolist() == [found.knee]


def test_the_same_seed_gives_the_same_curve(curve: ew.Frontier) -> None:
    arguments = {"target": ew.targets.at_least(0.6), "settings": FEW, "points": 5}
    again = ew.frontier(SMOOTH, ROWS, **arguments)
    pd.testing.assert_frame_equal(again.table, curve.table)
    other = ew.frontier(SMOOTH, ROWS, seed=1, **arguments)
    assert not np.allclose(other.table["inputs"].iloc[1], curve.table["inputs"].iloc[1], rtol=1e-9)


def test_a_linear_model_has_a_straight_frontier() -> None:
    """A shift by t along w costs |t| / sqrt(d) and brings the outputs |w| |t| closer."""
    weights = np.array([1.0, 2.0, 0.5])
    rows = pd.DataFrame(RNG.normal(size=(80, 3)), columns=["a", "b", "c"])
    rows = (rows - rows.mean()) / rows.std()
    model = ew.models.function(lambda frame: frame.to_numpy() @ weights, smooth=True)
    wide = ew.Schema.infer(rows).range("a", -9, 9).range("b", -9, 9).range("c", -9, 9)
    # A whole population has no limits, which would leave out points whose limits do not fall.
    shifted, everybody = ew.targets.shift(2.0), "all"
    table = ew.frontier(
        model, rows, target=shifted, schema=wide, population=everybody, settings=FEW, points=7
    ).table
    slope = np.linalg.norm(weights) * np.sqrt(3)
    line = 2.0 - slope * table["inputs"].to_numpy()
    assert table["outputs"].to_numpy() == pytest.approx(line, abs=0.1)
    assert table["outputs"].iloc[-1] < 0.1
    assert np.diff(table["outputs"]).min() > -1.2  # the sweep has points all along


@pytest.mark.slow
@pytest.mark.parametrize("unit", [0.1, 1000.0])
def test_units_of_the_outputs_do_not_matter(unit: float) -> None:
    found = [
        ew.frontier(
            ew.models.function(lambda f, u=u: u * (f["a"] + f["b"] ** 2 / 4), smooth=True),
            ROWS[["a", "b"]],
            target=ew.targets.shift(u),
            settings=FEW,
            points=3,
        ).table
        for u in (1.0, unit)
    ]
    grid = np.linspace(0.0, 0.5, 6)
    heights = [np.interp(grid, table["inputs"], table["outputs"]) for table in found]
    assert heights[1] / unit == pytest.approx(heights[0], abs=0.04)
    assert heights[1][-1] < 0.5 * heights[1][0]


def test_limits_are_met_whatever_the_units_of_the_outputs() -> None:
    found = [
        ew.explain(
            ew.models.function(lambda f, u=u: u * (f["a"] + f["b"]), smooth=True),
            ROWS[["a", "b"]].iloc[:50],
            target=ew.targets.constant(u),
            bounds=ew.Bounds(inputs=0.2),
            settings=Settings(draws=99, iterations=5),
        )
        for u in (1.0, 1000.0)
    ]
    assert all(explanation.certificate.inputs.met for explanation in found)
    distances = [explanation.certificate.inputs.estimate for explanation in found]
    assert distances[1] == pytest.approx(distances[0], rel=0.1)
    assert distances[1] > 0.1


@pytest.mark.slow
def test_unseen_rows_are_moved_as_their_maps_would() -> None:
    problem, _ = pose(
        ew.Request(model=SMOOTH, rows=ROWS, target=ew.targets.at_least(0.6)), ew.Bounds()
    )
    fitted, tested, _ = halve(problem)
    ends, _ = finish(trace(begin(fitted, FEW), logits=[-1.0, 1.0]))
    assert len(ends) == 5
    for state, rows in zip(ends, _replayed(tested, ends), strict=True):
        alone = apply_map(tested, state.map(), tested.factual)
        assert np.array_equal(to_numpy(alone.codes), to_numpy(rows.codes))


# Without limits


def test_explain_without_limits_takes_a_point_the_frontier_does_not_beat_and_says_why(
    tmp_path: Path,
) -> None:
    explanation = ew.explain(
        SMOOTH, ROWS, target=ew.targets.constant(0.7), certify="in-sample", settings=FEW
    )
    table = explanation.frontier().table
    certificate = explanation.certificate
    inputs, outputs = certificate.inputs.estimate, certificate.outputs.estimate
    assert not ((table["inputs"] < 0.99 * inputs) & (table["outputs"] < 0.99 * outputs)).any()
    fall = table["outputs"].iloc[0] - table["outputs"].min()
    assert table["outputs"].iloc[0] - outputs == pytest.approx(0.9 * fall, rel=0.05)
    text = str(explanation.status)
    assert re.fullmatch(
        r"described: input distance: .* reached on 60 rows .*; output distance: .* "
        r"\(\d+% of the possible fall in output distance for \d+% of the largest input distance\)",
        text,
    )
    assert explanation.status.reason in repr(explanation)
    loaded = ew.load(explanation.save(tmp_path / "run"))
    assert str(loaded.status) == text
    with pytest.raises(SavedRunError, match="load the run with"):
        loaded.frontier()


def test_the_explanation_s_frontier_is_of_the_same_question() -> None:
    explanation = ew.explain(
        SMOOTH,
        ROWS,
        target=ew.targets.at_least(0.6),
        bounds=ew.Bounds(outputs=0.1),
        certify="held-out",
        settings=Settings(draws=99, iterations=2),
        seed=3,
    )
    found = explanation.frontier(points=3)
    assert found.kind is Kind.HELD_OUT
    assert found.bounds == explanation.problem.bounds
    tested = halve(explanation.problem).tested
    before = to_numpy(tested.outputs.values(tested.factual))[:, 0]
    assert found.table["mean_output"].iloc[0] == pytest.approx(before.mean())
    assert found.table["share"].iloc[0] == pytest.approx(np.mean(before >= 0.5))


def test_a_whole_population_has_distances_and_no_limits() -> None:
    target = ew.targets.at_least(0.6)
    found = ew.frontier(SMOOTH, ROWS, target=target, population="all", settings=FEW, points=3)
    assert found.kind is Kind.POPULATION
    assert found.table["inputs_limit"].tolist() == found.table["inputs"].tolist()


def test_time_that_is_up_leaves_what_was_found() -> None:
    hasty = Settings(draws=99, seconds=1e-9)
    found = ew.frontier(SMOOTH, ROWS, target=ew.targets.at_least(0.6), settings=hasty)
    assert len(found.table) == 1
    assert found.knee == 0
    assert "no other population is closer" in repr(found)


# The record and its picture


def test_the_record_can_be_read(curve: ew.Frontier) -> None:
    text = repr(curve)
    assert text.startswith(f"Frontier of {len(curve.table)} points (in-sample, 60 rows); knee at")
    assert curve.reason in text
    assert curve.cutoff == 0.5


def test_the_picture_shows_the_curve_its_limits_the_knee_and_the_bound(
    curve: ew.Frontier,
) -> None:
    ax = curve.plot()
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["distance", "upper limit", "knee", "output bound"]
    line = ax.lines[0]
    assert np.asarray(line.get_xdata()).tolist() == curve.table["inputs"].tolist()
    marker = next(line for line in ax.lines if line.get_label() == "knee")
    assert np.asarray(marker.get_ydata()).tolist() == [curve.table["outputs"].iloc[curve.knee]]
    _, own = plt.subplots()
    assert ew.plots.frontier(curve.table, own) is own
    plt.close("all")


def test_points_are_checked() -> None:
    with pytest.raises(InvalidInput, match="points: expected at least 3"):
        ew.frontier(SMOOTH, ROWS, target=ew.targets.at_least(0.6), points=2)


@pytest.mark.slow
def test_the_command_adds_it_to_the_report(
    curve: ew.Frontier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ew.Explanation, "frontier", lambda self, progress: curve)
    rows = ROWS[["a", "b"]].iloc[:30]
    model = LogisticRegression().fit(rows, rows["a"] > 0)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    joblib.dump(model, tmp_path / "model.joblib")
    files = [str(tmp_path / name) for name in ("rows.csv", "model.joblib", "run")]
    arguments = ["--target", "at_least:0.6", "--bounds", "outputs=0.4", "--frontier", "--quiet"]
    with pytest.raises(SystemExit, match="0"):
        main(["explain", files[0], "--model", files[1], "--out", files[2], *arguments])
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "How far for how close" in page
    assert "output bound" in page


# Points of two distances


def test_points_that_trade_places_by_their_limits_do_not_both_stay() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        points = rng.random((5, 2))
        limits = points + 0.3 * rng.random((5, 2))
        kept = monotone_front(list(map(tuple, points)), list(map(tuple, limits)))
        good = [chain for chain in _chains(5) if _falls(points[chain]) and _falls(limits[chain])]
        near = set(pareto_front(*points.T))
        assert kept in good
        assert len(kept) == max(len(chain) for chain in good if set(chain) <= near)


def _chains(count: int) -> list[list[int]]:
    """Every way to put some of so many points in order."""
    return [list(p) for size in range(1, count + 1) for p in permutations(range(count), size)]


def _falls(points: np.ndarray) -> bool:
    steps = np.diff(points, axis=0)
    return bool((steps[:, 0] > 0).all() and (steps[:, 1] < 0).all())


def test_undominated_is_what_brute_force_finds() -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        x, y = (rng.integers(0, 6, 12).astype(float) for _ in range(2))
        kept = pareto_front(x.tolist(), y.tolist())
        points = {(x[k], y[k]) for k in range(12)}
        best = {
            p for p in points if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)
        }
        assert [(x[k], y[k]) for k in kept] == sorted(best)


def test_the_knee_is_the_first_point_with_nine_tenths_of_the_possible_fall() -> None:
    x = np.linspace(0.0, 4.0, 81)
    y = 7.0 / (1.0 + 5.0 * x)
    # 7 / (1 + 5 x) = 7 - 0.9 (7 - 1/3) at x = 1.2
    assert x[knee(x.tolist(), y.tolist())] == pytest.approx(1.2)
    concave = [0.0, 1.0, 2.0], [1.0, 0.9, 0.0]
    assert knee(*concave) == 2
    assert "no bend" in knee_reason(*concave, 2)
