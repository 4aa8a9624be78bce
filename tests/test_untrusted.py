"""Saved runs of other people: nothing of theirs is executed, and what is wrong is named."""

from __future__ import annotations

import io
import json
import os
import shutil
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks.campaign.mutations import as_toml

import elsewise as ew
from elsewise import _storage, saving, targets
from elsewise._storage import read_arrays
from elsewise.cli import main
from elsewise.cli._inputs import read_table
from elsewise.errors import InvalidInput, SavedRunError

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(
    {
        "a": RNG.normal(size=40),
        "b": RNG.integers(0, 9, 40),
        "c": RNG.choice(list("xyz"), 40),
        "day": pd.date_range("2024-01-01", periods=40),
    }
)


def score(frame: pd.DataFrame) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-frame["a"].to_numpy(dtype=float)))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    answer = ew.explain(
        score,
        ROWS,
        target=ew.targets.at_most(0.45),
        bounds=ew.Bounds(outputs=0.1),
        settings=ew.Settings(iterations=3, draws=39),
    )
    return answer.save(tmp_path_factory.mktemp("kept") / "run")


@pytest.fixture
def run(kept: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    for path in kept.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def rewrite(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the record and make its hash fit again, as anybody can."""
    record = json.loads((run / "explanation.json").read_text("utf-8"))
    change(record)
    if isinstance(record.get("hashes"), dict):
        record["hashes"]["settings"] = saving._settings_digest(record)
    (run / "explanation.json").write_text(json.dumps(record), "utf-8")


def rearrange(run: Path, **changed: np.ndarray) -> None:
    """Change arrays and make their hash fit again."""
    with np.load(run / "arrays.npz") as stored:
        arrays = dict(stored) | changed
    np.savez(run / "arrays.npz", **arrays)
    rewrite(run, lambda record: record["hashes"].update(arrays=saving._digest(arrays)))


# --- names that become calls ----------------------------------------------------------------------


def test_no_function_of_scipy_is_called(run: Path, tmp_path: Path) -> None:
    payload = tmp_path / "payload.py"
    payload.write_text("from pathlib import Path\nPath(__file__).with_name('RAN').touch()\n")
    options = {"extra_argv": ["-q", "-p", "no:cacheprovider"], "tests": [str(payload)]}
    target = {"kind": "distribution", "arguments": ["test", [], options]}
    rewrite(run, lambda record: record.update(target=target))
    with pytest.raises(SavedRunError, match=r"explanation.json, 'target'"):
        ew.load(run)
    assert not (tmp_path / "RAN").exists()


@pytest.mark.parametrize("family", ["test", "sem", "rv_histogram", "__doc__", "np", None, 3, []])
def test_only_distributions_have_a_name(family: object) -> None:
    with pytest.raises(InvalidInput):
        targets.from_dict({"kind": "distribution", "arguments": [family, [], {}]})


@pytest.mark.parametrize(
    "saved",
    [
        {"kind": "distribution", "arguments": ["norm", ["0"], {}]},
        {"kind": "distribution", "arguments": ["norm", [[0.0, 1.0]], {}]},
        {"kind": "distribution", "arguments": ["norm", [], {"loc": None}]},
        {"kind": "distribution", "arguments": ["norm", [], {"momtype": "x"}]},
        {"kind": "distribution", "arguments": ["norm", [1.0] * 9, {}]},
        {"kind": "distribution"},
        {"kind": "quantiles", "arguments": [[0.1, 0.2]]},
        {"kind": "quantiles", "arguments": [["a"] * 1025]},
        {"kind": "sample", "arguments": [[[1.0], [2.0, 3.0]]]},
        {"kind": "sample", "arguments": [{}]},
        {"kind": "share", "arguments": ["1", None, 0.5, 0.05, -0.1]},
        {"kind": "share", "arguments": [0.5, None, 0.5, 0.05, None]},
        {"kind": "constant", "arguments": []},
        {"kind": ["constant"], "arguments": [1.0]},
        {"kind": "eval", "arguments": ["1"]},
        None,
        [],
        "constant",
    ],
    ids=str,
)
def test_targets_that_are_none_are_refused(saved: Any) -> None:
    with pytest.raises(InvalidInput):
        targets.from_dict(saved)


# --- files that are not what they seem ------------------------------------------------------------


def header(shape: tuple[int, ...], dtype: str = "<f8") -> bytes:
    stream = io.BytesIO()
    content = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, content)
    return stream.getvalue()


def test_sizes_are_read_before_anything_is_unpacked(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unpacked(*arguments: object, **options: object) -> None:
        raise AssertionError("something was unpacked")

    with zipfile.ZipFile(run / "arrays.npz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("factual.npy", header((9 * 10**6,)) + bytes(72 * 10**6))
    monkeypatch.setattr(np, "load", unpacked)
    with pytest.raises(SavedRunError, match="far more than their file"):
        ew.load(run)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (header((10**13,)), "128 bytes for shape"),
        (header((-1,)), "cannot be read"),
        (header((1,), "|O") + bytes(8), "not numbers"),
        (header((1,), "|S8") + bytes(8), "not numbers"),
        (b"\x93NUMPY\x02\x00" + bytes(200), "another version"),
        (b"nothing", "cannot be read"),
    ],
    ids=["huge", "negative", "objects", "text", "version", "no array"],
)
def test_headers_are_checked(content: bytes, message: str, run: Path) -> None:
    with zipfile.ZipFile(run / "arrays.npz", "w") as file:
        file.writestr("factual.npy", content)
    with pytest.raises(SavedRunError, match=message):
        ew.load(run)


def test_runs_that_compress_very_well_come_back(tmp_path: Path) -> None:
    arrays = {"factual": np.zeros((3000, 3000))}
    saving.write_arrays(tmp_path / "arrays.npz", arrays)
    assert saving.read_arrays(tmp_path / "arrays.npz")["factual"].shape == (3000, 3000)


def test_what_is_checked_is_what_is_read(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is exchanged after it was checked, before it is used, is not read again."""
    before, after = read_arrays(run / "arrays.npz"), {"factual": np.zeros(3)}
    check = _storage._check_sizes

    def check_and_exchange(*arguments: Any) -> None:
        check(*arguments)
        np.savez(run / "arrays.npz", **after)

    monkeypatch.setattr(_storage, "_check_sizes", check_and_exchange)
    assert sorted(read_arrays(run / "arrays.npz")) == sorted(before)
    assert sorted(read_arrays(run / "arrays.npz")) == sorted(after)


def test_no_dtype_opens_a_file(run: Path) -> None:
    opened = "datetime64[ns, dateutil//etc/hostname]"  # pandas reads that file, whatever it is
    rewrite(run, lambda record: record["index"].update(dtype=opened))
    with pytest.raises(SavedRunError, match=r"'index' \(ValueError: dtype datetime64"):
        ew.load(run)


@pytest.mark.parametrize("name", ["explanation.json", "arrays.npz"])
def test_a_pipe_is_not_waited_for(name: str, run: Path) -> None:
    (run / name).unlink()
    os.mkfifo(run / name)
    with pytest.raises(SavedRunError, match="not a regular file"):
        ew.load(run)


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 50_000, "1" * 5000, "\x00", "", "{"])
def test_json_that_is_none_is_refused(text: str, run: Path) -> None:
    (run / "explanation.json").write_text(text)
    with pytest.raises(SavedRunError, match=r"explanation\.json"):
        ew.load(run)


# --- fields ---------------------------------------------------------------------------------------

WRONG: list[Any] = [None, "text", -1, 1.5, [], {}, [None], {"a": None}, [[[]]], "[" * 5000, 1e400]
FIELDS = [
    *("encoder", "outputs", "index", "target", "bounds", "unit", "seed"),
    *("settings", "motion", "status", "certificate", "history"),
]


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_is_checked(name: str, run: Path) -> None:
    kept_text = (run / "explanation.json").read_bytes()
    original, loaded = json.loads(kept_text)[name], []
    # Bounds and motions have defaults for all of their fields; nothing is in an empty list.
    good = [
        original,
        {"unit": 1.5, "bounds": {}, "motion": {}, "history": {}}.get(name),
    ]
    for value in WRONG:
        rewrite(run, lambda record, value=value: record.update({name: value}))
        try:
            ew.load(run)
        except SavedRunError as error:
            where = [repr(name), "arrays.npz"]
            loaded += [] if any(word in str(error) for word in where) else [(value, str(error))]
        else:
            loaded += [] if value in good or name == "history" else [(value, "loaded")]
    assert not loaded
    (run / "explanation.json").write_bytes(kept_text)
    rewrite(run, lambda record: record.pop(name))
    if name != "unit":  # runs saved before it was there
        with pytest.raises(SavedRunError, match=name):
            ew.load(run)


def leaves(content: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in nested JSON; of lists, to the first three."""
    if isinstance(content, dict | list):
        yield from (
            found
            for key, part in (
                content.items() if isinstance(content, dict) else enumerate(content[:3])
            )
            for found in leaves(part, (*way, key))
        )
    if way:
        yield way


def replaced(content: Any, way: tuple[Any, ...], value: Any) -> Any:
    """A deep copy with one value replaced."""
    content = json.loads(json.dumps(content))
    place = content
    for key in way[:-1]:
        place = place[key]
    place[way[-1]] = value
    return content


@pytest.mark.parametrize("value", [None, "text", -1, {"a": 1}], ids=repr)
def test_no_leaf_comes_out_raw(value: Any, run: Path) -> None:
    """A run that loads can be looked at; a run that does not says so."""
    record = json.loads((run / "explanation.json").read_text("utf-8"))
    schema = tomllib.loads(record["encoder"]["schema"])
    mutants = {way: replaced(record, way, value) for way in leaves(record)}
    for way in leaves(schema):
        text = as_toml(replaced(schema, way, value))
        mutants["schema", *way] = replaced(record, ("encoder", "schema"), text)
    raw: list[tuple[Any, str]] = []
    for way, mutant in mutants.items():
        rewrite(run, lambda content, mutant=mutant: (content.clear(), content.update(mutant)))
        try:
            loaded = ew.load(run)
            str(loaded.status), repr(loaded), str(loaded.certificate), loaded.changes()
        except SavedRunError:
            pass
        except Exception as error:
            raw.append((way, repr(error)))
        (run / "explanation.json").write_text(json.dumps(record), "utf-8")
    assert not raw


ARRAYS = {
    "codes beyond a table": lambda a: {"factual": np.where(np.arange(4) == 2, 99.0, a["factual"])},
    "codes between levels": lambda a: {"counterfactual": a["counterfactual"] + 0.5},
    "missing whole numbers": lambda a: {"factual": np.full_like(a["factual"], np.nan)},
    "background beyond a table": lambda a: {"background": a["background"] + [0, 0, 9, 0]},
    "background of other columns": lambda a: {"background": a["background"][:, 1:]},
    "clusters of other rows": lambda a: {"clusters": np.zeros(3, dtype=int)},
    "clusters that are not numbered": lambda a: {"clusters": np.full(len(a["factual"]), 10**9)},
    "infinite cells": lambda a: {"factual": np.full_like(a["factual"], np.inf)},
    "outputs that are not finite": lambda a: {"outputs": np.full_like(a["outputs"], np.nan)},
    "outputs too large": lambda a: {"outputs": np.full_like(a["outputs"], 1e308)},
    "rows that are fewer": lambda a: {"factual": a["factual"][1:]},
    "one axis": lambda a: {"factual_outputs": a["factual_outputs"][:, 0]},
    "whole numbers": lambda a: {"outputs": a["outputs"].astype(int)},
    "sizes that do not fit": lambda a: {"directions_sizes": a["directions_sizes"] + 1},
    "negative sizes": lambda a: {"directions_sizes": -a["directions_sizes"]},
    "directions of another space": lambda a: {"directions": a["directions"][:, :-1]},
    "an unknown source": lambda a: {"edit_sources": a["edit_sources"] + 17},
    "knots without displacements": lambda a: {"anchor_knots": a["anchor_knots"][:, :-1]},
    "knots that fall": lambda a: {"anchor_knots": -a["anchor_knots"]},
    "knots too large": lambda a: {"anchor_knots": a["anchor_knots"] + 1e308},
    "missing knots": lambda a: {"anchor_knots": np.full_like(a["anchor_knots"], np.nan)},
    "true displacements": lambda a: {"anchor_displacements": a["anchor_displacements"] > 0},
    "eta out of range": lambda a: {"etas": a["etas"] + 2},
    "fewer sparsities": lambda a: {"sparsities": a["sparsities"][:-1]},
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_do_not_fit_are_refused(name: str, run: Path) -> None:
    with np.load(run / "arrays.npz") as stored:
        arrays = dict(stored)
    rearrange(run, **ARRAYS[name](arrays))
    with pytest.raises(SavedRunError, match=r"damaged in arrays\.npz"):
        ew.load(run)


def test_a_question_about_other_outputs_is_refused(tmp_path: Path) -> None:
    run = ew.explain(score, ROWS, target=ew.targets.at_most(0.45)).save(tmp_path / "run")
    for change in ({"upper": [0.4, 0.5]}, {"column": 1}, {"column": -1}):
        rewrite(run, lambda r, c=change: r["question map"]["question"]["wanted"].update(c))
        with pytest.raises(SavedRunError, match="'question map'"):
            ew.load(run)


# --- policies and differences ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def policy_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    answer = ew.explain(score, ROWS, target=ew.targets.at_most(0.45))
    return answer.policy(2, assign="rule").save(tmp_path_factory.mktemp("policy") / "run")


POLICIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a line that is none": lambda p: p["lines"][0].append(1),
    "a cost in words": lambda p: p.update(cost="__import__('os')"),
    "prices of too few columns": lambda p: p.update(cost=[1.0]),
    "a rule about a column there is not": lambda p: p["rules"][0].append([9, 0.0, True, False]),
    "fewer rules than actions": lambda p: p["rules"].pop(),
    "other outputs": lambda p: p["question"]["wanted"].update(upper=[0.1, 0.2, 0.3]),
    "an infinite step": lambda p: p["add"][0].__setitem__(0, float("inf")),
    "a count in words": lambda p: p["explained"].__setitem__(0, "40"),
    "no verdict": lambda p: p.update(verdict="excellent"),
    "no grid": lambda p: p.pop("grid"),
}


@pytest.mark.parametrize("name", POLICIES)
def test_policies_that_are_none_are_refused(name: str, policy_run: Path, tmp_path: Path) -> None:
    run = shutil.copytree(policy_run, tmp_path / "run")
    assert ew.Policy.load(run, model=score).lines
    content = json.loads((run / "policy.json").read_text("utf-8"))
    POLICIES[name](content)
    (run / "policy.json").write_text(json.dumps(content), "utf-8")
    with pytest.raises(SavedRunError, match=r"policy\.json: the saved policy cannot be read"):
        ew.Policy.load(run, model=score)


@pytest.mark.parametrize("file", ["policy.json", "command.json"])
def test_deep_notes_and_policies_are_refused(
    file: str, policy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(policy_run, tmp_path / "run")
    (run / file).write_text("[" * 100_000)
    with pytest.raises(SystemExit, match="2"):
        main(["report", str(run)])
    assert f"{file}" in capsys.readouterr().err


DIFFERENCES: dict[str, Callable[[dict[str, Any], dict[str, np.ndarray]], object]] = {
    "a number in words": lambda r, a: r.update(before="0.5"),
    "missing numbers": lambda r, a: r["parts"].update(part=[float("nan")] * len(r["parts"]["low"])),
    "a column too few": lambda r, a: r["parts"].pop("named"),
    "a column too short": lambda r, a: r["parts"]["low"].pop(),
    "a functional there is not": lambda r, a: r.update(functional=["mean"]),
    "groups of something": lambda r, a: r.update(groups={"who": [1]}),
    "a confidence of 2": lambda r, a: r.update(confidence=2.0),
    "attributes in two levels": lambda r, a: r["attributes"].update(
        labels=[{"tuple": ["a", k]} for k, _ in enumerate(r["attributes"]["labels"])],
        dtype=None,
        names=[None, None],
    ),
    "rows in neither sample": lambda r, a: a.update(before=a["before"] + 99),
    "masses that are missing": lambda r, a: a.update(mass=a["mass"][1:]),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_differences_that_are_none_are_refused(name: str, tmp_path: Path) -> None:
    rows = ROWS.drop(columns="day")
    path = ew.difference(score, rows[:20], rows[20:], draws=19).save(tmp_path / "found.npz")
    assert ew.Difference.load(path).sizes == (20, 20)
    arrays = read_arrays(path)
    record = json.loads(arrays.pop("record").tobytes())
    DIFFERENCES[name](record, arrays)
    np.savez(path, record=np.frombuffer(json.dumps(record).encode(), np.int8), **arrays)
    with pytest.raises(SavedRunError, match=r"found\.npz: expected what Difference\.save wrote"):
        ew.Difference.load(path)


def test_a_table_whose_reader_fails_in_any_way_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"PAR1")

    def fail(path: Path) -> None:
        raise KeyError("pandas_type")  # what one changed letter in the metadata of a file came to

    monkeypatch.setattr(pd, "read_parquet", fail)
    with pytest.raises(InvalidInput, match=r"a readable \.csv or \.parquet file"):
        read_table(path)


def test_rules_stay_lost_when_a_loaded_run_is_saved_again(tmp_path: Path) -> None:
    schema = ew.Schema.infer(ROWS).rule(lambda frame: frame["a"] > -9, "a above -9")
    answer = ew.explain(
        score, ROWS, schema=schema, target=ew.targets.at_most(0.45), settings=ew.Settings(draws=39)
    )
    first = ew.load(answer.save(tmp_path / "first"))
    again = ew.load(first.save(tmp_path / "again"), model=score)
    with pytest.raises(SavedRunError, match="rules: expected 'a above -9', which are functions"):
        again.apply(ROWS)
