"""The page to play with: its data are the explanation's and inert, its policy names its script."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import elsewise as ew
import people
from elsewise import report
from elsewise.report import _explore
from elsewise.report._view import View

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def data_of(page: str) -> Any:
    (found,) = DATA.findall(page)
    return json.loads(found)


@pytest.fixture(scope="module")
def asked() -> ew.Explanation:
    return people.asked()


@pytest.fixture(scope="module")
def page(asked: ew.Explanation) -> str:
    return report.render_explore(asked, output="chance of approval")


@pytest.fixture(scope="module")
def hostile() -> ew.Explanation:
    return people.hostile()


def test_the_policy_allows_this_script_and_style_and_nothing_else(page: str) -> None:
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)

    def named(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

    assert policy.split("; ") == [
        "default-src 'none'",
        f"script-src {named(script)}",
        f"style-src {named(style)}",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert page.count("<script") == 2
    before_scripts = page[: page.index("<script")]
    assert not re.search(r"\s(style|on[a-z]+|src|href=\"(?!#))=", before_scripts)
    assert "innerHTML" not in script
    assert not re.search(r"https?:|fetch\(|XMLHttpRequest|WebSocket|eval\(|import\(", script)


def test_hostile_names_are_inert_data(hostile: ew.Explanation) -> None:
    title = "</script><script>alert(3)</script>\u2028"
    page = report.render_explore(hostile, title=title, output="</script>\u2028&<!--")
    assert page.count("<script") == 2
    assert page.count("</script") == 2
    (raw,) = DATA.findall(page)
    assert not set("<>&\u2028\u2029") & set(raw)
    content = json.loads(raw)
    assert content["output"] == "</script>\u2028&<!--"
    assert "&lt;/script&gt;&lt;script&gt;alert(3)" in page
    names = " ".join(column["name"] for column in content["columns"])
    assert '<script>alert("1")</script>' in names
    assert "\x00" not in names
    assert people.HOSTILE_LEVEL in [
        value for column in content["columns"] for value in column["values"]
    ]


def test_numbers_are_the_explanations(asked: ew.Explanation, page: str) -> None:
    data, view = data_of(page), View(asked)
    moved = np.flatnonzero(view.moved)
    assert sorted(data["order"]) == moved.tolist()
    costs = np.array(data["cost"])[data["order"]]
    assert np.all(np.diff(costs) >= 0)
    assert np.sqrt(costs.mean()) == pytest.approx(view.move, rel=1e-4)
    np.testing.assert_allclose(data["before"], asked.factual_outputs[:, 0], rtol=1e-5)
    np.testing.assert_allclose(data["after"], asked.outputs[:, 0], rtol=1e-5)
    counted = data["ask"]["counts_after"]
    assert np.mean(counted) == np.mean(asked.outputs[:, 0] >= 0.55)
    assert data["ask"]["asked"] == pytest.approx(0.6)
    assert not data["ask"]["falling"]
    columns = {column["name"]: column for column in data["columns"]}
    for name, side in (("cards", "integer"), ("home", "category"), ("savings", "category")):
        column, frame = columns[name], asked.factual[name]
        texts = [column["values"][code] for code in column["before"]]
        wanted = frame.tolist() if side == "integer" else frame.fillna("missing").tolist()
        assert texts == wanted
    for name, column in columns.items():
        after = dict(zip(column["moved"], column["after"], strict=True))
        for row, code in after.items():
            value = asked.counterfactual[name].iloc[row]
            assert column["values"][code] == (
                value if isinstance(value, str) else pytest.approx(value, rel=1e-5)
            )


def test_a_saved_run_gives_the_same_page(asked: ew.Explanation, page: str, tmp_path: Path) -> None:
    asked.save(tmp_path / "run")
    loaded = ew.load(tmp_path / "run")
    place = loaded.explore(tmp_path / "explore.html", output="chance of approval")
    assert place.read_text("utf-8") == page


def test_the_same_seed_gives_the_same_bytes(page: str) -> None:
    assert report.render_explore(people.asked(), output="chance of approval") == page


@pytest.mark.parametrize("explain", [people.explained, people.wide])
def test_a_saved_distance_gives_the_same_page(explain: Any, tmp_path: Path) -> None:
    explanation = explain()
    page = report.render_explore(explanation)
    explanation.save(tmp_path / "run")
    assert report.render_explore(ew.load(tmp_path / "run")) == page


def test_the_target_of_a_distance_is_on_the_page() -> None:
    explanation = people.explained()
    ask = data_of(report.render_explore(explanation))["ask"]
    outputs = np.sort(explanation.outputs[:, 0])
    squares = ask["weights"] @ (outputs - np.array(ask["partners"])) ** 2
    distance = explanation.certificate.outputs.estimate
    assert np.sqrt(squares + ask["spread"][0]) == pytest.approx(distance, abs=1e-5)
    assert ask["asked"] == 0.12


def simple(rows: int = 60, columns: int = 1, **options: Any) -> ew.Explanation:
    """Explain a linear score of one column, by default of one output."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=rows), "b": rng.integers(0, 3, rows)})
    weights = np.arange(1.0, columns + 1.0)
    model = ew.models.function(lambda table: table[["a"]].to_numpy() * weights, smooth=True)
    return ew.explain(model, frame, settings=ew.Settings(draws=99), **options)


def test_means_are_served_by_what_they_give() -> None:
    explanation = simple(target=ew.targets.mean(0.5), certify="in-sample")
    data = data_of(report.render_explore(explanation))
    assert data["ask"] == {
        "kind": "mean",
        "asked": 0.5,
        "falling": False,
        "relative": False,
        "what": "output",
    }
    order = data["order"]
    gains = np.array(data["after"])[order] - np.array(data["before"])[order]
    worth = gains / np.array(data["cost"])[order]
    assert np.all(np.diff(worth) <= 1e-4 * worth.max())
    shifted = simple(target=ew.targets.shift(-0.2), certify="in-sample")
    ask = data_of(report.render_explore(shifted))["ask"]
    assert (ask["relative"], ask["falling"], ask["asked"]) == (True, True, -0.2)


def test_a_falling_share_is_counted_as_the_user_does() -> None:
    explanation = simple(target=ew.targets.share(0.2, above=0.5), certify="in-sample")
    ask = data_of(report.render_explore(explanation))["ask"]
    assert (ask["falling"], ask["every"]) == (True, False)
    assert ask["asked"] == pytest.approx(0.2)
    reached = explanation.certificate.reached
    assert reached is not None
    assert np.mean(ask["counts_after"]) == pytest.approx(reached.reached)
    assert np.mean(ask["counts_before"]) == pytest.approx(reached.before)
    every = simple(target=ew.targets.at_most(0.5), certify="in-sample")
    ask = data_of(report.render_explore(every))["ask"]
    assert (ask["every"], ask["asked"], min(ask["counts_after"])) == (True, None, 1)


def test_several_outputs_and_nothing_to_do() -> None:
    two = simple(columns=2, target=ew.targets.shift([0.5, 1.0]), bounds=ew.Bounds(outputs=1.0))
    ask = data_of(report.render_explore(two))["ask"]
    assert ask == {"kind": "distance", "asked": 1.0}
    same = simple(target=ew.targets.at_most(99.0), certify="in-sample")
    data = data_of(report.render_explore(same))
    assert (data["order"], data["groups"]) == ([], [])


def test_many_rows_are_drawn_and_that_is_said(
    asked: ew.Explanation, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_explore, "MOST_ROWS", 100)
    drawn = data_of(report.render_explore(asked))
    assert (drawn["all"], len(drawn["before"])) == (240, 100)
    assert all(len(column["before"]) == 100 for column in drawn["columns"])
    assert max(drawn["order"]) < 100
    monkeypatch.setattr(_explore, "MOST_BYTES", 4000)
    smaller = report.render_explore(asked)
    assert len(data_of(smaller)["before"]) in (25, 50)
    assert report.render_explore(asked) == smaller


@pytest.mark.slow
def test_large_fits_stay_under_two_megabytes() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(6000, 40)), columns=[f"x{k}" for k in range(40)])
    model = ew.models.function(lambda table: table["x0"].to_numpy(), smooth=True)
    schema = ew.Schema.infer(frame).freeze(*frame.columns[1:])  # so that the search is quick
    target = ew.targets.share(0.6, above=0.0)
    explanation = ew.explain(model, frame, target=target, schema=schema, seed=0)
    page = report.render_explore(explanation)
    assert 500_000 < len(page.encode()) < 2_000_000
    assert len(data_of(page)["before"]) <= 5000
