"""Measures of a counterfactual population: pure functions, and one table of them.

Where the paper's definition and a corrected one differ, both are here and the paper's is called
``published``. `compare` puts explanations side by side by every measure of `METRICS`.
"""

from __future__ import annotations

from elsewise.metrics._changes import (
    ares_cost,
    bin_units,
    bin_widths,
    category_difference,
    changed_cells,
    numeric_shift,
    percentile_differences,
    pooled_percentile_differences,
    published_ares_cost,
)
from elsewise.metrics._distances import (
    diversity,
    dpc,
    median_bandwidth,
    mmd,
    nearest_distances,
    published_ot,
    sliced_ot,
)
from elsewise.metrics._legality import illegal_rows
from elsewise.metrics._table import METRICS, Case, Metric, compare, explanation_ot, validity

__all__ = [
    "METRICS",
    "Case",
    "Metric",
    "ares_cost",
    "bin_units",
    "bin_widths",
    "category_difference",
    "changed_cells",
    "compare",
    "diversity",
    "dpc",
    "explanation_ot",
    "illegal_rows",
    "median_bandwidth",
    "mmd",
    "nearest_distances",
    "numeric_shift",
    "percentile_differences",
    "pooled_percentile_differences",
    "published_ares_cost",
    "published_ot",
    "sliced_ot",
    "validity",
]
