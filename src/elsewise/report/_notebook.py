"""What a notebook shows for an explanation and for a certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from elsewise.analysis import changes as changes_of
from elsewise.report import _words
from elsewise.report._templates import fill
from elsewise.text import one_line, percent

if TYPE_CHECKING:
    from elsewise.certificate import Certificate
    from elsewise.explanation import Explanation


MOST_CHANGES = 8


def explanation_html(explanation: Explanation) -> str:
    """Return the answer, the certificate and the largest changes as HTML."""
    changes = changes_of(explanation).iloc[:MOST_CHANGES]
    rows = [
        (one_line(name, 60), percent(row["share"]), _words.change_words(explanation, name, row))
        for name, row in changes.iterrows()
    ]
    return certificate_html(explanation.certificate, _words.answer(explanation).sentence, rows)


def certificate_html(
    certificate: Certificate, sentence: str = "", rows: Sequence[tuple[str, str, str]] = ()
) -> str:
    """Return the certificate as HTML, below an answer and above the largest changes, if any."""
    return fill(
        "notebook.html",
        sentence=sentence,
        certificate=certificate,
        verdict=certificate.verdict,
        words=_words,
        rows=rows,
    )
