"""Pages beside the report: a comparison, a difference, and what a notebook shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from elsewise.errors import InvalidInput
from elsewise.plots import charts
from elsewise.report._render import Card, Section, Table, bar_cells, fill, frame_table
from elsewise.report._view import View, certificate_words, meaning
from elsewise.text import amount, percent

if TYPE_CHECKING:
    from elsewise._difference import Difference
    from elsewise.certificate import Certificate
    from elsewise.explanation import Explanation

# Attributes of a difference with a bar of their own, and features that a notebook shows.
MOST_BARS, MOST_CHANGES = 12, 8


def render_comparison(
    explanations: Mapping[str, Explanation],
    *,
    title: str = "Explanations side by side",
    output: str | Mapping[str, str] = "",
) -> str:
    """Return one page that compares several explanations.

    Parameters
    ----------
    explanations
        Explanations by the name each is shown under.
    title
        Title of the page.
    output
        What the model's output is called, in all of them or by the name of each.
    """
    if not explanations:
        expected, fix = "at least one explanation", "pass {'name': explanation}"
        raise InvalidInput("explanations", expected=expected, received="none", fix=fix)
    names = dict.fromkeys(explanations, output) if isinstance(output, str) else output
    views = {name: View(explanation, names[name]) for name, explanation in explanations.items()}
    sections = [_distances(views), _features(views)]
    return fill("comparison", title=title, views=views, sections=sections)


def _distances(views: Mapping[str, View]) -> Section:
    rows, records = [], []
    for name, view in views.items():
        certificate, target = view.explanation.certificate, view.explanation.problem.target.name
        inputs, outputs = certificate.sides.values()
        limits = inputs.at_most, outputs.at_most
        records.append((name, inputs.estimate, outputs.estimate, *limits))
        means, moved = map(view.level, view.means), f"{int(view.moved.sum()):,} of {view.rows:,}"
        rows.append((name, certificate.verdict.value, *means, moved, *map(amount, limits), target))
    levels = sorted({view.explanation.problem.bounds.confidence for view in views.values()})
    columns = ["explanation", "verdict", "mean output before", "after", "rows that change"]
    columns += ["input limit", "output limit", "target"]
    text = (
        f"Each limit holds with {' or '.join(map(percent, levels))} confidence by itself. "
        "The best and the worst of several are picked after looking: for that, ask for "
        "limits that hold together, explain_groups(..., simultaneous=True)."
    )
    names = ["name", "inputs", "outputs", "inputs_limit", "outputs_limit"]
    cards = [Card.of(charts.comparison(pd.DataFrame(records, columns=names)))]
    tables = [Table("Side by side", columns, rows)]
    return Section("comparison", "Distances and certificates", [text], tables, cards)


def _features(views: Mapping[str, View]) -> Section:
    shares = {name: view.changes["share"] for name, view in views.items()}
    found = pd.concat(shares, axis=1).fillna(0.0)
    found = found.loc[found.mean(axis=1).sort_values(ascending=False, kind="stable").index]
    cells = zip(found.index, found.to_numpy().tolist(), strict=True)
    rows = [(str(name), *map(percent, row)) for name, row in cells]
    tables = [Table("Share of the distance", ("feature", *shares), rows)]
    return Section("features", "Features by their share of the distance", (), tables)


def render_difference(
    difference: Difference, *, title: str = "What changed between two samples"
) -> str:
    """Return the report of a difference as one HTML page, without single rows.

    Parameters
    ----------
    difference
        What `elsewise.difference` returned.
    title
        Title of the page.
    """
    bars = charts.waterfall_bars(difference, MOST_BARS)
    cells = bar_cells(bars.texts, bars.starts, bars.ends, bars.looks)
    drawn = list(zip(bars.names, cells, strict=True))
    parts = frame_table(difference.attributes, "Parts of the change, with simultaneous intervals")
    tables = [Table(bars.title, ("attribute", bars.axis.label), drawn), parts]
    text = "Pale parts are not named with confidence."
    found = Section("parts", "What it goes through", [text], tables)
    groups = frame_table(difference.groups, "Found on these rows, without an interval")
    whom = Section("groups", "Whose scores moved most", (), [groups])
    names = ("before", "after", "change")
    facts = [(name, amount(float(getattr(difference, name)))) for name in names]
    facts.append(("rows", " and ".join(f"{size:,}" for size in difference.sizes)))
    sections = [found, whom] if len(difference.groups) else [found]
    sentences = difference.sentences()
    return fill("difference", title=title, sentences=sentences, facts=facts, sections=sections)


def explanation_html(explanation: Explanation) -> str:
    """Return the answer, the certificate and the largest changes as HTML."""
    return certificate_html(explanation.certificate, View(explanation))


def certificate_html(certificate: Certificate, view: View | None = None) -> str:
    """Return the certificate as HTML; of a view below its answer and above its largest changes."""
    words, about = certificate_words(certificate), meaning(certificate)
    # The answer says what is reached, too.
    if view is not None and certificate.reached is not None:
        words = words[1:]
    parts = {"certificate": certificate, "words": words, "meaning": about}
    return fill("notebook", **parts, view=view, most=MOST_CHANGES)
