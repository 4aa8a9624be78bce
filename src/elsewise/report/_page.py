"""The sections of a report, made from an explanation: what was found first, theory last, folded."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from elsewise.analysis import MEANING, Column, groups, plausibility
from elsewise.certificate import interval_text, probability_text
from elsewise.errors import InvalidInput
from elsewise.plots import charts
from elsewise.policy import summary_of
from elsewise.report._render import Card, Change, Section, Table, bar_cells, cell_text, frame_table
from elsewise.report._view import View, capital, drift, fingerprints, interval_words
from elsewise.text import amount, figure, one_line, percent

if TYPE_CHECKING:
    from elsewise.analysis import Effects, Frontier, Stability
    from elsewise.certificate import Certificate
    from elsewise.explanation import Explanation
    from elsewise.policy import Policy

# Features with pictures, and rows of a table of features.
MOST_CARDS, MOST_FEATURES = 12, 60
# Output columns with pictures.
MOST_OUTPUTS = 6
# A picture of fewer changed rows says no more than its words.
FEWEST_DRAWN = 3
PACKAGES = ("elsewise", "numpy", "scipy", "pandas", "scikit-learn")
# Pairs of features whose correlations are told.
MOST_PAIRS = 8
PSI_READING = "PSI is often read so: under 0.1 stable, up to 0.25 some shift, above a large one."


def sections(
    view: View,
    rows: int,
    command: str | None,
    policy: Policy | None,
    frontier: Frontier | None,
    stability: Stability | None,
    effects: Effects | None,
) -> list[Section]:
    """Return the parts of a report in order, the folded ones last."""
    made = [
        _features(view),
        _moves(view, single=rows > 0),
        _outputs(view),
        _single_rows(view, rows),
        *([_groups(view), _plausibility(view)] if view.moved.any() else []),
        None if policy is None else _policy(view, policy),
        None if frontier is None else _frontier(frontier),
        None if stability is None else _stability(stability),
        None if effects is None else _effects(effects),
        _measures(view),
        _joint(view),
        _search(view),
        _origin(view.explanation, command),
    ]
    return [section for section in made if section is not None]


def _features(view: View) -> Section:
    moved = view.changes[view.changes["rows_moved"] > 0]
    shown, names = moved[:MOST_FEATURES], moved.index.tolist()
    texts = [f"{round(s * view.rows):,} ({percent(s)})" for s in shown["rows_moved"]]
    zeros, signs = np.zeros(len(shown)), np.where(shown["effect"] > 0, "up", "down")
    effects = bar_cells(view.effects(), zeros, shown["effect"], signs)
    shares = bar_cells(texts, zeros, shown["rows_moved"], ["up"] * len(shown))
    labels = ((one_line(name, 80), view.columns[name].change_words()) for name in shown.index)
    rows = list(zip(labels, effects, shares, strict=True))
    columns = ("feature", f"effect on the mean{view.unit}", "rows that change")
    tables = [Table("Largest effect first", columns, rows)] if rows else []
    return Section("features", "What is changed", _feature_notes(view, names), tables)


def _feature_notes(view: View, moved: list[object]) -> list[str]:
    """What the table of features means, and which features are not in it."""
    text = [
        f"The effect of a feature is what its changes add to the mean {view.output}: what would be "
        "lost if that feature alone were put back."
    ]
    schema = view.explanation.problem.schema
    fixed = [f.name for f in schema.features if not f.free]
    stay = [name for name in view.changes.index if name not in moved]
    for what, names in (("Could change, but stay", stay), ("Kept as they are", fixed)):
        if names:
            shown = ", ".join(one_line(name, 60) for name in names[:MOST_FEATURES])
            more = len(names) - MOST_FEATURES
            text.append(f"{what}: {shown}{f' and {more:,} others' if more > 0 else ''}.")
    if len(moved) > MOST_FEATURES:
        text.append(f"{len(moved) - MOST_FEATURES:,} features with smaller effects are left out.")
    return text


def _moves(view: View, single: bool) -> Section | None:
    """Pictures of the moves of each feature that enough rows change, largest effect first."""
    drawn = [n for n in view.changes.index if view.columns[n].moved.sum() >= FEWEST_DRAWN]
    if not drawn:
        return None
    few = f"The {MOST_CARDS} largest have a picture, the table has all."
    text = [few] if len(drawn) > MOST_CARDS else []
    cards = [_card(view.columns[name], single) for name in drawn[:MOST_CARDS]]
    return Section("moves", "How features move", text, cards=cards)


def _card(column: Column, single: bool) -> Card:
    """Moves of one feature over the rows in which it changes."""
    name, words = one_line(column.name, 80), column.change_words()
    if not column.numeric:
        flow = charts.flow(column)
        return Card(name, words, [] if flow is None else [flow])
    lines, moves = charts.dumbbells(column, single=single), charts.moves(column)
    return Card(name, words, [moves] if lines is None else [lines, moves])


def _outputs(view: View) -> Section:
    explanation = view.explanation
    count = explanation.outputs.shape[1]
    cards, tables = [], []
    for k in range(min(count, MOST_OUTPUTS)):
        what = view.output if count == 1 else f"{view.output}, column {k + 1}"
        found = _output_table(explanation, k).map(view.level)
        before, after = found.to_numpy()[0]
        words = f"The mean {what} goes from {before} to {after}."
        cards.append(Card.of(charts.output_histogram(explanation, k, what), words))
        quantiles = replace(charts.outputs(explanation, k, what), title="The same as quantiles")
        cards.append(Card.of(quantiles, "For every share of the rows, what they stay below."))
        tables.append(frame_table(found, f"{what}, in numbers"))
    return Section("outputs", "What the model answers", (), tables, cards)


def _output_table(explanation: Explanation, column: int) -> pd.DataFrame:
    """Mean and quantiles of the model's output, before and after."""
    levels = (0.1, 0.25, 0.5, 0.75, 0.9)
    before, after = explanation.factual_outputs[:, column], explanation.outputs[:, column]
    found = {"before": [before.mean(), *np.quantile(before, levels)]}
    found["after"] = [after.mean(), *np.quantile(after, levels)]
    names = ["mean", *(f"{percent(level)} quantile" for level in levels)]
    return pd.DataFrame(found, index=pd.Index(names, name=""))


def _groups(view: View) -> Section:
    found = groups(view.explanation)
    rows = []
    for group in found:
        who, size = one_line(group.who, 200), f"{group.rows:,} ({percent(group.share)})"
        what = one_line("; ".join(group.changes) or "nothing changes", 300)
        rows.append((who, size, what, percent(group.explained)))
    columns = ("who", "rows", "what changes for them, on average", "share of the shift")
    text = f"The mean moves of these groups explain {percent(found.explained)} of the shift."
    tables = [Table("Groups of rows that move alike", columns, rows)]
    return Section("groups", "Who moves, and how", [text], tables)


def _plausibility(view: View) -> Section | None:
    """Whether changed rows are as near to rows that exist as they were."""
    try:
        found = plausibility(view.explanation)
    except InvalidInput:  # fewer than two rows to be near to
        return None
    far = [percent(share) for share in found["farther"]]
    text = (
        "Farther from the nearest real row than 95% of the rows were: "
        f"{far[0]} of the rows before, {far[1]} after."
    )
    names = {"q50": "median", "q90": "90% of rows", "q95": "95% of rows"}
    shown = found.rename(columns=names)[[*names.values()]].set_axis(["before", "after"])
    caption = "Distance to the nearest real row, in standard deviations"
    tables = [frame_table(shown.rename_axis(""), caption)]
    return Section("plausibility", "Do the changed rows look real?", [text], tables)


def _single_rows(view: View, rows: int) -> Section | None:
    """Rows that changed, those whose output changed most first; only when asked for."""
    if rows < 1:
        return None
    (old, new), changed = view.both, np.flatnonzero(view.moved)
    shown = changed[np.argsort(-np.abs(new - old)[changed], kind="stable")][:rows]
    before, after = (f.iloc[shown].astype(object).map(cell_text) for f in view.explanation.frames)
    # Columns that no shown row changes would push the others off the page.
    kept = np.flatnonzero((before != after).to_numpy().any(axis=0))
    was, now = before.to_numpy()[:, kept], after.to_numpy()[:, kept]
    cells = []
    for place, k in enumerate(shown):
        output = Change(view.level(float(old[k])), view.level(float(new[k])))
        pairs = zip(was[place], now[place], strict=True)
        changes = (a if a == b else Change(a, b) for a, b in pairs)
        cells.append((str(before.index[place]), output, *changes))
    columns = ("row", one_line(view.output, 60), *map(str, before.columns[kept]))
    caption = f"{len(shown):,} of {len(changed):,} changed rows, largest change of the output first"
    text = "Marked cells change: what was, then what is. Columns that stay are left out."
    return Section("rows", "Changed rows", [text], [Table(caption, columns, cells)])


def _policy(view: View, policy: Policy) -> Section:
    """The actions of a policy, or why there are none."""
    if not policy.lines:
        why = f"No action helps anybody, because {policy.reason}."
        return Section("policy", "In a few actions", [why])
    before, after = map(view.level, policy.means)
    size = len(policy.lines)
    means = (
        f"By {'this action' if size == 1 else f'these {size} actions'} the mean {view.output} "
        f"goes from {before} to {after}; by the answer itself, to {view.level(view.means[1])}."
    )
    rows = [
        (capital(line.what), line.who, f"{line.rows:,}", cell_text(float(line.cost)))
        for line in policy.lines
    ]
    columns = ("action", "for", "rows", "cost of a row")
    tables = [Table("Who does what", columns, rows)]
    return Section("policy", "In a few actions", [*summary_of(policy, view.name), means], tables)


def _frontier(frontier: Frontier) -> Section:
    found = frontier.table
    text = [
        "Each point is a population that no other beats: the closer its outputs, the further "
        f"its rows. Marked: the knee ({frontier.reason}).",
        f"Distances of {frontier.rows:,} rows ({frontier.kind}); each limit has its own level. "
        f"Share: of rows with an output of at least {cell_text(frontier.cutoff)}.",
    ]
    tables = [frame_table(found, f"The frontier, {len(found)} points")]
    cards = [Card.of(charts.frontier(frontier))]
    return Section("frontier", "How far for how close", text, tables, cards)


def _stability(stability: Stability) -> Section:
    text = [
        repr(stability),
        "The second table asks the same question with another trim, with either random half of "
        "the background, and with another weight. Distances are measured on the rows and "
        "scales as given; limits are those of each answer's own certificate.",
    ]
    spread = frame_table(stability.spread, f"Spread over {stability.seeds} seeds")
    choices = frame_table(stability.sensitivity, "Sensitivity to choices")
    return Section("stability", "How stable the answer is", text, [spread, choices])


def _effects(effects: Effects) -> Section:
    found = effects.table
    ends = (f"{cell_text(a)} to {cell_text(b)}" for a, b in found[["low", "high"]].to_numpy())
    shown = found[["before", "after", "difference"]].copy()
    shown[f"{percent(effects.level, exact=True)} interval"] = list(ends)
    tables = [frame_table(shown.assign(rows=found["rows"]), "Before and after")]
    return Section("effects", "What the move does to accuracy and fairness", [MEANING], tables)


def certificate_tables(certificate: Certificate, output: str = "") -> list[Table]:
    """Return the certificate in numbers: both distances, and what people decide on."""
    sides = []
    for name, side in certificate.sides.items():
        level = "–" if side.probability is None else probability_text(side.probability)
        known = side.estimate, side.untrimmed, side.upper_limit, side.bound
        shown = ("–" if value is None else figure(value) for value in known)
        sides.append((name, *shown, level, side.method, str(side.directions)))
    numbers = "distance", "untrimmed", "upper limit", "bound", "P", "method", "directions"
    found = [Table("Distances", ("side", *numbers), sides)]
    readouts = []
    for readout in certificate.readouts:
        name = f"mean {output}" if output and readout.name.startswith("mean ") else readout.name
        intervals = readout.before, readout.after, readout.together or readout.after
        texts = (interval_text(interval, readout.in_percent) for interval in intervals)
        readouts.append((name, *texts, readout.after.method))
    if readouts:
        names = ("outputs of the certified rows", "before", "after", "after, all at once", "method")
        found.append(Table(interval_words(certificate), names, readouts))
    return found


def _measures(view: View) -> Section:
    """How far each feature moves, by the paper's distance and by usual measures of drift."""
    measures = drift(view)
    # The output, which comes first, is no part of the distance of the inputs.
    distances = ["–", *map(amount, view.changes["distance"])]
    shares = ["–", *map(percent, view.changes["share"])]
    drifts = (map(amount, measures["psi"]), (cell_text(ks, "–") for ks in measures["ks"]))
    rows = zip(map(str, measures.index), distances, shares, *drifts, strict=True)
    columns = ("feature", "distance (SD)", "share of the distance", "PSI", "KS")
    text = f"{PSI_READING} The KS of unordered categories is the total variation."
    tables = [Table("Distances and drift, feature by feature", columns, list(rows))]
    title = "How large the shift is, by usual measures"
    return Section("drift", title, [text], tables, folded=True)


def _joint(view: View) -> Section | None:
    """The pairs of numbers whose correlation changes most; nothing with fewer than two numbers."""
    numbers = [column for column in view.columns.values() if column.numeric]
    before = _correlations([column.before for column in numbers])
    after = _correlations([column.after for column in numbers])
    i, k = np.triu_indices(len(numbers), k=1)
    change = np.abs(after - before)[i, k] if numbers else np.empty(0)
    known = np.flatnonzero(~np.isnan(change))  # numbers that do not vary have no correlation
    largest = known[np.argsort(-change[known], kind="stable")][:MOST_PAIRS]
    if not largest.size:
        return None
    names, pairs = [str(one.name) for one in numbers], zip(i[largest], k[largest], strict=True)
    rows = [(names[a], names[b], f"{before[a, b]:z.2f}", f"{after[a, b]:z.2f}") for a, b in pairs]
    text = "The distance compares joint distributions, so relations between features count."
    tables = [Table("Correlations that change most", ("feature", "and", "before", "after"), rows)]
    return Section("joint", "Does the population hang together?", [text], tables, folded=True)


def _correlations(columns: list[np.ndarray]) -> np.ndarray:
    """Correlations of columns, in which a missing cell counts as the mean."""
    numbers = pd.DataFrame(np.array(columns).T)
    return numbers.fillna(numbers.mean()).corr().to_numpy()


def _search(view: View) -> Section | None:
    """The iterations of the search; None for a question, whose rows are searched one by one."""
    explanation = view.explanation
    if not explanation.iterations:
        return None
    text = f"{len(explanation.iterations) - 1} iterations, and then: {explanation.status}."
    cards = [Card.of(charts.convergence(explanation)), Card.of(charts.weight(explanation))]
    return Section("search", "How it was found", [text], cards=cards, folded=True)


def _origin(explanation: Explanation, command: str | None) -> Section:
    problem, settings = explanation.problem, explanation.settings
    hashes = fingerprints(explanation)
    bounds, python = problem.bounds, f"Python {platform.python_version()}"
    pairs: Sequence[tuple[str, object]] = (
        ("model", problem.outputs.description),
        ("target", problem.target.name),
        ("input bound", "as small as possible" if bounds.inputs is None else bounds.inputs),
        ("output bound", "as small as possible" if bounds.outputs is None else bounds.outputs),
        *([] if bounds.moves is None else [("bound on a row's move", bounds.moves)]),
        ("confidence", percent(bounds.confidence, exact=True)),
        ("trim", percent(bounds.trim, exact=True)),
        ("kind of limits", bounds.method),
        ("rows", f"{len(explanation.outputs):,}"),
        ("free features", sum(feature.free for feature in problem.schema.features)),
        ("seed", problem.seed),
        ("settings", settings),
        ("data (SHA-256 of the rows)", hashes["data"]),
        ("model (SHA-256 of its outputs on them)", hashes["model"]),
        ("made with", ", ".join([python, *(f"{name} {version(name)}" for name in PACKAGES)])),
    )
    rows = [(name, str(value)) for name, value in pairs]
    tables = [Table("Settings and origin", ("what", "value"), rows)]
    call = f"ew.explain(model, rows, target=ew.targets.{problem.target.name}, bounds=ew.{bounds}, "
    code = command or f"{call}seed={problem.seed})"
    return Section("origin", "Where this comes from", (), tables, code=code, folded=True)
