"""What the outputs of certified rows come to: what a question asked, means and shares."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from elsewise.confidence import Interval, Method, mean_interval, share_above, share_interval
from elsewise.request import Kind, Problem
from elsewise.targets import Derived, DistributionTarget, Question, ResolvedShare, Sample
from elsewise.text import figure, percent

ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The number a question is about: asked, aimed at, before, reached, and its limit.

    Shares and means are as the user counts them: where a share is to fall, its limit is an upper
    one.
    """

    question: Question
    asked: float | None
    """What was asked for; None where every row was asked, which is told and not certified."""
    aimed: float | None
    """What the fit aimed at, to leave room for rows it has not seen."""
    before: float
    reached: float
    limit: float | None
    """One-sided confidence limit of what is reached on unseen rows; None where none is claimed."""
    level: float | None
    """Confidence of that limit, by itself."""
    rows: int
    """Number of rows that were counted."""
    arrived: int
    """How many of them are where the question wants them; of a mean, how many moved."""
    moved: int
    """Number of explained rows that move."""
    stayed: tuple[tuple[str, int], ...] = ()
    """How many explained rows do not arrive, by reason."""
    binding: str = ""
    """The bound that kept rows from arriving; nothing if none did."""

    @property
    def falling(self) -> bool:
        """Whether the number was to be at most what was asked for."""
        return self.question.falling

    def _reaches(self, value: float) -> bool:
        if self.asked is None:
            return True
        # A mean that is just what was asked for may miss it by the rounding of its sum.
        slack = ROUNDING * max(abs(self.asked), abs(self.before))
        return value <= self.asked + slack if self.falling else value >= self.asked - slack

    @property
    def ok(self) -> bool:
        """Whether the counted rows reach what was asked; of every row, whether all arrive."""
        return self.arrived == self.rows if self.asked is None else self._reaches(self.reached)

    @property
    def certified(self) -> bool:
        """Whether the limit, or the number itself where it is known, reaches what was asked."""
        number = self.reached if self.limit is None else self.limit
        return self.asked is not None and self._reaches(number)

    @property
    def rows_needed(self) -> int | None:
        """About how many counted rows would bring the limit to what was asked; None if none do."""
        if self.asked is None or self.limit is None or self.certified or not self.ok:
            return None
        room, error = abs(self.reached - self.asked), abs(self.reached - self.limit)
        # The error shrinks like one over the root of the rows. Where there is hardly any room that
        # asks for 10,000 times as many, which is no advice.
        return None if room <= 0.01 * error else int(np.ceil(self.rows * (error / room) ** 2))

    def to_dict(self) -> dict[str, Any]:
        """Return every number as JSON values."""
        return {**asdict(self), "ok": self.ok, "certified": self.certified}


def share_limit(hits: float, rows: float, level: float) -> float:
    """Return the exact lower limit of a share of which ``hits`` of ``rows`` were seen.

    Clopper and Pearson, one-sided: the share at which so many hits have probability 1 - level.

    Examples
    --------
    >>> round(share_limit(100, 100, 0.95), 3), share_limit(0, 10, 0.95)
    (0.97, 0.0)
    """
    return 1.0 - share_above(rows - hits, rows, level)


def read_reached(
    problem: Problem,
    question: Question,
    before: np.ndarray,
    after: np.ndarray,
    kind: Kind,
    **more: Any,
) -> Reached:
    """Count what the rows reach, with outputs (n, K) before and after."""
    claims, confidence = kind is Kind.HELD_OUT, problem.bounds.confidence
    # Two-sided at 2c - 1: either end is a one-sided limit at the stated confidence c.
    level, limit = max(2.0 * confidence - 1.0, 1e-6), None
    if question.wanted is None:
        arrived = int(np.sum(np.any(after != before, axis=1)))
        first, values, ends = float(before.mean()), after[:, 0], problem.support
        if question.relative:
            first, values = 0.0, values - before[:, 0]
            # Of differences of two outputs.
            ends = ends and (ends[0] - ends[1], ends[1] - ends[0])
        last = float(values.mean())
        if claims:
            rng = problem.generator("certificate reached")
            found = mean_interval(values, level, rng, ends, problem.clusters)
            limit = found.upper if question.falling else found.lower
    else:
        inside = question.wanted.contains(after)
        arrived = int(inside.sum())
        first = question.said(float(question.wanted.contains(before).mean()))
        last = question.said(float(inside.mean()))
        if claims:
            # Booleans: at or above 0.5 is true.
            found = share_interval(inside, 0.5, level, problem.clusters)
            limit = question.said(found.lower or 0.0)
    return Reached(
        question=question,
        asked=problem.bounds.reach if question.kind == "every" else question.asked,
        before=first,
        reached=last,
        limit=limit,
        level=confidence if claims else None,
        rows=len(after),
        arrived=arrived,
        **more,
    )


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
    if isinstance(target, Derived) and target.kind in ("at_least", "at_most", "constant"):
        return list(map(float, np.broadcast_to(target.level, outputs.shape[1:])))
    if isinstance(target, DistributionTarget):
        # The mean over a narrow cell around the median, which may be a jump and have no value of
        # its own.
        means, _ = target.cells(np.array([0.499, 0.501]))
        return [float(means[0])]
    values = target.values if isinstance(target, Sample) else outputs
    return list(map(float, np.median(values, axis=0)))


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
    probability = problem.outputs.probability
    chosen = problem.bounds.cutoff is not None or probability
    below = getattr(problem.target, "kind", "") == "at_most" and not chosen
    sign, side = (-1.0, "below") if below else (1.0, "above")

    def interval(values: np.ndarray, level: float, cutoff: float | None) -> Interval:
        if cutoff is not None:
            # A row at the target itself, but for rounding, is there.
            # "At most" is "at least" of the negatives, so that one rule counts both.
            values, cutoff = sign * values, sign * cutoff - ROUNDING * abs(cutoff)
        if exact:
            return Interval.known(float(np.mean(values if cutoff is None else values >= cutoff)))
        if cutoff is not None:
            return share_interval(values, cutoff, level, problem.clusters)
        # The same order of bets for both: rows that stay as they are have the same interval.
        rng = problem.generator("certificate means")
        return mean_interval(values, level, rng, problem.support, problem.clusters)

    called = "predicted probability" if probability else "output"
    labels, found = getattr(problem.outputs, "labels", ()), []
    for column, cutoff in enumerate(cuts):
        of = f" of class {labels[column]}" if labels else f", column {column + 1}"
        which = of if len(cuts) > 1 else ""
        old, new = before[:, column], after[:, column]
        cut = percent(cutoff, exact=True) if probability else figure(cutoff)
        for name, end in ((f"mean {called}", None), (f"share at or {side} {cut}", cutoff)):
            found.append(
                Readout(
                    name=f"{name}{which}",
                    column=column,
                    cutoff=end,
                    before=interval(old, alone, end),
                    after=interval(new, alone, end),
                    together=interval(new, joint, end),
                    probability=probability,
                )
            )
    return tuple(found)
