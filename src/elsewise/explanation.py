"""The answer: a counterfactual population, what changed, and how sure we are."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from elsewise._arrays import to_numpy
from elsewise._resources import using
from elsewise.certificate import Certificate, move_sentence
from elsewise.errors import InvalidInput, NotFeasible
from elsewise.features import Encoder, outside_notices, to_pandas
from elsewise.maps import AnyMap, apply_map
from elsewise.models import bind_for_search, settled
from elsewise.moves import QuestionMap, Rows
from elsewise.request import Problem, Verdict
from elsewise.search import Iteration
from elsewise.settings import Settings
from elsewise.text import figure, format_distinct, percent

if TYPE_CHECKING:
    from elsewise.analysis import Effects, Frontier, Groups, Stability
    from elsewise.policy import Policy

__all__ = ["Explanation", "Status"]

# Rows of the fit that a model can be tried out on.
PROBED = 1024
_WITHOUT_BOUND = {
    Verdict.REACHED: "give more rows or ask for less",
    Verdict.NOT_REACHED: "ask for less, free features or widen ranges",
}
SUCCESS = frozenset({Verdict.CERTIFIED, Verdict.DESCRIBED, Verdict.NOTHING_TO_DO})


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The verdict, what was asked and reached, which bound binds, and what would be reachable."""

    verdict: Verdict
    sentence: str = ""
    """What was asked and what was reached."""
    asked: float | None = None
    """The share, mean or distance asked for; None where every row was, or no bound was given."""
    aimed: float | None = None
    """What the fit aimed at, to leave room for unseen rows."""
    before: float | None = None
    reached: float | None = None
    limit: float | None = None
    """Confidence limit of what is reached on unseen rows; None where none is claimed."""
    binding: str | None = None
    """The bound that could not be met, or that kept what was asked from being reached."""
    reachable: float | None = None
    """The smallest upper limit found on that side with the other side's limit met."""
    rows_needed: int | None = None
    """About how many rows in all would do, where only their number is missing."""
    reason: str = ""
    """Why this result, where no limit decided."""
    notices: tuple[str, ...] = ()
    """What the user may want to know about the columns and rows."""

    @property
    def ok(self) -> bool:
        """Whether the result is what was asked for."""
        # That every unseen row arrives is told where all of those counted do.
        told = self.sentence and self.asked is None and self.verdict is Verdict.REACHED
        return self.verdict in SUCCESS or bool(told)

    @property
    def details(self) -> str:
        """Which bound binds, what would be reachable, how many rows would do, and why."""
        rows = "" if self.rows_needed is None else f"needs about {self.rows_needed:,} rows"
        bound = "" if self.binding is None else f"binding: {self.binding}"
        near = "" if self.reachable is None else f"reachable: {figure(self.reachable, 3)}"
        return ", ".join(part for part in (bound, near, rows, self.reason) if part)

    @property
    def remedy(self) -> str:
        """What to do where the result is not what was asked for; nothing where it is.

        Examples
        --------
        >>> Status(verdict=Verdict.NOT_REACHED, sentence="mean output: 3 asked, 2 reached").remedy
        'ask for less, free features or widen ranges'
        """
        if self.ok:
            return ""
        if self.sentence and self.binding is None:  # no bound stands in the way
            return _WITHOUT_BOUND.get(self.verdict, self.verdict.remedy)
        return self.verdict.remedy

    def __str__(self) -> str:
        text = f"{self.verdict}: {self.sentence}" if self.sentence else str(self.verdict)
        text = f"{text} ({self.details})" if self.details else text
        return f"{text}; {self.remedy}" if self.remedy else text


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Explanation:
    """A distributional counterfactual explanation."""

    problem: Problem
    """The question."""
    model: Any
    """The model, as the user gave it."""
    encoder: Encoder
    """Between the user's frame and the codes."""
    index: pd.Index[Any]
    """Index of the explained rows."""
    rows: Rows
    """Codes and outputs of the counterfactual population."""
    factual_outputs: np.ndarray
    """ndarray (n, K): the model's outputs on the explained rows."""
    map: AnyMap
    """The recorded map from factual to counterfactual rows."""
    certificate: Certificate
    status: Status
    iterations: tuple[Iteration, ...]
    settings: Settings

    @property
    def factual(self) -> Any:
        """The explained rows."""
        return self.encoder.present(self.problem.factual, index=self.index)

    @property
    def counterfactual(self) -> Any:
        """The counterfactual rows: the same kind of frame, index, columns and dtypes."""
        return self.encoder.present(self.rows.codes, index=self.index)

    @property
    def frames(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The explained and the counterfactual rows as pandas has them, whatever came."""
        before, after = self.problem.factual, self.rows.codes
        return self.encoder.decode(before, self.index), self.encoder.decode(after, self.index)

    @property
    def outputs(self) -> np.ndarray:
        """The model's outputs (n, K) on the counterfactual rows."""
        return to_numpy(self.rows.outputs)

    @property
    def main_output(self) -> int:
        """The place of the output that the question is about; the first for a distribution."""
        reached = self.certificate.reached
        return 0 if reached is None else reached.question.column

    @property
    def history(self) -> pd.DataFrame:
        """One row per iteration: eta, distances, limits, objective, change."""
        return pd.DataFrame(self.iterations, columns=Iteration._fields).set_index("iteration")

    @property
    def ok(self) -> bool:
        """Whether the result is what was asked for."""
        return self.status.ok

    def raise_for_status(self) -> Explanation:
        """Return the explanation, or raise `NotFeasible` if it is not what was asked for."""
        if not self.ok:
            raise NotFeasible(f"{self.status}")
        return self

    def apply(self, rows: Any) -> Any:
        """Map rows, seen or new, to their counterfactuals by replaying the recorded steps.

        What happens to a row depends on that row alone, never on the rows it comes with. Columns
        in which rows lie outside what the fit saw are named in ``frame.attrs["notices"]``, and in
        a warning where rows are no pandas frame. The same kind of frame comes back.
        """
        recorded = isinstance(self.map, QuestionMap) or self.map.steps or self.map.motion.noise
        if not recorded and not np.array_equal(
            to_numpy(self.rows.codes), to_numpy(self.problem.factual), equal_nan=True
        ):
            expected = "an explanation with a recorded map"
            received = "one made by a method that answers for its own rows only"
            fix = "use elsewise.explain, whose map works on new rows"
            raise InvalidInput("rows", expected=expected, received=received, fix=fix)
        rows, source = to_pandas(rows, "rows", self.encoder.columns)
        problem, encoder, codes = self.located(rows)
        notices = outside_notices(encoder.schema, codes)
        if len(codes):
            with using(self.settings.resources):
                codes = apply_map(problem, self.map, problem.outputs.place(codes)).codes
        frame = encoder.decode(codes, index=rows.index)
        if notices and source is None:
            frame.attrs["notices"] = notices
        elif notices:
            warnings.warn("; ".join(notices), stacklevel=2)
        return frame if source is None else source.back(frame)

    def located(self, rows: pd.DataFrame) -> tuple[Problem, Encoder, np.ndarray]:
        """Return the problem and the encoder for new rows, and their codes (n, p)."""
        if not isinstance(rows, pd.DataFrame):
            expected = "a DataFrame with the explained columns"
            fix = "pass pandas.DataFrame(rows, columns=names)"
            raise InvalidInput("rows", expected=expected, received=type(rows).__name__, fix=fix)
        encoder = self.encoder.extend(rows)
        plain = encoder.encode(rows)
        # Tried out on the rows of the fit, so that the model is read the same way for any batch.
        probe = to_numpy(self.problem.factual[:PROBED, ...])
        bound = bind_for_search(self.model, encoder, probe)
        outputs, precise = settled(bound, self.factual_outputs)
        obeys = encoder.obeys if encoder.restricted else None
        problem = replace(self.problem, outputs=outputs, precise=precise, obeys=obeys)
        return problem, encoder, plain

    def changes(self) -> Any:
        """What changed, feature by feature; see `elsewise.analysis.changes`."""
        from elsewise import analysis

        return self.encoder.table(analysis.changes(self))

    def flows(self) -> Any:
        """Rows that changed category; see `elsewise.analysis.flows`."""
        from elsewise import analysis

        return self.encoder.table(analysis.flows(self))

    def groups(self, k: int = 4) -> Groups:
        """At most k sub-populations that moved alike; see `elsewise.analysis.groups`."""
        from elsewise import analysis

        return analysis.groups(self, k)

    def policy(self, k: int = 4, **options: Any) -> Policy:
        """At most k actions that bring rows to where they are wanted; see `elsewise.policy`."""
        from elsewise.policy import build_policy

        return build_policy(self, k, **options)

    def plausibility(self, background: pd.DataFrame | None = None) -> pd.DataFrame:
        """Distances to real rows, before and after; see `elsewise.analysis.plausibility`."""
        from elsewise import analysis

        return analysis.plausibility(self, background)

    def effects(self, labels: Any = None, groups: Any = None, **options: Any) -> Effects:
        """Accuracy and fairness before and after; see `elsewise.analysis.effects`."""
        from elsewise import analysis

        return analysis.effects(self, labels, groups, **options)

    def frontier(self, points: int = 11, progress: bool | None = None) -> Frontier:
        """How far for how close, of the same question; see `elsewise.frontier`."""
        from elsewise.analysis import frontier_of

        return frontier_of(self, points, progress)

    def stability(self, seeds: int = 5, progress: bool | None = None) -> Stability:
        """How much the answer depends on seeds, directions, trim, background and weights."""
        from elsewise.analysis import stability_of

        return stability_of(self, seeds, progress)

    def save(self, folder: str | Path) -> Path:
        """Write the explanation to a folder of JSON and npz (no pickle); see `elsewise.load`."""
        from elsewise.saving import save

        return save(self, folder)

    def plot(self) -> np.ndarray:
        """Draw the paper's panel, an array of Axes; `elsewise.plots` has every picture."""
        from elsewise import plots

        return plots.panel(self)

    def report(self, path: str | Path, **options: Any) -> Path:
        """Write one self-contained HTML page; options as in `elsewise.report.render`."""
        from elsewise import report

        return report.write(self, path, **options)

    def explore(self, path: str | Path = "explore.html", **options: Any) -> Path:
        """Write one offline page to play with; options as in `elsewise.report.render_explore`.

        On it, fewer of the moves can be made, cheapest first, without some of the features or
        by one group only; outputs and the verdict are counted at once.
        """
        from elsewise import report

        return report.write_explore(self, path, **options)

    def _repr_html_(self) -> str:
        from elsewise.report._other_pages import explanation_html

        return explanation_html(self)

    def __repr__(self) -> str:
        certificate, status = self.certificate, self.status
        asked = bool(status.sentence) and certificate.reached is not None
        parts = [status.sentence] if asked else []
        if certificate.row_move is not None:
            parts.append(move_sentence(certificate.row_move, certificate.moves_bound, short=True))
        for name, side in certificate.sides.items():
            if side.bound is not None:
                at_most, bound = format_distinct(side.at_most, side.bound)
                parts.append(f"{name} {at_most} {'<=' if side.met else '>'} {bound}")
            elif not asked:
                parts.append(f"{name} {figure(side.at_most, 3)}")
        level = certificate.confidence
        kind = f"{certificate.kind}, {'exact' if level is None else percent(level, exact=True)}"
        tail = f"; {status.remedy}" if status.remedy else ""
        details = f" ({status.details})" if status.details else ""
        return f"<Explanation: {status.verdict}{details} ({kind}): {', '.join(parts)}{tail}>"
