"""What a notebook shows for an explanation and for a certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from elsewise.report._templates import fill
from elsewise.report._view import View
from elsewise.report._words import (
    answer_sentence,
    change_words,
    meaning,
    reached_words,
    side_words,
)
from elsewise.text import one_line

if TYPE_CHECKING:
    from elsewise.certificate import Certificate
    from elsewise.explanation import Explanation


MOST_CHANGES = 8


def explanation_html(explanation: Explanation) -> str:
    """Return the answer, the certificate and the largest changes as HTML."""
    view = View(explanation)
    changes = zip(view.changes.index[:MOST_CHANGES], view.effects(), strict=False)
    rows = [(one_line(name, 60), effect, change_words(view, name)) for name, effect in changes]
    unit = ", points" if view.probability else ""
    return certificate_html(explanation.certificate, answer_sentence(view), rows, unit)


def certificate_html(
    certificate: Certificate,
    sentence: str = "",
    rows: Sequence[tuple[str, str, str]] = (),
    unit: str = "",
) -> str:
    """Return the certificate as HTML, below an answer and above the largest changes, if any."""
    sides = (("inputs", certificate.inputs), ("outputs", certificate.outputs))
    words = [side_words(name, side) for name, side in sides]
    if certificate.reached is not None and not sentence:
        words.insert(0, reached_words(certificate))
    return fill(
        "notebook.html",
        sentence=sentence,
        verdict=certificate.verdict,
        words=words,
        meaning=meaning(certificate),
        rows=rows,
        unit=unit,
    )
