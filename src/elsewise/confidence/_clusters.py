"""Rows that come in clusters, such as several of one customer, say less than independent ones.

The influence of each row on the squared distance is summed by cluster. How many times larger the
variance of these sums is than that of independent rows is the design effect; what a limit adds to
its estimate grows by its root.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from elsewise._arrays import to_numpy
from elsewise.confidence._betting import row_costs
from elsewise.confidence._clt import influence
from elsewise.confidence._comparison import Comparison
from elsewise.confidence._doubt import FEW_MOVERS, FEWEST_ROWS
from elsewise.confidence._intervals import by_cluster, design_factor
from elsewise.confidence._limit import UpperLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class _ClusteredLimit(UpperLimit):
    """A limit for independent rows, moved away from its estimate."""

    limit: UpperLimit
    factor: float

    def upper(self, level: float) -> float:
        return self.estimate + self.factor * (self.limit.upper(level) - self.estimate)

    def probability(self, bound: float) -> float:
        room = (bound - self.estimate) / self.factor
        # Rounded up by less than shows, so that a limit meets its own level.
        return self.limit.probability(self.estimate + room * (1.0 + 1e-12))


def clustered_limit(comparison: Comparison, limit: UpperLimit, clusters: np.ndarray) -> UpperLimit:
    """Return the limit of rows in clusters (n,), from that of independent rows.

    Examples
    --------
    >>> from elsewise.confidence import clt_limit
    >>> x = np.repeat(np.random.default_rng(0).normal(size=(1, 100)), 4, axis=1)
    >>> comparison = Comparison.paired(x + 0.2 * np.abs(x), x, 0.05)
    >>> alone = clt_limit(comparison)
    >>> found = clustered_limit(comparison, alone, np.repeat(np.arange(100), 4))
    >>> excess = (found.upper(0.95) - alone.estimate) / (alone.upper(0.95) - alone.estimate)
    >>> round(excess, 1)
    2.0
    """
    # Clusters are those of the explained rows: a target's sample has none.
    _, (rows, *_) = influence(comparison)
    factor = design_factor(to_numpy(rows), clusters)
    found = _ClusteredLimit(
        limit=limit, factor=factor, estimate=limit.estimate, doubt=limit.doubt, **by_cluster(limit)
    )
    count, doubt, costs = np.unique(clusters).size, "", row_costs(comparison)
    if count < FEWEST_ROWS:
        doubt = f"there are only {count} clusters"
    # Ten rows of one customer are one mover.
    elif costs is not None and len(set(clusters[costs > 0.0])) < FEW_MOVERS:
        doubt = "rows of fewer than ten clusters moved"
    return found.doubted(doubt) if doubt and not limit.doubt else found
