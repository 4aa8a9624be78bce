"""A policy in sentences for somebody who decides and has not read about this library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from textwrap import fill
from typing import TYPE_CHECKING

from elsewise.text import amount, percent

if TYPE_CHECKING:
    from elsewise.policy._policy import Policy

WIDTH = 119
"""Characters in a line."""
CHEAPEST = "rows for which it is the cheapest way there"
EFFORT = (
    "Without prices, cost is effort: 1 for a change of category or one standard deviation of a "
    "number, 4 for two"
)


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
    unit = (
        "In the units of the cost function" if callable(cost) else "In the currency of the prices"
    )
    each = f"{amount(count.mean_cost)} on average for a row that moves"
    return f"Cost: {amount(count.cost)} in all, {each}. {EFFORT if cost is None else unit}."
