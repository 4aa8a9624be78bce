"""How a model is read: a score of a frame, the columns it needs, and what its outputs mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from elsewise.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringAdapter:
    """A fitted model as a score of a frame."""

    name: str
    """Readable name, for messages."""
    score: Callable[[pd.DataFrame], object]
    """Frame (n rows) to outputs (n,) or (n, W)."""
    columns: list[Hashable]
    """Columns of the frame the score reads, in the model's order."""
    classes: list[Hashable]
    """Labels of the W outputs; empty where the outputs are not classes."""
    probability: bool
    """Whether every output is a probability."""
    smooth: bool = False
    """Whether the outputs vary smoothly with the inputs."""
    read: Callable[[pd.DataFrame], Any] | None = None
    """Frame to what an estimator with the scikit-learn face is called with."""
    stages: Sequence[Any] = ()
    """Of such an estimator: its fitted transformers and the estimator behind them."""
    method: str = ""
    """Which of that one's methods makes the outputs."""


def read_columns(
    own: list[Hashable], names: Sequence[Hashable] | None, count: int | None = None
) -> tuple[list[Hashable], Callable[[pd.DataFrame], Any]]:
    """Return the columns a model reads, in its order, and what it is called with for a frame.

    A model that was fitted on an array is given one.

    Parameters
    ----------
    own : list
        Columns of the frame.
    names : sequence, optional
        Columns the model was fitted on, as it spells them: XGBoost as text, LightGBM also with
        underscores for blanks, LightGBM and CatBoost numbered where it saw an array.
    count : int, optional
        How many columns the model was fitted on, where it knows no names.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [30], "credit amount": [5]})
    >>> columns, read = read_columns(list(frame), ["credit_amount"])
    >>> columns, list(read(frame))
    (['credit amount'], ['credit amount'])
    >>> read_columns(list(frame), ["Column_0", "Column_1"])[1](frame)
    array([[30,  5]])
    """
    spelled: dict[Hashable, Hashable] = {re.sub(r"\s", "_", str(name)): name for name in own}
    spelled |= {str(name): name for name in own} | {name: name for name in own}
    if names is not None:
        missing = [name for name in names if name not in spelled]
        if not missing:
            columns = [spelled[name] for name in names]
            return columns, lambda frame: frame[columns]
        numbered = [[str(j) for j in range(len(names))], [f"Column_{j}" for j in range(len(names))]]
        if list(names) not in numbered:
            expected = f"a model fitted on columns of the frame {own}"
            fix = "explain the frame the model was fitted on, with those columns"
            received = f"one that also needs {missing}"
            raise InvalidInput("model", expected=expected, received=received, fix=fix)
        count = len(names)
    if count is None:
        return own, lambda frame: frame[own]
    if count != len(own):
        expected = f"a model fitted on the frame's {len(own)} columns"
        received = f"one fitted on {count} columns"
        fix = "explain the columns the model was fitted on, in the same order"
        raise InvalidInput("model", expected=expected, received=received, fix=fix)
    return own, lambda frame: frame[own].to_numpy()


def two_classes(second: Any) -> np.ndarray:
    """Return probabilities (n, 2) of both classes from those of the second, (n,).

    Examples
    --------
    >>> two_classes([0.25])
    array([[0.75, 0.25]])
    """
    second = np.asarray(second, dtype=np.float64)
    return np.column_stack([1.0 - second, second])


def one_column_per_class(outputs: Any, method: str, classes: int) -> Any:
    """Return a decision function of two classes as minus and plus itself, other outputs unchanged.

    Examples
    --------
    >>> one_column_per_class(np.array([0.5]), "decision_function", 2)
    array([[-0.5,  0.5]])
    """
    if method == "decision_function" and np.ndim(outputs) == 1 and classes:
        return np.column_stack([-outputs, outputs])
    return outputs
