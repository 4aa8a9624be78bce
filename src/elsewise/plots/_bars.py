"""Pictures of named bars: features by their effect, levels of a category, parts of a difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from elsewise.analysis import changes as changes_of
from elsewise.plots._drawn_levels import grouped_levels
from elsewise.plots._records import Axis, Bars
from elsewise.text import amount, one_line

if TYPE_CHECKING:
    import pandas as pd

    from elsewise._difference import Difference
    from elsewise.analysis import Column
    from elsewise.explanation import Explanation


# Levels of a category, and changes of level, that are drawn.
MOST_LEVELS, MOST_CHANGES = 10, 7


def change_bars(explanation: Explanation, most: int) -> Bars:
    """Features by what their changes add to the mean output; by their share without a model."""
    table = changes_of(explanation).iloc[:most]
    known = bool(table["effect"].notna().all())
    values = table["effect"].abs() if known else table["share"]
    looks = [_look(row, len(explanation.outputs)) for _, row in table.iterrows()]
    probability = bool(explanation.problem.outputs.probability) or not known
    return Bars(
        title="What changes most",
        axis=Axis("effect on the mean output" if known else "share of the distance", probability),
        names=list(map(str, table.index)),
        starts=np.zeros(len(table)),
        ends=values.to_numpy(),
        looks=[look for look, _ in looks],
        texts=[words for _, words in looks],
    )


def _look(row: pd.Series[Any], rows: int) -> tuple[str, str]:
    """Look and words of one feature's bar."""
    count = round(row["rows_moved"] * rows)
    moved = f"{count:,} row{'' if count == 1 else 's'}"
    if np.isnan(row["median_move"]):
        return "swap", moved
    arrow, look = ("▲", "up") if row["median_move"] > 0 else ("▼", "down")
    return look, f"{moved}, {arrow} {amount(abs(row['median_move']))} in the median"


def level_bars(column: Column) -> Bars:
    """The most frequent changes of level of a category."""
    pairs = np.stack([column.before, column.after], axis=1)[column.moved]
    found, counts = np.unique(pairs, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MOST_CHANGES]
    names = [" → ".join(one_line(column.level(code), 13) for code in found[k]) for k in order]
    return Bars(
        title=str(column.name),
        axis=Axis("rows"),
        names=names,
        starts=np.zeros(len(names)),
        ends=counts[order],
        looks=["swap"] * len(names),
    )


def pair_bars(column: Column) -> Bars:
    """Shares of the levels of a category, before and after."""
    names, places = grouped_levels(column, MOST_LEVELS)
    shares = np.stack([np.bincount(p, minlength=len(names)) / p.size for p in places], axis=1)
    return Bars(
        title=str(column.name),
        axis=Axis("share of rows: before (grey) and after", percent=True),
        names=[text for name in names for text in (name, "")],
        starts=np.zeros(shares.size),
        ends=shares.ravel(),
        looks=["factual", "counterfactual"] * len(names),
    )


def waterfall_bars(difference: Difference, most: int) -> Bars:
    """Parts of a difference with their intervals, each where the one above ends."""
    table = difference.table()
    parts, named = table["part"].to_numpy(), table["named"].to_numpy()
    names = [one_line(name, 60) for name in table.index[:most]]
    limits = table[["low", "high"]].to_numpy()[:most]
    words = [f" ({amount(low)} to {amount(high)})" for low, high in limits]
    if len(table) > most:
        words.append("")
        parts, named = np.append(parts[:most], parts[most:].sum()), np.append(named[:most], False)
        names.append(f"{len(table) - most} others")
    ends = difference.before + np.cumsum([0.0, *parts])
    looks = [
        ("up" if part > 0 else "down") + ("" if sure else " pale")
        for part, sure in zip(parts, named, strict=True)
    ]
    return Bars(
        title="What the change goes through",
        axis=Axis("score"),
        names=["before", *names, "after"],
        starts=[difference.before, *ends[:-1], difference.after],
        ends=[difference.before, *ends[1:], difference.after],
        looks=["factual", *looks, "factual"],
        texts=[
            amount(difference.before),
            *(f"{amount(part)}{more}" for part, more in zip(parts, words, strict=True)),
            amount(difference.after),
        ],
    )
