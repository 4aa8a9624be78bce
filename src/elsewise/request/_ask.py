"""The one way in: a request is checked and turned into a problem, or refused with the remedy."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from elsewise._arrays import to_numpy
from elsewise.confidence import Method
from elsewise.errors import InvalidInput, check_count
from elsewise.features import Encoder, Schema
from elsewise.request._bounds import Bounds, Kind
from elsewise.request._halve import halve
from elsewise.request._pose import pose
from elsewise.request._problem import Problem
from elsewise.request._request import Request
from elsewise.request._unread import without_unread
from elsewise.settings import Settings
from elsewise.targets import Question, ResolvedShare, Sample, question_of

CERTIFY = ("auto", "held-out", "in-sample")
# With this many rows "auto" holds out half of them.
HELD_OUT_FROM = 200
# Each half of a split needs this many rows.
FEWEST_ROWS = 20


class Asked(NamedTuple):
    """A question that can be answered."""

    problem: Problem
    encoder: Encoder
    settings: Settings
    kind: Kind
    """What its answer may speak of."""
    question: Question | None
    """What is to be reached in the target's own unit; None: a distance is made small."""


def ask(request: Request) -> Asked:
    """Check a request and turn it into a problem in codes, or refuse it."""
    settings = Settings() if request.settings is None else request.settings
    bounds = Bounds() if request.bounds is None else request.bounds
    _check_kind("bounds", bounds, Bounds, "Bounds(inputs=0.2, outputs=0.1)")
    _check_kind("settings", settings, Settings, "leave it out, or pass Settings(iterations=100)")
    _check_kind("schema", request.schema, Schema | None, "leave it out, or use Schema.infer")
    request = replace(request, seed=check_seed(request.seed))
    _check_draws(settings.draws, bounds.side_level)
    bounds = _of_population(request.population, bounds)
    rows = len(request.rows) if isinstance(request.rows, pd.DataFrame) else 0
    kind = _kind(request.certify, bounds, rows)
    problem, encoder = without_unread(*pose(request, bounds))
    _check_certifiable(problem)
    question, target = _question(problem, settings), problem.target
    if kind is Kind.HELD_OUT and question is None and isinstance(target, ResolvedShare):
        # Which rows are to pass is learned from the rows of the fit; the others only count.
        seen = halve(problem, settings.fit_rows).fitted.precise_outputs
        problem = replace(problem, target=target.share.resolved(seen, falling=target.falling))
    return Asked(problem, encoder, settings, kind, question)


def _question(problem: Problem, settings: Settings) -> Question | None:
    """What is asked row by row; None where a distance to the target is bounded, or to be traded."""
    bounds = problem.bounds
    outputs = problem.outputs
    question = question_of(problem.target, outputs.columns, probability=outputs.probability)
    by_distance = bounds.outputs is not None or settings.step == "gradient"
    if bounds.reach is not None and (question is None or question.kind != "every"):
        raise InvalidInput(
            "bounds.reach",
            expected="a target that every row is to meet: at_most, at_least, label, or constant "
            "with a tolerance",
            received=problem.target.name,
            fix="leave reach out: a share, quantile or mean says itself what is to be reached",
        )
    for name in ("reach", "rows_moved", "cells_per_row"):
        if getattr(bounds, name) is not None and (question is None or by_distance):
            raise InvalidInput(
                f"bounds.{name}",
                expected="a question answered row by row",
                received=problem.target.name + (" with a bound on outputs" if by_distance else ""),
                fix=f"leave {name} out, or bounds.outputs",
            )
    return None if by_distance else question


def _of_population(population: object, bounds: Bounds) -> Bounds:
    """The limits of a sample, or of a population that is known to the last row."""
    if not isinstance(population, str) or population not in ("sample", "all"):
        expected = "'sample' or 'all'"
        fix = "'all' says that the rows are the whole population, so that nothing is estimated"
        raise InvalidInput("population", expected=expected, received=repr(population), fix=fix)
    return bounds if population == "sample" else replace(bounds, method=Method.EXACT.value)


def _kind(certify: str, bounds: Bounds, size: int) -> Kind:
    """Which rows the certificate is computed on."""
    if not isinstance(certify, str) or certify not in CERTIFY:
        expected = ", ".join(map(repr, CERTIFY))
        fix = "'held-out' speaks of the population, 'in-sample' describes the explained rows"
        raise InvalidInput("certify", expected=expected, received=repr(certify), fix=fix)
    if bounds.method == Method.EXACT:
        if certify != "auto":
            expected = "'auto' where the rows are the whole population"
            fix = "leave certify out, or population='all'"
            raise InvalidInput("certify", expected=expected, received=repr(certify), fix=fix)
        return Kind.POPULATION
    if certify == "held-out" and size < 2 * FEWEST_ROWS:
        expected = f"at least {2 * FEWEST_ROWS} rows to hold out half of them"
        fix = "certify='in-sample' describes the explained rows"
        raise InvalidInput("certify", expected=expected, received=f"{size} rows", fix=fix)
    held_out = certify == "held-out" or (certify == "auto" and size >= HELD_OUT_FROM)
    return Kind.HELD_OUT if held_out else Kind.IN_SAMPLE


def _check_certifiable(problem: Problem) -> None:
    """Refuse what could only fail after the search."""
    bounds, target, ends = problem.bounds, problem.target, problem.support
    if isinstance(target, Sample) and len(target.values) < 2:
        expected = "a sample of at least 2 values"
        fix = "use targets.constant(value) to ask for one value"
        raise InvalidInput("target", expected=expected, received="1", fix=fix)
    known = ends is not None
    if ends is not None and isinstance(target, Sample):
        low, high = ends
        wanted = to_numpy(target.values)
        known = bool(np.all((wanted >= low) & (wanted <= high)))
    if bounds.method == Method.FINITE_SAMPLE and not known:
        raise InvalidInput(
            "bounds.support",
            expected="ends that no output and no wanted value leaves, for method='finite-sample'",
            received=repr(bounds.support),
            fix="Bounds(support=(lower, upper)), or method='auto'",
        )
    if bounds.support is not None:
        values, (low, high) = to_numpy(problem.factual_outputs), bounds.support
        if values.min() < low or values.max() > high:
            raise InvalidInput(
                "bounds.support",
                expected="ends that no output leaves",
                received=f"{bounds.support} for outputs from {values.min():g} to {values.max():g}",
                fix="widen the support to all outputs that can occur",
            )


def _check_kind(argument: str, value: object, kind: Any, fix: str) -> None:
    if not isinstance(value, kind):
        expected = f"elsewise.{argument.capitalize()}"
        raise InvalidInput(argument, expected=expected, received=type(value).__name__, fix=fix)


def check_seed(seed: Any) -> int:
    """Return the seed as Python's int; refuse what is not a whole number from 0 on."""
    return check_count("seed", seed, "seed=0 is the default", least=0)


def _check_draws(draws: int, level: float) -> None:
    needed = math.ceil(level / (1.0 - level) - 1e-9)
    if draws < needed:
        expected = f"at least {needed} bootstrap draws for confidence on each side {level:g}"
        fix = "leave draws at 999, or ask for less confidence"
        raise InvalidInput("settings.draws", expected=expected, received=draws, fix=fix)
