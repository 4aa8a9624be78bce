"""One page that compares several explanations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from elsewise.errors import InvalidInput
from elsewise.plots import charts
from elsewise.report._parts import Section, card, table
from elsewise.report._templates import CITATION, fill
from elsewise.report._view import View
from elsewise.report._words import headline
from elsewise.text import amount, percent

if TYPE_CHECKING:
    from elsewise.explanation import Explanation

COLUMNS = (
    "explanation",
    "verdict",
    "mean output before",
    "after",
    "rows that change",
    "input limit",
    "output limit",
    "target",
)


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
    called = {name: output if isinstance(output, str) else output[name] for name in explanations}
    views = {name: View(e, called[name]) for name, e in explanations.items()}
    return fill(
        "comparison.html",
        title=title,
        headlines={name: headline(e, called[name]) for name, e in explanations.items()},
        verdicts={name: e.certificate.verdict for name, e in explanations.items()},
        sections=[_distances(views), _features(views)],
        citation=CITATION,
    )


def _distances(views: Mapping[str, View]) -> Section:
    rows, records = [], []
    for name, view in views.items():
        explanation = view.explanation
        certificate = explanation.certificate
        inputs, outputs = certificate.inputs, certificate.outputs
        records.append(
            {
                "name": name,
                "inputs": inputs.estimate,
                "outputs": outputs.estimate,
                "inputs_limit": inputs.at_most,
                "outputs_limit": outputs.at_most,
            }
        )
        rows.append(
            (
                name,
                certificate.verdict.value,
                *map(view.level, view.means),
                f"{int(view.moved.sum()):,} of {view.rows:,}",
                amount(inputs.at_most),
                amount(outputs.at_most),
                explanation.problem.target.name,
            )
        )
    return Section(
        anchor="comparison",
        title="Distances and certificates",
        tables=(table("Side by side", COLUMNS, rows),),
        cards=(card(charts.comparison(pd.DataFrame(records))),),
    )


def _features(views: Mapping[str, View]) -> Section:
    shares = {name: view.changes["share"] for name, view in views.items()}
    found = pd.concat(shares, axis=1).fillna(0.0)
    found = found.loc[found.mean(axis=1).sort_values(ascending=False, kind="stable").index]
    cells = zip(found.index, found.to_numpy().tolist(), strict=True)
    rows = [(str(name), *map(percent, row)) for name, row in cells]
    return Section(
        anchor="features",
        title="Features by their share of the distance",
        tables=(table("Share of the distance", ("feature", *shares), rows),),
    )
