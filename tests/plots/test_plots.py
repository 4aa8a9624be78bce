"""Pictures are tested on what they draw: lines' data, labels, counts."""

from __future__ import annotations

import dataclasses
import io
import itertools
from collections.abc import Iterator

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from matplotlib.axes import Axes

import elsewise as ew
import people
from elsewise import analysis, plots
from elsewise.errors import InvalidInput
from elsewise.plots import charts
from elsewise.plots.charts import BAR_LEVELS, _look, pair_bars
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
    assert set(drawn) == {"before", "after", "target"}
    np.testing.assert_array_equal(drawn["before"], np.sort(explanation.factual_outputs[:, 0]))
    np.testing.assert_array_equal(drawn["after"], np.sort(explanation.outputs[:, 0]))
    wanted = np.maximum(explanation.factual_outputs[:, 0], 0.6)
    np.testing.assert_allclose(drawn["target"], np.sort(wanted))
    assert ax.get_xlabel() == "share of rows that stay below"
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["95% band of the population", "before", "after", "target"]


def test_a_band_that_cannot_be_seen_is_said_to_be_there(explanation: ew.Explanation) -> None:
    rows = explanation.rows._replace(outputs=0.5 + 0.01 * explanation.rows.outputs)
    flat = dataclasses.replace(explanation, rows=rows)
    legend = [text.get_text() for text in plots.outputs(flat).get_legend().get_texts()]
    assert legend[0] == "95% band of the population, hardly wider than the line"


def test_the_band_holds_the_curve_and_shrinks_with_rows() -> None:
    from elsewise.plots.charts import _band

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
    from elsewise.plots.charts import levels_of, quantiles

    assert levels_of(10**5).size == 200
    assert np.isnan(quantiles(np.array([np.nan]), levels_of(1))).all()


def test_projected_is_along_the_mean_change(explanation: ew.Explanation) -> None:
    drawn = lines(plots.projected(explanation))
    embedding = explanation.problem.embedding
    change = embedding.embed(explanation.rows.codes) - embedding.embed(explanation.problem.factual)
    gap = drawn["after"].mean() - drawn["before"].mean()
    assert gap == pytest.approx(np.linalg.norm(change.mean(axis=0)))


def test_projected_stands_still_where_nothing_moved() -> None:
    same = explained(ew.targets.at_least(0.0), outputs=0.5)
    drawn = lines(plots.projected(same))
    np.testing.assert_array_equal(drawn["before"], drawn["after"])


def test_a_number_gets_curves_and_a_category_paired_bars(explanation: ew.Explanation) -> None:
    drawn = lines(plots.feature(explanation, "income"))
    np.testing.assert_array_equal(drawn["before"], np.sort(explanation.factual["income"]))
    ax = plots.feature(explanation, "home")
    names = labels(ax)[::2]
    assert set(names) == {"own", "rent", "free"}
    widths = np.reshape([bar.get_width() for bar in ax.containers[0]], (-1, 2)).T
    for found, rows in zip(widths, (explanation.factual, explanation.counterfactual), strict=True):
        shares = rows["home"].value_counts(normalize=True)
        np.testing.assert_allclose(found, [shares.get(name, 0.0) for name in names])


def test_missing_cells_have_bars_of_their_own(explanation: ew.Explanation) -> None:
    ax = plots.feature(explanation, "savings")
    assert labels(ax)[-2:] == ["missing", ""]
    missing = explanation.factual["savings"].isna().mean()
    assert ax.containers[0][-2].get_width() == pytest.approx(missing)


def test_one_hot_groups_and_ordered_categories_are_categories() -> None:
    explanation = people.wide()
    assert set(labels(plots.feature(explanation, "home"))[::2]) == {"own", "rent"}
    assert labels(plots.feature(explanation, "size"))[::2] == ["S", "M", "L"]
    for name, message in (("own", "a part of the group 'home'"), ("day", "never moved|constant")):
        with pytest.raises(InvalidInput, match=message):
            plots.feature(explanation, name)
    with pytest.raises(InvalidInput, match="did you mean"):
        plots.feature(explanation, "hom")


def test_many_levels_are_drawn_together(explanation: ew.Explanation) -> None:
    column = analysis.columns_of(explanation)[-2]
    codes = np.repeat(np.arange(30.0), 2)
    many = dataclasses.replace(column, levels=tuple(range(30)), before=codes, after=codes)
    bars = pair_bars(many)
    assert len(bars.names) == 2 * BAR_LEVELS
    assert bars.names[-2] == "(others)"
    np.testing.assert_allclose(np.reshape(bars.ends, (-1, 2)).sum(axis=0), 1.0)


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
    for name in ("home", "income"):
        moved = (before[name] != after[name]) & ~(before[name].isna() & after[name].isna())
        assert words[name].startswith(f"{moved.sum()} rows")
    assert words["home"].endswith(" rows")
    gaps = (after["income"] - before["income"])[after["income"] != before["income"]].dropna()
    arrow = "▲" if gaps.median() > 0 else "▼"
    assert words["income"].endswith(f", {arrow} {amount(abs(gaps.median()))} in the median")


def test_flows_carry_the_rows_that_change(explanation: ew.Explanation) -> None:
    """Laws of a flow: bands and levels hold the changed rows, and lie side by side."""
    column = analysis.column_named(explanation, "home")
    flow = charts.flow(column)
    assert flow is not None
    moved = int(column.moved.sum())
    for side in flow.sides:
        assert sum(level.rows for level in side) == moved
        middles = [level.middle for level in side]
        assert min(np.diff([0.0, *middles, flow.height])) >= charts.LABEL_HEIGHT / 2 - 1e-9
        assert np.all(np.diff(middles) >= charts.LABEL_HEIGHT - 1e-9)
    assert sum(band.thickness for band in flow.bands) == pytest.approx(charts.FLOW_HEIGHT)
    before, after = explanation.factual["home"], explanation.counterfactual["home"]
    pairs = {pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]}
    assert len(flow.bands) == len(pairs)
    for edge in ("left", "right"):
        ends = sorted((getattr(band, edge), band.thickness) for band in flow.bands)
        for (top, thickness), (below, _) in itertools.pairwise(ends):
            assert top + thickness <= below + 1e-9
    shown = {text.get_text() for text in plots.flows(explanation, "home").texts}
    left = before[before != after].value_counts()
    assert {f"{name}  {count}" for name, count in left.items()} <= shown
    assert plots.flows(explanation).get_title(loc="left") in {"home", "savings"}


def test_flows_refuses_numbers(explanation: ew.Explanation) -> None:
    with pytest.raises(InvalidInput, match="'income', a number"):
        plots.flows(explanation, "income")
    rows = frame()[["income", "debt"]]
    numbers = ew.explain(
        ew.models.function(lambda f: f["income"], smooth=True),
        rows,
        target=ew.targets.shift(1.0),
        bounds=ew.Bounds(outputs=0.9),
    )
    with pytest.raises(InvalidInput, match="a category that some row changes, received none"):
        plots.flows(numbers)


def test_moves_are_counted_around_zero(explanation: ew.Explanation) -> None:
    column = analysis.column_named(explanation, "debt")
    chart = charts.moves(column)
    change = (column.after - column.before)[column.moved]
    counts = {mark.look: mark.y.sum() for mark in chart.marks if mark.kind == "bars"}
    assert sum(counts.values()) == change.size
    assert counts.get("down", 0) == pytest.approx(np.sum(change < 0), abs=1)
    whole = analysis.column_named(explanation, "cards")
    edges = charts.moves(whole).marks[0].x
    np.testing.assert_allclose(np.diff(edges), 1.0)


def test_dumbbells_lead_from_before_to_after(explanation: ew.Explanation) -> None:
    column = analysis.column_named(explanation, "income")
    moved = int(column.moved.sum())
    grouped, single = charts.dumbbells(column), charts.dumbbells(column, single=True)
    for chart in (grouped, single):
        assert chart is not None
        link, start, end = chart.marks
        points = link.x.reshape(-1, 3)
        np.testing.assert_array_equal(points[:, 0], start.x)
        np.testing.assert_array_equal(points[:, 1], end.x)
        assert np.all(np.diff(start.x) >= 0)
        assert len(start.x) <= min(10, moved)
        assert start.x.min() >= column.before.min()
        assert end.x.max() <= column.after.max()
    assert grouped is not None
    assert moved / len(grouped.marks[1].x) >= 3
    few = dataclasses.replace(column, before=column.before[:2], after=column.before[:2] + 1.0)
    assert charts.dumbbells(few) is None
    alone = charts.dumbbells(few, single=True)
    assert alone is not None
    assert sorted(alone.marks[1].x) == sorted(few.before)


def test_the_histogram_of_outputs_counts_all_rows(explanation: ew.Explanation) -> None:
    after, before, *_ = charts.output_histogram(explanation, 0, "score").marks
    assert after.y.sum() == before.y[::2].sum() == len(explanation.outputs)


def test_convergence_draws_limits_bounds_and_eta(explanation: ew.Explanation) -> None:
    figure, axes = plt.subplots(1, 2, layout="constrained")
    ax = plots.convergence(explanation, axes[1])
    drawn, history = lines(ax), explanation.history
    np.testing.assert_array_equal(drawn["inputs, upper limit"], history["inputs_limit"])
    np.testing.assert_array_equal(drawn["outputs, upper limit"], history["outputs_limit"])
    assert set(drawn["inputs, bound"]) == {0.5}
    assert set(drawn["outputs, bound"]) == {0.12}
    eta = figure.axes[-1]
    np.testing.assert_array_equal(eta.lines[0].get_ydata(), history["eta"].to_numpy()[1:])
    assert_labels_inside(figure)


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
    assert "upper limit" not in lines(plain)


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
    assert len(title) <= 60 + len(r"\\")
    assert "\n" not in title


def test_amounts_are_readable() -> None:
    assert [amount(v) for v in (np.inf, -np.inf)] == ["infinite", "-infinite"]


def test_a_feature_that_stays_gets_no_direction() -> None:
    row = pd.Series({"rows_moved": 0.0, "median_move": np.nan})
    assert _look(row, 50) == ("swap", "0 rows")
