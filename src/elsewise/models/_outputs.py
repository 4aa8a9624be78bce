"""What the solver sees of a model: its outputs, and their slope where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from elsewise._arrays import LARGEST, Array, to_numpy
from elsewise.errors import InvalidInput, ModelError

if TYPE_CHECKING:
    from elsewise.features import Encoder

# Rows a model is tried out on when it is bound.
PROBES = 32


@runtime_checkable
class Outputs(Protocol):
    """A model bound to the codes of one encoder.

    NumPy arrays go in and come out, float64; a torch model on an accelerator takes and returns
    torch tensors on its device, in the dtype of the codes.
    """

    @property
    def columns(self) -> int:
        """Number of outputs per row, K."""

    @property
    def probability(self) -> bool:
        """Whether every output lies in [0, 1] and behaves as a probability."""

    @property
    def smooth(self) -> bool:
        """Whether `values_and_gradient` is available."""

    @property
    def description(self) -> str:
        """Readable name of what is being output."""

    def place(self, codes: np.ndarray) -> Array:
        """Return codes (n, p) in the array library and on the device this model works with."""

    def precise(self, probe: np.ndarray) -> Outputs:
        """Return the model computed in double precision where it can be, for the search.

        In single precision a row's output changes in its last bits with the batch it comes in,
        and a long search would carry that on to its choices.
        """

    def values(self, codes: Array) -> Array:
        """Return the outputs (n, K) of codes (n, p)."""

    def values_and_gradient(self, codes: Array) -> tuple[Array, Array]:
        """Return outputs (n, K) and d output / d codes (n, K, p), zero where a code cannot move."""


def same_outputs(now: np.ndarray, then: np.ndarray, *, rtol: float, atol: float) -> bool:
    """Tell whether outputs (n, K) are the same up to rounding, whatever their units.

    Parameters
    ----------
    rtol
        Error allowed, relative to each output.
    atol
        Error allowed as well, relative to the largest output.

    Examples
    --------
    >>> small = np.array([[1e-9], [2e-9]])
    >>> same_outputs(small, 1.00001 * small, rtol=1e-4, atol=1e-6)
    True
    >>> same_outputs(small, 2 * small, rtol=1e-4, atol=1e-6)
    False
    """
    if now.shape != then.shape:
        return False
    largest = float(np.abs(then).max(initial=0.0))
    return bool(np.allclose(now, then, rtol=rtol, atol=atol * largest))


def refuse_changes(
    name: str, now: np.ndarray, then: np.ndarray, rows: str, allowed: float = 0.0
) -> None:
    """Refuse a model that says something else than before, beyond any rounding.

    Parameters
    ----------
    name
        The model's name, for messages.
    now, then
        Outputs (n, K) of the same rows.
    rows
        What these rows are, and how they were asked about.
    allowed
        Share of rows that may differ.

    Examples
    --------
    >>> then = np.array([[1.0], [2.0]])
    >>> refuse_changes("model", np.array([[1.00001], [2.0]]), then, "rows when asked again")
    >>> refuse_changes("model", np.array([[1.0], [2.1]]), then, "rows when asked again")
    Traceback (most recent call last):
    ...
    elsewise.errors.ModelError: model: expected the same outputs for a row whenever it is asked
    about from model, received others for 1 of 2 rows when asked again. Fix: give the model ...
    """
    slack = 1e-3 * np.abs(then) + 1e-4 * np.abs(then).max(initial=0.0)
    differ = (np.abs(now - then) > slack).any(axis=1)
    if differ.sum() > allowed * differ.size:
        expected = "the same outputs for a row whenever it is asked about"
        received = f"others for {differ.sum()} of {differ.size} {rows}"
        fix = "give the model a fixed seed, or explain the mean of several answers"
        raise unusable(name, expected, received, fix)


def scores(raw: object, rows: int, name: str, columns: int | None = None) -> np.ndarray:
    """Return what a model gave back as float64 (rows, K), or say why it cannot be used.

    Parameters
    ----------
    raw : Series, DataFrame, array or list
        One score per row, or K of them.
    rows : int
        Number of rows the model was given.
    name : str
        The model's name, for messages.
    columns : int, optional
        K, where it is already known.

    Examples
    --------
    >>> scores([True, False], rows=2, name="approve")
    array([[1.],
           [0.]])
    """
    if np.ma.is_masked(raw):
        raise unusable(name, "a number for every row", "an array of which some are masked")
    try:
        array = to_numpy(raw)
        if array.dtype.kind not in "biuf":
            if array.dtype.kind == "c" or any(isinstance(value, str) for value in array.flat):
                raise TypeError
            array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        dtype = f" of {raw.dtype}" if hasattr(raw, "dtype") else ""
        raise unusable(name, "numbers", f"{type(raw).__name__}{dtype}") from error
    if array.ndim == 1:
        array = array[:, None]
    check_shape(array.shape, rows, name, columns)
    values = array.astype(np.float64, copy=False)
    if not np.isfinite(values).all():
        broken = int((~np.isfinite(values)).any(axis=1).sum())
        raise unusable(name, "finite numbers", f"NaN or infinity in {broken} of {rows} rows")
    if np.abs(values).max(initial=0.0) > LARGEST:
        raise unusable(name, f"numbers of at most {LARGEST:g}", f"{np.abs(values).max():g}")
    return values


def check_shape(shape: Sequence[int], rows: int, name: str, columns: int | None) -> None:
    """Refuse outputs that are not (rows, K), or whose K has changed."""
    if len(shape) != 2 or shape[0] != rows or shape[1] == 0:
        received = f"shape {tuple(shape)}"
        raise unusable(name, f"one score (or K scores) for each of {rows} rows", received)
    if columns is not None and shape[1] != columns:
        raise unusable(name, f"{columns} output column(s), as before", f"{shape[1]}")


def unusable(name: str, expected: str, received: str, fix: str = "") -> ModelError:
    """Build the error for outputs that cannot be used."""
    fix = fix or "wrap the model in a function frame -> scores that returns them"
    return ModelError(f"model: expected {expected} from {name}, received {received}. Fix: {fix}.")


def not_fitted(name: str) -> ModelError:
    """Build the error for a model that was not fitted."""
    fix = "call its fit method first, and pass what was fitted"
    return ModelError(f"model: expected a fitted one, received an unfitted {name}. Fix: {fix}.")


def model_raised(name: str, error: BaseException) -> ModelError:
    """Build the error for a model that raised; raise it ``from error``."""
    if type(error).__name__ == "NotFittedError":
        return not_fitted(name)
    return ModelError(
        f"model: expected scores from {name}, received {type(error).__name__}: {error}. "
        "Fix: check that the model accepts the explained frame."
    )


def select_by_position(output: Any, columns: int) -> tuple[int, ...]:
    """Return the output columns to keep: all of them, or the one at position ``output``.

    Examples
    --------
    >>> select_by_position(None, 3), select_by_position(2, 3)
    ((0, 1, 2), (2,))
    """
    if output is None:
        return tuple(range(columns))
    number = isinstance(output, int | np.integer) and not isinstance(output, bool)
    if not (number and 0 <= output < columns):
        raise reject_output(output, f"a column number below {columns}")
    return (int(output),)


def reject_output(output: object, expected: str) -> InvalidInput:
    """Build the error for an ``output`` the model does not have."""
    return InvalidInput("output", expected, repr(output), "name one of the model's outputs")


def movable_columns(encoder: Encoder) -> np.ndarray:
    """Return which codes change continuously: bool (p,), numbers that are free or derived."""
    return np.array([f.numeric and bool(f.free or f.derived) for f in encoder.schema.features])


def probe_rows(encoder: Encoder) -> np.ndarray:
    """Return a few codes (32, p) spread over the observed ranges, the same at every call.

    A model is asked about them once, when it is bound, to learn what it returns.
    """
    rng = np.random.default_rng(0)
    columns = []
    for feature in encoder.schema.features:
        lower, upper = feature.observed
        column = lower + (upper - lower) * rng.random(PROBES)
        if feature.kind == "fixed":
            column = np.zeros(PROBES)
        elif feature.kind != "number":
            column = np.round(column)
        columns.append(column)
    return np.stack(columns, axis=1)


def known_range(outputs: Outputs) -> tuple[float, float] | None:
    """Return the ends that no output can leave: of probabilities, unless they were only guessed."""
    known = outputs.probability and not getattr(outputs, "guessed", False)
    return (0.0, 1.0) if known else None
