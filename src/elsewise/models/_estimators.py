"""Fitted models that predict: scikit-learn estimators and pipelines, boosters, results."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from elsewise.errors import InvalidInput, ModelError
from elsewise.models._adapters import ScoringAdapter, face_of, is_estimator
from elsewise.models._compiled import FORESTS, compile_pipeline
from elsewise.models._frames import FrameModel, FrameOutputs, difference_slopes
from elsewise.models._linear import linear_form
from elsewise.models._outputs import reject_output, select_by_position

if TYPE_CHECKING:
    from elsewise.features import Encoder


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatorModel:
    """An estimator and the output to explain; made by `estimator`."""

    estimator: Any
    """Fitted estimator or pipeline."""
    output: Hashable | None = None
    """A class label, or a column number for regressors; None: see `estimator`."""


def estimator(estimator: Any, output: Hashable | None = None) -> EstimatorModel:
    """Choose what to explain of a fitted estimator, pipeline, booster or statsmodels results.

    Parameters
    ----------
    estimator : object with predict_proba, decision_function or predict
        The first of these it has makes the outputs. It is given the columns it was fitted on, as
        the frame has them: strings, categories and missing values included.
    output : class label or int, optional
        Of a classifier, the class to explain; by default the second of two classes, or every
        class of more than two. Of other models with several outputs, the column number.

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
        expected = "a fitted estimator with predict_proba, decision_function or predict"
        fix = "pass the fitted object, or wrap a function with elsewise.models.function"
        raise InvalidInput("estimator", expected, repr(estimator), fix)
    return EstimatorModel(estimator=estimator, output=output)


def bind_estimator(
    model: EstimatorModel, encoder: Encoder, output: Hashable | None, probe: np.ndarray
) -> FrameOutputs:
    """Return the outputs of an estimator, a booster or results on the codes of ``encoder``."""
    own = [feature.name for feature in encoder.schema.features]
    fitted = model.estimator
    face = face_of(fitted, own)
    evaluate = FrameModel(name=face.name, score=face.score, encoder=encoder)
    try:
        # Asked as the user asks it: a step of theirs may read such frames only.
        evaluate, first = replace(evaluate, native=encoder.source is not None).tried(probe)
    except ModelError:
        if encoder.source is None:
            raise
        evaluate, first = evaluate.tried(probe)
    wanted = model.output if output is None else output
    keep, what, labels = _choose(face.classes, first.shape[1], wanted)
    return FrameOutputs(
        model=evaluate,
        keep=keep,
        slopes=difference_slopes(evaluate, encoder) if face.smooth else None,
        probability=face.probability,
        description=face.name + what,
        labels=labels,
        tried=(probe, first[:, keep]),
        compile=partial(compile_pipeline, face) if _worth_compiling(face) else None,
    )


def _worth_compiling(face: ScoringAdapter) -> bool:
    """Tell whether preprocessing or checks can be saved; other plain estimators need neither."""
    if len(face.stages) != 1:
        return bool(face.stages)
    final = face.stages[0]
    return type(final).__name__ in FORESTS or linear_form(final, face.method) is not None


def _choose(
    classes: list[Hashable], width: int, output: Hashable | None
) -> tuple[tuple[int, ...], str, tuple[Hashable, ...]]:
    """Return the positions of the chosen outputs, words for them, and the class of each.

    Of two classes the other one stands first, the output's second.
    """
    if len(classes) != width:
        keep = select_by_position(output, width)
        return keep, f", output {keep[0]}" if width > len(keep) else "", ()
    if output is None and width > 2:
        return tuple(range(width)), f", classes {', '.join(map(repr, classes))}", tuple(classes)
    if output is not None and output not in classes:
        raise reject_output(output, f"one of the classes {classes}")
    chosen = width - 1 if output is None else classes.index(output)
    others = [classes[1 - chosen]] if width == 2 else []
    labels = (*others, classes[chosen]) if width > 1 else ()
    return (chosen,), f", class {chosen} ({classes[chosen]!r})", labels
