"""What the move does to how well and how fairly the model answers, after Koebler et al. (2023).

The paper's appendix proposes to look at a counterfactual population as one looks at drifted data:
measures of accuracy and of fairness before, after, and their difference. Rows are resampled in
pairs, the same ones before and after, with the map held fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from elsewise.errors import InvalidInput
from elsewise.explanation import Explanation
from elsewise.text import percent

# Weights of resampled rows held at once.
BATCH = 1 << 22
MOST_GROUPS = 20
COLUMNS = ["before", "before_low", "before_high", "after", "after_low", "after_high"]
COLUMNS += ["difference", "low", "high", "rows"]
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
        level, numbers = percent(self.level, exact=True), shown.to_string(float_format="%.4f")
        title = f"Effects of the move; low and high: {level} interval of the difference"
        return f"{title}\n{numbers}\n{MEANING}"


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
    classes = bool(explanation.problem.outputs.probability)
    if cutoff is None and classes:
        cutoff = 0.5
    known = None if labels is None else _checked_labels(explanation, labels, classes)
    members = {} if groups is None else _members(explanation, groups)
    if not 0 <= column < explanation.outputs.shape[1]:
        expected = f"an output column from 0 to {explanation.outputs.shape[1] - 1}"
        raise InvalidInput("column", expected, column, "leave it out for the first")
    if draws < 1 or not 0 < level < 1:
        expected, fix = "at least 1 resample and a level in (0, 1)", "leave them out: 999 and 0.95"
        raise InvalidInput("draws, level", expected, f"{draws}, {level}", fix)
    sides = [side[:, column] for side in (explanation.factual_outputs, explanation.outputs)]
    measures, gaps = _measures(len(sides[0]), known, members, cutoff, classes)
    rng, found = explanation.problem.generator("effects"), []
    for weights in _weightings(len(sides[0]), draws, rng):
        under = np.array([[m.under(side, weights) for m in measures] for side in sides])
        found.append(np.moveaxis(under, -1, 0))
    values = np.concatenate(found)  # (1 + draws, 2, measures)
    table: dict[tuple[str, str], list[float]] = {}
    for k, measure in enumerate(measures, start=1):
        here = _intervals(values[..., k - 1], level)
        table[measure.name, measure.group] = [*here.ravel(), measure.rows]
        # Behind the last group of a measure stands the largest difference between its groups.
        if measure.name in gaps and measure.group == next(reversed(members), None):
            first = k - len(members)
            between = _intervals_between(values[..., first:k], level)
            rows = sum(m.rows for m in measures[first:k])
            table[gaps[measure.name], BETWEEN] = [*between.ravel(), rows]
    index = pd.MultiIndex.from_tuples(table, names=["measure", "group"])
    shown = pd.DataFrame([*table.values()], index=index, columns=COLUMNS)
    return Effects(table=shown, level=level, draws=draws)


def _weightings(rows: int, draws: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield weights (R, n) of the rows: once each, then as often as a resample has them."""
    yield np.ones((1, rows))
    size = max(1, BATCH // rows)
    for start in range(0, draws, size):
        count = min(size, draws - start)
        yield rng.multinomial(rows, np.full(rows, 1.0 / rows), size=count).astype(np.float64)


@dataclass(frozen=True, slots=True)
class _Mean:
    """The mean of a value of the outputs over some rows."""

    name: str
    group: str
    who: np.ndarray
    """ndarray (n,): 1 for the rows behind it, else 0."""
    value: Callable[[np.ndarray], np.ndarray]
    """Outputs (n,) to what the mean is of."""

    @property
    def rows(self) -> int:
        """Number of rows behind it."""
        return int(self.who.sum())

    def under(self, outputs: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the values (R,) for R weightings (R, n); NaN where it is not defined."""
        return _ratio(weights @ (self.value(outputs) * self.who), weights @ self.who)


class _Root(_Mean):
    """The root of such a mean."""

    def under(self, outputs: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the values (R,) for R weightings (R, n)."""
        return np.asarray(np.sqrt(super().under(outputs, weights)))


class _Auc(_Mean):
    """Share of pairs of a 1 and a 0 in which the 1 has the larger output, ties one half."""

    def under(self, outputs: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the values (R,) for R weightings (R, n); labels are the ``value``."""
        order = np.argsort(outputs, kind="stable")
        # Ties are taken together: each place is one output value, with its ones and its zeros.
        starts = np.flatnonzero(np.diff(outputs[order], prepend=-np.inf) > 0)
        labels = self.value(outputs)
        ones, zeros = (
            np.add.reduceat((weights * self.who * side)[:, order], starts, axis=1)
            for side in (labels, 1.0 - labels)
        )
        below = np.cumsum(zeros, axis=1) - zeros
        ordered = np.sum(ones * (below + 0.5 * zeros), axis=1)
        return _ratio(ordered, ones.sum(axis=1) * zeros.sum(axis=1))


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.where(below > 0, above / np.where(below > 0, below, 1.0), np.nan)


def _measures(
    count: int,
    labels: np.ndarray | None,
    members: dict[str, np.ndarray],
    cutoff: float | None,
    classes: bool,
) -> tuple[list[_Mean], dict[str, str]]:
    """Return every measure that is asked for, and what differences between groups are called.

    Of labels (n,) missing ones are NaN; members are 1 for the rows (n,) of each group, else 0.
    """
    name, gap = "mean output", "difference in mean output"
    columns: dict[str, Callable[[np.ndarray], np.ndarray]] = {name: lambda outputs: outputs}
    if cutoff is not None:
        name, gap = f"share at or above {cutoff:g}", "demographic parity difference"
        columns[name] = lambda outputs: outputs >= cutoff
    found = [_Mean(each, ALL, np.ones(count), value) for each, value in columns.items()]
    if labels is not None:
        found += _accuracy(labels, cutoff, classes)
    for each, value in columns.items():
        found += [_Mean(each, group, who, value) for group, who in members.items()]
    gaps = {name: gap}
    if classes and labels is not None:
        # Labels are 1, 0 or missing; a missing one counts in no group.
        true, rate = np.nan_to_num(labels), "true positive rate"
        found += [_Mean(rate, group, who * true, columns[name]) for group, who in members.items()]
        gaps[rate] = "equal opportunity difference"
    return found, gaps


def _accuracy(given: np.ndarray, cutoff: float | None, classes: bool) -> list[_Mean]:
    """Return the measures that compare outputs with labels, over the rows that have one."""
    known, labels = (~np.isnan(given)).astype(np.float64), np.nan_to_num(given)
    if not classes:
        return [
            _Mean("mean absolute error", ALL, known, lambda outputs: np.abs(outputs - labels)),
            _Root("root mean squared error", ALL, known, lambda outputs: (outputs - labels) ** 2),
            _Mean("mean error", ALL, known, lambda outputs: outputs - labels),
        ]
    return [
        _Mean("accuracy", ALL, known, lambda outputs: (outputs >= cutoff) == (labels == 1.0)),
        _Mean("Brier score", ALL, known, lambda outputs: (outputs - labels) ** 2),
        _Auc("AUC", ALL, known, lambda outputs: labels),
        _Mean("calibration in the large", ALL, known, lambda outputs: outputs - labels),
    ]


def _intervals(values: np.ndarray, level: float) -> np.ndarray:
    """Before, after and difference of a measure (1 + draws, 2): value, low and high, (3, 3)."""
    before, after = values.T
    found = np.full((3, 3), np.nan)
    for row, side in zip(found, (before, after, after - before), strict=True):
        # A resample without anyone of a group, or of one class, says nothing about it.
        drawn = side[1:][~np.isnan(side[1:])]
        row[0] = side[0]
        if drawn.size:
            row[1:] = np.quantile(drawn, (0.5 - level / 2.0, 0.5 + level / 2.0))
    return found


def _intervals_between(values: np.ndarray, level: float) -> np.ndarray:
    """Largest minus smallest group, of (1 + draws, 2, groups): as `_intervals` returns it.

    With probability ``level`` every difference of two groups, before, after and the change of it,
    is within c standard errors of its estimate, c from the resamples' largest error. Then the
    largest difference is within the largest of those limits. Its change is at most the change of
    the pair that is largest after, and at least that of the pair that is largest before.
    """
    first, second = np.nonzero(~np.eye(values.shape[2], dtype=bool))
    pairs = values[..., first] - values[..., second]
    every = np.concatenate([pairs, pairs[:, 1:] - pairs[:, :1]], axis=1)  # (1 + draws, 3, P)
    estimate, drawn = every[0], every[1:][~np.isnan(every[1:]).any(axis=(1, 2))]
    margin = np.full_like(estimate, np.nan)
    if drawn.size and not np.isnan(estimate).any():
        # Studentized, so that a small group with a wide spread does not decide on the limits of
        # all.
        errors, spread = np.abs(drawn - estimate), drawn.std(axis=0)
        scaled = errors / np.where(spread > 0, spread, np.inf)
        margin = np.quantile(scaled.max(axis=(1, 2)), level) * spread
    low, high = estimate - margin, estimate + margin
    found = np.full((3, 3), np.nan)
    found[:2] = np.stack([part[:2].max(axis=1) for part in (estimate, low, high)], axis=1)
    found[:2, 1] = np.maximum(found[:2, 1], 0.0)
    before, after, change = found
    change[0] = after[0] - before[0]
    # Only pairs that may be the largest count, and the intervals of the two sides hold as well.
    least, most = low[2][high[0] >= low[0].max()], high[2][high[1] >= low[1].max()]
    if least.size and most.size:
        change[1] = max(least.min(), after[1] - before[2])
        change[2] = min(most.max(), after[2] - before[1])
    return found


def _checked_labels(explanation: Explanation, labels: Any, classes: bool) -> np.ndarray:
    given = _aligned(explanation, "labels", labels)
    numbers = pd.to_numeric(given, errors="coerce")
    found = np.asarray(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
    known = found[~np.isnan(found)]
    lost = bool((numbers.isna() & given.notna()).any())
    if lost or known.size == 0 or (classes and not np.isin(known, (0.0, 1.0)).all()):
        expected, fix = "numbers", "pass the observed values of what the model predicts"
        if classes:
            expected = "0 or 1 for every row that has a label"
            fix = "pass (outcome == the class the output is the probability of)"
        received = f"values such as {given.dropna().unique()[:3].tolist()}"
        raise InvalidInput("labels", expected, received, fix)
    return found


def _members(explanation: Explanation, groups: Any) -> dict[str, np.ndarray]:
    if isinstance(groups, Hashable):
        frame = explanation.frames[0]
        if groups not in frame.columns:
            expected = "a column of the explained rows, or one value per row"
            fix = f"choose among {', '.join(map(str, frame.columns))}"
            raise InvalidInput("groups", expected, repr(groups), fix)
        groups = frame[groups]
    texts = _aligned(explanation, "groups", groups).astype(object)
    texts = texts.where(texts.notna(), "(missing)").map(str)
    places, names = pd.factorize(texts, sort=True)
    if not 2 <= len(names) <= MOST_GROUPS:
        fix = "cut a number into ranges with pandas.cut, or join small groups"
        raise InvalidInput("groups", f"2 to {MOST_GROUPS} groups", f"{len(names)}", fix)
    return {str(name): (places == k).astype(np.float64) for k, name in enumerate(names)}


def _aligned(explanation: Explanation, argument: str, values: Any) -> pd.Series[Any]:
    """Values in the order of the explained rows; a Series is matched by its index."""
    index = explanation.index
    if isinstance(values, pd.Series) and not values.index.equals(index):
        if not (values.index.is_unique and index.isin(values.index).all()):
            expected = "a Series with a value for every explained row, by index"
            fix = f"pass {argument}.loc[rows.index], or {argument}.to_numpy() if in order"
            raise InvalidInput(argument, expected, "a Series of another index", fix)
        return values.loc[index]
    series = pd.Series(values if isinstance(values, pd.Series) else np.asarray(values))
    if len(series) != len(index):
        expected = f"one value for each of the {len(index)} explained rows"
        fix = "pass the values of the rows that were explained"
        raise InvalidInput(argument, expected, f"{len(series)}", fix)
    return series
