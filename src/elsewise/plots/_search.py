"""How the search went: both limits, their bounds, and eta with its interval."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from elsewise.plots._style import FACTUAL, INPUTS, OUTPUTS, canvas, dress, legend
from elsewise.settings import IntervalNarrowing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from elsewise.explanation import Explanation


def convergence(explanation: Explanation, ax: Axes | None = None) -> Axes:
    """Draw both upper limits over the iterations, their bounds, and eta underneath.

    Of a side without a bound it is the distance. Where both limits were given, the interval that
    eta was chosen from is shaded; it is a function of the limits and is worked out again from them.

    Parameters
    ----------
    explanation
        What to draw.
    ax
        Where to draw; a new figure by default.
    """
    ax = canvas(ax, 6.0, 4.2)
    below = _room_below(ax)
    history, bounds = explanation.history, explanation.problem.bounds
    steps = history.index.to_numpy()
    for side, bound, colour in (
        ("inputs", bounds.inputs, INPUTS),
        ("outputs", bounds.outputs, OUTPUTS),
    ):
        values, what = history[f"{side}_limit"].to_numpy(), "upper limit"
        if bounds.method == "exact" or np.isnan(values).all():  # no limit of a side without a bound
            values, what = history[side].to_numpy(), "distance"
        ax.plot(steps, values, color=colour, linewidth=1.8, label=f"{side}, {what}")
        if bound is not None:
            ax.axhline(
                bound, color=colour, linestyle=(0, (4, 2)), linewidth=1.2, label=f"{side}, bound"
            )
    ax.set_ylim(0, None)
    ax.set_xlim(0, max(1, int(steps[-1])))
    ax.tick_params(labelbottom=False)
    legend(ax, ncols=2)
    dress(ax, title="The search", y="distance")
    low, high = _intervals(explanation)
    below.fill_between(
        steps[: low.size], low, high, color=FACTUAL, alpha=0.2, linewidth=0, label="interval"
    )
    below.plot(steps[1:], history["eta"].to_numpy()[1:], color=FACTUAL, linewidth=1.4, label="eta")
    below.set_ylim(-0.03, 1.03)
    below.set_yticks([0, 1])
    dress(below, x="iteration", y="eta")
    return ax


def _room_below(ax: Axes) -> Axes:
    """Give up some of the axes' own place, so that a layout sees both; else hang under them."""
    place = ax.get_subplotspec()
    if place is None:
        return ax.inset_axes((0.0, -0.36, 1.0, 0.28), sharex=ax)
    rows = place.subgridspec(2, 1, height_ratios=(3, 1))
    ax.set_subplotspec(rows[0])
    return ax.figure.add_subplot(rows[1], sharex=ax)


def _intervals(explanation: Explanation) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the interval at each iteration, as long as eta was chosen from it."""
    bounds, balance = explanation.problem.bounds, explanation.settings.balance
    ends: list[tuple[float, float]] = []
    if (
        bounds.inputs is not None
        and bounds.outputs is not None
        and isinstance(balance, IntervalNarrowing)
    ):
        history = explanation.iterations
        for before, after in pairwise(history):
            ends.append((balance.lower, balance.upper))
            eta, balance = balance.choose(
                bounds.inputs - before.inputs_limit,
                (bounds.outputs - before.outputs_limit) / explanation.problem.unit,
            )
            if eta != after.eta:
                ends.pop()
                break
    low, high = np.array(ends, dtype=np.float64).reshape(-1, 2).T
    # The first interval stands before the first step.
    return np.concatenate([low[:1], low]), np.concatenate([high[:1], high])
