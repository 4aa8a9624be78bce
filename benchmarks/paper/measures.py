"""What is measured of every run, all methods alike."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from benchmarks.paper.methods import rules_in_order
from benchmarks.paper.published import PERCENTILES, SHIFTS
from benchmarks.paper.questions import THRESHOLD, Question
from benchmarks.rivals import Ares, Dice
from benchmarks.rivals.distances import diversity
from benchmarks.rivals.measures import (
    METRICS,
    PaperCase,
    numeric_shift,
    pooled_percentile_differences,
)

import elsewise as ew

__all__ = ["measured", "timed"]

COUNTS = ("priors_count", "time_served")


def timed(run: Callable[[], ew.Explanation]) -> tuple[ew.Explanation, dict[str, float]]:
    """Run a method; returns also its seconds, by the processor and by the clock.

    The whole call is timed, for every method alike: binding the model, the search, the certificate.
    """
    clock, processor = time.perf_counter(), time.process_time()
    explanation = run()
    return explanation, {
        "seconds": time.process_time() - processor,
        "wall seconds": time.perf_counter() - clock,
    }


def measured(question: Question, explanation: ew.Explanation) -> dict[str, float]:
    """Return every measure of `METRICS`, and those of the paper's table beside them."""
    case = PaperCase(explanation=explanation, threshold=THRESHOLD)
    found = {name: metric.measure(case) for name, metric in METRICS.items()}
    outputs = explanation.outputs[:, 0]
    return {
        **found,
        "accuracy": question.accuracy,
        "rows": float(len(outputs)),
        "valid rows": float((outputs >= THRESHOLD).sum()),
        "input distance": explanation.certificate.inputs.untrimmed,
        "distance to ones": float(np.sqrt(np.mean((1.0 - outputs) ** 2))),
        "data diversity": diversity(case.embedded[0]),
        "broken groups": _broken_groups(question, case.after),
        **_published_differences(question, case),
        **_shifts(question, case),
        **_notes(explanation),
    }


def _published_differences(question: Question, case: PaperCase) -> dict[str, float]:
    """Per cent at the five ranges, as published: standardized columns, thrown into one."""
    center, scale = (
        part.to_numpy() for part in (question.experiment.center, question.experiment.scale)
    )
    before, after = ((codes - center) / scale for codes in (case.before, case.after))
    differences = pooled_percentile_differences(before, after)
    names = [f"% published {name}" for name in PERCENTILES]
    return dict(zip(names, differences.tolist(), strict=True))


def _shifts(question: Question, case: PaperCase) -> dict[str, float]:
    """COMPAS: shifts in per cent of the mean and deviation of both counts."""
    columns = [question.rows.columns.get_loc(name) for name in COUNTS if name in question.rows]
    if not columns:
        return {}
    shifts = numeric_shift(case.before[:, columns], case.after[:, columns])
    return dict(zip(SHIFTS, shifts.T.ravel().tolist(), strict=True))


def _broken_groups(question: Question, after: np.ndarray) -> float:
    """Share of rows in which some one-hot group does not have exactly one 1."""
    features = question.schema.features
    broken = np.zeros(len(after), dtype=bool)
    for group in {feature.group for feature in features} - {None}:
        members = after[:, [feature.group == group for feature in features]]
        broken |= ~(((members == 0) | (members == 1)).all(axis=1) & (members.sum(axis=1) == 1))
    return float(broken.mean())


def _notes(explanation: ew.Explanation) -> dict[str, float]:
    """What only some methods have: rules, and rows found within the time cap."""
    if isinstance(explanation, Ares):
        return {
            "rules": float(len(explanation.rules)),
            "rules in order": float(rules_in_order(explanation)),
        }
    if isinstance(explanation, Dice):
        return {"found": float(explanation.found.mean())}
    return {}
