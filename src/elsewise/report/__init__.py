"""One self-contained HTML page: what is changed, how far, and how sure we are.

`render` is a pure function of the explanation. The page needs no network and no script, shows
aggregates only unless single rows are asked for, and escapes everything the user named.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from elsewise._storage import write_text
from elsewise.errors import checked
from elsewise.report._explore import render_explore, write_explore
from elsewise.report._first_screen import first_screen
from elsewise.report._other_pages import render_comparison, render_difference
from elsewise.report._page import certificate_tables, sections
from elsewise.report._render import fill
from elsewise.report._view import View, answer, certificate_words, change_table, headline, summary

if TYPE_CHECKING:
    from elsewise.analysis import Effects, Frontier, Stability
    from elsewise.explanation import Explanation
    from elsewise.policy import Policy

__all__ = [
    "answer",
    "change_table",
    "headline",
    "render",
    "render_comparison",
    "render_difference",
    "render_explore",
    "summary",
    "write",
    "write_explore",
]


def render(
    explanation: Explanation,
    *,
    title: str = "Distributional counterfactual explanation",
    output: str = "",
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
        What `Explanation.policy` returned: its first actions stand on the first screen.
    rows
        Show so many single rows, before and after; none by default.
    """
    rows = checked("rows", rows, int)
    view, certificate = View(explanation, output), explanation.certificate
    return fill(
        "page",
        title=title,
        view=view,
        first=first_screen(view, policy),
        sections=sections(view, rows, command, policy, frontier, stability, effects),
        says=certificate_words(certificate, output),
        tables=certificate_tables(certificate, output),
    )


def write(explanation: Explanation, path: str | Path, **options: Any) -> Path:
    """Write the report of an explanation to a file; options are those of `render`."""
    return write_text(render(explanation, **options), path)
