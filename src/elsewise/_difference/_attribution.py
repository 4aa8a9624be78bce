"""Two samples in, what changed between their scores and which attributes did it out.

V(S) is the functional of the rows that have the attributes in S from after and the others from
before. Part j is the Shapley value of j in the game V, so parts sum to V(all) - V(none): the mean
or the share is linear in rows, the quantile is evaluated directly for every S.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import permutations, repeat
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree
from scipy.special import ndtri
from tqdm.auto import tqdm

from elsewise._difference._answer import TABLES, Difference
from elsewise._difference._evidence import covariance, critical_value, permutation_test
from elsewise._difference._matching import EXACT_ROWS, Plan, match, random_plan
from elsewise._difference._samples import Samples, refused, scores_of, take_samples
from elsewise._resources import Resources, block_rows, using
from elsewise.analysis import MISSING, Column
from elsewise.analysis._tree import sub_populations
from elsewise.features import Kind, Schema
from elsewise.request import check_seed
from elsewise.text import amount, one_line, percent

EXACT_ATTRIBUTES = 6
"""Up to this many attributes every coalition is evaluated."""
ORDERS, COUPLINGS = 8, 8
"""Antithetic pairs of orders along the matched pairs; random couplings that the intervals use."""
POWER = 0.8
"""The smallest detectable change is found with this probability."""
USUAL = 0.99
"""A row is without counterpart if it is farther from the other sample than this share of that
sample's rows are from each other."""
CHANGE_LEVEL = 0.05
"""For the matching, an attribute has changed if the p-value of that is at most this."""
CATEGORY, CHANGED = 2.0, 0.25
"""Weights of distances where rows are matched: of categories, and of attributes whose own
distribution changed; chosen on samples like the benchmark's made-up ones, with other models."""
QUANTILES = {"median": 0.5, "10% quantile": 0.1, "90% quantile": 0.9}
FEW_VALUES, MUCH_MISSING = 10, 0.05
"""A change of a number is told by a quantile, of few values or much missing by their shares."""
MOST_GROUPS, LEAST_GAIN, NOISE_GAIN = 4, 0.02, 10.0
"""A split explains at least this share of the squared moves and what noise of n pairs may, 10/n."""


def difference(
    model: Any,
    before: Any,
    after: Any,
    *,
    functional: str | tuple[str, float] = "mean",
    output: Hashable | None = None,
    schema: Schema | None = None,
    clusters: Hashable | tuple[Any, Any] | None = None,
    confidence: float = 0.95,
    draws: int = 999,
    seed: int = 0,
    memory: int | str | None = None,
    progress: bool | None = None,
) -> Difference:
    """Attribute the difference between a model's outputs on two samples to their attributes.

    Rows are matched by optimal transport where the schema measures distances; along the matched
    pairs each attribute has its Shapley value, so that the parts sum to the change.

    Parameters
    ----------
    model
        What `elsewise.explain` takes.
    before, after
        Frames of the same columns, of any kind that `explain` takes: two periods, or two groups.
    functional
        "mean", ("share", cut-off) of outputs at or above it, or ("quantile", level).
    output
        The class or column of a model with several outputs.
    schema
        Kinds of columns, one-hot groups and weights; inferred from both frames by default. What
        may move plays no part.
    clusters
        For rows that belong together, such as several rows of a person: a column of both frames,
        which is then no attribute, or a tuple of labels for before and for after.
    confidence
        Level of all intervals together.
    draws
        Random regroupings of the permutation test.
    seed
        The same seed gives the same result.
    memory
        Bytes, or a text such as "2GB", for the rows that the model is asked about at once.
    progress
        Whether to show a bar; by default where there is a terminal.

    Returns
    -------
    Difference
        Prints as sentences; see `Difference.table`, `plot`, `report`, `save`.

    Notes
    -----
    Intervals are normal, from the influence of each row of either sample on each part: its
    projection on rows paired at random, and what the matched pairs add to that. Nothing is causal.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> before = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    >>> after = pd.DataFrame(rng.normal(size=(200, 2)) + [1.0, 0.0], columns=["a", "b"])
    >>> found = difference(lambda rows: rows["a"] + rows["b"], before, after, progress=False)
    >>> found.table()["part"].idxmax(), found.table()["named"].tolist()
    ('a', [True, False])
    """
    check_seed(seed)
    fine = isinstance(confidence, float) and isinstance(draws, int | np.integer)
    if not fine or not 0.5 <= confidence < 1.0 or draws + 1 < 1.0 / (1.0 - confidence) - 1e-9:
        expected = "a level in [0.5, 1), and at least level / (1 - level) draws"
        raise refused("confidence, draws", expected, f"{confidence}, {draws}", "try 0.95 and 999")
    with using(Resources.of(None, memory)):
        samples = take_samples(model, (before, after), functional, output, schema, clusters)
        return _answer(samples, confidence, draws, seed, progress)


def _answer(
    samples: Samples, confidence: float, draws: int, seed: int, progress: bool | None
) -> Difference:
    # Sorted, because the same rows in another order are the same sample.
    old, new = (codes[np.lexsort(codes.T)] for codes in samples.halves(samples.codes))
    same, count = np.array_equal(old, new, equal_nan=True), len(samples.columns)
    own_change = np.ones(count + 1)
    if not same:
        own_change = permutation_test(samples, draws, np.random.default_rng([seed, *b"regroup"]))
    changed = own_change <= CHANGE_LEVEL
    # What an attribute brought about shows between rows that differ in it alone. Partners that
    # differ in a category, or that took the place of rows which shifted, turn part of it over to
    # others: so partners are alike in what did not change.
    alike = [1.0 if column.ordered else CATEGORY for column in samples.columns]
    weights = alike * np.where(changed[:-1], CHANGED, 1.0)
    near = samples.halves(samples.embedded * weights[samples.shown])
    plan = match(*near, np.random.default_rng([seed, *b"match"]))
    found, spread, ends = _attributed(samples, plan, seed, progress)
    error = np.zeros(count + 1) if same else np.sqrt(np.diag(spread))
    # What is nothing but rounding is nothing.
    tiny = 1e-13 * max(map(abs, ends))
    error = np.where(error > tiny, error, 0.0)
    limit = critical_value(spread, confidence, np.random.default_rng([seed, *b"limits"])) * error
    parts = np.append(found.parts, ends[1] - ends[0])
    parts = np.where(np.abs(parts) > tiny, parts, 0.0)
    names = [*(column.name for column in samples.columns), "(change)"]
    table = pd.DataFrame(
        {
            "kind": [*(str(column.kind) for column in samples.columns), ""],
            "part": parts,
            "low": parts - limit,
            "high": parts + limit,
            "detectable": (ndtri((1.0 + confidence) / 2.0) + ndtri(POWER)) * error,
            "own_change": own_change,
            "moved": [*map(_moved, samples.columns, repeat(samples.sizes[0]), changed), ""],
            "named": (np.abs(parts) > limit) & (own_change <= 1.0 - confidence),
        },
        index=pd.Index(names, name="attribute", tupleize_cols=False),
    )
    # Largest part first, the change itself last.
    order = np.argsort(-np.abs(parts[:-1]), kind="stable")
    embedded = samples.halves(samples.embedded)
    return Difference(
        output=samples.outputs.description,
        functional=samples.functional,
        before=ends[0],
        after=ends[1],
        parts=table.iloc[[*order, count]],
        groups=_groups(samples, plan, found, changed),
        pairs=plan,
        unmatched=(_unmatched(*embedded), _unmatched(*embedded[::-1])),
        sizes=samples.sizes,
        clusters=int(samples.clusters.max()) + 1,
        confidence=confidence,
        draws=draws,
        seed=seed,
        source=samples.source,
        same=same,
    )


class Coalitions(NamedTuple):
    """Coalitions to evaluate and how their values add up to parts."""

    members: np.ndarray
    """bool (C, J): which attributes come from after."""
    signs: np.ndarray
    """ndarray (M, J, C): M estimates of the J parts, each a linear function of the values."""


def coalitions(attributes: int, pairs: int, rng: np.random.Generator) -> Coalitions:
    """Return the coalitions of all orders of few attributes, or of antithetic random pairs of them.

    Examples
    --------
    >>> coalitions(2, 1, np.random.default_rng(0)).signs[0].tolist()
    [[-0.5, -0.5, 0.5, 0.5], [-0.5, 0.5, -0.5, 0.5]]
    """
    if attributes <= EXACT_ATTRIBUTES:
        orders = np.array(list(permutations(range(attributes))))[None]
    else:
        orders = np.argsort(rng.random((pairs, attributes)), axis=1)
        # An order and its reverse: an attribute that joins early in one joins late in the other,
        # and what it gains from the others' presence averages out sooner.
        orders = np.stack([orders, orders[:, ::-1]], axis=1)
    draws, several = orders.shape[:2]
    # The argsort of an order is the place of each attribute in it: the first k are the k-th
    # coalition.
    reached = np.argsort(orders)[:, :, None] < np.arange(attributes + 1)[:, None]
    # Orders that begin with the same attributes share coalitions: ask about each once.
    members, place = np.unique(reached.reshape(-1, attributes), axis=0, return_inverse=True)
    place = place.reshape(draws, several, attributes + 1)
    signs = np.zeros((draws, attributes, len(members)))
    draw = np.arange(draws)[:, None, None]
    # Shapley: the value with the attribute just joined, less the value just before, over all
    # orders.
    np.add.at(signs, (draw, orders, place[:, :, 1:]), 1.0 / several)
    np.add.at(signs, (draw, orders, place[:, :, :-1]), -1.0 / several)
    return Coalitions(members, signs)


class Attribution(NamedTuple):
    """Parts of a change along given pairs."""

    parts: np.ndarray
    """ndarray (J,)."""
    influence: np.ndarray
    """ndarray (N, J): of each pair on each part, of mean 0."""
    spread: np.ndarray
    """ndarray (J, J): covariance of the parts by the choice of orders; 0 if all were evaluated."""


def attribute(samples: Samples, pairs: Plan, game: Coalitions) -> Attribution:
    """Return the parts of V(all) - V(none) along pairs, the model asked about many at once."""
    old, new = samples.halves(samples.codes)
    before, after = old[pairs.before], new[pairs.after]
    rows, count = len(before), len(game.members)
    worth = np.empty(count)
    signs = game.signs.mean(axis=0)
    influence = np.zeros((rows, len(signs)))
    together = max(1, block_rows(old.shape[1]) // rows)
    for start in range(0, count, together):
        chosen = game.members[start : start + together]
        # Rows (coalitions x pairs, p): columns of members come from after, all others from before.
        mixed = np.where(chosen[:, None, samples.owner], after, before).reshape(-1, old.shape[1])
        scores = scores_of(samples.outputs, mixed).reshape(len(chosen), rows)
        for k, outputs in enumerate(scores, start):
            worth[k], shown = samples.functional(outputs, pairs.mass)
            influence += shown[:, None] * signs[:, k]
    estimates = game.signs @ worth
    spread = np.zeros((len(signs),) * 2)
    if len(estimates) > 1:
        spread = np.cov(estimates.T).reshape(spread.shape) / len(estimates)
    return Attribution(estimates.mean(axis=0), influence, spread)


def _attributed(
    samples: Samples, plan: Plan, seed: int, progress: bool | None
) -> tuple[Attribution, np.ndarray, list[float]]:
    """Return the parts (J,), the covariance of parts and change, and the values at both ends.

    The influence of a row is estimated by its mean influence over rows it is paired with at random
    (the projection of a two-sample U-statistic); what matched pairs add to the influences of their
    rows is a mean over pairs. Standard errors so found are right or too wide (docs/difference.md),
    those of pairs alone up to three times too narrow.
    """
    rng = np.random.default_rng([seed, *b"orders"])
    sizes, count, most = samples.sizes, len(samples.columns), max(samples.sizes)
    # Many rows average out what few orders leave to chance.
    orders = max(2, min(ORDERS, ORDERS * EXACT_ROWS // most))
    found = attribute(samples, plan, coalitions(count, orders, rng))
    sides = [np.zeros((size, count + 1)) for size in sizes]
    turns = COUPLINGS if most <= EXACT_ROWS else COUPLINGS // 2
    hidden = None if progress is None else not progress
    for _ in tqdm(range(turns), desc="intervals", disable=hidden):
        pairs = random_plan(sizes, rng, turned=samples.turned)
        influence = attribute(samples, pairs, coalitions(count, 1, rng)).influence
        # A row that is in two pairs of a coupling has their mean.
        for side, rows in zip(sides, pairs[:2], strict=True):
            np.add.at(side[:, :-1], rows, influence / (turns * np.bincount(rows)[rows, None]))
    rest = (found.influence - sides[0][plan.before, :-1] - sides[1][plan.after, :-1]).T * plan.mass
    ends = []
    # The last column is the change, which falls as the scores before rise.
    for side, scores, sign in zip(sides, samples.halves(samples.scores), (-1, 1), strict=True):
        value, influence = samples.functional(scores, np.full(len(scores), 1.0 / len(scores)))
        side[:, -1] = sign * influence
        side /= len(scores)
        ends.append(value)
    spread = covariance(np.concatenate(sides), samples.clusters)
    # A pair belongs to the clusters of both its rows.
    for clusters, rows in zip(samples.halves(samples.clusters), plan[:2], strict=True):
        spread[:-1, :-1] += 0.5 * covariance(rest.T, pd.factorize(clusters[rows])[0])
    spread[:-1, :-1] += found.spread
    # An attribute that no output depends on has rounding errors for a part.
    tiny = np.abs(found.parts) <= 1e-13 * np.abs(samples.scores).max()
    return found._replace(parts=np.where(tiny, 0.0, found.parts)), spread, ends


def _unmatched(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return which rows are farther from the other sample than its own rows usually are."""
    tree = cKDTree(others)
    # The nearest row of its own sample is the row itself, so the second is taken.
    usual = np.quantile(tree.query(others, k=2)[0][:, 1], USUAL)
    return np.flatnonzero(tree.query(rows)[0] > usual * (1.0 + 1e-9))


def _moved(column: Column, size: int, changed: bool) -> str:
    """Say how the distribution of an attribute that changed differs after the first rows."""
    values, places = np.unique(column.before, return_inverse=True)
    sides = np.split(places, [size])
    shares = [np.bincount(side, minlength=values.size) / side.size for side in sides]
    change = shares[1] - shares[0]
    told = [int(change.argmin()), int(change.argmax())] if changed else []
    level = amount if column.numeric else column.level
    if changed and column.ordered and values.size > FEW_VALUES:
        # NaN sorts last: the last value is "missing" if any cell is.
        told = [-1]
        if not np.isnan(values[-1]) or abs(change[-1]) < MUCH_MISSING:
            halves, at = np.split(column.before, [size]), list(QUANTILES.values())
            old, new = (np.nanquantile(codes, at, method="inverted_cdf") for codes in halves)
            most = int(np.abs(new - old).argmax())
            return f"{list(QUANTILES)[most]} {level(old[most])} to {level(new[most])}"
    names = {k: MISSING if np.isnan(values[k]) else one_line(level(values[k]), 40) for k in told}
    return ", ".join(
        f"{name}: {percent(shares[0][k])} to {percent(shares[1][k])}" for k, name in names.items()
    )


def _groups(samples: Samples, plan: Plan, found: Attribution, changed: np.ndarray) -> pd.DataFrame:
    """Sub-populations of both samples by attributes that did not change, largest move first.

    Partners are not quite alike: those of high rows tend to be lower and those of low rows higher.
    So every pair is described by both its rows, neither being the one that was picked.
    """
    # For a quantile, the moves of the scores themselves: it is no mean over rows.
    old, new = samples.halves(samples.functional.values(samples.scores))
    rows, count = np.append(plan.before, samples.sizes[0] + plan.after), len(plan.mass)
    steady = [c for c, own in zip(samples.columns, changed[:-1], strict=True) if not own]
    leaves = sub_populations(
        [c.take(rows) for c in steady if c.kind != Kind.FIXED],
        np.tile(new[plan.after] - old[plan.before], 2)[:, None],
        most=MOST_GROUPS if changed.any() else 1,
        least_gain=LEAST_GAIN + NOISE_GAIN / count,
    )
    told: list[tuple[Any, ...]] = []
    for leaf in leaves if len(leaves) > 1 else []:
        first, second = leaf.rows[leaf.rows < count], leaf.rows[leaf.rows >= count] - count
        sides = np.unique(plan.before[first]), np.unique(plan.after[second])
        if not sides[0].size or not sides[1].size:
            continue
        ends = [float(scores[side].mean()) for scores, side in zip((old, new), sides, strict=True)]
        leading = np.abs(found.influence[leaf.rows % count].mean(axis=0) + found.parts).argmax()
        # A quantile has no parts row by row, and small moves are nobody's.
        some = abs(ends[1] - ends[0]) >= 0.5 * abs(found.parts.sum())
        told_of = some and samples.functional.kind != "quantile"
        name = str(samples.columns[leading].name) if told_of else ""
        told.append((leaf.who, *(side.size for side in sides), *ends, name))
    told.sort(key=lambda group: -abs(group[4] - group[3]))
    return pd.DataFrame(told, columns=list(TABLES["groups"]))
