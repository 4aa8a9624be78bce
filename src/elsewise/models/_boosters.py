"""Native boosters of XGBoost, LightGBM and CatBoost, recognised without importing them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from elsewise.models._faces import ScoringAdapter, read_columns, reader, two_classes

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
    if hasattr(model, "predict_proba") or library not in _FACES:
        return None
    return _FACES[library](model, own)


def _xgboost_face(model: Any, own: list[Hashable]) -> ScoringAdapter | None:
    if not hasattr(model, "save_config"):
        return None  # a regressor with the scikit-learn face
    xgboost: Any = sys.modules["xgboost"]  # where its models come from
    columns, as_array = read_columns(own, model.feature_names, int(model.num_features()))
    read = reader(columns, as_array)
    objective = json.loads(model.save_config())["learner"]["objective"]["name"]
    return _face(
        "xgboost.Booster",
        objective,
        columns,
        lambda frame: model.predict(xgboost.DMatrix(read(frame), enable_categorical=True)),
    )


def _lightgbm_face(model: Any, own: list[Hashable]) -> ScoringAdapter | None:
    if not hasattr(model, "model_to_string"):
        return None
    columns, as_array = read_columns(own, model.feature_name(), None)
    read = reader(columns, as_array)
    # The parameters are gone after loading; the text of the model always names its objective.
    found = re.search(r"^objective=(\S+)", model.model_to_string(num_iteration=1), re.MULTILINE)
    return _face(
        "lightgbm.Booster",
        found.group(1) if found else "",
        columns,
        lambda frame: model.predict(read(frame)),
    )


def _catboost_face(model: Any, own: list[Hashable]) -> ScoringAdapter:
    columns, as_array = read_columns(own, model.feature_names_, None)
    read = reader(columns, as_array)
    objective = model.get_all_params().get("loss_function", "").partition(":")[0]
    name, classes = type(model).__name__, np.asarray(model.classes_).tolist()
    if objective not in BINARY | MULTICLASS:
        return _face(name, objective, columns, lambda frame: model.predict(read(frame)))
    return ScoringAdapter(
        name=f"{name}.predict ({objective})",
        score=lambda frame: model.predict(read(frame), prediction_type="Probability"),
        columns=columns,
        classes=classes,
        probability=True,
    )


def _face(
    name: str, objective: str, columns: list[Hashable], predict: Callable[[Any], Any]
) -> ScoringAdapter:
    """Return the face of a booster whose predictions mean what its objective says."""

    def score(frame: Any) -> object:
        outputs = predict(frame)
        return two_classes(outputs) if objective in BINARY else outputs

    classes: list[Hashable] = [0, 1] if objective in BINARY else []
    return ScoringAdapter(
        name=f"{name}.predict ({objective})" if objective else f"{name}.predict",
        score=score,
        columns=columns,
        classes=classes,
        probability=objective in BINARY | MULTICLASS | RATES,
    )


_FACES: dict[str, Callable[[Any, list[Hashable]], ScoringAdapter | None]] = {
    "xgboost": _xgboost_face,
    "lightgbm": _lightgbm_face,
    "catboost": _catboost_face,
}
