"""Which rows a schema does not allow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from elsewise.features import Schema, changed_cells

__all__ = ["illegal_rows"]


def illegal_rows(
    schema: Schema,
    before: np.ndarray,
    after: np.ndarray,
    obeys: Callable[[np.ndarray], np.ndarray] | None = None,
) -> np.ndarray:
    """Return, bool (n,), the rows that break the schema: what no such person can look like.

    Ranges, directions, whole numbers, frozen and missing cells, allowed levels, one-hot groups and
    rules. A row that did not change is legal: it exists.

    Parameters
    ----------
    schema
        What may change, and how.
    before, after
        Codes (n, p) of the rows and of their counterfactuals.
    obeys
        Codes to bool (n,), which rows keep the schema's rules (`Encoder.obeys`).

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [20, 60], "sex": ["f", "m"]})
    >>> schema = Schema.infer(frame).freeze("sex")
    >>> before = schema.encoder(frame).encode(frame)
    >>> illegal_rows(schema, before, before + [[0.5, 0.0], [-1.0, 0.0]])
    array([ True, False])
    """
    holds = np.ones(len(after), dtype=bool)
    broken = None
    if obeys is not None:
        holds, broken = obeys(after), ~obeys(before)
    changed = changed_cells(before, after)
    boxes = schema.legal(before, broken=broken).like(after)
    wrong = changed_cells(boxes.legalize(after), after)
    for j, feature in enumerate(schema.features):
        if feature.allowed is not None:
            codes = [feature.levels.index(level) for level in feature.allowed]
            wrong[:, j] |= changed[:, j] & ~np.isin(after[:, j], codes)
    illegal = wrong.any(axis=1) | ~holds
    for group in {feature.group for feature in schema.features} - {None}:
        members = after[:, [feature.group == group for feature in schema.features]]
        one_hot = ((members == 0) | (members == 1)).all(axis=1) & (members.sum(axis=1) == 1)
        illegal |= ~one_hot
    return np.asarray(illegal & changed.any(axis=1))
