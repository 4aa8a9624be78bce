"""Sections made from records the caller brings along: policy, frontier, stability, effects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elsewise.analysis import MEANING
from elsewise.plots import charts
from elsewise.report._parts import Section, card, cell_text, frame_table, table
from elsewise.text import percent

if TYPE_CHECKING:
    from elsewise.analysis import Effects, Frontier, Stability
    from elsewise.policy import Policy
    from elsewise.report._view import View


def extra_sections(
    frontier: Frontier | None, stability: Stability | None, effects: Effects | None
) -> list[Section]:
    """Return a section for each record that was given, in this order."""
    return [
        *([] if frontier is None else [_frontier(frontier)]),
        *([] if stability is None else [_stability(stability)]),
        *([] if effects is None else [_effects(effects)]),
    ]


def policy_section(view: View, policy: Policy | None) -> list[Section]:
    """Return the section of a policy; none without actions."""
    if policy is None or not policy.lines:
        return []
    before, after = map(view.level, policy.means)
    size = len(policy.lines)
    means = (
        f"{size} action{'' if size == 1 else 's'}, if applied literally: the mean {view.output} "
        f"goes from {before} to {after}; by the full map to {view.level(view.means[1])}."
    )
    rows = [
        (line.what, line.who, f"{line.rows:,}", cell_text(float(line.cost)))
        for line in policy.lines
    ]
    columns = ("action", "for", "rows", "cost of a row")
    tables = (table("Who does what", columns, rows),)
    text = (means, *policy.summary)
    return [Section(anchor="policy", title="In a few actions", text=text, tables=tables)]


def _frontier(frontier: Frontier) -> Section:
    found = frontier.table
    return Section(
        anchor="frontier",
        title="How far for how close",
        text=(
            "Each point is a population that no other beats: the closer its outputs, the further "
            f"its rows. Marked: the knee ({frontier.reason}).",
            f"Distances of {frontier.rows:,} rows ({frontier.kind}); each limit has its own level. "
            f"Share: of rows with an output of at least {cell_text(frontier.cutoff)}.",
        ),
        cards=(card(charts.frontier(frontier)),),
        tables=(frame_table(found, f"The frontier, {len(found)} points"),),
    )


def _stability(stability: Stability) -> Section:
    return Section(
        anchor="stability",
        title="How stable the answer is",
        text=(
            repr(stability),
            "The second table asks the same question with another trim, with either random half of "
            "the background, and with another weight. Distances are measured on the rows and "
            "scales as given; limits are those of each answer's own certificate.",
        ),
        tables=(
            frame_table(stability.spread, f"Spread over {stability.seeds} seeds"),
            frame_table(stability.sensitivity, "Sensitivity to choices"),
        ),
    )


def _effects(effects: Effects) -> Section:
    rows = [
        (
            *map(str, name),
            *(cell_text(float(row[column])) for column in ("before", "after", "difference")),
            f"{cell_text(float(row['low']))} to {cell_text(float(row['high']))}",
            cell_text(int(row["rows"])),
        )
        for name, row in zip(effects.table.index, effects.table.to_dict("records"), strict=True)
    ]
    interval = f"{percent(effects.level, exact=True)} interval"
    columns = ("measure", "group", "before", "after", "difference", interval, "rows")
    return Section(
        anchor="effects",
        title="What the move does to accuracy and fairness",
        text=(MEANING,),
        tables=(table("Before and after", columns, rows),),
    )
