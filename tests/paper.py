"""The paper's experiments, for tests: skipped where the data is not at hand.

Not a test module. The files are found through the environment variable ``ELSEWISE_DATA``, a folder
with the sub-folders ``heloc``, ``compas`` and ``german_credit``: tests download nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from benchmarks.paper import data, questions


def data_folder() -> Path:
    """Return the data folder; without one, skip the test, or fail it where data is required."""
    folder = os.environ.get("ELSEWISE_DATA", "")
    if folder and Path(folder).is_dir():
        return Path(folder)
    reason = f"ELSEWISE_DATA is {folder!r}, not a folder with the experiments' data"
    if os.environ.get("ELSEWISE_REQUIRE_DATA") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def heloc() -> data.Experiment:
    """Return HELOC as the paper prepares it."""
    data_folder()
    return data.heloc()


def ask(dataset: str, model: str, seed: int = 0) -> questions.Question:
    """Return what every method is asked about HELOC or COMPAS."""
    data_folder()
    return questions.ask(dataset, model, seed)
