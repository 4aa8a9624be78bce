"""Correlations of the numbers, before and after."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from elsewise.analysis._columns import columns_of

if TYPE_CHECKING:
    from elsewise.explanation import Explanation


def correlation_pair(explanation: Explanation) -> tuple[list[Hashable], np.ndarray, np.ndarray]:
    """Return the numbers that vary and their correlations (q, q), before and after.

    A missing cell counts as the mean of its column.
    """
    numbers = [column for column in columns_of(explanation) if column.numeric]
    rows = len(explanation.outputs)
    before, after = (
        _standardized(np.array(codes).reshape(-1, rows).T)
        for codes in ([c.before for c in numbers], [c.after for c in numbers])
    )
    varies = (before != 0).any(axis=0) & (after != 0).any(axis=0)
    names = [column.name for column, keep in zip(numbers, varies, strict=True) if keep]
    before, after = before[:, varies], after[:, varies]
    return names, before.T @ before / rows, after.T @ after / rows


def _standardized(codes: np.ndarray) -> np.ndarray:
    known = ~np.isnan(codes)
    count = np.maximum(known.sum(axis=0), 1)
    centred = np.where(known, codes - np.where(known, codes, 0.0).sum(axis=0) / count, 0.0)
    spread = np.sqrt((centred**2).mean(axis=0))
    return np.asarray(centred / np.where(spread > 0, spread, 1.0))
