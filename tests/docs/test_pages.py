"""The pages that start a user off run, and print what stands under their code."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import pytest
from scripts import run_pages

DOCS = Path(__file__).parents[2] / "docs"
# In their order: each goes on where the one before ends.
PAGES = ("quickstart", "choosing-bounds", "your-model-your-rules")


def words(text: str) -> list[str]:
    """The words of a page, sorted: last digits may differ between machines."""
    return sorted(re.findall(r"[A-Za-z_'-]{2,}", text))


@pytest.mark.slow
@pytest.mark.needs("polars")
def test_pages_print_what_stands_under_their_code(tmp_path: Path) -> None:
    names: dict[str, Any] = {"__name__": "__page__"}
    with contextlib.chdir(tmp_path):
        for name in PAGES:
            page = (DOCS / f"{name}.md").read_text("utf-8")
            assert words(run_pages.refreshed(page, names)) == words(page), name
