"""The one table of measures, and explanations side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from elsewise._arrays import to_numpy
from elsewise.errors import InvalidInput
from elsewise.explanation import Explanation
from elsewise.features import Kind
from elsewise.metrics import _changes, _distances
from elsewise.metrics._legality import illegal_rows

__all__ = ["METRICS", "Case", "Metric", "compare", "explanation_ot", "validity"]


def validity(outputs: np.ndarray, threshold: float = 0.5) -> float:
    """Share of rows whose first output reaches the threshold (the paper's "coverage").

    Examples
    --------
    >>> validity(np.array([[0.2], [0.6], [0.5]]))
    0.6666666666666666
    """
    return float(np.mean(to_numpy(outputs)[:, 0] >= threshold))


def explanation_ot(
    explanation: Explanation, *, trim: float = _distances.TRIM, seed: int = 0
) -> float:
    """`sliced_ot` between the counterfactual and the factual rows of an explanation."""
    embedding = explanation.problem.embedding
    after = to_numpy(embedding.embed(explanation.rows.codes))
    before = to_numpy(embedding.embed(explanation.problem.factual))
    return _distances.sliced_ot(after, before, trim=trim, seed=seed)


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
    def numbers(self) -> np.ndarray:
        """Places (q,) of the numbers that may move."""
        features = self.explanation.problem.schema.features
        return np.flatnonzero([feature.free and feature.numeric for feature in features])

    @cached_property
    def units(self) -> np.ndarray:
        """Changes (n, p) in bins of the observed range; a swap within a group is 1 in all."""
        features = self.explanation.problem.schema.features
        spreads = [f.observed[1] - f.observed[0] if f.numeric else 0.0 for f in features]
        widths = np.array(spreads) / _changes.BINS
        widths[[feature.group is not None for feature in features]] = 2.0
        return _changes.bin_units(self.before, self.after, widths)

    @cached_property
    def one_hot(self) -> tuple[np.ndarray, np.ndarray]:
        """Indicators (n, q) of all categories and one-hot groups that may move, both sides."""
        features = self.explanation.problem.schema.features
        sides = []
        for codes in (self.before, self.after):
            columns = [np.empty((len(codes), 0))]
            for feature, column in zip(features, codes.T, strict=True):
                if feature.free and feature.group is not None:
                    columns.append(column[:, None])
                elif feature.free and feature.kind is Kind.CATEGORY:
                    columns.append(column[:, None] == np.arange(len(feature.levels)))
            sides.append(np.hstack(columns).astype(np.float64))
        return sides[0], sides[1]

    @cached_property
    def changed(self) -> np.ndarray:
        """Cells that changed, bool (n, p)."""
        return _changes.changed_cells(self.before, self.after)

    @cached_property
    def validity(self) -> float:
        """Share of valid rows."""
        return validity(self.explanation.outputs, self.threshold)

    @cached_property
    def ot(self) -> float:
        """Squared sliced distance of the inputs."""
        return _distances.sliced_ot(self.embedded[1], self.embedded[0])

    @cached_property
    def diversity(self) -> float:
        """Mean distance between counterfactual rows."""
        return _distances.diversity(self.embedded[1])

    @cached_property
    def percentiles(self) -> np.ndarray:
        """Per cent (5,), feature by feature."""
        return self._percentiles(_changes.percentile_differences)

    @cached_property
    def pooled_percentiles(self) -> np.ndarray:
        """Per cent (5,), all columns in one."""
        return self._percentiles(_changes.pooled_percentile_differences)

    def _percentiles(self, measure: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        if not len(self.numbers):
            return np.full(len(_changes.PERCENTILES), np.nan)
        return measure(self.before[:, self.numbers], self.after[:, self.numbers])

    @cached_property
    def shift(self) -> np.ndarray:
        """Per cent (2,): mean over the numbers of the shifts of mean and standard deviation."""
        shifts = _changes.numeric_shift(self.before[:, self.numbers], self.after[:, self.numbers])
        known = [side[~np.isnan(side)] for side in shifts]
        return np.array([side.mean() if len(side) else np.nan for side in known])

    @cached_property
    def mmd_at_median(self) -> float:
        """Squared discrepancy at the median distance."""
        before, after, _ = self.embedded
        return _distances.mmd(after, before, sigma=_distances.median_bandwidth(before, after))

    @cached_property
    def illegal(self) -> float:
        """Share of illegal rows."""
        problem = self.explanation.problem
        return float(illegal_rows(problem.schema, self.before, self.after, problem.obeys).mean())


class Metric(NamedTuple):
    """One measure of an explanation."""

    measure: Callable[[Case], float]
    description: str


def _ranges(attribute: str, text: str, prefix: str) -> dict[str, Metric]:
    def at(place: int) -> Callable[[Case], float]:
        return lambda case: float(getattr(case, attribute)[place])

    spans = [f"{100 * low:.0f}-{100 * high:.0f}" for low, high in _changes.PERCENTILES]
    return {
        f"{prefix} {span}": Metric(at(place), f"{text}, percentiles {span}")
        for place, span in enumerate(spans)
    }


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
    "ot published": Metric(
        lambda case: _distances.published_ot(case.ot), "the same, normalised twice as in the paper"
    ),
    "mmd": Metric(
        lambda case: _distances.mmd(case.embedded[1], case.embedded[0]),
        "squared MMD of the inputs, Gaussian kernel of width 1 as in the paper",
    ),
    "mmd median": Metric(
        lambda case: case.mmd_at_median, "the same with the median distance as width"
    ),
    "ares cost": Metric(
        lambda case: _changes.ares_cost(case.units),
        "mean over rows of the moves in bin widths (10 bins), a category change 1",
    ),
    "ares cost published": Metric(
        lambda case: _changes.published_ares_cost(case.units),
        "Frobenius norm of all moves in bin widths, as in the paper",
    ),
    **_ranges("percentiles", "change in per cent, feature by feature", "% at"),
    **_ranges("pooled_percentiles", "change in per cent, columns pooled as published", "% pooled"),
    "category difference": Metric(
        lambda case: _changes.category_difference(*case.one_hot),
        "mean absolute difference of one-hot columns",
    ),
    "mean shift %": Metric(
        lambda case: float(case.shift[0]), "shift of the mean in per cent, averaged over numbers"
    ),
    "std shift %": Metric(lambda case: float(case.shift[1]), "the same for the standard deviation"),
    "diversity": Metric(lambda case: case.diversity, "mean distance between counterfactual rows"),
    "dpc": Metric(
        lambda case: _distances.dpc(case.diversity, case.ot, case.validity),
        "diversity / ot * validity; compare above validity 0.8 only",
    ),
    "illegal": Metric(lambda case: case.illegal, "share of rows that the schema does not allow"),
    "rows changed": Metric(
        lambda case: float(case.changed.any(axis=1).mean()), "share of rows that changed"
    ),
    "cells changed": Metric(lambda case: float(case.changed.mean()), "share of cells that changed"),
    "nearest": Metric(
        lambda case: float(_distances.nearest_distances(case.embedded[1], case.embedded[2]).mean()),
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
        From `elsewise.explain` or `elsewise.baselines`.
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
