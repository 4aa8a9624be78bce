"""Slopes of a model that offers none: central differences between rows it could meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from elsewise.features import Encoder

from elsewise._resources import late
from elsewise.models._outputs import movable_columns

Evaluate = Callable[[np.ndarray], np.ndarray]

# Step in standard deviations: float64 models lose 1e-7, float32 models keep four digits.
RELATIVE_STEP = 1e-3
# Rows evaluated at a time.
BATCH = 65536
# Cells of them at most, 64 MiB: rows may be long.
CELLS = 1 << 23
# Cells of all rows that tell whether a model is smooth; two rows at least.
JUDGED = 1 << 27


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Central differences over the free numeric columns of one encoder.

    The two neighbours of a cell stay inside the feature's range (one-sided at its ends), and
    integers are differenced over whole numbers: a model never sees a row it could not meet.
    """

    columns: np.ndarray
    """Positions of the q columns, int (q,)."""
    lower: np.ndarray
    """Lower ends of their ranges, (q,)."""
    upper: np.ndarray
    """Upper ends, (q,)."""
    scale: np.ndarray
    """Standard deviations, (q,)."""
    whole: np.ndarray
    """Which of them are integers, bool (q,)."""

    @classmethod
    def of(cls, encoder: Encoder) -> Differences:
        """Read columns, ranges and scales from the encoder's schema."""
        columns = np.flatnonzero(movable_columns(encoder))
        features = [encoder.schema.features[j] for j in columns]
        observed = np.array([f.observed for f in features]).reshape(-1, 2)
        declared = np.array([f.declared or f.observed for f in features]).reshape(-1, 2)
        lower, upper = np.where(np.isfinite(declared), declared, observed).T
        return cls(
            columns=columns,
            lower=lower,
            upper=upper,
            scale=np.array([f.scale for f in features]),
            whole=np.array([f.kind == "integer" for f in features], dtype=bool),
        )

    def neighbours(self, codes: np.ndarray, factor: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper neighbour of each cell, (n, q) each."""
        cells = codes[:, self.columns]
        # Far from zero the step must survive rounding of the cell, to float32 if need be.
        step = np.clip(1e-6 * np.abs(cells), RELATIVE_STEP * self.scale, 0.1 * self.scale)
        step = factor * np.where(self.whole, 1.0, step)
        below = np.maximum(cells - step, np.minimum(self.lower, cells))
        above = np.minimum(cells + step, np.maximum(self.upper, cells))
        return below, above

    def slopes(self, evaluate: Evaluate, codes: np.ndarray, factor: int = 1) -> np.ndarray:
        """Return d output / d codes (n, K, p); a missing cell has slope 0."""
        n, q = len(codes), len(self.columns)
        asked = max(2, min(BATCH, CELLS // max(1, codes.shape[1])))
        chunk = max(1, min(q, asked // 2))  # columns at a time: all of them, unless rows are long
        rows = max(1, asked // (2 * chunk))
        gradient: np.ndarray | None = None
        for start in range(0, max(1, n), rows):
            for first in range(0, max(1, q), chunk):
                some, columns = slice(start, start + rows), np.arange(first, min(first + chunk, q))
                slope = self._slopes(evaluate, codes[some], columns, factor)
                if gradient is None:
                    gradient = np.zeros((n, slope.shape[1], codes.shape[1]))
                gradient[some, :, self.columns[columns]] = slope
        assert gradient is not None
        return gradient

    def _slopes(
        self, evaluate: Evaluate, codes: np.ndarray, places: np.ndarray, factor: int
    ) -> np.ndarray:
        """Return the slopes (n, K, c) along some of the columns, int (c,)."""
        n, count = len(codes), len(places)
        below, above = (ends[:, places] for ends in self.neighbours(codes, factor))
        moved = np.repeat(codes[None], 2 * count, axis=0).reshape(2, count, n, codes.shape[1])
        for j, column in enumerate(self.columns[places]):
            moved[0, j, :, column] = below[:, j]
            moved[1, j, :, column] = above[:, j]
        outputs = evaluate(moved.reshape(2 * count * n, codes.shape[1]))
        outputs = outputs.reshape(2, count, n, outputs.shape[1])
        width = (above - below).T[:, :, None]
        known = width > 0  # neither missing nor a range of one value
        slope = np.where(known, outputs[1] - outputs[0], 0.0) / np.where(known, width, 1.0)
        return np.asarray(np.moveaxis(slope, 0, 2))


def looks_smooth(differences: Differences, evaluate: Evaluate, codes: np.ndarray) -> bool:
    """Judge from a few rows whether differences over one and two steps measure the same slope.

    A heuristic: where a step function moves at all, doubling the step changes the quotient, so
    most of the cells that move must agree to a fifth. Of very long rows, fewer are asked about.
    """
    codes = codes[: max(2, JUDGED // max(1, 4 * len(differences.columns) * codes.shape[1]))]
    near = differences.slopes(evaluate, codes, factor=1)[:, :, differences.columns]
    if late():
        return False
    far = differences.slopes(evaluate, codes, factor=2)[:, :, differences.columns]
    (below, above), (lowest, highest) = (differences.neighbours(codes, f) for f in (1, 2))
    doubled = ((highest - lowest) > 1.5 * (above - below))[:, None, :]
    near, far = near * differences.scale, far * differences.scale
    size = np.maximum(np.abs(near), np.abs(far))
    moves = doubled & (size > 1e-3 * size.max(initial=0.0))
    agree = np.abs(near - far) <= 0.2 * size
    return bool(moves.any() and agree[moves].mean() >= 0.75)
