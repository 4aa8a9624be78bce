"""An explanation as its page sees it: what several parts need, each worked out once."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from elsewise.analysis import changes, columns_of, embedded
from elsewise.text import amount, percent

if TYPE_CHECKING:
    import pandas as pd

    from elsewise.analysis import Column
    from elsewise.explanation import Explanation


class View:
    """An explanation, what its output is called, and what its tables and pictures share."""

    def __init__(self, explanation: Explanation, output: str = "") -> None:
        self.explanation = explanation
        self.name = output
        """What the user calls the model's output; nothing where nobody said."""

    @property
    def output(self) -> str:
        """What the model's output is called."""
        return self.name or ("predicted probability" if self.probability else "model output")

    @property
    def probability(self) -> bool:
        """Whether outputs are probabilities, which are said in per cent."""
        return bool(self.explanation.problem.outputs.probability)

    @property
    def rows(self) -> int:
        """Number of explained rows."""
        return len(self.explanation.outputs)

    @cached_property
    def changes(self) -> pd.DataFrame:
        """What changed, feature by feature, largest effect first."""
        return changes(self.explanation)

    @cached_property
    def columns(self) -> dict[Hashable, Column]:
        """Every feature before and after, by its name."""
        return {column.name: column for column in columns_of(self.explanation)}

    @cached_property
    def moved(self) -> np.ndarray:
        """The rows of which some cell changed, bool (n,)."""
        return self.cells > 0

    @cached_property
    def cells(self) -> np.ndarray:
        """Number of features that changed in each row, (n,)."""
        parts = [column.moved for column in self.columns.values()]
        return np.sum(parts, axis=0) if parts else np.zeros(self.rows, dtype=int)

    @cached_property
    def move(self) -> float:
        """Root mean square move of the rows that change, in standard deviations of a row.

        sqrt(mean |phi(x) - phi(x')|^2), undivided by the dimension; 0 where no row changes.
        """
        before, after = embedded(self.explanation)
        squares = np.sum((after - before) ** 2, axis=1)
        moving = squares > 0
        return float(np.sqrt(np.mean(squares[moving]))) if moving.any() else 0.0

    @cached_property
    def means(self) -> tuple[float, float]:
        """Mean of the output that was asked about, before and after."""
        both = self.explanation.factual_outputs, self.explanation.outputs
        before, after = (side[:, self.explanation.main_output].mean() for side in both)
        return float(before), float(after)

    def level(self, value: float) -> str:
        """Return a model output: a percentage if outputs are probabilities."""
        return percent(value) if self.probability else amount(value)

    def effects(self) -> list[str]:
        """Return the effect of each feature of `changes` on the mean output, in one format."""
        return differences(self.changes["effect"].to_numpy(), self.probability)


def differences(values: Any, probability: bool) -> list[str]:
    """Return differences of outputs as texts with the same decimals; points for probabilities.

    Examples
    --------
    >>> differences([-0.0111, 0.0044, -5e-5, 0.0, float("nan")], probability=True)
    ['-1.11', '+0.44', '-0.01', '0', 'unknown']
    >>> differences([1200.0, -3.0], probability=False)
    ['+1,200', '-3']
    """
    numbers = np.asarray(values, dtype=np.float64) * (100.0 if probability else 1.0)
    largest = float(np.max(np.abs(numbers), where=np.isfinite(numbers), initial=0.0))
    digits = max(0, 2 - int(np.floor(np.log10(largest)))) if largest > 0 else 0
    texts = []
    for number in numbers.tolist():
        text = f"{number:+,.{digits}f}" if np.isfinite(number) else "unknown"
        # What is not nothing is not said to be nothing.
        small = number != 0 and np.isfinite(number) and not text.strip("+-0.,")
        texts.append("0" if number == 0 else f"under {10.0**-digits:g}" if small else text)
    return texts
