"""From an explanation to a policy: choose on one half, count on the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from elsewise._arrays import to_numpy
from elsewise._resources import using
from elsewise.certificate import Certificate, certify
from elsewise.errors import InvalidInput
from elsewise.moves import Rows
from elsewise.policy._actions import Movable, movables
from elsewise.policy._candidates import Table, propose, refine
from elsewise.policy._cost_table import Standing, Trial, prices_of
from elsewise.policy._memo import CHEAPEST, in_words
from elsewise.policy._policy import Count, Line, Policy
from elsewise.policy._rule import grow_rule, holds, rule_words
from elsewise.policy._select import Caps, choose_actions, is_served, serve
from elsewise.request import Kind, Verdict, halve, populate
from elsewise.targets import Share, Target, question_of
from elsewise.text import amount, percent

if TYPE_CHECKING:
    from elsewise.explanation import Explanation


FIT_ROWS = 1000
"""Most rows in need that actions are chosen on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Study:
    """What a policy was chosen on and is counted on."""

    known: tuple[Movable, ...]
    table: Table
    fit: Standing
    """Rows in need that actions were chosen on."""
    caps: Caps
    everything: Standing
    """All explained rows."""
    unseen: np.ndarray | None
    """int: places of the rows held out."""


def build_policy(
    explanation: Explanation,
    k: int = 4,
    *,
    target: Target | Share | None = None,
    assign: str = "choose",
    cells: int = 2,
    cost: Mapping[Any, float] | Callable[[pd.DataFrame, pd.DataFrame], Any] | None = None,
    budget: float | None = None,
    rows_moved: float | None = None,
    cost_per_row: float | None = None,
    reach: float | None = None,
) -> Policy:
    """Return at most ``k`` actions that bring rows to where they are wanted.

    Parameters
    ----------
    explanation
        Whose question, rows, schema and moves are used.
    k
        Most actions.
    target
        Where rows should arrive: at_most, at_least, share, or constant; the explanation's own by
        default.
    assign
        "choose": each row takes the cheapest action that brings it there. "rule": a small tree on
        readable conditions says whom each action is for.
    cells
        Most attributes that an action changes.
    cost
        A price per unit (per change, for categories) of every column that may move, or a function
        of the frames before and after that returns one cost per row; by default the schema's
        prices (`Schema.cost`), or else the squared move in standard deviations.
    budget
        Spend at most this on all explained rows; the policy serves as many of them as it can.
    rows_moved
        Move at most this share of the explained rows.
    cost_per_row
        Largest cost of a row.
    reach
        Share of all rows that should be where they are wanted afterwards; the cheapest rows are
        served until it is reached. By default the share that the target names. Without one, every
        row is served that an action helps, and the verdict is about ``bounds.reach`` or every row.

    Examples
    --------
    >>> import elsewise as ew
    >>> rows = pd.DataFrame({"debt": np.arange(60) % 12, "age": [20, 50, 70] * 20})
    >>> explanation = ew.explain(
    ...     lambda frame: frame["debt"] / 12, rows, target=ew.targets.at_most(0.5),
    ...     schema=ew.Schema.infer(rows).freeze("age"), certify="in-sample",
    ... )
    >>> policy = explanation.policy(k=1)
    >>> policy.lines[0].what, policy.explained.arriving
    ('set debt to 6', 25)
    """
    _check_count("k", k)
    _check_count("cells", cells)
    if assign not in ("choose", "rule"):
        fix = "'choose' lets each row take the cheapest action that brings it there"
        expected = "'choose' or 'rule'"
        raise InvalidInput("assign", expected=expected, received=repr(assign), fix=fix)
    limits = {"budget": budget, "cost_per_row": cost_per_row}
    for name, value in {**limits, "rows_moved": rows_moved, "reach": reach}.items():
        top = inf if name in limits else 1.0
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if value is not None and not (number and 0 < value <= top):
            expected = "a number above 0, or None" if top == inf else "a share in (0, 1]"
            fix = "leave it out for no limit"
            raise InvalidInput(name, expected=expected, received=repr(value), fix=fix)
    with using(explanation.settings.resources):
        study, trial = _study(explanation, target, cells, cost, limits, rows_moved, reach)
        asked = study.caps.share or explanation.problem.bounds.reach or 1.0
        return _assembled(explanation, study, trial, int(k), assign, cells, asked)


def _check_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        fix = "k=4 actions of cells=2 changes each are the defaults"
        raise InvalidInput(name, expected="a whole number >= 1", received=repr(value), fix=fix)


def _study(
    explanation: Explanation,
    target: Target | Share | None,
    cells: int,
    cost: Any,
    limits: Mapping[str, float | None],
    rows_moved: float | None,
    reach: float | None,
) -> tuple[Study, Trial]:
    """Fill the table of rows in need by candidate actions."""
    problem, encoder = explanation.problem, explanation.encoder
    codes = _double(problem.factual)
    resolved: Any = problem.target if target is None else target
    if isinstance(resolved, Share):
        resolved = resolved.resolved(explanation.factual_outputs)
    chance = problem.outputs.probability
    asked = question_of(resolved, problem.outputs.columns, probability=chance)
    if asked is None or asked.wanted is None:
        fix = "say when a row arrives: explanation.policy(target=targets.at_most(0.5))"
        expected = "at_least, at_most, share, label, or constant with a tolerance"
        raise InvalidInput("target", expected=expected, received=resolved.name, fix=fix)
    known = movables(problem.schema, np.concatenate([_double(problem.background), codes]))
    grid = np.zeros(codes.shape[1])
    for attribute in known:
        grid[attribute.columns] = attribute.grid
    paid = cost if callable(cost) else prices_of(problem, cost)
    trial = Trial(problem=problem, encoder=encoder, question=asked, cost=paid, most=inf, grid=grid)
    everything = trial.standing(codes)
    held_out = explanation.certificate.kind is Kind.HELD_OUT
    unseen = halve(problem, explanation.settings.fit_rows).unseen if held_out else None
    seen = np.setdiff1d(np.arange(len(codes)), [] if unseen is None else unseen)
    seen = seen[everything.needs[seen].cumsum() <= FIT_ROWS]
    fit = everything.take(seen)
    needing = fit.take(np.flatnonzero(fit.needs))
    ends = _double(explanation.rows.codes)[seen[fit.needs]]
    table = propose(trial, needing, known, ends, cells, problem.generator("policy"))
    cheapest = float(table.arriving.min(initial=inf))
    for name, cap in limits.items():
        if cap is not None and isfinite(cheapest) and cap < cheapest:
            expected = f"at least {cheapest:.4g}, the cost of the cheapest action that helps"
            fix = "raise it, or leave it out to see what can be reached"
            raise InvalidInput(name, expected=expected, received=repr(cap), fix=fix)
    if (most := limits["cost_per_row"]) is not None:
        trial = replace(trial, most=most)
        table = table._replace(costs=np.where(table.costs <= most, table.costs, inf))
    caps = Caps(
        rows=len(seen),
        total=len(codes),
        inside=int((fit.short == 0).sum()),
        share=reach or (asked.share if asked.kind == "share" else None),
        moved=rows_moved,
        budget=limits["budget"],
    )
    study = Study(
        known=known, table=table, fit=needing, caps=caps, everything=everything, unseen=unseen
    )
    return study, trial


def _assembled(
    explanation: Explanation,
    study: Study,
    trial: Trial,
    k: int,
    assign: str,
    cells: int,
    asked: float,
) -> Policy:
    """Choose the actions, say who takes which, and count."""
    fit, rules = study.fit, None
    table, chosen = refine(trial, fit, study.known, study.table, k, study.caps, cells)
    costs = table.arriving[:, chosen]
    if assign == "rule" and chosen.size:
        leaves = grow_rule(explanation.problem.schema, fit.codes, table.arriving, k)
        chosen, rules = np.array([column for _, column in leaves]), [one for one, _ in leaves]
        members = np.array([holds(rule, fit.codes) for rule in rules]).T
        costs = np.where(members, table.arriving[:, chosen], inf)
    best = costs.min(axis=1, initial=inf)
    price, tie = serve(best, fit.ties, study.caps)
    served = is_served(best, fit.ties, price, tie)
    used = np.bincount(costs[served].argmin(axis=1) if served.any() else [], minlength=chosen.size)
    # Actions that serve nobody are no part of the answer.
    order = np.argsort(-used, kind="stable")[: int((used > 0).sum())]
    policy = Policy(
        explanation=explanation,
        trial=trial,
        actions=table.actions.take(chosen[order]),
        rules=None if rules is None else tuple(rules[j] for j in order),
        price=price,
        tie=tie,
        asked=asked,
        explained=Count(0, 0, 0, 0, 0, 0.0),
        study=replace(study, table=table),
    )
    return _counted(policy, study)


def _counted(policy: Policy, study: Study) -> Policy:
    """Return the policy with what becomes of explained and of held-out rows."""
    rows, unseen, schema = study.everything, study.unseen, policy.explanation.problem.schema
    codes, line, costs = policy.take(rows)
    lines = []
    for j, (add, put) in enumerate(zip(*policy.actions, strict=True)):
        mine = costs[line == j]
        what = in_words([a.words(add, put) for a in study.known])
        who = rule_words(schema, policy.rules[j]) if policy.rules else CHEAPEST
        lines.append(Line(what, who, mine.size, float(mine.mean()) if mine.size else 0.0))
    ends = rows.outputs, policy.trial.outputs(codes)
    counted = replace(
        policy,
        lines=tuple(lines),
        means=(float(ends[0][:, 0].mean()), float(ends[1][:, 0].mean())),
        explained=Count.of(rows, line, costs),
        unseen=unseen
        if unseen is None
        else Count.of(rows.take(unseen), line[unseen], costs[unseen]),
    )
    verdict, reason = _verdict(counted, study)
    return replace(counted, verdict=verdict, reason=reason)


def _verdict(policy: Policy, study: Study) -> tuple[Verdict, str]:
    """Return the verdict, and why rows that an action would help stay or why there is none."""
    caps, explained, unseen = study.caps, policy.explained, policy.unseen
    capped = caps.budget is not None or caps.moved is not None
    limited = (capped and policy.price < inf) or policy.trial.most < inf
    there = caps.share is not None and explained.share >= policy.asked
    if not explained.arriving and (there or not explained.needing):
        why = "rows are where they are wanted already"
        return Verdict.NOTHING_TO_DO, f"the share asked for of {why}" if there else f"all {why}"
    if not policy.lines:
        if not len(study.fit.codes):
            return Verdict.NOT_REACHED, "no row that actions are chosen on needs anything"
        if capped or limited:
            return Verdict.NOT_FOUND, "no row can be moved within what may be spent"
        return Verdict.NOT_POSSIBLE, (
            "no legal action that was tried brings a row there: free more columns, widen their "
            "ranges, or ask for less"
        )
    counted, left = unseen or explained, " or ".join(_left(caps))
    if counted.share < policy.asked:
        return Verdict.NOT_FOUND if limited else Verdict.NOT_REACHED, left
    if unseen is None:
        exact = policy.explanation.certificate.kind is Kind.POPULATION
        return Verdict.CERTIFIED if exact else Verdict.DESCRIBED, left
    certified = unseen.limits(policy.level)[1] >= policy.asked
    return Verdict.CERTIFIED if certified else Verdict.REACHED, left


def _left(caps: Caps) -> Iterator[str]:
    """Say why rows are left as they are although an action would help them."""
    margin = "" if caps.total == caps.rows else ", with a margin for rows not seen"
    if caps.share is not None:
        yield f"cheaper rows suffice for the share asked for{margin}"
    if caps.budget is not None:
        yield f"the budget of {amount(caps.budget)} is spent on cheaper rows{margin}"
    if caps.moved is not None:
        yield f"at most {percent(caps.moved, exact=True)} of the rows may move{margin}"


def curve(policy: Policy, study: Study, most: int, by: str) -> pd.DataFrame:
    """Return reach and cost of policies of 1, 2, ... actions, or at growing budgets."""
    _check_count("most", most)
    arriving, caps, size = study.table.arriving, study.caps, max(1, len(policy.lines))
    budgets = np.linspace(0.0, policy.explained.cost, most + 1)[1:]
    if by == "k":
        cases = [(k, caps) for k in range(1, most + 1)]
    elif by == "budget":
        cases = [(size, replace(caps, budget=float(budget))) for budget in budgets]
    else:
        raise InvalidInput("by", expected="'k' or 'budget'", received=repr(by), fix="by='k'")
    sets = [choose_actions(arriving, k, one) for k, one in cases]
    union = np.unique(np.concatenate(sets))
    rows = study.everything if study.unseen is None else study.everything.take(study.unseen)
    rows = rows.take(np.flatnonzero(rows.needs)[:FIT_ROWS])
    costs, short = policy.trial.table(rows, study.table.actions.take(union))
    costs[short > 0] = inf
    found = []
    for (k, one), chosen in zip(cases, sets, strict=True):
        fitted = arriving[:, chosen].min(axis=1, initial=inf)
        price, tie = serve(fitted, study.fit.ties, one)
        best = costs[:, np.searchsorted(union, chosen)].min(axis=1, initial=inf)
        kept = is_served(best, rows.ties, price, tie)
        served = is_served(fitted, study.fit.ties, price, tie)
        count = Count.of(rows, np.where(kept, 0, -1), best)
        limit = np.nan if study.unseen is None else count.limits(policy.level)[0]
        budget = inf if one.budget is None else one.budget
        found.append((k, budget, count.reach, count.mean_cost, limit, float(served.mean())))
    columns = ["k", "budget", "reach", "mean_cost", "limit", "reach_fit"]
    return pd.DataFrame(found, columns=columns)


def certificate(policy: Policy, study: Study) -> Certificate:
    """Certify distances and moves of the policy's rows on those held out, if there are any."""
    explanation, rows = policy.explanation, study.everything
    problem, settings = explanation.problem, explanation.settings
    if study.unseen is not None:
        problem, rows = halve(problem, settings.fit_rows).tested, rows.take(study.unseen)
    with using(settings.resources):
        codes = problem.outputs.place(policy.take(rows)[0])
        moved = Rows(codes, problem.outputs.values(codes))
        population = populate(problem, problem.factual)
        kind = explanation.certificate.kind
        return certify(problem, population, moved, settings.draws, kind, still=False)


def _double(codes: Any) -> np.ndarray:
    return to_numpy(codes).astype(np.float64)
