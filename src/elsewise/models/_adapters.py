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


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringAdapter:
    """A fitted model as a score of a frame."""

    name: str
    """Readable name, for messages."""
    score: Callable[[pd.DataFrame], object]
    """Frame (n rows) to outputs (n,) or (n, W)."""
    columns: list[Hashable]
    """Columns of the frame the score reads, in the model's order."""
    classes: list[Hashable]
    """Labels of the W outputs; empty where the outputs are not classes."""
    probability: bool
    """Whether every output is a probability."""
    smooth: bool = False
    """Whether the outputs vary smoothly with the inputs."""
    read: Callable[[pd.DataFrame], Any] | None = None
    """Frame to what an estimator with the scikit-learn face is called with."""
    stages: Sequence[Any] = ()
    """Of such an estimator: its fitted transformers and the estimator behind them."""
    method: str = ""
    """Which of that one's methods makes the outputs."""


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


def two_classes(second: Any) -> np.ndarray:
    """Return probabilities (n, 2) of both classes from those of the second, (n,).

    Examples
    --------
    >>> two_classes([0.25])
    array([[0.75, 0.25]])
    """
    second = np.asarray(second, dtype=np.float64)
    return np.column_stack([1.0 - second, second])


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


def adapt_booster(model: Any, own: list[Hashable]) -> ScoringAdapter | None:
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
    library = type(model).__module__.partition(".")[0]
    if library not in _LIBRARIES or hasattr(model, "predict_proba"):
        return None
    mark, adapt = _LIBRARIES[library]
    return adapt(model, own) if hasattr(model, mark) else None  # with the scikit-learn face


def _adapter(
    own: list[Hashable],
    name: str,
    objective: str,
    names: Any,
    predict: Callable[[Any], Any],
    width: int | None = None,
    classes: Sequence[Hashable] = (),
) -> ScoringAdapter:
    """Return how a booster is read, given what its library says of it.

    Parameters
    ----------
    names, width
        Names of the columns it was fitted on, None where it knows none, and how many they are.
    predict
        What it is called with to one prediction a row, or one for each class.
    classes
        Labels of the classes, where the library keeps them.
    """
    columns, read = read_columns(own, names, width)

    def score(frame: Any) -> object:
        outputs = predict(read(frame))
        only_second = objective in BINARY and np.ndim(outputs) == 1
        return two_classes(outputs) if only_second else outputs

    return ScoringAdapter(
        name=f"{name}.predict" + (f" ({objective})" if objective else ""),
        score=score,
        columns=columns,
        classes=list(classes) or ([0, 1] if objective in BINARY else []),
        probability=objective in BINARY | MULTICLASS | RATES,
    )


def _xgboost(model: Any, own: list[Hashable]) -> ScoringAdapter:
    xgboost: Any = sys.modules["xgboost"]  # where its models come from
    objective = json.loads(model.save_config())["learner"]["objective"]["name"]

    def predict(matrix: Any) -> Any:
        return model.predict(xgboost.DMatrix(matrix, enable_categorical=True))

    width = int(model.num_features())
    return _adapter(own, "xgboost.Booster", objective, model.feature_names, predict, width)


def _lightgbm(model: Any, own: list[Hashable]) -> ScoringAdapter:
    # The parameters are gone after loading; the text of the model always names its objective.
    found = re.search(r"^objective=(\S+)", model.model_to_string(num_iteration=1), re.MULTILINE)
    objective = found.group(1) if found else ""
    return _adapter(own, "lightgbm.Booster", objective, model.feature_name(), model.predict)


def _catboost(model: Any, own: list[Hashable]) -> ScoringAdapter:
    objective = model.get_all_params().get("loss_function", "").partition(":")[0]
    predict, classes = model.predict, []
    if objective in BINARY | MULTICLASS:
        predict = partial(model.predict, prediction_type="Probability")
        classes = np.asarray(model.classes_).tolist()
    name, names = type(model).__name__, model.feature_names_
    return _adapter(own, name, objective, names, predict, classes=classes)


_LIBRARIES: dict[str, tuple[str, Callable[[Any, list[Hashable]], ScoringAdapter]]] = {
    "xgboost": ("save_config", _xgboost),
    "lightgbm": ("model_to_string", _lightgbm),
    "catboost": ("get_all_params", _catboost),
}
"""The method that marks a native booster of each library, and what says how one is read."""


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

    def score(frame: pd.DataFrame) -> object:
        inputs = read(frame)
        if place >= 0:
            inputs = pd.DataFrame(inputs, columns=columns)
            inputs.insert(place, "const", 1.0)
        return model.predict(inputs)

    return ScoringAdapter(
        name=f"{kind}.predict",
        score=score,
        columns=columns,
        classes=[],
        probability=kind in PROBABILITIES or binomial,
        smooth=True,
    )
