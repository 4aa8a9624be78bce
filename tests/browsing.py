"""A real browser for tests of pages: opened at a size, asked what is cut off, watched for requests.

Chromium is driven by selenium over chromedriver, both of which `make browser` installs.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import needs

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--allow-file-access-from-files",
)
# Widths of a phone, a tablet and a desk.
WIDTHS = (360, 800, 1400)

# What a reader cannot read: text outside its box or under other text. Text of the same node is one
# box per line; what can be scrolled to is not cut off.
FAULTS = """
const boxes = [], faults = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const page = document.documentElement, width = page.clientWidth;
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const text = node.data.trim(), owner = node.parentElement;
  if (!text || ["SCRIPT", "STYLE", "OPTION"].includes(owner.tagName)) continue;
  if (!owner.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
  if (owner.closest(".skip")) continue;
  const range = document.createRange();
  range.selectNodeContents(node);
  for (const word of node.data.matchAll(/[\\p{L}\\d.,%-]{2,24}(?=\\s|$)/gu)) {
    if (word.index && /\\S/.test(node.data[word.index - 1])) continue;
    const part = document.createRange();
    part.setStart(node, word.index);
    part.setEnd(node, word.index + word[0].length);
    const lines = new Set([...part.getClientRects()].map((box) => Math.round(box.top)));
    if (lines.size > 1 && !word[0].includes("-")) faults.push(`broken word: ${word[0]}`);
  }
  for (const {left, right, top, bottom} of range.getClientRects()) {
    if (right - left < 1 || bottom - top < 1) continue;
    boxes.push({text, left, right, top, bottom, node});
    let scrolls = false;
    for (let around = owner; around && around !== page; around = around.parentElement) {
      const style = getComputedStyle(around), frame = around.getBoundingClientRect();
      if (style.textOverflow === "ellipsis" && around.scrollWidth > around.clientWidth)
        faults.push(`ends in dots: ${text}`);
      if ([style.overflowX, style.overflowY].some((way) => ["auto", "scroll"].includes(way)))
        scrolls = true;
      else if (!scrolls && ["hidden", "clip"].includes(style.overflowX)
          && (left < frame.left - 1 || right > frame.right + 1))
        faults.push(`cut off by <${around.tagName}>: ${text}`);
    }
    if (!scrolls && (left < -1 || right > width + 1)) faults.push(`outside the page: ${text}`);
  }
}
boxes.sort((a, b) => a.top - b.top);
for (let i = 0; i < boxes.length; i++)
  for (let k = i + 1; k < boxes.length && boxes[k].top < boxes[i].bottom - 4; k++) {
    const a = boxes[i], b = boxes[k];
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (a.node !== b.node && across > 1.5 && down > 4)
      faults.push(`overlap: ${a.text} / ${b.text}`);
  }
return {boxes: boxes.length, faults: [...new Set(faults)],
        scroll: page.scrollWidth, width};
"""


class Browser:
    """One window."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path, width: int = 1280, height: int = 800, *, dark: bool = False) -> None:
        """Open a page at a size, in light or dark colours."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.colours(dark=dark)
        self.driver.get_log("performance")
        self.driver.get_log("browser")
        self.driver.get(page.as_uri())

    def colours(self, *, dark: bool = False, media: str = "screen") -> None:
        """Show the page as on a light or dark screen, or on paper."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"media": media, "features": [scheme]}
        )

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page and return its value."""
        return self.driver.execute_script(script, *arguments)

    def faults(self) -> list[str]:
        """What of the page's text is cut off, outside the page, or under other text."""
        seen = self.run(FAULTS)
        assert seen["boxes"] > 20, "the page shows hardly any text"
        wide = [] if seen["scroll"] <= seen["width"] else ["the page scrolls sideways"]
        return wide + list(seen["faults"])

    def requests(self) -> set[str]:
        """Addresses that were asked for since the page was opened, its own included."""
        events = [
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        ]
        sent = "Network.requestWillBeSent", "Network.webSocketCreated"
        asked = [event["params"] for event in events if event["method"] in sent]
        urls = {one["request"]["url"] if "request" in one else one["url"] for one in asked}
        return {url for url in urls if not url.startswith("data:")}

    def console(self) -> list[str]:
        """What the page complained about, violations of its security policy among it."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def shoot(self, place: Path) -> Path:
        """Save a picture of the window."""
        self.driver.save_screenshot(str(place))
        return place

    def paper(self) -> bytes:
        """Return the page as PDF."""
        self.colours(media="print")
        options = {"printBackground": True}
        return base64.b64decode(self.driver.execute_cdp_cmd("Page.printToPDF", options)["data"])


@contextmanager
def browser() -> Iterator[Browser]:
    """Start Chromium; it is ended at the end of the block."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(needs.browser())
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(needs.driver()))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
