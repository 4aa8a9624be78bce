"""The README's example runs and prints what is shown; every link of the pages leads somewhere."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    return [text for name, text in FENCE.findall(page.read_text("utf-8")) if name == language]


def links(text: str) -> list[str]:
    """Return the relative targets of links and images outside code, without their anchors."""
    found = LINK.findall(FENCE.sub("", text))
    return [link.partition("#")[0] for link in found if "://" not in link and link[0] != "#"]


@pytest.fixture(scope="module")
def example() -> tuple[dict[str, Any], str]:
    """Run the README's example; returns its names and what it printed."""
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(blocks(README, "python")[0], "README.md", "exec"), names)
    return names, printed.getvalue()


def test_the_example_certifies_on_unseen_rows(example: tuple[dict[str, Any], str]) -> None:
    names, printed = example
    explanation = names["explanation"]
    assert printed.startswith("Certificate (held-out, 95% each, 400 rows): certified\n")
    assert explanation.ok
    assert explanation.certificate.met
    assert str(explanation.certificate) in printed
    assert "or the most extreme 5% at either end." in printed


def test_the_example_keeps_what_it_says(example: tuple[dict[str, Any], str]) -> None:
    names, _ = example
    explanation = names["explanation"]
    past = names["past"]
    frozen = ["Age", "Sex", "Job", "Purpose"]
    assert explanation.counterfactual[frozen].equals(past[frozen])
    assert explanation.counterfactual.dtypes.equals(past.dtypes)
    assert explanation.factual.equals(past)
    risk = names["model"].predict_proba(past)[:, 1]
    assert np.mean(risk <= 0.4) == pytest.approx(0.6975)  # as the text above the example says
    moved = names["model"].predict_proba(explanation.counterfactual)[:, 1]
    assert np.mean(moved <= 0.4) >= 0.85
    assert np.all((moved <= risk + 1e-9) | (moved <= 0.4))
    assert names["moved"].index.equals(names["new"].index)
    assert names["after"] > names["before"] + 0.1


def test_the_printed_output_has_the_form_of_the_real_one(
    example: tuple[dict[str, Any], str],
) -> None:
    """Numbers may differ in their last digits between machines, words may not."""
    _, printed = example
    shown = blocks(README, "text")[0]
    assert _words(shown) == _words(printed)


def _words(text: str) -> list[str]:
    """Return the sorted words of a text; features come in the order of their shares."""
    return sorted(re.findall(r"[A-Za-z_'-]{2,}", text))


def test_the_readme_is_short() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= 150


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    missing = [link for link in links(page.read_text("utf-8")) if not (page.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("name", NAMES)
def test_python_blocks_are_python(name: str) -> None:
    for block in blocks(ROOT / name, "python"):
        compile(block, name, "exec")


def test_the_layout_page_has_every_module() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    listed = {
        name.rstrip("/") for name in re.findall(r"^\| \w+ \| `([\w/]+)` \|", page, re.MULTILINE)
    }
    source = ROOT / "src" / "elsewise"
    modules = {path.stem for path in source.glob("*.py")} - {"__init__", "__main__"}
    packages = {path.parent.name for path in source.glob("*/__init__.py")}
    assert listed == modules | packages


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](b.md#part) and ![c](images/d.png)", ["b.md", "images/d.png"]),
        ("[a](https://example.org) [b](#part)", []),
        ("```python\nx[0](y)\n```\n", []),
    ],
)
def test_the_test_sees_links(text: str, expected: list[str]) -> None:
    assert links(text) == expected


@pytest.mark.parametrize(
    "name", ["CONTRIBUTING.md", "docs/architecture.md", "docs/how-it-works.md"]
)
def test_modules_that_a_page_names_are_there(name: str) -> None:
    named = set(re.findall(r"`([a-z_/]+\.(?:py|sh))`", (ROOT / name).read_text(encoding="utf-8")))
    named = {path for path in named if not path.endswith("/_name.py")}  # "write this one"
    places = (ROOT, ROOT / "src" / "elsewise", ROOT / "benchmarks" / "datasets", ROOT / "tests")
    assert named
    assert not {path for path in named if not any((place / path).is_file() for place in places)}
