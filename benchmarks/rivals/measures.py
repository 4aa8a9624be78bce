"""The paper's measures beside those of `compare`: pure functions, and one table of them.

Where the paper's definition and a corrected one differ, both are here and the paper's is called
``published``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from benchmarks.rivals import compare
from benchmarks.rivals.compare import Case, Metric
from benchmarks.rivals.distances import TRIM, mmd

from elsewise._arrays import changed_cells
from elsewise.features import Kind

__all__ = [
    "METRICS",
    "PaperCase",
    "ares_cost",
    "bin_units",
    "category_difference",
    "dpc",
    "numeric_shift",
    "percentile_differences",
    "pooled_percentile_differences",
    "published_ares_cost",
    "published_ot",
]

BINS = 10
PERCENTILES = ((0.0, 0.15), (0.15, 0.3), (0.3, 0.7), (0.7, 0.85), (0.85, 1.0))
"""The paper's five ranges."""


def bin_units(before: np.ndarray, after: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Size (n, p) of every change in bin widths; where a width is 0, 1 for any change.

    Parameters
    ----------
    before, after
        Arrays (n, p).
    widths
        Array (p,); give categories, whose codes have no distances, the width 0.

    Examples
    --------
    >>> bin_units(np.array([[0.0, 2.0]]), np.array([[3.0, 7.0]]), np.array([2.0, 0.0]))
    array([[1.5, 1. ]])
    """
    changed = changed_cells(before, after)
    sizes = np.abs(after - before) / np.where(widths > 0, widths, 1.0)
    return np.where(changed & (widths > 0), sizes, changed.astype(np.float64))


def ares_cost(units: np.ndarray) -> float:
    """Mean over rows of the summed changes: numbers in bin widths, a category change 1.

    Parameters
    ----------
    units
        Array (n, p) of `bin_units`.

    Examples
    --------
    >>> ares_cost(np.array([[1.5, 1.0], [0.0, 0.0]]))
    1.25
    """
    return float(units.sum(axis=1).mean())


def published_ares_cost(units: np.ndarray) -> float:
    """Frobenius norm of the whole change, which grows with the number of rows: the paper's.

    Examples
    --------
    >>> published_ares_cost(np.array([[3.0, 0.0], [0.0, 4.0]]))
    5.0
    """
    return float(np.linalg.norm(units))


def percentile_differences(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Change (5,) in per cent of the mean between percentiles 0-15, 15-30, 30-70, 70-85, 85-100.

    Feature by feature, then averaged. A feature whose factual mean in a range is 0 has no
    percentage there and is left out of that average.

    Parameters
    ----------
    before, after
        Arrays (n, q) of numbers, in the units percentages are meant in.

    Examples
    --------
    >>> before = np.arange(1.0, 101.0)[:, None]
    >>> percentile_differences(before, 1.1 * before).round(6)
    array([10., 10., 10., 10., 10.])
    """
    percents = np.stack(
        [
            _range_differences(_known(old), _known(new))
            for old, new in zip(before.T, after.T, strict=True)
        ]
    )
    present = ~np.isnan(percents)
    counts = present.sum(axis=0)
    sums = np.where(present, percents, 0.0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def pooled_percentile_differences(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """`percentile_differences` with all columns thrown into one, as in the published tables.

    A feature of large values then stands for all others; kept for comparison only.

    Examples
    --------
    >>> before = np.array([[1.0, 1000.0], [2.0, 2000.0]])
    >>> pooled_percentile_differences(before, before * [1.0, 2.0])[-1].round(6)
    np.float64(100.0)
    """
    return _range_differences(_known(before.ravel()), _known(after.ravel()))


def _known(values: np.ndarray) -> np.ndarray:
    return np.asarray(values[~np.isnan(values)])


def _range_differences(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Percentage change (5,) of the mean of the quantile function over each range."""
    old, new = _range_means(before), _range_means(after)
    safe = np.where(old == 0, np.nan, np.abs(old))
    return np.asarray(100.0 * np.abs(new - old) / safe)


def _range_means(values: np.ndarray) -> np.ndarray:
    """Mean (5,) of the step quantile function over each range; NaN without values."""
    n = len(values)
    if n == 0:
        return np.full(len(PERCENTILES), np.nan)
    edges = np.arange(n + 1) / n
    low, high = np.asarray(PERCENTILES).T[:, :, None]
    shares = np.clip(np.minimum(edges[1:], high) - np.maximum(edges[:-1], low), 0.0, None)
    return np.asarray(shares @ np.sort(values) / shares.sum(axis=1))


def category_difference(before: np.ndarray, after: np.ndarray) -> float:
    """Mean absolute difference of one-hot columns, between 0 and 1; NaN without columns.

    Parameters
    ----------
    before, after
        Arrays (n, q) of 0 and 1, the same row in the same place.

    Examples
    --------
    >>> category_difference(np.array([[1, 0], [1, 0]]), np.array([[0, 1], [1, 0]]))
    0.5
    """
    return float(np.abs(after - before).mean()) if before.size else float("nan")


def numeric_shift(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Change (2, q) in per cent of each column's mean and standard deviation (ddof = 1).

    NaN where the factual one is 0.

    Parameters
    ----------
    before, after
        Arrays (n, q) of numbers; missing cells are left out.

    Examples
    --------
    >>> numeric_shift(np.array([[1.0], [3.0]]), np.array([[3.0], [7.0]]))
    array([[150.],
           [100.]])
    """

    def moments(values: np.ndarray) -> np.ndarray:
        columns = [_known(column) for column in values.T]
        means = [column.mean() if len(column) else np.nan for column in columns]
        spreads = [column.std(ddof=1) if len(column) > 1 else np.nan for column in columns]
        return np.array([means, spreads])

    old, new = moments(before), moments(after)
    return np.asarray(100.0 * np.abs(new - old) / np.where(old == 0, np.nan, np.abs(old)))


def published_ot(value: float, *, trim: float = TRIM) -> float:
    """`sliced_ot` as the paper's tables show it, divided by 1 - 2 trim once too often.

    Examples
    --------
    >>> published_ot(0.8)
    1.0
    """
    return value / (1.0 - 2.0 * trim)


def dpc(diversity: float, ot: float, validity: float) -> float:
    """Diversity / OT * validity, the paper's diversity-proximity-coverage score.

    Only meaningful among methods of validity above 0.8: rows that hardly move have an OT near 0.
    NaN where nothing moved. Published values rest on `published_ot`: multiply them by 1.25.

    Examples
    --------
    >>> dpc(4.0, 0.5, 0.75)
    6.0
    """
    return diversity / ot * validity if ot > 0 else float("nan")


class PaperCase(Case):
    """An explanation as the paper's measures see it: arrays, each computed once."""

    @cached_property
    def numbers(self) -> np.ndarray:
        """Places (q,) of the numbers that may move."""
        features = self.explanation.problem.schema.features
        return np.flatnonzero([feature.free and feature.numeric for feature in features])

    @cached_property
    def units(self) -> np.ndarray:
        """Changes (n, p) in bins of the observed range; a swap within a group is 1 in all."""
        features = self.explanation.problem.schema.features
        spreads = [f.observed[1] - f.observed[0] if f.numeric else 0.0 for f in features]
        widths = np.array(spreads) / BINS
        widths[[feature.group is not None for feature in features]] = 2.0
        return bin_units(self.before, self.after, widths)

    @cached_property
    def one_hot(self) -> tuple[np.ndarray, np.ndarray]:
        """Indicators (n, q) of all categories and one-hot groups that may move, both sides."""
        features = self.explanation.problem.schema.features
        sides = []
        for codes in (self.before, self.after):
            columns = [np.empty((len(codes), 0))]
            for feature, column in zip(features, codes.T, strict=True):
                if feature.free and feature.group is not None:
                    columns.append(column[:, None])
                elif feature.free and feature.kind is Kind.CATEGORY:
                    columns.append(column[:, None] == np.arange(len(feature.levels)))
            sides.append(np.hstack(columns).astype(np.float64))
        return sides[0], sides[1]

    @cached_property
    def percentiles(self) -> np.ndarray:
        """Per cent (5,), feature by feature."""
        return self._percentiles(percentile_differences)

    @cached_property
    def pooled_percentiles(self) -> np.ndarray:
        """Per cent (5,), all columns in one."""
        return self._percentiles(pooled_percentile_differences)

    def _percentiles(self, measure: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        if not len(self.numbers):
            return np.full(len(PERCENTILES), np.nan)
        return measure(self.before[:, self.numbers], self.after[:, self.numbers])

    @cached_property
    def shift(self) -> np.ndarray:
        """Per cent (2,): mean over the numbers of the shifts of mean and standard deviation."""
        shifts = numeric_shift(self.before[:, self.numbers], self.after[:, self.numbers])
        known = [side[~np.isnan(side)] for side in shifts]
        return np.array([side.mean() if len(side) else np.nan for side in known])


def _ranges(attribute: str, text: str, prefix: str) -> dict[str, Metric]:
    def at(place: int) -> Callable[[Any], float]:
        return lambda case: float(getattr(case, attribute)[place])

    spans = [f"{100 * low:.0f}-{100 * high:.0f}" for low, high in PERCENTILES]
    return {
        f"{prefix} {span}": Metric(at(place), f"{text}, percentiles {span}")
        for place, span in enumerate(spans)
    }


METRICS: dict[str, Metric] = {
    **compare.METRICS,
    "ot published": Metric(
        lambda case: published_ot(case.ot), "ot, normalised twice as in the paper"
    ),
    "mmd": Metric(
        lambda case: mmd(case.embedded[1], case.embedded[0]),
        "squared MMD of the inputs, Gaussian kernel of width 1 as in the paper",
    ),
    "ares cost": Metric(
        lambda case: ares_cost(case.units),
        "mean over rows of the moves in bin widths (10 bins), a category change 1",
    ),
    "ares cost published": Metric(
        lambda case: published_ares_cost(case.units),
        "Frobenius norm of all moves in bin widths, as in the paper",
    ),
    **_ranges("percentiles", "change in per cent, feature by feature", "% at"),
    **_ranges("pooled_percentiles", "change in per cent, columns pooled as published", "% pooled"),
    "category difference": Metric(
        lambda case: category_difference(*case.one_hot),
        "mean absolute difference of one-hot columns",
    ),
    "mean shift %": Metric(
        lambda case: float(case.shift[0]), "shift of the mean in per cent, averaged over numbers"
    ),
    "std shift %": Metric(lambda case: float(case.shift[1]), "the same for the standard deviation"),
    "dpc": Metric(
        lambda case: dpc(case.diversity, case.ot, case.validity),
        "diversity / ot * validity; compare above validity 0.8 only",
    ),
}
"""Every measure of `compare` and of the paper by its name; each takes a `PaperCase`."""
