"""The page of a difference between two samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elsewise.plots.charts import waterfall_bars
from elsewise.report._parts import Section, bar_table, frame_table
from elsewise.report._templates import fill
from elsewise.text import amount

if TYPE_CHECKING:
    from elsewise._difference import Difference

# Attributes with a bar of their own.
MOST_BARS = 12


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
    parts = frame_table(difference.table(), "Parts of the change, with simultaneous intervals")
    found = Section(
        anchor="parts",
        title="What it goes through",
        text=("Pale parts are not named with confidence.",),
        tables=(bar_table(waterfall_bars(difference, MOST_BARS), "attribute"), parts),
    )
    groups = frame_table(difference.groups, "Found on these rows, without an interval")
    whom = Section(anchor="groups", title="Whose scores moved most", tables=(groups,))
    names = ("before", "after", "change")
    facts = [(name, amount(float(getattr(difference, name)))) for name in names]
    return fill(
        "difference.html",
        title=title,
        sentences=difference.sentences(),
        facts=[*facts, ("rows", " and ".join(f"{size:,}" for size in difference.sizes))],
        sections=[found, whom] if len(difference.groups) else [found],
    )
