"""Pages in a real browser: nothing cut off or overlapping, quiet, offline, printable.

Without Chromium these tests are skipped, except in CI, where they fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import browsing
import people
from elsewise import report

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow]

UNFOLD = "for (const part of document.querySelectorAll('details')) part.open = true"
# The largest of red, green and blue of a colour.
BRIGHTNESS = """
const colour = getComputedStyle(document.body)[arguments[0]];
return Math.max(...colour.match(/[0-9]+/g).slice(0, 3).map(Number));
"""


@pytest.fixture(scope="module")
def window() -> Iterator[browsing.Browser]:
    with browsing.browser() as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of every kind."""
    folder = tmp_path_factory.mktemp("pages")
    asked = people.asked()
    made = {
        "distance": report.render(people.explained(), output="chance of approval", rows=5),
        "share": report.render(asked, output="chance of approval", policy=asked.policy(k=2)),
        "wide": report.render(people.wide()),
        "hostile": report.render(
            people.hostile(), title=people.HOSTILE, output="<i>risk</i>", rows=20
        ),
        "comparison": report.render_comparison({"one": asked, "x" * 300: people.hostile()}),
        "difference": report.render_difference(people.differing()),
    }
    return {name: report.write_text(text, folder / f"{name}.html") for name, text in made.items()}


KINDS = ("distance", "share", "wide", "hostile", "comparison", "difference")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", browsing.WIDTHS)
def test_nothing_is_cut_off_or_under_something_else(
    window: browsing.Browser, pages: dict[str, Path], kind: str, width: int
) -> None:
    for dark in (False, True):
        window.open(pages[kind], width, dark=dark)
        assert window.faults() == []
    window.run(UNFOLD)
    assert window.faults() == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_console_is_quiet_and_the_network_silent(
    window: browsing.Browser, pages: dict[str, Path], kind: str
) -> None:
    window.open(pages[kind])
    window.run(UNFOLD)
    assert window.requests() == {pages[kind].as_uri()}
    assert window.console() == []


def test_the_browser_sees_faults_where_there_are_some(
    window: browsing.Browser, tmp_path: Path
) -> None:
    """The checks above can fail."""
    page = tmp_path / "bad.html"
    lines = "".join(f"<li>line {k}</li>" for k in range(30))
    page.write_text(
        "<meta http-equiv='Content-Security-Policy' content=\"img-src 'none'\">"
        "<p style='width: 50px; white-space: nowrap; overflow: hidden'>cut off by its box</p>"
        "<p style='position: absolute; top: 80px'>over</p>"
        "<p style='position: absolute; top: 85px'>under</p>"
        "<div style='width: 40px; overflow-wrap: anywhere'>incomprehensible</div>"
        f"<img src='other.png'><ul>{lines}</ul>"
        "<p style='margin-left: 3000px'>outside</p>"
    )
    window.open(page, 800)
    faults = " / ".join(window.faults())
    kinds = "sideways", "cut off by <P>", "overlap: over / under", "broken word", "outside the page"
    for kind in kinds:
        assert kind in faults
    assert any("Content Security Policy" in line for line in window.console())
    (tmp_path / "other.png").write_bytes(b"")
    page.write_text(page.read_text().replace("'none'", "*"))
    window.open(page, 800)
    assert (tmp_path / "other.png").as_uri() in window.requests()


@pytest.mark.parametrize("kind", ["distance", "share"])
def test_the_answer_and_the_certificate_show_without_scrolling(
    window: browsing.Browser, pages: dict[str, Path], kind: str
) -> None:
    window.open(pages[kind], 1280, 800)
    for part in ("h1", ".lead", ".gauge", ".facts", ".card"):
        box = window.run(
            "return document.querySelector(arguments[0]).getBoundingClientRect().toJSON()", part
        )
        assert box["top"] >= 0
        assert box["bottom"] <= 800, part
    window.open(pages[kind], 360, 740)
    bottom = "return document.querySelector('.lead').getBoundingClientRect().bottom"
    assert window.run(bottom) <= 740


def test_text_keeps_its_size_on_a_phone(window: browsing.Browser, pages: dict[str, Path]) -> None:
    window.open(pages["distance"], 360)
    sizes = window.run(
        "return [...document.querySelectorAll('p, li, td, th, dt, dd, .tick, figcaption')]"
        ".map((part) => parseFloat(getComputedStyle(part).fontSize))"
    )
    assert min(sizes) >= 13
    assert window.run("return document.querySelectorAll('svg text').length") == 0


def test_it_follows_the_dark_mode(window: browsing.Browser, pages: dict[str, Path]) -> None:
    window.open(pages["share"], dark=True)
    assert window.run(BRIGHTNESS, "color") > 200
    assert window.run(BRIGHTNESS, "backgroundColor") < 60
    window.open(pages["share"])
    assert window.run(BRIGHTNESS, "color") < 60


def test_it_prints_with_everything_unfolded(
    window: browsing.Browser, pages: dict[str, Path]
) -> None:
    window.open(pages["distance"])
    paper = window.paper()
    assert paper.startswith(b"%PDF")
    shown = "return [...document.querySelectorAll('details table')].map((t) => t.checkVisibility())"
    assert set(window.run(shown)) == {True}
    assert window.run(BRIGHTNESS, "color") < 60
    window.open(pages["distance"])
    assert set(window.run(shown)) == {False}


def test_hostile_names_do_nothing_but_show(
    window: browsing.Browser, pages: dict[str, Path]
) -> None:
    explanation = people.hostile()
    assert (explanation.changes()["rows_moved"] > 0).all(), "every hostile name is to be shown"
    window.open(pages["hostile"], 360)
    assert window.run("return document.scripts.length") == 0
    text = window.run("return document.body.textContent")
    assert '<script>alert("1")</script>' in text
    assert people.HOSTILE_LEVEL in text
    assert "<i>risk</i>" in text
    assert window.run("return document.title").startswith('<script>alert("1")</script>')


def test_links_lead_to_their_parts(window: browsing.Browser, pages: dict[str, Path]) -> None:
    window.open(pages["share"])
    targets = window.run(
        "return [...document.querySelectorAll('nav a')].map((link) => link.hash.slice(1))"
    )
    assert len(targets) >= 6
    for target in targets:
        assert window.run("return document.getElementById(arguments[0]) !== null", target)
