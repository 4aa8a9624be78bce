"""Who takes which action by a rule: a small tree whose leaves choose actions by their cost.

A split is taken where it lowers the summed cost of the best action on either side most, with the
price of a row that does not arrive as in the choice of actions. The conditions are data, so that
they hold for new rows and can be saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from elsewise.analysis._tree import EVERYONE, MOST_LEVELS, cut_between, smallest_leaf
from elsewise.features import Kind, Schema
from elsewise.policy._select import far_price
from elsewise.text import one_line

CUTS = 16
"""Thresholds tried per number."""


class Condition(NamedTuple):
    """A condition on one code of a factual row; it is false for a missing one."""

    column: int
    value: float
    at_most: bool
    """Whether the code is at most ``value``; else it is ``value``."""
    negated: bool = False
    """Whether the contrary is meant."""


def holds(conditions: Sequence[Condition], codes: np.ndarray) -> np.ndarray:
    """Return, bool (n,), the rows of codes (n, p) for which every condition holds."""
    kept = np.ones(len(codes), dtype=bool)
    for column, value, at_most, negated in conditions:
        answer = codes[:, column] <= value if at_most else codes[:, column] == value
        kept &= answer != negated
    return kept


def grow_rule(
    schema: Schema, codes: np.ndarray, costs: np.ndarray, most: int
) -> list[tuple[tuple[Condition, ...], int]]:
    """Return at most ``most`` conditions with the column of ``costs`` that each takes.

    Parameters
    ----------
    codes
        ndarray (m, p): rows.
    costs
        ndarray (m, C): what each row pays to arrive by each action, infinite where it does not.
    """
    price, least = far_price(costs), smallest_leaf(len(codes))
    capped = np.minimum(costs, price)
    asked = _questions(schema, codes)
    answers = np.array([holds([question], codes) for question in asked]).reshape(-1, len(codes))
    leaves: list[tuple[tuple[Condition, ...], np.ndarray]] = [((), np.arange(len(codes)))]
    splits = [_split(answers, capped, leaves[0][1], least)]
    while len(leaves) < most and (gains := [gain for gain, _ in splits]) and max(gains) > 1e-9:
        place = int(np.argmax(gains))
        (conditions, rows), (_, question) = leaves.pop(place), splits.pop(place)
        for negated in (False, True):
            one = (*conditions, asked[question]._replace(negated=negated))
            kept = rows[answers[question, rows] != negated]
            leaves.append((one, kept))
            splits.append(_split(answers, capped, kept, least))
    best = [(one, capped[rows].sum(axis=0)) for one, rows in leaves]
    sizes = [price * len(rows) for _, rows in leaves]
    return [
        (one, int(totals.argmin()))
        for (one, totals), size in zip(best, sizes, strict=True)
        if totals.size and totals.min() < size
    ]


def _questions(schema: Schema, codes: np.ndarray) -> list[Condition]:
    asked: list[Condition] = []
    for j, feature in enumerate(schema.features):
        known = np.unique(codes[~np.isnan(codes[:, j]), j])
        if feature.kind is Kind.FIXED or known.size < 2:
            continue
        if feature.numeric:
            places = np.unique(np.linspace(0, known.size - 2, CUTS).astype(int))
            whole = feature.kind is Kind.INTEGER
            cuts = (cut_between(known[i], known[i + 1], whole).replace(",", "") for i in places)
            asked += [Condition(j, float(cut), at_most=True) for cut in cuts]
        elif feature.group is not None:
            asked.append(Condition(j, 1.0, at_most=False))
        elif known.size <= MOST_LEVELS:
            asked += [Condition(j, float(code), at_most=feature.ordered) for code in known]
    return asked


def _split(
    answers: np.ndarray, capped: np.ndarray, rows: np.ndarray, least: int
) -> tuple[float, int]:
    """Return what the best question about some rows saves, and its place."""
    mine, costs = answers[:, rows], capped[rows]
    size = mine.sum(axis=1)
    fits = (size >= least) & (rows.size - size >= least)
    if not fits.any() or not costs.shape[1]:
        return 0.0, -1
    whole = costs.sum(axis=0)
    yes = mine.astype(np.float64) @ costs
    totals = yes.min(axis=1) + (whole - yes).min(axis=1)
    best = int(np.where(fits, totals, np.inf).argmin())
    return float(whole.min() - totals[best]), best


def rule_words(schema: Schema, conditions: Sequence[Condition]) -> str:
    """Say whom a rule means; of several bounds on a number only the tightest is said."""
    said: dict[tuple[int, bool, object], str] = {}
    order = sorted(conditions, key=lambda c: (c.negated, c.value if c.negated else -c.value))
    for column, value, at_most, negated in order:
        feature = schema.features[column]
        grouped = feature.group is not None
        name = one_line(feature.group if grouped else feature.name)
        if at_most and feature.numeric:
            words = f"{name} {'>' if negated else '<='} {value:,.12g}"
        elif at_most:
            words = f"{name} is {'above' if negated else 'at most'} {feature.levels[int(value)]}"
        else:
            level = feature.name if grouped else feature.levels[int(value)]
            words = f"{name} is {'not ' if negated else ''}{one_line(level)}"
        said[column, negated, None if at_most else value] = words
    return f"rows where {' and '.join(said.values())}" if said else EVERYONE
