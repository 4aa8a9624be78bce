"""What every rival needs: the question in codes, and the way back to an explanation."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from elsewise._arrays import to_numpy
from elsewise.analysis._counterfactuals import baseline_fields
from elsewise.features import Attribute, Encoder, Kind, Legal, Schema, attributes
from elsewise.request import Bounds, Problem, Request
from elsewise.request import pose as pose_request
from elsewise.targets import Target, constant

__all__ = ["BATCH", "Field", "Question", "answer", "fields_of", "filled", "pose"]

BATCH = 65536
"""Rows the model is asked for at once."""


class Field(NamedTuple):
    """What a rival sees as one attribute: a number, a category, or a one-hot group."""

    name: str
    columns: tuple[int, ...]
    """Places of its columns in the codes."""
    levels: np.ndarray | None
    """ndarray (L, len(columns)): what a category or a group can be; None for a number."""
    labels: tuple[str, ...]
    """Readable levels."""
    allowed: np.ndarray
    """bool (L,): levels that may be moved to."""
    free: bool
    direction: int

    def level_of(self, codes: np.ndarray) -> np.ndarray:
        """Level (n,) of each row of a category or a group; -1 where missing."""
        if self.levels is None or len(self.columns) == 1:
            column = codes[:, self.columns[0]]
            return np.where(np.isnan(column), -1, column).astype(np.int64)
        return np.asarray(codes[:, self.columns].argmax(axis=1))


def fields_of(schema: Schema) -> tuple[Field, ...]:
    """List the attributes, fixed ones left out, groups in the place of their first column."""
    return tuple(_field(attribute) for attribute in attributes(schema))


def _field(attribute: Attribute) -> Field:
    first, count = attribute.features[0], len(attribute.levels)
    allowed = np.ones(count, dtype=bool)
    levels: np.ndarray | None = None
    if attribute.grouped:
        levels = np.eye(count)
    elif first.kind is Kind.CATEGORY:
        levels = np.arange(count, dtype=np.float64)[:, None]
        if first.allowed is not None:
            allowed = np.array([level in first.allowed for level in first.levels])
    return Field(
        name=str(attribute.name),
        columns=attribute.places,
        levels=levels,
        labels=() if levels is None else tuple(map(str, attribute.levels)),
        allowed=allowed,
        free=all(feature.free for feature in attribute.features),
        direction=first.direction,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Rows that should reach a threshold, in codes."""

    request: Request
    problem: Problem
    encoder: Encoder
    codes: np.ndarray
    """ndarray (n, p): the rows."""
    background: np.ndarray
    """ndarray (m, p): all background rows."""
    fields: tuple[Field, ...]
    legal: Legal
    threshold: float

    def outputs(self, codes: np.ndarray) -> np.ndarray:
        """First output (n,) of codes (n, p), in batches."""
        model = self.problem.outputs
        parts = [
            to_numpy(model.values(model.place(codes[first : first + BATCH])))[:, 0]
            for first in range(0, len(codes), BATCH)
        ]
        return np.concatenate(parts) if parts else np.empty(0)

    def valid(self, codes: np.ndarray) -> np.ndarray:
        """Which rows reach the threshold, bool (n,)."""
        return np.asarray(self.outputs(codes) >= self.threshold)

    def possible(self, codes: np.ndarray) -> np.ndarray:
        """Which rows keep the schema's rules, bool (n,)."""
        obeys = self.problem.obeys
        return np.ones(len(codes), dtype=bool) if obeys is None else obeys(codes)


def pose(
    model: Any,
    rows: pd.DataFrame,
    *,
    schema: Schema | None,
    background: pd.DataFrame | None,
    target: Target | None,
    bounds: Bounds | None,
    threshold: float,
    seed: int,
) -> Question:
    """Turn frames into codes, as `elsewise.explain` does."""
    wanted = constant(1.0) if target is None else target
    request = Request(
        model=model, rows=rows, target=wanted, schema=schema, background=background, seed=seed
    )
    problem, encoder = pose_request(request, bounds or Bounds())
    schema, codes = problem.schema, to_numpy(problem.factual)
    everything = codes
    if background is not None:
        everything = encoder.extend(background).encode(background)
    broken = None if problem.obeys is None else ~problem.obeys(codes)
    return Question(
        request=request,
        problem=problem,
        encoder=encoder,
        codes=codes,
        background=everything,
        fields=fields_of(schema),
        legal=schema.legal(codes, broken=broken),
        threshold=threshold,
    )


def answer(
    question: Question, method: str, find: Callable[[], tuple[np.ndarray, tuple[str, ...]]]
) -> dict[str, Any]:
    """Run a method and certify what it found; returns the fields of `BaselineExplanation`.

    ``find`` returns the counterfactual codes (n, p) and what the user should know about them.
    """
    begin = time.perf_counter()
    found, notices = find()
    seconds = time.perf_counter() - begin
    fields = baseline_fields(
        question.problem, question.encoder, question.request, found, method, notices
    )
    return {**fields, "seconds": seconds}


def filled(codes: np.ndarray, reference: np.ndarray, fields: tuple[Field, ...]) -> np.ndarray:
    """Codes with missing cells replaced by the reference's median, or most frequent level."""
    values = codes.copy()
    for field in fields:
        for j in field.columns:
            missing = np.isnan(values[:, j])
            if missing.any():
                known = reference[~np.isnan(reference[:, j]), j]
                values[missing, j] = _typical(known, number=field.levels is None)
    return values


def _typical(known: np.ndarray, *, number: bool) -> float:
    if not len(known):
        return 0.0
    if number:
        return float(np.quantile(known, 0.5, method="inverted_cdf"))
    return float(np.bincount(known.astype(np.int64)).argmax())
