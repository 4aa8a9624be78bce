"""Sub-populations for which the outcome improves by a move nobody expected."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import inf, isfinite, sqrt
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from elsewise._arrays import to_numpy
from elsewise.analysis import Column, columns_of
from elsewise.analysis._tree import smallest_leaf, sub_populations
from elsewise.errors import InvalidInput
from elsewise.explanation import Explanation
from elsewise.text import one_line

__all__ = ["surprises"]

MOST_LEAVES = 8
# Smallest mean move, in its standard errors, that is a surprise.
EVIDENCE = 3.0
# Share of the mean output change under which a cell's move does not count as improving it.
NEGLIGIBLE = 1e-3
DTYPES: dict[str, Any] = {
    "feature": object,
    "expected": "int64",
    "who": object,
    "rows": "int64",
    "share": "float64",
    "mean_move": "float64",
    "evidence": "float64",
    "effect": "float64",
    "words": object,
}


def signed(value: float) -> str:
    """Return an amount with its sign."""
    return f"{value:+,.0f}" if abs(value) >= 1000 else f"{value:+.3g}"


def surprises(explanation: Explanation, expected: Mapping[Hashable, float]) -> pd.DataFrame:
    """Return sub-populations in which a feature improves the outcome by moving the other way.

    The outcome improves in the direction of the outputs' mean change, up or down. A row counts
    for a feature if putting its factual value back into the counterfactual row would undo some of
    the row's improvement: so the model itself, not the rest of the population, asks for the move.
    A tree on the factual rows parts those that move up from those that move down (at most 8
    leaves, each of at least 5 rows and 5 % of those that count). The model is called once per
    feature.

    Parameters
    ----------
    explanation
        What to look at.
    expected
        For numbers and ordered categories that may move: the sign of the move that you expect
        where the outcome improves, for instance ``{"Credit amount": -1}``.

    Returns
    -------
    DataFrame
        One row per surprise, most evidence first; empty where there is none.

        - ``feature``, ``expected`` (+1 or -1)
        - ``who``: the sub-population in words; its ``rows`` that count, their ``share`` of all rows
        - ``mean_move`` in the user's units, of ordered categories in levels
        - ``evidence``: the mean move against the expected sign in its standard errors, at least 3.
          The sub-populations were found on the same rows: it ranks, it is no test
        - ``effect``: mean improvement of the output that the move makes
        - ``words``: all of this in a sentence

    Examples
    --------
    >>> import elsewise as ew
    >>> rng = np.random.default_rng(0)
    >>> rows = pd.DataFrame({"credit": rng.normal(size=80), "age": [25, 50] * 40})
    >>> score = ew.models.function(
    ...     lambda frame: frame["credit"] * np.where(frame["age"] < 30, 1.0, -1.0), smooth=True
    ... )
    >>> explanation = ew.explain(
    ...     score, rows, target=ew.targets.shift(0.5), schema=ew.Schema.infer(rows).freeze("age"),
    ...     bounds=ew.Bounds(outputs=0.3), certify="in-sample",
    ... )
    >>> surprises(explanation, {"credit": -1})["who"].tolist()
    ['age is 25']
    """
    columns = columns_of(explanation)
    table = [
        found
        for column, sign in _checked(expected, columns)
        for found in _of_feature(explanation, columns, column, sign)
    ]
    frame = pd.DataFrame(table, columns=[*DTYPES]).astype(DTYPES)
    return frame.sort_values("evidence", ascending=False, kind="stable", ignore_index=True)


def _checked(expected: object, columns: Sequence[Column]) -> list[tuple[Column, int]]:
    """Return the columns to look at with their signs; refuse those without a direction."""
    if not isinstance(expected, Mapping) or not expected:
        raise InvalidInput(
            "expected",
            expected="a mapping from features to the signs of their moves",
            received=repr(expected),
            fix='for example {"Credit amount": -1}',
        )
    able = {column.name: column for column in columns if column.free and column.ordered}
    for name, sign in expected.items():
        if name not in able:
            raise InvalidInput(
                "expected",
                expected="numbers and ordered categories that may move",
                received=repr(name),
                fix=f"name some of {', '.join(map(repr, able)) or 'them (there are none here)'}",
            )
        if not isinstance(sign, Real) or not isfinite(sign) or sign == 0:
            raise InvalidInput(
                f"expected[{name!r}]",
                expected="+1 or -1",
                received=repr(sign),
                fix="+1 if you expect it to rise where the outcome improves, -1 if to fall",
            )
    return [(able[name], 1 if sign > 0 else -1) for name, sign in expected.items()]


def _of_feature(
    explanation: Explanation, columns: Sequence[Column], column: Column, sign: int
) -> Iterator[dict[str, Any]]:
    """Yield the surprises of one feature."""
    effects = _effects(explanation, column)
    rows = np.flatnonzero(effects > 0)
    moves, effects = (column.after - column.before)[rows], effects[rows]
    least = smallest_leaf(rows.size)
    if rows.size < least:
        return
    leaves = sub_populations(
        [other.take(rows) for other in columns],
        np.sign(moves)[:, None],
        most=MOST_LEAVES,
        least_rows=least,
        least_gain=0.0,
    )
    for who, own in ((leaf.who, leaf.rows) for leaf in leaves):
        mean, error = float(moves[own].mean()), float(moves[own].std(ddof=1)) / sqrt(own.size)
        against = -sign * mean
        if against > 0 and against >= EVIDENCE * error:
            effect = float(effects[own].mean())
            yield {
                "feature": column.name,
                "expected": sign,
                "who": who,
                "rows": own.size,
                "share": own.size / column.before.size,
                "mean_move": mean,
                "evidence": against / error if error > 0 else inf,
                "effect": effect,
                "words": f"{who}: {one_line(column.name)} {signed(mean)} on average improves the "
                f"output by {effect:.3g} ({own.size:,} rows)",
            }


def _effects(explanation: Explanation, column: Column) -> np.ndarray:
    """How much (n,) of each row's improvement putting the feature back would undo; else 0."""
    effects = np.zeros(column.before.size)
    change = (explanation.outputs - explanation.factual_outputs).mean(axis=0)
    size = float(np.linalg.norm(change))
    rows = np.flatnonzero(column.moved)
    if size == 0 or rows.size == 0:
        return effects
    codes = to_numpy(explanation.rows.codes)[rows]
    codes[:, column.places] = to_numpy(explanation.problem.factual)[rows][:, column.places]
    outputs = explanation.problem.outputs
    back = to_numpy(outputs.values(outputs.place(codes)))
    effects[rows] = (explanation.outputs[rows] - back) @ (change / size)
    return np.where(effects > NEGLIGIBLE * size, effects, 0.0)
