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

import numpy as np

from elsewise._arrays import Array, device_of, multiply_add, namespace, row_products, to_numpy

STEP_LENGTHS = (1.0, 0.25)

LINK_FRACTIONS = (0.5, 1.0)

SMOOTH_OFFERS = (*STEP_LENGTHS, *LINK_FRACTIONS)
"""At most this many proposals come from a model's slope."""

# Steps are multiples of this share of a standard deviation.
GRID = 2.0**-33

# Probabilities are kept this far from 0 and 1 before their logit is taken.
LINK_MARGIN = 1e-3

# Over the largest number: the least squared slope that a gap of logits is divided by.
FLATTEST = 1e9

# Outputs that differ by less, in their unit, are the same: their last bits depend on the batch.
SAME = 2.0**-40


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


def descent_step(aim: Aim, view: View, tau: float) -> Array:
    """Return the paper's step, -tau grad Q (eq. 15) in Otto's geometry, line 9, Array (n, d).

    Otto's gradient is n times the Euclidean one, so tau does not depend on n.
    """
    return -2.0 * tau * half_gradient(aim, view)


def gauss_newton_steps(aim: Aim, view: View, damping: float) -> list[Array]:
    """Minimize q_i with the model linearized, and shorter versions of that step.

    Solves ((1 - eta)/d I + eta/(K u^2) G'G + damping I) step = -half gradient by Woodbury's
    identity: only a K x K system a row.
    """
    xp = namespace(view.embedded)
    d, k = view.embedded.shape[-1], view.outputs.shape[-1]
    ridge = (1.0 - aim.eta) / d + damping
    weight = aim.output_weight / k
    slope = view.gradient
    if k == 1:
        # The same with all of it multiplied out: a step along the slope and one to the anchor.
        pull = (1.0 - aim.eta) / d
        g, away, missed = slope[:, 0, :], view.embedded - aim.anchor, view.outputs - aim.wanted
        steepness, sideways = row_products(g, g), row_products(g, away)
        along = (pull * sideways - ridge * missed[:, 0]) / (ridge + weight * steepness)
        # Slopes that overflow give no direction: such a row is only drawn to its anchor.
        along = xp.where(xp.isfinite(along), along, 0.0)
        step = multiply_add(away * (-pull / ridge), g, (weight / ridge * along)[:, None])
    else:
        right = -half_gradient(aim, view)
        gram = xp.matmul(slope, xp.matrix_transpose(slope))
        identity = xp.eye(k, dtype=gram.dtype, device=device_of(gram))
        across = xp.matmul(slope, right[:, :, None])
        # (r I + w G'G)^-1 v = (v - w G' (r I + w G G')^-1 G v) / r: K x K instead of d x d.
        inner = xp.linalg.solve(ridge * identity + weight * gram, across)
        step = (right - weight * xp.matmul(xp.matrix_transpose(slope), inner)[:, :, 0]) / ridge
        step = xp.where(xp.isfinite(step), step, 0.0)
    return [step if length == 1.0 else length * step for length in STEP_LENGTHS]


def link_steps(aim: Aim, view: View) -> list[Array]:
    """Move along the slope on the logit scale: these leave the flat part of a sigmoid.

    For one probability output; each step closes a fraction of the gap logit s - logit b.
    """
    xp = namespace(view.embedded)
    probability = xp.clip(view.outputs[:, 0], LINK_MARGIN, 1.0 - LINK_MARGIN)
    goal = xp.clip(aim.wanted[:, 0], LINK_MARGIN, 1.0 - LINK_MARGIN)
    variance = probability * (1.0 - probability)
    slope = view.gradient[:, 0, :]
    # Where it is so flat that a step would overflow, a step goes as far as there are numbers.
    flattest = FLATTEST / xp.finfo(slope.dtype).max
    steepness = xp.clip(row_products(slope, slope), flattest, None)
    gap = xp.log(goal / (1.0 - goal)) - xp.log(probability / (1.0 - probability))
    # The logit's slope is the probability's over the variance.
    length = variance * gap / steepness
    return [(fraction * length)[:, None] * slope for fraction in LINK_FRACTIONS]


def on_grid(steps: Array) -> Array:
    """Round steps of the embedding to a fine grid.

    The last bits of a matrix product depend on the batch a row comes in; rounding lets them die
    out instead of growing from step to step. A step of less than half the grid is none. Single
    precision has no such digits to spare, so there steps stay as they are.

    Examples
    --------
    >>> on_grid(np.array([1.0 + 1e-13, 1e-13]))
    array([1., 0.])
    """
    xp = namespace(steps)
    if xp.finfo(steps.dtype).eps > GRID:
        return steps
    return xp.round(steps * (1.0 / GRID)) * GRID


def smooth_steps(aim: Aim, view: View, *, probability: bool) -> list[Array]:
    """Steps of the embedding from every source that uses a gradient."""
    steps = gauss_newton_steps(aim, view, damping=1e-3 / view.embedded.shape[-1])
    if probability and view.outputs.shape[-1] == 1:
        steps += link_steps(aim, view)
    return steps


def row_noise(codes: Array, seed: int, size: int) -> np.ndarray:
    """Gaussian noise (n, size) that is a function of each row's own values.

    The paper starts from x' + noise; drawing the noise from a hash of the row keeps the start a
    map: equal rows start equal, whatever batch they come in.

    Examples
    --------
    >>> rows = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])
    >>> noise = row_noise(rows, seed=0, size=3)
    >>> bool((noise[0] == noise[2]).all()), bool((noise[0] == noise[1]).any())
    (True, False)
    """
    bits = np.ascontiguousarray(to_numpy(codes), dtype=np.float64).view(np.uint64)
    key = np.full(bits.shape[0], seed % 2**63, dtype=np.uint64)
    # Hashed column by column: two rows that differ in one bit of one cell get unrelated noise.
    for column in bits.T:
        key = _mix(key ^ column)
    columns = np.arange(2 * size, dtype=np.uint64)
    words = _mix(key[:, None] + columns[None, :] * np.uint64(0x9E3779B97F4A7C15))
    # 53 bits make a double in (0, 1); the half keeps the logarithm below away from 0.
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    # Box and Muller: two uniforms make one normal, without rejection, so that the count is fixed.
    radius = np.sqrt(-2.0 * np.log(uniform[:, :size]))
    return np.asarray(radius * np.cos(2.0 * np.pi * uniform[:, size:]))


def _mix(words: np.ndarray) -> np.ndarray:
    """SplitMix64's finalizer (Steele, Lea and Flood, 2014), wrapping around at 2^64."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)))
