"""Two samples in, what changed between their scores and which attributes did it out."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri
from tqdm.auto import tqdm

from elsewise._difference._answer import Difference
from elsewise._difference._evidence import covariance, critical_value, permutation_test
from elsewise._difference._matching import EXACT_ROWS, Plan, match, nearest, random_plan
from elsewise._difference._samples import (
    Samples,
    checked_functional,
    refused,
    scores_of,
    take_samples,
)
from elsewise._difference._shapley import Attribution, Functional, attribute, coalitions
from elsewise._resources import Resources, block_rows, using
from elsewise.analysis import sub_populations
from elsewise.features import Kind, Schema
from elsewise.request import check_seed

ORDERS, COUPLINGS = 8, 8
"""Antithetic pairs of orders along the matched pairs; random couplings that the intervals use."""
POWER = 0.8
"""The smallest detectable change is found with this probability."""
USUAL = 0.99
"""A row is without counterpart if it is farther from the other sample than this share of that
sample's rows are from each other."""
MOST_GROUPS, LEAST_GAIN = 4, 0.02


def difference(
    model: Any,
    before: pd.DataFrame,
    after: pd.DataFrame,
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
        DataFrames of the same columns: two periods, or two groups.
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
    wanted = checked_functional(functional)
    check_seed(seed)
    fine = isinstance(confidence, float) and isinstance(draws, int | np.integer)
    if not fine or not 0.5 <= confidence < 1.0 or draws + 1 < 1.0 / (1.0 - confidence) - 1e-9:
        expected = "a level in [0.5, 1), and at least level / (1 - level) draws"
        raise refused("confidence, draws", expected, f"{confidence}, {draws}", "try 0.95 and 999")
    with using(Resources.of(None, memory)):
        samples = take_samples(model, before, after, output, schema, clusters)
        low, high = samples.scores.min(), samples.scores.max()
        if wanted.kind == "share" and not low < wanted.at <= high:
            expected = f"a cut-off between the outputs, which are {low:g} to {high:g}"
            raise refused("functional", expected, wanted.at, "choose one that some reach, not all")
        return _answer(samples, wanted, confidence, draws, seed, progress)


def _answer(
    samples: Samples,
    functional: Functional,
    confidence: float,
    draws: int,
    seed: int,
    progress: bool | None,
) -> Difference:
    embedded, (old, new) = samples.halves(samples.embedded), samples.halves(samples.codes)
    plan = match(*embedded, np.random.default_rng([seed, *b"match"]))
    same = np.array_equal(old[plan.before], new[plan.after], equal_nan=True)
    found, spread, ends = _attributed(samples, functional, plan, seed, progress)
    error = np.zeros(len(spread)) if same else np.sqrt(np.diag(spread))
    limit = critical_value(spread, confidence, np.random.default_rng([seed, *b"limits"])) * error
    parts = np.append(found.parts, ends[1] - ends[0])
    p_values = np.ones(len(parts)) if same else _p_values(samples, functional, draws, seed)
    names = [*(column.name for column in samples.columns), "(change)"]
    table = pd.DataFrame(
        {
            "kind": [*(str(column.kind) for column in samples.columns), ""],
            "part": parts,
            "low": parts - limit,
            "high": parts + limit,
            "detectable": (ndtri((1.0 + confidence) / 2.0) + ndtri(POWER)) * error,
            "own_change": p_values,
            "named": (np.abs(parts) > limit) & (p_values <= 1.0 - confidence),
        },
        index=pd.Index(names, name="attribute", tupleize_cols=False),
    )
    # Largest part first, the change itself last.
    order = np.argsort(-np.abs(parts[:-1]), kind="stable")
    return Difference(
        output=samples.outputs.description,
        functional=functional,
        before=ends[0],
        after=ends[1],
        parts=table.iloc[[*order, len(order)]],
        groups=_groups(samples, functional, plan, found),
        pairs=plan,
        unmatched=(_unmatched(*embedded), _unmatched(*embedded[::-1])),
        sizes=samples.sizes,
        clusters=int(samples.clusters.max()) + 1,
        confidence=confidence,
        draws=draws,
        seed=seed,
        exact=max(samples.sizes) <= EXACT_ROWS,
        same=same,
    )


def _attributed(
    samples: Samples, functional: Functional, plan: Plan, seed: int, progress: bool | None
) -> tuple[Attribution, np.ndarray, list[float]]:
    """Return the parts (J,), the covariance of parts and change, and the values at both ends.

    The influence of a row is estimated by its mean influence over rows it is paired with at random
    (the projection of a two-sample U-statistic); what matched pairs add to the influences of their
    rows is a mean over pairs. Against repeated sampling the standard errors so found are 0 to 15 %
    too wide, those of pairs alone up to three times too narrow.
    """
    rng = np.random.default_rng([seed, *b"orders"])
    sizes, count, (old, new) = samples.sizes, len(samples.columns), samples.halves(samples.codes)

    def along(pairs: Plan, orders: int) -> Attribution:
        return attribute(
            lambda codes: scores_of(samples.outputs, codes),
            (old[pairs.before], new[pairs.after], pairs.mass),
            samples.owner,
            coalitions(count, orders, rng),
            functional,
            block_rows(old.shape[1]),
        )

    # Many rows average out what few orders leave to chance.
    found = along(plan, max(2, min(ORDERS, ORDERS * EXACT_ROWS // max(sizes))))
    sides = [np.zeros((size, count + 1)) for size in sizes]
    turns = COUPLINGS if max(sizes) <= EXACT_ROWS else COUPLINGS // 2
    hidden, turned = None if progress is None else not progress, samples.turned
    for _ in tqdm(range(turns), desc="intervals", disable=hidden):
        pairs = random_plan(sizes[::-1] if turned else sizes, rng)
        pairs = Plan(pairs.after, pairs.before, pairs.mass) if turned else pairs
        influence = along(pairs, 1).influence
        # A row that is in two pairs of a coupling has their mean.
        for side, rows in zip(sides, pairs[:2], strict=True):
            np.add.at(side[:, :-1], rows, influence / (turns * np.bincount(rows)[rows, None]))
    rest = (found.influence - sides[0][plan.before, :-1] - sides[1][plan.after, :-1]).T * plan.mass
    ends = []
    # The last column is the change, which falls as the scores before rise.
    for side, scores, sign in zip(sides, samples.halves(samples.scores), (-1, 1), strict=True):
        value, influence = functional(scores, np.full(len(scores), 1.0 / len(scores)))
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


def _p_values(samples: Samples, functional: Functional, draws: int, seed: int) -> np.ndarray:
    """Permutation tests on the pooled rows in an order that does not depend on which is before."""
    side = np.repeat([False, True], samples.sizes)
    order = np.lexsort((side ^ samples.turned, *samples.codes.T))
    return permutation_test(
        samples.scores[order],
        [column.take(order) for column in samples.columns],
        side[order],
        pd.factorize(samples.clusters[order])[0],
        functional,
        draws,
        np.random.default_rng([seed, *b"regroup"]),
    )


def _unmatched(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return which rows are farther from the other sample than its own rows usually are."""
    usual = np.quantile(nearest(others, others, same=True), USUAL)
    return np.flatnonzero(nearest(rows, others) > usual * (1.0 + 1e-9))


def _groups(
    samples: Samples, functional: Functional, plan: Plan, found: Attribution
) -> pd.DataFrame:
    """Sub-populations of before whose matched scores moved most, largest move first."""
    # For a quantile, the moves of the scores themselves: it is no mean over rows.
    halves = samples.halves(functional.values(samples.scores))
    old, new = halves[0][plan.before], halves[1][plan.after]
    columns = [c.take(plan.before) for c in samples.columns if c.kind != Kind.FIXED]
    moves = (new - old)[:, None]
    leaves = sub_populations(columns, moves, most=MOST_GROUPS, least_gain=LEAST_GAIN)
    told = []
    for leaf in leaves if len(leaves) > 1 else []:
        mass = plan.mass[leaf.rows] / plan.mass[leaf.rows].sum()
        ends = float(mass @ old[leaf.rows]), float(mass @ new[leaf.rows])
        leading = np.abs(mass @ found.influence[leaf.rows] + found.parts).argmax()
        # A quantile has no parts row by row.
        name = "" if functional.kind == "quantile" else str(samples.columns[leading].name)
        told.append((leaf.who, np.unique(plan.before[leaf.rows]).size, *ends, name))
    frame = pd.DataFrame(told, columns=["who", "rows", "before", "after", "mostly"])
    size = (frame["after"] - frame["before"]).abs()
    return frame.loc[size.sort_values(ascending=False).index].reset_index(drop=True)
