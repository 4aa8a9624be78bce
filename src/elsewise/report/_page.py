"""The sections of a report, made from an explanation."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import numpy as np

from elsewise import plots
from elsewise._arrays import changed_cells, to_numpy
from elsewise.analysis import changes as changes_of
from elsewise.analysis import correlation_pair, flows, groups
from elsewise.report._numbers import correlation_changes, drift, fingerprints, output_table
from elsewise.report._parts import Section, Table, cell_text, figure, table_section
from elsewise.report._words import change_words, level
from elsewise.text import amount, one_line, percent, signed

if TYPE_CHECKING:
    from elsewise.explanation import Explanation


MOST_PANELS = 12
MOST_FLOWS = 4
MOST_ROWS = 15
PACKAGES = ("elsewise", "numpy", "scipy", "pandas", "scikit-learn", "matplotlib")
BAND_READING = "The band is where the counterfactual's curve may lie in the population."
PSI_READING = "PSI is often read so: under 0.1 stable, up to 0.25 some shift, above a large one."


def sections(
    explanation: Explanation,
    output: str,
    command: str | None,
    extras: Sequence[Section],
    rows: int,
    first: Sequence[Section] = (),
) -> list[Section]:
    """Return the parts of a report below its headline and certificate, in order."""
    made: list[Section | None] = [
        *first,
        _outputs(explanation, output),
        _features(explanation),
        _groups(explanation),
        _flows(explanation),
        _joint(explanation),
        _drift(explanation),
        *extras,
        _search(explanation),
        _single_rows(explanation, rows),
        _origin(explanation, command),
    ]
    return [section for section in made if section is not None]


def _outputs(explanation: Explanation, output: str) -> Section:
    count = explanation.outputs.shape[1]
    figures, tables = [], []
    for k in range(min(count, 6)):
        table = output_table(explanation, k)
        before, after = (level(explanation, value) for value in table.to_numpy()[0].tolist())
        what = output if count == 1 else f"{output}, column {k + 1}"
        figures.append(
            figure(
                partial(plots.outputs, explanation, column=k, label=what),
                f"outputs-{k}",
                f"Quantiles of the {what}: factual, counterfactual and target.",
                f"The mean goes from {before} to {after}.",
                small=count > 1,
            )
        )
        cells = tuple(
            (str(name), *(level(explanation, value) for value in row))
            for name, row in zip(table.index, table.to_numpy(), strict=True)
        )
        tables.append(
            Table(caption=f"The {what} in numbers", columns=("", *table.columns), rows=cells)
        )
    target = explanation.problem.target
    describe = getattr(target, "describe", None)
    exact = explanation.certificate.confidence is None
    return Section(
        anchor="outputs",
        title="What the model answers",
        text=(
            f"Wanted: {describe() if describe else target.name}.",
            "Each curve shows, for every share of rows, the output they stay below."
            + ("" if exact else f" {BAND_READING}"),
        ),
        figures=tuple(figures),
        tables=tuple(tables),
        beside=count == 1,
    )


def _features(explanation: Explanation) -> Section:
    changes = changes_of(explanation)
    first = changes.index[0]
    figures = [
        figure(
            partial(plots.changes, explanation),
            "changes",
            "Features by what their changes add to the mean output.",
            f"{first}: {change_words(explanation, first, changes.iloc[0])}.",
            (4.8, 0.9 + 0.32 * min(len(changes), 15)),
        )
    ]
    moved = changes[changes["rows_moved"] > 0]
    for k, name in enumerate(moved.index[:MOST_PANELS]):
        figures.append(
            figure(
                lambda ax, name=name: plots.moves(explanation, name, ax),
                f"feature-{k}",
                f"{name}: {change_words(explanation, name, moved.iloc[k])}.",
                "The changes, over the rows that change.",
                (4.4, 2.9),
                small=True,
            )
        )
    rows = tuple(
        (
            str(name),
            "unknown" if np.isnan(row["effect"]) else signed(float(row["effect"])),
            percent(row["rows_moved"]),
            change_words(explanation, name, row),
            percent(row["share"]),
            amount(row["distance"]),
        )
        for name, row in changes.iterrows()
    )
    still = [str(f.name) for f in explanation.problem.schema.features if not f.free]
    text = ["Sorted by the effect on the mean output: what is lost if a feature alone is put back."]
    if still:
        text.append(f"Kept as they are: {', '.join(still)}.")
    if len(moved) > MOST_PANELS:
        text.append(f"The {MOST_PANELS} largest have a picture, the table has all.")
    columns = ("feature", "effect", "rows that change", "how", "share of distance", "distance (SD)")
    table = Table(caption="What changes, feature by feature", columns=columns, rows=rows)
    return Section(
        anchor="features",
        title="What is changed",
        text=tuple(text),
        figures=tuple(figures),
        tables=(table,),
    )


def _groups(explanation: Explanation) -> Section:
    found = groups(explanation)
    rows = [
        (
            one_line(group.who, 200),
            f"{group.rows:,}",
            percent(group.share),
            one_line("; ".join(group.changes) or "nothing changes", 300),
            percent(group.explained),
        )
        for group in found
    ]
    columns = ("who", "rows", "share of rows", "what changes for them", "share of the shift")
    text = f"The mean moves of these groups explain {percent(found.explained)} of the shift."
    caption = "Groups of rows that move alike"
    return table_section("groups", "Who moves, and how", caption, columns, rows, (text,))


def _flows(explanation: Explanation) -> Section | None:
    table = flows(explanation)
    table = table[table["from"] != table["to"]].sort_values("rows", ascending=False, kind="stable")
    if table.empty:
        return None
    moved = set(table["feature"])
    names = [name for name in changes_of(explanation).index if name in moved][:MOST_FLOWS]
    rows = [
        (str(name), str(start), str(end), f"{count:,}", percent(share))
        for name, start, end, count, share in table.itertuples(index=False, name=None)
    ]
    figures = []
    for k, name in enumerate(names):
        _, start, end, _, share = next(row for row in rows if row[0] == str(name))
        figures.append(
            figure(
                lambda ax, name=name: plots.flows(explanation, name, ax),
                f"flows-{k}",
                f"{name}: rows moving between categories.",
                f"The largest flow: {share} of rows from {start} to {end}.",
                (4.4, 3.3),
                small=True,
            )
        )
    columns = ("feature", "from", "to", "rows", "share of rows")
    return Section(
        anchor="flows",
        title="Rows that change category",
        figures=tuple(figures),
        tables=(Table(caption="The largest flows", columns=columns, rows=tuple(rows[:MOST_ROWS])),),
    )


def _joint(explanation: Explanation) -> Section:
    names, before, after = correlation_pair(explanation)
    picture = figure(
        partial(plots.projected, explanation),
        "projected",
        "All features at once, projected on their mean change.",
        "Quantile curves of the projected rows, factual and counterfactual.",
        (4.4, 3.2),
    )
    rows = tuple(
        (str(a), str(b), f"{r:.2f}", f"{s:.2f}")
        for a, b, r, s in correlation_changes(names, before, after)
    )
    table = Table(
        caption="Correlations that change most",
        columns=("feature", "and", "factual", "counterfactual"),
        rows=rows,
    )
    return Section(
        anchor="joint",
        title="Does the population hang together?",
        text=("The distance compares joint distributions, so relations between features count.",),
        figures=(picture,),
        tables=(table,) if rows else (),
        beside=bool(rows),
    )


def _drift(explanation: Explanation) -> Section:
    table = drift(explanation)
    rows = [(str(name), amount(r["psi"]), cell_text(r["ks"])) for name, r in table.iterrows()]
    title = "How large the shift is by usual measures"
    caption = "Population stability index and Kolmogorov-Smirnov distance"
    columns = ("feature", "PSI", "KS (unordered categories: total variation)")
    return table_section("drift", title, caption, columns, rows, (PSI_READING,))


def _search(explanation: Explanation) -> Section | None:
    """The iterations of the search; None for a question, whose rows are searched one by one."""
    if not explanation.iterations:
        return None
    status = str(explanation.status)
    what = "distances" if explanation.certificate.confidence is None else "upper limits"
    return Section(
        anchor="search",
        title="How it was found",
        text=(f"{len(explanation.iterations) - 1} iterations, and then: {status}.",),
        figures=(
            figure(
                partial(plots.convergence, explanation),
                "convergence",
                f"Both {what}, their bounds, and the balance eta.",
                "Lines over the iterations of the search.",
                (4.7, 3.9),
            ),
        ),
    )


def _single_rows(explanation: Explanation, rows: int) -> Section | None:
    """Rows that changed, those whose output changed most first; only when asked for."""
    if rows < 1:
        return None
    before, after = explanation.factual, explanation.counterfactual
    old, new = explanation.factual_outputs[:, 0], explanation.outputs[:, 0]
    codes = explanation.problem.factual, explanation.rows.codes
    changed = np.flatnonzero(changed_cells(*map(to_numpy, codes)).any(axis=1))
    shown = changed[np.argsort(-np.abs(new - old)[changed], kind="stable")][:rows]
    cells = [
        (
            str(before.index[k]),
            f"{level(explanation, float(old[k]))} → {level(explanation, float(new[k]))}",
            *(_arrow(a, b) for a, b in zip(before.iloc[k], after.iloc[k], strict=True)),
        )
        for k in shown.tolist()
    ]
    columns = ("row", "output", *map(str, before.columns))
    caption = f"{len(shown)} of {len(changed):,} changed rows, largest change of the output first"
    return table_section("rows", "Single rows", caption, columns, cells)


def _arrow(before: object, after: object) -> str:
    old, new = cell_text(before), cell_text(after)
    return old if old == new else f"{old} → {new}"


def _origin(explanation: Explanation, command: str | None) -> Section:
    problem, settings = explanation.problem, explanation.settings
    hashes = fingerprints(explanation)
    bounds = problem.bounds
    pairs: Sequence[tuple[str, object]] = (
        ("model", problem.outputs.description),
        ("target", problem.target.name),
        ("input bound", "as small as possible" if bounds.inputs is None else bounds.inputs),
        ("output bound", "as small as possible" if bounds.outputs is None else bounds.outputs),
        ("confidence", percent(bounds.confidence, exact=True)),
        ("trim", percent(bounds.trim, exact=True)),
        ("kind of limits", bounds.method),
        ("rows", f"{len(explanation.outputs):,}"),
        ("free features", sum(feature.free for feature in problem.schema.features)),
        ("seed", problem.seed),
        ("settings", settings),
        ("data (SHA-256 of the rows)", hashes["data"]),
        ("model (SHA-256 of its outputs on them)", hashes["model"]),
        ("made with", ", ".join(_versions())),
    )
    rows = [(name, str(value)) for name, value in pairs]
    notices = [f"Note on {notice}." for notice in explanation.status.notices]
    title, caption, columns = "Where this comes from", "Settings and origin", ("what", "value")
    section = table_section("origin", title, caption, columns, rows, notices)
    return replace(section, code=command or _call(explanation))


def _call(explanation: Explanation) -> str:
    problem = explanation.problem
    return (
        f"ew.explain(model, rows, target=ew.targets.{problem.target.name}, "
        f"bounds=ew.{problem.bounds}, seed={problem.seed})"
    )


def _versions() -> list[str]:
    found = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return found
