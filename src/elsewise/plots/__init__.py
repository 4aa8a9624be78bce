"""Pictures of an explanation: compute nothing heavy, return Axes, never show.

Pictures of an explanation take ``(explanation, ax=None)`` and return the Axes; those of several
panels (`features`, `panel`) return an array of Axes. Pictures of plain tables (`frontier`,
`comparison`, `policy`) take a DataFrame in place of the explanation, `waterfall` a `Difference`.
"""

from __future__ import annotations

from elsewise.plots._change_plots import changes, flows, moves
from elsewise.plots._panel import panel
from elsewise.plots._policy_plot import policy
from elsewise.plots._quantile_plots import feature, features, outputs, projected
from elsewise.plots._search import convergence
from elsewise.plots._svg import to_svg
from elsewise.plots._table_plots import comparison, frontier
from elsewise.plots._waterfall import waterfall

__all__ = [
    "changes",
    "comparison",
    "convergence",
    "feature",
    "features",
    "flows",
    "frontier",
    "moves",
    "outputs",
    "panel",
    "policy",
    "projected",
    "to_svg",
    "waterfall",
]
