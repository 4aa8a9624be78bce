"""What one iteration of the search computes of the inputs, against POT's value of the distance.

The kernel is that of `elsewise.search`: `measure_inputs` sorts the projections, measures the sliced
distance and records the plans, and `transported` brings every row to its anchor, the gradient of
the distance. Both run in one process and one thread; POT computes the value alone. Prints our
seconds, POT's seconds and their ratio, and ends with status 1 where the ratio is below ``LEAST``;
``OMP_NUM_THREADS=1`` is set before NumPy loads.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
import time
from collections.abc import Callable

import numpy as np
import ot
import pandas as pd

import elsewise as ew
from elsewise.measure import measure_inputs
from elsewise.request import Population, Problem, populate, pose
from elsewise.transport import transported

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


def posed(rng: np.random.Generator) -> tuple[Problem, Population]:
    """A search's problem with only an output bound, as most have, and its rows."""
    rows = pd.DataFrame(rng.normal(size=(ROWS, DIMENSION)), columns=[*map(str, range(DIMENSION))])
    model = ew.models.function(lambda frame: frame["0"], smooth=True)
    target, bounds = ew.targets.shift(0.1), ew.Bounds(outputs=0.1)
    request = ew.Request(model=model, rows=rows, target=target, bounds=bounds)
    problem, _ = pose(request, bounds)
    return problem, populate(problem)


def main() -> int:
    rng = np.random.default_rng(0)
    problem, population = posed(rng)
    y = np.asarray(population.embedded)
    x = y + 0.1 * rng.normal(size=y.shape)
    theta = rng.normal(size=(y.shape[1], DIRECTIONS))
    theta /= np.linalg.norm(theta, axis=0)
    settings = ew.Settings()

    def iteration() -> object:
        side = measure_inputs(problem, population, x, theta, settings.smoothing)
        assert side.plan is not None  # inputs always have a plan
        return transported(side.plan, x, theta)

    ours = best(iteration, 5)
    theirs = best(lambda: ot.sliced_wasserstein_distance(x, y, projections=theta), 2)
    print(f"{ours:.3f} {theirs:.3f} {theirs / ours:.1f}")
    return int(theirs / ours < LEAST)


if __name__ == "__main__":
    sys.exit(main())
