"""A page to play with: fewer of the moves, other features, one group, one row, at once.

What is recorded of each row is enough: its output where it was and where it is, and what its move
costs. Any choice of rows that move is therefore counted exactly, without the model, so that a saved
run gives the same page.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from elsewise._arrays import to_numpy
from elsewise._storage import write_text
from elsewise.analysis import MISSING, embedded, groups
from elsewise.measure import output_comparison
from elsewise.report._render import cell_text, fill
from elsewise.report._view import View, certificate_words, meaning
from elsewise.request import populate
from elsewise.text import one_line

if TYPE_CHECKING:
    from elsewise.analysis import Column
    from elsewise.explanation import Explanation

# Rows and columns of the page, and bytes that its data may take; beyond them rows are drawn.
MOST_ROWS, MOST_COLUMNS, MOST_BYTES = 5000, 60, 1_700_000
# Digits of numbers that are not whole, and letters of a name, of a level and of a row's label.
DIGITS, NAME_WIDTH, LEVEL_WIDTH, LABEL_WIDTH = 6, 60, 60, 40
# What must not stand in a script element as it is, even as data: it could end the element.
INERT = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


def render_explore(
    explanation: Explanation, *, title: str = "Explore an explanation", output: str = ""
) -> str:
    """Return one page on which an explanation can be played with; see `Explanation.explore`.

    Parameters
    ----------
    explanation
        What to explore.
    title
        Title of the page.
    output
        What the model's output is called, for instance "risk of default".
    """
    view, certificate = View(explanation, output), explanation.certificate
    says = [*certificate_words(certificate, output), meaning(certificate)]
    return fill("explore", title=title, view=view, says=says, data=_data(view))


def write_explore(explanation: Explanation, path: str | Path, **options: Any) -> Path:
    """Write the page to a file; options are those of `render_explore`."""
    return write_text(render_explore(explanation, **options), path)


def _data(view: View) -> str:
    """Return the data of the page as inert JSON, of as many rows as it has room for."""
    size = min(view.rows, MOST_ROWS)
    while True:
        rows = np.arange(view.rows)
        if size < view.rows:
            rng = np.random.default_rng(view.explanation.problem.seed)
            # The seed of the answer: the same run gives the same page, byte for byte.
            rows = np.sort(rng.choice(view.rows, size, replace=False))
        text = json.dumps(_content(view, rows), allow_nan=False, separators=(",", ":"))
        text = text.translate(INERT)
        if len(text) <= MOST_BYTES or size <= 2:
            return text
        # How many bytes a row takes depends on names and levels, so the size is found by halving.
        size //= 2


def _content(view: View, rows: np.ndarray) -> dict[str, Any]:
    """Return what the page knows of some rows, as JSON values."""
    explanation = view.explanation
    before, after = (side[rows] for side in view.both)
    first, last = embedded(explanation)
    costs = np.sum((last - first)[rows] ** 2, axis=1)
    order = _order(view, np.flatnonzero(view.moved[rows]), costs, after - before)
    found = groups(explanation) if view.moved.any() else None
    # Features that most rows change come first.
    columns = sorted(view.columns.values(), key=lambda column: -int(column.moved.sum()))
    return {
        "output": view.output,
        "probability": view.probability,
        "all": view.rows,
        "labels": [one_line(label, LABEL_WIDTH) for label in explanation.index[rows]],
        "before": _short(before),
        "after": _short(after),
        "cost": _short(costs),
        "order": order.tolist(),
        "columns": [_column(column.take(rows)) for column in columns[:MOST_COLUMNS]],
        "groups": [one_line(group.who, 4 * NAME_WIDTH) for group in found or ()],
        "group": [] if found is None else found.labels[rows].tolist(),
        "ask": _ask(view, rows),
    }


def _order(view: View, moved: np.ndarray, costs: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Return the rows that move in the order in which they do: cheapest first.

    Where a mean was asked for, the rows that give most output for their move go first, because
    a cheap row may hardly change the mean.
    """
    reached = view.explanation.certificate.reached
    keys = costs[moved]
    if reached is not None and reached.question.kind == "mean":
        gains = change[moved] * (-1.0 if reached.falling else 1.0)
        keys = -gains / np.maximum(keys, 1e-12)
    return np.asarray(moved[np.argsort(keys, kind="stable")])


def _ask(view: View, rows: np.ndarray) -> dict[str, Any]:
    """Return what was asked, so that the page can count any choice of rows against it."""
    explanation = view.explanation
    reached, problem = explanation.certificate.reached, explanation.problem
    if reached is None:
        return {"kind": "distance", "asked": problem.bounds.outputs, **_target(view, rows)}
    question = reached.question
    kind = "mean" if question.kind == "mean" else "share"
    found: dict[str, Any] = {"kind": kind, "asked": reached.asked, "falling": reached.falling}
    if question.wanted is None:
        return found | {"relative": question.relative, "what": question.output(view.name)}
    # Rows that count, as the user counts them: of a share that is to fall, the other ones.
    others = question.kind == "share" and question.falling
    both = {"before": explanation.factual_outputs, "after": explanation.outputs}
    for name, outputs in both.items():
        counted = question.wanted.contains(outputs[rows]) != others
        found[f"counts_{name}"] = counted.astype(int).tolist()
    return found | {"every": question.kind == "every", "what": question.condition(view.name)}


def _target(view: View, rows: np.ndarray) -> dict[str, Any]:
    """Return the target's quantiles rank by rank, for a model with one output."""
    explanation, problem = view.explanation, view.explanation.problem
    if explanation.outputs.shape[1] > 1 or len(rows) < 2:
        return {}
    place = problem.outputs.place
    outputs = place(explanation.factual_outputs[rows])
    part = replace(problem, factual=problem.factual[rows, ...], precise_outputs=outputs)
    moved = place(explanation.outputs[rows])
    compared = output_comparison(part, populate(part), moved, np.ones((1, 1)))
    side = compared.side(problem.bounds.trim)
    numbers = {"partners": side.partners[0], "weights": side.weights, "spread": side.spread}
    return {name: _short(to_numpy(values)) for name, values in numbers.items()}


def _column(column: Column) -> dict[str, Any]:
    """Return one feature: its values in order, and where each row is among them."""
    both = np.concatenate([column.before, column.after])
    values, places = np.unique(both, return_inverse=True)
    missing = np.isnan(values)
    texts: list[Any] = _short(values[~missing]) if column.numeric else []
    if not column.numeric:
        texts = [one_line(cell_text(column.level(v)), LEVEL_WIDTH) for v in values[~missing]]
    before, after = np.split(places.ravel(), 2)
    moved = np.flatnonzero(column.moved)
    return {
        "name": one_line(column.name, NAME_WIDTH),
        "free": column.free,
        "numeric": column.numeric,
        "values": [*texts, *([MISSING] if missing.any() else [])],
        "before": before.tolist(),
        "moved": moved.tolist(),
        "after": after[moved].tolist(),
    }


def _short(values: np.ndarray) -> list[float | int]:
    """Return numbers with as many digits as the page needs; whole ones as they are."""
    known = np.asarray(values, dtype=np.float64).tolist()
    return [int(v) if v.is_integer() else float(f"{v:.{DIGITS}g}") for v in known]
