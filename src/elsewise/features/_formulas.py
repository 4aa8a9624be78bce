"""What the rules and the derived columns of a schema say of rows in codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api import types

from elsewise._arrays import in_row_order
from elsewise.errors import InvalidInput
from elsewise.features._expressions import Expression
from elsewise.features._feature import Feature, Formula, Kind, Rule

Codes = np.ndarray
Decode = Callable[[Codes], Any]
"""Codes (n, p) to the frame that functions of the user are asked about."""
Compute = Callable[[Codes], np.ndarray]
# A derived cell that agrees with its formula to so many digits was made by it: files round.
AGREES = 1e-6


class Made(NamedTuple):
    """A derived column."""

    place: int
    """Its position among the columns."""
    feature: Feature
    compute: Compute

    def values(self, codes: Codes) -> np.ndarray:
        """Return its cells, float64 (n,), for codes (n, p); NaN where they are unknown."""
        values = self.compute(codes)
        if self.feature.kind is not Kind.INTEGER and not self.feature.resolution:
            return values
        over, times = self.feature.grid if self.feature.resolution else (1.0, 1.0)
        rounded: np.ndarray = np.rint(values * (times / over)) * over / times
        return rounded

    def agree(self, codes: Codes, values: np.ndarray) -> np.ndarray:
        """Return, bool (n,), the rows whose cell is what the formula gives, or missing with it."""
        cells = codes[:, self.place]
        near = np.abs(cells - values) <= AGREES * np.maximum(np.abs(cells), np.abs(values))
        agrees: np.ndarray = near | (np.isnan(cells) & np.isnan(values))
        return agrees

    def legal(self, codes: Codes) -> np.ndarray:
        """Return, bool (n,), the rows whose cell agrees with its formula and is in its range."""
        low, high = self.feature.declared or (-np.inf, np.inf)
        cells = codes[:, self.place]
        inside = ((cells >= low) & (cells <= high)) | np.isnan(cells)
        legal: np.ndarray = inside & self.agree(codes, self.values(codes))
        return legal


def derive(columns: Sequence[Made], codes: Codes, given: np.ndarray) -> Codes:
    """Return codes (n, p) whose derived cells are what their formulas give.

    Cells that agree stay as they are, bit for bit, and so do rows that came so (``given``, their
    hashes): they break a formula themselves. A cell that cannot be computed keeps its value, for
    `Made.legal` to refuse the row.
    """
    codes = codes.copy()
    moved = ~np.isin(row_hashes(codes), given) if given.size else np.ones(len(codes), dtype=bool)
    for made in columns:
        values = made.values(codes)
        anew = moved & np.isfinite(values) & ~made.agree(codes, values)
        codes[anew, made.place] = values[anew]
    return codes


def row_hashes(codes: Codes) -> np.ndarray:
    """Return a 64-bit hash of each row of codes (n, p), the same in either precision.

    Examples
    --------
    >>> one, same, other = row_hashes(np.array([[0.1, 2.0], [np.float32(0.1), 2.0], [2.0, 0.1]]))
    >>> bool(one == same), bool(one == other)
    (True, False)
    """
    single = codes.astype(np.float32).astype(np.float64) + 0.0  # -0.0 becomes 0.0
    return hash_rows(single)


def hash_rows(codes: Codes) -> np.ndarray:
    """Return the hash uint64 (n,) of the bits of each row (n, p)."""
    odd = 2 * np.arange(1, codes.shape[1] + 1, dtype=np.uint64) + 1
    cells = pd.util.hash_array(np.ascontiguousarray(codes).reshape(-1), categorize=False)
    hashes: np.ndarray = (cells.reshape(codes.shape) * odd).sum(axis=1, dtype=np.uint64)
    return hashes


def derived_columns(features: Sequence[Feature], decode: Decode) -> tuple[Made, ...]:
    """Return the derived columns among the features; ``decode`` makes the frames of functions."""
    found = []
    for place, feature in enumerate(features):
        if (formula := feature.derived) is not None:
            said = f"formula of {feature.name!r}"
            compute = _computed(said, formula, features, decode, truth=False)
            found.append(Made(place, feature, compute))
    return tuple(found)


def rule_test(rule: Rule, features: Sequence[Feature], decode: Decode) -> Compute:
    """Return what a rule says of rows, codes (n, p) to bool (n,); an unknown answer is a no."""
    values = _computed(f"rule {rule.name!r}", rule.condition, features, decode, truth=True)
    return lambda codes: values(codes) == 1.0


def _computed(
    argument: str, formula: Formula, features: Sequence[Feature], decode: Decode, truth: bool
) -> Compute:
    """Return what a text or a function says of codes (n, p): truth, or float64 (n,)."""
    if isinstance(formula, str):
        return Expression.parse(formula, features, argument).values  # noqa: PD011
    return _Function(argument, formula, decode, truth).answers


class _Function(NamedTuple):
    """A function of a frame, which answers every row."""

    argument: str
    """How messages call it."""
    function: Callable[[Any], Any]
    decode: Decode
    truth: bool
    """Whether it says yes or no; otherwise it gives a number."""

    def answers(self, codes: Codes) -> np.ndarray:
        """Return the answers in the order of the rows, codes (n, p), one that fits each."""
        argument, function, decode, truth = self
        try:
            # Each function has a frame of its own: one that writes to it cannot disturb the next.
            answer, own_index = in_row_order(function, lambda: decode(codes.copy()))
        except (Exception, SystemExit) as error:
            expected, received = "a function of the frame", f"{type(error).__name__}: {error}"
            fix = "call the function on a frame of yours to see where it fails"
            if isinstance(error, KeyError):
                expected, received = "a function of columns of the frame", f"one that reads {error}"
                fix = "correct the name, or give the frame that column"
            raise InvalidInput(argument, expected=expected, received=received, fix=fix) from error
        if own_index:
            expected, received = "a Series with the frame's index", "one with an index of its own"
            fix = "return an array, or keep the frame's index, in any order"
            raise InvalidInput(argument, expected=expected, received=received, fix=fix)
        plain = answer if hasattr(answer, "reindex") else np.asarray(answer)
        found = pd.Series(plain) if np.ndim(plain) == 1 else pd.Series(dtype=object)
        fits = types.is_bool_dtype if truth else types.is_numeric_dtype
        if len(found) != len(codes) or not fits(found.dtype):
            wanted, kind = "booleans" if truth else "numbers", type(answer).__name__
            expected = f"{len(codes)} {wanted}, one per row"
            received = f"{np.shape(answer)} of {getattr(answer, 'dtype', kind)}"
            fix = "return arithmetic or a comparison of columns, such as frame['a'] <= frame['b']"
            raise InvalidInput(argument, expected=expected, received=received, fix=fix)
        if truth:
            return found.to_numpy(dtype=bool, na_value=False)
        return found.to_numpy(dtype=np.float64, na_value=np.nan)
