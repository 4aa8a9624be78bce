"""The cheapest moves that there are on German Credit, by going through all that could be best."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["cheapest"]

NUMBERS = ("Credit amount", "Duration")
LEVELS = ("Housing", "Saving accounts", "Checking account")
CHUNK = 4000


def cheapest(model: Any, frame: pd.DataFrame, rows: pd.DataFrame) -> np.ndarray:
    """Return the least cost (n,) of bringing each row to a risk of at most 0.5.

    Candidates of a number are the nearest whole numbers past every point where the outputs could
    change: all whole numbers for a linear model's duration, with the amount it then needs; every
    threshold of trees. They are asked about in order of cost, so the first good one is the best.
    """
    scales = frame[list(NUMBERS)].std()
    lowest, highest = frame[list(NUMBERS)].min(), frame[list(NUMBERS)].max()
    levels = [sorted(frame[name].dropna().unique()) for name in LEVELS]
    best = np.full(len(rows), np.inf)
    for place in range(len(rows)):
        row = rows.iloc[place]
        options = [
            [None] if pd.isna(row[name]) else choices
            for name, choices in zip(LEVELS, levels, strict=True)
        ]
        swaps = [
            (
                sum(
                    new is not None and new != row[name]
                    for name, new in zip(LEVELS, made, strict=True)
                ),
                made,
            )
            for made in itertools.product(*options)
        ]
        cap = 2.0
        while not np.isfinite(best[place]):
            best[place] = _under(model, row, swaps, scales, lowest, highest, cap, frame.dtypes)
            cap *= 2.0
    return best


def _under(
    model: Any,
    row: pd.Series,
    swaps: list[tuple[int, tuple[Any, ...]]],
    scales: pd.Series,
    lowest: pd.Series,
    highest: pd.Series,
    cap: float,
    dtypes: pd.Series,
) -> float:
    """The least cost among all candidates under a cap; infinite where none is good."""
    amount, months = (
        _whole(row[k], scales[k], lowest[k], highest[k], cap, model, k) for k in NUMBERS
    )
    costs_amount = ((amount - row[NUMBERS[0]]) / scales[NUMBERS[0]]) ** 2
    costs_months = ((months - row[NUMBERS[1]]) / scales[NUMBERS[1]]) ** 2
    places, costs = [], []
    for number, (swapped, _) in enumerate(swaps):
        total = swapped + costs_amount[:, None] + costs_months[None, :]
        i, j = np.nonzero(total <= cap)
        places.append(np.column_stack([np.full(i.size, number), i, j]))
        costs.append(total[i, j])
    cost, place = np.concatenate(costs), np.concatenate(places)
    order = np.argsort(cost, kind="stable")
    for start in range(0, order.size, CHUNK):
        some = order[start : start + CHUNK]
        made = pd.DataFrame([row.tolist()] * some.size, columns=row.index)
        number, i, j = place[some].T
        made[NUMBERS[0]], made[NUMBERS[1]] = amount[i].astype(int), months[j].astype(int)
        for k, name in enumerate(LEVELS):
            new = np.array([swap[1][k] for swap in swaps], dtype=object)[number]
            if new[0] is not None:
                made[name] = new
        made = made.astype(dtypes)
        good = np.flatnonzero(model.predict_proba(made)[:, 1] <= 0.5)
        if good.size:
            return float(cost[some[good[0]]])
    return np.inf


def _whole(
    value: float, scale: float, low: float, high: float, cap: float, model: Any, name: str
) -> np.ndarray:
    """Whole numbers worth trying: those past a threshold of trees, else a grid as fine as whole."""
    reach = scale * np.sqrt(cap)
    ends = max(low, np.ceil(value - reach)), min(high, np.floor(value + reach))
    trees = getattr(model[-1], "_predictors", None)
    if trees is None:
        # A linear model: amounts in steps of 25 are within 0.01 standard deviations of the best.
        step = 25 if name == NUMBERS[0] else 1
        steps = np.arange(-np.ceil(reach / step), np.ceil(reach / step) + 1) * step
        tried = value + steps
    else:
        column = list(model[0].get_feature_names_out()).index(f"remainder__{name}")
        cuts = {
            float(node["num_threshold"])
            for stage in trees
            for tree in stage
            for node in tree.nodes
            if not node["is_leaf"] and node["feature_idx"] == column
        }
        tried = np.array([value, *(c for cut in cuts for c in (np.floor(cut), np.floor(cut) + 1))])
    kept = np.unique(tried)
    return kept[(kept >= ends[0]) & (kept <= ends[1])]
