"""A policy: a few actions with a rule who takes which, which is a map of rows like any other.

It says itself in sentences for somebody who decides and has not read about this library.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from math import inf
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from elsewise._arrays import to_numpy
from elsewise._resources import using
from elsewise._storage import read_json, write_text
from elsewise.certificate import Certificate, certify, share_limit
from elsewise.confidence import design_factor
from elsewise.errors import InvalidInput, SavedRunError, from_mapping
from elsewise.explanation import Explanation
from elsewise.features import to_pandas
from elsewise.moves import Rows
from elsewise.policy._actions import Actions
from elsewise.policy._cost_table import Standing, Trial
from elsewise.policy._rule import Condition, holds
from elsewise.policy._select import is_served
from elsewise.request import Verdict, halve, populate
from elsewise.saving import load
from elsewise.targets import Question
from elsewise.text import amount, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from elsewise.policy._build import Study


WIDTH = 119
"""Characters in a line."""
CHEAPEST = "rows for which it is the cheapest way there"
EFFORT = (
    "Without prices, cost is effort: 1 for a change of category or one standard deviation of a "
    "number, 4 for two"
)
FILE = "policy.json"


class Line(NamedTuple):
    """One action: what, for whom, and what becomes of the explained rows."""

    what: str
    who: str
    rows: int
    """Explained rows that take it; each of them arrives."""
    cost: float
    """Mean cost of a row that takes it."""


class Count(NamedTuple):
    """How many rows a policy brings to where they are wanted."""

    rows: int
    inside: int
    """Rows inside the wanted set before."""
    needing: int
    """Rows outside that may move; a row that breaks a rule or a range itself may not."""
    helped: int
    """Rows in need that an action would bring there; not all of them have to take it."""
    arriving: int
    cost: float
    """Summed cost."""
    alike: float = 1.0
    """So many rows of a cluster say as much as one independent row."""

    @classmethod
    def of(
        cls, rows: Standing, line: np.ndarray, costs: np.ndarray, clusters: np.ndarray | None = None
    ) -> Count:
        """Count rows, given the line (n,) each follows, -1 for none, and its cheapest way there."""
        counts = rows.short == 0, rows.needs, np.isfinite(costs), line >= 0
        inside, needing, helped, arriving = (int(one.sum()) for one in counts)
        cost, alike = float(costs[line >= 0].sum()), 1.0
        if clusters is not None:
            there, needs = counts[0] | counts[3], rows.needs
            alike = design_factor(there - there.mean(), clusters) ** 2
            if needing:  # of the two shares that are limited, the one that is known less well
                came = counts[3][needs]
                alike = max(alike, design_factor(came - came.mean(), clusters[needs]) ** 2)
        return cls(len(rows.codes), inside, needing, helped, arriving, cost, alike)

    def check(self) -> None:
        """Refuse counts, read from a file, that no rows have."""
        few = 0 <= self.arriving <= self.helped <= self.needing <= self.rows - self.inside
        whole = self.rows > 0 <= self.inside and few
        if not (whole and 0.0 <= self.cost < inf and 1.0 <= self.alike < inf):
            raise ValueError("counts of no rows")

    @property
    def reach(self) -> float:
        """Share of the rows in need that arrive."""
        return self.arriving / self.needing if self.needing else 1.0

    @property
    def share(self) -> float:
        """Share of all rows that are inside afterwards."""
        return (self.inside + self.arriving) / self.rows if self.rows else 1.0

    @property
    def mean_cost(self) -> float:
        """Mean cost of a row that arrives."""
        return self.cost / self.arriving if self.arriving else 0.0

    def limits(self, level: float) -> tuple[float, float]:
        """Return the exact lower limits of `reach` and of `share`."""
        counts = (self.arriving, self.needing), (self.inside + self.arriving, self.rows)
        reach, share = (share_limit(k / self.alike, n / self.alike, level) for k, n in counts)
        return reach, share


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What a policy says beside its actions; saved as it is."""

    rules: tuple[tuple[Condition, ...], ...] | None
    """Whom each action is for; None: each row takes the cheapest action that brings it there."""
    price: float
    """Rows whose (cost, tie) is at most this are served; infinite where all are."""
    tie: float
    asked: float
    """Share of all rows asked to be inside."""
    explained: Count
    """Of all explained rows."""
    lines: tuple[Line, ...] = ()
    means: tuple[float, float] = (0.0, 0.0)
    """Mean first output of the explained rows, before and after."""
    unseen: Count | None = None
    """Of the rows that were held out; None without a certificate."""
    verdict: Verdict = Verdict.NOT_POSSIBLE
    reason: str = ""
    """Why there is no action, or why rows that an action would help stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Saved(_Answer):
    """A policy's file, which may be anybody's: under the names and types of the fields."""

    rows: str
    add: tuple[tuple[float, ...], ...]
    put: tuple[tuple[float, ...], ...]
    most: float
    question: Question
    grid: tuple[float, ...]
    cost: str | tuple[float, ...] | None

    def actions(self, explanation: Explanation) -> Actions:
        """Return the actions; refuse what does not fit them, one another or the run."""
        if self.rows != _fingerprint(explanation):
            raise ValueError("it is of another run")
        if self.question.wanted is None:
            raise ValueError("a question that counts no rows")
        self.question.wanted.check(explanation.problem.outputs.columns)
        for found in filter(None, (self.explained, self.unseen)):
            found.check()
        columns = len(explanation.encoder.columns)
        prices = [self.cost] if isinstance(self.cost, tuple) else []
        known = bool(prices) or self.cost in (None, "function")
        widths = {columns, *map(len, (self.grid, *prices, *self.add, *self.put))}
        rules = self.lines if self.rules is None else self.rules
        counts = {len(part) for part in (self.lines, self.add, self.put, rules)}
        asked = {condition.column for rule in self.rules or () for condition in rule}
        if not known or widths != {columns} or len(counts) > 1 or not asked <= set(range(columns)):
            raise ValueError("its parts do not fit one another")
        add, put = (np.array(table, float).reshape(-1, columns) for table in (self.add, self.put))
        if not np.isfinite([*add.ravel(), *self.grid]).all() or np.isinf(put).any():
            raise ValueError("an action or a grid without a number")
        return Actions(add, put)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Policy(_Answer):
    """At most k actions and who takes which; made by `Explanation.policy`."""

    explanation: Explanation
    trial: Trial
    actions: Actions
    study: Study | None = None
    """What the curve and the certificate need; not saved."""

    @property
    def ok(self) -> bool:
        """Whether the share asked for is reached."""
        return self.verdict.mark != "bad"

    @property
    def level(self) -> float:
        """Confidence of the limits."""
        return self.explanation.problem.bounds.confidence

    def take(self, rows: Standing) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return codes (n, p) after, the line (n,) each row follows, -1 for none, and its costs.

        The cost (n,) is that of the cheapest action that brings the row there, also where the row
        is not served; infinite where none does. Each row moves by its own values alone.
        """
        costs = self.trial.table(rows, self.actions).arriving
        for j, rule in enumerate(self.rules or ()):
            costs[~holds(rule, rows.codes), j] = inf
        codes, line = rows.codes.copy(), np.full(len(rows.codes), -1)
        best = costs.min(axis=1, initial=inf)
        served = is_served(best, rows.ties, self.price, self.tie)
        line[served] = costs[served].argmin(axis=1) if served.any() else -1
        for j in np.unique(line[served]):
            codes[line == j] = self.actions.take([j]).apply(codes[line == j], self.trial.grid)[0]
        return codes, line, best

    def apply(self, rows: Any) -> Any:
        """Return rows, seen or new, after the policy; what happens to a row depends on it alone.

        Examples
        --------
        >>> import elsewise as ew
        >>> rows = pd.DataFrame({"debt": np.arange(60) % 12, "age": [20, 50, 70] * 20})
        >>> explanation = ew.explain(
        ...     lambda frame: frame["debt"] / 12, rows, target=ew.targets.at_most(0.5),
        ...     schema=ew.Schema.infer(rows).freeze("age"), certify="in-sample",
        ... )
        >>> policy = explanation.policy(k=1)
        >>> policy.apply(pd.DataFrame({"debt": [3, 8], "age": [33, 34]}))["debt"].max() <= 6
        np.True_
        """
        rows, source = to_pandas(rows, "rows", self.explanation.encoder.columns)
        problem, encoder, codes = self.explanation.located(rows)
        if len(codes):
            trial = replace(self.trial, problem=problem, encoder=encoder)
            with using(self.explanation.settings.resources):
                codes = replace(self, trial=trial).take(trial.standing(codes))[0]
        frame = encoder.decode(codes, index=rows.index)
        return frame if source is None else source.back(frame)

    def table(self) -> Any:
        """Return one row per action: what, for whom, how many explained rows, their mean cost."""
        return self.explanation.encoder.table(pd.DataFrame(self.lines, columns=Line._fields))

    @property
    def studied(self) -> Study:
        """What the policy was chosen on; refused where it was loaded."""
        if self.study is None:
            expected, fix = "a policy as it was made", "call explanation.policy(...) again"
            received = "a loaded one, which has no table of candidates"
            raise InvalidInput("policy", expected, received, fix)
        return self.study

    def curve(self, most: int = 12, by: str = "k") -> pd.DataFrame:
        """Return reach and cost against the number of actions, or against the budget.

        Parameters
        ----------
        most
            Number of points: policies of 1 to ``most`` actions, or of ``most`` budgets.
        by
            "k", or "budget": what as many actions as these reach for less.

        Returns
        -------
        DataFrame
            ``k``, ``budget`` (of all explained rows; infinite without one), ``reach`` and
            ``mean_cost`` of held-out rows (of explained ones where none are held out), ``limit``
            (lower limit of reach; NaN without held-out rows) and ``reach_fit``.
        """
        from elsewise.policy._build import curve

        return curve(self, most, by)

    def plot(self, ax: Axes | None = None, by: str = "k") -> Axes:
        """Draw reach and cost against the number of actions or the budget."""
        from elsewise import plots

        return plots.policy(self.curve(by=by), ax)

    def certificate(self) -> Certificate:
        """Return distances and moves of the policy, certified as the explanation's are.

        That is on the rows held out, where there are any.
        """
        explanation, study = self.explanation, self.studied
        problem, settings, rows = explanation.problem, explanation.settings, study.everything
        if study.unseen is not None:
            problem, rows = halve(problem, settings.fit_rows).tested, rows.take(study.unseen)
        with using(settings.resources):
            codes = problem.outputs.place(self.take(rows)[0])
            moved = Rows(codes, problem.outputs.values(codes))
            kind = explanation.certificate.kind
            return certify(problem, populate(problem), moved, settings.draws, kind, still=False)

    @property
    def summary(self) -> tuple[str, ...]:
        """What the policy reaches and costs, in sentences; the verdict first."""
        return summary_of(self)

    def __str__(self) -> str:
        head, *rest = (fill(sentence, WIDTH) for sentence in self.summary)
        return "\n".join([head, *memo_lines(self), *rest])

    __repr__ = __str__

    def save(self, folder: str | Path, *, run: bool = True) -> Path:
        """Write the explanation and the policy to a folder, without pickle; see `load`.

        ``run=False`` adds the policy to a folder that holds its explanation already.
        """
        place = Path(folder) if not run else self.explanation.save(folder)
        trial = self.trial
        record: dict[str, Any] = {name: getattr(self, name) for name in _ANSWER}
        record |= {name: table.tolist() for name, table in self.actions._asdict().items()}
        record |= {"question": asdict(trial.question), "most": trial.most}
        record["cost"] = "function" if callable(trial.cost) else trial.cost
        record |= {"grid": trial.grid.tolist(), "rows": _fingerprint(self.explanation)}
        write_text(json.dumps(record, indent=1), place / FILE)
        return place

    @classmethod
    def load(cls, folder: str | Path, model: Any = None, cost: Any = None) -> Policy:
        """Read a saved policy; ``model``, and ``cost`` if it was a function, are for `apply`."""
        explanation, place = load(folder, model), Path(folder) / FILE
        try:
            saved = from_mapping(_Saved, read_json(place), "policy")
            actions = saved.actions(explanation)
        except (OSError, SavedRunError, ValueError) as error:
            said = f"the saved policy cannot be read ({type(error).__name__}: {error})"
            raise SavedRunError(f"{place}: {said}. Fix: save it again.") from error
        given: Any = (cost or _no_cost) if saved.cost == "function" else saved.cost
        problem, encoder, grid = explanation.problem, explanation.encoder, np.array(saved.grid)
        trial = Trial(problem, encoder, saved.question, given, saved.most, grid)
        answer = {name: getattr(saved, name) for name in _ANSWER}
        return cls(explanation=explanation, trial=trial, actions=actions, **answer)


_ANSWER = tuple(field.name for field in fields(_Answer))


def _fingerprint(explanation: Explanation) -> str:
    codes = to_numpy(explanation.problem.factual)
    return sha256(np.ascontiguousarray(codes).tobytes()).hexdigest()


def _no_cost(before: object, after: object) -> Any:
    fix = "pass it: Policy.load(folder, model=model, cost=function)"
    raise SavedRunError(f"cost: expected the cost function, which is not saved. Fix: {fix}.")


def in_words(edits: Iterable[tuple[str, str] | None]) -> str:
    """Join what an action does to each attribute; a verb is not said twice in a row.

    Examples
    --------
    >>> in_words([("set", "home to own"), None, ("lower", "debt by 2"), ("lower", "age by 1")])
    'set home to own, lower debt by 2 and age by 1'
    """
    said, last = [], ""
    for verb, what in filter(None, edits):
        said.append(what if verb == last else f"{verb} {what}")
        last = verb
    return " and ".join(filter(None, [", ".join(said[:-1]), said[-1]]))


def memo_lines(policy: Policy) -> Iterator[str]:
    """Yield what each action is, for whom, and what it costs."""
    for place, line in enumerate(policy.lines, start=1):
        rows = "1 row, cost" if line.rows == 1 else f"{line.rows:,} rows, mean cost"
        what = f"for {line.who}, {line.what}" if policy.rules else line.what
        said = f"{place}. {what[:1].upper()}{what[1:]}: {rows} {amount(line.cost)}"
        yield fill(said, WIDTH, subsequent_indent="   ")


def summary_of(policy: Policy, output: str = "") -> tuple[str, ...]:
    """Return what a policy reaches, for whom, and what it costs; the verdict first.

    ``output`` is what the user calls the model's output.
    """
    if not policy.lines:
        return (f"{policy.verdict.capitalize()}: {policy.reason}.",)
    return (_reached(policy, output), *_rows(policy), _cost(policy))


def _reached(policy: Policy, output: str) -> str:
    """Say the share of rows before and after, on what rows it was counted, and what was asked."""
    unseen, question = policy.unseen, policy.trial.question
    count = unseen or policy.explained
    lower = count.limits(policy.level)[1]
    before, after, asked, limit = (
        question.number(question.said(share))
        for share in (count.inside / count.rows, count.share, policy.asked, lower)
    )
    side = "at most" if question.falling else "at least"
    asked = f"{side} {asked}" if policy.asked < 1.0 else "every row"
    size = len(policy.lines)
    actions = "1 action takes" if size == 1 else f"{size} actions take"
    if unseen is not None:
        level = percent(policy.level, exact=True)
        known = (
            f"on {count.rows:,} rows kept aside while the actions were chosen. Other rows like "
            f"these: {side} {limit} ({level} confidence)"
        )
    elif policy.verdict == "certified":
        known = f"on all {count.rows:,} rows there are"
    else:
        known = f"on the {count.rows:,} rows the actions were chosen on; other rows were not tried"
    which = question.condition(output)
    return (
        f"{policy.verdict.capitalize()}: {actions} the share of rows {which} from "
        f"{before} to {after}, counted {known}. Asked: {asked}."
    )


def _rows(policy: Policy) -> Iterator[str]:
    """Say who takes which action and how many rows stay, and why."""
    count, ruled = policy.explained, policy.rules is not None
    whose, whom, s = ("its", "it", "s") if count.arriving == 1 else ("their", "them", "")
    way = f"the action of {whose} line, which" if ruled else "the cheapest action that"
    take = f"take{s} {way} brings {whom} there"
    told = [f"{count.arriving:,} {take}"]
    if left := count.helped - count.arriving:
        stay = "could but stays" if left == 1 else "could but stay"
        told.append(f"{left:,} {stay}, because {policy.reason}")
    if stuck := count.needing - count.helped:
        most = policy.trial.most
        dear = f" at a cost of at most {amount(most)}" if most < inf else ""
        which = "the action of their line is not" if ruled else "none of the actions is"
        told.append(f"{which} enough for {stuck:,}{dear}")
    if count.arriving == count.needing > 1:
        yield f"All {count.needing:,} explained rows that are not there yet {take}."
    elif count.needing == 1:
        yield f"Of the explained rows 1 is not there yet: {'; '.join(told)}."
    else:
        yield f"Of the {count.needing:,} explained rows that are not there yet, {'; '.join(told)}."
    if policy.reason and not left:
        yield f"The choice of actions had to keep to this: {policy.reason}."
    if broken := count.rows - count.inside - count.needing:
        yield f"Rows that break a rule or a range as they are, and stay: {broken:,}."


def _cost(policy: Policy) -> str:
    count, cost = policy.explained, policy.trial.cost
    unit = EFFORT if cost is None else "In the currency of the prices"
    if callable(cost):
        unit = "In the units of the cost function"
    each = f"{amount(count.mean_cost)} on average for a row that moves"
    return f"Cost: {amount(count.cost)} in all, {each}. {unit}."
