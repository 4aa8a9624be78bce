"""Models that read frames: decode, predict each distinct row once, check, keep the columns."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from elsewise._arrays import in_row_order
from elsewise._resources import ask_in_time, late, model_threads
from elsewise.features import hash_rows
from elsewise.models._differences import Differences
from elsewise.models._outputs import PROBES, Outputs, model_raised, refuse_changes, scores
from elsewise.models._preprocessing import Unreadable

if TYPE_CHECKING:
    from elsewise.features import Encoder


SLOW = "the pipeline is asked as it is, frame by frame, which takes longer"

Slopes = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Codes (n, p) and all outputs (n, W) to d output / d codes (n, W, p)."""


def distinct_rows(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return positions of the distinct rows and, for every row, which of them it is.

    Rows are compared through a 64-bit hash (0.4 microseconds a row); should two different rows
    share one, every row counts as distinct.

    Examples
    --------
    >>> first, which = distinct_rows(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    >>> first, which
    (array([0, 1]), array([0, 1, 0]))
    """
    codes = np.ascontiguousarray(codes + 0.0)  # -0.0 becomes 0.0
    which, keys = pd.factorize(hash_rows(codes))
    first = np.empty(len(keys), dtype=np.intp)
    first[which[::-1]] = np.arange(len(codes))[::-1]
    again = np.flatnonzero(first[which] != np.arange(len(codes)))
    if not np.array_equal(codes[again], codes[first[which[again]]], equal_nan=True):
        return np.arange(len(codes)), np.arange(len(codes))
    return first, which


def on_distinct(ask: Callable[[np.ndarray], np.ndarray], codes: np.ndarray) -> np.ndarray:
    """Return what ``ask`` says of rows (n, p), each distinct one asked about once."""
    first, which = distinct_rows(codes)
    return ask(codes) if len(first) == len(codes) else np.asarray(ask(codes[first])[which])


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameModel:
    """All outputs of a model that reads frames, as a checked function of codes."""

    name: str
    """The model's name, for messages."""
    score: Callable[[Any], object]
    """Frame (n rows) to scores."""
    encoder: Encoder
    """Decodes the codes."""
    width: int | None = None
    """Number of outputs W, once known."""
    native: bool = False
    """Whether it is asked about frames of the user's kind, not pandas."""

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        """Return the outputs (n, W) of codes (n, p)."""
        if len(codes) == 0 and self.width is not None:
            return np.zeros((0, self.width))
        return on_distinct(self._predict, codes)

    def frame(self, codes: np.ndarray) -> Any:
        """Return the frame that the model is asked about."""
        return self.encoder.present(codes) if self.native else self.encoder.decode(codes)

    def _predict(self, codes: np.ndarray) -> np.ndarray:
        try:
            with model_threads(len(codes)):
                # The model may write to its frame: each has its own codes.
                raw, _ = in_row_order(self.score, lambda: self.frame(codes.copy()))
        except (Exception, SystemExit) as error:  # a model must not end its caller
            raise model_raised(self.name, error) from error
        return scores(raw, len(codes), self.name, self.width)

    def tried(self, codes: np.ndarray) -> tuple[FrameModel, np.ndarray]:
        """Return the model with its width known, and its outputs (n, W) for rows (n, p).

        A model that says something else of a few of them when they come in another batch is
        refused. Single rows may differ: some models break ties by the last bits of arithmetic.
        """
        outputs, some = self(codes), slice(1, PROBES, 2)
        if late():
            return replace(self, width=outputs.shape[1]), outputs
        again = self(codes[some][::-1])[::-1]
        asked = "rows when asked again in a new batch"
        refuse_changes(self.name, again, outputs[some], asked, allowed=0.5)
        return replace(self, width=outputs.shape[1]), outputs


def difference_slopes(model: Callable[[np.ndarray], np.ndarray], encoder: Encoder) -> Slopes:
    """Return the slopes of a model that offers none."""
    differences = Differences.of(encoder)
    return lambda codes, outputs: differences.slopes(model, codes)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameOutputs:
    """The chosen outputs of a model that reads frames, in double precision; see `Outputs`."""

    model: Any
    """All outputs (n, W) of codes (n, p): a `FrameModel`, or what its pipeline was compiled to."""
    keep: tuple[int, ...]
    """Positions of the chosen ones."""
    slopes: Slopes | None
    """Slopes of all outputs, where there are any."""
    probability: bool
    """Whether the chosen outputs are probabilities."""
    description: str
    """Readable name of the chosen outputs."""
    compile: Callable[[FrameOutputs, np.ndarray], Outputs] | None = None
    """Makes the same outputs by arithmetic and tables, for the search; None: there are none."""
    notice: str = ""
    """Why a pipeline is asked as it is."""
    guessed: bool = False
    """Whether they are taken for probabilities by their looks on a few rows alone: that chooses
    units and words, and is no range that a certificate could use."""
    labels: tuple[Hashable, ...] = ()
    """Class of each output; nothing where outputs are no classes."""
    tried: tuple[np.ndarray, np.ndarray] | None = None
    """Codes (n, p) the model was tried out on and their outputs (n, K), not to be asked again."""
    exact: bool = False
    """Whether these are a pipeline's own outputs to rounding though it is not asked: limits on the
    way need not ask it again."""

    @property
    def columns(self) -> int:
        """Number of chosen outputs, K."""
        return len(self.keep)

    def place(self, codes: np.ndarray) -> np.ndarray:
        """Return the codes as they are."""
        return codes

    @property
    def smooth(self) -> bool:
        """Whether `values_and_gradient` is available."""
        return self.slopes is not None

    def precise(self, probe: np.ndarray) -> Outputs:
        """Return the compiled model if it says what the model says, else the model.

        A pipeline that cannot be compiled comes back with a notice that says why.
        """
        if self.compile is None:
            return self
        try:
            return self.compile(self, probe)
        except Unreadable as reason:
            return replace(self, compile=None, notice=f"{SLOW} ({reason})") if str(reason) else self

    def values(self, codes: np.ndarray) -> np.ndarray:
        """Return the outputs (n, K) of codes (n, p)."""
        if self.tried is not None and codes is self.tried[0]:
            return self.tried[1]
        ask_in_time()
        return np.asarray(self.model(codes)[:, self.keep])

    def values_of_distinct(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return distinct codes (m, p), those tried out first, and their outputs (m, K)."""
        if self.tried is None:
            return codes, self.values(codes)
        rows, outputs = self.tried
        every = np.concatenate([rows, codes])
        first, _ = distinct_rows(every)
        known, new = first[first < len(rows)], first[first >= len(rows)]
        asked = self.values(every[new]) if new.size else outputs[:0]
        return every[first], np.concatenate([outputs[known], asked])

    def values_and_gradient(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return outputs (n, K) and d output / d codes (n, K, p)."""
        if self.slopes is None:
            raise NotImplementedError(f"{self.description} has no slope")
        ask_in_time()
        values = self.model(codes)
        ask_in_time()
        return values[:, self.keep], self.slopes(codes, values)[:, self.keep]
