"""Which limit a certificate uses.

The default, the larger of bootstrap and CLT, needs rows enough for an average to settle. Where few
rows moved, or few rows are there and nothing is trimmed, it can be far too small: a sample without
a single mover gives 0. There other limits take over: one that counts the ranks that few movers can
pass, and finite-sample ones, as far as something is known about how far a row can move or how large
an output can be. Movers are counted by size: nudges of all other rows do not hide that few moved.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from elsewise._arrays import namespace, to_numpy
from elsewise.confidence._band import Support, band_limit
from elsewise.confidence._betting import coupling_limit, row_costs, support_cap
from elsewise.confidence._bootstrap import bootstrap_limit
from elsewise.confidence._clt import clt_limit
from elsewise.confidence._comparison import Comparison, Pairing
from elsewise.confidence._doubt import FEW_MOVERS, FEW_ROWS, NUDGE, ROUNDING, doubt_of, is_small
from elsewise.confidence._limit import KnownLimit, Method, UpperLimit, largest
from elsewise.confidence._rank_shift import few_movers_limit
from elsewise.errors import InvalidInput

# With so many rows, and a distance so many standard errors above 0, the CLT covers by itself (a
# test shows it), and the bootstrap is left out.
CLEAR_ROWS, CLEAR_ERRORS = 2000, 20.0
# Of more resampled projections than this, the bootstrap draws fewer resamples, or is left out.
BOOTSTRAP_WORK = 100_000_000
# With fewer resamples than this the bootstrap is left out.
FEWEST_DRAWS = 199
# Outputs with at most so many different values are counts of rows rather than numbers.
FEW_VALUES = 20


def certificate_limit(
    comparison: Comparison,
    draws: int,
    rng: np.random.Generator,
    *,
    cap: float | None = None,
    support: Support = None,
    level: float = 0.975,
    method: Method | str = Method.AUTO,
) -> UpperLimit:
    """Return the limit a certificate uses: the default one, or a finite-sample one where it must.

    The default is not trusted where fewer than ten rows are clearly away from their partner, by 5 %
    of the spread, or where nothing is trimmed and a sample has fewer than 100 rows. For few movers
    it is the better of `rank_shift_limit`, if enough is trimmed, and of a finite-sample limit, if a
    cap or a support is known; for few rows it is the finite-sample limit. Where neither can be had,
    the default stays and its assumption says so. It also says so where a sample has fewer than 50
    rows, and where less than 5 % is trimmed of values whose range is not known.

    From 2000 rows on the CLT stands alone where the distance is clearly above 0, at 20 standard
    errors or more. Where it is not, and rows are very many, the bootstrap draws fewer resamples,
    and of still more rows none.

    Parameters
    ----------
    comparison
        What is compared. Arrays of any library.
    draws
        Number of resamples of the bootstrap.
    rng
        Source of randomness.
    cap
        Largest cost a row can have, see `move_cap`; 0 where no row can move, and the distance is
        known to be 0.
    support
        Lower and upper end of all values, moved and wanted, numbers or arrays (N,).
    level
        The level at which a limit by betting is to be tightest.
    method
        "auto", "asymptotic" (always the default), "finite-sample" (never the default) or "exact"
        (the rows are the population: the distance itself).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=(1, 100))
    >>> moved, few = x**2, np.where(x > 0.97, 0.0, x)
    >>> certificate_limit(Comparison.paired(moved, x, 0.05), 199, rng, support=(0.0, 1.0)).method
    'max(bootstrap, clt)'
    >>> certificate_limit(Comparison.paired(few, x, 0.05), 199, rng, support=(0.0, 1.0)).method
    'min(coupling + betting, rank shift)'
    >>> certificate_limit(Comparison.paired(x, x, 0.05), 199, rng, cap=0.0).upper(0.95)
    0.0
    """
    wanted = Method(method)
    if wanted is Method.EXACT:
        return KnownLimit(estimate=comparison.distance)
    moving = _movers(comparison)
    # A cap of 0 speaks of unseen rows, too. That no row of the sample moved is not enough: movers
    # may be too rare to be in it.
    if cap == 0.0 and moving is not None and not moving[0].any():
        said = "No row can move, so that the distance is known to be 0."
        return KnownLimit(method="nothing moves", assumption=said, estimate=0.0)
    # Where few rows moved at all, these are the few; otherwise those that were not just nudged.
    few = next((rows for rows in moving or () if np.sum(rows) < FEW_MOVERS), None)
    safe = None
    if wanted is Method.FINITE_SAMPLE:
        safe = _finite_sample(comparison, rng, cap, support, level)
        if safe is None:
            expected = "a known range of the outputs or of the moves for a finite-sample limit"
            fix = "give the range that outputs cannot leave, or use method='auto'"
            raise InvalidInput("method", expected=expected, received="none", fix=fix)
    elif wanted is Method.AUTO and (few is not None or is_small(comparison)):
        safe = _finite_sample(comparison, rng, cap, support, level)
        if few is not None:
            safe = few_movers_limit(comparison, few, support, level, safe)
    if safe is not None:
        return safe
    limit = _bounded_default(comparison, draws, rng, level)
    known = cap is not None or support is not None
    doubt = doubt_of(comparison, known_range=known)
    if few is not None:
        doubt = "fewer than ten rows clearly moved"
    return limit.doubted(doubt) if doubt else limit


def steering_method(method: Method | str, trim: float, rows: int) -> Method:
    """Return the method of the limits that steer a search.

    The switch to a finite-sample limit at few movers is left to the certificate: a limit that jumps
    as a tenth row moves is nothing to steer by.

    Examples
    --------
    >>> steering_method("auto", 0.05, 80).value, steering_method("auto", 0.0, 80).value
    ('asymptotic', 'auto')
    """
    jumps = method == Method.AUTO and not (trim == 0.0 and rows < FEW_ROWS)
    return Method.ASYMPTOTIC if jumps else Method(method)


def count_movers(comparison: Comparison) -> int | None:
    """Return how many rows are away from their partner; None where rows have none.

    Examples
    --------
    >>> x = np.arange(5.0)[None, :]
    >>> count_movers(Comparison.paired(np.maximum(x, 2.0), x, 0.0))
    2
    """
    moving = _movers(comparison)
    return None if moving is None else int(np.sum(moving[0]))


def _movers(comparison: Comparison) -> tuple[np.ndarray, np.ndarray] | None:
    """Return which rows (n,) left their partner, and which by more than a nudge."""
    costs = row_costs(comparison)
    if costs is None:
        return None
    xp = namespace(comparison.moving.sorted)
    moved = np.sqrt(costs) > ROUNDING * float(xp.max(xp.abs(comparison.moving.sorted)))
    # The fixed side's spread, where there is one: that of the moved rows would make the threshold
    # depend on how far they went.
    values = to_numpy(comparison.samples[-1].sorted)
    spread = float(np.sqrt(np.mean(np.var(values, axis=-1))))
    return moved, moved & (np.sqrt(costs) > NUDGE * spread)


def _bounded_default(
    comparison: Comparison, draws: int, rng: np.random.Generator, level: float
) -> UpperLimit:
    """Return the larger of bootstrap and CLT, with fewer resamples or none where rows are many.

    Either alone falls a little short of its level in some small-sample scenario; their maximum did
    not in the calibration benchmark, from 50 rows and a trim of 0.05 on.
    """
    normal = clt_limit(comparison)
    clear = normal.estimate >= CLEAR_ERRORS * normal.standard_error
    if clear and min(comparison.sizes) >= CLEAR_ROWS:
        return normal
    # The fewest draws with an order statistic at this level: B / (B + 1) >= level.
    needed = math.ceil(level / (1.0 - level) - 1e-9)
    allowed = allowed_draws(comparison)
    if allowed >= draws or allowed >= max(FEWEST_DRAWS, needed):
        drawn = bootstrap_limit(_once_more(comparison), min(draws, allowed), rng)
        # `_once_more` may have added a row; the estimate stays that of the rows themselves.
        return largest(replace(drawn, estimate=normal.estimate), normal)
    return normal


def _once_more(comparison: Comparison) -> Comparison:
    """Return what is resampled: of outputs with few values, the farthest mover once more.

    The share of rows with one value is a count, whose upper limit (Clopper-Pearson's) is that of
    one more row. Of a few failures, percentiles of the bootstrap fall short of it.
    """
    if comparison.shape[0] > 1 or comparison.pairing is not Pairing.PAIRED:
        return comparison
    assert comparison.fixed is not None  # paired rows are a sample
    moving, fixed = to_numpy(comparison.moving.rows), to_numpy(comparison.fixed.rows)
    if np.count_nonzero(np.diff(to_numpy(comparison.moving.sorted))) >= FEW_VALUES:
        return comparison
    rows = np.append(np.arange(moving.shape[1]), np.argmax(np.abs(moving - fixed)))
    return Comparison.paired(moving[:, rows], fixed[:, rows], comparison.trim)


def allowed_draws(comparison: Comparison) -> int:
    """Return how many resamples of a comparison are work enough."""
    return BOOTSTRAP_WORK // (comparison.shape[0] * max(comparison.sizes))


def _finite_sample(
    comparison: Comparison,
    rng: np.random.Generator,
    cap: float | None,
    support: Support,
    level: float,
) -> UpperLimit | None:
    """Return the finite-sample limit that is narrower as a rule; no row decides which one.

    A band around one sample makes use of the trimming, and pays for every direction; a coupling
    does neither. Of paired rows, which a band takes for two samples, the coupling knows more.
    """
    partners = comparison.partners
    one_band = comparison.fixed is None and comparison.trim > 0.0 and comparison.shape[0] == 1
    if support is not None and (one_band or partners is None):
        return band_limit(comparison, support)
    if partners is None:
        return None
    if cap is None and support is not None:
        cap = support_cap(comparison, support)
    return None if cap is None else coupling_limit(comparison, cap, level, rng)
