"""What the move does to how well and how fairly the model answers, after Koebler et al. (2023).

The paper's appendix proposes to look at a counterfactual population as one looks at drifted data:
measures of accuracy and of fairness before, after, and their difference. Rows are resampled in
pairs, the same ones before and after, with the map held fixed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from elsewise.analysis._labels import Asked, ask
from elsewise.errors import InvalidInput
from elsewise.text import percent

if TYPE_CHECKING:
    from elsewise.explanation import Explanation


# Weights of resampled rows held at once.
BATCH = 1 << 22
ALL, BETWEEN = "(all rows)", "(between groups)"
MEANING = (
    "Labels are those of the factual rows: what is compared with them after the move are the "
    "model's answers for moved rows, not outcomes that a real change would bring. Nothing here is "
    "causal. Intervals resample rows, the same ones before and after, with the map held fixed. "
    "Those between groups hold for every pair of groups at once, so they may reach down to 0."
)
"""What effects say, and what they do not; shown with every table of them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Effects:
    """Measures of the model's answers before and after the move."""

    table: pd.DataFrame
    """Indexed by ``measure`` and ``group``: before, after, difference, each with the ends of its
    interval, and the ``rows`` behind the measure."""
    level: float
    """Level of each interval on its own."""
    draws: int
    """Number of resamples."""

    def __repr__(self) -> str:
        shown = self.table[["before", "after", "difference", "low", "high"]]
        return f"{self._title()}\n{shown.to_string(float_format='{:.4f}'.format)}\n{MEANING}"

    def _repr_html_(self) -> str:
        table = self.table.to_html(float_format="{:.4f}".format)
        return f"<p>{escape(self._title())}</p>{table}<p>{escape(MEANING)}</p>"

    def _title(self) -> str:
        level = percent(self.level, exact=True)
        return f"Effects of the move; low and high: {level} interval of the difference"


def effects(
    explanation: Explanation,
    labels: Any = None,
    groups: Any = None,
    *,
    cutoff: float | None = None,
    column: int = 0,
    draws: int = 999,
    level: float = 0.95,
) -> Effects:
    """Return measures of accuracy and of fairness, before and after the move.

    Parameters
    ----------
    explanation
        What to measure.
    labels
        Observed outcomes (n,) of the factual rows; missing ones are left out. For a model that
        gives probabilities 0 or 1: 1 is the class the output is the probability of.
    groups
        A column of the explained rows by name, or values (n,): measures of fairness between them.
    cutoff
        Output from which a row counts as positive; 0.5 for probabilities.
    column
        Which output column, where there are several.
    draws
        Number of resamples.
    level
        Level of each interval. A largest minus smallest value is at least 0 whatever the sample,
        and is larger in samples and resamples than in the population: its interval is the
        projection of simultaneous intervals for all pairs of groups, not percentiles of its own.

    Returns
    -------
    Effects
        With labels: accuracy, Brier score, AUC and calibration in the large (mean output minus
        mean label) of probabilities; mean absolute, root mean squared and mean error otherwise.
        With groups: mean output and share of positive rows by group and the demographic parity
        difference, which is the largest minus the smallest share (of mean outputs without a
        cut-off). With both: the share of positive rows among those labelled 1, by group, and their
        equal opportunity difference.

    References
    ----------
    Koebler, Decker, Lebacher, Thon, Tresp, Buettner (2023), "Towards explanatory model monitoring".

    Examples
    --------
    >>> import elsewise as ew
    >>> rows = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    >>> score = ew.models.function(lambda frame: frame["a"], smooth=True)
    >>> explanation = ew.explain(
    ...     score, rows, target=ew.targets.shift(1.0), bounds=ew.Bounds(outputs=0.2)
    ... )
    >>> found = effects(explanation, labels=rows["a"]).table
    >>> found.loc[("mean absolute error", "(all rows)"), ["before", "after"]].round(0).tolist()
    [0.0, 1.0]
    """
    asked = ask(explanation, labels, groups, cutoff)
    if not 0 <= column < explanation.outputs.shape[1]:
        expected = f"an output column from 0 to {explanation.outputs.shape[1] - 1}"
        fix = "leave it out for the first"
        raise InvalidInput("column", expected=expected, received=column, fix=fix)
    if draws < 1 or not 0 < level < 1:
        expected, fix = "at least 1 resample and a level in (0, 1)", "leave them out: 999 and 0.95"
        raise InvalidInput("draws, level", expected=expected, received=f"{draws}, {level}", fix=fix)
    sides = [side[:, column] for side in (explanation.factual_outputs, explanation.outputs)]
    rng = explanation.problem.generator("effects")
    parts = [
        [_measures(side, asked, weights) for side in sides]
        for weights in _weightings(len(sides[0]), draws, rng)
    ]
    names = list(parts[0][0])
    table = pd.DataFrame(
        [
            (_entry_between if name[1] == BETWEEN else _entry)(
                [(old[name], new[name]) for old, new in parts], level
            )
            for name in names
        ],
        index=pd.MultiIndex.from_tuples(names, names=["measure", "group"]),
    )
    return Effects(table=table, level=level, draws=draws)


def _weightings(rows: int, draws: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield weights (R, n) of the rows: once each, then as often as a resample has them."""
    yield np.ones((1, rows))
    size = max(1, BATCH // rows)
    for start in range(0, draws, size):
        count = min(size, draws - start)
        yield rng.multinomial(rows, np.full(rows, 1.0 / rows), size=count).astype(np.float64)


class _Measured(NamedTuple):
    """A measure under R weightings of the rows."""

    under: np.ndarray
    """ndarray (R,): the first is that of the rows themselves; NaN where it is not defined. Of a
    difference between groups (R, G): the values of all groups."""
    rows: int
    """Number of rows behind it."""


Measures = dict[tuple[str, str], _Measured]
"""Measures by their name and the group they are about."""


def _measures(outputs: np.ndarray, asked: Asked, weights: np.ndarray) -> Measures:
    """Return every measure that was asked for, under each weighting (R, n)."""
    everyone = np.ones(len(outputs))
    columns = {"mean output": outputs}
    difference = {"mean output": "difference in mean output"}
    if asked.cutoff is not None:
        share = f"share at or above {asked.cutoff:g}"
        columns[share] = (outputs >= asked.cutoff).astype(np.float64)
        difference = {share: "demographic parity difference"}
    found = {(name, ALL): _mean(values, everyone, weights) for name, values in columns.items()}
    if asked.labels is not None:
        found |= _accuracy(outputs, asked, weights)
    for name, values in columns.items():
        found |= _by_group(name, values, asked.members, weights, difference.get(name))
    if asked.classes and asked.labels is not None:
        # Labels are 1, 0 or missing; a missing one counts in no group.
        true = np.nan_to_num(asked.labels)
        labelled = {name: member * true for name, member in asked.members.items()}
        rate, spread = "true positive rate", "equal opportunity difference"
        found |= _by_group(rate, columns[share], labelled, weights, spread)
    return found


def _accuracy(outputs: np.ndarray, asked: Asked, weights: np.ndarray) -> Measures:
    """Return the measures that compare outputs with labels, over the rows that have one."""
    assert asked.labels is not None  # called where there are labels
    known = (~np.isnan(asked.labels)).astype(np.float64)
    labels = np.nan_to_num(asked.labels)
    errors = outputs - labels
    squares = _mean(errors * errors, known, weights)
    mean = _mean(errors, known, weights)
    if not asked.classes:
        return {
            ("mean absolute error", ALL): _mean(np.abs(errors), known, weights),
            ("root mean squared error", ALL): squares._replace(under=np.sqrt(squares.under)),
            ("mean error", ALL): mean,
        }
    right = (outputs >= asked.cutoff) == (labels == 1.0)
    return {
        ("accuracy", ALL): _mean(right.astype(np.float64), known, weights),
        ("Brier score", ALL): squares,
        ("AUC", ALL): _auc(outputs, labels, known, weights),
        ("calibration in the large", ALL): mean,
    }


def _mean(values: np.ndarray, who: np.ndarray, weights: np.ndarray) -> _Measured:
    """Mean of values over the rows with ``who`` 1."""
    return _Measured(_ratio(weights @ (values * who), weights @ who), int(who.sum()))


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.where(below > 0, above / np.where(below > 0, below, 1.0), np.nan)


def _auc(
    outputs: np.ndarray, labels: np.ndarray, known: np.ndarray, weights: np.ndarray
) -> _Measured:
    """Share of pairs of a 1 and a 0 in which the 1 has the larger output, ties one half."""
    order = np.argsort(outputs, kind="stable")
    # Ties are taken together: each place is one output value, with its weight of ones and of zeros.
    starts = np.flatnonzero(np.diff(outputs[order], prepend=-np.inf) > 0)
    ones, zeros = (
        np.add.reduceat((weights * known * side)[:, order], starts, axis=1)
        for side in (labels, 1.0 - labels)
    )
    below = np.cumsum(zeros, axis=1) - zeros
    pairs = ones.sum(axis=1) * zeros.sum(axis=1)
    ordered = np.sum(ones * (below + 0.5 * zeros), axis=1)
    return _Measured(_ratio(ordered, pairs), int(known.sum()))


def _by_group(
    name: str,
    values: np.ndarray,
    members: dict[str, np.ndarray],
    weights: np.ndarray,
    spread: str | None,
) -> Measures:
    """Return means by group and, under the name ``spread``, all of them side by side."""
    found = {(name, group): _mean(values, who, weights) for group, who in members.items()}
    if found and spread is not None:
        stacked = np.stack([measured.under for measured in found.values()], axis=1)
        found[spread, BETWEEN] = _Measured(stacked, sum(m.rows for m in found.values()))
    return found


def _entry(parts: Sequence[tuple[_Measured, _Measured]], level: float) -> dict[str, float]:
    """One row of the table, from a measure's batches before and after."""
    before, after = (np.concatenate([part[k].under for part in parts]) for k in (0, 1))
    ends = (0.5 - level / 2.0, 0.5 + level / 2.0)
    entry: dict[str, float] = {}
    for name, values, low, high in (
        ("before", before, "before_low", "before_high"),
        ("after", after, "after_low", "after_high"),
        ("difference", after - before, "low", "high"),
    ):
        # A resample without anyone of a group, or of one class, says nothing about it.
        drawn = values[1:][~np.isnan(values[1:])]
        interval = np.quantile(drawn, ends) if drawn.size else np.full(2, np.nan)
        entry |= {name: float(values[0]), low: float(interval[0]), high: float(interval[1])}
    return entry | {"rows": parts[0][0].rows}


def _entry_between(parts: Sequence[tuple[_Measured, _Measured]], level: float) -> dict[str, float]:
    """One row of the table: largest minus smallest group, before and after.

    With probability ``level`` every difference of two groups, before, after and the change of it,
    is within c standard errors of its estimate, c from the resamples' largest error. Then the
    largest difference is within the largest of those limits. Its change is at most the change of
    the pair that is largest after, and at least that of the pair that is largest before.
    """
    values = [np.concatenate([part[k].under for part in parts]) for k in (0, 1)]
    count = values[0].shape[1]
    first, second = np.nonzero(~np.eye(count, dtype=bool))
    pairs = [value[:, first] - value[:, second] for value in values]
    every = np.concatenate([*pairs, pairs[1] - pairs[0]], axis=1)  # (1 + draws, 3 P)
    estimate, drawn = every[0], every[1:][~np.isnan(every[1:]).any(axis=1)]
    margin = np.full(estimate.size, np.nan)
    if drawn.size and not np.isnan(estimate).any():
        # Studentized, so that a small group with a wide spread does not decide on the limits of
        # all.
        errors, spread = np.abs(drawn - estimate), drawn.std(axis=0)
        scaled = errors / np.where(spread > 0, spread, np.inf)
        margin = np.quantile(scaled.max(axis=1), level) * spread
    # Three thirds: the pairs before, after, and their change.
    mid, low, high = (np.split(v, 3) for v in (estimate, estimate - margin, estimate + margin))
    entry: dict[str, float] = {}
    for k, name in enumerate(("before", "after")):
        entry |= {name: mid[k].max(), f"{name}_low": max(low[k].max(), 0.0)}
        entry[f"{name}_high"] = high[k].max()
    # Only pairs that may be the largest count, and the intervals of the two sides hold as well.
    least, most = low[2][high[0] >= low[0].max()], high[2][high[1] >= low[1].max()]
    known = bool(least.size and most.size)
    ends = (
        (
            max(least.min(), entry["after_low"] - entry["before_high"]),
            min(most.max(), entry["after_high"] - entry["before_low"]),
        )
        if known
        else (np.nan, np.nan)
    )
    entry |= {"difference": mid[1].max() - mid[0].max(), "low": ends[0], "high": ends[1]}
    return {name: float(value) for name, value in entry.items()} | {"rows": parts[0][0].rows}
