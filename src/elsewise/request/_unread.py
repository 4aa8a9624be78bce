"""Columns that the model does not read: they stay, because no row is better off elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from elsewise._arrays import to_numpy
from elsewise._resources import late
from elsewise.features import UNREAD, Attribute, Encoder, attributes
from elsewise.models import Outputs
from elsewise.request._problem import Problem

# Rows that each column is changed in at first, and how many are asked about in all.
ROWS, ASKED = 64, 8192
# Background rows that suspected columns are changed in, at most.
CONFIRMED = 100_000
# Outputs that differ by so many last digits are the same: they depend on the batch a row is in.
DIGITS = 64


def without_unread(problem: Problem, encoder: Encoder) -> tuple[Problem, Encoder]:
    """Return the question in which columns that make no difference to the model stay.

    One question tells: each free column is given other values in a few of the background rows,
    those of other rows, the far end of the observed range or the next level. Columns that change
    no output so, and no rule, are then changed in all rows, one by one and all together: some
    matter only where others change too.
    """
    stay = _unread(encoder, problem.precise, to_numpy(problem.background).astype(np.float64))
    if not stay:
        return problem, encoder
    features = (
        replace(feature, free=False, notice=UNREAD) if place in stay and feature.free else feature
        for place, feature in enumerate(encoder.schema.features)
    )
    schema = replace(encoder.schema, features=tuple(features))
    encoder = replace(encoder, schema=schema)
    obeys = encoder.obeys if encoder.restricted else None
    embedding = schema.embedding().like(problem.factual)
    return replace(problem, schema=schema, embedding=embedding, obeys=obeys), encoder


def _unread(encoder: Encoder, model: Outputs, rows: np.ndarray) -> set[int]:
    """Return the places of free columns whose cells in rows (m, p) make no difference."""
    free = [attribute for attribute in attributes(encoder.schema) if attribute.free]
    count = min(len(rows), ROWS, ASKED // (3 * len(free) + 1))
    if count < 2 or late():
        return set()
    some = np.linspace(0, len(rows) - 1, count).astype(np.intp)
    base, shifts = rows[some], (max(len(rows) // 2, 1), max(len(rows) // 3, 1))
    others = [rows[(some + shift) % len(rows)] for shift in shifts]
    changes = [
        _changed(base, [column], other)
        for column in free
        for other in (*others, _ends(base, column))
    ]
    makes_none = _makes_none(encoder, model, base, changes).reshape(len(free), 3)
    unread = [column for column, none in zip(free, makes_none, strict=True) if none.all()]
    rows = rows[:: -(-len(rows) // CONFIRMED)]
    other = np.roll(rows, max(len(rows) // 2, 1), axis=0)
    while unread:
        if late():
            return set()
        sets = [unread, *([column] for column in unread)]
        changes = [_changed(rows, columns, other) for columns in sets]
        together, *alone = _makes_none(encoder, model, rows, changes)
        if together:
            break
        unread = [column for column, none in zip(unread, alone, strict=True) if none]
        if all(alone):
            return set()
    if len(unread) == len(free):  # the model says the same of every row, which is said elsewhere
        return set()
    return {place for column in unread for place in column.places}


def _changed(rows: np.ndarray, columns: Sequence[Attribute], other: np.ndarray) -> np.ndarray:
    """Return rows (n, p) whose cells in some columns are those of other rows."""
    places = [place for column in columns for place in column.places]
    found = rows.copy()
    missing = np.isnan(rows) | np.isnan(other)  # a missing cell stays so, and none becomes missing
    found[:, places] = np.where(missing, rows, other)[:, places]
    return found


def _ends(rows: np.ndarray, column: Attribute) -> np.ndarray:
    """Return rows (n, p) with the farther end of a number's observed range, or the next level.

    Every cell is another then, whatever the order of the rows.
    """
    feature, places = column.features[0], list(column.places)
    found, cells = rows.copy(), rows[:, places]
    if column.numeric:
        low, high = feature.observed
        found[:, places] = np.where(cells - low > high - cells, low, high)
    elif column.grouped:
        found[:, places] = np.roll(cells, 1, axis=1)
    else:
        found[:, places] = (cells + 1) % len(feature.levels)
    return found


def _makes_none(
    encoder: Encoder, model: Outputs, rows: np.ndarray, changes: Sequence[np.ndarray]
) -> np.ndarray:
    """Return which changes of rows (n, p) make no difference to outputs and rules, bool (C,)."""
    every = np.stack([rows, *changes])
    keeps = np.ones(every.shape[:2], dtype=bool)
    if encoder.restricted:
        # Models are asked about rows that keep the rules, and about the given ones.
        keeps = encoder.obeys(every.reshape(-1, rows.shape[1])).reshape(keeps.shape)
        every = np.where(keeps[..., None], every, rows)
    placed = model.place(every.reshape(-1, rows.shape[1]))
    outputs = to_numpy(model.values(placed))
    outputs = outputs.reshape(*keeps.shape, -1)
    slack = DIGITS * np.finfo(outputs.dtype).eps * np.abs(outputs).max()
    same = np.abs(outputs - outputs[0]).max(axis=(1, 2)) <= slack
    return np.asarray(same & (keeps == keeps[0]).all(axis=1))[1:]
