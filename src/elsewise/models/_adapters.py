"""How fitted models are read: a score of a frame, the columns it needs, what its outputs mean.

Native boosters of XGBoost, LightGBM and CatBoost and results of statsmodels are recognised without
importing them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from elsewise.errors import InvalidInput
from elsewise.models._linear import MARGINS, REGRESSORS, has_base, steps
from elsewise.models._outputs import not_fitted

METHODS = ("predict_proba", "decision_function", "predict")
# Estimators of scikit-learn whose outputs vary smoothly with their inputs.
SMOOTH = (
    REGRESSORS
    | MARGINS
    | {"BaseLibSVM", "BaseMultilayerPerceptron", "GaussianNB", "KernelRidge"}
    | {"GaussianProcessClassifier", "GaussianProcessRegressor"}
    | {"QuadraticDiscriminantAnalysis", "_GeneralizedLinearRegressor"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringAdapter:
    """A fitted model as a score of a frame."""

    name: str
    """Readable name, for messages."""
    predict: Callable[[Any], object]
    """What ``read`` returns to outputs (n,) or (n, W)."""
    columns: list[Hashable]
    """Columns of the frame the model reads, in its own order."""
    read: Callable[[pd.DataFrame], Any]
    """Frame (n rows) to what the model is called with."""
    classes: list[Hashable]
    """Labels of the W outputs; empty where the outputs are not classes."""
    probability: bool
    """Whether every output is a probability."""
    smooth: bool = False
    """Whether the outputs vary smoothly with the inputs."""
    stages: Sequence[Any] = ()
    """Of a model with the scikit-learn face: its transformers and the estimator behind them."""
    method: str = ""
    """Which of that one's methods makes the outputs."""

    def score(self, frame: pd.DataFrame) -> object:
        """Return the outputs (n,) or (n, W) of a frame (n rows)."""
        return self.predict(self.read(frame))


def face_of(fitted: Any, own: list[Hashable]) -> ScoringAdapter:
    """Return how a fitted model that reads the columns ``own`` of a frame is read."""
    _check_fitted(fitted)
    return booster_face(fitted, own) or results_face(fitted, own) or _estimator_face(fitted, own)


def is_estimator(model: object) -> bool:
    """Tell whether ``model`` has the scikit-learn face."""
    return any(callable(getattr(model, method, None)) for method in METHODS)


def read_columns(
    own: list[Hashable], names: Sequence[Hashable] | None, count: int | None = None
) -> tuple[list[Hashable], Callable[[pd.DataFrame], Any]]:
    """Return the columns a model reads, in its order, and what it is called with for a frame.

    A model that was fitted on an array is given one.

    Parameters
    ----------
    own : list
        Columns of the frame.
    names : sequence, optional
        Columns the model was fitted on, as it spells them: XGBoost as text, LightGBM also with
        underscores for blanks, LightGBM and CatBoost numbered where it saw an array.
    count : int, optional
        How many columns the model was fitted on, where it knows no names.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [30], "credit amount": [5]})
    >>> columns, read = read_columns(list(frame), ["credit_amount"])
    >>> columns, list(read(frame))
    (['credit amount'], ['credit amount'])
    >>> read_columns(list(frame), ["Column_0", "Column_1"])[1](frame)
    array([[30,  5]])
    """
    spelled: dict[Hashable, Hashable] = {re.sub(r"\s", "_", str(name)): name for name in own}
    spelled |= {str(name): name for name in own} | {name: name for name in own}
    if names is not None:
        missing = [name for name in names if name not in spelled]
        if not missing:
            columns = [spelled[name] for name in names]
            return columns, lambda frame: frame[columns]
        numbered = [[str(j) for j in range(len(names))], [f"Column_{j}" for j in range(len(names))]]
        if list(names) not in numbered:
            expected = f"a model fitted on columns of the frame {own}"
            fix = "explain the frame the model was fitted on, with those columns"
            raise InvalidInput("model", expected, f"one that also needs {missing}", fix)
        count = len(names)
    if count is None:
        return own, lambda frame: frame[own]
    if count != len(own):
        expected = f"a model fitted on the frame's {len(own)} columns"
        fix = "explain the columns the model was fitted on, in the same order"
        raise InvalidInput("model", expected, f"one fitted on {count} columns", fix)
    return own, lambda frame: frame[own].to_numpy()


def one_column_per_class(outputs: Any, method: str, classes: int) -> Any:
    """Return a decision function of two classes as minus and plus itself, other outputs unchanged.

    Examples
    --------
    >>> one_column_per_class(np.array([0.5]), "decision_function", 2)
    array([[-0.5,  0.5]])
    """
    if method == "decision_function" and np.ndim(outputs) == 1 and classes:
        return np.column_stack([-outputs, outputs])
    return outputs


# Objectives whose prediction is the probability of the second of two classes.
BINARY = frozenset({"binary:logistic", "binary", "Logloss", "CrossEntropy"})
# Objectives whose prediction is one probability per class.
MULTICLASS = frozenset(
    {"multi:softprob", "multiclass", "multiclassova", "MultiClass", "MultiClassOneVsAll"}
)
# Objectives whose prediction is a probability that belongs to no class.
RATES = frozenset({"reg:logistic", "cross_entropy"})


def booster_face(model: Any, own: list[Hashable]) -> ScoringAdapter | None:
    """Return how a native booster is read, or None for any other model.

    Classes of XGBoost and LightGBM are 0, 1, ..., as in their training data; every tree takes part.
    Categories are read from columns of category dtype, as these libraries expect.

    Parameters
    ----------
    model : xgboost.Booster, lightgbm.Booster, catboost.CatBoost, or anything else
        Fitted; scikit-learn faces with ``predict_proba`` are left to that method.
    own : list
        Columns of the frame.
    """
    library, kind = type(model).__module__.partition(".")[0], type(model).__name__
    mark, asked = _LIBRARIES.get(library, ("", None))
    # Faces of scikit-learn lack the mark, or have probabilities of their own.
    if asked is None or not hasattr(model, mark) or hasattr(model, "predict_proba"):
        return None
    objective, names, width, predict, classes = asked(model)
    columns, read = read_columns(own, names, width)

    def outputs(matrix: Any) -> object:
        found = predict(matrix)
        if objective not in BINARY or np.ndim(found) != 1:
            return found
        second = np.asarray(found, dtype=np.float64)
        return np.column_stack([1.0 - second, second])

    name = f"{library}.{kind}" if kind == "Booster" else kind
    return ScoringAdapter(
        name=f"{name}.predict" + (f" ({objective})" if objective else ""),
        predict=outputs,
        columns=columns,
        read=read,
        classes=classes or ([0, 1] if objective in BINARY else []),
        probability=objective in BINARY | MULTICLASS | RATES,
    )


Asked = tuple[str, Any, int | None, Callable[[Any], Any], list[Hashable]]
"""Objective, names and number of the columns a booster was fitted on, None where it knows none,
what gives one prediction a row or one for each class, and labels where the library keeps them."""


def _xgboost(model: Any) -> Asked:
    xgboost: Any = sys.modules["xgboost"]  # where its models come from
    objective = json.loads(model.save_config())["learner"]["objective"]["name"]

    def predict(matrix: Any) -> Any:
        return model.predict(xgboost.DMatrix(matrix, enable_categorical=True))

    return objective, model.feature_names, int(model.num_features()), predict, []


def _lightgbm(model: Any) -> Asked:
    # The parameters are gone after loading; the text of the model always names its objective.
    found = re.search(r"^objective=(\S+)", model.model_to_string(num_iteration=1), re.MULTILINE)
    return found.group(1) if found else "", model.feature_name(), None, model.predict, []


def _catboost(model: Any) -> Asked:
    objective = model.get_all_params().get("loss_function", "").partition(":")[0]
    if objective not in BINARY | MULTICLASS:
        return objective, model.feature_names_, None, model.predict, []
    predict = partial(model.predict, prediction_type="Probability")
    return objective, model.feature_names_, None, predict, np.asarray(model.classes_).tolist()


_LIBRARIES: dict[str, tuple[str, Callable[[Any], Asked]]] = {
    "xgboost": ("save_config", _xgboost),
    "lightgbm": ("model_to_string", _lightgbm),
    "catboost": ("get_all_params", _catboost),
}
"""The method that marks a native booster of each library, and what is asked of one."""


def booster_of(final: Any, method: str) -> Callable[[np.ndarray], Any] | None:
    """Return how a booster is asked about an array without the checks of its scikit-learn face.

    Whether it says the same is for the caller to find out; None where there is no such way.
    """
    library = type(final).__module__.partition(".")[0]
    if library == "catboost":
        # As it keeps numbers itself, so that none has to be converted one by one.
        ask = getattr(final, method)
        return lambda rows: ask(np.asfortranarray(rows, dtype=np.float32))
    if library == "lightgbm":
        predict = partial(final.booster_.predict, num_threads=max(final.n_jobs or 0, 0))
    elif library == "xgboost" and (booster := final.get_booster()).attr("best_iteration") is None:
        predict = partial(booster.inplace_predict, missing=final.missing, validate_features=False)
    else:
        return None

    def outputs(rows: np.ndarray) -> Any:
        found = predict(rows)
        second = method == "predict_proba" and np.ndim(found) == 1
        return np.vstack((1.0 - found, found)).T if second else found

    return outputs


# Models whose predictions are probabilities; so are those of a GLM with a binomial family.
PROBABILITIES = frozenset({"Logit", "Probit", "MNLogit", "OrderedModel"})


def results_face(model: Any, own: list[Hashable]) -> ScoringAdapter | None:
    """Return how fitted results of statsmodels are read, or None for any other model.

    A model made from a formula reads the frame by itself. One made from arrays reads the columns
    it was fitted on; a column "const" that the frame lacks is 1.

    Parameters
    ----------
    model : statsmodels results, or anything else
        What ``fit`` returned.
    own : list
        Columns of the frame.
    """
    fitted = getattr(model, "model", None)
    if not type(model).__module__.startswith("statsmodels.") or fitted is None:
        return None
    kind = type(fitted).__name__
    binomial = type(getattr(fitted, "family", None)).__name__ == "Binomial"
    names: list[Hashable] | None = None
    place, count = -1, None
    if getattr(fitted, "formula", None) is None:
        names = list(fitted.exog_names)
        if "const" in names and "const" not in own:
            place = names.index("const")
            del names[place]
        # What statsmodels calls the columns of an array: it knows how many there were.
        numbered = [f"x{j + 1}" for j in range(len(names))]
        if [*map(str, names)] == numbered and "x1" not in own:
            names, count = None, len(numbered)
    columns, read = read_columns(own, names, count)

    def predict(inputs: Any) -> object:
        if place >= 0:
            inputs = pd.DataFrame(inputs, columns=columns)
            inputs.insert(place, "const", 1.0)
        return model.predict(inputs)

    return ScoringAdapter(
        name=f"{kind}.predict",
        predict=predict,
        columns=columns,
        read=read,
        classes=[],
        probability=kind in PROBABILITIES or binomial,
        smooth=True,
    )


def _estimator_face(fitted: Any, own: list[Hashable]) -> ScoringAdapter:
    """Return how an estimator with the scikit-learn face is read."""
    method = next(m for m in METHODS if callable(getattr(fitted, m, None)))
    names = getattr(fitted, "feature_names_in_", None)
    if names is None and type(fitted).__module__.startswith("catboost."):
        names = fitted.feature_names_
    columns, read = read_columns(own, names, getattr(fitted, "n_features_in_", None))
    ask, classes = getattr(fitted, method), []
    if method != "predict" and getattr(fitted, "classes_", None) is not None:
        classes = np.asarray(fitted.classes_).tolist()

    def predict(inputs: Any) -> object:
        return one_column_per_class(ask(inputs), method, len(classes))

    stages = _stages(fitted)
    final = stages[-1]
    return ScoringAdapter(
        name=f"{_name(fitted)}.{method}",
        predict=predict,
        columns=columns,
        read=read,
        classes=classes,
        probability=method == "predict_proba",
        smooth=type(final).__module__.startswith("sklearn.") and has_base(final, SMOOTH),
        stages=stages,
        method=method,
    )


def _check_fitted(fitted: Any) -> None:
    """Refuse an unfitted estimator of scikit-learn, also within a pipeline."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    own = [fitted, *_stages(fitted)]
    for part in (part for part in own if type(part).__module__.startswith("sklearn.")):
        try:
            check_is_fitted(part)
        except NotFittedError as error:
            raise not_fitted(type(part).__name__) from error


def _stages(fitted: Any) -> list[Any]:
    """Return the steps of a pipeline, or of the one that a search has chosen."""
    return steps(getattr(fitted, "best_estimator_", fitted))


def _name(fitted: Any) -> str:
    names = [type(step).__name__ for step in steps(fitted)]
    return names[0] if not hasattr(fitted, "steps") else f"Pipeline({', '.join(names)})"
