"""What an explanation says, in plain words."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from elsewise._arrays import changed_cells, to_numpy
from elsewise.analysis import changes as changes_of
from elsewise.analysis import column_named
from elsewise.analysis._columns import embedded

# The page's template calls these by name.
from elsewise.certificate import interval_text as interval_text
from elsewise.certificate import probability_text as probability_text
from elsewise.certificate import reached_sentence, stayed_lines
from elsewise.certificate import readout_name as readout_name
from elsewise.request import Kind
from elsewise.text import amount, format_distinct, one_line, percent, signed

if TYPE_CHECKING:
    import pandas as pd

    from elsewise.certificate import Certificate, Evidence
    from elsewise.explanation import Explanation


# Changes of level named for a category.
NAMED_LEVELS = 2
# Features named in the headline.
NAMED = 3


def level(explanation: Explanation, value: float) -> str:
    """Return a model output: a percentage if outputs are probabilities."""
    return percent(value) if explanation.problem.outputs.probability else amount(value)


def moved_rows(explanation: Explanation) -> int:
    """Return the number of rows of which some cell changed."""
    before, after = to_numpy(explanation.problem.factual), to_numpy(explanation.rows.codes)
    return int(changed_cells(before, after).any(axis=1).sum())


class Answer(NamedTuple):
    """The answer in plain words."""

    sentence: str
    """What it takes to get where."""
    changes: tuple[str, ...]
    """The features that change most, and how; none where nothing changes."""


def answer(explanation: Explanation, output: str = "model output") -> Answer:
    """Return the answer: one sentence, and the changes that matter most.

    Parameters
    ----------
    explanation
        What to put into words.
    output
        What the model's output is called.
    """
    before = float(explanation.factual_outputs[:, 0].mean())
    after = float(explanation.outputs[:, 0].mean())
    now, then = (level(explanation, value) for value in (before, after))
    count, moved = len(explanation.outputs), moved_rows(explanation)
    status = explanation.status
    if moved == 0 and status.sentence:
        return Answer(f"{_capital(str(status.verdict))}: {status.sentence}.", ())
    if moved == 0:
        stays = f"Nothing changes: the mean {output} stays at {now} ({explanation.status})."
        return Answer(stays, ())
    first = _first(changes_of(explanation))
    reached = explanation.certificate.reached
    how = [change_words(explanation, name, row) for name, row in first.iterrows()]
    changes = tuple(
        f"{one_line(n, 60)}: {words}" for n, words in zip(first.index, how, strict=True)
    )
    rows = f"{moved:,} of {count:,} rows are changed"
    if reached is not None:
        sentence = reached_sentence(reached)
        verdict = str(explanation.certificate.verdict).capitalize()
        return Answer(f"{verdict}. {sentence[:1].upper()}{sentence[1:]}. {rows}.", changes)
    if explanation.ok:
        return Answer(f"{rows}: the mean {output} goes from {now} to {then}.", changes)
    return Answer(
        f"Not reached within the bounds: {rows}, and the mean {output} goes from {now} to {then}.",
        changes,
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def reached_words(certificate: Certificate) -> str:
    """Return what was asked and reached as a sentence; the other lines are about distances."""
    assert certificate.reached is not None  # or the template does not ask
    stayed = "".join(f" {line}." for line in stayed_lines(certificate.reached))
    return f"{_capital(reached_sentence(certificate.reached))}.{stayed}"


def headline(explanation: Explanation, output: str = "model output") -> str:
    """Return the answer as one line of text.

    Parameters
    ----------
    explanation
        What to put into words.
    output
        What the model's output is called.
    """
    sentence, changes = answer(explanation, output)
    return f"{sentence} Most of all: {'; '.join(changes)}." if changes else sentence


def mean_move(explanation: Explanation) -> float:
    """Return the root mean square move of the rows that change, in standard deviations of a row.

    sqrt(mean |phi(x) - phi(x')|^2), undivided by the dimension; 0 where no row changes.
    """
    before, after = embedded(explanation)
    squares = np.sum((after - before) ** 2, axis=1)
    return float(np.sqrt(np.mean(squares[squares > 0]))) if (squares > 0).any() else 0.0


def _first(changes: pd.DataFrame) -> pd.DataFrame:
    """The features worth naming: those with the largest effect on the output."""
    effect = changes["effect"].abs().fillna(changes["share"])
    named: pd.DataFrame = changes[(changes["rows_moved"] > 0) & (effect >= 0.02 * effect.max())]
    return named.iloc[:NAMED]


def change_words(explanation: Explanation, name: Hashable, row: pd.Series[Any]) -> str:
    """Return how a feature changes in the rows in which it does, from its row of `changes`."""
    rows = len(explanation.outputs)
    if row["rows_moved"] == 0:
        return "stays as it is"
    if math.isnan(row.get("mean_before", math.nan)):
        return _category_words(explanation, name)
    column = column_named(explanation, name)
    moves = (column.after - column.before)[column.moved]
    parts = []
    for word, some in (("lower", moves[moves < 0]), ("higher", moves[moves > 0])):
        if some.size:
            by = amount(abs(float(np.median(some))))
            parts.append((some.size, f"{word} by {by} in the median, in {some.size:,}"))
    parts.sort(key=lambda part: -part[0])
    return "; ".join(text for _, text in parts) + f" of {rows:,} rows"


def change_table(explanation: Explanation) -> str:
    """Return the changes as a table of text, largest effect on the output first."""
    table = [("feature", "effect on the mean output", "change in the rows that change")]
    for name, row in changes_of(explanation).iterrows():
        effect = "unknown" if math.isnan(row["effect"]) else signed(float(row["effect"]))
        table.append((one_line(name, 60), effect, change_words(explanation, name, row)))
    widths = [max(len(row[k]) for row in table) for k in range(2)]
    return "\n".join(f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c}" for a, b, c in table)


def _category_words(explanation: Explanation, name: Hashable) -> str:
    """The most frequent changes of level, with the number of rows that make each."""
    column = column_named(explanation, name)
    pairs = np.stack([column.before, column.after], axis=1)[column.moved]
    found, counts = np.unique(pairs, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:NAMED_LEVELS]
    words = [
        f"{one_line(column.level(found[k][0]), 30)} to {one_line(column.level(found[k][1]), 30)} "
        f"in {counts[k]:,}"
        for k in order
    ]
    others = int(counts.sum() - counts[order].sum())
    more = f", other changes in {others:,}" if others else ""
    return f"{', '.join(words)}{more} of {len(column.before):,} rows"


def side_words(name: str, side: Evidence) -> str:
    """Return one side of a certificate, "inputs" or "outputs", as a sentence."""
    what, place = {
        "inputs": ("The rows are", "where they were"),
        "outputs": ("The outputs are", "the target"),
    }[name]
    exact = side.upper_limit is None
    if side.bound is None:
        far = f"{'' if exact else 'at most '}{amount(side.at_most)}"
        return f"{what} {far} away from {place}; no bound was asked for."
    limit, bound = amount(side.at_most), amount(side.bound)
    if limit == bound:
        limit, bound = format_distinct(side.at_most, side.bound)
    if side.met:
        far = limit if exact else f"at most {limit}"
        return f"{what} {far} away from {place}, within the bound of {bound}."
    far = limit if exact else f"up to {limit}"
    why = f"{side.advice[0].upper()}{side.advice[1:]}"
    return f"{what} {far} away from {place}, more than the bound of {bound}. {why}."


def meaning(certificate: Certificate) -> str:
    """Return what a certificate speaks of."""
    rows = f"{certificate.rows:,} rows"
    if certificate.confidence is None:
        return (
            f"The {rows} are taken for the whole population: both distances are exact, and no "
            "confidence is claimed or needed."
        )
    level_ = percent(certificate.confidence, exact=True)
    if certificate.kind is Kind.IN_SAMPLE:
        return (
            f"Each limit holds with {level_} confidence by itself. They describe the {rows} "
            "the change was fitted to, not rows it never saw."
        )
    return (
        f"Each limit holds with {level_} confidence by itself, for the population that the "
        f"{rows} were drawn from: the fit never saw the rows they were computed on."
    )


def assumptions(certificate: Certificate) -> tuple[str, ...]:
    """Return what has to be true for the limits to hold, each once."""
    both = certificate.inputs.assumption, certificate.outputs.assumption
    return tuple(dict.fromkeys(both))


def number(value: float | None) -> str:
    """Return a number of a certificate; a dash where there is none.

    Examples
    --------
    >>> number(0.123456), number(None)
    ('0.1235', '\u2013')
    """
    return "\u2013" if value is None else f"{value:.4g}"


def interval_words(certificate: Certificate) -> str:
    """Return what the intervals of a certificate's readouts hold for."""
    if certificate.confidence is None:
        return "The rows are the whole population, so that these numbers are exact."
    level_ = percent(certificate.confidence, exact=True)
    each = f"Each interval holds with {level_} confidence by itself"
    return f"{each}, on the same {certificate.rows:,} rows."
