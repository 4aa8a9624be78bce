"""Files and folders of ours: whole or not at all, whoever else is writing, whatever ends us."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import elsewise as ew
from elsewise import _storage
from elsewise.cli._exports import write_csv
from elsewise.errors import InvalidInput, SavedRunError
from elsewise.report import answer, change_table
from elsewise.text import visible

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame({"a": RNG.normal(size=40), "b": RNG.integers(0, 9, 40)})
CHILD = """
import sys
import elsewise as ew
answer = ew.load(sys.argv[1])
while True:
    for name in sys.argv[3:]:
        getattr(answer, name)(sys.argv[2] + ("" if name == "save" else "/report.html"))
    print("again", flush=True)
"""

KILLED_AT_EVERY_STEP = """
import os, signal, sys
import elsewise as ew
from elsewise._storage import write_text
source, run, page = sys.argv[1:]
answer = ew.load(source)
write_text("old" * 999, page)
for step in range(1000):
    child = os.fork()
    if not child:
        left = iter(range(step))
        def hear(event, arguments):
            ours = event == "open" or event.startswith(("os.", "shutil.", "tempfile."))
            if ours and event != "os.kill" and next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(hear)
        answer.save(run)
        write_text("new" * 999, page)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert ew.load(run).counterfactual.equals(answer.counterfactual)
    assert open(page).read() in ("old" * 999, "new" * 999)
    if status == 0:
        break
print(step)
"""
FULL_DISK = """
import resource, sys
from pathlib import Path
import elsewise as ew
run = Path(sys.argv[1])
answer = ew.load(run)
before = {path.name: path.read_bytes() for path in run.iterdir()}
most = max(map(len, before.values()))
for size in (0, 1, 100, most // 2, most - 1):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    for write in (lambda: answer.save(run), lambda: answer.report(run / "report.html")):
        try:
            write()
        except OSError as error:
            assert error.errno == 27, error
        else:
            assert (run / "report.html").exists()  # the smaller of the two has room
            (run / "report.html").unlink()
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before
    assert [path.name for path in run.parent.iterdir()] == [run.name]
print("kept")
"""
SAVES = """
import sys
import elsewise as ew
answer = ew.load(sys.argv[1])
for _ in range(100):
    answer.save(sys.argv[2])
"""


def score(frame: pd.DataFrame) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-frame["a"].to_numpy(dtype=float)))


@pytest.fixture(scope="module")
def answered() -> ew.Explanation:
    return ew.explain(
        score,
        ROWS,
        target=ew.targets.at_most(0.45),
        bounds=ew.Bounds(outputs=0.1),
        settings=ew.Settings(iterations=3, draws=39),
    )


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


# --- places ---------------------------------------------------------------------------------------


def test_paths_are_resolved_first(answered: ew.Explanation, tmp_path: Path) -> None:
    answered.save(tmp_path / "run")
    (tmp_path / "run" / "sub").mkdir()
    answered.save(f"{tmp_path}/run/sub/../../run")
    (tmp_path / "link").symlink_to(tmp_path / "run")
    answered.save(tmp_path / "link")
    answered.save(tmp_path / ("y" * 250))
    assert (tmp_path / "link").is_symlink()
    for name in ("run", "link", "y" * 250):
        ew.load(tmp_path / name)
    assert not hidden(tmp_path)


def test_the_current_folder_is_refused(
    answered: ew.Explanation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="is or holds the current folder"):
        answered.save(".")


def test_files_of_others_are_kept(answered: ew.Explanation, tmp_path: Path) -> None:
    run = answered.save(tmp_path / "run")
    (run / "notes.txt").write_text("mine")
    (run / "pictures").mkdir()
    (run / "pictures" / "one.png").write_bytes(b"1")
    (run / "report.html").write_text("of the earlier run")
    answered.save(run)
    assert (run / "notes.txt").read_text() == "mine"
    assert (run / "pictures" / "one.png").read_bytes() == b"1"
    assert not (run / "report.html").exists()


@pytest.mark.parametrize("way", ["at once", "one after the other"])
def test_concurrent_saves(
    way: str, answered: ew.Explanation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "one after the other":
        monkeypatch.setattr(_storage.sys, "platform", "elsewhere")
    failed: list[BaseException] = []

    def save() -> None:
        for _ in range(5):
            try:
                answered.save(tmp_path / "run")
            except BaseException as error:
                failed.append(error)

    threads = [threading.Thread(target=save) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    ew.load(tmp_path / "run")
    assert not hidden(tmp_path)


def test_paths_that_are_none_are_refused(answered: ew.Explanation) -> None:
    for call in (answered.save, answered.report, answered.explore, ew.load, ew.Difference.load):
        with pytest.raises((InvalidInput, SavedRunError), match="expected a path, received None"):
            call(None)


def test_a_report_is_no_folder(answered: ew.Explanation, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="path: expected a file"):
        answered.report(tmp_path)


# --- faults ---------------------------------------------------------------------------------------


def run_child(script: str, *arguments: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
    return done.stdout


@pytest.mark.slow
def test_two_processes_save_a_hundred_times_each(answered: ew.Explanation, tmp_path: Path) -> None:
    other = ew.explain(
        score, ROWS[:30], target=ew.targets.at_most(0.4), settings=ew.Settings(draws=39)
    )
    sources = answered.save(tmp_path / "one"), other.save(tmp_path / "other")
    children = [
        subprocess.Popen([sys.executable, "-c", SAVES, str(source), str(tmp_path / "run")])
        for source in sources
    ]
    assert [child.wait() for child in children] == [0, 0]
    assert len(ew.load(tmp_path / "run").index) in (30, 40)
    assert not hidden(tmp_path)


@pytest.mark.slow
def test_killed_at_every_step(answered: ew.Explanation, tmp_path: Path) -> None:
    """SIGKILL before each file that is opened, renamed or removed: the earlier one or the new."""
    source, run = answered.save(tmp_path / "source"), answered.save(tmp_path / "run")
    assert int(run_child(KILLED_AT_EVERY_STEP, source, run, tmp_path / "page.html")) > 20


@pytest.mark.slow
def test_a_file_that_cannot_be_written_to_its_end(answered: ew.Explanation, tmp_path: Path) -> None:
    assert run_child(FULL_DISK, answered.save(tmp_path / "run")) == "kept\n"


@pytest.mark.parametrize("verbs", [["save", "report"]], ids=" ".join)
def test_killed_at_random_moments(
    verbs: list[str], answered: ew.Explanation, tmp_path: Path
) -> None:
    """SIGKILL: the earlier run or the new one, never neither."""
    source, run = answered.save(tmp_path / "source"), tmp_path / "run"
    moments = random.Random(0)
    for _ in range(3):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(source), str(run), *verbs], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(moments.random() / 20)
        child.kill()
        child.communicate()
        pd.testing.assert_frame_equal(ew.load(run).counterfactual, answered.counterfactual)


def test_a_full_disk_keeps_the_earlier_run(
    answered: ew.Explanation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = answered.save(tmp_path / "run")

    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="No space left"):
        answered.save(run)
    ew.load(run)
    assert not hidden(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_end_a_command_cleanly(
    number: signal.Signals, answered: ew.Explanation, tmp_path: Path
) -> None:
    (tmp_path / "slow.py").write_text(
        "import time\n"
        "def score(d):\n"
        "    open('asked', 'a').write('x')\n"
        "    time.sleep(0.1)\n"
        "    return 1 / (1 + 2.718281828 ** -d['a'].to_numpy(float))\n"
    )
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    child = subprocess.Popen(
        [
            *(sys.executable, "-m", "elsewise", "explain", "rows.csv", "--model", "slow:score"),
            *("--target", "at_most:0.4", "--bounds", "outputs=0.05", "--out", "run"),
        ],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        # A run under nohup ignores SIGHUP, and a child inherits that.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    asked = tmp_path / "asked"
    while child.poll() is None and not (asked.exists() and asked.stat().st_size > 20):
        time.sleep(0.05)
    child.send_signal(number)
    _, said = child.communicate()
    assert child.returncode == 130, said
    assert "Traceback" not in said
    ew.load(tmp_path / "run")
    assert not [name for name in hidden(tmp_path) if name.startswith(".elsewise")]


# --- what others do with it -----------------------------------------------------------------------


def test_spreadsheets_run_nothing(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"=cmd": ["=1+1", "+x", "-5", "@sum", "\tq", "plain", None], "n": range(-3, 4)},
        index=pd.Index(list("=bcdefg"), name="@who"),
    )
    assert write_csv(frame, tmp_path / "rows.csv") == 7
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    assert lines[:4] == ["'@who,'=cmd,n", "'=,'=1+1,-3", "b,'+x,-2", "c,-5,-1"]
    assert write_csv(frame[["n"]], tmp_path / "n.csv", index=False) == 0
    pd.testing.assert_frame_equal(
        pd.read_csv(tmp_path / "n.csv"), frame[["n"]].reset_index(drop=True)
    )


def test_names_do_not_drive_a_terminal() -> None:
    name = "\x1b]0;owned\x07\x1b[2Kx\u202e"
    rows = ROWS.rename(columns={"a": name})
    said = ew.explain(
        lambda frame: 1.0 / (1.0 + np.exp(-frame[name].to_numpy())),
        rows,
        target=ew.targets.at_most(0.45),
        bounds=ew.Bounds(outputs=0.1),
        settings=ew.Settings(iterations=2, draws=39),
    )
    texts = [
        *answer(said)[1],
        change_table(said),
        str(said.groups()),
        repr(said.encoder.schema),
    ]
    assert not any(letter in text for text in texts for letter in "\x1b\x07\u202e")
    assert visible("a\nb\tc\u00e9\u00a0") == "a\nb\tc\u00e9\u00a0"
    assert visible("\ud800") == "\\ud800"


def test_reports_from_threads(answered: ew.Explanation) -> None:
    import matplotlib as mpl

    alone, before, pages = ew.report.render(answered), dict(mpl.rcParams), []
    threads = [
        threading.Thread(target=lambda: pages.append(ew.report.render(answered))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pages == [alone] * 3
    assert dict(mpl.rcParams) == before


def test_a_comparison_names_each_output(answered: ew.Explanation) -> None:
    page = ew.report.render_comparison(
        {"one": answered, "two": answered}, output={"one": "risk of default", "two": "wage"}
    )
    assert "mean risk of default" in page
    assert "mean wage" in page
