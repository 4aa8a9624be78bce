"""DISCOUNT as published: the paper's step with the settings behind its Table 1.

What the reference experiments do, in this library's parts: N = 10 independent directions, drawn
once; the gradient of (1 - eta) Q_x + eta Q_y, where Q_x is the sum over directions; a step of 0.1 *
1e3 times that gradient; at most 100 iterations from x' + 0.01 * noise. U_x = 0.01 is never met, and
at delta = 1e-5 the reference's limit of the inputs is infinite: then its eta is r, the upper end of
the interval, at every iteration, and the last iterate is returned.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import pandas as pd
from benchmarks.paper.questions import THRESHOLD, Question, seen_by_network

import elsewise as ew
from elsewise import baselines
from elsewise._arrays import to_numpy
from elsewise.request import Problem, populate
from elsewise.request import _pose as posing
from elsewise.targets import Constant, Derived, Target
from elsewise.transport import sliced_squared_distance_and_gradient

__all__ = ["ETA", "discount"]

ETA = {"HELOC": 0.7, "COMPAS": 0.85}
"""r, the upper end of the published interval."""
DIRECTIONS = 10
STEP = 0.1 * 1e3
ITERATIONS = 100
NOISE = 0.01
REST, WINDOW = 1e-6, 5
"""The reference stops when Q changes by less than this an iteration, over so many iterations."""
RUNAWAY = 1e3
"""A descent whose Q has grown by this factor is over."""
HALVINGS = 6
"""A step too long for a model, by which Q would grow without end, is halved at most so often."""


def discount(question: Question, target: Target) -> ew.Explanation:
    """Explain a question by the paper's step.

    All columns are real numbers on the way. On COMPAS, indicators are thresholded one by one and
    counts rounded at the end, as in the reference: that leaves illegal rows.
    """
    experiment = question.experiment
    rows, train = (part.astype(np.float64) for part in (question.rows, experiment.train))
    schema = seen_by_network(experiment, ew.Schema.infer(rows, train))
    problem, encoder = posing.pose(
        question.model, rows, target, schema, train, ew.Bounds(), question.seed
    )
    frame = encoder.decode(_descended(problem, ETA[experiment.name]), index=rows.index)
    return baselines.given(
        question.model,
        question.rows,
        _finished(question, frame),
        method="DISCOUNT",
        schema=question.schema,
        background=experiment.train,
        target=target,
        seed=question.seed,
    )


def _descended(problem: Problem, eta: float) -> np.ndarray:
    """Codes (n, p) after the descent, with the longest step that brings Q down."""
    for halving in range(HALVINGS + 1):
        codes, first, last = _descent(problem, eta, STEP * 0.5**halving)
        if last <= first:
            break
    return codes


def _descent(problem: Problem, eta: float, length: float) -> tuple[np.ndarray, float, float]:
    """Codes (n, p) after at most 100 steps, and Q at the first and at the last iterate."""
    embedding, population = problem.embedding, populate(problem, problem.factual)
    factual = to_numpy(population.embedded)
    rows, size = factual.shape
    rng = problem.generator("published")
    theta = rng.standard_normal((size, DIRECTIONS))
    theta /= np.linalg.norm(theta, axis=0)
    codes = embedding.push(problem.factual, NOISE * rng.standard_normal(factual.shape))
    wanted = _wanted(problem.target, to_numpy(population.outputs))
    seen: deque[float] = deque(maxlen=WINDOW)
    first = np.inf
    for iteration in range(ITERATIONS):
        # Lines 3 and 4: sorting gives the plans; the distance is the mean over directions.
        distance, slope = sliced_squared_distance_and_gradient(
            embedding.embed(codes), factual, theta
        )
        values, model_slope = problem.precise.values_and_gradient(codes)
        missed = values - wanted
        # What the reference watches: the mean over directions, where it descends their sum.
        objective = (1 - eta) * float(distance) + eta * float(np.mean(missed**2))
        if iteration == 0:
            first = objective
        seen.append(objective)
        at_rest = len(seen) == WINDOW and abs(seen[-1] - seen[0]) / WINDOW < REST
        if at_rest or objective > RUNAWAY * first:
            break
        # Lines 8 and 9; like the reference, half the gradient of the squares.
        inputs = (1 - eta) * DIRECTIONS * slope / 2.0
        outputs = eta * missed * embedding.pull(model_slope)[:, 0, :] / rows
        codes = embedding.push(codes, -length * (inputs + outputs))
    return codes, first, seen[-1]


def _wanted(target: Target, factual: np.ndarray) -> np.ndarray:
    """Outputs (n, 1) that rows are sent to, for targets that follow each row."""
    assert isinstance(target, Constant | Derived)
    return to_numpy(target.of(factual))


def _finished(question: Question, frame: pd.DataFrame) -> pd.DataFrame:
    if question.experiment.name == "HELOC":
        return frame
    indicators = list(frame.columns[question.experiment.scale == 1.0])
    after = frame.round()
    after[indicators] = (frame[indicators] > THRESHOLD).astype(np.float64)
    return after
