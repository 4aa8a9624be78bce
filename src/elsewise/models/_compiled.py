"""Pipelines at the speed of arrays: preprocessing from tables, the final estimator asked directly.

A compiled pipeline serves the search. What is returned and certified is always asked of the
pipeline itself; the two are compared before the first is used.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from elsewise._resources import CELL_BYTES, FEWEST_ROWS, MEMORY, current, model_threads, parallel
from elsewise.models._adapters import ScoringAdapter, booster_of, one_column_per_class
from elsewise.models._frames import FrameOutputs, Slopes, difference_slopes, on_distinct
from elsewise.models._linear import LinearForm, linear_form
from elsewise.models._outputs import movable_columns, same_outputs, scores
from elsewise.models._preprocessing import Column, Reader, Unreadable
from elsewise.models._tables import LINEAR, Tables, build_tables, called

# At most this many rows are compared with the pipeline's own answer.
CHECKED_ROWS = 1 << 14
# How far the compiled outputs may be from the pipeline's, relative to the largest.
ROUNDING = 1e-12
FORESTS = frozenset({"ExtraTreesClassifier", "ExtraTreesRegressor"})
FORESTS |= {"RandomForestClassifier", "RandomForestRegressor"}
# Rows on which a booster asked without its wrapper has to say the same to the last bit.
TRIED = 64
# Rows that one thread takes through a forest.
FOREST_ROWS = 1 << 12


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledModel:
    """The outputs of a pipeline from tables of its preprocessing, as a function of codes."""

    pipeline: FrameOutputs
    """The same outputs, asked of the pipeline itself: also where a value has no table entry."""
    tables: Tables
    ask: Callable[[np.ndarray], np.ndarray]
    """What the tables give to all outputs (n, W), or to the only one that is wanted."""
    linear: LinearForm | None
    """d output / d codes of a linear model, (W, p) weights; None where they are not known."""
    keep: tuple[int, ...]
    """Positions of the chosen outputs among those of ``ask``."""
    movable: np.ndarray
    """bool (p,): codes that can move continuously."""

    def slopes(self, codes: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """Return d output / d codes (n, W, p) of a linear model, given its outputs (n, W)."""
        assert self.linear is not None
        movable = self.movable & ~np.isnan(codes)
        return np.where(movable[:, None, :], self.linear.slopes(outputs), 0.0)

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        """Return the outputs (n, W) of codes (n, p); each distinct row is asked about once."""
        if not len(codes):
            return np.zeros((0, max(self.keep) + 1))
        # A product of matrices costs less than finding repeated rows.
        if self.tables.weights is not None:
            return self._distinct(codes)
        return on_distinct(self._in_blocks, codes)

    def _in_blocks(self, codes: np.ndarray) -> np.ndarray:
        # A category of many levels makes long rows: no more of them at once than memory allows.
        room = (current().memory or MEMORY) // CELL_BYTES
        size = max(FEWEST_ROWS, room // self.tables.width)
        blocks = (codes[k : k + size] for k in range(0, len(codes), size))
        return np.concatenate([self._distinct(block) for block in blocks])

    def _distinct(self, codes: np.ndarray) -> np.ndarray:
        given, known = self.tables.apply(codes)
        if known.all():
            return self.ask(given)
        # A value without an entry is one that the pipeline refuses, or was not seen when bound.
        asked = self.pipeline.model(codes[~known])
        asked = asked if self.keep == self.pipeline.keep else asked[:, self.pipeline.keep]
        outputs = np.empty((len(codes), asked.shape[1]))
        outputs[~known] = asked
        if known.any():
            outputs[known] = self.ask(given[known])
        return outputs


def linear_margin(outputs: Any) -> tuple[np.ndarray, float] | None:
    """Return weights (p,) and offset of the one output before its link; None if it has none."""
    model = outputs.model if isinstance(outputs, FrameOutputs) else None
    if not isinstance(model, CompiledModel) or len(model.keep) != 1:
        return None
    linear, tables, place = model.linear, model.tables, model.keep[0]
    steps = {name for part in tables.numbers for name, _ in part.ops}
    if linear is None or linear.link == "softmax" or tables.lookups or not steps <= LINEAR:
        return None
    at_zero = tables.apply(np.zeros((1, model.movable.size)))[0][0] + linear.offsets
    return linear.weights[place], float(at_zero[place])


def compile_pipeline(
    face: ScoringAdapter, pipeline: FrameOutputs, codes: np.ndarray
) -> FrameOutputs:
    """Return a pipeline compiled to tables, once it gives the pipeline's own answers.

    Parameters
    ----------
    face
        How the pipeline is read.
    pipeline
        Its outputs as it gives them.
    codes
        Codes (n, p) of rows on which the two have to agree.

    Raises
    ------
    Unreadable
        Where it cannot be compiled, or says something else.
    """
    preprocessed = len(face.stages) > 1  # nothing is to be said of a plain estimator
    try:
        compiled = _compiled(face, pipeline, codes)
        some, then = pipeline.values_of_distinct(codes[:: -(-len(codes) // CHECKED_ROWS)])
        now = compiled.values(some)
    except Exception as error:  # third-party transformers may raise anything
        said = str(error) if isinstance(error, Unreadable) else f"{type(error).__name__}: {error}"
        raise Unreadable(said if preprocessed else "") from error
    if not same_outputs(now, then, rtol=ROUNDING, atol=ROUNDING):
        raise Unreadable("read column by column it gives other outputs" if preprocessed else "")
    return compiled


def _compiled(face: ScoringAdapter, pipeline: FrameOutputs, codes: np.ndarray) -> FrameOutputs:
    encoder, read = pipeline.model.encoder, face.read
    *before, final = face.stages

    def prepare(some: np.ndarray) -> Any:
        """Return what the final estimator is given for rows of codes."""
        matrix = read(encoder.decode_as_given(some))
        for step in before:
            matrix = step.transform(matrix)
        return matrix

    reader = Reader(
        frozenset(j for j, table in enumerate(encoder.tables) if table is not None),
        width_of=lambda call: called(call, encoder)(codes[:1]).shape[1],
    )
    names = [feature.name for feature in encoder.schema.features]
    columns = [Column(names.index(name)) for name in face.columns]
    for step in before:
        columns = reader.read(step, columns)
    if len(set(columns)) == 1 and before:
        columns = columns * (prepare(codes[:1]).shape[1] if len(columns) == 1 else 1)
    form, keep = linear_form(final, face.method), pipeline.keep
    if form is not None and form.link == "logistic":
        form, keep = form.only(keep), tuple(range(len(keep)))
    weights = None if form is None else form.weights
    tables = build_tables(columns, reader, encoder, prepare, codes, weights)
    steep = None if form is None else tables.slopes(codes.shape[1])
    model = CompiledModel(
        pipeline=pipeline,
        tables=tables,
        ask=_asked(face, pipeline, tables, codes) if form is None else form.outputs,
        linear=None if form is None or steep is None else replace(form, weights=steep),
        keep=keep,
        movable=movable_columns(encoder),
    )
    slopes: Slopes | None = model.slopes
    if model.linear is None:
        slopes = difference_slopes(model, encoder) if face.smooth else None
    found = replace(pipeline, model=model, keep=keep, slopes=slopes)
    return replace(found, compile=None, tried=None, exact=True)


def _asked(
    face: ScoringAdapter, pipeline: FrameOutputs, tables: Tables, codes: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Return how the final estimator is asked about the rows it would be given, (n, width)."""
    from sklearn import config_context  # only where there is a model of it

    like, final, name = tables.like, face.stages[-1], pipeline.model.name
    native = type(final).__module__.startswith("sklearn.")
    if native and type(final).__name__ in FORESTS and getattr(final, "n_outputs_", 1) == 1:
        return lambda rows: _forest(final, rows)
    predict = getattr(final, face.method)

    def ask(rows: np.ndarray) -> np.ndarray:
        given: Any = rows
        if isinstance(like, pd.DataFrame):
            given = pd.DataFrame(rows, columns=like.columns).astype(like.dtypes.to_dict())
        elif like.dtype == np.float32:
            given = rows.astype(np.float32)
        if sparse.issparse(like) and not native:
            given = sparse.csr_matrix(given)  # some libraries read what is left out as missing
        checks = config_context(assume_finite=True, skip_parameter_validation=True)
        with checks, model_threads(len(rows)):
            outputs = predict(given)
        outputs = one_column_per_class(outputs, face.method, len(face.classes))
        return scores(outputs, len(rows), name)

    quick = None if isinstance(like, pd.DataFrame) else booster_of(final, face.method)
    if quick is not None:
        some = tables.apply(codes[:TRIED])[0]
        with suppress(Exception):  # third-party libraries may raise anything
            if np.array_equal(quick(some), ask(some)):
                return lambda rows: scores(quick(rows), len(rows), name)
    return ask


def _forest(forest: Any, rows: np.ndarray) -> np.ndarray:
    """Return the mean over the trees, added one by one as scikit-learn does, without its checks."""
    single = np.ascontiguousarray(rows, dtype=np.float32)

    def mean(part: np.ndarray) -> np.ndarray:
        total = np.zeros((len(part), forest.estimators_[0].tree_.value.shape[2]))
        for tree in forest.estimators_:
            total += tree.tree_.predict(part).reshape(total.shape)
        return total / len(forest.estimators_)

    parts = [single[k : k + FOREST_ROWS] for k in range(0, len(single), FOREST_ROWS)]
    return np.concatenate(list(parallel(mean, parts)))
