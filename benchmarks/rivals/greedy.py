"""The loop one would write by hand: one cell a row, the cheapest rows first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import elsewise as ew

__all__ = ["greedy_share"]


def greedy_share(
    model: Any, rows: pd.DataFrame, train: pd.DataFrame, schema: ew.Schema, share: float
) -> pd.DataFrame:
    """Move rows past a probability of 0.5 by their cheapest single-cell edit until enough are.

    Values tried are the levels of a category and 40 quantiles of a number in the training rows.
    """
    after = rows.copy()
    passing = model.predict_proba(rows)[:, 1] >= 0.5
    best = np.full(len(rows), np.inf)
    edits: list[tuple[str, Any]] = [("", None)] * len(rows)
    for feature in (feature for feature in schema.features if feature.free):
        name = str(feature.name)
        column = train[name].dropna()
        if feature.numeric:
            levels = np.unique(np.quantile(column, np.linspace(0.0, 1.0, 40)))
            values = np.unique(levels.round()) if feature.kind == "integer" else levels
        else:
            values = column.unique()
        for value in values:
            tried = rows.copy()
            tried[name] = pd.Series([value] * len(rows), index=rows.index).astype(rows[name].dtype)
            cost = np.where(rows[name] == value, np.inf, 1.0)
            if feature.numeric:
                cost = ((rows[name].to_numpy(float) - value) / feature.scale) ** 2
            good = (model.predict_proba(tried)[:, 1] >= 0.5) & ~passing & (cost < best)
            good &= rows[name].notna().to_numpy()
            best[good] = cost[good]
            for row in np.flatnonzero(good):
                edits[row] = (name, value)
    needed = int(np.ceil(share * len(rows) - 1e-9)) - int(passing.sum())
    for row in np.argsort(best)[: max(needed, 0)]:
        if np.isfinite(best[row]):
            name, value = edits[row]
            after.iloc[row, after.columns.get_loc(name)] = value
    return after
