"""Rows made by any other method, as an explanation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from elsewise.baselines._common import Rival, answer, pose
from elsewise.errors import InvalidInput
from elsewise.features import Schema
from elsewise.request import Bounds
from elsewise.targets import Target

__all__ = ["given"]


def given(
    model: Any,
    rows: pd.DataFrame,
    counterfactual: pd.DataFrame,
    *,
    method: str,
    schema: Schema | None = None,
    background: pd.DataFrame | None = None,
    target: Target | None = None,
    bounds: Bounds | None = None,
    seed: int = 0,
) -> Rival:
    """Return counterfactual rows of your own as an explanation, to measure, draw and compare.

    The rows are taken as they are, legal or not; `elsewise.metrics` says which are not.

    Parameters
    ----------
    model, rows, schema, background, limits, seed
        As in `elsewise.explain`.
    counterfactual
        DataFrame with the index and the columns of ``rows``, the same row in the same place.
    method
        What made them.
    target
        What the certificate compares outputs with; all ones by default.

    Examples
    --------
    >>> rows = pd.DataFrame({"a": [0.1, 0.2, 0.4], "b": [1.0, 3.0, 2.0]})
    >>> found = given(lambda frame: frame["a"], rows, rows.assign(a=0.9), method="by hand")
    >>> found.outputs.ravel()
    array([0.9, 0.9, 0.9])
    """
    if not (
        isinstance(counterfactual, pd.DataFrame)
        and counterfactual.index.equals(rows.index)
        and counterfactual.columns.equals(rows.columns)
    ):
        raise InvalidInput(
            "counterfactual",
            expected="a DataFrame with the index and the columns of rows",
            received=type(counterfactual).__name__,
            fix="keep the rows in their order, for example rows.assign(...)",
        )
    question = pose(
        model,
        rows,
        schema=schema,
        background=background,
        target=target,
        bounds=bounds,
        threshold=0.5,
        seed=seed,
    )

    # Codes of a group that is not one-hot any more: the encoder would refuse them.
    schema = question.problem.schema
    loose = replace(schema, features=tuple(replace(f, group=None) for f in schema.features))
    encoder = replace(question.encoder.extend(counterfactual), schema=loose)

    def find() -> tuple[np.ndarray, tuple[str, ...]]:
        return encoder.encode(counterfactual), ()

    return Rival(**answer(question, method, find))
