"""Estimators with the scikit-learn face: predict_proba, else decision_function, else predict."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from elsewise.errors import InvalidInput
from elsewise.models._differences import Differences
from elsewise.models._frames import FrameModel, FrameOutputs, Slopes
from elsewise.models._linear import MARGINS, REGRESSORS, final_step, linear_slopes, steps
from elsewise.models._outputs import movable_columns, reject_output, select_by_position

if TYPE_CHECKING:
    from elsewise.features import Encoder

__all__ = ["EstimatorModel", "bind_estimator", "estimator", "is_estimator"]

METHODS = ("predict_proba", "decision_function", "predict")
SMOOTH = (
    REGRESSORS
    | MARGINS
    | frozenset(
        {
            "GammaRegressor",
            "GaussianNB",
            "GaussianProcessClassifier",
            "GaussianProcessRegressor",
            "KernelRidge",
            "LinearDiscriminantAnalysis",
            "MLPClassifier",
            "MLPRegressor",
            "NuSVC",
            "NuSVR",
            "PoissonRegressor",
            "QuadraticDiscriminantAnalysis",
            "SVC",
            "SVR",
            "TweedieRegressor",
        }
    )
)
"""Estimators of scikit-learn whose outputs vary smoothly with their inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatorModel:
    """An estimator and the output to explain; made by `estimator`."""

    estimator: Any
    """Fitted estimator or pipeline."""
    output: Hashable | None = None
    """A class label, or a column number for regressors; None: see `estimator`."""


def is_estimator(model: object) -> bool:
    """Tell whether ``model`` has the scikit-learn face."""
    return any(callable(getattr(model, method, None)) for method in METHODS)


def estimator(estimator: Any, output: Hashable | None = None) -> EstimatorModel:
    """Choose what to explain of a fitted scikit-learn estimator or pipeline.

    Parameters
    ----------
    estimator : object with predict_proba, decision_function or predict
        The first of these it has makes the outputs.
    output : class label or int, optional
        Of a classifier, the class to explain; by default the second of two classes, or every
        class of more than two. Of a regressor with several outputs, the column number.

    Returns
    -------
    EstimatorModel
        To be passed as ``model``.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> fitted = LogisticRegression().fit([[0.0], [1.0]], ["bad", "good"])
    >>> estimator(fitted, output="bad").output
    'bad'
    """
    if isinstance(estimator, type) or not is_estimator(estimator):
        raise InvalidInput(
            "estimator",
            expected="a fitted estimator with predict_proba, decision_function or predict",
            received=repr(estimator),
            fix="pass the fitted object, or wrap a function with elsewise.models.function",
        )
    return EstimatorModel(estimator=estimator, output=output)


def bind_estimator(
    model: EstimatorModel, encoder: Encoder, output: Hashable | None, probe: np.ndarray
) -> FrameOutputs:
    """Return the outputs of an estimator on the codes of ``encoder``."""
    fitted = model.estimator
    method = next(m for m in METHODS if callable(getattr(fitted, m, None)))
    name = f"{_name(fitted)}.{method}"
    columns, as_array = _inputs(fitted, encoder)
    linear = linear_slopes(_unwrap(fitted), method)
    evaluate = FrameModel(
        name=name,
        score=_score(fitted, method, columns, as_array),
        encoder=encoder,
        repeats=linear is None,
    )
    width = evaluate(probe).shape[1]
    evaluate = replace(evaluate, width=width)
    keep, what = _choose(fitted, method, width, output)
    return FrameOutputs(
        model=evaluate,
        keep=keep,
        slopes=_slopes(fitted, linear, evaluate, columns),
        probability=method == "predict_proba",
        description=name + what,
    )


def _inputs(fitted: Any, encoder: Encoder) -> tuple[list[Hashable], bool]:
    """Return the columns the estimator reads, in its order, and whether it wants an array."""
    own = [feature.name for feature in encoder.schema.features]
    names = getattr(fitted, "feature_names_in_", None)
    if names is not None:
        missing = [name for name in names if name not in own]
        if missing:
            raise InvalidInput(
                "model",
                expected=f"an estimator fitted on columns of the frame {own}",
                received=f"one that also needs {missing}",
                fix="explain the frame the estimator was fitted on, with those columns",
            )
        return list(names), False
    count = getattr(fitted, "n_features_in_", None)
    if count is not None and count != len(own):
        raise InvalidInput(
            "model",
            expected=f"an estimator fitted on the frame's {len(own)} columns",
            received=f"one fitted on {count} columns",
            fix="explain the columns the estimator was fitted on, in the same order",
        )
    return own, count is not None


def _score(
    fitted: Any, method: str, columns: list[Hashable], as_array: bool
) -> Callable[[pd.DataFrame], object]:
    predict = getattr(fitted, method)

    def score(frame: pd.DataFrame) -> object:
        inputs = frame[columns]
        outputs = predict(inputs.to_numpy() if as_array else inputs)
        if method == "decision_function" and np.ndim(outputs) == 1 and _classes(fitted):
            return np.column_stack([-outputs, outputs])  # one column per class
        return outputs

    return score


def _choose(
    fitted: Any, method: str, width: int, output: Hashable | None
) -> tuple[tuple[int, ...], str]:
    """Return the positions of the chosen outputs and words for them."""
    classes = _classes(fitted)
    if method == "predict" or len(classes) != width:
        keep = select_by_position(output, width)
        return keep, f", output {keep[0]}" if width > len(keep) else ""
    if output is None and width > 2:
        return tuple(range(width)), f", classes {', '.join(map(repr, classes))}"
    if output is not None and output not in classes:
        raise reject_output(output, f"one of the classes {classes}")
    chosen = width - 1 if output is None else classes.index(output)
    return (chosen,), f", class {chosen} ({classes[chosen]!r})"


def _slopes(
    fitted: Any,
    linear: Callable[[np.ndarray], np.ndarray] | None,
    model: FrameModel,
    columns: list[Hashable],
) -> Slopes | None:
    """Return exact slopes for linear models, differences for other smooth ones, else None."""
    if linear is not None:
        movable = movable_columns(model.encoder)
        names = [feature.name for feature in model.encoder.schema.features]
        places = [names.index(name) for name in columns]

        def exact(codes: np.ndarray, outputs: np.ndarray) -> np.ndarray:
            gradient = np.zeros((*outputs.shape, codes.shape[1]))
            gradient[:, :, places] = linear(outputs)
            return np.where(movable, gradient, 0.0)

        return exact
    final = final_step(_unwrap(fitted))
    if type(final).__name__ in SMOOTH and type(final).__module__.startswith("sklearn."):
        differences = Differences.of(model.encoder)
        return lambda codes, outputs: differences.slopes(model, codes)
    return None


def _unwrap(fitted: Any) -> Any:
    """Return the estimator a search has chosen, or the estimator itself."""
    return getattr(fitted, "best_estimator_", fitted)


def _classes(fitted: Any) -> list[Hashable]:
    """Return the class labels as plain Python values; empty for regressors."""
    classes = getattr(fitted, "classes_", None)
    return [] if classes is None else np.asarray(classes).tolist()


def _name(fitted: Any) -> str:
    names = [type(step).__name__ for step in steps(fitted)]
    return names[0] if not hasattr(fitted, "steps") else f"Pipeline({', '.join(names)})"
