"""A few actions instead of a map of many steps: what a manager can read and decide on.

A :class:`Policy` is made by `Explanation.policy`. It is a map: legal rows, the same for any batch,
counted on rows that were held out.
"""

from __future__ import annotations

from elsewise.policy._build import build_policy
from elsewise.policy._policy import Count, Line, Policy, summary_of

__all__ = ["Count", "Line", "Policy", "build_policy", "summary_of"]
