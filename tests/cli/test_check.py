"""Questions kept in files: what holds of their answers, and models that are read without pickle."""

from __future__ import annotations

import json
import pickle
import random
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from elsewise.cli import main
from elsewise.cli._inputs import load_model
from elsewise.cli._study import _parts
from elsewise.errors import InvalidInput, MissingExtra

skops = pytest.importorskip("skops.io")

STUDY = """
rows = "rows.csv"
drop = ["outcome"]
model = "model.skops"
target = "share:0.6,above=0.5"
freeze = ["age"]
population = "all"
name = "approval"
assertions = ["reached >= 0.6", "share_moved < 1"]

[bounds]
inputs = 2.0
"""
HOSTILE = [
    "reached.__class__ > 1",
    "__import__ > 1",
    "__class__ == 1",
    "os.system > 1",
    "reached() > 1",
    "eval(1) > 1",
    "@reached > 1",
    "reached > @limit",
    "reached > limit",
    "reached[0] > 1",
    "reached > 1 or 1",
    "reached > 1; x",
    "reached > 1e999",
    "reached > nan",
    "reached >= ",
    "1 < reached",
    "0 < reached < 1",
    "lambda: 1 > 0",
    "reached > 0x10",
    "reached > 1\n> 2",
    "réached > 1",
    "",
]


def plus(frame: pd.DataFrame) -> pd.DataFrame:
    """A step that skops does not know."""
    return frame + 1.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows, models and studies that pass and fail."""
    place = tmp_path_factory.mktemp("study")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"income": rng.normal(size=120).round(3), "age": rng.integers(18, 70, 120)})
    model = LogisticRegression().fit(rows, rows["income"] > 0.3)
    rows.assign(outcome=1).to_csv(place / "rows.csv", index=False)
    skops.dump(model, place / "model.skops")
    own = make_pipeline(FunctionTransformer(plus), LogisticRegression())
    skops.dump(own.fit(rows, rows["income"] > 0.3), place / "own.skops")
    (place / "model.pickle").write_bytes(pickle.dumps(model))
    (place / "cut.skops").write_bytes((place / "model.skops").read_bytes()[:200])
    return place


def written(folder: Path, text: str, name: str = "study.toml") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def ended(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["check", *arguments])
    assert isinstance(end.value.code, int)
    return end.value.code


def junit(path: Path) -> ElementTree.Element:
    """Return a JUnit file, whose counts are those of what it holds."""
    suite = ElementTree.parse(path).getroot()
    assert suite.tag == "testsuite"
    assert suite.get("name")
    cases = suite.findall("testcase")
    assert all(case.get("name") and case.get("classname") for case in cases)
    counted = {"tests": len(cases)}
    counted |= {f"{kind}s": len(suite.findall(f"*/{kind}")) for kind in ("failure", "error")}
    assert {name: int(suite.attrib[name]) for name in counted} == counted
    return suite


def test_a_passing_study_ends_with_0(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--junit", str(folder / "junit.xml"), "--markdown", str(folder / "summary.md")]
    files += ["--report", str(folder / "report.html")]
    assert ended(written(folder, STUDY), *files, "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert [one["holds"] for one in record["assertions"]] == [True, True]
    assert record["assertions"][0]["text"] == "reached >= 0.6"
    suite = junit(folder / "junit.xml")
    assert [c.get("name") for c in suite.iter("testcase")] == ["reached >= 0.6", "share_moved < 1"]
    assert suite.get("failures") == suite.get("errors") == "0"
    assert "| holds |" in (folder / "summary.md").read_text("utf-8")
    assert "approval" in (folder / "report.html").read_text("utf-8")


def test_a_failing_study_ends_with_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = STUDY.replace("share_moved < 1", "share_moved > 1")
    place = folder / "failed.xml"
    assert ended(written(folder, text), "--junit", str(place)) == 1
    assert "FAILS: share_moved > 1 (share_moved is 0." in capsys.readouterr().out
    (failure,) = junit(place).findall("testcase/failure")
    assert str(failure.get("message")).startswith("share_moved is 0.")


def test_without_assertions_the_answer_has_to_be_as_asked(folder: Path) -> None:
    text = "\n".join(line for line in STUDY.splitlines() if "assertions" not in line)
    assert ended(written(folder, text)) == 0
    assert ended(written(folder, text.replace("inputs = 2.0", "inputs = 0.0001"))) == 1


BROKEN = {
    "no file": (None, "no such file"),
    "cut short": (STUDY[:30], "expected a study file (TOML)"),
    "unknown key": (STUDY.replace("drop", "dorp"), "study.toml: expected fields among"),
    "unknown bound": (STUDY.replace("inputs", "input"), "study.toml: bounds: expected fields"),
    "wrong type": (f"seed = 'x'\n{STUDY}", "study.toml: seed: expected a whole number"),
    "wrong bound": (STUDY.replace("2.0", "'far'"), "bounds.inputs: expected a number or None"),
    "no rows": (STUDY.replace('rows = "rows.csv"', ""), "expected a field 'rows'"),
    "rows that are not there": (STUDY.replace("rows.csv", "no.csv"), "no.csv, which is not there"),
    "no such column": (STUDY.replace("outcome", "outcom"), "study.toml: drop: expected columns"),
    "missing columns": (STUDY.replace('"outcome"', '"outcome", "age"'), "study.toml: name: "),
    "no such target": (STUDY.replace("share:", "shares:"), "study.toml: target: expected"),
    "no model": (STUDY.replace('model = "model.skops"', ""), "study.toml: model: expected a model"),
    "a pickle": (
        STUDY.replace("model.skops", "model.pickle"),
        "study.toml: model: expected a .sko",
    ),
    "a module": (STUDY.replace("model.skops", "os:system"), "study.toml: model: expected a .skops"),
    "a cut model": (STUDY.replace("model.skops", "cut.skops"), "a file that skops.io.dump wrote"),
    "untrusted types": (STUDY.replace("model.skops", "own.skops"), "--trust "),
    "no such number": (
        STUDY.replace("reached >=", "reachd >="),
        "study.toml: assertions[1]: expected a number that this answer has: asked",
    ),
    "no assertion": (
        STUDY.replace("reached >= 0.6", "reached.real >= 0"),
        "study.toml: assertions[1]: expected a name, a comparison",
    ),
    "assertions that are no texts": (
        STUDY.replace('"reached >= 0.6"', "1"),
        "study.toml: assertions: expected text, received 1",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_study_ends_with_2(
    case: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, message = BROKEN[case]
    (folder / "study.toml").unlink(missing_ok=True)
    study = str(folder / "study.toml") if text is None else written(folder, text)
    place = folder / "broken.xml"
    assert ended(study, "--junit", str(place)) == 2
    said = capsys.readouterr().err
    assert message in " ".join(said.split())
    assert "Traceback" not in said
    (error,) = junit(place).findall("testcase/error")
    assert error.get("message")


def test_a_crash_is_no_failing_assertion(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def crash(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr("elsewise.cli.explain_rows", crash)
    assert ended(written(folder, STUDY)) == 2
    assert "a fault of ours" in capsys.readouterr().err


@pytest.mark.parametrize("text", HOSTILE)
def test_assertions_are_a_name_a_comparison_and_a_number(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"assertions\[1\]"):
        _parts(text, 1)


def test_random_texts_are_read_as_they_are_or_refused() -> None:
    rng = random.Random(0)
    pieces = ["reached", "limit", "__x__", ".", "(", ")", "@", ">=", "<", "==", "0.6", "1e3", " "]
    read = 0
    for _ in range(30000):
        text = "".join(rng.choices(pieces, k=rng.randint(1, 5)))
        try:
            name, comparison, number = _parts(text, 1)
        except InvalidInput:
            continue
        read += 1
        assert not set(text) & set("()@")
        assert "__" not in text
        assert text.replace(" ", "").startswith(f"{name}{comparison}")
        assert float(text.split(comparison, 1)[1]) == number
    assert read > 20


def test_hostile_names_stay_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "<script>|**x**`\x1b[2K\ufffe"
    text = STUDY.replace('"approval"', json.dumps(name)).replace("reached >", "reached \\u003e")
    files = ["--junit", str(folder / "h.xml"), "--markdown", str(folder / "h.md")]
    assert ended(written(folder, text), *files) == 0
    junit(folder / "h.xml")
    shown = (folder / "h.md").read_text("utf-8")
    assert "<script>" not in shown.replace("\\<script\\>", "")
    assert "\x1b" not in shown + capsys.readouterr().out


def test_a_model_on_the_command_line_takes_the_place_of_the_studys(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = written(folder, STUDY.replace('model = "model.skops"', ""))
    assert ended(study, "--model", str(folder / "model.pickle"), "--quiet") == 0
    said = capsys.readouterr()
    assert "runs the code stored in it" in said.err
    assert said.out == ""


def test_only_named_types_of_a_skops_file_are_loaded(folder: Path) -> None:
    place = str(folder / "own.skops")
    (unknown,) = skops.get_untrusted_types(file=place)
    for trust in ((), ("sklearn.linear_model.LogisticRegression",), (unknown[:-1],)):
        with pytest.raises(InvalidInput, match=f"--trust {unknown}"):
            load_model(place, trust=trust)
    assert hasattr(load_model(place, trust=(unknown,)), "predict_proba")


def test_without_skops_the_extra_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "skops", None)
    with pytest.raises(MissingExtra, match=r"pip install 'elsewise\[skops\]'"):
        load_model(str(folder / "model.skops"))
