"""What each attribute adds on the way from the rows before to their partners after.

V(S) is the functional of the rows that have the attributes in S from after and the others from
before. Part j is the Shapley value of j in the game V, so parts sum to V(all) - V(none): the mean
or the share is linear in rows, the quantile is evaluated directly for every S.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import comb, exp, pi, sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

EXACT_ATTRIBUTES = 6
"""Up to this many attributes every coalition is evaluated."""


class Functional(NamedTuple):
    """What of the outputs changed: their mean, a share past a cut-off, or a quantile."""

    kind: str
    """"mean", "share" or "quantile"."""
    at: float = 0.0
    """The cut-off, or the level of the quantile."""

    def values(self, scores: np.ndarray) -> np.ndarray:
        """Return what the mean or the share is the mean of."""
        return (scores >= self.at).astype(np.float64) if self.kind == "share" else scores

    def __call__(self, scores: np.ndarray, mass: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value for weighted outputs (N,), and each row's influence on it (N,).

        The influence of a row on a quantile Q is (level - 1[output <= Q]) / density(Q), with the
        density from two quantiles near Q (Bofinger's bandwidth).

        Examples
        --------
        >>> Functional("share", 2.0)(np.array([1.0, 2.0, 3.0, 4.0]), np.full(4, 0.25))
        (0.75, array([-0.75,  0.25,  0.25,  0.25]))
        """
        if self.kind != "quantile":
            values = self.values(scores)
            value = float(mass @ values)
            return value, values - value
        order = np.argsort(scores, kind="stable")
        square = float(ndtri(self.at)) ** 2
        bell = exp(-square / 2.0) / sqrt(2.0 * pi)
        width = (4.5 * bell**4 / (2.0 * square + 1.0) ** 2 / scores.size) ** 0.2
        levels = np.array([self.at, max(self.at - width, 0.0), min(self.at + width, 1.0)])
        places = np.searchsorted(np.cumsum(mass[order]), levels - 1e-12)
        value, low, high = scores[order[np.minimum(places, scores.size - 1)]]
        above = scores > value
        return float(value), (above - mass @ above) * (high - low) / (levels[2] - levels[1])


class Coalitions(NamedTuple):
    """Coalitions to evaluate and how their values add up to parts."""

    members: np.ndarray
    """bool (C, J): which attributes come from after; first none, last all."""
    signs: np.ndarray
    """ndarray (M, J, C): M estimates of the J parts, each a linear function of the values."""


def coalitions(attributes: int, pairs: int, rng: np.random.Generator) -> Coalitions:
    """Return every coalition of few attributes, or those of antithetic pairs of random orders.

    Examples
    --------
    >>> coalitions(2, 1, np.random.default_rng(0)).signs[0].tolist()
    [[-0.5, -0.5, 0.5, 0.5], [-0.5, 0.5, -0.5, 0.5]]
    """
    count = attributes
    if count <= EXACT_ATTRIBUTES:
        members = np.array(list(product([False, True], repeat=count)))
        size = members.sum(axis=1)[:, None]
        share = np.array([1.0 / (count * comb(count - 1, k)) for k in range(count)])
        signs = np.where(
            members, share[np.maximum(size - 1, 0)], -share[np.minimum(size, count - 1)]
        )
        return Coalitions(members, signs.T[None])
    orders = np.argsort(rng.random((pairs, count)), axis=1)
    orders = np.stack([orders, orders[:, ::-1]], axis=1)  # (pairs, 2, J)
    ranks = np.argsort(orders, axis=2)
    reached = ranks[:, :, None, :] < np.arange(count + 1)[:, None]  # (pairs, 2, J + 1, J)
    # An order and its reverse share coalitions, as do orders that begin alike: ask about each once.
    members, place = np.unique(reached.reshape(-1, count), axis=0, return_inverse=True)
    place = place.reshape(pairs, 2, count + 1)
    signs = np.zeros((pairs, count, len(members)))
    draw = np.arange(pairs)[:, None, None]
    np.add.at(signs, (draw, orders, place[:, :, 1:]), 0.5)
    np.add.at(signs, (draw, orders, place[:, :, :-1]), -0.5)
    return Coalitions(members, signs)


class Attribution(NamedTuple):
    """Parts of a change along given pairs."""

    parts: np.ndarray
    """ndarray (J,)."""
    influence: np.ndarray
    """ndarray (N, J): of each pair on each part, of mean 0."""
    spread: np.ndarray
    """ndarray (J, J): covariance of the parts by the choice of orders; 0 if all were evaluated."""


def attribute(
    values: Callable[[np.ndarray], np.ndarray],
    pairs: tuple[np.ndarray, np.ndarray, np.ndarray],
    owner: np.ndarray,
    game: Coalitions,
    functional: Functional,
    batch: int,
) -> Attribution:
    """Return the parts of V(all) - V(none) along pairs: codes before and after, and their mass.

    Parameters
    ----------
    values
        Outputs (rows,) of codes (rows, p).
    owner
        int (p,): which attribute each column of the codes belongs to.
    batch
        Rows to ask the model about at once.
    """
    before, after, mass = pairs
    rows, count = len(before), len(game.members)
    worth = np.empty(count)
    influence = np.zeros((rows, game.signs.shape[1]))
    signs = game.signs.mean(axis=0)
    together = max(1, batch // rows)
    for start in range(0, count, together):
        chosen = game.members[start : start + together]
        mixed = np.where(chosen[:, None, owner], after, before).reshape(-1, before.shape[1])
        for k, outputs in enumerate(values(mixed).reshape(len(chosen), rows), start):
            worth[k], shown = functional(outputs, mass)
            influence += shown[:, None] * signs[:, k]
    estimates = game.signs @ worth
    spread = np.zeros((signs.shape[0],) * 2)
    if len(estimates) > 1:
        spread = np.cov(estimates.T).reshape(spread.shape) / len(estimates)
    return Attribution(estimates.mean(axis=0), influence, spread)
