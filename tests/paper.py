"""The paper's experiments, for tests: skipped where the data is not at hand.

Not a test module. The files are found through the environment variable ``ELSEWISE_DATA``, a folder
with the sub-folders ``heloc``, ``compas`` and ``german_credit``: tests download nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from needs import require

if TYPE_CHECKING:
    from benchmarks.paper.data import Experiment
    from benchmarks.paper.questions import Question


def heloc() -> Experiment:
    """Return HELOC as the paper prepares it."""
    from benchmarks.paper import data

    require("data")
    return data.heloc()


def ask(dataset: str, model: str, seed: int = 0) -> Question:
    """Return what every method is asked about HELOC or COMPAS."""
    from benchmarks.paper import questions

    require("data")
    return questions.ask(dataset, model, seed)
