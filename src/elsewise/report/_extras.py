"""Sections that are made from records the caller brings along: frontier, stability, effects."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from elsewise import plots
from elsewise.analysis import MEANING
from elsewise.report._parts import Section, cell_text, figure, frame_table, table_section
from elsewise.report._words import level
from elsewise.text import percent

if TYPE_CHECKING:
    from elsewise.analysis import Effects, Frontier, Stability
    from elsewise.explanation import Explanation
    from elsewise.policy import Policy


def extra_sections(
    frontier: Frontier | None, stability: Stability | None, effects: Effects | None
) -> list[Section]:
    """Return a section for each record that was given, in this order."""
    return [
        *([] if frontier is None else [_frontier(frontier)]),
        *([] if stability is None else [_stability(stability)]),
        *([] if effects is None else [_effects(effects)]),
    ]


def policy_sections(explanation: Explanation, policy: Policy | None, output: str) -> list[Section]:
    """Return the section of a policy, which comes first; none without actions."""
    if policy is None or not policy.lines:
        return []
    before, after = (level(explanation, value) for value in policy.means)
    full = level(explanation, float(explanation.outputs[:, 0].mean()))
    size = len(policy.lines)
    rows = [
        (line.what, line.who, f"{line.rows:,}", cell_text(float(line.cost)))
        for line in policy.lines
    ]
    columns = ("action", "for", "rows", "cost of each")
    means = (
        f"{size} sentence{'' if size == 1 else 's'}: if applied literally, the mean "
        f"{output} goes from {before} to {after}; by the full map to {full}."
    )
    text = (means, *policy.summary)
    return [table_section("policy", "In a few actions", "Who does what", columns, rows, text)]


def _frontier(frontier: Frontier) -> Section:
    count = f"{len(frontier.table)} points"
    return Section(
        anchor="frontier",
        title="How far for how close",
        text=(
            "Each point is a population that no other beats: the closer its outputs, the further "
            f"its rows. Marked: the knee ({frontier.reason}).",
            f"Distances of {frontier.rows:,} rows ({frontier.kind}); each limit has its own level. "
            f"Share: of rows with an output of at least {cell_text(frontier.cutoff)}.",
        ),
        figures=(
            figure(
                partial(plots.frontier, frontier),
                "frontier",
                "Input distance against output distance, and their upper limits.",
                f"{count}; both distances are best small.",
            ),
        ),
        tables=(frame_table(frontier.table, f"The frontier, {count}"),),
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
    title = "What the move does to accuracy and fairness"
    return table_section("effects", title, "Before and after", columns, rows, (MEANING,))
