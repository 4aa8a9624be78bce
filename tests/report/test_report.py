"""The report: its numbers are the explanation's, its parts are in place, names stay text."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import elsewise as ew
import people
from elsewise import analysis, report
from elsewise.errors import InvalidInput
from elsewise.report import _other_pages, _view
from elsewise.report._render import frame_table
from elsewise.request import Kind, Verdict
from elsewise.text import one_line

VOID = {"meta", "br", "img", "link", "input", "hr"}
ORDER = [
    *("certificate", "features", "moves", "outputs", "groups", "plausibility"),
    *("claim", "drift", "joint", "search", "origin"),
]


class Page(HTMLParser):
    """Text, tags, ids and nesting of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.by_tag: dict[str, list[str]] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
            self.by_tag.setdefault(tag, []).append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> without its start"
        assert self.open[-1] == tag, f"</{tag}> inside <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.texts.append(data)
        for tag in set(self.open):
            self.by_tag[tag][-1] += data

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    def attributes(self, name: str) -> list[str]:
        return [str(attrs[name]) for _, attrs in self.tags if name in attrs]


def plain(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def explanation() -> ew.Explanation:
    return people.explained()


@pytest.fixture(scope="module")
def text(explanation: ew.Explanation) -> str:
    return report.render(explanation, output="chance of approval")


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_the_page_is_well_formed_and_self_contained(page: Page, text: str) -> None:
    assert not page.open
    assert len(text.encode()) < 2_000_000
    names = [tag for tag, _ in page.tags]
    assert not {"script", "link", "iframe", "object", "base", "form"} & set(names)
    assert all(href.startswith("#") for href in page.attributes("href"))
    for image in page.attributes("xlink:href"):
        assert image.startswith(("#", "data:image/png;base64,"))
    assert not re.search(r"url\((?!#)", text)
    assert "@import" not in text
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]


def test_ids_are_unique_and_every_link_has_its_place(page: Page) -> None:
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    for href in page.attributes("href"):
        assert href[1:] in ids
    for labels in page.attributes("aria-labelledby"):
        assert set(labels.split()) <= set(ids)


def test_landmarks_headings_and_captions(page: Page) -> None:
    names = [tag for tag, _ in page.tags]
    for landmark in ("header", "main", "nav", "footer", "h1"):
        assert names.count(landmark) == 1
    assert page.attributes("lang") == ["en"]
    levels = [int(tag[1]) for tag in names if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
    assert names.count("caption") == names.count("table")
    assert all(scope in {"col", "row"} for scope in page.attributes("scope"))
    pictures = [attrs for _, attrs in page.tags if attrs.get("role") == "img"]
    assert len(pictures) >= 8
    assert all(attrs["aria-label"] for attrs in pictures)
    drawings = [attrs for tag, attrs in page.tags if tag == "svg"]
    assert all(attrs["aria-hidden"] == "true" for attrs in drawings)
    first_link = next(attrs for tag, attrs in page.tags if tag == "a")
    assert (first_link["class"], first_link["href"]) == ("skip", "#main")


def test_sections_come_in_order(page: Page) -> None:
    ids = page.attributes("id")
    places = [ids.index(name) for name in ORDER]
    assert places == sorted(places)


def test_numbers_equal_the_explanations(page: Page, explanation: ew.Explanation) -> None:
    certificate = explanation.certificate
    for side in (certificate.inputs, certificate.outputs):
        for value in (side.estimate, side.untrimmed, side.upper_limit):
            assert f"{value:.4g}" in page.text
    before, after = explanation.factual_outputs.mean(), explanation.outputs.mean()
    assert f"from {100 * before:.3g}% to {100 * after:.3g}%" in page.text
    moved = (explanation.factual.astype(object) != explanation.counterfactual.astype(object)) & ~(
        explanation.factual.isna() & explanation.counterfactual.isna()
    )
    assert f"{moved.any(axis=1).sum()} of 90 rows" in page.text
    cells = [plain(cell) for cell in page.by_tag["td"]]
    changes = explanation.changes()
    for name, row in changes.iterrows():
        place = next(k for k, text in enumerate(page.by_tag["th"]) if plain(text) == name)
        assert place
        assert f"{100 * row['share']:.0f}%" in cells
    assert explanation.problem.target.name in page.text
    assert _view.fingerprints(explanation)["data"] in page.text
    assert "numpy" in page.text


def test_the_answer_is_in_plain_words(page: Page, explanation: ew.Explanation) -> None:
    assert plain(page.by_tag["h1"][0]).startswith("What would have to be different about 90 rows")
    assert "rows are changed: the mean chance of approval goes from " in page.text
    assert "Certificate: described" in page.text
    assert "Not a causal claim" in page.text
    assert "Nothing about the most extreme 5% at either end." in page.text
    for side in explanation.certificate.sides.values():
        assert side.assumption in page.text


@pytest.mark.slow
def test_more_is_shown_if_given_or_asked_for(page: Page, explanation: ew.Explanation) -> None:
    more = Page(report.render(explanation, command="elsewise <x>", rows=3))
    assert "rows" in more.attributes("id")
    assert "rows" not in page.attributes("id")
    moved = (explanation.factual.astype(object) != explanation.counterfactual.astype(object)) & ~(
        explanation.factual.isna() & explanation.counterfactual.isna()
    )
    caption = f"3 of {moved.any(axis=1).sum()} changed rows, largest change of the output first"
    for text in ("elsewise <x>", caption):
        assert text in more.text


def test_a_frame_becomes_a_table_of_texts() -> None:
    frame = pd.DataFrame(
        {"x_y": [0.125, np.nan], "ok": [True, False]}, index=pd.Index([7, 8], name="key")
    )
    table = frame_table(frame, "caption")
    assert table.columns == ["key", "x y", "ok"]
    assert table.rows == [["7", "0.125", "yes"], ["8", "–", "no"]]


def test_groups_are_told(page: Page, explanation: ew.Explanation) -> None:
    for group in analysis.groups(explanation):
        assert group.who in page.text


def test_hostile_names_stay_text() -> None:
    explanation = people.hostile()
    text = report.render(explanation, title=people.HOSTILE, output=people.HOSTILE_LEVEL, rows=2)
    page = Page(text)
    assert not page.open
    assert not {"script", "img", "b"} & {tag for tag, _ in page.tags}
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]
    assert "49" not in plain(page.by_tag["h1"][0])
    assert plain(people.HOSTILE)[:40] in page.text
    assert people.HOSTILE_LEVEL in page.text
    assert "\x00" not in text
    assert "\x1b" not in text
    notebook = Page(_other_pages.explanation_html(explanation))
    assert not {"script", "img", "b"} & {tag for tag, _ in notebook.tags}


def test_write_puts_the_same_page_in_place_whole(
    explanation: ew.Explanation, text: str, tmp_path: Path
) -> None:
    place = tmp_path / "new" / "report.html"
    report.write(explanation, place, output="chance of approval")
    assert place.read_text("utf-8") == text
    assert [path.name for path in place.parent.iterdir()] == ["report.html"]


def test_a_failed_write_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, mode: int) -> None:
        raise OSError("no space left on device")

    place = tmp_path / "page.html"
    report.write_text("old", place)
    monkeypatch.setattr(Path, "chmod", full)
    with pytest.raises(OSError, match="no space left"):
        report.write_text("new", place)
    assert place.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_comparison_has_every_explanation(explanation: ew.Explanation) -> None:
    other = people.explained(outputs=0.05)
    named = {"both limits": explanation, "<i>outputs</i>": other}
    page = Page(report.render_comparison(named))
    assert not page.open
    assert "i" not in {tag for tag, _ in page.tags}
    for name, one in named.items():
        assert name in page.text
        assert plain(report.headline(one)) in page.text
        assert f"{one.certificate.outputs.upper_limit:.3g}" in page.text
    with pytest.raises(InvalidInput, match="at least one explanation"):
        report.render_comparison({})


def test_the_headline_says_when_the_limits_are_not_met() -> None:
    missed = people.explained(ew.targets.constant(0.99), inputs=0.2, outputs=0.01)
    assert report.headline(missed).startswith("Not reached within the bounds")
    page = Page(report.render(missed))
    assert "Certificate: not reached" in page.text
    assert '"verdict": "not reached"' in json.dumps(report.summary(missed))


def test_the_headline_says_when_nothing_changes() -> None:
    same = people.explained(ew.targets.at_least(0.0), outputs=0.5)
    assert report.headline(same).startswith(
        "Nothing changes: the mean predicted probability stays at"
    )
    assert "Nothing changes" in _other_pages.explanation_html(same)


def test_a_question_about_a_mean_has_a_gauge_of_its_own() -> None:
    page = Page(report.render(people.explained(ew.targets.mean(0.62), inputs=9.0), output="chance"))
    (gauge,) = (text for text in page.attributes("aria-label") if text.startswith("mean chance:"))
    assert "asked 62%" in gauge


def test_several_outputs_and_numbers_only() -> None:
    rows = people.frame()[["income"]]
    two = ew.models.function(
        lambda f: np.column_stack([f["income"], -2.0 * f["income"]]), smooth=True
    )
    explanation = ew.explain(
        two,
        rows,
        target=ew.targets.shift([1.0, -2.0]),
        bounds=ew.Bounds(outputs=5.0),
        settings=ew.Settings(iterations=4, draws=99),
    )
    page = Page(report.render(explanation))
    assert "The mean model output, column 2 goes from" in page.text
    assert "Correlations that change most" not in page.text


@pytest.mark.slow
def test_many_features_groups_of_columns_and_frozen_ones() -> None:
    explanation = people.wide()
    page = Page(report.render(explanation))
    assert "The 12 largest have a picture, the table has all." in page.text
    assert "Kept as they are: x1, day." in page.text
    table = report.change_table(explanation)
    assert len(table.splitlines()) == 1 + len(analysis.changes(explanation))
    home = next(line for line in table.splitlines() if line.startswith("home"))
    assert "of rows" in home or "stays as it is" in home


def test_verdicts(explanation: ew.Explanation) -> None:
    certificate = explanation.certificate
    assert certificate.verdict is Verdict.DESCRIBED
    held_out = dataclasses.replace(certificate, kind=Kind.HELD_OUT)
    assert held_out.verdict is Verdict.CERTIFIED

    def changed(**values: Any) -> Any:
        side = dataclasses.replace(certificate.outputs, **values)
        return dataclasses.replace(certificate, outputs=side)

    missed = changed(upper_limit=0.9, debiased=0.8)
    unsure = changed(upper_limit=0.9, debiased=0.01, rows_needed=1234)
    assert missed.verdict is Verdict.NOT_REACHED
    assert unsure.verdict is Verdict.REACHED
    assert "more than the bound" in _view.side_words("outputs", missed.outputs)
    assert "the distance itself is about 0.8" in _view.side_words("outputs", missed.outputs)
    assert "needs about n = 1,234" in _view.side_words("outputs", unsure.outputs)
    near = changed(upper_limit=0.120004).outputs
    assert "up to 0.120004 away from the target, more than the bound of 0.12." in (
        _view.side_words("outputs", near)
    )
    free = dataclasses.replace(certificate.inputs, bound=None, probability=None)
    assert "no bound was asked for" in _view.side_words("inputs", free)
    nothing = dataclasses.replace(
        changed(bound=None, probability=None), inputs=free, trim=0.0, kind=Kind.HELD_OUT
    )
    assert nothing.verdict is Verdict.DESCRIBED
    assert len(nothing.not_claimed) == 2
    assert "never saw" in _view.meaning(nothing)
    assert "Certificate: described" in _other_pages.certificate_html(nothing)


def test_notebooks_show_the_answer(explanation: ew.Explanation) -> None:
    page = Page(_other_pages.explanation_html(explanation))
    assert not page.open
    assert report.answer(explanation)[0] in page.text
    assert "Certificate: described" in page.text
    assert str(explanation.changes().index[0]) in page.text


def test_summary_is_json(explanation: ew.Explanation) -> None:
    content = json.loads(json.dumps(report.summary(explanation), allow_nan=False))
    assert content["certificate"]["outputs"]["upper_limit"] == (
        explanation.certificate.outputs.upper_limit
    )
    assert content["output"]["mean_after"] == explanation.outputs[:, 0].mean()
    assert [c["feature"] for c in content["changes"]] == list(explanation.changes().index)
    assert content["drift"][0]["feature"] == "model output"


def test_percentages_and_lines() -> None:
    assert one_line("a\nb" * 100, 10).endswith("…")


def test_a_headline_about_distances_says_the_verdict_where_bounds_are_missed() -> None:
    rows = pd.DataFrame({"a": np.random.default_rng(0).normal(size=(120))})
    answer = ew.explain(
        ew.models.function(lambda frame: frame["a"], smooth=True),
        rows,
        target=ew.targets.sample(np.linspace(-1.0, 2.0, 12)),
        bounds=ew.Bounds(outputs=0.35),
        certify="held-out",
        progress=False,
    )
    assert answer.status.verdict is ew.Verdict.REACHED
    assert report.headline(answer).startswith("Reached, not certified: ")
    few = ew.explain(lambda frame: frame["a"], rows[:12], target=ew.targets.shift(0.5))
    # One line for both sides, which have the same reason.
    assert [line.partition(":")[0] for line in few.certificate.notices] == ["inputs, outputs"]
    with pytest.raises(ew.errors.InvalidInput, match=r"targets\.at_most\(0\.0\d+\)"):
        few.policy()


def test_rows_asked_for_within_bounds_are_asked_for_in_words() -> None:
    rows = pd.DataFrame({"a": np.random.default_rng(0).normal(size=60)})
    bounds = ew.Bounds(outputs=0.3)
    answer = ew.explain(
        lambda frame: frame["a"], rows, target=ew.targets.at_most(0.5), bounds=bounds
    )
    assert (
        "for all of them to end up with a wage of at most 0.5, or as near to it as the bounds ask?"
    ) in report.render(answer, output="wage")


def test_one_row_that_is_put_back_is_one() -> None:
    rows = pd.DataFrame({"a": np.arange(30.0), "b": np.arange(30.0) % 7})
    schema = ew.Schema.infer(rows).only("b")
    answer = ew.explain(
        lambda frame: frame["a"], rows, target=ew.targets.at_most(28.0), schema=schema
    )
    assert "(1 row is put back: " in str(answer.status)
