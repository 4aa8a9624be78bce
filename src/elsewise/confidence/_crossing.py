"""How often uniform order statistics leave their intervals, exactly."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, xlogy

# Counts whose probability is under exp(-TAIL) are taken for crossings.
TAIL = 60.0


def crossing_probability(lower: np.ndarray, upper: np.ndarray) -> float:
    """Return the probability that some order statistic of n uniforms leaves its interval.

    The i-th smallest lies in [lower_i, upper_i] exactly if the count of values up to lower_i is
    below i and the count up to upper_i is at least i. The counts of a Poisson process of intensity
    n, given that all of it counts n, are those of the sample; they have independent increments, so
    the probability of keeping to all bounds is carried from one bound to the next by convolution
    [1]_. A count keeps within a few sqrt(n) of its mean, so all of it takes of the order of n^1.5
    operations.

    Parameters
    ----------
    lower, upper
        Non-decreasing ndarrays (n,); 0 and 1 leave an order statistic free.

    References
    ----------
    .. [1] A. Moscovich and B. Nadler, "Fast calculation of boundary crossing probabilities for
       Poisson processes", Statistics & Probability Letters 123, 2017.

    Examples
    --------
    >>> round(crossing_probability(np.array([0.2]), np.array([0.7])), 12)
    0.5
    >>> round(crossing_probability(np.array([0.0, 0.5]), np.array([1.0, 1.0])), 12)
    0.25
    """
    n = lower.size
    times, least, most = _bounds_of_the_count(lower, upper)
    means = n * np.diff(times, prepend=0.0)
    lengths = np.ceil(means + _margin(means)).astype(np.int64)
    counts, log_factorials = np.arange(n + 1), gammaln(np.arange(1.0, n + 2))

    def poisson(mean: float, count: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(xlogy(count, mean) - mean - log_factorials[count]))

    # mass[j]: probability that the count is first + j and kept to all bounds so far.
    first, mass = 0, np.ones(1)
    for mean, length, fewest, largest in zip(means, lengths, least, most, strict=True):
        size = largest - first + 1
        mass = np.convolve(mass, poisson(mean, counts[: min(size, length)]))
        mass, first = mass[fewest - first : size], fewest
        if mass.size == 0:
            return 1.0
    rest = n - n * (times[-1] if times.size else 0.0)
    kept = mass @ poisson(rest, n - first - counts[: mass.size])
    return float(np.clip(1.0 - kept / poisson(n, counts[n:])[0], 0.0, 1.0))


def _bounds_of_the_count(
    lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the times (T,) of the bounds, the fewest and the largest count allowed at each."""
    n = lower.size
    held_up, held_down = np.flatnonzero(lower > 0.0), np.flatnonzero(upper < 1.0)
    times = np.concatenate([lower[held_up], upper[held_down]])
    least = np.concatenate([np.zeros_like(held_up), held_down + 1])
    most = np.concatenate([held_up, np.full_like(held_down, n)])
    order = np.argsort(times, kind="stable")
    times, least, most = times[order], least[order], most[order]
    # Counts never fall: a bound from below holds from then on, one from above up to then.
    least = np.maximum.accumulate(least)
    most = np.minimum.accumulate(most[::-1])[::-1]
    spread = _margin(n * times)
    least = np.maximum(least, np.floor(n * times - spread).astype(np.int64))
    most = np.minimum(most, np.ceil(n * times + spread).astype(np.int64))
    return times, least, most


def _margin(means: np.ndarray) -> np.ndarray:
    """Bound how far Poisson counts are from their means but for a probability of exp(-TAIL).

    By Bernstein, P(|count - mean| >= x) <= 2 exp(-x^2 / (2 mean + 2 x / 3)).
    """
    return TAIL / 3.0 + np.sqrt(TAIL**2 / 9.0 + 2.0 * TAIL * means)
