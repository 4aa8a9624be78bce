"""Where a row could go next: candidate rows, as pure functions of the row and its two aims.

With the plans fixed, the paper's objective, eq. (15) Q-eta, falls apart into one small problem per
row,

    q_i(x) = (1 - eta) |phi(x) - c_i|^2 / d  +  eta |b(x) - s_i|^2 / K u^2,

with the anchor c_i (where the input plan sends the row), the wanted output s_i and the unit u of
the outputs (1 for most probabilities): a model in cents moves rows as one in euros. A source
proposes steps for all rows at once; what a row is offered depends on its own values only.
"""

from __future__ import annotations

from typing import NamedTuple

from elsewise._arrays import Array, namespace, row_products


class Aim(NamedTuple):
    """What every row is asked to do in one iteration."""

    anchor: Array
    """Array (n, d): where the input plan sends each row."""
    wanted: Array
    """Array (n, K): the output each row should have."""
    eta: float
    """Weight of the outputs, in [0, 1]."""
    unit: float = 1.0
    """What outputs are counted in."""

    @property
    def output_weight(self) -> float:
        """Cost of one squared output."""
        return self.eta / self.unit**2

    def block(self, rows: slice) -> Aim:
        """The aims of some of the rows, one after the other."""
        return self._replace(anchor=self.anchor[rows, ...], wanted=self.wanted[rows, ...])


# Outputs that differ by less, in their unit, are the same: their last bits depend on the batch.
SAME = 2.0**-40


class View(NamedTuple):
    """The rows as they are now, with the model's slope at them."""

    embedded: Array
    """Array (n, d)."""
    outputs: Array
    """Array (n, K)."""
    gradient: Array
    """Array (n, K, d): derivative of the outputs with respect to the embedding."""


def input_costs(aim: Aim, embedded: Array) -> Array:
    """The part of q_i that the inputs bear, up to a constant; leading axes broadcast."""
    away = embedded - aim.anchor
    return (1.0 - aim.eta) / embedded.shape[-1] * row_products(away, away)


def output_costs(wanted: Array, weight: float, outputs: Array) -> Array:
    """The part of q_i that the outputs bear; ``weight`` is that of an `Aim`."""
    xp = namespace(outputs)
    missed = outputs - wanted
    return weight / missed.shape[-1] * xp.sum(missed * missed, axis=-1)


def row_costs(aim: Aim, embedded: Array, outputs: Array) -> Array:
    """Cost q_i of each row, up to a constant; leading axes broadcast.

    Examples
    --------
    >>> import numpy as np
    >>> aim = Aim(anchor=np.zeros((1, 2)), wanted=np.ones((1, 1)), eta=0.5)
    >>> row_costs(aim, np.ones((1, 2)), np.zeros((1, 1)))
    array([1.])
    """
    return input_costs(aim, embedded) + output_costs(aim.wanted, aim.output_weight, outputs)


def half_gradient(aim: Aim, view: View) -> Array:
    """Half the gradient of q_i with respect to the embedding, Array (n, d)."""
    xp = namespace(view.embedded)
    d, k = view.embedded.shape[-1], view.outputs.shape[-1]
    missed = view.outputs - aim.wanted
    if k == 1:
        slope = missed * view.gradient[:, 0, :]
    else:
        slope = xp.matmul(missed[:, None, :], view.gradient)[:, 0, :]
    return (1.0 - aim.eta) / d * (view.embedded - aim.anchor) + aim.output_weight / k * slope


def cross_squares(rows: Array, others: Array) -> Array:
    """Squared distances between rows (n, d) and a few others (D, d), up to a constant per row."""
    # The square of the row itself is that constant: it does not change which other is nearest, and
    # without it there is one product of matrices and no (n, D, d) array.
    xp = namespace(rows, others)
    product = xp.matmul(rows, xp.matrix_transpose(others))
    return xp.sum(others * others, axis=-1)[None, :] - 2.0 * product
