"""Who takes which action by a rule: a small tree whose leaves choose actions by their cost.

A split is taken where it lowers the summed cost of the best action on either side most, with the
price of a row that does not arrive as in the choice of actions. The conditions are data, so that
they hold for new rows and can be saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from elsewise.analysis._tree import EVERYONE, MOST_LEVELS, cut_between, smallest_leaf
from elsewise.features import Kind, Schema
from elsewise.policy._select import far_price
from elsewise.text import one_line

CUTS = 16
"""Thresholds tried per number."""
FIRST = 12
"""First questions tried."""


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
    price, asked = far_price(costs), _questions(schema, codes)
    answers = np.array([holds([question], codes) for question in asked]).reshape(-1, len(codes))
    # Leaves large enough that an action which serves one serves rows like these, too.
    least = max(smallest_leaf(len(codes)), len(codes) // (2 * most))
    split = _Splits(asked, answers, np.minimum(costs, price), least)
    root = split.leaf((), np.arange(len(codes)))
    firsts = np.argsort(root.totals, kind="stable")[: FIRST if most > 1 else 0]
    trees = [[root], *(split.grown(root, q, most) for q in firsts if np.isfinite(root.totals[q]))]
    best = min(trees, key=lambda leaves: sum(leaf.paid.min(initial=inf) for leaf in leaves))
    served = (leaf for leaf in best if leaf.paid.min(initial=inf) < price * len(leaf.rows))
    return [(leaf.who, int(leaf.paid.argmin())) for leaf in served]


class _Leaf(NamedTuple):
    """Some rows, by the answers they have in common."""

    who: tuple[Condition, ...]
    rows: np.ndarray
    paid: np.ndarray
    """ndarray (C,): what they pay by each action."""
    totals: np.ndarray
    """ndarray (Q,): what both sides of each question pay by their best actions."""

    @property
    def gain(self) -> float:
        """What the best question saves."""
        return float(self.paid.min(initial=inf) - self.totals.min(initial=inf))


class _Splits(NamedTuple):
    """What can be asked of rows, and what they pay."""

    asked: list[Condition]
    answers: np.ndarray
    """bool (Q, m)."""
    capped: np.ndarray
    """ndarray (m, C): costs, the price of not arriving where that is less."""
    least: int
    """Fewest rows of a leaf."""

    def leaf(self, who: tuple[Condition, ...], rows: np.ndarray) -> _Leaf:
        """Return the leaf of some rows."""
        mine, costs = self.answers[:, rows], self.capped[rows]
        size, paid = mine.sum(axis=1), costs.sum(axis=0)
        yes = mine.astype(np.float64) @ costs
        totals = yes.min(axis=1, initial=inf) + (paid - yes).min(axis=1, initial=inf)
        fits = (size >= self.least) & (rows.size - size >= self.least)
        return _Leaf(who, rows, paid, np.where(fits, totals, inf))

    def grown(self, leaf: _Leaf, question: int, most: int) -> list[_Leaf]:
        """Ask a first question, then each time the one that saves most."""
        leaves: list[_Leaf] = []
        while True:
            yes = self.answers[question, leaf.rows]
            for negated, side in ((False, yes), (True, ~yes)):
                condition = self.asked[question]._replace(negated=negated)
                leaves.append(self.leaf((*leaf.who, condition), leaf.rows[side]))
            place = int(np.argmax([leaf.gain for leaf in leaves]))
            if len(leaves) >= most or leaves[place].gain <= 1e-9:
                return leaves
            leaf = leaves.pop(place)
            question = int(leaf.totals.argmin())


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
