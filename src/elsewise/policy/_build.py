"""From an explanation to a policy: choose on one half, count on the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import inf
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from elsewise._arrays import to_double
from elsewise._resources import using
from elsewise.errors import InvalidInput, check_count
from elsewise.policy._actions import movables
from elsewise.policy._candidates import Ground, propose, refine
from elsewise.policy._cost_table import Standing, Table, Trial, prices_of
from elsewise.policy._policy import CHEAPEST, Count, Line, Policy, in_words
from elsewise.policy._rule import Condition, grow_rule, rule_words
from elsewise.policy._select import Caps, choose_actions, is_served, serve
from elsewise.request import Kind, Verdict, halve
from elsewise.targets import Question, Share, Target, question_of, resolve
from elsewise.text import amount, figure, percent

if TYPE_CHECKING:
    from elsewise.explanation import Explanation


FIT_ROWS = 1000
"""Most rows in need that actions are chosen on."""
DEFAULTS = "k=4 actions of cells=2 changes each are the defaults"


class Study(NamedTuple):
    """What a policy was chosen on and is counted on."""

    explanation: Explanation
    ground: Ground
    table: Table
    caps: Caps
    ruled: bool
    """Whether a rule says who takes which action."""
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
    k, cells = check_count("k", k, DEFAULTS), check_count("cells", cells, DEFAULTS)
    if assign not in ("choose", "rule"):
        fix = "'choose' lets each row take the cheapest action that brings it there"
        raise InvalidInput("assign", "'choose' or 'rule'", repr(assign), fix)
    limits = {"budget": budget, "cost_per_row": cost_per_row}
    for name, value in {**limits, "rows_moved": rows_moved, "reach": reach}.items():
        top = inf if name in limits else 1.0
        number = isinstance(value, Real) and not isinstance(value, bool)
        if value is not None and not (number and 0 < value <= top):
            expected = "a number above 0, or None" if top == inf else "a share in (0, 1]"
            raise InvalidInput(name, expected, repr(value), "leave it out for no limit")
    each = inf if cost_per_row is None else float(cost_per_row)
    caps = Caps(rows=0, total=0, share=reach, moved=rows_moved, budget=budget, each=each)
    with using(explanation.settings.resources):
        study = _study(explanation, target, cost, caps, cells, assign == "rule")
        table, chosen = refine(study.ground, study.table, partial(_chosen, study, k))
        return _counted(_assigned(study._replace(table=table), k, chosen))


def _question(explanation: Explanation, target: Any) -> Question:
    """Return what is asked, by the policy's target or the explanation's own."""
    outputs = explanation.problem.outputs
    given = explanation.problem.target if target is None else target
    asked = None
    if isinstance(given, Target | Share):
        known = resolve(given, explanation.factual_outputs, getattr(outputs, "labels", ()))
        asked = question_of(known, outputs.columns, probability=outputs.probability)
    if asked is None or asked.wanted is None:
        level = 0.5 if outputs.probability else float(np.median(explanation.factual_outputs[:, 0]))
        said = f"targets.at_most({figure(level, 3).replace(',', '')})"
        fix = f"say when a row arrives: explanation.policy(target={said})"
        expected = "at_least, at_most, share, label, or constant with a tolerance"
        raise InvalidInput("target", expected, getattr(given, "name", repr(given)), fix)
    return asked


def _study(
    explanation: Explanation, target: Any, cost: Any, caps: Caps, cells: int, ruled: bool
) -> Study:
    """Fill the table of rows in need by candidate actions; ``caps`` know of no rows yet."""
    problem, question = explanation.problem, _question(explanation, target)
    codes = to_double(problem.factual)
    known = movables(problem.schema, np.concatenate([to_double(problem.background), codes]))
    grid = np.zeros(codes.shape[1])
    for attribute in known:
        grid[attribute.columns] = attribute.grid
    prices = cost if callable(cost) else prices_of(problem, cost)
    # What a row may cost is a filter on what was found, so that a refusal can say what is cheapest.
    trial = Trial(problem, explanation.encoder, question, prices, inf, grid)
    everything, unseen = trial.standing(codes), None
    if explanation.certificate.kind is Kind.HELD_OUT:
        unseen = halve(problem, explanation.settings.fit_rows).unseen
    seen = np.setdiff1d(np.arange(len(codes)), [] if unseen is None else unseen)
    seen = seen[everything.needs[seen].cumsum() <= FIT_ROWS]
    fit = everything.take(seen)
    needing = fit.take(np.flatnonzero(fit.needs))
    ends = to_double(explanation.rows.codes)[seen[fit.needs]]
    ground = Ground(trial, known, needing, cells)
    table = propose(ground, ends, problem.generator("policy"))
    cheapest = float(table.arriving.min(initial=inf))
    for name, cap in {"budget": caps.budget, "cost_per_row": caps.each}.items():
        if cap is not None and cap < cheapest < inf:
            expected = f"at least {cheapest:.4g}, the cost of the cheapest action that helps"
            fix = "raise it, or leave it out to see what can be reached"
            raise InvalidInput(name, expected, repr(cap), fix)
    share = caps.share or (question.share if question.kind == "share" else None)
    inside = int((fit.short == 0).sum())
    caps = replace(caps, rows=len(seen), total=len(codes), inside=inside, share=share)
    ground = ground._replace(trial=replace(trial, most=caps.each))
    table = table._replace(costs=np.where(table.costs <= caps.each, table.costs, inf))
    return Study(explanation, ground, table, caps, ruled, everything, unseen)


def _chosen(
    study: Study, k: int, arriving: np.ndarray, start: np.ndarray | None
) -> tuple[np.ndarray, list[tuple[Condition, ...]] | None]:
    """Return the columns of the actions chosen and, with a rule, whom each is for."""
    if not study.ruled:
        return choose_actions(arriving, k, study.caps, start), None
    leaves = grow_rule(study.ground.trial.problem.schema, study.ground.rows.codes, arriving, k)
    return np.array([column for _, column in leaves], dtype=np.int64), [who for who, _ in leaves]


def _assigned(study: Study, k: int, start: np.ndarray | None) -> Policy:
    """Choose the actions and say who takes which; nothing is counted yet."""
    chosen, rules = _chosen(study, k, study.table.arriving, start)
    made = Policy(
        explanation=study.explanation,
        trial=study.ground.trial,
        actions=study.table.actions.take(chosen),
        rules=None if rules is None else tuple(rules),
        price=inf,
        tie=inf,
        asked=study.caps.share or study.explanation.problem.bounds.reach or 1.0,
        explained=Count(0, 0, 0, 0, 0, 0.0),
        study=study,
    )
    rows = study.ground.rows
    _, line, best = made.take(rows)
    price, tie = serve(best, rows.ties, study.caps)
    used = np.bincount(line[is_served(best, rows.ties, price, tie)], minlength=chosen.size)
    # Actions that serve nobody are no part of the answer.
    order = np.argsort(-used, kind="stable")[: int((used > 0).sum())]
    kept = None if rules is None else tuple(rules[j] for j in order)
    return replace(made, actions=made.actions.take(order), rules=kept, price=price, tie=tie)


def _counted(policy: Policy) -> Policy:
    """Return the policy with what becomes of explained and of held-out rows."""
    study, schema = policy.studied, policy.explanation.problem.schema
    rows, unseen = study.everything, study.unseen
    codes, line, costs = policy.take(rows)
    lines = []
    for j, (add, put) in enumerate(zip(*policy.actions, strict=True)):
        mine = costs[line == j]
        what = in_words(a.words(add, put) for a in study.ground.known)
        who = rule_words(schema, policy.rules[j]) if policy.rules else CHEAPEST
        lines.append(Line(what, who, mine.size, float(mine.mean()) if mine.size else 0.0))
    before, after = rows.outputs[:, 0].mean(), policy.trial.outputs(codes)[:, 0].mean()
    explained, means = Count.of(rows, line, costs), (float(before), float(after))
    counted = replace(policy, lines=tuple(lines), means=means, explained=explained)
    if unseen is not None:
        clusters = policy.explanation.problem.clusters
        groups = None if clusters is None else clusters[unseen]
        part = Count.of(rows.take(unseen), line[unseen], costs[unseen], groups)
        counted = replace(counted, unseen=part)
    verdict, reason = _verdict(counted, study)
    return replace(counted, verdict=verdict, reason=reason)


def _verdict(policy: Policy, study: Study) -> tuple[Verdict, str]:
    """Return the verdict, and why rows that an action would help stay or why there is none."""
    caps, explained, unseen = study.caps, policy.explained, policy.unseen
    limited = caps.budget is not None or caps.moved is not None or caps.each < inf
    there = caps.share is not None and explained.share >= policy.asked
    if not explained.arriving and (there or not explained.needing):
        why = "rows are where they are wanted already"
        return Verdict.NOTHING_TO_DO, f"the share asked for of {why}" if there else f"all {why}"
    if not policy.lines:
        if not len(study.ground.rows.codes):
            return Verdict.NOT_REACHED, "no row that actions are chosen on needs anything"
        if limited:
            return Verdict.NOT_FOUND, "no row can be moved within what may be spent"
        return Verdict.NOT_POSSIBLE, (
            "no legal action that was tried brings a row there: free more columns, widen their "
            "ranges, or ask for less"
        )
    counted, kept = unseen or explained, " and ".join(_kept(policy, caps))
    if counted.share < policy.asked:
        return Verdict.NOT_FOUND if limited else Verdict.NOT_REACHED, kept
    if unseen is None:
        exact = policy.explanation.certificate.kind is Kind.POPULATION
        return Verdict.CERTIFIED if exact else Verdict.DESCRIBED, kept
    certified = unseen.limits(policy.level)[1] >= policy.asked
    return Verdict.CERTIFIED if certified else Verdict.REACHED, kept


def _kept(policy: Policy, caps: Caps) -> Iterator[str]:
    """Say what keeps rows where they are although an action would help them, or dearer ones out."""
    margin = "" if caps.total == caps.rows else ", with a margin for rows not seen"
    if caps.share is not None and policy.price < inf:
        yield f"cheaper rows suffice for the share asked for{margin}"
    if caps.budget is not None:
        yield f"at most {amount(caps.budget)} may be spent{margin}"
    if caps.moved is not None:
        yield f"at most {percent(caps.moved, exact=True)} of the rows may move{margin}"


def curve(policy: Policy, most: int, by: str) -> pd.DataFrame:
    """Return reach and cost of policies of 1, 2, ... actions, or at growing budgets."""
    most, study = check_count("most", most, DEFAULTS), policy.studied
    if by not in ("k", "budget"):
        raise InvalidInput("by", "'k' or 'budget'", repr(by), "by='k'")
    cases = [(k, study.caps) for k in range(1, most + 1)]
    if by == "budget":
        size = max(1, len(policy.lines))
        budgets = np.linspace(0.0, policy.explained.cost, most + 1)[1:].tolist()
        cases = [(size, replace(study.caps, budget=budget)) for budget in budgets]
    everything, clusters = study.everything, policy.explanation.problem.clusters
    chosen = np.arange(len(everything.codes)) if study.unseen is None else study.unseen
    chosen = chosen[everything.needs[chosen]][:FIT_ROWS]
    rows, groups = everything.take(chosen), None if clusters is None else clusters[chosen]
    found = []
    for k, caps in cases:
        made = _assigned(study._replace(caps=caps), k, None)
        count = Count.of(rows, *made.take(rows)[1:], groups)
        fit = Count.of(study.ground.rows, *made.take(study.ground.rows)[1:])
        limit = np.nan if study.unseen is None else count.limits(policy.level)[0]
        budget = inf if caps.budget is None else caps.budget
        found.append((k, budget, count.reach, count.mean_cost, limit, fit.reach))
    columns = ["k", "budget", "reach", "mean_cost", "limit", "reach_fit"]
    return pd.DataFrame(found, columns=columns)
