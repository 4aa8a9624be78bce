"""What one limit at a time does not show: families of groups, means, clusters, advice followed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from elsewise.certificate import share_limit
from elsewise.confidence import (
    Comparison,
    UpperLimit,
    certificate_limit,
    clustered_limit,
    mean_interval,
    rows_needed,
)

from .cache import Piece
from .gate import Check, standard_error
from .methods import DRAWS, NOMINAL, TRIMS, certificate_of
from .scenarios import Scenario, scenarios

__all__ = ["Line", "checks", "pieces"]

VERSION = "1"
"""Raise when the cases change, or a limit they use."""
TRIM = 0.05
GROUPS, GROUP_ROWS, FAMILIES = 20, 150, 200
"""Groups of a family, rows of a group, repetitions."""
SHARE = 0.7
"""The true share behind limits of shares."""
MEAN_ROWS, MEANS = 150, 4000
COPIES, CLUSTERS, CLUSTERED = 5, 60, 400
"""Rows of a cluster, clusters of a sample, repetitions."""
ASKED_ROWS, ASKED, FAR = 200, 60, 1.15
"""Rows of a sample that asks for advice, samples, and the bound in units of the truth."""
MOST_ROWS = 40_000
"""Advice beyond so many rows is not followed, and counts as none."""
FOLLOWED = (
    "outputs-1-constant-target",
    "outputs-1-derived-target",
    "inputs-10-smooth-move",
    "inputs-10-31pc-subgroup",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Something that was repeated, and how often it went well."""

    name: str
    found: float
    wanted: float | None
    """The share wanted at least; None where the line is there to compare with."""
    repetitions: int

    @property
    def check(self) -> Check | None:
        """The requirement of the line, if it has one."""
        if self.wanted is None:
            return None
        return Check(
            name=self.name,
            wanted=f"at least {self.wanted:.3g}",
            found=f"{self.found:.3f} of {self.repetitions}",
            passed=self.found >= self.wanted,
        )


def checks(lines: list[Line]) -> list[Check]:
    """Every requirement of the lines."""
    return [line.check for line in lines if line.check is not None]


def pieces(truths: dict[str, list[float]]) -> list[Piece]:
    """The work, given the true distances of the scenarios at every trim."""
    true = {key: values[TRIMS.index(TRIM)] for key, values in truths.items()}
    work = {
        "groups": partial(groups, true["outputs-1-derived-target"]),
        "shares": shares,
        "means": means,
        "clusters": partial(clusters, true["outputs-1-derived-target"]),
        **{f"advice-{key}": partial(advice, key, true[key]) for key in FOLLOWED},
    }
    return [
        Piece(key=f"families-{name}", version=VERSION, compute=compute)
        for name, compute in work.items()
    ]


def groups(truth: float) -> list[dict[str, object]]:
    """Distances of 20 groups: how often all limits of a family hold, at shared levels or not."""
    scenario, held = _scenario("outputs-1-derived-target"), np.zeros((FAMILIES, 2))
    levels = (1.0 - (1.0 - NOMINAL) / GROUPS, NOMINAL)
    for family in range(FAMILIES):
        rng = np.random.default_rng([19, family])
        limits = [_limit(scenario, GROUP_ROWS, rng, draws=999) for _ in range(GROUPS)]
        held[family] = [all(limit.upper(at) >= truth for limit in limits) for at in levels]
    together, alone = held.mean(axis=0)
    name = f"limits of the distance of {GROUPS} groups all hold"
    return [
        _line(f"{name}, simultaneous", together, 0.94, FAMILIES),
        _line(f"{name}, each at 95 %", alone, None, FAMILIES),
    ]


def shares() -> list[dict[str, object]]:
    """The same for shares, whose limits are exact."""
    rng = np.random.default_rng(23)
    hits = rng.binomial(GROUP_ROWS, SHARE, (20 * FAMILIES, GROUPS))
    lines = []
    for way, level, wanted in (
        ("simultaneous", 1.0 - (1.0 - NOMINAL) / GROUPS, 0.94),
        ("each at 95 %", NOMINAL, None),
    ):
        limits = np.array(
            [share_limit(count, GROUP_ROWS, level) for count in range(GROUP_ROWS + 1)]
        )
        all_hold = float(np.mean(np.all(limits[hits] <= SHARE, axis=1)))
        name = f"limits of the share of {GROUPS} groups all hold, {way}"
        lines.append(_line(name, all_hold, wanted, len(hits)))
    return lines


def means() -> list[dict[str, object]]:
    """Intervals of the mean of skewed outputs, beside Student's."""
    lines = []
    for sigma, wanted in ((1.0, 0.935), (1.5, 0.89)):
        rng, truth = np.random.default_rng([29, round(10 * sigma)]), math.exp(sigma * sigma / 2.0)
        held = 0
        for _ in range(MEANS):
            found = mean_interval(np.exp(sigma * rng.standard_normal(MEAN_ROWS)), NOMINAL, rng)
            held += found.lower <= truth <= found.upper
        name = f"mean of {MEAN_ROWS} lognormal({sigma:g}) outputs"
        lines.append(_line(name, held / MEANS, wanted, MEANS))
    return lines


def clusters(truth: float) -> list[dict[str, object]]:
    """Five rows of each customer: limits that know of the clusters, and limits that do not."""
    scenario, held = _scenario("outputs-1-derived-target"), np.zeros((CLUSTERED, 2))
    labels = np.repeat(np.arange(CLUSTERS), COPIES)
    for repetition in range(CLUSTERED):
        rng = np.random.default_rng([31, repetition])
        values = [np.repeat(side, COPIES, axis=1) for side in scenario.draw(rng, CLUSTERS)]
        comparison = Comparison.paired(*values, TRIM)
        alone = certificate_limit(comparison, DRAWS, rng, support=(0.0, 1.0), level=NOMINAL)
        known = clustered_limit(comparison, alone, labels)
        held[repetition] = [limit.upper(NOMINAL) >= truth for limit in (known, alone)]
    together, without = held.mean(axis=0)
    name = f"{CLUSTERS} clusters of {COPIES} rows"
    least = NOMINAL - 4.0 * standard_error(CLUSTERED)
    return [
        _line(f"{name}, `clusters=` given", together, least, CLUSTERED),
        _line(f"{name}, taken for independent (with a notice)", without, None, CLUSTERED),
    ]


def advice(key: str, truth: float) -> list[dict[str, object]]:
    """Ask samples how many rows bring the limit under a bound a little above the truth; do it."""
    scenario, bound = _scenario(key), FAR * truth
    done: list[bool] = []
    for sample in range(ASKED):
        rng = np.random.default_rng([37, sample, *key.encode()])
        (comparison,) = scenario.comparisons(rng, ASKED_ROWS, (TRIM,))
        limit = certificate_of(scenario, comparison, rng)
        said = rows_needed(comparison, limit, bound, NOMINAL, rng)[1]
        if said is not None and said <= MOST_ROWS:
            done.append(_limit(scenario, said, rng, DRAWS).upper(NOMINAL) <= bound)
    name = f"rows needed for {FAR:g} x the truth, followed ({scenario.name})"
    return [_line(name, float(np.mean(done)), 0.7, len(done))]


def _limit(scenario: Scenario, rows: int, rng: np.random.Generator, draws: int) -> UpperLimit:
    (comparison,) = scenario.comparisons(rng, rows, (TRIM,))
    return certificate_of(scenario, comparison, rng, draws)


def _scenario(key: str) -> Scenario:
    return next(one for one in scenarios() if one.key == key)


def _line(name: str, found: float, wanted: float | None, times: int) -> dict[str, object]:
    return {"name": name, "found": float(found), "wanted": wanted, "repetitions": times}
