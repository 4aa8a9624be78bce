"""Fixtures shared by the tests."""

from __future__ import annotations

import hypothesis
import pytest
from benchmarks.paper.data import Experiment

import paper

# The same examples at every run, and no stopwatch on a single one.
hypothesis.settings.register_profile("elsewise", derandomize=True, deadline=None)
hypothesis.settings.load_profile("elsewise")


@pytest.fixture(scope="session")
def heloc() -> Experiment:
    """HELOC as the paper prepares it; skipped without ELSEWISE_DATA, failed where required."""
    return paper.heloc()
