"""What pictures show, in the units of the data: drawn by matplotlib here, as HTML by `report`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from elsewise._arrays import to_numpy
from elsewise.analysis import MISSING
from elsewise.analysis import changes as changes_of
from elsewise.analysis._columns import rows_words
from elsewise.errors import InvalidInput
from elsewise.plots._marks import Axis, Band, Bars, Chart, Flow, Level, Mark, mark
from elsewise.request import Bounds
from elsewise.targets import Derived, Sample
from elsewise.text import amount, one_line, percent

if TYPE_CHECKING:
    from elsewise._difference import Difference
    from elsewise.analysis import Column, Frontier
    from elsewise.explanation import Explanation

# Looks of several runs side by side, in turn.
CYCLE_LOOKS = ("counterfactual", "target", "inputs", "outputs", "factual")

# Curves are drawn at this many quantile levels at most: small files, no single rows.
MOST_LEVELS = 200
# Bars of a histogram of outputs, and of moves that are not few whole numbers.
OUTPUT_BARS, MOVE_BARS, MOST_WHOLE = 24, 20, 40
# Lines of a dumbbell picture, and the fewest rows that one of them stands for.
MOST_LINES, LEAST_ROWS = 10, 3
# Share of the height of a picture below which a band can hardly be seen beside its line.
THIN = 0.025
# Levels of a category that have bars, its changes of level, and levels on either side of a flow.
BAR_LEVELS, MOST_CHANGES, FLOW_LEVELS = 10, 7, 7
OTHERS = "(others)"
# Heights in pixels of a flow: of all its rows, and of two lines of text.
FLOW_HEIGHT, LABEL_HEIGHT = 190.0, 38.0


BELOW = Axis("share of rows that stay below", percent=True, holds=(0.0, 1.0))
"""What the levels of quantiles are."""


def levels_of(size: int) -> np.ndarray:
    """Return the levels at which a sample of this size is drawn, mid-cell.

    Examples
    --------
    >>> levels_of(4)
    array([0.125, 0.375, 0.625, 0.875])
    """
    count = max(1, min(size, MOST_LEVELS))
    return (np.arange(count) + 0.5) / count


def quantiles(values: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return quantiles of the non-missing values; NaN where there are none.

    Examples
    --------
    >>> quantiles(np.array([3.0, 1.0, np.nan, 2.0]), np.array([0.2, 0.5]))
    array([1., 2.])
    """
    known = values[~np.isnan(values)]
    if known.size == 0:
        return np.full(levels.shape, np.nan)
    return np.asarray(np.quantile(known, levels, method="inverted_cdf"))


def columns_of(records: pd.DataFrame, *names: str) -> pd.DataFrame:
    """Return the records; refuse what is no frame with these columns."""
    if not isinstance(records, pd.DataFrame):
        expected, fix = "a pandas DataFrame", "wrap it: pandas.DataFrame(records)"
        raise InvalidInput("records", expected=expected, received=type(records).__name__, fix=fix)
    lacking = [name for name in names if name not in records.columns]
    if lacking or records.empty:
        expected, fix = f"rows with the columns {', '.join(names)}", "rename the frame's columns"
        received = f"no column {lacking[0]!r}" if lacking else "no rows"
        raise InvalidInput("records", expected=expected, received=received, fix=fix)
    return records


def outputs(explanation: Explanation, column: int = 0, label: str | None = None) -> Chart:
    """Quantiles of one output before and after, with a band, and what is wanted.

    The band is Dvoretzky, Kiefer and Wolfowitz's at the level of the limits: where the quantiles of
    the population would lie, all at once, if the rows were drawn from it independently. It is left
    out where it leaves the sample, and where the rows are the population.
    """
    old, new = explanation.factual_outputs[:, column], explanation.outputs[:, column]
    levels, confidence = levels_of(new.size), explanation.certificate.confidence
    marks = two_curves(levels, old, new)
    probability = explanation.problem.outputs.probability
    holds = (0.0, 1.0) if probability else ()
    if confidence is not None:
        low, high = _band(new, levels, confidence)
        name = f"{percent(confidence, exact=True)} band of the population"
        known = [*quantiles(old, levels), *quantiles(new, levels), *holds]
        if np.nanmax(high - low) < THIN * np.ptp(known):
            name = f"{name}, hardly wider than the line"
        marks = (mark("area", "counterfactual", levels, high, name, low=low), *marks)
    # Of a pipeline, its last step says what the output is.
    called = explanation.problem.outputs.description.rsplit(").", 1)[-1] if label is None else label
    name = one_line(called, 60)
    said = f"Quantiles of the {name}, before and after."
    marks = (*marks, *_wanted_marks(explanation, levels, column))
    return Chart("Model output", said, marks, BELOW, Axis(name, probability, holds))


def two_curves(levels: np.ndarray, old: np.ndarray, new: np.ndarray) -> tuple[Mark, ...]:
    """Quantiles of two samples at the same levels."""
    return (
        mark("line", "factual", levels, quantiles(old, levels), "before"),
        mark("line", "counterfactual", levels, quantiles(new, levels), "after"),
    )


def _wanted_marks(explanation: Explanation, levels: np.ndarray, column: int) -> list[Mark]:
    """The target's quantiles, or the ends that rows are asked to be within."""
    if explanation.certificate.reached is None:
        wanted = _target_quantiles(explanation, levels, column)
        return [mark("line", "target", levels, wanted, "target", dashed=True)]
    ends = asked_ends(explanation, column)
    return [mark("across", "target", y=[end], name=name, dashed=True) for end, name in ends]


def asked_ends(explanation: Explanation, column: int) -> list[tuple[float, str]]:
    """Outputs between which a question wants rows to be, or the mean it asks for."""
    reached = explanation.certificate.reached
    if reached is None:
        return []
    if reached.question.wanted is None:
        return [] if reached.question.relative else [(reached.question.mean, "mean asked for")]
    sides = reached.question.wanted.lower, reached.question.wanted.upper
    ends = sorted({values[column] for values in sides if column < len(values)})
    return [(end, "cut-off") for end in ends if math.isfinite(end)]


def _band(
    values: np.ndarray, levels: np.ndarray, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """Band of the quantiles at these levels; NaN where it leaves the sample."""
    # Dvoretzky, Kiefer and Wolfowitz, with Massart's constant of 2: two-sided, for every n.
    radius = math.sqrt(math.log(2.0 / (1.0 - confidence)) / (2.0 * values.size))
    ends = []
    for shifted in (levels - radius, levels + radius):
        inside = (shifted > 0.0) & (shifted < 1.0)
        ends.append(np.where(inside, quantiles(values, np.clip(shifted, 0.0, 1.0)), np.nan))
    return ends[0], ends[1]


def _target_quantiles(explanation: Explanation, levels: np.ndarray, column: int) -> np.ndarray:
    """Quantiles of one column of the target at these levels."""
    target = explanation.problem.target
    if isinstance(target, Sample):
        return quantiles(np.asarray(target.values)[:, column], levels)
    if isinstance(target, Derived):
        return quantiles(to_numpy(target.of(explanation.factual_outputs))[:, column], levels)
    return np.asarray(target.quantile(levels))


def output_histogram(explanation: Explanation, column: int, label: str) -> Chart:
    """Rows by their output: before as an outline, after as bars."""
    both = [v[:, column] for v in (explanation.factual_outputs, explanation.outputs)]
    probability = explanation.problem.outputs.probability
    asked = asked_ends(explanation, column)
    known = [*map(np.min, both), *map(np.max, both), *(end for end, _ in asked)]
    low, high = (0.0, 1.0) if probability else (float(min(known)), float(max(known)))
    edges = _spread_edges(low, high, OUTPUT_BARS)
    old, new = (np.histogram(values, edges)[0] for values in both)
    marks = [
        mark("bars", "counterfactual", edges, new, "after"),
        mark("line", "factual", np.repeat(edges, 2)[1:-1], np.repeat(old, 2), "before"),
        *(mark("upright", "target", [end], name=name, dashed=True) for end, name in asked),
    ]
    said = f"Histogram of the {one_line(label, 60)}, before and after."
    x, y = Axis(one_line(label, 60), percent=probability), Axis("rows", holds=(0.0,))
    return Chart("Rows by what the model answers", said, tuple(marks), x, y)


def _spread_edges(low: float, high: float, count: int) -> np.ndarray:
    """Equal bars between two values, one bar of some width where they are equal."""
    if low == high:
        room = 0.5 * (abs(low) or 1.0)
        return np.array([low - room, high + room])
    return np.linspace(low, high, count + 1)


def moves(column: Column) -> Chart:
    """How far the changed rows of a number move; a bar for each whole number where few."""
    change = column.after - column.before
    change = change[column.moved & ~np.isnan(change)]
    low, high = float(change.min(initial=0.0)), float(change.max(initial=0.0))
    whole = column.kind == "integer" and 0 < high - low <= MOST_WHOLE
    edges = np.arange(low - 0.5, high + 1.0) if whole else _spread_edges(low, high, MOVE_BARS)
    counts = np.histogram(change, edges)[0]
    down = edges[1:] + edges[:-1] < 0
    sides = (("down", np.where(down, counts, 0)), ("up", np.where(down, 0, counts)))
    marks = [mark("bars", look, edges, heights) for look, heights in sides if heights.any()]
    marks.append(mark("upright", "quiet", [0.0]))
    title, x = one_line(column.name, 60), Axis(f"change of {one_line(column.name, 40)}")
    said, y = f"Histogram of the changes of {title}.", Axis("rows", holds=(0.0,))
    return Chart(title, said, tuple(marks), x, y, lines=9)


def dumbbells(column: Column, *, single: bool = False) -> Chart | None:
    """Lines from before to after for the changed rows of a number, sorted by their start.

    Each line is the median of at least three rows, unless ``single`` rows may be shown; None where
    rows are too few.
    """
    known = column.moved & ~np.isnan(column.before) & ~np.isnan(column.after)
    before, after = column.before[known], column.after[known]
    order = np.argsort(before, kind="stable")
    count = min(MOST_LINES, order.size // (1 if single else LEAST_ROWS))
    if count < 1:
        return None
    parts = np.array_split(order, count)
    start, end = (np.array([np.median(v[part]) for part in parts]) for v in (before, after))
    heights = -np.arange(count, dtype=np.float64)
    # A NaN after each pair lifts the pen, so that all dumbbells are one line.
    links = np.stack([start, end, np.full(count, np.nan)], axis=1).ravel()
    size, name = round(order.size / count), one_line(column.name, 40)
    each = "a changed row" if size == 1 else f"the median of about {size} changed rows"
    marks = (
        mark("line", "quiet", links, np.repeat(heights, 3)),
        mark("dots", "factual", start, heights, "before"),
        mark("dots", "counterfactual", end, heights, "after"),
    )
    said = f"{name} before and after, for the rows that change."
    x, y = Axis(f"{name}; each line is {each}"), Axis(holds=(0.5, 0.5 - count))
    return Chart(name, said, marks, x, y, lines=2 + count)


def flow(column: Column) -> Flow | None:
    """The flows of the rows that change a category; None where no row does."""
    names, places = grouped_levels(column, FLOW_LEVELS)
    mass = np.zeros((len(names), len(names)))
    np.add.at(mass, tuple(part[column.moved] for part in places), 1.0)
    np.fill_diagonal(mass, 0.0)  # a change between two levels that are drawn together
    if not mass.any():
        return None
    unit = FLOW_HEIGHT / mass.sum()
    thickness = unit * mass
    sides, edges, heights = [], [], []
    for rows, bands in ((mass.sum(axis=1), thickness), (mass.sum(axis=0), thickness.T)):
        # A level is as high as its rows, or as its label where that is higher.
        slots = np.where(rows > 0, np.maximum(unit * rows, LABEL_HEIGHT), 0.0)
        middles = np.cumsum(slots) - slots / 2
        # Each band of a level begins where the one before it ends.
        tops = np.column_stack([middles - unit * rows / 2, bands])
        edges.append(np.cumsum(tops, axis=1))
        heights.append(float(slots.sum()))
        shown = np.flatnonzero(rows).tolist()
        sides.append([Level(one_line(names[k], 24), int(rows[k]), middles[k]) for k in shown])
    name, there = one_line(column.name, 60), np.argwhere(mass)
    bands = [Band(edges[0][i, k], edges[1][k, i], thickness[i, k]) for i, k in there]
    said = f"Rows that change {name}: from the left to the right."
    return Flow(title=name, description=said, height=max(heights), sides=sides, bands=bands)


def projected(explanation: Explanation) -> Chart:
    """Quantiles of all free features at once, projected on their mean change."""
    embedding = explanation.problem.embedding
    before = to_numpy(embedding.embed(explanation.problem.factual))
    after = to_numpy(embedding.embed(explanation.rows.codes))
    change = (after - before).mean(axis=0)
    size = float(np.linalg.norm(change))
    # Where the mean stays, every direction says the same about it: take the diagonal.
    direction = change / size if size > 0 else np.full(change.size, change.size**-0.5)
    said = "Quantiles of the rows projected on their mean change, before and after."
    marks = two_curves(levels_of(len(before)), before @ direction, after @ direction)
    title = "All features, along their mean change"
    return Chart(title, said, marks, BELOW, Axis("standard deviations"))


def feature(column: Column) -> Chart:
    """Quantiles of a number, before and after."""
    title = one_line(column.name, 60)
    marks = two_curves(levels_of(column.before.size), column.before, column.after)
    said = f"Quantiles of {title}, before and after."
    return Chart(title, said, marks, BELOW, Axis(one_line(column.name, 34)))


def convergence(explanation: Explanation) -> Chart:
    """Both upper limits over the iterations and their bounds; distances of sides without limits."""
    history, bounds = explanation.history, explanation.problem.bounds
    steps = history.index.to_numpy()
    marks = []
    for side, bound in (("inputs", bounds.inputs), ("outputs", bounds.outputs)):
        values, what = history[f"{side}_limit"].to_numpy(np.float64), "upper limit"
        if bounds.method == "exact" or np.isnan(values).all():  # no limit of a side without a bound
            values, what = history[side].to_numpy(), "distance"
        marks.append(mark("line", side, steps, values, f"{side}, {what}"))
        if bound is not None:
            marks.append(mark("across", side, y=[bound], name=f"{side}, bound", dashed=True))
    said = "Both distances over the iterations of the search, and their bounds."
    x, y = Axis("iteration"), Axis("distance", holds=(0.0,))
    return Chart("The search", said, tuple(marks), x, y)


def weight(explanation: Explanation) -> Chart:
    """The weight eta of the outputs over the iterations."""
    eta = explanation.history["eta"][1:]
    said = "The weight eta of the outputs over the iterations of the search."
    y = Axis("weight of the outputs (eta)", holds=(0.0, 1.0))
    drawn = mark("line", "factual", eta.index, eta)
    return Chart("The balance", said, (drawn,), Axis("iteration"), y)


def frontier(records: pd.DataFrame | Frontier) -> Chart:
    """How close the outputs come for how far the inputs move; see `elsewise.plots.frontier`."""
    given: Any = getattr(records, "table", records)
    table = columns_of(given, "inputs", "outputs").sort_values("inputs")
    look, places = "counterfactual", (table["inputs"], table["outputs"])
    marks = [mark("line", look, *places, "distance"), mark("dots", look, *places)]
    if {"inputs_limit", "outputs_limit"} <= set(table.columns):
        limits = table["inputs_limit"], table["outputs_limit"]
        marks.append(mark("line", look, *limits, "upper limit", dashed=True))
    if "chosen" in table.columns:
        here = table[table["chosen"].astype(bool)]
        name = "chosen" if given is records else "knee"
        marks.append(mark("dots", "target", here["inputs"], here["outputs"], name))
    bounds = getattr(records, "bounds", None) or Bounds()
    if bounds.inputs is not None:
        marks.append(mark("upright", "inputs", [bounds.inputs], (), "input bound", dashed=True))
    if bounds.outputs is not None:
        marks.append(mark("across", "outputs", (), [bounds.outputs], "output bound", dashed=True))
    return _distances("Frontier", f"{len(table)} points; both distances are best small.", marks)


def comparison(records: pd.DataFrame) -> Chart:
    """Methods or runs side by side, with lines up to their limits where there are any."""
    table = columns_of(records, "name", "inputs", "outputs")
    marks = []
    for k, row in enumerate(table.to_dict("records")):
        look, inputs, outputs = CYCLE_LOOKS[k % len(CYCLE_LOOKS)], row["inputs"], row["outputs"]
        far, high = row.get("inputs_limit", inputs), row.get("outputs_limit", outputs)
        marks.append(mark("line", look, [far, inputs, inputs], [outputs, outputs, high]))
        marks.append(mark("dots", look, [inputs], [outputs], one_line(row["name"], 34)))
    title = "Side by side: closer to the corner is better"
    return _distances(title, f"{len(table)} explanations; lines reach up to the limits.", marks)


def _distances(title: str, description: str, marks: list[Mark]) -> Chart:
    """A picture of output against input distances, which begin at 0."""
    x = Axis("input distance (how far rows move)", holds=(0.0,))
    y = Axis("output distance (to the target)", holds=(0.0,))
    return Chart(title, description, tuple(marks), x, y)


def policy(records: pd.DataFrame) -> tuple[Chart, Chart]:
    """Reach, and cost of a row that arrives, against the number of actions or the budget."""
    names = ["k", "budget", "reach", "mean_cost", "limit"]
    table = columns_of(records, *names)[names].astype(np.float64)
    by_budget = bool(np.isfinite(table["budget"]).all())
    against, x = table["budget" if by_budget else "k"], Axis("budget" if by_budget else "actions")
    look, places = "counterfactual", (against, table["reach"])
    marks = [mark("line", look, *places), mark("dots", look, *places)]
    if not table["limit"].isna().any():
        marks.insert(0, mark("area", look, *places, low=table["limit"].to_numpy()))
    cost = mark("line", "inputs", against, table["mean_cost"])
    title = "The price of simplicity"
    said = "Share of rows in need that arrive, for growing policies."
    arrive = Axis("rows in need that arrive", percent=True, holds=(0.0, 1.0))
    paid = "Mean cost of a row that arrives, for growing policies."
    each = Axis("cost of a row that arrives", holds=(0.0,))
    return Chart(title, said, tuple(marks), x, arrive), Chart(title, paid, (cost,), x, each)


def grouped_levels(column: Column, most: int) -> tuple[list[str], tuple[np.ndarray, np.ndarray]]:
    """Return names of the drawn levels and, before and after, the place of each row among them.

    The largest levels come first (ordered ones in their order), the rest together, missing last.
    """
    count = len(column.levels)
    both = column.before, column.after
    codes = [np.where(np.isnan(values), count, values).astype(np.int64) for values in both]
    rows = np.bincount(np.concatenate(codes), minlength=count + 1)[:count]
    shown = np.argsort(-rows, kind="stable")
    shown = shown[rows[shown] > 0]
    kept = shown if shown.size <= most else shown[: most - 1]
    if column.ordered:
        kept = np.sort(kept)
    names = [str(column.levels[code]) for code in kept]
    place = np.full(count + 1, -1)
    place[kept] = np.arange(kept.size)
    if kept.size < shown.size:
        names.append(OTHERS)
        place[shown] = np.where(place[shown] < 0, len(names) - 1, place[shown])
    if any((values == count).any() for values in codes):
        names.append(MISSING)
        place[count] = len(names) - 1
    return names, (place[codes[0]], place[codes[1]])


def change_bars(explanation: Explanation, most: int) -> Bars:
    """Features by what their changes add to the mean output; by their share without a model."""
    table = changes_of(explanation).iloc[:most]
    known = bool(table["effect"].notna().all())
    values = table["effect"].abs() if known else table["share"]
    told = [_look(row, len(explanation.outputs)) for _, row in table.iterrows()]
    probability = bool(explanation.problem.outputs.probability) or not known
    axis = Axis("effect on the mean output" if known else "share of the distance", probability)
    looks, words = zip(*told, strict=True) if told else ((), ())
    names = list(map(str, table.index))
    return Bars("What changes most", axis, names, values.to_numpy(), looks, words)


def _look(row: pd.Series[Any], rows: int) -> tuple[str, str]:
    """Look and words of one feature's bar."""
    moved = rows_words(round(row["rows_moved"] * rows))
    if np.isnan(row["median_move"]):
        return "swap", moved
    arrow, look = ("▲", "up") if row["median_move"] > 0 else ("▼", "down")
    return look, f"{moved}, {arrow} {amount(abs(row['median_move']))} in the median"


def level_bars(column: Column) -> Bars:
    """The most frequent changes of level of a category."""
    found, counts = (part[:MOST_CHANGES] for part in column.level_changes())
    names = [" → ".join(one_line(column.level(code), 13) for code in pair) for pair in found]
    return Bars(str(column.name), Axis("rows"), names, counts, ["swap"] * len(names))


def pair_bars(column: Column) -> Bars:
    """Shares of the levels of a category, before and after."""
    names, places = grouped_levels(column, BAR_LEVELS)
    shares = np.stack([np.bincount(p, minlength=len(names)) / p.size for p in places], axis=1)
    axis = Axis("share of rows: before (grey) and after", percent=True)
    looks = ["factual", "counterfactual"] * len(names)
    names = [text for name in names for text in (name, "")]
    return Bars(str(column.name), axis, names, shares.ravel(), looks)


def waterfall_bars(difference: Difference, most: int) -> Bars:
    """Parts of a difference with their intervals, each where the one above ends."""
    table = difference.attributes
    names, parts, looks, texts = [], [], [], []
    for name, row in table[:most].iterrows():
        names.append(one_line(name, 60))
        parts.append(row["part"])
        looks.append(("up" if row["part"] > 0 else "down") + ("" if row["named"] else " pale"))
        texts.append(f"{amount(row['part'])} ({amount(row['low'])} to {amount(row['high'])})")
    if len(table) > most:
        rest = float(table["part"].to_numpy()[most:].sum())
        names.append(f"{len(table) - most} others")
        parts.append(rest)
        looks.append("up pale" if rest > 0 else "down pale")
        texts.append(amount(rest))
    before, after = difference.before, difference.after
    ends = before + np.cumsum([0.0, *parts])
    return Bars(
        "What the change goes through",
        Axis("score"),
        names=["before", *names, "after"],
        ends=[before, *ends[1:], after],
        looks=["factual", *looks, "factual"],
        texts=[amount(before), *texts, amount(after)],
        starts=[before, *ends[:-1], after],
    )
