"""Pictures are tested on what they draw: lines' data, labels, counts."""

from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Iterator

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch

import elsewise as ew
import people
from elsewise import analysis, plots
from elsewise.errors import InvalidInput
from elsewise.text import amount
from people import HOSTILE, explained, frame

mpl.use("Agg")


@pytest.fixture(scope="module")
def explanation() -> ew.Explanation:
    return explained()


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def lines(ax: Axes) -> dict[str, np.ndarray]:
    return {str(line.get_label()): np.asarray(line.get_ydata()) for line in ax.lines}


def labels(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.get_yticklabels()]


def test_outputs_draws_the_quantiles_of_all_three(explanation: ew.Explanation) -> None:
    ax = plots.outputs(explanation)
    drawn = lines(ax)
    assert set(drawn) == {"factual", "counterfactual", "target"}
    np.testing.assert_array_equal(drawn["factual"], np.sort(explanation.factual_outputs[:, 0]))
    np.testing.assert_array_equal(drawn["counterfactual"], np.sort(explanation.outputs[:, 0]))
    wanted = np.maximum(explanation.factual_outputs[:, 0], 0.6)
    np.testing.assert_allclose(drawn["target"], np.sort(wanted))
    assert ax.get_xlabel() == "share of rows"
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["95% band", "factual", "counterfactual", "target"]


def test_a_band_that_cannot_be_seen_is_said_to_be_there(explanation: ew.Explanation) -> None:
    rows = explanation.rows._replace(outputs=0.5 + 0.01 * explanation.rows.outputs)
    flat = dataclasses.replace(explanation, rows=rows)
    legend = [text.get_text() for text in plots.outputs(flat).get_legend().get_texts()]
    assert legend[0] == "95% band, hardly wider than the line"


def test_the_band_holds_the_curve_and_shrinks_with_rows() -> None:
    from elsewise.plots._quantile_plots import _band

    rng = np.random.default_rng(1)
    widths = []
    for size in (100, 400):
        values = rng.normal(size=size)
        levels = (np.arange(200) + 0.5) / 200
        low, high = _band(values, levels, 0.95)
        curve = np.quantile(values, levels, method="inverted_cdf")
        inside = ~np.isnan(low) & ~np.isnan(high)
        assert np.isnan(low[0])
        assert np.isnan(high[-1])
        assert (low[inside] <= curve[inside]).all()
        assert (curve[inside] <= high[inside]).all()
        widths.append(np.nanmean(high - low))
    assert widths[1] < widths[0]


@pytest.mark.parametrize(
    ("target", "quantile"),
    [
        (ew.targets.constant(0.7), lambda u: np.full(u.shape, 0.7)),
        (ew.targets.distribution(scipy.stats.beta(2, 2)), scipy.stats.beta(2, 2).ppf),
        (ew.targets.sample([0.4, 0.8]), lambda u: np.where(u <= 0.5, 0.4, 0.8)),
    ],
)
def test_outputs_draws_every_kind_of_target(target: ew.targets.Target, quantile: object) -> None:
    few = explained(target, outputs=0.9)
    line = plots.outputs(few, label="$ risk").lines[-1]
    np.testing.assert_allclose(line.get_ydata(), quantile(np.asarray(line.get_xdata())))  # type: ignore[operator]


def test_many_rows_are_drawn_at_a_few_levels() -> None:
    from elsewise.plots._style import levels_of, quantiles

    assert levels_of(10**5).size == 200
    assert np.isnan(quantiles(np.array([np.nan]), levels_of(1))).all()


def test_projected_is_along_the_mean_change(explanation: ew.Explanation) -> None:
    drawn = lines(plots.projected(explanation))
    embedding = explanation.problem.embedding
    change = embedding.embed(explanation.rows.codes) - embedding.embed(explanation.problem.factual)
    gap = drawn["counterfactual"].mean() - drawn["factual"].mean()
    assert gap == pytest.approx(np.linalg.norm(change.mean(axis=0)))


def test_projected_stands_still_where_nothing_moved() -> None:
    same = explained(ew.targets.at_least(0.0), outputs=0.5)
    drawn = lines(plots.projected(same))
    np.testing.assert_array_equal(drawn["factual"], drawn["counterfactual"])


def test_a_number_gets_curves_and_a_category_paired_bars(explanation: ew.Explanation) -> None:
    drawn = lines(plots.feature(explanation, "income"))
    np.testing.assert_array_equal(drawn["factual"], np.sort(explanation.factual["income"]))
    ax = plots.feature(explanation, "home")
    names = labels(ax)
    assert set(names) == {"own", "rent", "free"}
    both = explanation.factual, explanation.counterfactual
    for bars, rows in zip(ax.containers, both, strict=True):
        shares = rows["home"].value_counts(normalize=True)
        widths = {name: bar.get_width() for name, bar in zip(names, bars, strict=True)}
        for name, width in widths.items():
            assert width == pytest.approx(shares.get(name, 0.0))


def test_missing_cells_have_a_bar_of_their_own(explanation: ew.Explanation) -> None:
    ax = plots.feature(explanation, "savings")
    assert labels(ax)[-1] == "(missing)"
    missing = explanation.factual["savings"].isna().mean()
    assert ax.containers[0][-1].get_width() == pytest.approx(missing)


def test_one_hot_groups_and_ordered_categories_are_categories() -> None:
    explanation = people.wide()
    assert set(labels(plots.feature(explanation, "home"))) == {"own", "rent"}
    assert labels(plots.feature(explanation, "size")) == ["S", "M", "L"]
    for name, message in (("own", "a part of the group 'home'"), ("day", "never moved|constant")):
        with pytest.raises(InvalidInput, match=message):
            plots.feature(explanation, name)
    with pytest.raises(InvalidInput, match="did you mean"):
        plots.feature(explanation, "hom")


def test_many_levels_are_drawn_together(explanation: ew.Explanation) -> None:
    from elsewise.plots._feature_names import category_shares

    column = analysis.columns_of(explanation)[-2]
    codes = np.repeat(np.arange(30.0), 2)
    many = dataclasses.replace(column, levels=tuple(range(30)), before=codes, after=codes)
    names, shares = category_shares(many, most=8)
    assert len(names) == 8
    assert names[-1] == "(others)"
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_features_draws_a_panel_for_each(explanation: ew.Explanation) -> None:
    axes = plots.features(explanation)
    titles = [ax.get_title(loc="left") for ax in axes]
    assert titles == list(explanation.changes().index)
    assert len(plots.features(explanation, most=2)) == 2
    with pytest.raises(InvalidInput, match="axes: expected 5 axes"):
        plots.features(explanation, axes=axes[:2])


def test_changes_draws_effects_directions_and_sizes(explanation: ew.Explanation) -> None:
    ax = plots.changes(explanation)
    table = explanation.changes()
    assert labels(ax) == list(table.index)
    np.testing.assert_allclose([bar.get_width() for bar in ax.containers[0]], table["effect"].abs())
    assert np.all(np.diff(table["effect"].abs()) <= 0)
    words = dict(zip(labels(ax), (text.get_text() for text in ax.texts), strict=True))
    before, after = explanation.factual, explanation.counterfactual
    for name in ("home", "debt"):
        moved = (before[name] != after[name]) & ~(before[name].isna() & after[name].isna())
        assert words[name].startswith(f"{moved.sum()} rows")
    assert words["home"].endswith(" rows")
    gaps = (after["debt"] - before["debt"])[after["debt"] != before["debt"]].dropna()
    arrow = "▲" if gaps.median() > 0 else "▼"
    assert words["debt"].endswith(f", {arrow} {amount(abs(gaps.median()))} in the median")


def test_flows_carry_the_mass_of_the_rows(explanation: ew.Explanation) -> None:
    ax = plots.flows(explanation, "home")
    before, after = explanation.factual["home"], explanation.counterfactual["home"]
    assert len([p for p in ax.patches if isinstance(p, PathPatch)]) == len(
        set(zip(before, after, strict=True))
    )
    heights = [np.ptp(p.get_path().vertices[[0, -1], 1]) for p in ax.patches]
    assert sum(heights) == pytest.approx(1.0)
    shown = {text.get_text() for text in ax.texts}
    assert f"own  {(before == 'own').mean():.0%}" in shown
    assert plots.flows(explanation).get_title(loc="left") in {"home", "savings"}


def test_flows_refuses_numbers(explanation: ew.Explanation) -> None:
    with pytest.raises(InvalidInput, match="a category"):
        plots.flows(explanation, "income")
    rows = frame()[["income", "debt"]]
    numbers = ew.explain(
        ew.models.function(lambda f: f["income"], smooth=True),
        rows,
        target=ew.targets.shift(1.0),
        bounds=ew.Bounds(outputs=0.9),
    )
    with pytest.raises(InvalidInput, match="a category that may move"):
        plots.flows(numbers)


def test_convergence_draws_limits_bounds_and_eta(explanation: ew.Explanation) -> None:
    ax = plots.convergence(explanation)
    drawn, history = lines(ax), explanation.history
    np.testing.assert_array_equal(drawn["inputs, upper limit"], history["inputs_limit"])
    np.testing.assert_array_equal(drawn["outputs, upper limit"], history["outputs_limit"])
    assert set(drawn["inputs, bound"]) == {0.5}
    assert set(drawn["outputs, bound"]) == {0.12}
    _, below = ax.figure.axes
    np.testing.assert_array_equal(below.lines[0].get_ydata(), history["eta"].to_numpy()[1:])
    assert_labels_inside(ax.figure)


def test_convergence_fits_where_it_is_drawn(explanation: ew.Explanation) -> None:
    figure, axes = plt.subplots(1, 2, layout="constrained")
    plots.convergence(explanation, axes[1])
    assert_labels_inside(figure)
    free = plt.figure().add_axes((0.2, 0.4, 0.7, 0.5))
    (below,) = plots.convergence(explanation, free).child_axes
    assert below.lines[0].get_ydata().size == len(explanation.history) - 1


def assert_labels_inside(figure: plt.Figure) -> None:
    """No label is cut off at the edge of a figure."""
    figure.canvas.draw()
    for ax in figure.axes:
        for label in (ax.xaxis.label, ax.yaxis.label, ax.title):
            if label.get_text():
                box = label.get_window_extent()
                assert figure.bbox.x0 <= box.x0, label
                assert figure.bbox.y0 <= box.y0, label
                assert box.x1 <= figure.bbox.x1, label
                assert box.y1 <= figure.bbox.y1, label


def test_convergence_draws_the_distance_of_a_side_without_a_bound() -> None:
    found = explained(outputs=0.2)
    drawn = lines(plots.convergence(found))
    np.testing.assert_array_equal(drawn["inputs, distance"], found.history["inputs"])
    assert "inputs, upper limit" not in drawn
    assert not np.isnan(drawn["outputs, upper limit"]).any()


def test_the_interval_is_found_again_whatever_the_unit_of_the_outputs() -> None:
    from elsewise.plots._search import _intervals

    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 2)), columns=["a", "b"])
    found = ew.explain(
        ew.models.function(lambda f: 1000.0 * f["a"], smooth=True),
        rows,
        target=ew.targets.shift(500.0),
        bounds=ew.Bounds(inputs=0.6, outputs=300.0),
    )
    assert found.problem.unit > 100
    assert _intervals(found)[0].size > 5


def test_the_interval_of_eta_narrows_around_it(explanation: ew.Explanation) -> None:
    from elsewise.plots._search import _intervals

    low, high = _intervals(explanation)
    etas = explanation.history["eta"].to_numpy()[1 : low.size]
    assert (low[0], high[0]) == (0.0, 1.0)
    assert low.size > 5
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) <= 0).all()
    assert ((low[1:] <= etas) & (etas <= high[1:])).all()
    assert _intervals(explained(outputs=0.2))[0].size == 0


def test_tables_are_drawn_as_they_are() -> None:
    records = pd.DataFrame(
        {
            "name": ["ours", "ours", "theirs"],
            "inputs": [0.2, 0.1, 0.3],
            "outputs": [0.1, 0.3, 0.2],
            "inputs_limit": [0.25, 0.15, 0.4],
            "outputs_limit": [0.12, 0.33, 0.3],
            "chosen": [True, False, False],
        }
    )
    front = plots.frontier(records)
    assert lines(front)["distance"].tolist() == [0.3, 0.1, 0.2]
    assert lines(front)["chosen"].tolist() == [0.1]
    together = plots.comparison(records.iloc[[0, 2]])
    assert [t.get_text() for t in together.get_legend().get_texts()] == ["ours", "theirs"]
    plain = plots.frontier(records[["inputs", "outputs"]])
    assert set(lines(plain)) == {"distance"}


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ({"inputs": [1]}, "a pandas DataFrame"),
        (pd.DataFrame({"inputs": [1.0]}), "no column 'outputs'"),
        (pd.DataFrame({"inputs": [], "outputs": []}), "no rows"),
    ],
)
def test_tables_without_their_columns_are_refused(records: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        plots.frontier(records)  # type: ignore[arg-type]


def test_panel_composes_the_paper_figure(explanation: ew.Explanation) -> None:
    axes = plots.panel(explanation, most=4)
    titles = [ax.get_title(loc="left") for ax in axes]
    assert titles[:3] == [
        "Model output",
        "All features, along their mean change",
        "What changes most",
    ]
    assert titles[3:] == list(explanation.changes().index[:4])
    assert len({ax.figure for ax in axes}) == 1


def test_pictures_draw_where_they_are_told_and_never_show(
    explanation: ew.Explanation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plt, "show", lambda *_, **__: pytest.fail("called show"))
    for draw in (
        plots.outputs,
        plots.projected,
        plots.changes,
        plots.convergence,
    ):
        _, ax = plt.subplots()
        before = len(plt.get_fignums())
        assert draw(explanation, ax=ax) is ax
        assert len(plt.get_fignums()) == before


def test_hostile_names_are_drawn_as_short_text() -> None:
    hostile = people.hostile()
    for draw in (plots.changes, plots.outputs):
        draw(hostile).figure.savefig(io.BytesIO(), format="svg")
    plots.flows(hostile, "home").figure.savefig(io.BytesIO(), format="png")
    title = plots.feature(hostile, HOSTILE).get_title(loc="left")
    assert len(title) < 60
    assert "\n" not in title
    picture = plots.to_svg(
        lambda ax: plots.feature(hostile, "home", ax),
        name="one",
        title=HOSTILE,
        description='"quoted" & <b>bold</b>',
    )
    assert "<script" not in picture
    assert "<b>" not in picture
    assert "&lt;script&gt;" in picture


def test_svg_ids_are_unique_across_pictures_and_colours_follow_the_page(
    explanation: ew.Explanation,
) -> None:
    pictures = [
        plots.to_svg(
            lambda ax: plots.outputs(explanation, ax), name=name, title="t", description="d"
        )
        for name in ("one", "two")
    ]
    ids = [set(re.findall(r' id="([^"]+)"', picture)) for picture in pictures]
    assert ids[0].isdisjoint(ids[1])
    for picture, own in zip(pictures, ids, strict=True):
        used = set(re.findall(r"url\(#([^)]+)\)", picture))
        used |= set(re.findall(r'href="#([^"]+)"', picture))
        assert used <= own
        assert 'role="img"' in picture
        assert "var(--counterfactual, #0072b2)" in picture
        assert "font-family" not in picture
        assert "<metadata" not in picture
    assert plt.get_fignums() == []


def test_svg_is_the_same_every_time(explanation: ew.Explanation) -> None:
    frame = pd.DataFrame({"inputs": [0.1, 0.2], "outputs": [0.3, 0.1]})

    def draw() -> str:
        return plots.to_svg(
            lambda ax: plots.frontier(frame, ax=ax), name="s", title="t", description="d"
        )

    assert draw() == draw()


def test_fonts_of_older_drawings_are_replaced_too() -> None:
    from elsewise.plots._svg import _themed

    assert _themed("font: 10px 'DejaVu Sans', sans-serif; fill: red") == (
        "font-size: 10px; fill: red"
    )
    assert _themed("font: 700 12px 'DejaVu Sans'") == "font-size: 12px; font-weight: 700"


def test_amounts_are_readable() -> None:
    assert [amount(v) for v in (np.inf, -np.inf)] == ["infinite", "-infinite"]


def test_a_feature_that_stays_gets_no_direction() -> None:
    from elsewise.plots._change_plots import SWAP, _look

    row = pd.Series({"rows_moved": 0.0, "median_move": np.nan})
    assert _look(row, 50) == (SWAP, "0 rows")
