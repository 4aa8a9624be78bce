"""What few actions reach: reach and cost against their number or the budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from elsewise.plots._style import COUNTERFACTUAL, INPUTS, canvas, columns_of, dress, percent_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def policy(records: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the share of rows in need that arrive, and what a row pays, for growing policies.

    Parameters
    ----------
    records
        What `Policy.curve` returned; against the budget where it has finite ones.
    ax
        Where to draw; a new figure by default.
    """
    table = columns_of(records, "k", "budget", "reach", "mean_cost", "limit")
    by_budget = bool(np.isfinite(table["budget"]).all())
    against = table["budget" if by_budget else "k"]
    ax = canvas(ax)
    ax.plot(against, table["reach"], color=COUNTERFACTUAL, linewidth=2, marker="o", label="arrive")
    if table["limit"].notna().all():
        ax.fill_between(
            against, table["limit"], table["reach"], color=COUNTERFACTUAL, alpha=0.15, linewidth=0
        )
    ax.set_ylim(0.0, 1.04)
    percent_axis(ax, "y")
    other = ax.twinx()
    other.plot(against, table["mean_cost"], color=INPUTS, linewidth=1.6, marker="s", label="cost")
    other.set_ylim(0.0, None)
    other.set_ylabel("cost of a row that arrives", color=INPUTS)
    other.spines["top"].set_visible(False)
    if not by_budget:
        ax.set_xticks(against)
    what = "budget" if by_budget else "actions"
    return dress(ax, title="The price of simplicity", x=what, y="rows in need that arrive")
