"""A question answered row by row: fitted, applied to all rows, counted on those not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from elsewise._arrays import Array, asarray_like, take_rows, to_numpy
from elsewise.certificate import Certificate, Reached, certify, cutoffs
from elsewise.moves import QuestionMap, Rows, Ways, find_ways, merged_ways, take_ways
from elsewise.request import Kind, Problem, Verdict, halve, populate
from elsewise.search._fit_question import Fitted, fit_question, nothing_to_do
from elsewise.search._optimum import excess_over_least, said_excess
from elsewise.settings import Settings
from elsewise.targets import Question


class RowAnswer(NamedTuple):
    """The rows after their moves, the map that moves any row, and what may be claimed."""

    rows: Rows
    map: QuestionMap
    certificate: Certificate
    notices: tuple[str, ...]
    """How far from the least moves these are."""


def answer_row_by_row(
    problem: Problem,
    question: Question,
    settings: Settings,
    kind: Kind,
    returned: Callable[[Array], Rows],
    stop: Callable[[], bool] = lambda: False,
) -> RowAnswer:
    """Answer a question in the target's own unit: each row by the cheapest way it has.

    Parameters
    ----------
    returned
        Codes (n, p) to the rows that the user gets, with the model's outputs on them.
    stop
        Whether time is up; rows that were not searched by then stay.
    """
    fitted, tested, unseen = problem, problem, None
    if kind is Kind.HELD_OUT:
        fitted, tested, unseen = halve(problem, settings.fit_rows)
    found = nothing_to_do(problem, question, settings)
    if found is None:
        found = fit_question(fitted, question, settings, unseen, stop)
        found = found._replace(ways=_all_ways(problem, found, unseen, stop))
    ways = found.ways
    codes, moves = take_ways(found.recorded, ways)
    rows = returned(asarray_like(codes, problem.factual))
    certificate = certify(
        tested,
        populate(tested),
        rows if unseen is None else Rows(*(take_rows(part, unseen) for part in rows)),
        settings.draws,
        kind,
        still=found.recorded.still,
        cuts=cutoffs(fitted, to_numpy(fitted.factual_outputs)),
        question=question,
        aimed=found.aimed,
        moved=int(moves.sum()),
        stayed=_stayed(question, found, moves),
        binding=found.limited,
    )
    reached = certificate.reached
    assert reached is not None  # a question was answered
    if reached.ok:
        reached = replace(reached, stayed=())
    certificate = replace(certificate, reached=reached, ended=_ended(reached, ways))
    excess = None
    if not ways.stopped:
        excess = excess_over_least(problem, question, ways, moves, to_numpy(rows.codes))
    return RowAnswer(rows, found.recorded, certificate, said_excess(excess))


def _all_ways(
    problem: Problem, found: Fitted, unseen: np.ndarray | None, stop: Callable[[], bool]
) -> Ways:
    """The ways of all rows: those of the fit are known where the two halves are all there is."""
    ways = found.ways
    if unseen is None:
        return ways
    if len(ways.costs) + len(unseen) < problem.factual.shape[0]:
        known = problem.factual_outputs
        return find_ways(problem, found.recorded, problem.factual, stop, known)
    codes, known = (take_rows(part, unseen) for part in (problem.factual, problem.factual_outputs))
    others = find_ways(problem, found.recorded, codes, stop, known)
    return merged_ways(ways, others, unseen)


def _stayed(question: Question, found: Fitted, moves: np.ndarray) -> tuple[tuple[str, int], ...]:
    """Why rows do not arrive, where every row that can was to; of a share, why too few do."""
    if question.wanted is None:
        return ()
    ways, stays = found.ways, ~moves & ~found.ways.inside
    can = np.isfinite(ways.costs)
    if question.kind == "share" and not found.limited:
        stays = stays & ~can
    missing = "time was up" if ways.stopped else "no legal way found"
    reasons = {
        "they break a rule or range themselves": stays & ways.frozen,
        missing: stays & ~ways.frozen & ~can,
        f"too dear for the bounds ({found.limited})": stays & can,
    }
    counts = ((reason, int(rows.sum())) for reason, rows in reasons.items())
    return tuple(pair for pair in counts if pair[1])


def _ended(reached: Reached, ways: Ways) -> Verdict | None:
    """What the search knows beside the numbers."""
    if ways.inside.all():
        return Verdict.NOTHING_TO_DO
    if ways.stopped:
        return Verdict.NOT_FOUND
    if reached.moved == 0 and not reached.ok and not reached.binding:
        return Verdict.NOT_REACHED if ways.attempted else Verdict.NOT_POSSIBLE
    return None
