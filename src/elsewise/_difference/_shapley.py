"""What each attribute adds on the way from the rows before to their partners after.

V(S) is the functional of the rows that have the attributes in S from after and the others from
before. Part j is the Shapley value of j in the game V, so parts sum to V(all) - V(none): the mean
or the share is linear in rows, the quantile is evaluated directly for every S.
"""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

import numpy as np

from elsewise._difference._matching import Plan
from elsewise._difference._samples import Samples, scores_of
from elsewise._resources import block_rows

EXACT_ATTRIBUTES = 6
"""Up to this many attributes every coalition is evaluated."""


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
        orders = np.stack([orders, orders[:, ::-1]], axis=1)
    draws, several = orders.shape[:2]
    reached = np.argsort(orders)[:, :, None] < np.arange(attributes + 1)[:, None]
    # Orders that begin with the same attributes share coalitions: ask about each once.
    members, place = np.unique(reached.reshape(-1, attributes), axis=0, return_inverse=True)
    place = place.reshape(draws, several, attributes + 1)
    signs = np.zeros((draws, attributes, len(members)))
    draw = np.arange(draws)[:, None, None]
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
