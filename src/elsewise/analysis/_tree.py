"""Sub-populations in words: a small tree on the factual rows, read back in the user's terms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor
from typing import NamedTuple

import numpy as np

from elsewise.analysis._columns import MISSING, Column
from elsewise.features import Kind
from elsewise.text import one_line

EVERYONE = "all rows"
LEAST_ROWS = 5
LEAST_SHARE = 0.05
MOST_LEVELS = 50
"""Categories of more levels than this are no help in words."""


class Leaf(NamedTuple):
    """One sub-population."""

    rows: np.ndarray
    """int (m,): its rows."""
    who: str
    """Its condition, true of its rows and of no others."""


def smallest_leaf(rows: int) -> int:
    """Return the smallest sub-population worth naming: 5 % of the rows, at least 5.

    Examples
    --------
    >>> smallest_leaf(30), smallest_leaf(1000)
    (5, 50)
    """
    return max(LEAST_ROWS, -(-rows // round(1 / LEAST_SHARE)))


class _Values(NamedTuple):
    """The distinct factual values of a column; a condition is a mask over them."""

    column: Column
    known: np.ndarray
    """ndarray (u,): the values that are not missing, in order."""
    places: np.ndarray
    """int (n,): each row's value; 0 is missing, k + 1 is ``known[k]``."""


def sub_populations(
    columns: Sequence[Column],
    moves: np.ndarray,
    *,
    most: int,
    least_gain: float,
    least_rows: int | None = None,
) -> list[Leaf]:
    """Return sub-populations of the rows that move alike within and differently between.

    Parameters
    ----------
    columns
        What the conditions may speak of; only their factual values are seen.
    moves
        ndarray (n, d): what should be alike.
    most
        At most this many sub-populations.
    least_gain
        Every split explains at least this share of the summed squared moves.
    least_rows
        None is smaller than this; by default `smallest_leaf`.
    """
    from sklearn.tree import DecisionTreeRegressor

    total = float(np.mean(moves * moves))
    asked = [_values(c) for c in columns if c.numeric or len(c.levels) <= MOST_LEVELS]
    # A question is about the values at a place of ``asked``: whether they are this one, or, with
    # None, at most a threshold. The tree sees the answers: single precision holds places exactly.
    questions: list[tuple[int, int | None]] = []
    design: list[np.ndarray] = []
    for k, values in enumerate(asked):
        present = np.unique(values.places).tolist()
        for place in [None] if values.column.ordered else present:
            if len(present) > 1:
                questions.append((k, place))
                design.append(values.places if place is None else values.places == place)
    if most < 2 or total == 0 or not questions:
        return [Leaf(np.arange(len(moves)), EVERYONE)]
    answers = np.stack(design, axis=1).astype(np.float32)
    least, gain = least_rows or smallest_leaf(len(moves)), least_gain * total
    # The state decides which of several equally good splits is taken; fixed, the words stay the
    # same.
    tree = DecisionTreeRegressor(
        max_leaf_nodes=most, min_samples_leaf=least, min_impurity_decrease=gain, random_state=0
    ).fit(answers, moves)
    nodes, reached = tree.tree_, tree.apply(answers)

    def leaves(node: int, masks: dict[int, np.ndarray]) -> Iterator[Leaf]:
        """Yield the leaves below; of each column asked about, a mask (u + 1,) has the values."""
        left, right = nodes.children_left[node], nodes.children_right[node]
        if left == right:
            said = [_words(asked[k], mask) for k, mask in masks.items()]
            yield Leaf(np.flatnonzero(reached == node), " and ".join(said) or EVERYONE)
            return
        k, place = questions[nodes.feature[node]]
        every = np.arange(asked[k].known.size + 1)
        low = every <= nodes.threshold[node] if place is None else every != place
        before = masks.get(k, np.ones(every.size, dtype=bool))
        yield from leaves(left, masks | {k: before & low})
        yield from leaves(right, masks | {k: before & ~low})

    return list(leaves(0, {}))


def _values(column: Column) -> _Values:
    missing = np.isnan(column.before)
    known = np.unique(column.before[~missing])
    return _Values(column, known, np.where(missing, 0, 1 + np.searchsorted(known, column.before)))


def _words(values: _Values, mask: np.ndarray) -> str:
    """Say which values of a column a mask keeps."""
    name, known = one_line(values.column.name), mask[1:]
    if not values.column.ordered:
        return _level_words(name, values, mask)
    if known.all() or not known.any():
        return f"{name} is {'known' if known.any() else MISSING}"
    words = _number_words if values.column.numeric else _order_words
    said = words(name, values, np.flatnonzero(known))
    return f"({said} or {MISSING})" if mask[0] and (values.places == 0).any() else said


def _number_words(name: str, values: _Values, kept: np.ndarray) -> str:
    known, first, last = values.known, int(kept[0]), int(kept[-1])
    whole = values.column.kind == Kind.INTEGER
    if first == last and whole:
        return f"{name} is {known[first]:,.0f}"
    lower = "" if first == 0 else cut_between(known[first - 1], known[first], whole)
    upper = "" if last == known.size - 1 else cut_between(known[last], known[last + 1], whole)
    if lower and upper:
        return f"{lower} < {name} <= {upper}"
    return f"{name} <= {upper}" if upper else f"{name} > {lower}"


def cut_between(below: float, above: float, whole: bool) -> str:
    """Return the shortest number c with below <= c < above, so that "<= c" parts the two.

    Examples
    --------
    >>> cut_between(31.0, 32.0, True), cut_between(0.1234, 0.1432, False)
    ('31', '0.13')
    >>> cut_between(1480.0, 1523.0, True)
    '1,500'
    """
    middle = below + (above - below) / 2
    middle = floor(middle) if whole else middle
    rounded = ((float(f"{middle:.{digits}g}"), digits) for digits in range(1, 18))
    # Two neighbouring doubles have no number between them: then it is the lower one.
    cut, digits = next((pair for pair in rounded if below <= pair[0] < above), (below, 17))
    return f"{cut:,.0f}" if cut == round(cut) and abs(cut) < 1e15 else f"{cut:.{digits}g}"


def _order_words(name: str, values: _Values, kept: np.ndarray) -> str:
    low, high = (one_line(values.column.level(values.known[k])) for k in (kept[0], kept[-1]))
    if kept[0] == kept[-1]:
        return f"{name} is {low}"
    if kept[0] == 0:
        return f"{name} is at most {high}"
    last = values.known.size - 1
    return f"{name} is at least {low}" if kept[-1] == last else f"{name} is {low} to {high}"


def _level_words(name: str, values: _Values, mask: np.ndarray) -> str:
    codes, present = np.concatenate([[np.nan], values.known]), np.unique(values.places)
    kept, dropped = (
        [one_line(values.column.level(code)) for code in codes[present[side]]]
        for side in (mask[present], ~mask[present])
    )
    if len(kept) == 1 or len(kept) <= len(dropped):
        return f"{name} is {' or '.join(kept)}"
    return f"{name} is not {' or '.join(dropped)}"
