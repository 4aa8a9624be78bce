"""Sliced distance with gradient against POT's value alone, in one process and one thread.

Prints our seconds, POT's seconds and their ratio, and ends with status 1 where the ratio is below
``LEAST``; ``OMP_NUM_THREADS=1`` is set before NumPy loads.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
import time
from collections.abc import Callable

import numpy as np
import ot

from elsewise import transport

ROWS, DIMENSION, DIRECTIONS = 100_000, 23, 50
LEAST = 6.0
"""How many times faster than POT's value alone our value and gradient must be."""


def best(run: Callable[[], object], times: int) -> float:
    """Smallest processor time of several runs."""
    seconds = []
    for _ in range(times):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return min(seconds)


def main() -> int:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, DIMENSION))
    y = rng.normal(size=(ROWS, DIMENSION)) + 0.1
    theta = rng.normal(size=(DIMENSION, DIRECTIONS))
    theta /= np.linalg.norm(theta, axis=0)
    ours = best(lambda: transport.sliced_squared_distance_and_gradient(x, y, theta), 5)
    theirs = best(lambda: ot.sliced_wasserstein_distance(x, y, projections=theta), 2)
    print(f"{ours:.3f} {theirs:.3f} {theirs / ours:.1f}")
    return int(theirs / ours < LEAST)


if __name__ == "__main__":
    sys.exit(main())
