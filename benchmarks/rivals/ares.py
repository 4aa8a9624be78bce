"""AReS: a short list of two-level rules that say who could change what.

K. Rawal, H. Lakkaraju, Beyond Individualized Recourse: Interpretable and Interactive Summaries of
Actionable Recourses, NeurIPS 2020. A rule (q, c, c') reads "among q: if c, then c'", where c' gives
other values to the attributes of c. Candidates are frequent itemsets (apriori). The objective,

    cover(R) - incorrect(R) - feature cost(R) - feature change(R),   each with a weight,

is submodular, and is maximized under the paper's limits (20 rules, 10 subgroups q; its limit of 7
conditions a rule is never reached, as a rule has at most 3 here) by the approximate local search of
J. Lee, V. Mirrokni, V. Nagarajan, M. Sviridenko (STOC 2009): add, delete and exchange moves until
none gains, once on all candidates and once on those not chosen the first time; the better of both.
Every candidate is evaluated at once: what c' does to a row does not depend on q, so that one batch
of model calls serves all rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from benchmarks.rivals.items import Bins, bins_of, frequent_itemsets
from benchmarks.rivals.question import BATCH, Question, answer, pose

from elsewise.analysis import BaselineExplanation
from elsewise.errors import InvalidInput
from elsewise.features import Schema
from elsewise.request import Bounds
from elsewise.targets import Target

__all__ = ["Ares", "AresRule", "AresSettings", "ares"]

GROUND = 50_000_000
"""Cells of the table of candidates and rows; the candidates best by themselves are kept."""
THEN = 4000
"""Recommendations c' tried, narrow and frequent ones first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AresSettings:
    """How AReS is run; sizes as in the paper."""

    threshold: float = 0.5
    """Output from which a row counts as valid."""
    bins: int = 10
    """Bins of a number."""
    support: float = 0.03
    """Least share of the rows that an if-part holds for."""
    then_support: float = 0.01
    """Least share of the valid background rows that a then-part holds for."""
    then_width: int = 2
    """Most attributes that a rule changes."""
    rules: int = 20
    """Most rules."""
    subgroups: int = 10
    """Most different subgroups q."""
    incorrect: float = 2.0
    """Weight of a row that a rule covers without making it valid."""
    cover: float = 1.0
    """Weight of a row that some rule covers."""
    feature_cost: float = 0.1
    """Weight of an attribute in a rule."""
    feature_change: float = 0.02
    """Weight of a bin that a rule crosses."""

    def __post_init__(self) -> None:
        counts = (self.bins, self.then_width, self.rules, self.subgroups)
        weights = (self.incorrect, self.cover, self.feature_cost, self.feature_change)
        shares = (self.support, self.then_support)
        if min(counts) < 1 or min(weights) < 0 or not all(0 < share < 1 for share in shares):
            raise InvalidInput(
                "settings",
                expected="positive counts, weights of at least 0, supports between 0 and 1",
                received=repr(self),
                fix="the defaults are meant to be left alone",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class AresRule:
    """Among q: if c, then c'."""

    subgroup: str
    """q, as text."""
    condition: tuple[str, ...]
    """c, one text per attribute."""
    recommendation: tuple[str, ...]
    """c', in the same order."""
    fields: tuple[str, ...]
    """The attributes of c and c'."""
    covered: int
    """Explained rows for which q and c hold."""
    correct: int
    """Those of them that c' makes valid."""
    change: float
    """Bins crossed, a category change 1."""

    def __str__(self) -> str:
        return (
            f"Among {self.subgroup}: if {' and '.join(self.condition)} "
            f"then {' and '.join(self.recommendation)} "
            f"({self.correct} of {self.covered} rows become valid)"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Ares(BaselineExplanation):
    """What AReS found."""

    rules: tuple[AresRule, ...]
    """The recourse set; ``str(rule)`` reads as text."""
    chosen: np.ndarray
    """int (n,): the rule each row follows, -1 where none holds."""


def ares(
    model: Any,
    rows: pd.DataFrame,
    *,
    schema: Schema | None = None,
    background: pd.DataFrame | None = None,
    target: Target | None = None,
    bounds: Bounds | None = None,
    seed: int = 0,
    settings: AresSettings | None = None,
) -> Ares:
    """Explain rows by a two-level recourse set (Rawal and Lakkaraju 2020).

    Parameters
    ----------
    model, rows, schema, background, bounds, seed
        As in `elsewise.explain`. Only free attributes change, to values the schema allows.
    target
        What the certificate compares outputs with; all ones by default.
    settings
        See `AresSettings`.

    Returns
    -------
    Ares
        An explanation with its rules. A row follows, of the rules that hold for it, the cheapest
        that makes it valid, else the one that is right most often; where none holds it stays.

    Examples
    --------
    >>> rows = pd.DataFrame({"a": np.arange(60) % 6, "b": np.arange(60) % 4})
    >>> found = ares(lambda frame: (frame["a"] >= 3) * 1.0, rows[rows["a"] < 3], background=rows)
    >>> bool((found.outputs >= 0.5).all())
    True
    """
    settings = settings or AresSettings()
    question = pose(
        model,
        rows,
        schema=schema,
        background=background,
        target=target,
        bounds=bounds,
        threshold=settings.threshold,
        seed=seed,
    )
    found: list[_Found] = []

    def find() -> tuple[np.ndarray, tuple[str, ...]]:
        found.append(_search(question, settings))
        followed = int((found[0].chosen >= 0).sum())
        return found[0].codes, (
            f"{len(found[0].rules)} rules; {followed} of {len(question.codes)} rows follow one",
        )

    common = answer(question, "AReS", find)
    return Ares(**common, rules=found[0].rules, chosen=found[0].chosen)


class _Found(NamedTuple):
    codes: np.ndarray
    rules: tuple[AresRule, ...]
    chosen: np.ndarray


class _Recommendations(NamedTuple):
    """All then-parts c' and whether each makes each row valid."""

    items: list[tuple[int, ...]]
    valid: np.ndarray
    """bool (T, n): the row, so changed, is valid and possible."""


class _Ground(NamedTuple):
    """Candidate rules, one entry each."""

    subgroup: np.ndarray
    """int (R,): item q."""
    then: np.ndarray
    """int (R,): then-part."""
    member: np.ndarray
    """int (R,): a row that the if-part c is read from."""
    covered: np.ndarray
    """bool (R, n)."""
    loss: np.ndarray
    """(R,): weighted incorrect rows, features and changes."""
    change: np.ndarray
    """(R,): bins crossed."""


def _search(question: Question, settings: AresSettings) -> _Found:
    bins = bins_of(question, settings.bins)
    held = bins.items_of(question.codes)
    thens = _recommendations(question, bins, settings)
    ground = _candidates(bins, held, thens, settings)
    weight = settings.cover
    first = _local_search(ground, np.arange(len(ground.then)), settings)
    rest = np.setdiff1d(np.arange(len(ground.then)), first)
    second = _local_search(ground, rest, settings)
    chosen = max((first, second), key=lambda rules: _value(ground, rules, weight))
    return _followed(question, bins, held, thens, ground, chosen)


def _recommendations(question: Question, bins: Bins, settings: AresSettings) -> _Recommendations:
    """Mine then-parts among the valid background rows and try each on every row."""
    n = len(question.codes)
    background = question.background
    valid_rows = background[question.valid(background)]
    fields = np.array([item.field for item in bins.items])
    target = np.array([item.target for item in bins.items], dtype=bool)
    seen = bins.items_of(valid_rows)
    table = np.zeros((len(seen), len(bins.items)), dtype=bool)
    for column in seen.T:
        known = np.flatnonzero(column >= 0)
        table[known, column[known]] = True
    table &= target
    least = max(1, int(np.ceil(settings.then_support * len(seen))))
    levels = frequent_itemsets(table, fields, least, settings.then_width) if len(seen) else []
    found = [
        (items, count)
        for level in levels
        for items, count in zip(level.items.tolist(), level.counts.tolist(), strict=True)
    ]
    found.sort(key=lambda pair: (len(pair[0]), -pair[1]))
    items = [tuple(pair[0]) for pair in found[:THEN]]
    valid = np.empty((len(items), n), dtype=bool)
    together = max(1, BATCH // n)
    for first in range(0, len(items), together):
        some = items[first : first + together]
        codes = np.concatenate([_applied(question, bins, itemset) for itemset in some])
        answers = question.valid(codes) & question.possible(codes)
        valid[first : first + together] = answers.reshape(len(some), n)
    return _Recommendations(items, valid)


def _applied(question: Question, bins: Bins, itemset: tuple[int, ...]) -> np.ndarray:
    """Codes (n, p) of all rows with the values of ``itemset``; cells that may not move stay."""
    codes = question.codes.copy()
    for i in itemset:
        item = bins.items[i]
        codes[:, bins.fields[item.field].columns] = item.codes
    return np.asarray(question.legal.legalize(codes))


def _candidates(
    bins: Bins, held: np.ndarray, thens: _Recommendations, settings: AresSettings
) -> _Ground:
    """All rules (q, c, c') that gain by themselves: no other can gain beside them."""
    n = len(held)
    least = max(1, int(np.ceil(settings.support * n)))
    fields = np.array([item.field for item in bins.items])
    item_masks = np.arange(len(fields))[:, None] == held[:, fields].T
    groups = np.flatnonzero(item_masks.sum(axis=1) >= least)
    group_masks, group_fields = item_masks[groups], fields[groups]
    parts: list[_Ground] = []
    for t, itemset in enumerate(thens.items):
        columns = fields[list(itemset)]
        own = held[:, columns]
        changes = _changes(bins, itemset, own)
        # Rows that have all values, other ones than recommended, and may go there.
        movable = np.flatnonzero(np.isfinite(changes))
        if not len(movable):
            continue
        _, members, kinds = np.unique(own[movable], axis=0, return_index=True, return_inverse=True)
        masks = np.zeros((len(members), n), dtype=bool)
        masks[kinds.ravel(), movable] = True
        usable = np.flatnonzero(~np.isin(group_fields, columns))
        gates = group_masks[usable].astype(np.float32)
        covered = masks.astype(np.float32) @ gates.T
        correct = (masks & thens.valid[t]).astype(np.float32) @ gates.T
        change = changes[movable[members]]
        loss = (
            settings.incorrect * (covered - correct)
            + settings.feature_cost * len(itemset)
            + settings.feature_change * change[:, None]
        )
        kind, gate = np.nonzero((covered >= least) & (settings.cover * covered > loss))
        parts.append(
            _Ground(
                subgroup=groups[usable[gate]],
                then=np.full(len(kind), t),
                member=movable[members[kind]],
                covered=masks[kind] & group_masks[usable[gate]],
                loss=loss[kind, gate],
                change=change[kind],
            )
        )
    if not parts:
        none = np.empty(0, dtype=np.int64)
        return _Ground(none, none, none, np.empty((0, n), dtype=bool), none, none)
    ground = _Ground(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    gains = settings.cover * ground.covered.sum(axis=1) - ground.loss
    best = np.argsort(-gains, kind="stable")[: max(1, GROUND // n)]
    return _Ground(*(column[best] for column in ground))


def _changes(bins: Bins, itemset: tuple[int, ...], own: np.ndarray) -> np.ndarray:
    """Bins crossed (n,) from each row's own items; infinite where the rule cannot be one."""
    total = np.zeros(len(own))
    for i, column in zip(itemset, own.T, strict=True):
        item = bins.items[i]
        field = bins.fields[item.field]
        apart = item.rank - bins.rank_of[column]
        wrong = (column < 0) | (column == i) | (field.direction * apart < 0)
        size = np.abs(apart) if field.levels is None else np.ones(len(own))
        total += np.where(wrong, np.inf, size)
    return total


def _value(ground: _Ground, rules: np.ndarray, cover: float) -> float:
    """The objective of a set of rules."""
    return float(cover * ground.covered[rules].any(axis=0).sum() - ground.loss[rules].sum())


class _Move(NamedTuple):
    """One move of the local search."""

    gain: float
    dropped: int | None
    added: int | None


def _local_search(ground: _Ground, allowed: np.ndarray, settings: AresSettings) -> np.ndarray:
    """Add, delete and exchange rules until nothing gains."""
    chosen: list[int] = []
    while True:
        best = _Move(1e-9, None, None)
        # Dropping none is an addition, dropping one rule an exchange or a deletion.
        for dropped in [None, *chosen]:
            kept = [rule for rule in chosen if rule != dropped]
            lost = _value(ground, np.array(kept, dtype=int), settings.cover) - _value(
                ground, np.array(chosen, dtype=int), settings.cover
            )
            if dropped is not None and lost > best.gain:
                best = _Move(lost, dropped, None)
            if len(kept) >= settings.rules:
                continue
            gains = _gains(ground, allowed, kept, settings)
            if len(gains):
                top = int(gains.argmax())
                if gains[top] + lost > best.gain:
                    best = _Move(float(gains[top] + lost), dropped, int(allowed[top]))
        if best.dropped is None and best.added is None:
            return np.array(chosen, dtype=int)
        chosen = [rule for rule in chosen if rule != best.dropped]
        if best.added is not None:
            chosen.append(best.added)


def _gains(
    ground: _Ground, allowed: np.ndarray, kept: list[int], settings: AresSettings
) -> np.ndarray:
    """What adding each allowed rule would gain; minus infinity where a limit forbids it."""
    free = ~ground.covered[kept].any(axis=0)
    fresh = ground.covered[allowed][:, free].sum(axis=1)
    gains = settings.cover * fresh - ground.loss[allowed]
    used = np.unique(ground.subgroup[kept])
    if len(used) >= settings.subgroups:
        gains = np.where(np.isin(ground.subgroup[allowed], used), gains, -np.inf)
    return np.asarray(gains)


def _followed(
    question: Question,
    bins: Bins,
    held: np.ndarray,
    thens: _Recommendations,
    ground: _Ground,
    chosen: np.ndarray,
) -> _Found:
    """Let every row follow the best rule that holds for it."""
    n = len(held)
    rules = tuple(_rule(bins, held, thens, ground, r) for r in chosen)
    if not rules:
        return _Found(question.codes.copy(), (), np.full(n, -1))
    covered = ground.covered[chosen]
    correct = covered & thens.valid[ground.then[chosen]]
    accuracy = correct.sum(axis=1) / covered.sum(axis=1)
    # Valid rules by their change, then the others by how often they are right.
    ranking = np.where(correct, ground.change[chosen][:, None], 1e6 * (2.0 - accuracy)[:, None])
    best = np.where(covered, ranking, np.inf).argmin(axis=0)
    rule = np.where(covered.any(axis=0), best, -1)
    codes = question.codes.copy()
    for k, r in enumerate(chosen):
        followers = rule == k
        codes[followers] = _applied(question, bins, thens.items[ground.then[r]])[followers]
    return _Found(codes, rules, rule)


def _rule(
    bins: Bins, held: np.ndarray, thens: _Recommendations, ground: _Ground, r: int
) -> AresRule:
    t = ground.then[r]
    itemset = thens.items[t]
    columns = [bins.items[i].field for i in itemset]
    own = held[ground.member[r], columns]
    return AresRule(
        subgroup=bins.items[ground.subgroup[r]].text,
        condition=tuple(bins.items[i].text for i in own),
        recommendation=tuple(bins.items[i].text for i in itemset),
        fields=tuple(bins.fields[k].name for k in columns),
        covered=int(ground.covered[r].sum()),
        correct=int((ground.covered[r] & thens.valid[t]).sum()),
        change=float(ground.change[r]),
    )
