"""Models under explanation.

torch modules; estimators and pipelines of scikit-learn, XGBoost, LightGBM and CatBoost; native
boosters; results of statsmodels; any function of a frame.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from elsewise.errors import InvalidInput
from elsewise.models._adapters import is_estimator
from elsewise.models._compiled import linear_margin
from elsewise.models._derived import DerivedOutputs, settled
from elsewise.models._estimators import EstimatorModel, bind_estimator, estimator
from elsewise.models._functions import FunctionModel, bind_function, function
from elsewise.models._outputs import (
    PROBES,
    Outputs,
    known_range,
    probe_rows,
    refuse_changes,
    same_outputs,
)
from elsewise.models._torch import TorchModel, bind_torch, is_torch_module, torch_model

if TYPE_CHECKING:
    from elsewise.features import Encoder

__all__ = [
    "Outputs",
    "bind",
    "bind_for_search",
    "estimator",
    "function",
    "known_range",
    "linear_margin",
    "refuse_changes",
    "same_outputs",
    "settled",
    "torch_model",
]

# Of each kind of model: how it is told, described and, once described, bound.
KINDS: tuple[tuple[Any, Any, type, Callable[..., Outputs]], ...] = (
    (is_torch_module, torch_model, TorchModel, bind_torch),
    (is_estimator, estimator, EstimatorModel, bind_estimator),
    (callable, function, FunctionModel, bind_function),
)


def bind(
    model: Any, encoder: Encoder, *, output: Hashable | None = None, probe: np.ndarray | None = None
) -> Outputs:
    """Return a model's outputs as a function of the codes of ``encoder``.

    Parameters
    ----------
    model : torch.nn.Module, fitted estimator, booster or results, function, or Outputs
        A function takes a frame and returns scores. What `torch_model`, `estimator` and
        `function` return says more about a model. Outputs already bound come back as they are.
    encoder : Encoder
        Translates between the frame and its codes.
    output : class label or int, optional
        Which output to explain: a class label of a classifier, else a column number.
    probe : ndarray (m, p), optional
        Codes of rows, the first 32 of which the model is tried out on; by default 32 rows spread
        over the observed ranges.

    Examples
    --------
    >>> import pandas as pd
    >>> from elsewise.features import Schema
    >>> frame = pd.DataFrame({"hours": [1.5, 2.0, 4.5], "wage": [10.0, 12.5, 20.0]})
    >>> encoder = Schema.infer(frame).encoder(frame)
    >>> outputs = bind(lambda frame: frame["hours"] * frame["wage"], encoder)
    >>> outputs.values(encoder.encode(frame))
    array([[15.],
           [25.],
           [90.]])
    """
    probe = probe_rows(encoder) if probe is None else probe[:PROBES]
    return _bound(model, encoder, output, probe)


def bind_for_search(
    model: Any,
    encoder: Encoder,
    probe: np.ndarray,
    background: np.ndarray | None = None,
    *,
    whole: bool = False,
) -> tuple[Outputs, Outputs]:
    """Return a model's outputs as it gives them, and in double precision for the search.

    They are one and the same where a pipeline can only be asked as it is: whether they are decides
    how ways are checked, so that every batch of rows has to be read in the same way.

    Parameters
    ----------
    model, encoder, probe
        As for `bind`.
    background
        More codes (m, p) that the search asks about.
    whole
        Whether the outputs of all of ``probe`` are wanted next: the model is tried out on all of it
        then, and keeps what it said.
    """
    outputs = _bound(model, encoder, None, probe if whole else probe[:PROBES])
    # Only what a pipeline was compiled to is compared with it on every row; others on a few.
    few = background is None or getattr(outputs, "compile", None) is None
    every = probe if few else np.concatenate([probe, background])
    precise = outputs.precise(every)
    return (precise if getattr(precise, "notice", "") else outputs), precise


def _bound(model: Any, encoder: Encoder, output: Hashable | None, probe: np.ndarray) -> Outputs:
    """Return the outputs of whatever kind of model it is, with derived columns computed anew."""
    if isinstance(model, Outputs) and not isinstance(model, type):
        return model
    for is_one, describe, description, bind_one in KINDS:
        if not isinstance(model, type) and is_one(model):
            model = describe(model)
        if isinstance(model, description):
            outputs = bind_one(model, encoder, output, probe)
            return DerivedOutputs(outputs, encoder) if encoder.made else outputs
    expected = "a torch module, a fitted estimator or a function frame -> scores"
    received = repr(model) if isinstance(model, type) else type(model).__name__
    fix = "pass the fitted model itself, or wrap its predictions in a function"
    raise InvalidInput("model", expected, received, fix)
