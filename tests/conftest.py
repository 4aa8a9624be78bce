"""Fixtures and markers shared by the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hypothesis
import pytest

from needs import require

if TYPE_CHECKING:
    from benchmarks.paper.data import Experiment

# The same examples at every run, and no stopwatch on a single one.
hypothesis.settings.register_profile("elsewise", derandomize=True, deadline=None)
hypothesis.settings.load_profile("elsewise")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip or fail a test marked ``needs(...)`` where what it needs is not there."""
    for marker in item.iter_markers("needs"):
        for thing in marker.args:
            require(thing)


@pytest.fixture(scope="session")
def heloc() -> Experiment:
    """HELOC as the paper prepares it."""
    import paper

    return paper.heloc()
