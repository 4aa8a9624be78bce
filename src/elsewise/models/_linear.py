"""scikit-learn's linear models as what they are: a product of matrices and a link."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, softmax

# Base classes of regressors whose predict is ``X @ coef_.T + intercept_``.
REGRESSORS = frozenset({"LinearModel", "BaseSGDRegressor"})
# Base class of classifiers whose decision_function is ``X @ coef_.T + intercept_``.
MARGINS = frozenset({"LinearClassifierMixin"})
# Classifiers whose predict_proba is the softmax of the decision function, or logistic of two.
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

    def slopes(self, outputs: np.ndarray) -> np.ndarray:
        """Return d output / d inputs (n, W, m), given the outputs (n, W)."""
        if self.link == "affine":
            return np.broadcast_to(self.weights, (len(outputs), *self.weights.shape))
        if self.link == "logistic":
            return np.asarray((outputs * (1.0 - outputs))[:, :, None] * self.weights)
        # d p_k / d x = p_k (w_k - sum_j p_j w_j)
        tilt = self.weights - (outputs @ self.weights)[:, None, :]
        return np.asarray(outputs[:, :, None] * tilt)

    def outputs(self, margins: np.ndarray) -> np.ndarray:
        """Return the outputs (n, W) of ``X @ weights.T``."""
        margins = margins + self.offsets
        if self.link == "affine":
            return margins
        return np.asarray(expit(margins) if self.link == "logistic" else softmax(margins, axis=1))

    def only(self, keep: tuple[int, ...]) -> LinearForm:
        """Return the form of some of its outputs, which must not depend on the others."""
        places = list(keep)
        return replace(self, weights=self.weights[places], offsets=self.offsets[places])


def linear_form(final: Any, method: str) -> LinearForm | None:
    """Return the linear form of a fitted estimator; None for any other model.

    Parameters
    ----------
    final : estimator
        Fitted, without what prepares its inputs.
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
    coefficients, kind = getattr(final, "coef_", None), _kind(final, method)
    if kind is None or not isinstance(coefficients, np.ndarray):
        return None
    weights = np.atleast_2d(coefficients)
    offsets = np.atleast_1d(getattr(final, "intercept_", 0.0)) + np.zeros(len(weights))
    if len(weights) == 1 and method != "predict":
        weights = np.concatenate([-weights, weights])
        offsets = np.concatenate([-offsets, offsets])
    return LinearForm(weights=weights, offsets=offsets, link=kind)


def _kind(final: Any, method: str) -> str | None:
    """Return the link by which outputs follow from ``X @ coef_.T``; None: unknown."""
    name = type(final).__name__
    if not type(final).__module__.startswith("sklearn."):
        return None
    margins = has_base(final, MARGINS)
    if method == "predict" and has_base(final, REGRESSORS) and not margins:
        return "affine"
    if method == "decision_function" and margins:
        return "affine"
    if method != "predict_proba":
        return None
    binary = len(final.classes_) == 2
    known = name == "SGDClassifier" and final.loss == "log_loss" and binary
    if name in LOGISTIC and (binary or final.solver != "liblinear"):
        # Releases before 1.8 could be asked for one-against-rest, which is not a softmax.
        known = getattr(final, "multi_class", "auto") in ("auto", "deprecated")
    if not known:
        return None
    return "logistic" if binary else "softmax"
