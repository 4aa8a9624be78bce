"""The page's table of Algorithm 1 names functions that one step of the search really calls."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import FrameType

import numpy as np
import pandas as pd

import elsewise as ew
from elsewise.request import Request, pose
from elsewise.search import init, step

ROOT = Path(__file__).parents[2]
LINE = re.compile(r"^\| (\d+)[^|]*\| (.*) \|$", re.MULTILINE)
NAME = re.compile(r"`((?:\w+\.)+\w+)`")
PAPERS_STEP = range(3, 10)
"""Lines inside the loop; what comes before and after is checked to exist."""


def table() -> dict[int, list[str]]:
    """Return the dotted names of the package in each line of the table."""
    page = (ROOT / "docs" / "how-it-works.md").read_text("utf-8")
    rows = page.partition("| line of the paper |")[2].partition("\n\n")[0]
    return {int(line): NAME.findall(text) for line, text in LINE.findall(rows)}


def called_in_a_step() -> set[str]:
    """Return the names of the package's functions that one step calls."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.normal(size=60), "b": rng.choice(["x", "y"], 60)})

    def score(frame: pd.DataFrame) -> np.ndarray:
        return np.asarray(1.0 / (1.0 + np.exp(-frame["a"] - (frame["b"] == "x"))))

    model = ew.models.function(score, smooth=True, probability=True)
    request = Request(model=model, rows=rows, target=ew.targets.at_least(0.6))
    problem, _ = pose(request, ew.Bounds(inputs=0.5, outputs=0.1))
    state = init(problem, ew.Settings())
    found: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and "elsewise" in frame.f_code.co_filename:
            found.add(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        step(problem, state)
    finally:
        sys.setprofile(None)
    return found


def test_every_name_exists() -> None:
    for names in table().values():
        for name in names:
            if name.startswith("Settings."):
                continue
            home, _, rest = name.partition(".")
            place = importlib.import_module(f"elsewise.{home}") if home.islower() else ew
            for part in (rest if home.islower() else name).split("."):
                place = getattr(place, part)


def test_a_step_calls_what_the_page_names() -> None:
    called = called_in_a_step()
    lines = {line: names for line, names in table().items() if line in PAPERS_STEP}
    assert set(lines) == {3, 4, 5, 7, 8, 9}
    for line, names in lines.items():
        missing = [name for name in names if name.rpartition(".")[2] not in called]
        assert not missing, f"line {line}: {missing}"
