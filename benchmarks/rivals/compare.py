"""The one table of measures, and explanations side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from benchmarks.rivals.distances import (
    TRIM,
    diversity,
    illegal_rows,
    median_bandwidth,
    mmd,
    nearest_distances,
    sliced_ot,
)

from elsewise._arrays import changed_cells, to_numpy
from elsewise.errors import InvalidInput
from elsewise.explanation import Explanation

__all__ = ["METRICS", "Case", "Metric", "compare", "explanation_ot", "validity"]


def validity(outputs: np.ndarray, threshold: float = 0.5) -> float:
    """Share of rows whose first output reaches the threshold (the paper's "coverage").

    Examples
    --------
    >>> validity(np.array([[0.2], [0.6], [0.5]]))
    0.6666666666666666
    """
    return float(np.mean(to_numpy(outputs)[:, 0] >= threshold))


def explanation_ot(explanation: Explanation, *, trim: float = TRIM, seed: int = 0) -> float:
    """`sliced_ot` between the counterfactual and the factual rows of an explanation."""
    embedding = explanation.problem.embedding
    after = to_numpy(embedding.embed(explanation.rows.codes))
    before = to_numpy(embedding.embed(explanation.problem.factual))
    return sliced_ot(after, before, trim=trim, seed=seed)


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """An explanation as the measures see it: arrays, each computed once."""

    explanation: Explanation
    threshold: float = 0.5
    """Output from which a row counts as valid."""

    @cached_property
    def before(self) -> np.ndarray:
        """Factual codes (n, p)."""
        return to_numpy(self.explanation.problem.factual)

    @cached_property
    def after(self) -> np.ndarray:
        """Counterfactual codes (n, p)."""
        return to_numpy(self.explanation.rows.codes)

    @cached_property
    def embedded(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Factual, counterfactual and background rows, each (., d)."""
        problem = self.explanation.problem
        embed = problem.embedding.embed
        codes = (problem.factual, self.explanation.rows.codes, problem.background)
        before, after, background = (to_numpy(embed(rows)) for rows in codes)
        return before, after, background

    @cached_property
    def changed(self) -> np.ndarray:
        """Cells that changed, bool (n, p)."""
        return np.asarray(changed_cells(self.before, self.after))

    @cached_property
    def validity(self) -> float:
        """Share of valid rows."""
        return validity(self.explanation.outputs, self.threshold)

    @cached_property
    def ot(self) -> float:
        """Squared sliced distance of the inputs."""
        return sliced_ot(self.embedded[1], self.embedded[0])

    @cached_property
    def row_move(self) -> float:
        """Root mean square distance between a row and what becomes of it."""
        before, after, _ = self.embedded
        return float(np.sqrt(np.mean(np.sum((after - before) ** 2, axis=1))))

    @cached_property
    def diversity(self) -> float:
        """Mean distance between counterfactual rows."""
        return diversity(self.embedded[1])

    @cached_property
    def mmd_at_median(self) -> float:
        """Squared discrepancy at the median distance."""
        before, after, _ = self.embedded
        return mmd(after, before, sigma=median_bandwidth(before, after))

    @cached_property
    def illegal(self) -> float:
        """Share of illegal rows."""
        problem = self.explanation.problem
        return float(illegal_rows(problem.schema, self.before, self.after, problem.obeys).mean())


class Metric(NamedTuple):
    """One measure of an explanation."""

    measure: Callable[[Case], float]
    description: str


def _probability(case: Case) -> float:
    level = case.explanation.certificate.probability
    return float("nan") if level is None else level


METRICS: dict[str, Metric] = {
    "validity": Metric(
        lambda case: case.validity, "share of rows whose output reaches the threshold (coverage)"
    ),
    "ot": Metric(
        lambda case: case.ot, "squared sliced W2 of the inputs, trim 0.1, normalised once"
    ),
    "mmd median": Metric(
        lambda case: case.mmd_at_median,
        "squared MMD of the inputs, Gaussian kernel as wide as the median gap",
    ),
    "diversity": Metric(lambda case: case.diversity, "mean distance between counterfactual rows"),
    "illegal": Metric(lambda case: case.illegal, "share of rows that the schema does not allow"),
    "rows changed": Metric(
        lambda case: float(case.changed.any(axis=1).mean()), "share of rows that changed"
    ),
    "cells changed": Metric(lambda case: float(case.changed.mean()), "share of cells that changed"),
    "row move": Metric(
        lambda case: case.row_move, "root mean square move of a row, in standard deviations"
    ),
    "nearest": Metric(
        lambda case: float(nearest_distances(case.embedded[1], case.embedded[2]).mean()),
        "mean distance of a counterfactual row to the nearest background row (plausibility)",
    ),
    "output distance": Metric(
        lambda case: case.explanation.certificate.outputs.untrimmed,
        "W2 between the model's outputs and the target",
    ),
    "input limit": Metric(
        lambda case: case.explanation.certificate.inputs.at_most,
        "certified upper limit of the input distance",
    ),
    "output limit": Metric(
        lambda case: case.explanation.certificate.outputs.at_most,
        "certified upper limit of the output distance",
    ),
    "probability": Metric(_probability, "attained probability, NaN where no bound was given"),
}
"""Every measure by its name in `compare`."""


def compare(
    explanations: Sequence[Explanation],
    names: Sequence[str] | None = None,
    *,
    threshold: float = 0.5,
) -> pd.DataFrame:
    """Measure explanations side by side, of the same rows or not.

    Parameters
    ----------
    explanations
        From `elsewise.explain`, `from_counterfactuals` or a method of this package.
    names
        One per explanation; numbered by default.
    threshold
        Output from which a row counts as valid.

    Returns
    -------
    DataFrame
        One row per explanation, one column per entry of `METRICS`.
    """
    explanations = list(explanations)
    if not explanations or not all(isinstance(e, Explanation) for e in explanations):
        raise InvalidInput(
            "explanations",
            expected="a list of at least one Explanation",
            received=", ".join(type(e).__name__ for e in explanations) or "none",
            fix="pass what elsewise.explain returned",
        )
    if names is not None and len(names) != len(explanations):
        raise InvalidInput(
            "names",
            expected=f"{len(explanations)} names, one per explanation",
            received=f"{len(names)}",
            fix="leave names out to number them",
        )
    cases = [Case(explanation=explanation, threshold=threshold) for explanation in explanations]
    table = [{name: metric.measure(case) for name, metric in METRICS.items()} for case in cases]
    return pd.DataFrame(table, index=None if names is None else pd.Index(list(names)))
