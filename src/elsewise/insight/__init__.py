"""What changed, for whom, and whether it makes sense: pure functions of an explanation.

Everything is said in the user's terms: numbers in their units, categories by their levels, a
one-hot group as the one category it stands for.
"""

from __future__ import annotations

from elsewise.insight._changes import changes, flows, ks, psi
from elsewise.insight._columns import Column, columns_of
from elsewise.insight._effects import MEANING, Effects, effects
from elsewise.insight._groups import Group, Groups, groups
from elsewise.insight._plausibility import plausibility
from elsewise.insight._surprises import surprises

__all__ = [
    "MEANING",
    "Column",
    "Effects",
    "Group",
    "Groups",
    "changes",
    "columns_of",
    "effects",
    "flows",
    "groups",
    "ks",
    "plausibility",
    "psi",
    "surprises",
]
