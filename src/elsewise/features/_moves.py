"""How far a row can move at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elsewise.features._feature import Feature, Kind


def largest_squared_move(features: Sequence[Feature], codes: np.ndarray) -> float:
    """Return the largest squared length, in the embedding, of a legal move of any row.

    Declared ends of a range hold for every row that moves. Observed ones are taken to hold for rows
    not seen yet as well, and are widened to the rows ``codes`` (n, p).

    Examples
    --------
    >>> age = Feature(name="age", kind=Kind.NUMBER, free=True, observed=(20.0, 60.0), scale=10.0)
    >>> job = Feature(name="job", kind=Kind.CATEGORY, free=True, observed=(0.0, 2.0), weight=2.0,
    ...               levels=("a", "b", "c"))
    >>> largest_squared_move([age, job], np.array([[30.0, 0.0], [70.0, 1.0]]))
    29.0
    """
    total = 0.0
    indicators: dict[str, list[float]] = {}
    for feature, column in zip(features, np.asarray(codes).T, strict=True):
        if not feature.free:
            continue
        if feature.group is not None:
            indicators.setdefault(feature.group, []).append(feature.weight**2 / 2.0)
        elif feature.kind is Kind.CATEGORY:
            # From one level to another, or over the whole length of an ordered one.
            total += feature.weight**2
        else:
            total += (_width(feature, column) * feature.weight / feature.scale) ** 2
    # A row leaves one column of its group for another.
    return total + sum(sum(sorted(heights)[-2:]) for heights in indicators.values())


def _width(feature: Feature, column: np.ndarray) -> float:
    """Return the width of the range a number can move in."""
    declared = feature.declared or (-np.inf, np.inf)
    present = column[~np.isnan(column)]
    low, high = np.min(present, initial=np.inf), np.max(present, initial=-np.inf)
    lower = declared[0] if np.isfinite(declared[0]) else min(feature.observed[0], float(low))
    upper = declared[1] if np.isfinite(declared[1]) else max(feature.observed[1], float(high))
    return max(0.0, min(upper - lower, feature.at_most_by or np.inf))
