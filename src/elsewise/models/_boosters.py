"""Native boosters of XGBoost, LightGBM and CatBoost, recognised without importing them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple

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


class _Booster(NamedTuple):
    """What a library says of its own booster."""

    name: str
    objective: str
    columns: Any
    """Names of the columns it was fitted on, None where it knows none."""
    predict: Callable[[Any], Any]
    """What it is called with to one prediction a row, or one for each class."""
    width: int | None = None
    """How many columns it was fitted on."""
    classes: Sequence[Hashable] = ()
    """Labels of the classes, where the library keeps them."""


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
    mark, describe = _LIBRARIES[library]
    if not hasattr(model, mark):
        return None  # a regressor with the scikit-learn face
    booster = describe(model)
    objective = booster.objective
    columns, read = read_columns(own, booster.columns, booster.width)

    def score(frame: Any) -> object:
        outputs = booster.predict(read(frame))
        only_second = objective in BINARY and np.ndim(outputs) == 1
        return two_classes(outputs) if only_second else outputs

    return ScoringAdapter(
        name=f"{booster.name}.predict" + (f" ({objective})" if objective else ""),
        score=score,
        columns=columns,
        classes=list(booster.classes) or ([0, 1] if objective in BINARY else []),
        probability=objective in BINARY | MULTICLASS | RATES,
    )


def _xgboost(model: Any) -> _Booster:
    xgboost: Any = sys.modules["xgboost"]  # where its models come from
    objective = json.loads(model.save_config())["learner"]["objective"]["name"]

    def predict(matrix: Any) -> Any:
        return model.predict(xgboost.DMatrix(matrix, enable_categorical=True))

    width = int(model.num_features())
    return _Booster("xgboost.Booster", objective, model.feature_names, predict, width)


def _lightgbm(model: Any) -> _Booster:
    # The parameters are gone after loading; the text of the model always names its objective.
    found = re.search(r"^objective=(\S+)", model.model_to_string(num_iteration=1), re.MULTILINE)
    objective = found.group(1) if found else ""
    return _Booster("lightgbm.Booster", objective, model.feature_name(), model.predict)


def _catboost(model: Any) -> _Booster:
    objective = model.get_all_params().get("loss_function", "").partition(":")[0]
    booster = _Booster(type(model).__name__, objective, model.feature_names_, model.predict)
    if objective not in BINARY | MULTICLASS:
        return booster
    predict = partial(model.predict, prediction_type="Probability")
    return booster._replace(predict=predict, classes=np.asarray(model.classes_).tolist())


_LIBRARIES: dict[str, tuple[str, Callable[[Any], _Booster]]] = {
    "xgboost": ("save_config", _xgboost),
    "lightgbm": ("model_to_string", _lightgbm),
    "catboost": ("get_all_params", _catboost),
}
"""The method that marks a native booster of each library, and what describes one."""
