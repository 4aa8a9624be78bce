"""The notebooks run, and what is kept in them is what their cells say today."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from scripts.run_notebooks import ran

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def said(cell: dict[str, Any]) -> list[str]:
    """Words of the texts of a cell's outputs, sorted: last digits may differ between machines."""
    texts = [
        "".join(output.get("text") or output["data"]["text/plain"]) for output in cell["outputs"]
    ]
    return sorted(re.findall(r"[A-Za-z_'-]{2,}", " ".join(texts)))


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["credit", "fairness", "regression"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_well_formed(path: Path) -> None:
    assert path.stat().st_size < 100_000
    kept = json.loads(path.read_text("utf-8"))
    assert (kept["nbformat"], kept["cells"][0]["cell_type"]) == (4, "markdown")
    code = [cell for cell in kept["cells"] if cell["cell_type"] == "code"]
    assert any("image/png" in o.get("data", {}) for cell in code for o in cell["outputs"])
    # Every cell that ends in something to see has its output kept.
    assert all(cell["outputs"] for cell in code)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_says_what_is_kept(path: Path) -> None:
    kept, fresh = json.loads(path.read_text("utf-8")), ran(json.loads(path.read_text("utf-8")))
    for old, new in zip(kept["cells"], fresh["cells"], strict=True):
        if old["cell_type"] == "code":
            assert said(new) == said(old), "".join(old["source"])
            drawn = [["image/png" in o.get("data", {}) for o in c["outputs"]] for c in (old, new)]
            assert drawn[0] == drawn[1]
