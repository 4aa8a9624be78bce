"""The benchmark fixtures can be imported, and what is stored belongs to them."""

from __future__ import annotations

import json

from benchmarks import fixtures


def test_stored_results_belong_to_the_fixtures() -> None:
    stored = json.loads(fixtures.STORED.read_text("utf-8"))
    assert stored["seed"] == fixtures.SEED
    assert set(stored["results"]) == set(fixtures.FIXTURES)
