"""Fixtures shared by the tests."""

from __future__ import annotations

import pytest

import paper


@pytest.fixture(scope="session")
def heloc() -> paper.Experiment:
    """HELOC as the paper prepares it; skipped without ELSEWISE_DATA, failed where required."""
    return paper.heloc()
