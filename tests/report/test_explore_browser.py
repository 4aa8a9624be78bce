"""The page to play with in a real browser: clicks, keys and drags, and numbers counted beside it.

Without Chromium these tests are skipped, except in CI, where they fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import browsing
import elsewise as ew
import people
from elsewise.report._view import View

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow]

KINDS = ("share", "distance", "wide", "hostile", "mean")
TOUCHED = """
document.getElementById('group').selectedIndex = 1;
document.getElementById('group').dispatchEvent(new Event('change'));
for (const name of document.querySelectorAll('#features button')) name.click();
document.querySelector('#rows button').click();
window.scrollTo(0, 0);
"""


@pytest.fixture(scope="module")
def window() -> Iterator[browsing.Browser]:
    with browsing.browser() as found:
        yield found


@pytest.fixture(scope="module")
def explained() -> dict[str, ew.Explanation]:
    mean = people.explained(ew.targets.mean(0.62), inputs=9.0)
    rows = people.frame(240)
    share = ew.explain(
        ew.models.function(people.score, smooth=True, probability=True),
        rows,
        target=ew.targets.share(0.85, above=0.55),
        schema=ew.Schema.infer(rows).freeze("income"),
        settings=ew.Settings(draws=99),
        seed=0,
    )
    return {
        "share": share,
        "distance": people.explained(),
        "wide": people.wide(),
        "hostile": people.hostile(),
        "mean": mean,
    }


@pytest.fixture(scope="module")
def pages(
    explained: dict[str, ew.Explanation], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("explore")
    return {
        name: found.explore(
            folder / f"{name}.html",
            title=people.HOSTILE if name == "hostile" else "To play with",
            output="<i>risk</i>" if name == "hostile" else "chance of approval",
        )
        for name, found in explained.items()
    }


class Played:
    """An open page, as somebody at a desk uses it."""

    def __init__(self, window: browsing.Browser, page: Path, width: int = 1280) -> None:
        window.open(page, width, 900)
        self.window, self.driver = window, window.driver

    def part(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def parts(self, selector: str) -> list[Any]:
        return list(self.driver.find_elements("css selector", selector))

    def text(self, selector: str) -> str:
        return str(self.window.run(f"return document.querySelector('{selector}').textContent"))

    def click(self, selector: str) -> None:
        """Click on it, where it is in view and nothing covers it."""
        part = self.part(selector)
        self.window.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", part)
        part.click()

    def press(self, selector: str, *keys: str) -> None:
        """Press keys one after the other while this has the focus."""
        self.window.run(f"document.querySelector('{selector}').focus()")
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def choose(self, selector: str, option: str) -> None:
        from selenium.webdriver.support.ui import Select

        Select(self.part(selector)).select_by_visible_text(option)

    def drag(self, selector: str, start: float, end: float) -> None:
        """Drag from one share of its width to another."""
        from selenium.webdriver import ActionChains

        part = self.part(selector)
        self.window.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", part)
        width = part.rect["width"]
        places = [round((share - 0.5) * (width - 16)) for share in (start, end)]
        chain = ActionChains(self.driver).move_to_element_with_offset(part, places[0], 0)
        chain.click_and_hold().move_by_offset((places[1] - places[0]) // 2, 0)
        middle = (places[1] - places[0]) - (places[1] - places[0]) // 2
        chain.move_by_offset(middle, 0).release().perform()

    @property
    def amount(self) -> int:
        return int(self.part("#amount").get_property("value"))

    @property
    def most(self) -> int:
        return int(self.part("#amount").get_property("max"))

    def column(self, place: int) -> list[str]:
        return [cell.text for cell in self.parts(f"#rows tr > :nth-child({place})")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", browsing.WIDTHS)
def test_nothing_is_cut_off_or_under_something_else(
    window: browsing.Browser, pages: dict[str, Path], kind: str, width: int
) -> None:
    for dark in (False, True):
        window.open(pages[kind], width, dark=dark)
        assert window.faults() == []
    window.run(TOUCHED)
    assert window.faults() == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_request_leaves_the_page_and_the_console_is_quiet(
    window: browsing.Browser, pages: dict[str, Path], kind: str
) -> None:
    played = Played(window, pages[kind])
    window.run(TOUCHED)
    played.click("#none")
    played.click("#every")
    played.press("#find", "r")
    assert window.requests() == {pages[kind].as_uri()}
    assert window.console() == []


def test_the_policy_stops_other_scripts_and_requests(
    window: browsing.Browser, pages: dict[str, Path], tmp_path: Path
) -> None:
    """The check above can fail, and the policy holds: one letter more and no script runs."""
    page = pages["share"].read_text("utf-8")
    place = tmp_path / "other.html"
    place.write_text(page.replace('"use strict";', '"use strict"; '), "utf-8")
    window.open(place)
    assert any("Content Security Policy" in line for line in window.console())
    assert window.run("return document.getElementById('verdict').textContent") == ""
    place.write_text(page.replace("</footer>", "<img src='other.png'></footer>"), "utf-8")
    window.open(place)
    assert any("Content Security Policy" in line for line in window.console())


def shares(explanation: ew.Explanation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return moved rows cheapest first, and the rows that count before and after."""
    from elsewise.analysis import embedded

    before, after = embedded(explanation)
    costs = np.sum((after - before) ** 2, axis=1)
    moved = np.flatnonzero(View(explanation).moved)
    order = moved[np.argsort(costs[moved], kind="stable")]
    sides = explanation.factual_outputs[:, 0], explanation.outputs[:, 0]
    return order, *(side >= 0.55 for side in sides)


def test_the_slider_counts_as_pandas_does(
    window: browsing.Browser, pages: dict[str, Path], explained: dict[str, ew.Explanation]
) -> None:
    order, before, after = shares(explained["share"])
    played = Played(window, pages["share"])
    assert played.amount == played.most == len(order)
    assert played.text("#sentence").endswith("This is the whole answer.")

    def counted() -> str:
        now = before.copy()
        chosen = order[: played.amount]
        now[chosen] = after[chosen]
        return f"{100 * now.mean():.3g}% of 240 rows"

    assert counted() in played.text("#verdict")
    assert played.text("#verdict").startswith("✓ Reached")
    played.press("#amount", *["\ue012"] * 3)  # the left arrow key
    assert played.amount == len(order) - 3
    assert counted() in played.text("#verdict")
    assert "not certified" in played.text("#sentence")
    played.drag("#amount", 0.95, 0.3)
    assert 0 < played.amount < 0.5 * len(order)
    assert counted() in played.text("#verdict")
    played.drag("#frontier", 0.1, 0.8)
    assert 0.3 * len(order) < played.amount < len(order)
    assert counted() in played.text("#verdict")
    played.click("#none")
    assert played.amount == 0
    assert counted() in played.text("#verdict")
    assert played.text("#verdict").startswith("✗ Not reached")
    assert f"{100 * before.mean():.3g}%" in played.text("#verdict")
    played.click("#few")
    assert counted() in played.text("#verdict")
    assert played.text("#verdict").startswith("✓ Reached")
    needed = played.amount
    played.press("#amount", "\ue012")
    assert played.amount == needed - 1
    assert played.text("#verdict").startswith("✗ Not reached")


def test_the_mean_and_the_distance_are_the_models(
    window: browsing.Browser, pages: dict[str, Path], explained: dict[str, ew.Explanation]
) -> None:
    played = Played(window, pages["mean"])
    mean = explained["mean"].outputs.mean()
    assert f"mean chance of approval {100 * mean:.3g}%" in played.text("#verdict")
    played.click("#none")
    mean = explained["mean"].factual_outputs.mean()
    assert f"mean chance of approval {100 * mean:.3g}%" in played.text("#verdict")
    assert played.text("#verdict").startswith("✗ Not reached")
    played = Played(window, pages["distance"])
    distance = explained["distance"].certificate.outputs.estimate
    assert f"output distance {distance:.3g}, asked: at most 0.12" in played.text("#verdict")
    assert played.text("#verdict").startswith("✓ Reached")
    played.click("#none")
    assert played.text("#verdict").startswith("✗ Not reached")


def test_a_feature_that_may_not_change_keeps_its_rows(
    window: browsing.Browser, pages: dict[str, Path], explained: dict[str, ew.Explanation]
) -> None:
    explanation = explained["share"]
    needs = View(explanation).columns["savings"].moved
    order, before, after = shares(explanation)
    assert 0 < needs.sum() < len(order)
    played = Played(window, pages["share"])
    played.click('input[aria-label="savings may change"]')
    assert played.most == len(order) - needs.sum()
    now = np.where(needs, before, after)
    assert f"{100 * now.mean():.3g}% of 240 rows" in played.text("#verdict")
    played.press('input[aria-label="savings may change"]', " ")
    assert played.most == len(order)


def test_a_feature_is_picked_and_shows_its_moves(
    window: browsing.Browser, pages: dict[str, Path], explained: dict[str, ew.Explanation]
) -> None:
    played = Played(window, pages["share"])
    names = [part.text for part in played.parts("#features button")]
    k = names.index("home")
    assert not played.part("#feature").is_displayed()
    played.click(f"#features tr:nth-child({k + 1}) button")
    assert played.text("#feature-title") == "How home moves"
    flows = explained["share"].flows()
    flows = flows[(flows["feature"] == "home") & (flows["from"] != "(kept)")]
    shown = [row.text for row in played.parts("#moves tr")]
    assert len(shown) == len(flows)
    for _, flow in flows.iterrows():
        text = f"{flow['from']} → {flow['to']} {flow['rows']} of {flow['rows']}"
        assert text in [" ".join(row.split()) for row in shown]
    played.click("#none")
    assert all(
        " 0 of " in row.replace("\n", " ")
        for row in [part.text for part in played.parts("#moves tr")]
    )
    played.press(f"#features tr:nth-child({k + 1}) button", "\ue007")  # the enter key
    assert not played.part("#feature").is_displayed()


def test_a_group_is_looked_at_and_may_move_alone(
    window: browsing.Browser, pages: dict[str, Path], explained: dict[str, ew.Explanation]
) -> None:
    explanation = explained["share"]
    rent = (explanation.factual["home"] == "rent").to_numpy()
    order, before, after = shares(explanation)
    played = Played(window, pages["share"])
    played.choose("#group", "home: rent")
    facts = played.text("#facts")
    assert f"of {rent.sum()} rows" in facts
    assert f"{100 * after[rent].mean():.3g}%" in facts
    assert f"of {len([row for row in order if rent[row]])} rows" in played.text("#count")
    played.click("#only")
    now = np.where(rent, after, before)
    assert f"{100 * now.mean():.3g}% of 240 rows" in played.text("#verdict")
    played.click("#reset")
    assert f"{100 * after.mean():.3g}% of 240 rows" in played.text("#verdict")
    assert not played.part("#only").is_selected()


def test_a_row_is_opened_and_kept_where_it_was(
    window: browsing.Browser, pages: dict[str, Path], explained: dict[str, ew.Explanation]
) -> None:
    explanation = explained["share"]
    order, _, _ = shares(explanation)
    played = Played(window, pages["share"])
    first = int(order[0])
    assert played.column(1)[0] == str(first)
    played.click("#rows tr:first-child button")
    assert played.text("#one-title") == f"Row {first}"
    assert played.driver.switch_to.active_element.get_attribute("id") == "one-title"
    cells = {row.text.split()[0]: row.text for row in played.parts("#cells tr")}
    before, after = (side.iloc[first] for side in (explanation.factual, explanation.counterfactual))
    for name in ("cards", "home"):
        expected = "the same" if before[name] == after[name] else str(after[name])
        assert cells[name] == f"{name} {before[name]} {expected}"
    assert "Now it moves." in played.text("#one-words")
    played.click("#hold")
    assert "Now it stays." in played.text("#one-words")
    assert played.part("#hold").get_attribute("aria-pressed") == "true"
    assert played.most == len(order) - 1
    played.click("#close")
    assert played.driver.switch_to.active_element.get_attribute("data-row") == str(first)
    assert not played.part("#one").is_displayed()


def test_rows_are_sorted_filtered_and_paged(
    window: browsing.Browser, pages: dict[str, Path], explained: dict[str, ew.Explanation]
) -> None:
    explanation = explained["share"]
    order, _, _ = shares(explanation)
    outputs = explanation.factual_outputs[:, 0]
    played = Played(window, pages["share"])
    assert played.text("#count") == f"1 to 20 of {len(order)} rows"
    heads = {head.get_attribute("data-sort"): head for head in played.parts("#table th[data-sort]")}
    assert heads["move"].get_attribute("aria-sort") == "ascending"
    played.click("th[data-sort=before] button")
    assert heads["before"].get_attribute("aria-sort") == "ascending"
    assert heads["move"].get_attribute("aria-sort") == "none"
    assert played.column(1) == [str(row) for row in order[np.argsort(outputs[order])][:20]]
    played.press("th[data-sort=before] button", " ")
    assert heads["before"].get_attribute("aria-sort") == "descending"
    assert played.column(1) == [str(row) for row in order[np.argsort(-outputs[order])][:20]]
    played.click("#next")
    assert played.text("#count").startswith("21 to ")
    assert played.part("#back").is_enabled()
    played.press("#find", "l", "o", "w", " ", "→", " ", "high")
    risen = (explanation.factual["savings"] == "low") & (
        explanation.counterfactual["savings"] == "high"
    )
    assert played.text("#count").endswith(f"of {risen.sum()} rows")
    assert all("low → high" in text for text in played.column(7))
    played.part("#find").clear()
    played.press("#find", "n", "o", "n", "s", "e")
    assert played.text("#count") == "No row fits."
    played.press("#find", *["\ue003"] * 8)  # the backspace key
    played.choose("#changing", "savings")
    changed = View(explanation).columns["savings"].moved.sum()
    assert played.text("#count").endswith(f"of {changed} rows")
    played.choose("#changing", "any feature")
    played.click("#none")
    played.choose("#show", "that move now")
    assert played.text("#count") == "No row fits."
    played.choose("#show", "that stay now")
    assert played.text("#count").endswith(f"of {len(order)} rows")
    assert set(played.column(6)) == {"stays"}


def test_everything_has_a_name_and_is_reached_by_keys(
    window: browsing.Browser, pages: dict[str, Path]
) -> None:
    played = Played(window, pages["share"])
    controls = played.parts("main button, main input, main select")
    controls = [part for part in controls if part.is_displayed()]
    assert len(controls) > 30
    for part in controls:
        assert part.accessible_name, part.get_attribute("outerHTML")
        assert part.tag_name in ("button", "input", "select")
        assert part.get_attribute("tabindex") in (None, "0")
    assert played.part("#verdict").aria_role == "status"
    assert played.part("#verdict").get_attribute("aria-live") == "polite"
    assert played.part("#frontier").accessible_name.startswith("share of rows")
    reached = set()
    played.press("#amount", "\ue004")  # the tab key
    for _ in range(60):
        here = played.driver.switch_to.active_element
        reached.add(here.get_attribute("id") or here.text)
        here.send_keys("\ue004")
    assert {"none", "few", "every", "group", "only", "reset", "find", "show"} <= reached
    assert {part.text for part in played.parts("#features button")} <= reached
    sizes = window.run(
        "return [...document.querySelectorAll('p, td, th, dt, dd, .tick, button, option')]"
        ".map((part) => parseFloat(getComputedStyle(part).fontSize))"
    )
    assert min(sizes) >= 13


def test_hostile_names_do_nothing_but_show(
    window: browsing.Browser, pages: dict[str, Path]
) -> None:
    played = Played(window, pages["hostile"], 360)
    window.run(TOUCHED)
    assert window.run("return document.scripts.length") == 2
    assert window.run("return document.querySelectorAll('main img, main i, main b').length") == 0
    text = window.run("return document.querySelector('main').textContent")
    assert '<script>alert("1")</script>' in text
    assert people.HOSTILE_LEVEL[:40] in text
    assert "<i>risk</i>" in text
    assert played.text("title").startswith('<script>alert("1")</script>')


def test_only_some_of_many_rows_are_on_the_page_and_that_is_said(
    window: browsing.Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from elsewise.report import _explore

    monkeypatch.setattr(_explore, "MOST_ROWS", 60)
    page = people.asked().explore(tmp_path / "drawn.html")
    played = Played(window, page)
    assert "of 60 rows" in played.text("#verdict")
    assert "A random 60 rows of 240 are on this page" in played.text("#sentence")
