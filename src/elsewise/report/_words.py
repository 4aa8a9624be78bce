"""What an explanation says, in plain words."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from elsewise.certificate import move_sentence, reached_sentence, stayed_lines
from elsewise.report._view import View
from elsewise.request import Kind
from elsewise.text import amount, format_distinct, one_line, percent

if TYPE_CHECKING:
    from elsewise.certificate import Certificate, Evidence


# Features named in the headline, and the least effect of one that is, as a share of the largest.
NAMED, LEAST_NAMED = 3, 0.02
# Letters of a name in a sentence.
NAME_WIDTH = 60


def answer_sentence(view: View) -> str:
    """Return what it takes to get where, and the verdict."""
    explanation = view.explanation
    now, then = map(view.level, view.means)
    status, reached = explanation.status, explanation.certificate.reached
    if not view.moved.any():
        if reached is not None:
            return f"{capital(str(status.verdict))}: {reached_sentence(reached, view.name)}."
        return f"Nothing changes: the mean {view.output} stays at {now} ({status})."
    rows = f"{int(view.moved.sum()):,} of {view.rows:,} rows are changed"
    if reached is not None:
        verdict = str(explanation.certificate.verdict).capitalize()
        return f"{verdict}. {capital(reached_sentence(reached, view.name))}. {rows}."
    if explanation.ok:
        return f"{rows}: the mean {view.output} goes from {now} to {then}."
    return (
        f"Not reached within the bounds: {rows}, and the mean {view.output} goes from {now} to "
        f"{then}."
    )


def first_changes(view: View) -> tuple[str, ...]:
    """Return the features with the largest effect on the output, and how they change."""
    changes = view.changes
    effect = changes["effect"].abs().fillna(changes["share"])
    named = changes.index[(changes["rows_moved"] > 0) & (effect >= LEAST_NAMED * effect.max())]
    return tuple(
        f"{one_line(name, NAME_WIDTH)}: {change_words(view, name)}" for name in named[:NAMED]
    )


def headline_of(view: View) -> str:
    """Return the answer as one line of text."""
    sentence, changes = answer_sentence(view), first_changes(view)
    return f"{sentence} Most of all: {'; '.join(changes)}." if changes else sentence


def question_sentence(view: View) -> str:
    """Return what was asked, as the question that the page answers."""
    certificate, rows = view.explanation.certificate, f"{view.rows:,} rows"
    start = "What would have to be different about"
    if certificate.reached is None:
        target = view.explanation.problem.target
        wanted = target.describe() if hasattr(target, "describe") else target.name
        return f"{start} {rows} for the model to give {wanted}?"
    question, asked = certificate.reached.question, certificate.reached.asked
    if question.kind == "mean":
        verb = "move by" if question.relative else "be"
        number = question.number(question.mean)
        return f"{start} {rows} for their mean {question.output(view.name)} to {verb} {number}?"
    most = "at most " if question.falling else ""
    share = "all of them" if asked is None else f"{most}{percent(asked, exact=True)} of them"
    return f"{start} {rows} for {share} to end up {question.condition(view.name)}?"


def change_words(view: View, name: Hashable) -> str:
    """Return how a feature changes in the rows in which it does."""
    return view.columns[name].change_words()


def change_lines(view: View, most: int | None = None) -> list[tuple[str, str, str]]:
    """Return name, effect and change of each feature, largest effect on the output first."""
    return [
        (one_line(name, NAME_WIDTH), effect, change_words(view, name))
        for name, effect in zip(view.changes.index[:most], view.effects(), strict=False)
    ]


def capital(text: str) -> str:
    """Return a sentence with its first letter as a capital."""
    return text[:1].upper() + text[1:]


def reached_words(certificate: Certificate, output: str = "") -> str:
    """Return what was asked and reached as sentences; nothing where a distance was made small."""
    if certificate.reached is None:
        return ""
    stayed = "".join(f" {line}." for line in stayed_lines(certificate.reached))
    return f"{capital(reached_sentence(certificate.reached, output))}.{stayed}"


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
    return (
        f"{what} {far} away from {place}, more than the bound of {bound}. {capital(side.advice)}."
    )


def certificate_words(certificate: Certificate) -> list[str]:
    """Return both distances of a certificate, and how far a row moves, as sentences."""
    move = certificate.row_move
    return [
        *([] if move is None else [f"{capital(move_sentence(move))}."]),
        side_words("inputs", certificate.inputs),
        side_words("outputs", certificate.outputs),
    ]


def meaning(certificate: Certificate) -> str:
    """Return what a certificate speaks of."""
    rows = f"{certificate.rows:,} rows"
    if certificate.confidence is None:
        return (
            f"The {rows} are taken for the whole population: the numbers are exact, and no "
            "confidence is claimed or needed."
        )
    level_ = percent(certificate.confidence, exact=True)
    if certificate.kind is Kind.IN_SAMPLE:
        return (
            f"The numbers describe the {rows} the change was fitted to. Rows it never saw may be "
            "farther away; nothing is certified of them."
        )
    return (
        f"Counted on {rows} that the search never saw. Each limit holds with {level_} confidence "
        "by itself, for the population they were drawn from."
    )


def assumptions(certificate: Certificate) -> tuple[str, ...]:
    """Return what has to be true for the limits to hold, each once."""
    both = certificate.inputs.assumption, certificate.outputs.assumption
    return tuple(dict.fromkeys(both))


def interval_words(certificate: Certificate) -> str:
    """Return what the intervals of a certificate's readouts hold for."""
    if certificate.confidence is None:
        return "The rows are the whole population, so that these numbers are exact."
    level_ = percent(certificate.confidence, exact=True)
    each = f"Each interval holds with {level_} confidence by itself"
    return f'{each}, those of "all at once" together, on the same {certificate.rows:,} rows.'
