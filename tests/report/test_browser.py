"""The report in a real browser: quiet, offline, readable at both sizes, printable.

Uses chromium where it is installed; without it these tests are skipped, except in CI, where they
fail.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

import elsewise as ew
import needs
import people
from elsewise import report

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow]

SIZES = {"desk": (1280, 800), "phone": (390, 844)}

# Shows the page in a window of the wanted size and notes what a reader would see.
WINDOW = """<!doctype html><meta charset="utf-8">
<iframe style="width: %dpx; height: %dpx; border: 0" srcdoc="%s"></iframe>
<script>
const frame = document.querySelector("iframe");
frame.addEventListener("load", () => {
  const view = frame.contentWindow, page = frame.contentDocument, style = view.getComputedStyle;
  const box = (selector) => {
    const {top, left, right, bottom} = page.querySelector(selector).getBoundingClientRect();
    return {top, left, right, bottom};
  };
  const scale = ({a, b}) => Math.hypot(a, b);
  const sizes = [...page.querySelectorAll("p, li, td, th, figcaption, dt, dd, svg text")]
    .map((element) => parseFloat(style(element).fontSize)
      * (element.ownerSVGElement ? scale(element.getScreenCTM()) : 1));
  const seen = {
    width: view.innerWidth, height: view.innerHeight, scroll: page.documentElement.scrollWidth,
    h1: box("h1"), card: box(".card"), smallest: Math.min(...sizes),
    resources: view.performance.getEntriesByType("resource").map((entry) => entry.name),
    scripts: page.scripts.length, pictures: page.querySelectorAll("svg[role=img]").length,
    title: page.title, text: page.body.textContent,
    ink: style(page.body).color, paper: style(page.body).backgroundColor,
  };
  const note = document.createElement("pre");
  note.id = "seen";
  note.textContent = JSON.stringify(seen);
  document.body.append(note);
});
</script>
"""


@pytest.fixture(scope="module")
def browser() -> str:
    return str(needs.browser())


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("page") / "report.html"
    return report.write(people.explained(), place, output="chance of approval")


def opened(browser: str, page: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Open a page in a browser that knows nothing yet."""
    profile = page.with_suffix(".profile")
    shutil.rmtree(profile, ignore_errors=True)
    done = subprocess.run(
        [browser, *FLAGS, f"--user-data-dir={profile}", *flags, page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    shutil.rmtree(profile, ignore_errors=True)
    return done


def seen(browser: str, page: Path, size: str, *flags: str) -> dict[str, Any]:
    """What a reader would see of a page in a window of this size."""
    window = page.with_name(f"{page.stem}-{size}.html")
    text = WINDOW % (*SIZES[size], escape(page.read_text("utf-8")))
    window.write_text(text, encoding="utf-8")
    dom = opened(browser, window, "--dump-dom", *flags).stdout
    found = re.search(r'<pre id="seen">(.*?)</pre>', dom, re.DOTALL)
    assert found is not None
    content: dict[str, Any] = json.loads(unescape(found[1]))
    return content


def test_headline_and_certificate_show_without_scrolling(browser: str, page: Path) -> None:
    view = seen(browser, page, "desk")
    assert (view["width"], view["height"]) == SIZES["desk"]
    for part in ("h1", "card"):
        assert view[part]["top"] >= 0
        assert view[part]["bottom"] <= view["height"]
        assert view[part]["right"] <= view["width"]
    assert view["scroll"] <= view["width"]
    assert view["smallest"] >= 9
    assert view["pictures"] >= 10
    assert view["resources"] == []


def test_it_is_readable_on_a_phone(browser: str, page: Path) -> None:
    view = seen(browser, page, "phone")
    assert view["scroll"] <= view["width"] == 390
    assert view["h1"]["bottom"] <= view["height"]
    assert view["card"]["top"] <= view["height"]
    assert view["smallest"] >= 8


def test_it_follows_the_dark_mode(browser: str, page: Path) -> None:
    view = seen(browser, page, "desk", "--blink-settings=preferredColorScheme=0")
    light, dark = (max(map(int, re.findall(r"\d+", view[part])[:3])) for part in ("ink", "paper"))
    assert light > 200
    assert dark < 60


def test_the_console_is_quiet_and_the_network_silent(browser: str, page: Path) -> None:
    log = page.with_name("net.json")
    picture = page.with_name("page.png")
    done = opened(
        browser,
        page,
        "--enable-logging=stderr",
        f"--log-net-log={log}",
        f"--screenshot={picture}",
        "--window-size=1280,800",
    )
    assert "CONSOLE" not in done.stderr
    assert picture.stat().st_size > 20_000
    text = log.read_text("utf-8")
    own = {url for url in re.findall(r'"url":"([a-z]+://[^"]*)"', text) if not browsers_own(url)}
    assert own <= {page.as_uri()}


def browsers_own(url: str) -> bool:
    """Whether the browser asked for this by itself, whatever the page."""
    return bool(re.match(r"chrome|devtools|https?://[a-z0-9.-]+\.(google|googleapis|gvt1)\.", url))


def test_it_prints(browser: str, page: Path) -> None:
    paper = page.with_suffix(".pdf")
    opened(browser, page, f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    content = paper.read_bytes()
    assert content.startswith(b"%PDF")
    assert len(content) > 30_000


def test_hostile_names_do_nothing_but_show(browser: str, tmp_path: Path) -> None:
    options = {"title": people.HOSTILE, "output": "<i>risk</i>", "rows": 20}
    explanation = people.hostile()
    assert (explanation.changes()["rows_moved"] > 0).all(), "every hostile name is to be shown"
    place = report.write(explanation, tmp_path / "hostile.html", **options)
    view = seen(browser, place, "phone")
    assert view["scripts"] == 0
    assert view["resources"] == []
    assert '<script>alert("1")</script>' in view["text"]
    assert people.HOSTILE_LEVEL in view["text"]
    assert "<i>risk</i>" in view["text"]
    assert view["title"].startswith('<script>alert("1")</script>')
    assert view["scroll"] <= view["width"]


def test_the_comparison_fits_too(browser: str, tmp_path: Path) -> None:
    named: dict[str, ew.Explanation] = {"one": people.explained(), "x" * 300: people.hostile()}
    place = report.write_text(report.render_comparison(named), tmp_path / "comparison.html")
    view = seen(browser, place, "phone")
    assert view["scroll"] <= view["width"]
