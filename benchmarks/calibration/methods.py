"""Every limit of one sample: all trims and levels from one set of resamples.

The limits are the library's own. Only the resampling is shared between trims here, because it is
most of the work; a test compares with `elsewise.confidence.certificate_limit` itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from copy import deepcopy
from typing import NamedTuple

import numpy as np
from benchmarks.rivals.dkw import dkw_limit

from elsewise.confidence import (
    Comparison,
    Pairing,
    UpperLimit,
    band_limit,
    bootstrap_limit,
    certificate_limit,
    clt_limit,
    coupling_limit,
    largest,
    notice_of,
    support_cap,
)
from elsewise.confidence._bootstrap import bootstrap_distances
from elsewise.transport import Ranked, segments

from .scenarios import Scenario

__all__ = [
    "ASYMPTOTIC",
    "DRAWS",
    "FINITE_SAMPLE",
    "LEVELS",
    "METHODS",
    "NOMINAL",
    "TRIMS",
    "Answer",
    "Answers",
    "answers_of",
    "certificate_of",
    "default_limit",
    "resampled_distances",
    "seconds_of",
]

LEVELS = (0.8, 0.9, 0.95, 0.975)
NOMINAL = 0.95
TRIMS = (0.0, 0.05, 0.1, 0.15)
DRAWS = 99
"""Resamples; the order statistic of the nominal level is exact."""

BATCH = 1 << 17
"""Resampled projections handled at once."""

METHODS = ("certificate", "default", "bootstrap", "clt", "coupling", "band", "dkw", "basic")
"""The certificate's own choice, its parts, and the reference code's bootstrap."""
FINITE_SAMPLE = ("coupling", "band", "dkw")
DEFAULT = "max(bootstrap, clt)"
ASYMPTOTIC = (DEFAULT, "clt")
"""What the certificate chooses unless it needs a finite-sample method."""
AT = LEVELS.index(NOMINAL)


class Answer(NamedTuple):
    """What one method says of one sample."""

    upper: np.ndarray
    """ndarray (T,): the limit at the nominal level, for each trim."""
    covers: np.ndarray
    """ndarray (T, L): 1 where the limit at a level is at or above the truth, else 0; NaN where it
    was not asked, which is for bands at other levels than the nominal one."""


class Answers(NamedTuple):
    """What all methods say of one sample."""

    estimates: np.ndarray
    """ndarray (T,): the distance at each trim."""
    methods: dict[str, Answer]
    chosen: tuple[str, ...]
    """The method the certificate chose at each trim."""
    noticed: tuple[bool, ...]
    """Whether it said at each trim that its limit may be too small."""


def default_limit(comparison: Comparison, draws: int, rng: np.random.Generator) -> UpperLimit:
    """Return the larger of bootstrap and CLT, whatever the rows: what certificates use if they can.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(1, 100))
    >>> default_limit(Comparison.paired(x + 0.3 * x**2, x, 0.05), 199, rng).method
    'max(bootstrap, clt)'
    """
    return largest(bootstrap_limit(comparison, draws, rng), clt_limit(comparison))


def answers_of(
    scenario: Scenario,
    comparisons: tuple[Comparison, ...],
    truths: np.ndarray,
    rng: np.random.Generator,
    *,
    finite_sample: bool = True,
) -> Answers:
    """Compute every limit of one sample, at every trim, and whether it covers.

    Without ``finite_sample`` these methods are left out, but for those the certificate chooses.
    """
    estimates = np.array([comparison.distance for comparison in comparisons])
    drawn, basic = resampled_distances(comparisons, DRAWS, rng)
    uppers = {
        "bootstrap": np.maximum(_order_statistics(drawn, LEVELS), estimates[:, None]),
        "clt": np.array(
            [[limit.upper(level) for level in LEVELS] for limit in map(clt_limit, comparisons)]
        ),
        "basic": _reflected(basic, estimates),
    }
    uppers["default"] = np.maximum(uppers["bootstrap"], uppers["clt"])
    found = {
        name: Answer(values[:, AT], (values >= truths[:, None]).astype(np.float64))
        for name, values in uppers.items()
    }
    # A single resample is enough to learn what the certificate chooses.
    draws = DRAWS if scenario.direct else 1
    choices = [certificate_of(scenario, comparison, rng, draws) for comparison in comparisons]
    default = found["default"]
    found["certificate"] = _stacked(
        [
            (default.upper[place], default.covers[place])
            if choice.method == DEFAULT and not scenario.direct
            else (choice.upper(NOMINAL), _covers(choice, truths[place]))
            for place, choice in enumerate(choices)
        ]
    )
    if finite_sample:
        found |= _finite_sample(scenario, comparisons, truths, rng)
    noticed = tuple(bool(notice_of(choice)) for choice in choices)
    return Answers(estimates, found, tuple(choice.method for choice in choices), noticed)


def certificate_of(
    scenario: Scenario, comparison: Comparison, rng: np.random.Generator, draws: int = DRAWS
) -> UpperLimit:
    """The certificate's limit, as the library computes it."""
    return certificate_limit(
        comparison, draws, rng, cap=scenario.cap, support=scenario.support, level=NOMINAL
    )


def seconds_of(
    scenario: Scenario, comparison: Comparison, rng: np.random.Generator
) -> dict[str, float]:
    """Processor time of each method for one comparison, sorted already."""
    calls: dict[str, Callable[[], UpperLimit]] = {
        "certificate": lambda: certificate_of(scenario, comparison, rng),
        "default": lambda: default_limit(comparison, DRAWS, rng),
        "bootstrap": lambda: bootstrap_limit(comparison, DRAWS, rng),
        "clt": lambda: clt_limit(comparison),
    }
    cap = _cap(scenario, comparison)
    if cap is not None:
        calls["coupling"] = lambda: coupling_limit(comparison, cap, NOMINAL, rng)
    if scenario.support is not None:
        calls["band"] = lambda: band_limit(comparison, scenario.support)
        calls["dkw"] = lambda: dkw_limit(comparison, scenario.support)
    taken = {}
    for name, call in calls.items():
        start = time.process_time()
        call().upper(NOMINAL)
        taken[name] = time.process_time() - start
    return taken


def resampled_distances(
    comparisons: tuple[Comparison, ...], draws: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Resampled distances (T, draws), as the library resamples and as the reference code does.

    They differ for paired rows only: the reference code resamples the two sides independently.
    A moved resample compared with the factual rows of the draw before it is just that.
    """
    first = comparisons[0]
    directions, n = first.shape
    if first.fixed is None or first.fixed.sorted.shape[1] != n:
        drawn = np.array([bootstrap_distances(each, draws, deepcopy(rng)) for each in comparisons])
        rng.spawn(2)
        return drawn, drawn
    moving_rng, fixed_rng = rng.spawn(2)
    weights = np.stack([_rank_weights(n, each.trim) for each in comparisons], axis=-1)
    paired = first.pairing is Pairing.PAIRED
    moving, fixed = _ranks(first.moving), _ranks(first.fixed)
    squares, unpaired = [], []
    if paired:
        before = _resample(first.fixed, fixed, fixed_rng.integers(n, size=(1, n)))
    batch = max(1, BATCH // (directions * n))
    for start in range(0, draws, batch):
        rows = moving_rng.integers(n, size=(min(batch, draws - start), n))
        moved = _resample(first.moving, moving, rows)
        if not paired:
            rows = fixed_rng.integers(n, size=rows.shape)
        factual = _resample(first.fixed, fixed, rows)
        squares.append(_mean_squares(moved - factual, weights))
        if paired:
            before = np.concatenate([before, factual])
            unpaired.append(_mean_squares(moved - before[:-1], weights))
            before = before[-1:]
    drawn = np.sqrt(np.concatenate(squares)).T
    return drawn, np.sqrt(np.concatenate(unpaired)).T if paired else drawn


def _ranks(side: Ranked) -> np.ndarray:
    """Rank (N, n) of each row, in small integers: they sort fastest."""
    return np.argsort(side.order, axis=-1).astype(np.int16)


def _resample(side: Ranked, ranks: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Sorted resamples (draws, N, n) of the rows (draws, n)."""
    drawn = np.ascontiguousarray(ranks[:, rows].transpose(1, 0, 2))
    drawn.sort(axis=-1)
    count, n = ranks.shape
    return np.take(side.sorted, drawn + n * np.arange(count)[:, None])


def _rank_weights(n: int, trim: float) -> np.ndarray:
    pieces = segments(n, n, trim)
    return np.bincount(pieces.x, pieces.weights, minlength=n)


def _mean_squares(gaps: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Squared distances (draws, T) of sorted gaps (draws, N, n)."""
    return np.asarray(np.mean(gaps * gaps, axis=1) @ weights)


def _order_statistics(drawn: np.ndarray, levels: tuple[float, ...]) -> np.ndarray:
    """Percentiles (T, L) of resampled distances (T, B), as the library takes them."""
    places = [math.ceil(level * (drawn.shape[1] + 1) - 1e-9) - 1 for level in levels]
    return np.asarray(np.sort(drawn, axis=1)[:, places])


def _reflected(drawn: np.ndarray, estimates: np.ndarray) -> np.ndarray:
    """The basic bootstrap's limits (T, L): estimate - q_low(drawn - estimate), at least 0."""
    low = tuple(1.0 - level for level in LEVELS)
    return np.maximum(2.0 * estimates[:, None] - _order_statistics(drawn, low), 0.0)


def _covers(limit: UpperLimit, truth: float) -> np.ndarray:
    """Whether the limit is at or above the truth at each level (L,), without computing it.

    The limit is below the truth exactly if a bound just below the truth is met.
    """
    just_below = limit.probability(math.nextafter(truth, -math.inf))
    return (just_below < np.array(LEVELS)).astype(np.float64)


def _covers_at_nominal(upper: float, truth: float) -> np.ndarray:
    return np.where(np.array(LEVELS) == NOMINAL, float(upper >= truth), np.nan)


def _stacked(parts: list[tuple[float, np.ndarray]]) -> Answer:
    uppers, covers = zip(*parts, strict=True)
    return Answer(np.array(uppers), np.array(covers))


def _cap(scenario: Scenario, comparison: Comparison) -> float | None:
    """Largest cost of a row, where rows have partners."""
    if comparison.partners is None:
        return None
    if scenario.cap is not None or scenario.support is None:
        return scenario.cap
    return support_cap(comparison, scenario.support)


def _finite_sample(
    scenario: Scenario,
    comparisons: tuple[Comparison, ...],
    truths: np.ndarray,
    rng: np.random.Generator,
) -> dict[str, Answer]:
    found = {}
    if scenario.support is not None:
        for name, method in (("band", band_limit), ("dkw", dkw_limit)):
            uppers = [method(each, scenario.support).upper(NOMINAL) for each in comparisons]
            found[name] = _stacked(
                [
                    (upper, _covers_at_nominal(upper, truth))
                    for upper, truth in zip(uppers, truths, strict=True)
                ]
            )
    cap = _cap(scenario, comparisons[0])
    if cap is not None:
        seed = int(rng.integers(2**63))
        each = [
            coupling_limit(comparison, cap, NOMINAL, np.random.default_rng(seed))
            for comparison in comparisons
        ]
        # The bets are on mean costs, which know no trim: one limit serves all, up to its scale.
        first = each[0].upper(NOMINAL) * math.sqrt(1.0 - 2.0 * TRIMS[0])
        found["coupling"] = _stacked(
            [
                (
                    max(limit.estimate, first / math.sqrt(1.0 - 2.0 * comparison.trim)),
                    _covers(limit, truth),
                )
                for limit, comparison, truth in zip(each, comparisons, truths, strict=True)
            ]
        )
    return found
