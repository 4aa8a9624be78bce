"""Explanations on disk: all of it comes back, or a clear refusal; never half a folder."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import elsewise as ew
from elsewise import _storage, saving
from elsewise.errors import InvalidInput, SavedRunError

FAST = ew.Settings(iterations=4, draws=39, directions=8)
RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(RNG.normal(size=(40, 3)), columns=["a", "b", "c"])
FRESH = pd.DataFrame(RNG.normal(size=(25, 3)), columns=["a", "b", "c"])
LABELS = np.digitize(ROWS["a"] + 0.4 * ROWS["b"], [-0.5, 0.6])


def score(frame: pd.DataFrame) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-(frame["a"] + 0.5 * frame["b"] - 1.0).to_numpy()))


def network(seed: int = 0) -> torch.nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))


MODELS = {
    "torch": network(),
    "linear": LogisticRegression().fit(ROWS, LABELS > 0),
    "three classes": LogisticRegression().fit(ROWS, LABELS),
    "trees": RandomForestClassifier(8, max_depth=4, random_state=0).fit(ROWS, LABELS > 0),
    "smooth function": ew.models.function(score, smooth=True),
    "plain function": score,
}
TARGETS = {
    "sample": ew.targets.sample(np.linspace(0.3, 0.9, 17)),
    "group": ew.targets.group(np.linspace(0.3, 0.9, 11)),
    "beta": ew.targets.distribution(scipy.stats.beta(3, 2)),
    "quantile function": ew.targets.distribution(lambda u: 0.2 + 0.6 * u),
    "constant": ew.targets.constant(0.6),
    "at_least": ew.targets.at_least(0.5),
    "at_most": ew.targets.at_most(0.2),
    "shift": ew.targets.shift(0.2),
    "scale": ew.targets.scale(0.4, about=0.5),
}


def explain(model: object = score, rows: pd.DataFrame = ROWS, **more: object) -> ew.Explanation:
    asked = {
        "target": TARGETS["constant"],
        "bounds": ew.Bounds(inputs=0.7, outputs=0.3),
        "settings": FAST,
    } | more
    return ew.explain(model, rows, **asked)


@pytest.fixture(scope="module")
def explanation() -> ew.Explanation:
    return explain(MODELS["smooth function"])


def check_same(loaded: ew.Explanation, saved: ew.Explanation) -> None:
    """Everything that can be looked at is equal, to the last bit where it is a number."""
    pd.testing.assert_frame_equal(loaded.factual, saved.factual, check_exact=True)
    pd.testing.assert_frame_equal(loaded.counterfactual, saved.counterfactual, check_exact=True)
    pd.testing.assert_index_equal(loaded.counterfactual.index, saved.index, exact="equiv")
    assert loaded.outputs.tobytes() == saved.outputs.tobytes()
    assert loaded.factual_outputs.tobytes() == saved.factual_outputs.tobytes()
    pd.testing.assert_frame_equal(loaded.history, saved.history, check_exact=True)
    check_same_changes(loaded, saved)
    assert loaded.certificate == saved.certificate
    assert loaded.status == saved.status
    assert loaded.settings == saved.settings
    assert loaded.problem.bounds == saved.problem.bounds
    assert loaded.problem.seed == saved.problem.seed
    assert loaded.problem.outputs.columns == saved.problem.outputs.columns
    assert repr(loaded) == repr(saved)


def check_same_changes(loaded: ew.Explanation, saved: ew.Explanation) -> None:
    """The tables of changes are equal; effects need the model, without which none is made up."""
    changes, expected = loaded.changes(), saved.changes()
    if loaded.model is None:
        assert changes["effect"].isna().all()
        assert (-changes["share"]).is_monotonic_increasing
        changes = changes.drop(columns="effect").loc[expected.index]
        expected = expected.drop(columns="effect")
    else:
        assert changes["effect"].notna().all()
    pd.testing.assert_frame_equal(changes, expected, check_exact=True)


def test_background_and_clusters_come_back_so_that_policies_are_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    rows = pd.DataFrame({"debt": rng.normal(2, 1, 240), "late": rng.integers(0, 9, 240)})
    past = pd.DataFrame({"debt": rng.normal(0, 2, 90), "late": rng.integers(0, 4, 90)})

    def risk(frame: pd.DataFrame) -> np.ndarray:
        return np.asarray(1.0 / (1.0 + np.exp(-frame["debt"] - 0.3 * frame["late"])))

    asked = {"target": ew.targets.at_most(0.5), "background": past, "progress": False}
    saved = ew.explain(risk, rows, clusters=np.arange(240) // 3, certify="held-out", **asked)
    loaded = ew.load(saved.save(tmp_path / "run"), model=risk)
    assert str(loaded.policy(k=2)) == str(saved.policy(k=2))
    pd.testing.assert_frame_equal(loaded.plausibility(), saved.plausibility(), check_exact=True)


# --- round trips ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_every_model_comes_back(name: str, tmp_path: Path) -> None:
    saved = explain(MODELS[name])
    folder = saved.save(tmp_path / "deep" / "run")
    assert sorted(path.name for path in folder.iterdir()) == ["arrays.npz", "explanation.json"]
    loaded = ew.load(folder, model=MODELS[name])
    check_same(loaded, saved)
    for rows in (ROWS, FRESH):
        pd.testing.assert_frame_equal(loaded.apply(rows), saved.apply(rows), check_exact=True)


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_comes_back(name: str, tmp_path: Path) -> None:
    saved = explain(MODELS["smooth function"], target=TARGETS[name])
    loaded = ew.load(saved.save(tmp_path / "run"), model=MODELS["smooth function"])
    check_same(loaded, saved)
    pd.testing.assert_frame_equal(loaded.apply(FRESH), saved.apply(FRESH), check_exact=True)
    if name != "quantile function":  # saved as a table of quantiles, and says so
        assert loaded.problem.target.name == saved.problem.target.name
    # A loaded run can be saved again.
    check_same(ew.load(loaded.save(tmp_path / "again")), saved)


@pytest.mark.parametrize(
    "settings",
    [
        ew.Settings(iterations=3, draws=39, balance=ew.SetShrinking([0.2, 0.5, 0.9])),
        ew.Settings(iterations=3, draws=39, balance=ew.IntervalNarrowing(lower=0.2, kappa=0.1)),
        ew.Settings(iterations=3, draws=39, step="gradient", tau=2.0, seconds=60.0),
        ew.Settings(iterations=3, draws=39, population_weight=0.25, smoothing=0.5, redraw=False),
    ],
    ids=["shrinking", "narrowing", "gradient", "other"],
)
def test_every_setting_comes_back(settings: ew.Settings, tmp_path: Path) -> None:
    saved = explain(MODELS["smooth function"], settings=settings)
    loaded = ew.load(saved.save(tmp_path / "run"), model=MODELS["smooth function"])
    assert loaded.settings == settings
    check_same(loaded, saved)
    pd.testing.assert_frame_equal(loaded.apply(FRESH), saved.apply(FRESH), check_exact=True)


INDEXES = {
    "range": pd.RangeIndex(5, 85, 2),
    "named text": pd.Index([f"row {i}" for i in range(40)], name="who"),
    "repeated": pd.Index([1, 2] * 20),
    "pairs": pd.MultiIndex.from_product([["u", "v"], range(20)], names=["g", None]),
    "days": pd.DatetimeIndex([f"2024-{m:02}-01" for m in range(1, 11)] * 4, name="day"),
}


@pytest.mark.parametrize("name", INDEXES)
def test_index_comes_back(name: str, tmp_path: Path) -> None:
    saved = explain(MODELS["smooth function"], ROWS.set_axis(INDEXES[name]))
    loaded = ew.load(saved.save(tmp_path / "run"))
    pd.testing.assert_index_equal(loaded.counterfactual.index, INDEXES[name], exact="equiv")


def test_dtypes_come_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = ROWS.assign(
        small=rng.normal(size=40).astype(np.float32),
        count=rng.integers(0, 9, 40).astype(np.int16),
        maybe=pd.array([None, *range(39)], dtype="Int64"),
        flag=rng.random(40) < 0.5,
        level=pd.Categorical(rng.choice(["x", "y"], 40), ["y", "x"], ordered=True),
        text=rng.choice(["red", "green"], 40),
        day=pd.date_range("2024-01-01", periods=40, tz="Europe/Berlin"),
        gaps=np.where(rng.random(40) < 0.3, np.nan, rng.normal(size=40)),
    )
    saved = explain(score, rows)
    loaded = ew.load(saved.save(tmp_path / "run"), model=score)
    check_same(loaded, saved)
    pd.testing.assert_series_equal(loaded.counterfactual.dtypes, rows.dtypes)
    pd.testing.assert_frame_equal(loaded.apply(rows), saved.counterfactual, rtol=0, atol=1e-9)


def test_a_run_that_moved_nothing_comes_back(tmp_path: Path) -> None:
    saved = explain(target=ew.targets.sample(score(ROWS)))
    assert not saved.map.steps
    loaded = ew.load(saved.save(tmp_path / "run"), model=score)
    check_same(loaded, saved)
    pd.testing.assert_frame_equal(loaded.apply(FRESH), FRESH)


def test_infeasible_and_unlimited_runs_come_back(tmp_path: Path) -> None:
    for place, limits in (("a", ew.Bounds(outputs=1e-6)), ("b", ew.Bounds())):
        saved = explain(MODELS["smooth function"], bounds=limits)
        check_same(ew.load(saved.save(tmp_path / place)), saved)


# --- models ---------------------------------------------------------------------------------------


def test_without_a_model_it_can_be_looked_at(explanation: ew.Explanation, tmp_path: Path) -> None:
    loaded = ew.load(explanation.save(tmp_path / "run"))
    check_same(loaded, explanation)
    with pytest.raises((SavedRunError, InvalidInput), match="model: expected"):
        loaded.apply(ROWS)


@pytest.mark.parametrize(
    "other",
    [network(1), lambda frame: score(frame) + 1e-3, MODELS["three classes"], MODELS["linear"]],
    ids=["torch", "a little different", "more outputs", "linear"],
)
def test_another_model_is_refused(
    explanation: ew.Explanation, other: object, tmp_path: Path
) -> None:
    folder = explanation.save(tmp_path / "run")
    with pytest.raises(SavedRunError, match=r"model: expected the explained model .* received"):
        ew.load(folder, model=other)


def test_tiny_units_come_back_and_refuse_another_model(tmp_path: Path) -> None:
    tiny = ew.models.function(lambda frame: 1e-8 * frame["a"], smooth=True, probability=False)
    other = ew.models.function(lambda frame: 1e-8 * frame["b"], smooth=True, probability=False)
    limits = ew.Bounds(outputs=2e-9)
    saved = explain(tiny, target=ew.targets.shift(5e-9), bounds=limits)
    assert saved.ok
    loaded = ew.load(saved.save(tmp_path / "run"), model=tiny)
    moved = loaded.apply(FRESH)
    assert not moved.equals(FRESH)
    pd.testing.assert_frame_equal(moved, saved.apply(FRESH), check_exact=True)
    with pytest.raises(SavedRunError, match="model: expected the explained model"):
        ew.load(tmp_path / "run", model=other)


def test_rules_are_not_forgotten_silently(tmp_path: Path) -> None:
    """Rules are functions: not saved, so the map is refused instead of breaking them."""
    schema = ew.Schema.infer(ROWS).rule(lambda frame: frame["a"] < 3.0, "a below 3")
    saved = explain(MODELS["smooth function"], schema=schema)
    loaded = ew.load(saved.save(tmp_path / "run"), model=MODELS["smooth function"])
    pd.testing.assert_frame_equal(loaded.counterfactual, saved.counterfactual)
    with pytest.raises(SavedRunError, match="rules: expected 'a below 3', which are functions"):
        loaded.apply(ROWS)
    given = {rule.name: rule.condition for rule in schema.rules}
    again = ew.load(tmp_path / "run", model=MODELS["smooth function"], rules=given)
    pd.testing.assert_frame_equal(again.apply(ROWS), saved.apply(ROWS))
    with pytest.raises(InvalidInput, match="rules: expected names of rules that are missing"):
        ew.load(tmp_path / "run", rules={"a blow 3": given["a below 3"]})


# --- damage ---------------------------------------------------------------------------------------


def edit(folder: Path, **changes: object) -> None:
    path = folder / "explanation.json"
    record = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(record | changes), "utf-8")


def change_arrays(folder: Path) -> None:
    with np.load(folder / "arrays.npz") as stored:
        arrays = dict(stored)
    arrays["counterfactual"] = arrays["counterfactual"] + 1.0
    np.savez_compressed(folder / "arrays.npz", **arrays)


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))


def plain(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


def pickled(folder: Path) -> None:
    np.savez(folder / "arrays.npz", factual=np.array([object()], dtype=object))


DAMAGE = {
    "no folder": (shutil.rmtree, "expected a saved run"),
    "no record": (lambda folder: (folder / "explanation.json").unlink(), "expected a saved run"),
    "no arrays": (lambda folder: (folder / "arrays.npz").unlink(), "expected a saved run"),
    "cut record": (lambda folder: cut(folder / "explanation.json"), "cannot be read"),
    "cut arrays": (lambda folder: cut(folder / "arrays.npz"), "cannot be read"),
    "empty arrays": (lambda folder: (folder / "arrays.npz").write_bytes(b""), "cannot be read"),
    "one flipped byte": (lambda folder: flip(folder / "arrays.npz"), "cannot be read"),
    "one plain array": (lambda folder: plain(folder / "arrays.npz"), "cannot be read"),
    "pickled arrays": (pickled, "cannot be read"),
    "other arrays": (change_arrays, "changed after they were saved"),
    "other settings": (lambda folder: edit(folder, seed=7), "changed after they were saved"),
    "missing entry": (lambda folder: edit(folder, hashes={}), "changed after they were saved"),
    "other record": (
        lambda folder: (folder / "explanation.json").write_text("[1, 2]"),
        "expected the record of a saved run",
    ),
    "later version": (
        lambda folder: edit(folder, format=99, elsewise="9.9"),
        "expected format 2, received 99. Fix: load it with elsewise 9.9",
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_refused(case: str, explanation: ew.Explanation, tmp_path: Path) -> None:
    damage, message = DAMAGE[case]
    folder = explanation.save(tmp_path / "run")
    damage(folder)
    with pytest.raises(SavedRunError, match=message) as caught:
        ew.load(folder)
    assert "Fix:" in str(caught.value)


def test_a_record_that_hashes_well_but_makes_no_sense_is_refused(
    explanation: ew.Explanation, tmp_path: Path
) -> None:
    folder = explanation.save(tmp_path / "run")
    path = folder / "explanation.json"
    record = json.loads(path.read_text("utf-8"))
    del record["certificate"]["inputs"]
    record["hashes"]["settings"] = saving._settings_digest(record)
    path.write_text(json.dumps(record), "utf-8")
    with pytest.raises(SavedRunError, match="damaged"):
        ew.load(folder)


# --- writing --------------------------------------------------------------------------------------


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("earlier", [False, True], ids=["new", "over an earlier run"])
@pytest.mark.parametrize("failure", [OSError("disk full"), KeyboardInterrupt()], ids=repr)
def test_nothing_is_half_written(
    earlier: bool,
    failure: BaseException,
    explanation: ew.Explanation,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "run"
    if earlier:
        explanation.save(folder)
    before = contents(tmp_path)

    def fails_midway(path: Path, **arrays: np.ndarray) -> None:
        Path(path).write_bytes(b"PK half of it")
        raise failure

    monkeypatch.setattr(np, "savez_compressed", fails_midway)
    with pytest.raises(type(failure)):
        replace(explanation, index=explanation.index[::-1]).save(folder)
    assert contents(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == (["run"] if earlier else [])


def test_an_earlier_run_survives_a_failed_exchange(
    explanation: ew.Explanation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = explanation.save(tmp_path / "run")
    before = contents(tmp_path)

    def fails(fresh: Path, place: Path) -> None:
        raise OSError("the folder is busy")

    monkeypatch.setattr(_storage, "_exchange", fails)
    with pytest.raises(OSError, match="busy"):
        explanation.save(folder)
    assert contents(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_run_that_cannot_be_saved_writes_nothing(tmp_path: Path) -> None:
    rows = ROWS.assign(place=[PurePosixPath(f"/{i}") for i in range(40)])
    saved = replace(explain(score), index=pd.Index(rows["place"]))
    with pytest.raises(InvalidInput, match="cell: expected text, a number"):
        saved.save(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_an_earlier_run_is_replaced(explanation: ew.Explanation, tmp_path: Path) -> None:
    folder = explanation.save(tmp_path / "run")
    other = explain(MODELS["smooth function"], target=TARGETS["shift"])
    other.save(folder)
    check_same(ew.load(folder), other)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_is_no_saved_run_is_not_overwritten(
    kind: str, explanation: ew.Explanation, tmp_path: Path
) -> None:
    place = tmp_path / "thesis"
    if kind == "folder":
        place.mkdir()
        (place / "chapter1.txt").write_text("years of work")
    else:
        place.write_text("years of work")
    before = contents(tmp_path)
    with pytest.raises(InvalidInput, match="folder: expected a new folder, an empty one or"):
        explanation.save(place)
    assert contents(tmp_path) == before


def test_an_empty_folder_is_used(explanation: ew.Explanation, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    check_same(ew.load(explanation.save(tmp_path / "run")), explanation)


def test_the_same_run_gives_the_same_bytes(explanation: ew.Explanation, tmp_path: Path) -> None:
    first, second = (explanation.save(tmp_path / name) for name in "ab")
    assert contents(first)["explanation.json"] == contents(second)["explanation.json"]
    assert b"pickle" not in contents(first)["arrays.npz"]


def test_a_model_that_differs_in_late_rows_only_is_refused(tmp_path: Path) -> None:
    rows = pd.DataFrame(RNG.normal(size=(400, 3)), columns=["a", "b", "c"])
    folder = explain(score, rows, certify="in-sample").save(tmp_path / "run")
    late = set(rows["a"][256:])

    def other(frame: pd.DataFrame) -> np.ndarray:
        return np.where(frame["a"].isin(late), 1.0 - score(frame), score(frame))

    with pytest.raises(SavedRunError, match="outputs on the saved rows differ"):
        ew.load(folder, model=other)


def test_scores_that_begin_like_probabilities_are_scores_when_loaded_and_applied(
    tmp_path: Path,
) -> None:
    """The first rows, in which the kind of a function is guessed, are all between 0 and 1."""
    rows = pd.DataFrame({"a": np.linspace(0.0, 40.0, 200), "b": np.arange(200) % 7})
    rows["twice"] = 2.0 * rows["a"]

    def score(frame: pd.DataFrame) -> np.ndarray:
        return (frame["a"] * (1 + frame["b"] / 10) / 20).to_numpy(dtype=float)

    answer = ew.explain(
        score,
        rows,
        target=ew.targets.mean(1.6),
        schema=ew.Schema.infer(rows).derived("twice", "2 * a"),
        settings=ew.Settings(iterations=3, draws=39),
        certify="in-sample",
    )
    assert not answer.problem.outputs.probability
    loaded = ew.load(answer.save(tmp_path / "run"), model=score)
    assert not loaded.problem.outputs.probability
    for one in (answer, loaded):
        assert not one.located(rows)[0].outputs.probability
        pd.testing.assert_frame_equal(one.apply(rows), answer.counterfactual)
