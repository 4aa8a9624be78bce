"""Frames in, explanations out."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from elsewise._arrays import Array, asarray_like, to_numpy
from elsewise.certificate import Certificate, Kind
from elsewise.certificate import certify as certify_rows
from elsewise.errors import InvalidInput
from elsewise.explanation import Explanation, Status
from elsewise.features import Encoder, Schema
from elsewise.maps import Map, Rows, apply_map
from elsewise.posing import pose
from elsewise.problem import Limits, Problem, populate
from elsewise.search import Outcome, Solution, iterate
from elsewise.solver import Iteration, Settings, State
from elsewise.targets import Sample, Share, Target

__all__ = ["explain"]

CERTIFY = ("auto", "held-out", "in-sample")
HELD_OUT_FROM = 200
"""With this many rows "auto" holds out half of them."""
FEWEST_ROWS = 20
"""Each half of a split needs this many rows."""
MARGIN = 1.2
"""The fit aims at the limits divided by this: unseen rows are a little farther than seen ones."""


def explain(
    model: Any,
    rows: pd.DataFrame,
    *,
    target: Target | Share,
    schema: Schema | None = None,
    background: pd.DataFrame | None = None,
    limits: Limits | None = None,
    certify: str = "auto",
    seed: int = 0,
    settings: Settings | None = None,
    progress: bool | None = None,
    stop: Callable[[], bool] | None = None,
) -> Explanation:
    """Find what would have to be different about a population for the model's outputs to change.

    Parameters
    ----------
    model
        A torch module, a scikit-learn estimator or pipeline, or a function frame -> scores.
    rows
        DataFrame: the population to explain.
    target
        What its outputs should look like: see `elsewise.targets`.
    schema
        What may change and how; inferred from ``rows`` and ``background`` by default.
    background
        DataFrame that gives scales and observed ranges; ``rows`` by default.
    limits
        How far inputs and outputs may be; see `Limits`. By default the knee of the frontier.
    certify
        "held-out": fit on a random half, certify on the other, so that the certificate speaks of
        the population the rows come from. "in-sample": the paper's, descriptive. "auto": held-out
        from 200 rows on.
    seed
        The one source of randomness: the same seed gives the same result.
    settings
        How the search is run; see `Settings`.
    progress
        Show a progress bar; by default only on a terminal.
    stop
        Asked at every iteration; where it is true, the best so far is returned.

    Examples
    --------
    >>> import numpy as np
    >>> import elsewise as ew
    >>> rows = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 2)), columns=["a", "b"])
    >>> score = ew.models.function(lambda frame: frame["a"] + frame["b"], smooth=True)
    >>> explanation = ew.explain(
    ...     score, rows, target=ew.targets.shift(0.5), limits=ew.Limits(outputs=0.2)
    ... )
    >>> explanation.ok
    True
    """
    settings = settings or Settings()
    limits = limits or Limits()
    _check_kind("limits", limits, Limits, "Limits(inputs=0.2, outputs=0.1)")
    _check_kind("settings", settings, Settings, "leave it out, or pass Settings(iterations=100)")
    _check_kind("schema", schema, Schema | None, "leave it out, or start from Schema.infer")
    _check_seed(seed)
    _check_draws(settings.draws, limits.side_level)
    kind = _kind(certify, len(rows) if isinstance(rows, pd.DataFrame) else 0)
    problem, encoder = pose(model, rows, target, schema, background, limits, seed)
    fit = _held_out if kind is Kind.HELD_OUT else _in_sample
    answer = fit(problem, encoder, settings, _Watch(progress, stop))
    return Explanation(
        problem=problem,
        model=model,
        encoder=encoder,
        index=rows.index,
        rows=answer.rows,
        factual_outputs=to_numpy(problem.outputs.values(problem.factual)),
        map=answer.map,
        certificate=answer.certificate,
        status=replace(answer.status, notices=_notices(problem, encoder)),
        iterations=tuple(answer.records),
        settings=settings,
    )


def _notices(problem: Problem, encoder: Encoder) -> tuple[str, ...]:
    """What inference decided, and how many rows stay because they are not legal themselves."""
    broken = int(to_numpy(populate(problem, problem.factual).legal.broken).sum())
    stay = f"{broken} rows break a rule or a range and stay as they are"
    return (*encoder.schema.notices, *([stay] if broken else []))


class _Watch(NamedTuple):
    """How the search is watched."""

    progress: bool | None
    stop: Callable[[], bool] | None


class _Answer(NamedTuple):
    """What a fit gives back, whichever rows it was certified on."""

    rows: Rows
    map: Map
    certificate: Certificate
    status: Status
    records: list[Iteration]


def _in_sample(problem: Problem, encoder: Encoder, settings: Settings, watch: _Watch) -> _Answer:
    """Fit and certify on all rows, as the paper does: descriptive."""
    solution, records = _watched(iterate(problem, settings, watch.stop), watch.progress)
    state = solution.state
    rows = _returned(problem, encoder, state.rows.codes)
    population = state.setup.population
    return _Answer(
        rows=rows,
        map=state.map(),
        certificate=certify_rows(problem, population, rows, settings.draws, Kind.IN_SAMPLE),
        status=Status(
            outcome=solution.outcome, binding=solution.binding, reachable=solution.reachable
        ),
        records=records,
    )


def _held_out(problem: Problem, encoder: Encoder, settings: Settings, watch: _Watch) -> _Answer:
    """Fit and choose on one half, apply the map once to the other, certify there."""
    rng = problem.generator("split")
    size = problem.factual.shape[0]
    order = rng.permutation(size)
    seen, unseen = np.sort(order[: size // 2]), np.sort(order[size // 2 :])
    targets = _halves(problem.target, rng)
    fitted = _restricted(problem, seen, targets[0])
    solution, records = _fitted(fitted, settings, watch)
    recorded = solution.state.map()
    rows = _returned(problem, encoder, apply_map(problem, recorded, problem.factual).codes)
    tested = _restricted(problem, unseen, targets[1])
    population = populate(tested, tested.factual)
    moved = Rows(*(asarray_like(to_numpy(part)[unseen], part) for part in rows))
    certificate = certify_rows(tested, population, moved, settings.draws, Kind.HELD_OUT)
    return _Answer(
        rows=rows,
        map=recorded,
        certificate=certificate,
        status=_held_out_status(solution, certificate),
        records=records,
    )


def _fitted(
    problem: Problem, settings: Settings, watch: _Watch
) -> tuple[Solution, list[Iteration]]:
    """Fit with limits a little tighter than asked for, to leave room for rows not seen yet."""
    limits = problem.limits
    tight = replace(
        problem,
        limits=replace(
            limits,
            inputs=None if limits.inputs is None else limits.inputs / MARGIN,
            outputs=None if limits.outputs is None else limits.outputs / MARGIN,
        ),
    )
    solution, records = _watched(iterate(tight, settings, watch.stop), watch.progress)
    if solution.outcome is not Outcome.NOT_FEASIBLE:
        return solution, records
    return _watched(iterate(problem, settings, watch.stop), watch.progress)


def _held_out_status(solution: Solution, certificate: Certificate) -> Status:
    """What the unseen rows say of the fit."""
    missed = [
        (name, side)
        for name, side in (("inputs", certificate.inputs), ("outputs", certificate.outputs))
        if not side.met
    ]
    if not missed:
        if solution.outcome is Outcome.NOT_FEASIBLE:
            return Status(outcome=Outcome.CERTIFIED)
        return Status(outcome=solution.outcome)
    if solution.outcome in (Outcome.CERTIFIED, Outcome.NOTHING_TO_DO):
        name, side = missed[0]
        return Status(outcome=Outcome.NOT_CERTIFIED, binding=name, reachable=side.upper_limit)
    return Status(outcome=solution.outcome, binding=solution.binding, reachable=solution.reachable)


def _restricted(problem: Problem, chosen: np.ndarray, target: Target) -> Problem:
    """The same question about some of the rows."""
    factual = asarray_like(to_numpy(problem.factual)[chosen], problem.factual)
    return replace(problem, factual=factual, target=target)


def _halves(target: Target, rng: np.random.Generator) -> tuple[Target, Target]:
    """A sampled target is split like the rows; any other serves both halves."""
    if not isinstance(target, Sample):
        return target, target
    size = len(target.values)
    if size < 4:
        raise InvalidInput(
            "target",
            expected="a sample of at least 4 values, two for each half",
            received=f"{size}",
            fix="give more values, or use certify='in-sample'",
        )
    order = rng.permutation(size)
    first, second = np.sort(order[: size // 2]), np.sort(order[size // 2 :])
    values = target.values  # noqa: PD011
    return replace(target, values=values[first]), replace(target, values=values[second])


def _returned(problem: Problem, encoder: Encoder, codes: Array) -> Rows:
    """Codes through the frame once: what is certified is what is returned, to the last bit."""
    exact = problem.outputs.place(encoder.encode(encoder.decode(codes)))
    return Rows(exact, problem.outputs.values(exact))


def _watched(
    search: Generator[State, None, Solution], progress: bool | None
) -> tuple[Solution, list[Iteration]]:
    """Run the search with a progress bar; keep each iteration's record."""
    records: list[Iteration] = []
    with tqdm(desc="elsewise", unit=" iterations", disable=_disabled(progress), delay=1.0) as bar:
        while True:
            try:
                record = next(search).record
            except StopIteration as end:
                return end.value, records
            records.append(record._replace(iteration=len(records)))
            bar.set_postfix(
                inputs=f"{record.inputs:.3f}", outputs=f"{record.outputs:.3f}", refresh=False
            )
            bar.update()


def _disabled(progress: bool | None) -> bool | None:
    """The value tqdm wants: None leaves the bar out where there is no terminal."""
    return None if progress is None else not progress


def _kind(certify: str, size: int) -> Kind:
    """Which rows the certificate is computed on."""
    if certify not in CERTIFY:
        raise InvalidInput(
            "certify",
            expected=", ".join(map(repr, CERTIFY)),
            received=repr(certify),
            fix="'held-out' speaks of the population, 'in-sample' describes the explained rows",
        )
    if certify == "held-out" and size < 2 * FEWEST_ROWS:
        raise InvalidInput(
            "certify",
            expected=f"at least {2 * FEWEST_ROWS} rows to hold out half of them",
            received=f"{size} rows",
            fix="certify='in-sample' describes the explained rows",
        )
    held_out = certify == "held-out" or (certify == "auto" and size >= HELD_OUT_FROM)
    return Kind.HELD_OUT if held_out else Kind.IN_SAMPLE


def _check_kind(argument: str, value: object, kind: Any, fix: str) -> None:
    if not isinstance(value, kind):
        raise InvalidInput(
            argument,
            expected=f"elsewise.{argument.capitalize()}",
            received=type(value).__name__,
            fix=fix,
        )


def _check_seed(seed: object) -> None:
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not whole or seed < 0:  # type: ignore[operator]
        raise InvalidInput(
            "seed", expected="a whole number >= 0", received=repr(seed), fix="seed=0 is the default"
        )


def _check_draws(draws: int, level: float) -> None:
    needed = math.ceil(level / (1.0 - level) - 1e-9)
    if draws < needed:
        raise InvalidInput(
            "settings.draws",
            expected=f"at least {needed} bootstrap draws for confidence on each side {level:g}",
            received=draws,
            fix="leave draws at 999, or ask for less confidence",
        )
