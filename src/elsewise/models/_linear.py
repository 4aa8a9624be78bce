"""scikit-learn's linear models as what they are, also behind affine scalers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, softmax

from elsewise.models._outputs import ArrayOutputs

# Base classes of regressors whose predict is ``X @ coef_.T + intercept_``.
REGRESSORS = frozenset({"LinearModel", "BaseSGDRegressor"})
# Base class of classifiers whose decision_function is ``X @ coef_.T + intercept_``.
MARGINS = frozenset({"LinearClassifierMixin"})
# Classifiers whose predict_proba is the softmax of the decision function.
LOGISTIC = frozenset({"LogisticRegression", "LogisticRegressionCV"})


def steps(estimator: Any) -> list[Any]:
    """Return the fitted steps of a pipeline, or the estimator itself as the only step."""
    named = getattr(estimator, "steps", None)
    if named is None:
        return [estimator]
    return [step for _, step in named if step is not None and not isinstance(step, str)]


def has_base(estimator: Any, names: frozenset[str]) -> bool:
    """Tell whether an estimator's class is, or is derived from, one of these names."""
    return not names.isdisjoint(base.__name__ for base in type(estimator).__mro__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearForm:
    """Outputs that are ``X @ weights.T + offsets``, or the link of it."""

    weights: np.ndarray
    """ndarray (W, m)."""
    offsets: np.ndarray
    """ndarray (W,)."""
    link: str
    """"affine" (none), "softmax" across the outputs, or "logistic" of each."""

    def values(self, inputs: np.ndarray) -> np.ndarray:
        """Return the outputs (n, W) of inputs (n, m)."""
        margins: np.ndarray = inputs @ self.weights.T + self.offsets
        return LINKS[self.link](margins)

    def slopes(self, outputs: np.ndarray) -> np.ndarray:
        """Return d output / d inputs (n, W, m), given the outputs (n, W)."""
        if self.link == "affine":
            return np.broadcast_to(self.weights, (len(outputs), *self.weights.shape))
        if self.link == "logistic":
            steep: np.ndarray = (outputs * (1.0 - outputs))[:, :, None] * self.weights
            return steep
        # d p_k / d x = p_k (w_k - sum_j p_j w_j)
        tilt = self.weights - (outputs @ self.weights)[:, None, :]
        slopes: np.ndarray = outputs[:, :, None] * tilt
        return slopes

    def of_outputs(self, keep: tuple[int, ...]) -> tuple[LinearForm, tuple[int, ...]]:
        """Return a form that makes the outputs ``keep``, and where they are among its own.

        One output of a softmax of two is what it is, logistic.
        """
        if self.link != "softmax" or len(self.weights) != 2 or len(keep) != 1:
            return self, keep
        signs = np.array([1.0, -1.0]) if keep == (0,) else np.array([-1.0, 1.0])
        weights, offsets = (signs @ self.weights)[None, :], (signs @ self.offsets)[None]
        return LinearForm(weights=weights, offsets=offsets, link="logistic"), (0,)


LINKS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "affine": lambda margins: margins,
    "softmax": lambda margins: np.asarray(softmax(margins, axis=1)),
    "logistic": lambda margins: np.asarray(expit(margins)),
}


def linear_form(estimator: Any, method: str) -> LinearForm | None:
    """Return the linear form of a fitted estimator or pipeline; None for any other model.

    Parameters
    ----------
    estimator : estimator or pipeline
        Fitted.
    method : str
        "predict_proba", "decision_function" or "predict", whichever makes the outputs. A binary
        decision function counts as two outputs, minus and plus itself.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> model = LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0])
    >>> linear_form(model, "predict").slopes(np.zeros((1, 1)))
    array([[[2.]]])
    """
    *before, final = steps(estimator)
    scalers = [scaler for step in before if (scaler := _affine(step)) is not None]
    coefficients = getattr(final, "coef_", None)
    if not isinstance(coefficients, np.ndarray) or len(scalers) < len(before):
        return None
    kind = _kind(final, method)
    if kind is None:
        return None
    weights = np.atleast_2d(coefficients)
    offsets = np.atleast_1d(getattr(final, "intercept_", 0.0)) + np.zeros(len(weights))
    for scale, shift in reversed(scalers):
        offsets = offsets + weights @ np.broadcast_to(shift, weights.shape[1:])
        weights = weights * scale
    if len(weights) == 1 and method != "predict":
        first = np.zeros_like(weights) if kind == "softmax" else -weights
        weights = np.concatenate([first, weights])
        offsets = np.concatenate([0.0 * offsets if kind == "softmax" else -offsets, offsets])
    return LinearForm(weights=weights, offsets=offsets, link=kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearOutputs(ArrayOutputs):
    """A linear form as a function of codes, with nothing in between; see `Outputs`."""

    form: LinearForm
    """Of the codes (n, p), weightless where the model does not look."""
    keep: tuple[int, ...]
    """Positions of the chosen outputs."""
    movable: np.ndarray
    """bool (p,): codes that can move."""
    probability: bool
    description: str
    smooth: ClassVar[bool] = True

    def values(self, codes: np.ndarray) -> np.ndarray:
        """Return the outputs (n, K) of codes (n, p)."""
        return self.form.values(codes)[:, self.keep]

    def values_and_gradient(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return outputs (n, K) and d output / d codes (n, K, p)."""
        values = self.form.values(codes)
        slopes = self.form.slopes(values)[:, self.keep, :]
        return values[:, self.keep], np.where(self.movable, slopes, 0.0)


def linear_margin(outputs: Any) -> tuple[np.ndarray, float] | None:
    """Return weights (p,) and offset of the one output before its link; None if it has none."""
    if not isinstance(outputs, LinearOutputs) or len(outputs.keep) != 1:
        return None
    place = outputs.keep[0]
    if outputs.form.link == "softmax":
        return None
    return outputs.form.weights[place], float(outputs.form.offsets[place])


def _kind(final: Any, method: str) -> str | None:
    """Return how outputs follow from ``X @ coef_.T``: "affine", "softmax", or None (unknown)."""
    name = type(final).__name__
    if not type(final).__module__.startswith("sklearn."):
        return None
    if method == "predict" and has_base(final, REGRESSORS) and not has_base(final, MARGINS):
        return "affine"
    if method == "decision_function" and has_base(final, MARGINS):
        return "affine"
    if method != "predict_proba":
        return None
    binary = len(final.classes_) == 2
    if name == "SGDClassifier" and final.loss == "log_loss" and binary:
        return "softmax"
    if name in LOGISTIC and (binary or final.solver != "liblinear"):
        # Releases before 1.8 could be asked for one-against-rest, which is not a softmax.
        asked = getattr(final, "multi_class", "auto")
        return "softmax" if asked in ("auto", "deprecated") else None
    return None


def _affine(step: Any) -> tuple[np.ndarray | float, np.ndarray | float] | None:
    """Return scale and shift of an affine scaler, per column; None for anything else."""
    name = type(step).__name__
    if not type(step).__module__.startswith("sklearn.") or getattr(step, "clip", False):
        return None
    if name == "MinMaxScaler":
        return np.asarray(step.scale_), np.asarray(step.min_)
    if name not in ("StandardScaler", "MaxAbsScaler", "RobustScaler"):
        return None
    scale = 1.0 if step.scale_ is None else 1.0 / np.asarray(step.scale_)
    center = getattr(step, "mean_" if name == "StandardScaler" else "center_", None)
    if center is None or not getattr(step, "with_mean", True):
        return scale, 0.0
    return scale, -np.asarray(center) * scale
