"""What a notebook shows for an explanation and for a certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elsewise.analysis import changes as changes_of
from elsewise.report import _words
from elsewise.report._templates import environment
from elsewise.text import one_line, percent

if TYPE_CHECKING:
    from elsewise.certificate import Certificate
    from elsewise.explanation import Explanation


MOST_CHANGES = 8


def explanation_html(explanation: Explanation) -> str:
    """Return the answer, the certificate and the largest changes as HTML."""
    changes = changes_of(explanation).iloc[:MOST_CHANGES]
    rows = [
        (
            one_line(name, 60),
            percent(row["share"]),
            _words.change_words(explanation, name, row),
        )
        for name, row in changes.iterrows()
    ]
    return _shown(explanation.certificate, _words.answer(explanation).sentence, rows)


def certificate_html(certificate: Certificate) -> str:
    """Return the certificate as HTML."""
    return _shown(certificate, "", [])


def _shown(certificate: Certificate, sentence: str, rows: list[tuple[str, str, str]]) -> str:
    return (
        environment()
        .get_template("notebook.html")
        .render(
            sentence=sentence,
            certificate=certificate,
            verdict=certificate.verdict,
            words=_words,
            rows=rows,
        )
    )
