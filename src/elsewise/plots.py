"""Pictures of an explanation: compute nothing, return Axes, never show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from elsewise._arrays import to_numpy
from elsewise.targets import Constant, Derived, Sample

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from elsewise.explanation import Explanation

__all__ = ["outputs"]

# Okabe and Ito's palette: told apart with any colour vision and in print.
FACTUAL, COUNTERFACTUAL, TARGET = "#56606b", "#0072b2", "#d55e00"


def outputs(explanation: Explanation, ax: Axes | None = None) -> Axes:
    """Draw the quantiles of the model's output: factual, counterfactual and target.

    Parameters
    ----------
    explanation
        With one output column; of several, the first is drawn.
    ax
        Where to draw; a new figure by default.
    """
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    levels = (np.arange(len(explanation.outputs)) + 0.5) / len(explanation.outputs)
    ax.plot(levels, _target(explanation, levels), color=TARGET, linestyle="--", label="target")
    for values, colour, label in (
        (explanation.factual_outputs, FACTUAL, "factual"),
        (explanation.outputs, COUNTERFACTUAL, "counterfactual"),
    ):
        ax.plot(levels, np.sort(values[:, 0]), color=colour, linewidth=2, label=label)
    ax.set_xlabel("share of rows")
    ax.set_ylabel(explanation.problem.outputs.description)
    ax.set_xlim(0, 1)
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return ax


def _target(explanation: Explanation, levels: np.ndarray) -> np.ndarray:
    """Quantiles of the target's first column at these levels."""
    target = explanation.problem.target
    if isinstance(target, Sample):
        return np.quantile(target.values[:, 0], levels)
    if isinstance(target, Derived | Constant):
        return np.sort(to_numpy(target.of(explanation.factual_outputs))[:, 0])
    return np.asarray(target.quantile(levels))
