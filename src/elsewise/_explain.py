"""Frames in, explanations out."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from tqdm.auto import tqdm

from elsewise._arrays import Array, changed_cells, take_rows, to_numpy
from elsewise._resources import TimeIsUp, late, until, using
from elsewise.certificate import Certificate, cutoffs, stayed_lines
from elsewise.certificate import certify as certify_rows
from elsewise.confidence import Method
from elsewise.errors import InvalidInput
from elsewise.explanation import Explanation, Status
from elsewise.features import Encoder, Schema
from elsewise.maps import AnyMap, apply_map
from elsewise.measure import FAR, chance_distance, nearest_distances
from elsewise.models import refuse_changes
from elsewise.moves import Motion, Rows
from elsewise.request import (
    CERTIFIED_ROWS,
    Bounds,
    Kind,
    Problem,
    Request,
    Verdict,
    ask,
    broken_rows,
    halve,
    populate,
    repeated_rows,
)
from elsewise.search import Iteration, Outcome, Solution, State, answer_row_by_row, clock, iterate
from elsewise.settings import Settings
from elsewise.targets import Sample, Share, Target
from elsewise.text import amount, percent

# The fit aims at the limits divided by this: unseen rows are a little farther than seen ones.
MARGIN = 1.2
# Share of the time budget after which a map is no more applied to the rows that were not fitted.
APPLIED = 0.85
# Rows whose neighbours are looked for.
LOOKED_AT = 1000


def explain(
    model: Any,
    rows: Any,
    *,
    target: Target | Share,
    schema: Schema | None = None,
    background: Any = None,
    bounds: Bounds | None = None,
    certify: str = "auto",
    population: str = "sample",
    seed: int = 0,
    settings: Settings | None = None,
    clusters: Any = None,
    progress: bool | None = None,
    stop: Callable[[], bool] | None = None,
) -> Explanation:
    """Find what would have to be different about a population for the model's outputs to change.

    Parameters
    ----------
    model
        A torch module, a scikit-learn estimator or pipeline, or a function frame -> scores, which
        is asked about the kind of frame that ``rows`` is.
    rows
        The population to explain: a DataFrame of pandas or polars, an Arrow table, whatever else
        narwhals reads, or an array. Rows come back in the same kind of frame.
    target
        What its outputs should look like: see `elsewise.targets`.
    schema
        What may change and how; inferred from ``rows`` and ``background`` by default.
    background
        Rows that give scales and observed ranges; ``rows`` by default.
    bounds
        How far inputs and outputs may be; see `Bounds`. By default the knee of the frontier.
    certify
        "held-out": fit on a random half, certify on the other, so that the certificate speaks of
        the population the rows come from. "in-sample": the paper's, descriptive. "auto": held-out
        from 200 rows on.
    population
        "sample": the rows were drawn from what is spoken of. "all": they are all of it (a whole
        portfolio), so that distances are exact, no limit is claimed, and bounds are met by the
        distances themselves.
    seed
        The one source of randomness: the same seed gives the same result.
    settings
        How the search is run; see `Settings`.
    clusters
        Which rows belong together, as several of one customer: a column of ``rows``, or one label
        a row. Whole clusters are held out, and limits count clusters instead of rows.
    progress
        Show a progress bar; by default only on a terminal.
    stop
        Asked at every iteration; where it is true, the best so far is returned.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import elsewise as ew
    >>> rows = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 2)), columns=["a", "b"])
    >>> score = ew.models.function(lambda frame: frame["a"] + frame["b"], smooth=True)
    >>> explanation = ew.explain(
    ...     score, rows, target=ew.targets.shift(0.5), bounds=ew.Bounds(outputs=0.2)
    ... )
    >>> explanation.ok
    True
    """
    request = Request(
        model=model,
        rows=rows,
        target=target,
        schema=schema,
        background=background,
        bounds=bounds,
        certify=certify,
        population=population,
        seed=seed,
        settings=settings,
        clusters=clusters,
    )
    return explain_request(request, progress, stop)


def explain_request(
    request: Request, progress: bool | None = None, stop: Callable[[], bool] | None = None
) -> Explanation:
    """Answer a request; `explain` is this with its arguments written out."""
    if stop is not None and not callable(stop):
        expected = "a function that says whether to stop, or None"
        fix = "pass lambda: clock() > end, or Settings(seconds=60)"
        raise InvalidInput("stop", expected=expected, received=repr(stop), fix=fix)
    began = time.perf_counter()
    # One budget for binding, every search and the certificate.
    seconds = getattr(request.settings, "seconds", None)
    with until(clock(seconds, None, since=began)):
        problem, encoder, settings, kind, question = ask(request)
    time_is_up = clock(seconds, stop, since=began)
    with using(settings.resources), until(clock(seconds, None, began, APPLIED)):
        if question is None:
            answer = _by_distance(problem, encoder, settings, kind, progress, time_is_up)
        else:
            returned = partial(_returned, problem, encoder)
            found = answer_row_by_row(problem, question, settings, kind, returned, time_is_up)
            rows, recorded, certificate, told = found
            status = replace(_question_status(certificate), notices=told)
            answer = _Answer(rows, recorded, certificate, status, [])
        _check_again(problem, answer.rows)
    fit_rows = settings.fit_rows if kind is Kind.HELD_OUT else None
    notices = tuple(_notices(request, problem, encoder, fit_rows, answer))
    status, same = answer.status, _same_answer(problem)
    if same and not status.ok:
        status = replace(status, reason=same)
    return Explanation(
        problem=problem,
        model=request.model,
        encoder=encoder,
        index=request.rows.index,
        rows=answer.rows,
        factual_outputs=to_numpy(problem.factual_outputs),
        map=answer.map,
        certificate=answer.certificate,
        status=replace(status, notices=(*notices, *status.notices, *answer.certificate.notices)),
        iterations=tuple(answer.records),
        settings=settings,
    )


def _check_again(problem: Problem, rows: Rows) -> None:
    """Refuse a model that answers differently when it is asked about the returned rows again.

    A pipeline read into tables has answered twice already if the tables say the same.
    """
    if late():
        return
    outputs, precise = to_numpy(rows.outputs), problem.precise
    again = precise if getattr(precise, "exact", False) else problem.outputs
    now, name = to_numpy(again.values(rows.codes)), problem.outputs.description
    refuse_changes(name, now, outputs, "returned rows when asked again")


def _notices(
    request: Request, problem: Problem, encoder: Encoder, fit_rows: int | None, answer: _Answer
) -> Iterator[str]:
    """What inference decided, and what is to be known about the rows, the samples and the model."""
    lost = () if request.schema is None else request.schema.lost
    yield from replace(encoder.schema, lost=lost).notices
    if broken := int(to_numpy(broken_rows(problem, problem.factual)).sum()):
        yield f"{broken} rows break a rule or a range and stay as they are"
    if slow := getattr(problem.precise, "notice", ""):
        yield slow
    if fit_rows is not None:
        yield from _sampling(problem, fit_rows)
    yield from _chance(problem, answer.certificate.rows)
    yield from _implausible(problem, answer.rows)


def _same_answer(problem: Problem) -> str:
    """What is wrong with a model that answers alike for every row; nothing where it does not."""
    outputs = to_numpy(problem.factual_outputs)
    if (outputs != outputs[0]).any():
        return ""
    level = ", ".join(map(amount, outputs[0].tolist()))
    return f"the model answers {level} for every row: check that it is trained on such columns"


def _implausible(problem: Problem, rows: Rows) -> Iterator[str]:
    """How many rows end far from the background, where they are twice as many as before."""
    background, size = to_numpy(problem.background), problem.factual.shape[0]
    some = np.linspace(0, size - 1, min(size, LOOKED_AT)).astype(np.intp)
    before, after = (take_rows(codes, some) for codes in (problem.factual, rows.codes))
    if len(background) < 2 or not np.any(to_numpy(changed_cells(before, after))):
        return
    near, now = nearest_distances(problem, background, before, after)
    far = np.quantile(near, 0.95)
    share, earlier = float(np.mean(now > far)), float(np.mean(near > far))
    if share >= 2.0 * max(earlier, 0.05):
        yield f"{percent(share)} of the rows are {FAR} than 95% of them were before"


def _chance(problem: Problem, rows: int) -> Iterator[str]:
    """How far two samples of these sizes are apart by chance, where the target is one of them."""
    target, bound = problem.target, problem.bounds.outputs
    if not isinstance(target, Sample) or target.exact or problem.bounds.method == Method.EXACT:
        return
    rng = problem.generator("chance distance")
    floor = chance_distance(np.asarray(target.values), rows, problem.bounds.trim, rng)
    said = f"two samples of {rows:,} rows and {len(target.values):,} target values differ by about "
    small = bound is not None and bound <= floor
    hopeless = ": a bound on the outputs below that can hardly be certified" if small else ""
    yield f"{said}{amount(floor)} by chance alone{hopeless}"


def _sampling(problem: Problem, fitted: int) -> Iterator[str]:
    """How many of many rows were fitted to and certified on."""
    size, copies = problem.factual.shape[0], repeated_rows(problem, halve(problem, fitted).unseen)
    if copies and problem.clusters is None:
        same = "where these are the same case, the limits are too small; name the cases (clusters=)"
        yield f"{copies:,} of the certified rows have exact copies among the rows: {same}"
    if size // 2 > fitted:
        others = f"certified on {min(size - fitted, CERTIFIED_ROWS):,} others"
        told = f"fitted to {fitted:,} of {size:,} rows drawn at random and {others}"
        yield f"{told}; the map was applied to all (Settings.fit_rows)"


class _Answer(NamedTuple):
    """What a fit gives back, whichever rows it was certified on."""

    rows: Rows
    map: AnyMap
    certificate: Certificate
    status: Status
    records: list[Iteration]


def _question_status(certificate: Certificate) -> Status:
    """The status of an answer in the target's own unit."""
    reached = certificate.reached
    assert reached is not None  # a question was answered
    missed = certificate.missed
    return Status(
        verdict=certificate.verdict,
        sentence=certificate.sentence,
        asked=reached.asked,
        aimed=reached.aimed,
        before=reached.before,
        reached=reached.reached,
        limit=reached.limit,
        binding=missed or reached.binding or None,
        reachable=certificate.at_most[missed] if missed else None,
        rows_needed=certificate.rows_needed,
        reason=" and ".join(stayed_lines(reached)),
    )


def _by_distance(
    problem: Problem,
    encoder: Encoder,
    settings: Settings,
    kind: Kind,
    progress: bool | None,
    stop: Callable[[], bool],
) -> _Answer:
    """Fit, apply the map to all rows and certify: on rows held out, or on those of the fit.

    The latter is descriptive as in the paper, or exact for a whole population.
    """
    halves = halve(problem, settings.fit_rows) if kind is Kind.HELD_OUT else None
    if halves is None:
        solution, records = _watched(iterate(problem, settings, stop), progress)
    else:
        solution, records = _fitted(halves.fitted, settings, progress, stop)
    state, recorded = solution.state, solution.state.map()
    population, tested, cuts = state.setup.population, problem, None
    if halves is None:
        rows = certified = _returned(problem, encoder, state.rows.codes)
    else:
        try:
            with until(interrupt=True):
                codes = apply_map(problem, recorded, problem.factual).codes
        except TimeIsUp:
            codes, recorded = problem.factual, replace(recorded, steps=(), motion=Motion())
            solution = solution._replace(outcome=Outcome.OUT_OF_TIME)
        rows = _returned(problem, encoder, codes)
        certified = Rows(*(take_rows(part, halves.unseen) for part in rows))
        cuts = cutoffs(halves.fitted, to_numpy(population.outputs))
        tested, population = halves.tested, populate(halves.tested)
    still = not recorded.steps and not recorded.motion.noise
    draws, ended = settings.draws, _ENDED.get(solution.outcome)
    found = certify_rows(tested, population, certified, draws, kind, still=still, cuts=cuts)
    certificate = replace(found, ended=ended)
    return _Answer(rows, recorded, certificate, _status(solution, certificate), records)


def _fitted(
    problem: Problem, settings: Settings, progress: bool | None, stop: Callable[[], bool]
) -> tuple[Solution, list[Iteration]]:
    """Fit with limits a little tighter than asked for, to leave room for rows not seen yet."""
    bounds = problem.bounds
    sides = {name: getattr(bounds, name) for name in ("inputs", "outputs", "moves")}
    tighter = replace(bounds, **{name: side and side / MARGIN for name, side in sides.items()})
    tight = replace(problem, bounds=tighter)
    solution, records = _watched(iterate(tight, settings, stop, shorter=True), progress)
    if solution.outcome is Outcome.NOT_FEASIBLE:
        return _watched(iterate(problem, settings, stop), progress)
    return solution, records


_ENDED = {
    Outcome.NOTHING_TO_DO: Verdict.NOTHING_TO_DO,
    Outcome.NOTHING_MOVES: Verdict.NOT_POSSIBLE,
    Outcome.OUT_OF_TIME: Verdict.NOT_FOUND,
}


def _status(solution: Solution, certificate: Certificate) -> Status:
    """What the certificate says of the fit; the search was steered by less than all of it."""
    missed = certificate.missed
    side = certificate.inputs if certificate.outputs.bound is None else certificate.outputs
    told = Status(
        verdict=certificate.verdict,
        sentence=certificate.sentence,
        asked=side.bound,
        reached=side.estimate,
        limit=side.upper_limit,
    )
    if not missed:
        return replace(told, reason=solution.reason)
    binding, reachable = solution.binding, solution.reachable
    if solution.outcome is Outcome.MET or reachable is None:
        binding, reachable = missed, certificate.at_most[missed]
    rows_needed = certificate.rows_needed
    return replace(told, binding=binding, reachable=reachable, rows_needed=rows_needed)


def _returned(problem: Problem, encoder: Encoder, codes: Array) -> Rows:
    """Codes through the frame once: what is certified is what is returned, to the last bit."""
    exact = problem.outputs.place(encoder.encode(encoder.decode(codes)))
    # Where no row moves, the model has been asked already.
    if np.array_equal(to_numpy(exact), to_numpy(problem.factual), equal_nan=True):
        return Rows(exact, problem.factual_outputs)
    return Rows(exact, problem.outputs.values(exact))


def _watched(
    search: Generator[State, None, Solution], progress: bool | None
) -> tuple[Solution, list[Iteration]]:
    """Run the search with a progress bar; keep each iteration's record."""
    records: list[Iteration] = []
    # None leaves the bar out where there is no terminal.
    hidden = None if progress is None else not progress
    with tqdm(desc="elsewise", unit=" iterations", disable=hidden, delay=1.0) as bar:
        while True:
            try:
                record = next(search).record
            except StopIteration as end:
                return end.value, records
            records.append(record._replace(iteration=len(records)))
            shown = {"inputs": f"{record.inputs:.3g}", "outputs": f"{record.outputs:.3g}"}
            bar.set_postfix(shown, refresh=False)
            bar.update()
