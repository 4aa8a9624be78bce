"""Measures of a counterfactual population: pure functions, and one table of them.

`compare` puts explanations side by side by every measure of `METRICS`.
"""

from __future__ import annotations

from elsewise.metrics._distances import (
    diversity,
    median_bandwidth,
    mmd,
    nearest_distances,
    sliced_ot,
)
from elsewise.metrics._legality import illegal_rows
from elsewise.metrics._table import METRICS, Case, Metric, compare, explanation_ot, validity

__all__ = [
    "METRICS",
    "Case",
    "Metric",
    "compare",
    "diversity",
    "explanation_ot",
    "illegal_rows",
    "median_bandwidth",
    "mmd",
    "nearest_distances",
    "sliced_ot",
    "validity",
]
