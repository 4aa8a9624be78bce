"""What an explanation says: changes, groups, effects, frontier and stability.

Everything is in the user's terms: numbers in their units, categories by their levels, a one-hot
group as the one category it stands for.
"""

from __future__ import annotations

from elsewise.analysis._changes import changes, flows, ks, psi
from elsewise.analysis._columns import MISSING, Column, column_named, columns_of, embedded
from elsewise.analysis._counterfactuals import BaselineExplanation, from_counterfactuals
from elsewise.analysis._effects import MEANING, Effects, effects
from elsewise.analysis._frontier import Frontier, frontier, frontier_of
from elsewise.analysis._groups import Group, Groups, groups
from elsewise.analysis._plausibility import plausibility
from elsewise.analysis._stability import Stability, stability_of

__all__ = [
    "MEANING",
    "MISSING",
    "BaselineExplanation",
    "Column",
    "Effects",
    "Frontier",
    "Group",
    "Groups",
    "Stability",
    "changes",
    "column_named",
    "columns_of",
    "effects",
    "embedded",
    "flows",
    "from_counterfactuals",
    "frontier",
    "frontier_of",
    "groups",
    "ks",
    "plausibility",
    "psi",
    "stability_of",
]
