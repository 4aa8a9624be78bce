"""One self-contained HTML page: what is changed, how far, and how sure we are.

`render` is a pure function of the explanation. The page needs no network and no script, shows
aggregates only unless single rows are asked for, and escapes everything the user named.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from elsewise import plots
from elsewise._storage import write_text
from elsewise.analysis import changes as changes_of
from elsewise.certificate import interval_text, probability_text, readout_name
from elsewise.errors import InvalidInput
from elsewise.report import _words
from elsewise.report._difference_page import render_difference
from elsewise.report._extras import extra_sections, policy_sections
from elsewise.report._numbers import drift, summary
from elsewise.report._page import sections
from elsewise.report._parts import Section, Table, figure, table_section
from elsewise.report._templates import fill
from elsewise.report._words import answer, change_table, headline
from elsewise.text import amount, percent

if TYPE_CHECKING:
    from elsewise.analysis import Effects, Frontier, Stability
    from elsewise.explanation import Explanation
    from elsewise.policy import Policy

__all__ = [
    "answer",
    "change_table",
    "drift",
    "headline",
    "render",
    "render_comparison",
    "render_difference",
    "summary",
    "write",
]

CITATION = (
    "L. You, L. Cao, M. Nilsson, B. Zhao, L. Lei. Distributional Counterfactual Explanations With "
    "Optimal Transport. AISTATS 2025."
)


def render(
    explanation: Explanation,
    *,
    title: str = "Distributional counterfactual explanation",
    output: str = "model output",
    command: str | None = None,
    frontier: Frontier | None = None,
    stability: Stability | None = None,
    effects: Effects | None = None,
    policy: Policy | None = None,
    rows: int = 0,
) -> str:
    """Return the report of an explanation as one HTML page.

    Parameters
    ----------
    explanation
        What to report.
    title
        Title of the page.
    output
        What the model's output is called, for instance "risk of default".
    command
        How to get the same result again; by default the call of `elsewise.explain`.
    frontier, stability, effects
        What `Explanation.frontier`, `stability` and `effects` returned: each gets a section.
    policy
        What `Explanation.policy` returned: its section comes first.
    rows
        Show so many single rows, before and after; none by default.
    """
    extras = extra_sections(frontier, stability, effects)
    first = policy_sections(explanation, policy, output)
    return fill(
        "page.html",
        title=title,
        answer=_words.answer(explanation, output),
        facts=_facts(explanation, output),
        certificate=explanation.certificate,
        verdict=explanation.certificate.verdict,
        status=str(explanation.status),
        words=_words,
        interval_text=interval_text,
        probability_text=probability_text,
        readout_name=readout_name,
        sections=sections(explanation, output, command, extras, rows, first),
        citation=CITATION,
    )


def render_comparison(
    explanations: Mapping[str, Explanation],
    *,
    title: str = "Explanations side by side",
    output: str | Mapping[str, str] = "model output",
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
    return fill(
        "comparison.html",
        title=title,
        headlines={name: headline(e, called[name]) for name, e in explanations.items()},
        verdicts={name: e.certificate.verdict for name, e in explanations.items()},
        sections=_compared(explanations, called),
        citation=CITATION,
    )


def write(explanation: Explanation, path: str | Path, **options: Any) -> Path:
    """Write the report of an explanation to a file; options are those of `render`."""
    return write_text(render(explanation, **options), path)


def _facts(explanation: Explanation, output: str) -> list[tuple[str, str]]:
    """The few numbers beside the headline: what they are and what they say."""
    mean = [
        _words.level(explanation, float(values[:, 0].mean()))
        for values in (explanation.factual_outputs, explanation.outputs)
    ]
    moved, count = _words.moved_rows(explanation), len(explanation.outputs)
    reached = explanation.certificate.reached
    facts = [
        (f"mean {output}", f"{mean[0]} → {mean[1]}"),
        ("rows that change", f"{moved:,} of {count:,}"),
        ("a changed row moves by", f"{amount(_words.mean_move(explanation))} SD"),
    ]
    if reached is None:
        inputs, outputs = explanation.certificate.inputs, explanation.certificate.outputs
        return [
            *facts,
            ("input distance", amount(inputs.estimate)),
            ("output distance", amount(outputs.estimate)),
        ]
    number = amount if reached.question.wanted is None else percent
    what = "mean" if reached.question.wanted is None else "share of rows"
    asked = "" if reached.asked is None else f", {number(reached.asked)} asked"
    found = f"{number(reached.before)} → {number(reached.reached)}"
    return [(f"{what} where wanted{asked}", found), *facts]


def _compared(explanations: Mapping[str, Explanation], called: Mapping[str, str]) -> list[Section]:
    certificates = {name: e.certificate for name, e in explanations.items()}
    records = pd.DataFrame(
        {
            "name": list(certificates),
            "inputs": [c.inputs.estimate for c in certificates.values()],
            "outputs": [c.outputs.estimate for c in certificates.values()],
            "inputs_limit": [c.inputs.at_most for c in certificates.values()],
            "outputs_limit": [c.outputs.at_most for c in certificates.values()],
        }
    )
    rows = tuple(
        (
            name,
            e.certificate.verdict.value,
            _words.level(e, float(e.factual_outputs[:, 0].mean())),
            _words.level(e, float(e.outputs[:, 0].mean())),
            f"{_words.moved_rows(e):,} of {len(e.outputs):,}",
            amount(e.certificate.inputs.at_most),
            amount(e.certificate.outputs.at_most),
            e.problem.target.name,
        )
        for name, e in explanations.items()
    )
    columns = (
        "explanation",
        "certificate",
        f"mean {called[min(called)] if len({*called.values()}) == 1 else 'output'} before",
        "after",
        "rows that change",
        "input limit",
        "output limit",
        "target",
    )
    return [
        Section(
            anchor="comparison",
            title="Distances and certificates",
            figures=(
                figure(
                    partial(plots.comparison, records),
                    "comparison",
                    "Input against output distance; bars reach up to the upper limits.",
                    f"{len(records)} explanations.",
                    (4.8, 3.6),
                ),
            ),
            tables=(Table(caption="Side by side", columns=columns, rows=rows),),
        ),
        _compared_features(explanations),
    ]


def _compared_features(explanations: Mapping[str, Explanation]) -> Section:
    shares = {name: changes_of(e)["share"] for name, e in explanations.items()}
    table = pd.concat(shares, axis=1).fillna(0.0)
    table = table.loc[table.mean(axis=1).sort_values(ascending=False, kind="stable").index]
    cells = zip(table.index, table.to_numpy().tolist(), strict=True)
    rows = [(str(name), *map(percent, row)) for name, row in cells]
    title, columns = "Features by their share of the distance", ("feature", *shares)
    return table_section("features", title, "Share of the distance", columns, rows)
