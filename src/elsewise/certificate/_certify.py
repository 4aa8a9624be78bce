"""From moved rows to a certificate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from elsewise._arrays import Array, to_numpy
from elsewise.certificate._numbers import cutoffs, read_out, read_reached
from elsewise.certificate._record import Certificate, Evidence
from elsewise.confidence import (
    Comparison,
    Interval,
    Method,
    Pairing,
    certificate_limit,
    clustered_limit,
    move_cap,
    move_interval,
    notice_of,
    row_costs,
    rows_needed,
)
from elsewise.features import largest_squared_move
from elsewise.measure import input_comparison, output_comparison, output_directions
from elsewise.moves import Rows
from elsewise.request import Kind, Population, Problem
from elsewise.targets import Derived, DistributionTarget, Question, ResolvedShare, Sample
from elsewise.transport import direction_blocks

Support = tuple[np.ndarray, np.ndarray]


def certify(
    problem: Problem,
    population: Population,
    rows: Rows,
    draws: int,
    kind: Kind,
    *,
    still: bool = False,
    cuts: tuple[float, ...] | None = None,
    question: Question | None = None,
    **told: Any,
) -> Certificate:
    """Certify moved rows against both bounds, on directions the optimizer never saw.

    Parameters
    ----------
    problem, population
        The question, and the certified rows before they moved.
    rows
        The same rows after they moved.
    draws
        Bootstrap draws.
    kind
        What the rows allow the certificate to speak of.
    still
        Whether the map leaves every row, seen or not, where it is.
    cuts
        Cut-off of each output column; by default chosen by `cutoffs` from these rows.
    question
        What was asked in the target's own unit; ``told`` are the further fields of `Reached`.
    """
    bounds = problem.bounds
    # The explained rows were sent to the model when the question was put; other rows were not.
    known = population.codes is problem.factual
    before = problem.factual_outputs if known else problem.outputs.values(population.codes)
    before, after = to_numpy(before), to_numpy(rows.outputs)
    cuts = cutoffs(problem, before) if cuts is None else cuts
    reached = None
    if question is not None:
        reached = read_reached(problem, question, before, after, kind, **told)
    return Certificate(
        inputs=certify_inputs(problem, population, rows, draws, still=still, advise=True),
        outputs=certify_outputs(problem, population, rows, draws, advise=True),
        kind=kind,
        confidence=None if bounds.method == Method.EXACT else bounds.confidence,
        trim=bounds.trim,
        rows=int(rows.codes.shape[0]),
        readouts=read_out(problem, before, after, cuts),
        reached=reached,
        row_move=certify_moves(problem, population, rows, still=still),
        moves_bound=bounds.moves,
    )


def certify_moves(
    problem: Problem, population: Population, rows: Rows, *, still: bool = False
) -> Interval:
    """Root mean square move of a row, sqrt(E |phi(T(x)) - phi(x)|^2), with its limits.

    The answer is a map T, so (x, T(x)) is a coupling of the two populations, and no coupling costs
    less than the optimal plan: the number, and so its upper limit, bounds the *unsliced*
    2-Wasserstein distance in any dimension. It is the root of a plain mean over rows, with the
    rate 1 / sqrt(n) of one.
    """
    moved = to_numpy(problem.embedding.embed(rows.codes)) - to_numpy(population.embedded)
    squares = np.asarray(np.sum(np.nan_to_num(moved) ** 2, axis=1, dtype=np.float64))
    if still or problem.bounds.method == Method.EXACT:
        return Interval.known(math.sqrt(float(squares.mean())))
    cap = largest_squared_move(problem.schema.features, to_numpy(problem.factual))
    return move_interval(squares, problem.bounds.confidence, cap, problem.clusters)


def certify_inputs(
    problem: Problem,
    population: Population,
    rows: Rows,
    draws: int,
    *,
    method: Method | None = None,
    still: bool = False,
    advise: bool = False,
) -> Evidence:
    """Certify the input distance on fresh directions.

    ``method`` takes the place of the limits' own; ``advise`` adds how many rows would do where the
    bound is missed.
    """
    theta = direction_blocks(problem.embedding.size, problem.generator("certificate directions"))
    comparison = input_comparison(problem, population, rows.codes, theta)
    method, cap = Method(method or problem.bounds.method), 0.0 if still else None
    # Only these may come to use a cap, which costs an eigenvalue problem.
    if not still and method in (Method.AUTO, Method.FINITE_SAMPLE):
        cap = _cap(problem, comparison, theta)
    return _evidence(problem, "inputs", comparison, draws, method, advise, cap=cap)


def certify_outputs(
    problem: Problem,
    population: Population,
    rows: Rows,
    draws: int,
    *,
    method: Method | None = None,
    advise: bool = False,
) -> Evidence:
    """Certify the output distance; several output columns on fresh directions."""
    theta = output_directions(problem, problem.generator("certificate output directions"))
    comparison = output_comparison(problem, population, rows.outputs, theta)
    support = _compared_support(problem, theta)
    largest = math.inf
    # A wanted distribution may leave the support.
    if support is not None and not isinstance(problem.target, DistributionTarget):
        low, high = support
        # No quantile is farther from another than the ends of the support are.
        largest = math.sqrt(np.mean((high - low) ** 2))
    how = draws, Method(method or problem.bounds.method), advise
    return _evidence(problem, "outputs", comparison, *how, largest, support=support)


def _cap(problem: Problem, comparison: Comparison, theta: np.ndarray) -> float | None:
    """Return the largest cost of a legal move; None where rows made more than legal ones."""
    factual = to_numpy(problem.factual)
    cap = move_cap(theta, largest_squared_move(problem.schema.features, factual))
    # Rows of another method may be illegal, and then nothing is known of how far unseen ones go.
    costs = row_costs(comparison)
    assert costs is not None  # inputs are paired
    return cap if np.all(costs <= cap * (1.0 + 1e-6)) else None


def _compared_support(problem: Problem, theta: Array) -> Support | None:
    """Return the ends (M,), direction by direction, of all outputs, moved and wanted."""
    target = problem.target
    if problem.support is None:
        return None
    support = np.asarray(problem.support, dtype=np.float64)
    ends = np.broadcast_to(support[:, None], (2, problem.outputs.columns))
    if isinstance(target, Sample) and not (
        np.all(target.values >= ends[0]) and np.all(target.values <= ends[1])
    ):
        return None
    if isinstance(target, Derived):
        # Every such target is monotone in the output, but for a share, which asks for one level.
        levels = [ends, to_numpy(target.of(ends.copy()))]
        if isinstance(target, ResolvedShare):
            levels.append(np.full_like(ends, target.share.cutoff + target.share.margin))
        both = np.concatenate(levels)
        ends = np.stack([both.min(axis=0), both.max(axis=0)])
    # A projection is largest where every column is at the end that the sign of its weight asks for.
    corners = ends[:, :, None] * to_numpy(theta)
    return corners.min(axis=0).sum(axis=0), corners.max(axis=0).sum(axis=0)


def _evidence(
    problem: Problem,
    side: str,
    comparison: Comparison,
    draws: int,
    method: Method,
    advise: bool,
    largest: float = math.inf,
    **known: Any,
) -> Evidence:
    """Certify "inputs" or "outputs", with the cap or the support that is ``known``.

    No distance is larger than ``largest``, whatever the rows.
    """
    bound, level = getattr(problem.bounds, side), problem.bounds.side_level
    rng = problem.generator(f"certificate {side}")
    limit = certificate_limit(comparison, draws, rng, level=level, method=method, **known)
    exact = method is Method.EXACT
    if problem.clusters is not None and not exact:
        limit = clustered_limit(comparison, limit, problem.clusters)
    # No population is farther apart than `largest`: a bound of at least that is met for certain.
    probability = None
    if bound is not None and not exact:
        probability = 1.0 if largest <= bound else limit.probability(bound)
    # Rounding may put the estimate of rows at the far end just above it.
    upper = max(limit.estimate, min(limit.upper(level), largest))
    debiased, needed = None, None
    if advise and not exact and bound is not None and upper > bound:
        debiased, needed = rows_needed(comparison, limit, bound, level, rng, method)
    return Evidence(
        estimate=limit.estimate,
        untrimmed=comparison.untrimmed_distance,
        upper_limit=None if exact else upper,
        bound=bound,
        probability=probability,
        method=limit.method,
        assumption=limit.assumption,
        directions=comparison.shape[0],
        debiased=debiased,
        rows_needed=needed,
        notice=notice_of(limit),
        target_values=comparison.sizes[1] if comparison.pairing is Pairing.INDEPENDENT else None,
    )
