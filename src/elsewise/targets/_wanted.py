"""The set of outputs in which a row counts as being where the question wants it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

EDGE = 1e-12
"""Probabilities are kept this far from 0 and 1 before their logit is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Outputs between two ends column by column, or one class ahead of the others.

    Examples
    --------
    >>> passing = Wanted(lower=(0.5,))
    >>> outputs = np.array([[0.4], [0.5]])
    >>> passing.contains(outputs), passing.opposite().contains(outputs)
    (array([False,  True]), array([ True, False]))
    """

    lower: tuple[float, ...] = ()
    """Smallest wanted output of each column, -inf where there is none."""
    upper: tuple[float, ...] = ()
    """Largest wanted output of each column."""
    column: int | None = None
    """The class that is to be the most likely, in the place of ends."""
    outside: bool = False
    """Whether the wanted outputs are all those that the other fields do not describe."""

    def check(self, columns: int) -> None:
        """Refuse a set, read from a file, that is not one of outputs of so many columns."""
        fit = all(len(ends) in (0, 1, columns) for ends in (self.lower, self.upper))
        if not fit or not (self.column is None or 0 <= self.column < columns > 1):
            raise ValueError(f"wanted outputs that do not fit {columns} columns")

    def opposite(self) -> Wanted:
        """Return the outputs that are not wanted."""
        return replace(self, outside=not self.outside)

    def contains(self, outputs: np.ndarray) -> np.ndarray:
        """Return, bool (n,), which of the outputs (n, K) are wanted."""
        if self.column is not None:
            # Strictly: of two classes that tie, neither is the most likely.
            inside = outputs[:, self.column] > self._best_rival(outputs)
        else:
            lower, upper = self._ends(outputs.shape[1])
            inside = np.all((outputs >= lower) & (outputs <= upper), axis=1)
        return inside ^ self.outside

    def margins(self, outputs: np.ndarray, probability: bool) -> np.ndarray:
        """Return how far inside each row is, (n,), negative outside; logits for probabilities.

        On the logit scale the effects of single changes nearly add up for most classifiers.
        """
        return self._signed(self._gaps(outputs, probability).min(axis=1))

    def slopes(self, outputs: np.ndarray, gradient: np.ndarray, probability: bool) -> np.ndarray:
        """Return the gradient (n, p) of the margins, from that (n, K, p) of the outputs."""
        rows = np.arange(len(outputs))
        scaled = gradient * _link_slope(outputs, self._logit(probability))[:, :, None]
        if self.column is not None:
            others = np.delete(np.arange(outputs.shape[1]), self.column)
            # The strongest of the other classes where the row is now; along a step another may take
            # over.
            rival = others[np.argmax(outputs[:, others], axis=1)]
            return self._signed(scaled[:, self.column, :] - scaled[rows, rival, :])
        # The slope of a minimum is that of its smallest part. The first K gaps rise with the
        # output, the last K fall with it.
        binding = np.argmin(self._gaps(outputs, probability), axis=1)
        columns = outputs.shape[1]
        sign = np.where(binding < columns, 1.0, -1.0)
        return self._signed(sign[:, None] * scaled[rows, binding % columns, :])

    def _signed(self, values: np.ndarray) -> np.ndarray:
        return -values if self.outside else values

    def _logit(self, probability: bool) -> str:
        """The scale of margins: logits, logarithms where a class competes with others, or none."""
        if not probability:
            return "none"
        return "logit" if self.column is None else "log"

    def _gaps(self, outputs: np.ndarray, probability: bool) -> np.ndarray:
        """Room to each end, (n, 2 K), or the lead of the class, (n, 1)."""
        scale = self._logit(probability)
        if self.column is not None:
            own, rival = outputs[:, [self.column]], self._best_rival(outputs)[:, None]
            return np.asarray(_link(own, scale) - _link(rival, scale))
        lower, upper = self._ends(outputs.shape[1])
        here = _link(outputs, scale)
        return np.concatenate([here - _link(lower, scale), _link(upper, scale) - here], axis=1)

    def _ends(self, columns: int) -> tuple[np.ndarray, np.ndarray]:
        lower = np.broadcast_to(self.lower or (-np.inf,), (columns,))
        return lower, np.broadcast_to(self.upper or (np.inf,), (columns,))

    def _best_rival(self, outputs: np.ndarray) -> np.ndarray:
        others = np.arange(outputs.shape[1]) != self.column
        return np.asarray(outputs[:, others].max(axis=1))


def _link(values: np.ndarray, scale: str) -> np.ndarray:
    if scale == "none":
        return values
    inner = np.clip(values, EDGE, 1.0 - EDGE)
    found = np.log(inner) - (np.log1p(-inner) if scale == "logit" else 0.0)
    # An end that is infinite stays so, whatever the scale.
    return np.asarray(np.where(np.isinf(values), values, found))


def _link_slope(values: np.ndarray, scale: str) -> np.ndarray:
    if scale == "none":
        return np.ones_like(values)
    inner = np.clip(values, EDGE, 1.0 - EDGE)
    return np.asarray(1.0 / (inner * (1.0 - inner) if scale == "logit" else inner))
