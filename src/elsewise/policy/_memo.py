"""A policy in sentences for somebody who decides and has not read about this library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING

from elsewise.text import amount, percent

if TYPE_CHECKING:
    from elsewise.policy._policy import Policy

CHEAPEST = "rows for which it is the cheapest way there"
EFFORT = (
    "Without prices, cost is effort: 1 for a change of category or one standard deviation of a "
    "number, 4 for two"
)


def in_words(edits: Sequence[str]) -> str:
    """Join what an action does to each attribute; "" where it does nothing to one.

    Examples
    --------
    >>> in_words(["set home to own", "", "lower debt by 2", "raise age by 1"])
    'set home to own, lower debt by 2 and raise age by 1'
    """
    *first, last = [edit for edit in edits if edit]
    return f"{', '.join(first)} and {last}" if first else last


def memo_lines(policy: Policy) -> Iterator[str]:
    """Yield what each action is, for whom, and what it costs."""
    for place, line in enumerate(policy.lines, start=1):
        rows = "1 row, cost" if line.rows == 1 else f"{line.rows:,} rows, mean cost"
        what = f"{place}. {line.what[:1].upper()}{line.what[1:]}"
        who = f"\n   for {line.who}" if policy.rules else ""
        yield f"{what}{who}: {rows} {amount(line.cost)}"


def summary_of(policy: Policy) -> tuple[str, ...]:
    """Return what a policy reaches, for whom, and what it costs; the verdict first."""
    if not policy.lines:
        return (f"{policy.verdict.capitalize()}: {policy.reason}.",)
    return (_reached(policy), *_rows(policy), _cost(policy))


def _reached(policy: Policy) -> str:
    """Say the share of rows before and after, on what rows it was counted, and what was asked."""
    unseen, question = policy.unseen, policy.trial.question
    count = unseen or policy.explained
    lower = count.limits(policy.level)[1]
    before, after, asked, limit = (
        question.number(question.said(share))
        for share in (count.inside / count.rows, count.share, policy.asked, lower)
    )
    if question.kind == "every" and policy.asked == 1.0:
        asked = "every row"
    size = len(policy.lines)
    actions = "1 action takes" if size == 1 else f"{size} actions take"
    if unseen is not None:
        side = "at most" if question.falling else "at least"
        level = percent(policy.level, exact=True)
        known = (
            f"on {count.rows:,} rows kept aside while the actions were chosen. Other rows like "
            f"these: {side} {limit} ({level} confidence)"
        )
    elif policy.verdict == "certified":
        known = f"on all {count.rows:,} rows there are"
    else:
        known = f"on the {count.rows:,} rows the actions were chosen on; other rows were not tried"
    return (
        f"{policy.verdict.capitalize()}: {actions} the share of rows {question.condition()} from "
        f"{before} to {after}, counted {known}. Asked: {asked}."
    )


def _rows(policy: Policy) -> Iterator[str]:
    """Say who takes which action and how many rows stay, and why."""
    count, ruled = policy.explained, policy.rules is not None
    way = "the action of their line, which" if ruled else "the cheapest action that"
    told = [f"{count.arriving:,} take {way} brings them there"]
    if left := count.helped - count.arriving:
        told.append(f"{left:,} could but stay, because {policy.reason}")
    if stuck := count.needing - count.helped:
        most = policy.trial.most
        dear = f" at a cost of at most {amount(most)}" if most < inf else ""
        which = "the action of their line" if ruled else "none of the actions"
        told.append(f"{which} is {'not ' * ruled}enough for {stuck:,}{dear}")
    yield f"Of the {count.needing:,} explained rows that are not there yet, {'; '.join(told)}."
    if broken := count.rows - count.inside - count.needing:
        yield f"Rows that break a rule or a range as they are, and stay: {broken:,}."


def _cost(policy: Policy) -> str:
    count, cost = policy.explained, policy.trial.cost
    unit = (
        "In the units of the cost function" if callable(cost) else "In the currency of the prices"
    )
    each = f"{amount(count.mean_cost)} on average for a row that moves"
    return f"Cost: {amount(count.cost)} in all, {each}. {EFFORT if cost is None else unit}."
