"""Native boosters of XGBoost, LightGBM and CatBoost, recognised without importing them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from elsewise.models._faces import ScoringAdapter, read_columns, two_classes

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
