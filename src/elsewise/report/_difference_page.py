"""The page of a difference between two samples."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from elsewise import plots
from elsewise.report._parts import Section, cell_text, figure, frame_table
from elsewise.report._templates import fill

if TYPE_CHECKING:
    from elsewise._difference import Difference


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
    caption = "From before to after; pale parts are not named with confidence."
    draw, size = partial(plots.waterfall, difference), (5.4, 1.6 + 0.3 * len(difference.parts[:12]))
    parts = frame_table(difference.table(), "Parts of the change, with simultaneous intervals")
    found = Section(
        anchor="parts",
        title="What it goes through",
        figures=(figure(draw, "waterfall", caption, "One bar per attribute.", size),),
        tables=(parts,),
    )
    groups = frame_table(difference.groups, "Found on these rows, without an interval")
    whom = Section(anchor="groups", title="Whose scores moved most", tables=(groups,))
    names = ("before", "after", "change")
    facts = [(name, cell_text(float(getattr(difference, name)))) for name in names]
    return fill(
        "difference.html",
        title=title,
        sentences=difference.sentences(),
        facts=[*facts, ("rows", " and ".join(f"{size:,}" for size in difference.sizes))],
        sections=[found, whom] if len(difference.groups) else [found],
    )
