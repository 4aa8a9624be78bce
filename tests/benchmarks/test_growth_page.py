"""The page of performance says what its results say, and measurements run at a small size."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from benchmarks.growth import cell, page
from benchmarks.growth.results import asked, exponent

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_written_from_its_results(tmp_path: Path) -> None:
    results = json.loads((DOCS / "performance.json").read_text("utf-8"))
    (tmp_path / "images").mkdir()
    for name in ("gpu-results.json", "speed.json"):
        shutil.copy(DOCS / name, tmp_path)
    written = page.write(results, tmp_path).read_text("utf-8")
    assert written == (DOCS / "performance.md").read_text("utf-8")
    assert (tmp_path / "images" / "performance.png").stat().st_size > 10_000


def test_a_verdict_follows_the_figures(tmp_path: Path) -> None:
    results = json.loads((DOCS / "performance.json").read_text("utf-8"))
    (tmp_path / "images").mkdir()
    steep = {"what": "kernel", "dimension": 23, "directions": 50, "dtype": "float64"}
    (largest,) = asked(results, rows=1_000_000, **steep)
    key = json.dumps(largest[0], sort_keys=True)
    results["cells"][key] = largest[1] | {"seconds_1": 100.0}
    written = page.write(results, tmp_path).read_text("utf-8")
    assert "float64: n^" in written
    assert "not reached." in written


def test_exponents_are_slopes_of_logarithms() -> None:
    cells = [({"rows": n}, {"seconds": 3e-7 * n**1.2}) for n in (100, 10**4, 10**5, 10**6)]
    cells[0][1]["seconds"] = 1.0  # too few rows to count
    assert exponent(cells, "seconds") == pytest.approx(1.2)


def test_small_cells_are_measured() -> None:
    kernel = cell.kernel(200, 4, 8, "float32", pot=True)
    assert {"seconds_1", "seconds_2", "argsort", "pot", "megabytes"} == set(kernel)
    assert all(kernel[name] > 0 for name in ("seconds_1", "seconds_2", "argsort", "pot"))
    assert cell.whole(60, 3)["outcome"] in ("certified", "described")
