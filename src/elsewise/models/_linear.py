"""Exact slopes of scikit-learn's linear models, also behind affine scalers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["final_step", "linear_slopes", "steps"]

REGRESSORS = frozenset(
    {
        "ARDRegression",
        "BayesianRidge",
        "ElasticNet",
        "ElasticNetCV",
        "HuberRegressor",
        "Lars",
        "LarsCV",
        "Lasso",
        "LassoCV",
        "LassoLars",
        "LassoLarsCV",
        "LassoLarsIC",
        "LinearRegression",
        "LinearSVR",
        "OrthogonalMatchingPursuit",
        "OrthogonalMatchingPursuitCV",
        "QuantileRegressor",
        "Ridge",
        "RidgeCV",
        "SGDRegressor",
        "TheilSenRegressor",
    }
)
"""Regressors whose predict is ``X @ coef_.T + intercept_``."""
MARGINS = frozenset(
    {
        "LinearSVC",
        "LogisticRegression",
        "LogisticRegressionCV",
        "Perceptron",
        "RidgeClassifier",
        "RidgeClassifierCV",
        "SGDClassifier",
    }
)
"""Classifiers whose decision_function is ``X @ coef_.T + intercept_``."""
LOGISTIC = frozenset({"LogisticRegression", "LogisticRegressionCV"})
"""Classifiers whose predict_proba is the softmax of the decision function."""


def steps(estimator: Any) -> list[Any]:
    """Return the fitted steps of a pipeline, or the estimator itself as the only step."""
    named = getattr(estimator, "steps", None)
    if named is None:
        return [estimator]
    return [step for _, step in named if step is not None and not isinstance(step, str)]


def final_step(estimator: Any) -> Any:
    """Return the estimator at the end of a pipeline."""
    return steps(estimator)[-1]


def linear_slopes(estimator: Any, method: str) -> Callable[[np.ndarray], np.ndarray] | None:
    """Return the function outputs (n, W) -> d output / d inputs (n, W, m), or None.

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
    >>> linear_slopes(model, "predict")(np.zeros((1, 1)))
    array([[[2.]]])
    """
    *before, final = steps(estimator)
    scales = [scale for step in before if (scale := _scale(step)) is not None]
    coefficients = getattr(final, "coef_", None)
    if not isinstance(coefficients, np.ndarray) or len(scales) < len(before):
        return None
    kind = _kind(final, method)
    if kind is None:
        return None
    weights = np.atleast_2d(coefficients) * math.prod(scales, start=np.float64(1.0))
    if kind == "affine":
        if method == "decision_function" and len(weights) == 1:
            weights = np.concatenate([-weights, weights])
        return lambda outputs: np.broadcast_to(weights, (len(outputs), *weights.shape))
    if len(weights) == 1:
        weights = np.concatenate([np.zeros_like(weights), weights])

    def softmax_slopes(outputs: np.ndarray) -> np.ndarray:
        # d p_k / d x = p_k (w_k - sum_j p_j w_j)
        slopes: np.ndarray = outputs[:, :, None] * (weights - (outputs @ weights)[:, None, :])
        return slopes

    return softmax_slopes


def _kind(final: Any, method: str) -> str | None:
    """Return how outputs follow from ``X @ coef_.T``: "affine", "softmax", or None (unknown)."""
    name = type(final).__name__
    if not type(final).__module__.startswith("sklearn."):
        return None
    if method == "predict" and name in REGRESSORS:
        return "affine"
    if method == "decision_function" and name in MARGINS:
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


def _scale(step: Any) -> np.ndarray | float | None:
    """Return d output / d input of an affine scaler, per column; None for anything else."""
    name = type(step).__name__
    if not type(step).__module__.startswith("sklearn.") or getattr(step, "clip", False):
        return None
    if name == "MinMaxScaler":
        return np.asarray(step.scale_)
    if name in ("StandardScaler", "MaxAbsScaler", "RobustScaler"):
        divisor = step.scale_
        return 1.0 if divisor is None else 1.0 / np.asarray(divisor)
    return None
