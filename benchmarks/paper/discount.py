"""DISCOUNT as published: the library's gradient step with the settings behind the paper's Table 1.

What the reference experiments do: N = 10 independent directions, drawn once; the gradient of
(1 - eta) Q_x + eta Q_y, where Q_x is the sum over directions; a step of 0.1 * 1e3 times that
gradient; at most 100 iterations from x' + 0.01 * noise. U_x = 0.01 is never met, and at delta =
1e-5 the reference's limit of the inputs is infinite: then its eta is r, the upper end of the
interval, at every iteration, and the last iterate is returned.

The step is that of `Settings(step="gradient")`, `elsewise.moves.move`, whose Q_x is the mean over
directions: `_weights` translates the reference's eta and step length.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np
import pandas as pd
from benchmarks.paper.questions import THRESHOLD, Question, seen_by_network

import elsewise as ew
from elsewise import analysis
from elsewise._arrays import asarray_like, to_numpy
from elsewise.measure import measure_inputs
from elsewise.moves import Motion, MoveContext, Rows, Step, move
from elsewise.request import Problem, populate, pose
from elsewise.targets import Derived, Target

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
BOUNDLESS = 1e12
"""The reference lets every column be any number; a range of this size keeps none of them."""
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
    for name in schema.names:
        if schema[name].free:
            schema = schema.range(name, -BOUNDLESS, BOUNDLESS)
    problem, encoder = pose(
        ew.Request(
            model=question.model,
            rows=rows,
            target=target,
            schema=schema,
            background=train,
            seed=question.seed,
        ),
        ew.Bounds(trim=0.0),
    )
    frame = encoder.decode(_descended(problem, ETA[experiment.name]), index=rows.index)
    return analysis.from_counterfactuals(
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


def _weights(eta: float, length: float, rows: int) -> tuple[float, float]:
    """Return the library's eta and tau for the reference's eta and step length.

    The reference steps by -length / rows * ((1 - eta) N g_x + eta g_y) a row, N directions, where
    the library steps by -2 tau ((1 - eta) g_x + eta g_y).
    """
    total = (1.0 - eta) * DIRECTIONS + eta
    return eta / total, length * total / (2.0 * rows)


def _descent(problem: Problem, eta: float, length: float) -> tuple[np.ndarray, float, float]:
    """Codes (n, p) after at most 100 steps, and Q at the first and at the last iterate."""
    problem = replace(problem, unit=1.0)
    embedding, population = problem.embedding, populate(problem, problem.factual)
    factual = to_numpy(population.embedded)
    rng = problem.generator("published")
    theta = rng.standard_normal((factual.shape[1], DIRECTIONS))
    theta /= np.linalg.norm(theta, axis=0)
    codes = embedding.push(problem.factual, NOISE * rng.standard_normal(factual.shape))
    rows = Rows(codes, problem.precise.values(codes))
    directions = asarray_like(theta, population.embedded)
    weight, tau = _weights(eta, length, len(factual))
    motion = Motion(gradient=True, tau=tau)
    wanted = _wanted(problem.target, to_numpy(population.outputs))
    seen: deque[float] = deque(maxlen=WINDOW)
    first = np.inf
    for iteration in range(ITERATIONS):
        embedded = embedding.embed(rows.codes)
        side = measure_inputs(problem, population, embedded, directions, 0.0)
        missed = to_numpy(rows.outputs) - wanted
        # What the reference watches: the mean over directions, where it descends their sum.
        objective = (1 - eta) * side.distance**2 + eta * float(np.mean(missed**2))
        if iteration == 0:
            first = objective
        seen.append(objective)
        at_rest = len(seen) == WINDOW and abs(seen[-1] - seen[0]) / WINDOW < REST
        if at_rest or objective > RUNAWAY * first:
            break
        assert side.plan is not None  # inputs always have a plan
        step = Step(
            eta=weight,
            directions=directions,
            anchors=side.plan,
            output_directions=np.ones((1, 1)),
            wanted=None,
            edits=None,
        )
        rows = move(MoveContext(problem, motion, population, step, rows, embedded)).rows
    return to_numpy(rows.codes), first, seen[-1]


def _wanted(target: Target, factual: np.ndarray) -> np.ndarray:
    """Outputs (n, 1) that rows are sent to, for targets that follow each row."""
    assert isinstance(target, Derived)
    return to_numpy(target.of(factual))


def _finished(question: Question, frame: pd.DataFrame) -> pd.DataFrame:
    if question.experiment.name == "HELOC":
        return frame
    indicators = list(frame.columns[question.experiment.scale == 1.0])
    after = frame.round()
    after[indicators] = (frame[indicators] > THRESHOLD).astype(np.float64)
    return after
