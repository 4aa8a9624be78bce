"""Rows made by another method, as an explanation: measured, drawn and reported like any other."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from elsewise._arrays import to_numpy
from elsewise.certificate import certify
from elsewise.errors import InvalidInput
from elsewise.explanation import Explanation, Status
from elsewise.features import Encoder, Schema
from elsewise.maps import Map
from elsewise.moves import Motion, Rows
from elsewise.request import Bounds, Kind, Problem, Request, populate, pose
from elsewise.settings import Settings
from elsewise.targets import Target, constant


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class BaselineExplanation(Explanation):
    """An explanation made by another method: rows and a certificate, but no map."""

    method: str
    """Name of the method, with the variant."""
    seconds: float = math.nan
    """Wall time of the method itself, where it is known."""


def from_counterfactuals(
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
) -> BaselineExplanation:
    """Return counterfactual rows of your own as an explanation, to measure, draw and compare.

    The rows are taken as they are, legal or not; `compare` says how many are not.

    Parameters
    ----------
    model, rows, schema, background, bounds, seed
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
    >>> moved = rows.assign(a=0.9)
    >>> found = from_counterfactuals(lambda frame: frame["a"], rows, moved, method="by hand")
    >>> found.outputs.ravel()
    array([0.9, 0.9, 0.9])
    """
    alike = isinstance(counterfactual, pd.DataFrame) and counterfactual.index.equals(rows.index)
    if not alike or not counterfactual.columns.equals(rows.columns):
        expected = "a DataFrame with the index and the columns of rows"
        fix = "keep the rows in their order, for example rows.assign(...)"
        raise InvalidInput("counterfactual", expected, type(counterfactual).__name__, fix)
    wanted = constant(1.0) if target is None else target
    request = Request(
        model=model, rows=rows, target=wanted, schema=schema, background=background, seed=seed
    )
    problem, encoder = pose(request, bounds or Bounds())
    # Without groups: the encoder would refuse rows of a group that is not one-hot any more.
    features = tuple(replace(feature, group=None) for feature in problem.schema.features)
    ungrouped = replace(problem.schema, features=features)
    codes = replace(encoder.extend(counterfactual), schema=ungrouped).encode(counterfactual)
    return BaselineExplanation(**baseline_fields(problem, encoder, request, codes, method))


def baseline_fields(
    problem: Problem,
    encoder: Encoder,
    request: Request,
    codes: np.ndarray,
    method: str,
    notices: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Certify counterfactual codes (n, p); returns the fields of a `BaselineExplanation`."""
    placed = problem.outputs.place(codes)
    rows = Rows(placed, problem.outputs.values(placed))
    population, settings = populate(problem), Settings()
    certificate = certify(problem, population, rows, settings.draws, Kind.IN_SAMPLE)
    said = (f"made by {method}", *notices, *problem.schema.notices)
    return {
        "problem": problem,
        "model": request.model,
        "encoder": encoder,
        "index": request.rows.index,
        "rows": rows,
        "factual_outputs": to_numpy(population.outputs),
        "map": Map(steps=(), motion=Motion()),
        "certificate": certificate,
        "status": Status(verdict=certificate.verdict, notices=said),
        "iterations": (),
        "settings": settings,
        "method": method,
    }
