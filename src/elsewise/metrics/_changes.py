"""What changed between rows and their counterfactuals: pure functions of codes (n, p)."""

from __future__ import annotations

import numpy as np

__all__ = [
    "ares_cost",
    "bin_units",
    "bin_widths",
    "category_difference",
    "changed_cells",
    "numeric_shift",
    "percentile_differences",
    "pooled_percentile_differences",
    "published_ares_cost",
]

BINS = 10
PERCENTILES = ((0.0, 0.15), (0.15, 0.3), (0.3, 0.7), (0.7, 0.85), (0.85, 1.0))
"""The paper's five ranges."""


def changed_cells(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return, bool (n, p), the cells that changed; a cell missing in both did not.

    Examples
    --------
    >>> changed_cells(np.array([[1.0, np.nan]]), np.array([[2.0, np.nan]]))
    array([[ True, False]])
    """
    return np.asarray((before != after) & ~(np.isnan(before) & np.isnan(after)))


def bin_widths(values: np.ndarray, bins: int = BINS) -> np.ndarray:
    """Width (p,) of each column's bins, ``bins`` equal ones from its smallest to largest value.

    Missing values are left out; 0 for a column of one value or none.

    Examples
    --------
    >>> bin_widths(np.array([[0.0, 5.0], [20.0, 5.0]]))
    array([2., 0.])
    """
    missing = np.isnan(values)
    low = np.where(missing, np.inf, values).min(axis=0)
    high = np.where(missing, -np.inf, values).max(axis=0)
    return np.where(high > low, high - low, 0.0) / bins


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
