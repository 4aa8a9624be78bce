"""The levels of a category that are drawn."""

from __future__ import annotations

import numpy as np

from elsewise.analysis import MISSING, Column

OTHERS = "(others)"


def grouped_levels(column: Column, most: int) -> tuple[list[str], tuple[np.ndarray, np.ndarray]]:
    """Return names of the drawn levels and, before and after, the place of each row among them.

    The largest levels come first (ordered ones in their order), the rest together, missing last.
    """
    count = len(column.levels)
    codes = [
        np.where(np.isnan(values), count, values).astype(np.int64)
        for values in (column.before, column.after)
    ]
    rows = np.bincount(np.concatenate(codes), minlength=count + 1)[:count]
    shown = np.argsort(-rows, kind="stable")
    shown = shown[rows[shown] > 0]
    kept = shown if shown.size <= most else shown[: most - 1]
    if column.ordered:
        kept = np.sort(kept)
    names = [str(column.levels[code]) for code in kept]
    place = np.full(count + 1, -1)
    place[kept] = np.arange(kept.size)
    if kept.size < shown.size:
        names.append(OTHERS)
        place[shown] = np.where(place[shown] < 0, len(names) - 1, place[shown])
    if any((values == count).any() for values in codes):
        names.append(MISSING)
        place[count] = len(names) - 1
    return names, (place[codes[0]], place[codes[1]])
