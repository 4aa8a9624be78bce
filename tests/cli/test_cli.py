"""The installed command, run as a user runs it: in a process of its own."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import jsonschema
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import elsewise as ew
from elsewise.cli import main
from elsewise.cli._exports import check_formats, write_table
from elsewise.cli._inputs import parse_bounds, parse_dtypes, read_table
from elsewise.errors import InvalidInput, MissingExtra

COMMAND = str(Path(sys.executable).with_name("elsewise"))
SCHEMA = json.loads(files("elsewise.cli").joinpath("output.schema.json").read_text("utf-8"))

SCORING = '''
"""A user's own module."""
import os
import time

import numpy as np

calls = 0


def risk(frame):
    level = 0.8 * frame["debt"] - 0.5 * frame["income"] - 0.7 * (frame["home"] == "own")
    return 1 / (1 + np.exp(-level))


def slow(frame):
    global calls
    calls += 1
    if calls == 12:
        open("searching", "w").close()
    time.sleep(0.02)
    return risk(frame)


def broken(frame):
    raise RuntimeError("the model is broken")
'''

# Starts once and answers many commands, each in a process of its own.
SERVER = """
import json, os, sys, traceback
import joblib, pyarrow.parquet, scipy.stats, sklearn.compose, sklearn.pipeline
from elsewise.cli import main
for line in sys.stdin:
    arguments, out, err = json.loads(line)
    child = os.fork()
    if child == 0:
        for stream, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
        sys.argv = ["elsewise", *arguments]
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush(); sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Answer(NamedTuple):
    code: int
    out: str
    err: str


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def elsewise(*arguments: str, folder: Path) -> Answer:
    """Run the installed command."""
    done = subprocess.run(
        [COMMAND, *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder: rows, a module, saved models, scores, and a finished run."""
    folder = tmp_path_factory.mktemp("work")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "income": rng.normal(size=100).round(3),
            "debt": rng.normal(1, 1, 100).round(3),
            "home": rng.choice(["own", "rent"], 100),
        }
    )
    rows.assign(outcome=1).to_csv(folder / "rows.csv", index=False)
    rows.to_parquet(folder / "rows.parquet")
    rows.iloc[:0].to_csv(folder / "empty.csv", index=False)
    (folder / "nothing.csv").write_text("")
    (folder / "image.csv").write_bytes(b"\x89PNG\xff\xfe\x00")
    (folder / "scoring.py").write_text(SCORING)
    (folder / "failing.py").write_text("raise ValueError('on import')")
    pd.DataFrame({"score": rng.uniform(size=40), "name": "x"}).to_csv(folder / "scores.csv")
    prepare = make_column_transformer(
        (StandardScaler(), ["income", "debt"]), (OneHotEncoder(), ["home"])
    )
    classes = np.where(rows["debt"] - rows["income"] > 1, "bad", "good")
    model = make_pipeline(prepare, LogisticRegression()).fit(rows, classes)
    joblib.dump(model, folder / "model.joblib")
    (folder / "model.pickle").write_bytes(pickle.dumps(model))
    (folder / "damaged.joblib").write_bytes(b"not a pickle")
    (folder / "other").mkdir()
    (folder / "other" / "thesis.txt").write_text("precious")
    (folder / "bad_schema.json").write_text("{}")
    return folder


EXPLAIN = ("explain", "rows.csv", "--drop", "outcome", "--bounds", "inputs=0.6,outputs=0.15")
FUNCTION = ("--model", "scoring:risk", "--target", "at_most:0.5")


@pytest.fixture(scope="module")
def run(work: Path) -> Answer:
    """A finished run in ``work / "run"``."""
    formats = ("--export", "csv,json,parquet")
    return elsewise(*EXPLAIN, *FUNCTION, *formats, "--freeze", "home", "--json", folder=work)


def test_explain_writes_the_run_its_exports_and_a_report(work: Path, run: Answer) -> None:
    assert run.code == 0, run.err
    content = json.loads(run.out)
    jsonschema.validate(content, SCHEMA)
    folder = work / "run"
    assert set(content["files"]) <= {path.name for path in folder.iterdir()}
    explanation = ew.load(folder)
    assert content["certificate"]["outputs"]["upper_limit"] == (
        explanation.certificate.outputs.upper_limit
    )
    table = pd.read_csv(folder / "counterfactual.csv", index_col=0)
    pd.testing.assert_frame_equal(table, explanation.counterfactual, check_dtype=False)
    parquet = pd.read_parquet(folder / "counterfactual.parquet")
    pd.testing.assert_frame_equal(parquet, explanation.counterfactual, check_dtype=False)
    records = json.loads((folder / "counterfactual.json").read_text())
    assert records["columns"] == ["income", "debt", "home"]
    assert len(records["data"]) == 100
    sides = pd.read_csv(folder / "certificate.csv", index_col=0)
    assert list(sides.index) == ["inputs", "outputs"]
    assert "elsewise explain rows.csv" in (folder / "report.html").read_text("utf-8")
    assert "home" not in explanation.changes().index
    assert (work / ".run").exists() is False
    assert not [path for path in work.iterdir() if path.name.startswith(".run-")]


def test_columns_are_read_as_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("agent,zip code,n\n007,010,1\n008,,2\n")
    dtypes = parse_dtypes(["agent=str", "zip code=str", "n=float"])
    table = read_table(tmp_path / "a.csv", dtypes=dtypes)
    assert table["agent"].tolist() == ["007", "008"]
    assert table["zip code"].tolist()[0] == "010"
    assert table["n"].dtype == float
    pd.DataFrame({"agent": [7, 8]}).to_parquet(tmp_path / "a.parquet")
    read = read_table(tmp_path / "a.parquet", dtypes={"agent": "str", "other": "str"})
    assert read["agent"].tolist() == ["7", "8"]
    for given in ("agent", "agent=text", "=str"):
        with pytest.raises(InvalidInput, match=r"--dtype: expected column=dtype.* agent=str"):
            parse_dtypes([given])


def test_a_column_that_is_not_there_has_no_dtype(work: Path) -> None:
    done = elsewise("schema", "rows.csv", "--dtype", "home=str,agent=str", folder=work)
    assert done.code == 2
    assert "--dtype: expected columns of the rows: income, debt, home, outcome" in done.err
    done = elsewise("schema", "rows.csv", "--dtype", "home=int", folder=work)
    assert done.code == 2
    assert "check its first lines and --dtype" in done.err


@pytest.mark.slow
def test_a_whole_population_and_other_limits(work: Path) -> None:
    more = ("--population", "all", "--out", "whole", "--export", "json", "--json")
    found = elsewise(*EXPLAIN, *FUNCTION, *more, folder=work)
    assert found.code == 0, found.err
    content = json.loads(found.out)
    jsonschema.validate(content, SCHEMA)
    certificate = content["certificate"]
    assert (certificate["kind"], certificate["confidence"]) == ("whole population", None)
    assert certificate["outputs"]["upper_limit"] is None
    limits = parse_bounds("outputs=0.1,method=finite-sample,support=-1:2,cutoff=0.4")
    assert limits == ew.Bounds(outputs=0.1, method="finite-sample", support=(-1.0, 2.0), cutoff=0.4)
    for text in ("support=1", "support=0:1:2", "cutoff=low", "method"):
        with pytest.raises(
            InvalidInput, match=rf"^(--bounds: expected name=value|bounds\.{text[:6]})"
        ):
            parse_bounds(text)


@pytest.mark.slow
def test_report_compare_apply_and_schema(work: Path, run: Answer) -> None:
    assert run.code == 0
    told = elsewise(
        "report", "run", "--name", "risk", "--rows", "2", "--out", "r.html", folder=work
    )
    assert (told.code, told.out) == (0, "Report: r.html\n")
    page = (work / "r.html").read_text("utf-8")
    assert "mean risk" in page
    assert re.search(r"2 of \d+ changed rows, largest change of the output first", page)
    played = elsewise("explore", "run", "--out", "e.html", "--name", "risk", folder=work)
    assert (played.code, played.out) == (0, "Page to play with: e.html\n")
    again = ew.load(work / "run").explore(work / "e2.html", output="risk")
    assert (work / "e.html").read_bytes() == again.read_bytes()
    shutil.copytree(work / "run", work / "again")
    both = elsewise("compare", "run", "again", "--json", folder=work)
    assert set(json.loads(both.out)["runs"]) == {"run", "again"}
    assert "again" in (work / "comparison.html").read_text("utf-8")
    moved = elsewise(
        "apply", "run", "rows.csv", "--drop", "outcome", "--model", "scoring:risk", folder=work
    )
    assert moved.code == 0, moved.err
    pd.testing.assert_frame_equal(
        pd.read_csv(work / "moved.csv"),
        ew.load(work / "run").counterfactual,
        check_dtype=False,
        atol=1e-9,
    )
    found = elsewise("schema", "rows.csv", "--freeze", "home", folder=work)
    assert found.code == 0
    assert "home     category  never" in found.out
    text = (work / "schema.toml").read_text("utf-8")
    assert ew.Schema.from_toml(text)["home"].free is False


@pytest.mark.slow
def test_a_saved_model_and_an_edited_schema(work: Path) -> None:
    frame = pd.read_csv(work / "rows.csv").drop(columns="outcome")
    schema = ew.Schema.infer(frame).only("debt").to_toml()
    (work / "edited.toml").write_text(schema, encoding="utf-8")
    done = elsewise(
        *("explain", "rows.parquet", "--model", "model.joblib", "--output", "bad"),
        *("--target", "at_most:0.3", "--bounds", "outputs=0.2", "--schema", "edited.toml"),
        *("--background", "rows.parquet", "--out", "deep/saved", "--export", "csv"),
        folder=work,
    )
    assert done.code == 0, done.err
    assert "loading model.joblib runs the code stored in it" in done.err
    assert re.search(r"rows are changed: the mean model output goes from [\d.]+% to", done.out)
    assert "Certificate (" in done.out
    assert "effect on the mean output" in done.out
    assert "Report: deep/saved/report.html" in done.out
    assert list(ew.load(work / "deep" / "saved").changes().index) == ["debt"]


def test_not_feasible_has_its_own_exit_code(work: Path) -> None:
    done = elsewise(
        *("explain", "rows.csv", "--drop", "outcome", *FUNCTION[:2], "--target", "constant:0"),
        *("--bounds", "inputs=0.05,outputs=0.01", "--out", "far", "--json", "--quiet"),
        folder=work,
    )
    assert done.code == 3, done.err
    content = json.loads(done.out)
    jsonschema.validate(content, SCHEMA)
    assert content["exit_code"] == 3
    assert content["status"]["ok"] is False
    assert done.err == ""
    assert (work / "far" / "report.html").is_file()


def test_demo_prints_the_answer_and_writes_the_report(work: Path) -> None:
    done = elsewise("demo", folder=work)
    assert done.code == 0, done.err
    assert re.search(
        r"Certified\. Share with a risk of a bad credit of at most 50%: 90% asked "
        r"\(aimed at [\d.]+%\), 81\.2% before, 9[\d.]+% reached on 500 unseen rows "
        r"\(at least 9[\d.]+%\)\.",
        done.out,
    )
    assert "Certificate (held-out, 95% each, 500 rows): certified" in done.out
    assert "effect on the mean output" in done.out
    place = work / "elsewise-demo" / "report.html"
    assert f"Report: {place}" in done.out
    assert place.stat().st_size < 2_000_000


BAD: dict[str, tuple[tuple[str, ...], str]] = {
    "no file": (("explain", "none.csv", *FUNCTION), "none.csv, which is not there"),
    "a folder": (("explain", "other", *FUNCTION), "which is a folder"),
    "empty file": (("explain", "nothing.csv", *FUNCTION), "No columns to parse"),
    "binary file": (("explain", "image.csv", *FUNCTION), "a readable .csv"),
    "no rows": (("explain", "empty.csv", *FUNCTION), "at least 2 rows"),
    "no model": ((*EXPLAIN, "--target", "shift:1"), "are required: --model"),
    "no target": ((*EXPLAIN, "--model", "scoring:risk"), "are required: --target"),
    "model file": ((*EXPLAIN, "--model", "no.joblib", *FUNCTION[2:]), "no.joblib, which is not"),
    "damaged model": ((*EXPLAIN, "--model", "damaged.joblib", *FUNCTION[2:]), "damaged.joblib"),
    "no colon": ((*EXPLAIN, "--model", "scoring", *FUNCTION[2:]), "module:name"),
    "no module": ((*EXPLAIN, "--model", "absent:f", *FUNCTION[2:]), "ModuleNotFoundError"),
    "no function": ((*EXPLAIN, "--model", "scoring:f", *FUNCTION[2:]), "AttributeError"),
    "failing module": ((*EXPLAIN, "--model", "failing:f", *FUNCTION[2:]), "on import"),
    "no model at all": ((*EXPLAIN, "--model", "scoring:calls", *FUNCTION[2:]), "model: expected"),
    "broken model": ((*EXPLAIN, "--model", "scoring:broken", *FUNCTION[2:]), "model is broken"),
    "no such class": (
        (*EXPLAIN, "--model", "model.pickle", "--output", "ugly", *FUNCTION[2:]),
        "one of the model's classes bad, good",
    ),
    "class of a function": ((*EXPLAIN, *FUNCTION, "--output", "bad"), "it has none"),
    "unknown target": ((*EXPLAIN, *FUNCTION[:2], "--target", "better"), "at_least"),
    "target without number": ((*EXPLAIN, *FUNCTION[:2], "--target", "shift:far"), "numbers"),
    "target column": (
        (*EXPLAIN, *FUNCTION[:2], "--target", "sample:scores.csv,x"),
        "a column of scores.csv",
    ),
    "no distribution": (
        (*EXPLAIN, *FUNCTION[:2], "--target", "distribution:nice,1"),
        "scipy.stats",
    ),
    "distribution's numbers": (
        (*EXPLAIN, *FUNCTION[:2], "--target", "distribution:beta,1"),
        "the parts of scipy.stats.beta",
    ),
    "unknown limit": ((*EXPLAIN[:4], *FUNCTION, "--bounds", "input=1"), "inputs, outputs"),
    "negative limit": ((*EXPLAIN[:4], *FUNCTION, "--bounds", "inputs=-1"), "a positive number"),
    "frozen column": ((*EXPLAIN, *FUNCTION, "--freeze", "hom"), "did you mean 'home'"),
    "all frozen": ((*EXPLAIN, *FUNCTION, "--freeze", "home,debt,income"), "may move"),
    "schema": ((*EXPLAIN, *FUNCTION, "--schema", "bad_schema.json"), "--schema: expected a file"),
    "no schema": ((*EXPLAIN, *FUNCTION, "--schema", "none.json"), "elsewise schema"),
    "background": ((*EXPLAIN, *FUNCTION, "--background", "scores.csv"), "every column"),
    "certify": ((*EXPLAIN, *FUNCTION, "--certify", "maybe"), "certify: expected"),
    "format": ((*EXPLAIN, *FUNCTION, "--export", "pdf"), "csv, json, parquet"),
    "seed": ((*EXPLAIN, *FUNCTION, "--seed", "-1"), "seed: expected"),
    "seconds": ((*EXPLAIN, *FUNCTION, "--seconds", "0"), "settings.seconds"),
    "folder taken": ((*EXPLAIN, *FUNCTION, "--out", "other"), "which holds something else"),
    "folder is a file": ((*EXPLAIN, *FUNCTION, "--out", "rows.csv"), "holds something else"),
    "folder below a file": (
        (*EXPLAIN, *FUNCTION, "--out", "rows.csv/run"),
        "file exists",
    ),
    "read-only folder": ((*EXPLAIN, *FUNCTION, "--out", "/proc/run"), "a folder that can be made"),
    "no run": (("report", "other"), "expected a saved run"),
    "nothing to compare": (("compare",), "are required: runs"),
    "another model": (
        ("apply", "run", "rows.csv", "--drop", "outcome", "--model", "model.pickle"),
        "received",
    ),
    "other columns": (("apply", "run", "scores.csv", "--model", "scoring:risk"), "column"),
    "ending": (
        *[("apply", "run", "rows.csv", "--model", "scoring:risk", "--drop", "outcome")],
        "a .csv or .parquet file",
    ),
    "command": (("explode",), "invalid choice: 'explode'"),
}
BAD["ending"] = ((*BAD["ending"][0], "--out", "moved.doc"), BAD["ending"][1])


@pytest.fixture(scope="module")
def refusals(
    work: Path, run: Answer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Answer]:
    """What the command answers to every bad input."""
    assert run.code == 0
    logs = tmp_path_factory.mktemp("logs")
    asked = [
        ([*arguments, "--json"] if arguments[0] == "explain" else list(arguments))
        for arguments, _ in BAD.values()
    ]
    lines = [
        json.dumps([arguments, str(logs / f"{k}.out"), str(logs / f"{k}.err")])
        for k, arguments in enumerate(asked)
    ]
    done = subprocess.run(
        [sys.executable, "-c", SERVER],
        input="\n".join(lines),
        cwd=work,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    codes = [int(code) for code in done.stdout.split()]
    texts = [
        ((logs / f"{k}.out").read_text(), (logs / f"{k}.err").read_text())
        for k in range(len(asked))
    ]
    answers = (Answer(code, *text) for code, text in zip(codes, texts, strict=True))
    return dict(zip(BAD, answers, strict=True))


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_words(name: str, refusals: dict[str, Answer]) -> None:
    arguments, message = BAD[name]
    answer = refusals[name]
    assert answer.code == 2, answer
    assert message in " ".join(answer.err.split())
    assert "Traceback" not in answer.err
    assert answer.err.splitlines()[-1].startswith("elsewise: ")
    if arguments[0] == "explain":
        content = json.loads(answer.out)
        jsonschema.validate(content, SCHEMA)
        assert message in " ".join(content["error"].split())


def test_refusals_leave_the_folders_alone(work: Path, refusals: dict[str, Answer]) -> None:
    assert refusals
    assert (work / "other" / "thesis.txt").read_text() == "precious"
    assert not [path for path in work.iterdir() if path.name.startswith(".")]


def waiting(process: subprocess.Popen[str], marker: Path) -> None:
    """Wait until the process has made its marker."""
    while not marker.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        list(arguments),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


SLOW = ("--model", "scoring:slow", "--target", "at_most:0.5", "--out", "stopped", "--json")


@pytest.mark.slow
def test_ctrl_c_ends_with_130_and_the_best_so_far(work: Path) -> None:
    (work / "searching").unlink(missing_ok=True)
    process = started(work, COMMAND, *EXPLAIN, *SLOW)
    waiting(process, work / "searching")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    content = json.loads(out)
    jsonschema.validate(content, SCHEMA)
    assert content["exit_code"] == 130
    assert content["interrupted"] is True
    assert len(ew.load(work / "stopped").outputs) == 100
    assert not [path for path in work.iterdir() if path.name.startswith(".stopped")]


@pytest.mark.slow
def test_kill_while_saving_leaves_the_old_run(work: Path, run: Answer) -> None:
    assert run.code == 0
    before = {path.name: path.read_bytes() for path in (work / "run").iterdir()}
    blocked = (
        "import time, sys, numpy, pathlib\n"
        "def hang(*_, **__):\n"
        "    pathlib.Path('saving').touch()\n"
        "    time.sleep(60)\n"
        "numpy.savez_compressed = hang\n"
        "from elsewise.cli import main\n"
        "main(sys.argv[1:])"
    )
    arguments = (*EXPLAIN, *FUNCTION, "--seed", "1")
    process = started(work, sys.executable, "-c", blocked, *arguments)
    waiting(process, work / "saving")
    process.kill()
    process.communicate(timeout=60)
    assert {path.name: path.read_bytes() for path in (work / "run").iterdir()} == before
    assert ew.load(work / "run").ok
    for left in work.glob(".run-*"):
        shutil.rmtree(left)


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_the_commands_are_told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 0
    shown = capsys.readouterr().out
    for command in ("demo", "explain", "report", "explore", "compare", "apply", "schema"):
        assert command in shown


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"elsewise {ew.__version__}\n"


def test_text_that_looks_like_a_formula_stays_text(tmp_path: Path) -> None:
    frame = pd.DataFrame({"=1+1": ["=cmd()", "bell\x07", None], "n": [1, 2.5, np.nan]})
    place, escaped = write_table(frame, tmp_path / "rows.csv")
    assert escaped == 2
    assert place.read_text("utf-8") == "'=1+1,n\n'=cmd(),1.0\nbell\x07,2.5\n,\n"
    again = pd.read_parquet(write_table(frame, tmp_path / "rows.parquet")[0])
    pd.testing.assert_frame_equal(again, frame)


def test_a_missing_extra_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'elsewise\[parquet\]'"):
        check_formats("parquet")
    with pytest.raises(InvalidInput, match="formats among"):
        check_formats("xlsx")


def test_targets_and_limits_are_read() -> None:
    from elsewise.cli._inputs import parse_bounds, parse_target

    names = {
        "at_least(0.6)": "at_least(0.6)",
        "constant:1,2": "constant([1, 2])",
        "scale:0.5,1": "scale(0.5, about=1)",
        "distribution:norm": "distribution(norm)",
    }
    for text, name in names.items():
        assert parse_target(text).name.replace("()", "") == name, parse_target(text).name
    limits: Any = parse_bounds(" inputs = 0.2 , trim=0.1")
    assert (limits.inputs, limits.outputs, limits.trim) == (0.2, None, 0.1)
    assert parse_bounds(None) == ew.Bounds()


def test_a_reader_that_has_gone_is_no_error(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1.5, 2.0, 3.0]}).to_csv(tmp_path / "rows.csv", index=False)
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "elsewise", "schema", "rows.csv"]
    ended = subprocess.run(command, cwd=tmp_path, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (ended.returncode, ended.stderr) == (141, b"")
