"""The five commands of the README lead from a user's own rows and model to a page to play with."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import own_rows

import elsewise as ew

ROOT = Path(__file__).parents[2]
COMMAND = str(Path(sys.executable).with_name("elsewise"))
BLOCK = re.search(
    r"## Your rows, your model, five commands.*?```sh\n(.*?)```",
    (ROOT / "README.md").read_text("utf-8"),
    re.DOTALL,
)


def commands() -> list[list[str]]:
    """The commands of the README, without their comments."""
    assert BLOCK is not None
    return [shlex.split(line, comments=True) for line in BLOCK[1].splitlines()]


def test_there_are_five() -> None:
    first, *others = commands()
    assert len(others) == 4
    assert first[:2] == ["pip", "install"]
    assert all(words[0] == "elsewise" for words in others)


def run(folder: Path, *words: str) -> str:
    """Run the command, which has to work; what it says."""
    done = subprocess.run(
        [COMMAND, *words],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (words, done.stderr, done.stdout)
    return done.stdout


@pytest.mark.slow
def test_five_commands_lead_to_a_page_to_play_with(tmp_path: Path) -> None:
    own_rows.write(tmp_path)
    for words in commands()[1:]:
        run(tmp_path, *words[1:])
    page = (tmp_path / "run" / "explore.html").read_text("utf-8")
    assert "What would have to be different about 400 rows for 80% of them" in page
    answered = ew.load(tmp_path / "run")
    assert answered.ok
    # The codes of the branches stayed text, and who people are stayed as it is.
    assert set(answered.counterfactual["branch"]) == {"000", "001", "002", "003"}
    assert "age" not in answered.changes().index
    assert (tmp_path / "run" / "policy.json").is_file()
    for name in ("report.html", "counterfactual.csv"):
        assert (tmp_path / "run" / name).stat().st_size > 1000
    # Rows to be moved are read as the run has them: its codes are text there, too.
    run(tmp_path, "apply", "run", "rows.csv", "--model", "model.joblib")
    moved = (tmp_path / "moved.csv").read_text("utf-8")
    assert ",000\n" in moved
    assert moved.count("\n") == 401
    said = run(tmp_path, "policy", "run", "--model", "model.joblib", "--reach", "0.7")
    assert "Asked: at least 70%" in " ".join(said.split())
