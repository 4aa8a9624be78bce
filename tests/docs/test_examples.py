"""The examples of the gallery, run as a reader runs them: each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"

PRINTED = {
    "credit": "301 of 1000 applicants have a predicted risk above 40%.",
    "retail": "Certificate (held-out, 95% each, 200 rows)",
    "drift": "Checking account accounts for 0.06",
    "fairness": "190 applicants of up to 25 years: mean risk 0.355",
}
"""One fact that each example prints."""


def test_every_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_runs_says_its_fact_and_draws_its_picture(name: str, tmp_path: Path) -> None:
    finished = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert PRINTED[name] in finished.stdout
    picture = tmp_path / f"gallery-{name}.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
