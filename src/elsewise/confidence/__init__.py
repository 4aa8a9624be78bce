"""Upper confidence limits for distances between populations, all on the root scale.

A `Comparison` states what is compared and how it was drawn; a method turns it into an `UpperLimit`,
which answers both ways: the limit at a level, and the level at which a bound is met.

========================  ===================================  =============================
method                    guarantee                            use
========================  ===================================  =============================
`clt_limit`               asymptotic                           every iterate; one batched sort
`bootstrap_limit`         asymptotic, valid down to distance   certificates
                          zero
`certificate_limit`       the larger of the two, or one of     certificates
                          those below
`coupling_limit`          every sample size, all directions    inputs where few rows moved;
                                                               outputs with a constant target
`band_limit`              every sample size, known support     outputs, few rows
`rank_shift_limit`        asymptotic in the quantiles only     paired rows of which few moved
========================  ===================================  =============================

`rows_needed` says how many rows would bring a limit under its bound; `mean_interval` and
`share_interval` are for what people decide on.
"""

from __future__ import annotations

from elsewise.confidence._band import band_limit
from elsewise.confidence._betting import coupling_limit, move_cap, row_costs, support_cap
from elsewise.confidence._bootstrap import bootstrap_limit
from elsewise.confidence._choice import certificate_limit, count_movers, steering_method
from elsewise.confidence._clt import clt_limit, influence, normal_limit
from elsewise.confidence._clusters import clustered_limit
from elsewise.confidence._comparison import Comparison, Pairing
from elsewise.confidence._doubt import notice_of
from elsewise.confidence._intervals import (
    Interval,
    design_factor,
    mean_interval,
    move_interval,
    share_interval,
)
from elsewise.confidence._limit import KnownLimit, Method, UpperLimit, largest, share_above
from elsewise.confidence._rank_shift import rank_shift_limit
from elsewise.confidence._sample_size import debiased_distance, rows_needed, suggested_rows

__all__ = [
    "Comparison",
    "Interval",
    "KnownLimit",
    "Method",
    "Pairing",
    "UpperLimit",
    "band_limit",
    "bootstrap_limit",
    "certificate_limit",
    "clt_limit",
    "clustered_limit",
    "count_movers",
    "coupling_limit",
    "debiased_distance",
    "design_factor",
    "influence",
    "largest",
    "mean_interval",
    "move_cap",
    "move_interval",
    "normal_limit",
    "notice_of",
    "rank_shift_limit",
    "row_costs",
    "rows_needed",
    "share_above",
    "share_interval",
    "steering_method",
    "suggested_rows",
    "support_cap",
]
