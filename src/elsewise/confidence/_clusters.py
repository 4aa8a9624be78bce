"""Rows that come in clusters, such as several of one customer, say less than independent ones.

The influence of each row on the squared distance is summed by cluster. How many times larger the
variance of these sums is than that of independent rows is the design effect; what a limit adds to
its estimate grows by its root.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from elsewise._arrays import to_numpy
from elsewise.confidence._clt import influence
from elsewise.confidence._comparison import Comparison
from elsewise.confidence._doubt import FEWEST_ROWS
from elsewise.confidence._limit import UpperLimit

if TYPE_CHECKING:
    from elsewise.confidence._intervals import Interval


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


def _design_factor(influences: np.ndarray, clusters: np.ndarray) -> float:
    """Return the root of the design effect of centred influences (n,) in clusters, at least 1.

    Where no influence varies, it is taken as if rows of a cluster were copies of each other.
    """
    _, labels = np.unique(clusters, return_inverse=True)
    sizes = np.bincount(labels)
    single = float(np.sum(influences**2))
    if single == 0.0:
        return math.sqrt(float(np.sum(sizes**2)) / float(np.sum(sizes)))
    sums = np.bincount(labels, influences)
    together = float(np.sum(sums**2)) * sizes.size / max(1, sizes.size - 1)
    return math.sqrt(max(1.0, together / single))


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
    _, (rows, *_) = influence(comparison)
    factor = _design_factor(to_numpy(rows), clusters)
    found = _ClusteredLimit(
        limit=limit, factor=factor, estimate=limit.estimate, doubt=limit.doubt, **_named(limit)
    )
    count = np.unique(clusters).size
    few = count < FEWEST_ROWS and not limit.doubt
    return found.doubted(f"there are only {count} clusters") if few else found


def clustered_interval(interval: Interval, values: np.ndarray, clusters: np.ndarray) -> Interval:
    """Return the interval of a mean of values (n,) in clusters, from that of independent rows."""
    if interval.lower is None or interval.upper is None:
        return interval
    factor = _design_factor(values - np.mean(values), clusters)
    return replace(
        interval,
        lower=interval.estimate - factor * (interval.estimate - interval.lower),
        upper=interval.estimate + factor * (interval.upper - interval.estimate),
        **_named(interval),
    )


def _named(independent: UpperLimit | Interval) -> dict[str, Any]:
    """Return how the limit or interval of clusters is called, and what it assumes."""
    return {
        "method": f"{independent.method}, by cluster",
        "assumption": independent.assumption.replace("Rows are", "Clusters of rows are", 1),
    }
