"""Beside distances, what people decide on: the mean output and the share past a cut-off."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from elsewise.confidence import Interval, Method, clustered_interval, mean_interval, share_interval
from elsewise.request import Problem
from elsewise.targets import Constant, Derived, DistributionTarget, ResolvedShare, Sample
from elsewise.text import percent

ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Readout:
    """One number about the outputs of the certified rows, before and after the move."""

    name: str
    """"mean output", "share at or above 50%", or, of an at_most target, "share at or below 2"; of
    several outputs, also which one."""
    column: int
    """Output column, from 0."""
    cutoff: float | None
    """The output from which on, or down to which, a row counts; None for a mean."""
    before: Interval
    after: Interval
    together: Interval | None = None
    """``after`` with wider limits, which those of all readouts keep at once, by Bonferroni."""
    probability: bool = False
    """Whether the outputs are probabilities, which are said in per cent."""

    @property
    def in_percent(self) -> bool:
        """Whether the number is a share or a probability."""
        return self.probability or self.cutoff is not None


def cutoffs(problem: Problem, outputs: np.ndarray) -> tuple[float, ...]:
    """Return the cut-off of each output column.

    It is the user's, else the target's where that is a share of rows past one, else 0.5 for
    probabilities, else the level the target names or its median, else the median of ``outputs``
    (n, K). Held-out rows are not asked: a cut-off must not be chosen by the rows that are counted.
    """
    columns, target = problem.outputs.columns, problem.target
    given = problem.bounds.cutoff
    if given is None and isinstance(target, ResolvedShare) and columns == 1:
        given = target.share.cutoff
    if given is None and problem.outputs.probability:
        given = 0.5
    if given is None:
        return tuple(_typical(target, outputs))
    return (float(given),) * columns


def _typical(target: object, outputs: np.ndarray) -> list[float]:
    """Return a level of each output column that splits what is wanted from what is not."""
    columns = outputs.shape[1]
    if isinstance(target, Constant) or (
        isinstance(target, Derived) and target.kind in ("at_least", "at_most")
    ):
        level: list[float] = np.broadcast_to(target.level, (columns,)).tolist()
        return level
    if isinstance(target, DistributionTarget):
        # The mean over a narrow cell around the median, which may be a jump and have no value of
        # its own.
        means, _ = target.cells(np.array([0.499, 0.501]))
        return [float(means[0])]
    values = target.values if isinstance(target, Sample) else outputs
    medians: list[float] = np.median(values, axis=0).tolist()
    return medians


def read_out(
    problem: Problem, before: np.ndarray, after: np.ndarray, cuts: tuple[float, ...]
) -> tuple[Readout, ...]:
    """Return mean and share of every output column (n, K), before and after.

    Each interval has the level of the whole certificate, two-sided and by itself; beside it stands
    the one for reading several numbers at once.
    """
    alone, exact = problem.bounds.confidence, problem.bounds.method == Method.EXACT
    # A mean and a share of every column, by Bonferroni.
    joint = 1.0 - (1.0 - alone) / (2 * len(cuts))
    below = getattr(problem.target, "kind", "") == "at_most" and (
        problem.bounds.cutoff is None and not problem.outputs.probability
    )
    sign, side = (-1.0, "below") if below else (1.0, "above")

    def mean(values: np.ndarray, level: float = alone) -> Interval:
        if exact:
            return Interval.known(float(np.mean(values)))
        # The same order of bets for both: rows that stay as they are have the same interval.
        rng = problem.generator("certificate means")
        found = mean_interval(values, level, rng, problem.support)
        return clustered_interval(found, values, problem.clusters, problem.support)

    def share(values: np.ndarray, level: float = alone, *, cutoff: float) -> Interval:
        # A row at the target itself, but for rounding, is there.
        # "At most" is "at least" of the negatives, so that one rule counts both.
        values, least = sign * values, sign * cutoff - ROUNDING * abs(cutoff)
        if exact:
            return Interval.known(float(np.mean(values >= least)))
        return share_interval(values, least, level, problem.clusters)

    probability = problem.outputs.probability
    called = "predicted probability" if probability else "output"
    labels, found = getattr(problem.outputs, "labels", ()), []
    for column, cutoff in enumerate(cuts):
        of = f" of class {labels[column]}" if labels else f", column {column + 1}"
        which = of if len(cuts) > 1 else ""
        old, new = before[:, column], after[:, column]
        cut = percent(cutoff, exact=True) if probability else f"{cutoff:.4g}"
        for name, end, number in (
            (f"mean {called}{which}", None, mean),
            (f"share at or {side} {cut}{which}", cutoff, partial(share, cutoff=cutoff)),
        ):
            found.append(
                Readout(
                    name=name,
                    column=column,
                    cutoff=end,
                    before=number(old),
                    after=number(new),
                    together=number(new, joint),
                    probability=probability,
                )
            )
    return tuple(found)
