"""What an explanation's outputs are measured against: labels and groups, row by row."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from elsewise.errors import InvalidInput

if TYPE_CHECKING:
    from elsewise.explanation import Explanation


MOST_GROUPS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the answers are measured against."""

    labels: np.ndarray | None
    """ndarray (n,): NaN where unknown; 0 and 1 where they are classes."""
    members: dict[str, np.ndarray]
    """1 for the rows (n,) of each group, else 0; empty without groups."""
    cutoff: float | None
    """Output from which a row counts as positive; given where labels are classes."""
    classes: bool
    """Whether labels are classes."""


def ask(explanation: Explanation, labels: Any, groups: Any, cutoff: float | None) -> Asked:
    """Put labels and groups in the order of the explained rows, refusing what does not fit."""
    classes = bool(explanation.problem.outputs.probability)
    if cutoff is None and classes:
        cutoff = 0.5
    return Asked(
        labels=None if labels is None else _checked_labels(explanation, labels, classes),
        members={} if groups is None else _members(explanation, groups),
        cutoff=cutoff,
        classes=classes,
    )


def _checked_labels(explanation: Explanation, labels: Any, classes: bool) -> np.ndarray:
    given = _aligned(explanation, "labels", labels)
    numbers = pd.to_numeric(given, errors="coerce")
    found = np.asarray(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
    known = found[~np.isnan(found)]
    lost = bool((numbers.isna() & given.notna()).any())
    if lost or known.size == 0 or (classes and not np.isin(known, (0.0, 1.0)).all()):
        raise InvalidInput(
            "labels",
            expected="0 or 1 for every row that has a label" if classes else "numbers",
            received=f"values such as {given.dropna().unique()[:3].tolist()}",
            fix="pass (outcome == the class the output is the probability of)"
            if classes
            else "pass the observed values of what the model predicts",
        )
    return found


def _members(explanation: Explanation, groups: Any) -> dict[str, np.ndarray]:
    if isinstance(groups, Hashable):
        frame = explanation.frames[0]
        if groups not in frame.columns:
            expected = "a column of the explained rows, or one value per row"
            fix = f"choose among {', '.join(map(str, frame.columns))}"
            raise InvalidInput("groups", expected=expected, received=repr(groups), fix=fix)
        groups = frame[groups]
    texts = _aligned(explanation, "groups", groups).astype(object)
    texts = texts.where(texts.notna(), "(missing)").map(str)
    places, names = pd.factorize(texts, sort=True)
    if not 2 <= len(names) <= MOST_GROUPS:
        expected = f"2 to {MOST_GROUPS} groups"
        fix = "cut a number into ranges with pandas.cut, or join small groups"
        raise InvalidInput("groups", expected=expected, received=f"{len(names)}", fix=fix)
    return {str(name): (places == k).astype(np.float64) for k, name in enumerate(names)}


def _aligned(explanation: Explanation, argument: str, values: Any) -> pd.Series[Any]:
    """Values in the order of the explained rows; a Series is matched by its index."""
    index = explanation.index
    if isinstance(values, pd.Series) and not values.index.equals(index):
        if not (values.index.is_unique and index.isin(values.index).all()):
            raise InvalidInput(
                argument,
                expected="a Series with a value for every explained row, by index",
                received="a Series of another index",
                fix=f"pass {argument}.loc[rows.index], or {argument}.to_numpy() if in order",
            )
        return values.loc[index]
    series = pd.Series(values if isinstance(values, pd.Series) else np.asarray(values))
    if len(series) != len(index):
        expected = f"one value for each of the {len(index)} explained rows"
        fix = "pass the values of the rows that were explained"
        raise InvalidInput(argument, expected=expected, received=f"{len(series)}", fix=fix)
    return series
