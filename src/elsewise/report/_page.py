"""The sections of a report, made from an explanation: what was found first, theory last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from elsewise.analysis import Column, groups, plausibility
from elsewise.errors import InvalidInput
from elsewise.plots import charts
from elsewise.report._numbers import output_table
from elsewise.report._parts import (
    Card,
    Change,
    Named,
    Picture,
    Section,
    card,
    cell_text,
    scaled_bars,
    table,
)
from elsewise.report._view import View
from elsewise.report._words import change_words
from elsewise.text import one_line, percent

# Features with pictures, and rows of a table of features.
MOST_CARDS, MOST_FEATURES = 12, 60
# Output columns with pictures.
MOST_OUTPUTS = 6
# A picture of fewer changed rows says no more than its words.
FEWEST_DRAWN = 3


def sections(view: View, extras: Sequence[Section], rows: int) -> list[Section]:
    """Return the parts of a report below its first screen and above its certificate, in order."""
    made: list[Section | None] = [
        _features(view),
        _moves(view, single=rows > 0),
        _outputs(view),
        _single_rows(view, rows),
        _groups(view),
        _plausibility(view),
        *extras,
    ]
    return [section for section in made if section is not None]


def _features(view: View) -> Section:
    changes = view.changes
    effects = scaled_bars(changes["effect"].tolist(), view.effects())
    shares = scaled_bars(
        changes["rows_moved"].tolist(),
        [f"{round(share * view.rows):,} ({percent(share)})" for share in changes["rows_moved"]],
    )
    moved = [k for k, share in enumerate(changes["rows_moved"]) if share > 0]
    names = changes.index.tolist()
    rows = [
        (Named(one_line(names[k], 80), change_words(view, names[k])), effects[k], shares[k])
        for k in moved[:MOST_FEATURES]
    ]
    unit = ", points" if view.probability else ""
    columns = ("feature", f"effect on the mean{unit}", "rows that change")
    return Section(
        anchor="features",
        title="What is changed",
        text=tuple(_feature_notes(view, [names[k] for k in moved])),
        tables=(table("Largest effect first", columns, rows),) if rows else (),
    )


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
    more = len(drawn) - MOST_CARDS
    return Section(
        anchor="moves",
        title="How features move",
        text=(f"The {MOST_CARDS} largest have a picture, the table has all.",) if more > 0 else (),
        cards=tuple(_card(view, view.columns[name], single) for name in drawn[:MOST_CARDS]),
    )


def _card(view: View, column: Column, single: bool) -> Card:
    """Moves of one feature over the rows in which it changes."""
    pictures: list[Picture | None]
    if column.numeric:
        pictures = [charts.dumbbells(column, single=single), charts.moves(column)]
    else:
        pictures = [charts.flow(column)]
    return Card(
        title=one_line(column.name, 80),
        text=change_words(view, column.name),
        pictures=tuple(picture for picture in pictures if picture is not None),
    )


def _outputs(view: View) -> Section:
    explanation = view.explanation
    count = explanation.outputs.shape[1]
    cards, tables = [], []
    for k in range(min(count, MOST_OUTPUTS)):
        what = view.output if count == 1 else f"{view.output}, column {k + 1}"
        found = output_table(explanation, k)
        before, after = map(view.level, found.to_numpy()[0].tolist())
        words = f"The mean {what} goes from {before} to {after}."
        cards.append(card(charts.output_histogram(explanation, k, what), words))
        quantiles = replace(charts.outputs(explanation, k, what), title="The same as quantiles")
        cards.append(card(quantiles, "For every share of the rows, what they stay below."))
        cells = [
            (str(name), *map(view.level, row))
            for name, row in zip(found.index, found.to_numpy().tolist(), strict=True)
        ]
        tables.append(table(f"{what}, in numbers", ("", "before", "after"), cells))
    return Section(
        anchor="outputs",
        title="What the model answers",
        cards=tuple(cards),
        tables=tuple(tables),
    )


def _groups(view: View) -> Section | None:
    if not view.moved.any():
        return None
    found = groups(view.explanation)
    rows = [
        (
            one_line(group.who, 200),
            f"{group.rows:,} ({percent(group.share)})",
            one_line("; ".join(group.changes) or "nothing changes", 300),
            percent(group.explained),
        )
        for group in found
    ]
    columns = ("who", "rows", "what changes for them, on average", "share of the shift")
    text = f"The mean moves of these groups explain {percent(found.explained)} of the shift."
    tables = (table("Groups of rows that move alike", columns, rows),)
    return Section(anchor="groups", title="Who moves, and how", text=(text,), tables=tables)


def _plausibility(view: View) -> Section | None:
    """Whether changed rows are as near to rows that exist as they were."""
    if not view.moved.any():
        return None
    try:
        found = plausibility(view.explanation)
    except InvalidInput:  # fewer than two rows to be near to
        return None
    far = [percent(share) for share in found["farther"]]
    text = (
        "Farther from the nearest real row than 95% of the rows were: "
        f"{far[0]} of the rows before, {far[1]} after."
    )
    columns = ("", "median", "90% of rows", "95% of rows")
    levels = found[["q50", "q90", "q95"]].to_numpy().tolist()
    rows = [
        (name, *map(cell_text, row)) for name, row in zip(("before", "after"), levels, strict=True)
    ]
    caption = "Distance to the nearest real row, in standard deviations"
    return Section(
        anchor="plausibility",
        title="Do the changed rows look real?",
        text=(text,),
        tables=(table(caption, columns, rows),),
    )


def _single_rows(view: View, rows: int) -> Section | None:
    """Rows that changed, those whose output changed most first; only when asked for."""
    if rows < 1:
        return None
    explanation = view.explanation
    before, after = explanation.factual, explanation.counterfactual
    asked = explanation.main_output
    old, new = explanation.factual_outputs[:, asked], explanation.outputs[:, asked]
    changed = np.flatnonzero(view.moved)
    shown = changed[np.argsort(-np.abs(new - old)[changed], kind="stable")][:rows]
    parts = [
        [[cell_text(v) for v in frame.iloc[k]] for k in shown.tolist()] for frame in (before, after)
    ]
    pairs = [list(zip(*both, strict=True)) for both in zip(*parts, strict=True)]
    # Columns that no shown row changes would push the others off the page.
    kept = [j for j in range(before.shape[1]) if any(row[j][0] != row[j][1] for row in pairs)]
    cells = [
        (
            str(before.index[k]),
            Change(view.level(float(old[k])), view.level(float(new[k]))),
            *(Change(*row[j]) if row[j][0] != row[j][1] else row[j][0] for j in kept),
        )
        for k, row in zip(shown.tolist(), pairs, strict=True)
    ]
    columns = ("row", one_line(view.output, 60), *(str(before.columns[j]) for j in kept))
    caption = f"{len(shown):,} of {len(changed):,} changed rows, largest change of the output first"
    text = "Marked cells change: what was, then what is. Columns that stay are left out."
    return Section(
        anchor="rows",
        title="Changed rows",
        text=(text,),
        tables=(table(caption, columns, cells),),
    )
