"""Any function frame -> scores as a model, with or without its own gradient."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from elsewise._resources import late
from elsewise.errors import InvalidInput, ModelError
from elsewise.features import to_pandas
from elsewise.models._differences import Differences, looks_smooth
from elsewise.models._frames import FrameModel, FrameOutputs, Slopes, difference_slopes
from elsewise.models._outputs import (
    PROBES,
    model_raised,
    movable_columns,
    select_by_position,
    unusable,
)

if TYPE_CHECKING:
    from elsewise.features import Encoder


Score = Callable[[pd.DataFrame], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionModel:
    """A function frame -> scores and what is known about it; made by `function`."""

    values: Score
    """Frame (n rows) to scores (n,) or (n, K)."""
    gradient: Score | None = None
    """Frame to slopes, see `function`."""
    smooth: bool | None = None
    """Whether finite differences make sense; None: find out."""
    probability: bool | None = None
    """Whether the scores are probabilities; None: whether they look like it."""


def function(
    values: Score,
    gradient: Score | None = None,
    *,
    smooth: bool | None = None,
    probability: bool | None = None,
) -> FunctionModel:
    """Describe a function frame -> scores, to be explained as a model.

    Parameters
    ----------
    values : callable
        Takes a DataFrame of n rows and returns scores (n,) or (n, K): Series, DataFrame, array or
        list. A row's score must not depend on the other rows.
    gradient : callable, optional
        Takes the same frame and returns slopes: an array (n, q), or (n, K, q), over the q numeric
        columns in frame order, or a DataFrame or dict from column name to slopes (n,) or (n, K).
        Columns left out have slope 0.
    smooth : bool, optional
        Without a gradient: whether slopes may be taken by finite differences. By default a few
        rows decide: one and two steps must give the same slopes.
    probability : bool, optional
        Whether every score is a probability, which certificates may rely on. By default scores
        that lie in [0, 1] on a few rows are shown as probabilities, and nothing relies on it.

    Returns
    -------
    FunctionModel
        To be passed as ``model``.

    Examples
    --------
    >>> income = function(lambda frame: 15.0 * frame["hours"], smooth=True)
    >>> income.values(pd.DataFrame({"hours": [1.5, 2.0]})).tolist()
    [22.5, 30.0]
    """
    own = values if gradient is None else gradient
    for argument, given in (("values", values), ("gradient", own)):
        if not callable(given):
            expected, fix = "a function that takes a DataFrame", "pass the function itself"
            raise InvalidInput(argument, expected, type(given).__name__, fix)
    if gradient is not None and smooth is False:
        fix = "leave out gradient or smooth"
        raise InvalidInput("smooth", "True or None beside a gradient", "False", fix)
    return FunctionModel(values=values, gradient=gradient, smooth=smooth, probability=probability)


def bind_function(
    model: FunctionModel, encoder: Encoder, output: Hashable | None, probe: np.ndarray
) -> FrameOutputs:
    """Return the outputs of a function on the codes of ``encoder``."""
    name = getattr(model.values, "__name__", type(model.values).__name__)
    asked = FrameModel(name=name, score=model.values, encoder=encoder, native=True)
    evaluate, first = asked.tried(probe)
    keep = select_by_position(output, first.shape[1])
    kept = first[:PROBES, keep]
    inside = bool((kept >= 0).all() and (kept <= 1).all() and ((kept > 0) & (kept < 1)).any())
    return FrameOutputs(
        model=evaluate,
        keep=keep,
        slopes=_slopes(model, evaluate, probe[:PROBES]),
        probability=inside if model.probability is None else model.probability,
        guessed=model.probability is None,
        description=name if len(keep) == first.shape[1] else f"{name}, output {keep[0]}",
        tried=(probe, first[:, keep]),
    )


def _slopes(model: FunctionModel, evaluate: FrameModel, probe: np.ndarray) -> Slopes | None:
    if model.gradient is not None:
        gradient = model.gradient
        return lambda codes, outputs: _own_slopes(gradient, evaluate, codes, outputs.shape[1])
    smooth = model.smooth
    if smooth is None and not late():
        # A model that refuses rows a step away has no use for differences.
        with suppress(ModelError):
            smooth = looks_smooth(Differences.of(evaluate.encoder), evaluate, probe)
    return difference_slopes(evaluate, evaluate.encoder) if smooth else None


def _own_slopes(gradient: Score, model: FrameModel, codes: np.ndarray, outputs: int) -> np.ndarray:
    """Return the user's slopes as (n, W, p), checked, zero where a code cannot move."""
    features = model.encoder.schema.features
    name = getattr(gradient, "__name__", type(gradient).__name__)
    frame = model.frame(codes.copy())
    try:
        raw = gradient(frame)
    except (Exception, SystemExit) as error:
        raise model_raised(name, error) from error
    n, numeric = len(codes), [j for j, f in enumerate(features) if f.kind in ("number", "integer")]
    slopes = np.zeros((n, outputs, len(features)))
    try:
        table = None if isinstance(raw, np.ndarray) else to_pandas(raw)[0]
        if isinstance(table, Mapping | pd.DataFrame):
            places = {f.name: j for j, f in enumerate(features)}
            for column in table:
                slopes[:, :, places[column]] = np.asarray(table[column]).reshape(n, outputs)
        else:
            slopes[:, :, numeric] = np.asarray(raw).reshape(n, outputs, len(numeric))
    except KeyError as error:
        raise unusable(name, "slopes of columns of the frame", f"column {error}") from error
    except (TypeError, ValueError) as error:
        shape = (n, len(numeric)) if outputs == 1 else (n, outputs, len(numeric))
        raise unusable(name, f"slopes of shape {shape}", f"{np.shape(raw)}") from error
    slopes = np.where(movable_columns(model.encoder), slopes, 0.0)
    if not np.isfinite(slopes).all():
        raise unusable(name, "finite slopes", "NaN or infinity")
    return slopes
