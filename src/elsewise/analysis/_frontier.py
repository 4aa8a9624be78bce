"""How far the population must move for how close an outcome: the frontier of the two distances."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from operator import is_
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from elsewise._arrays import changed_cells, to_numpy
from elsewise.certificate import certify_inputs, certify_outputs, cutoffs
from elsewise.confidence import Method
from elsewise.errors import InvalidInput
from elsewise.explanation import Explanation
from elsewise.maps import replay
from elsewise.moves import Rows
from elsewise.request import Bounds, Kind, Problem, Request, ask, halve, populate
from elsewise.search import State, begin, knee, knee_reason, monotone_front, pareto_front, trace
from elsewise.settings import Settings
from elsewise.text import figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


T = TypeVar("T")

# Eta is swept from logistic(-5) to logistic(5).
LOGIT_SPAN = 5.0
POINTS = 11
FEWEST_POINTS = 3
DISTANCES = "inputs", "inputs_limit", "outputs", "outputs_limit"
COLUMNS = "eta", *DISTANCES, "moved", "mean_output", "share"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Frontier:
    """The curve of input distance against output distance, and where it bends.

    Along it the input distance grows and the output distance falls, and so do their upper limits;
    no point is beaten by another. The first may be the population as it is.
    """

    table: pd.DataFrame
    """One row per point: ``eta``, ``inputs`` and ``outputs`` (distances), ``inputs_limit`` and
    ``outputs_limit`` (upper limits, each at its own level), ``moved`` (share of rows that change),
    ``mean_output`` and ``share`` (of rows at or above the cut-off), both of the first output
    column, and ``chosen``, true at the knee."""
    knee: int
    """First row with nine tenths of the possible fall in output distance: what `explain` returns
    without limits is chosen in the same way, on the rows of its fit."""
    bounds: Bounds
    """Bounds to compare the curve with, if any, confidence and trim."""
    kind: Kind
    """Which rows the distances are about."""
    cutoff: float
    """Where the column ``share`` begins to count."""
    rows: int
    """Number of rows behind every distance."""

    @property
    def reason(self) -> str:
        """Why the knee is where it is, in words."""
        inputs, outputs = (self.table[side].tolist() for side in ("inputs", "outputs"))
        return knee_reason(inputs, outputs, self.knee)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the curve, its limits, the knee and the bounds; see `elsewise.plots.frontier`."""
        from elsewise import plots

        return plots.frontier(self, ax)

    def __repr__(self) -> str:
        shown, here = self.table.to_string(index=False, float_format=figure), self.knee
        inputs, outputs = (self.table[side].iloc[here] for side in ("inputs", "outputs"))
        return (
            f"Frontier of {len(self.table)} points ({self.kind}, {self.rows:,} rows); knee at "
            f"inputs {figure(inputs, 3)}, outputs {figure(outputs, 3)}: {self.reason}. "
            "Each limit is for a point named beforehand; one chosen after looking may be farther"
            f"\n{shown}"
        )


def frontier(
    model: Any,
    rows: pd.DataFrame,
    *,
    points: int = POINTS,
    progress: bool | None = None,
    **question: Any,
) -> Frontier:
    """Return how close the outputs come to the target for how far the rows move.

    The weight eta between the two sides is swept twice, each value starting where the last came to
    rest: down from a first push towards the target, and up from the rows as they are. What no other
    point beats is kept. Distances are measured on the certificate's directions, which no fit uses;
    the same seed gives the same curve.

    Parameters
    ----------
    model, rows
        As in `explain`.
    points
        Number of values of eta in each sweep.
    progress
        Show a progress bar; by default only on a terminal.
    **question
        The other arguments of `explain`: ``target``, ``schema``, ``bounds``, ... Held out, half of
        the rows are fitted to and the others measured. Bounds are drawn, and do not change the
        curve.

    Examples
    --------
    >>> import elsewise as ew
    >>> table = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    >>> score = ew.models.function(lambda frame: np.tanh(frame["a"]), smooth=True)
    >>> curve = ew.frontier(score, table, target=ew.targets.at_least(0.5), points=3)
    >>> inputs, outputs = curve.table["inputs"], curve.table["outputs"]
    >>> inputs.is_monotonic_increasing, outputs.is_monotonic_decreasing
    (True, True)
    """
    asked = ask(Request(model=model, rows=rows, **question))
    return _traced(asked.problem, asked.settings, asked.kind, points, progress)


def frontier_of(explanation: Explanation, points: int, progress: bool | None) -> Frontier:
    """Return the frontier of an explanation's question, split and measured as it was."""
    kind = explanation.certificate.kind
    return _traced(explanation.problem, explanation.settings, kind, points, progress)


def _traced(
    problem: Problem, settings: Settings, kind: Kind, points: int, progress: bool | None
) -> Frontier:
    if not isinstance(points, int | np.integer) or points < FEWEST_POINTS:
        fix = f"leave it out for {POINTS}"
        raise InvalidInput("points", f"at least {FEWEST_POINTS}", points, fix)
    fitted, tested = problem, problem
    if kind is Kind.HELD_OUT:
        fitted, tested, _ = halve(problem, settings.fit_rows)
    # Evenly on the logit scale: what decides is the ratio eta / (1 - eta), and the two distances
    # may differ by orders of magnitude.
    logits = np.linspace(-LOGIT_SPAN, LOGIT_SPAN, points).tolist()
    search = begin(fitted, settings)
    ends = _watched(trace(search, logits), progress)
    population = populate(tested)
    moved = _replayed(tested, ends) if kind is Kind.HELD_OUT else [state.rows for state in ends]
    cut = cutoffs(fitted, to_numpy(search.first.setup.population.outputs))[0]
    # With the model's own outputs, which those of the search may differ from.
    moved = [Rows(rows.codes, tested.outputs.values(rows.codes)) for rows in moved]

    def points_of(places: Iterable[int], method: Method | None = None) -> pd.DataFrame:
        """Distances and limits of moved rows, as a certificate has them, and their outputs."""
        found = []
        for k in places:
            rows, state, draws = moved[k], ends[k], settings.draws
            still = state.trail is None and not state.setup.settings.start_noise
            inputs = certify_inputs(tested, population, rows, draws, method=method, still=still)
            outputs = certify_outputs(tested, population, rows, draws, method=method)
            changed = changed_cells(to_numpy(population.codes), to_numpy(rows.codes))
            answers = to_numpy(rows.outputs)[:, 0]
            distances = inputs.estimate, inputs.at_most, outputs.estimate, outputs.at_most
            told = float(answers.mean()), np.mean(answers >= cut)
            found.append((state.record.eta, *distances, changed.any(axis=1).mean(), *told))
        return pd.DataFrame(found, columns=[*COLUMNS])

    every = points_of(range(len(ends)), Method.EXACT)
    # Limits cost resamples, so they are computed only for points that the distances leave.
    near = points_of(pareto_front(every["inputs"].tolist(), every["outputs"].tolist()))
    kept = monotone_front(
        list(zip(near["inputs"], near["outputs"], strict=True)),
        list(zip(near["inputs_limit"], near["outputs_limit"], strict=True)),
    )
    table = near.iloc[kept].reset_index(drop=True)
    bend = knee(table["inputs"].tolist(), table["outputs"].tolist())
    table["chosen"] = np.arange(len(table)) == bend
    bounds, rows = problem.bounds, len(population.codes)
    return Frontier(table=table, knee=bend, bounds=bounds, kind=kind, cutoff=cut, rows=rows)


def _replayed(problem: Problem, ends: list[State]) -> list[Rows]:
    """Rows the fit never saw, where the map of each state leads them.

    A sweep is one long run, so that its longest map passes through the ends of all others.
    """
    maps = [state.map() for state in ends]
    found: dict[int, Rows] = {}
    waiting, population = set(range(len(ends))), populate(problem)
    while waiting:
        longest = max(waiting, key=lambda k: len(maps[k].steps))
        steps = maps[longest].steps
        # By identity: steps of one run are the same objects, and comparing arrays would cost more.
        places = {k: len(maps[k].steps) for k in waiting if all(map(is_, maps[k].steps, steps))}
        for place, rows in enumerate(replay(problem, maps[longest], population)):
            found |= {k: rows for k, end in places.items() if end == place}
        waiting -= places.keys()
    return [found[k] for k in range(len(ends))]


def _watched(search: Generator[State, None, T], progress: bool | None) -> T:
    """Run a search with a progress bar."""
    disable = None if progress is None else not progress
    with tqdm(desc="frontier", unit=" iterations", disable=disable, delay=1.0) as bar:
        while True:
            try:
                next(search)
            except StopIteration as end:
                return cast(T, end.value)
            bar.update()
