"""What an explanation says: changes, groups, effects, measures, frontier and stability.

Everything is in the user's terms: numbers in their units, categories by their levels, a one-hot
group as the one category it stands for.
"""

from __future__ import annotations

from elsewise.analysis._changes import changes, flows, ks, psi
from elsewise.analysis._columns import Column, column_named, columns_between, columns_of
from elsewise.analysis._compare import METRICS, Case, Metric, compare, explanation_ot, validity
from elsewise.analysis._correlations import correlation_pair
from elsewise.analysis._counterfactuals import (
    BaselineExplanation,
    baseline_fields,
    from_counterfactuals,
)
from elsewise.analysis._effects import MEANING, Effects, effects
from elsewise.analysis._frontier import Frontier, frontier, frontier_of
from elsewise.analysis._groups import Group, Groups, groups
from elsewise.analysis._metrics import (
    diversity,
    illegal_rows,
    median_bandwidth,
    mmd,
    nearest_distances,
    sliced_ot,
)
from elsewise.analysis._plausibility import plausibility
from elsewise.analysis._stability import Stability, stability_of
from elsewise.analysis._tree import sub_populations

__all__ = [
    "MEANING",
    "METRICS",
    "BaselineExplanation",
    "Case",
    "Column",
    "Effects",
    "Frontier",
    "Group",
    "Groups",
    "Metric",
    "Stability",
    "baseline_fields",
    "changes",
    "column_named",
    "columns_between",
    "columns_of",
    "compare",
    "correlation_pair",
    "diversity",
    "effects",
    "explanation_ot",
    "flows",
    "from_counterfactuals",
    "frontier",
    "frontier_of",
    "groups",
    "illegal_rows",
    "ks",
    "median_bandwidth",
    "mmd",
    "nearest_distances",
    "plausibility",
    "psi",
    "sliced_ot",
    "stability_of",
    "sub_populations",
    "validity",
]
