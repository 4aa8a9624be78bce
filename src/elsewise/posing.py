"""From the user's frames and model to the question the solver sees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from elsewise.errors import InvalidInput
from elsewise.features import Encoder, Schema
from elsewise.models import bind
from elsewise.problem import Limits, Problem
from elsewise.targets import Share, Target, resolve

__all__ = ["pose"]

DONOR_ROWS = 1024
"""At most this many background rows give values and donors."""


def pose(
    model: Any,
    rows: pd.DataFrame,
    target: Target | Share,
    schema: Schema | None,
    background: pd.DataFrame | None,
    limits: Limits,
    seed: int,
) -> tuple[Problem, Encoder]:
    """Turn frames into a problem, refusing at the door what cannot be answered.

    Returns
    -------
    tuple of Problem and Encoder
        The question in codes, and the way back to frames.
    """
    if not isinstance(target, Target | Share):
        raise InvalidInput(
            "target",
            expected="a target of elsewise.targets",
            received=type(target).__name__,
            fix="for example elsewise.targets.constant(1.0) or sample(scores)",
        )
    schema = Schema.infer(rows, background) if schema is None else schema
    encoder = schema.encoder(rows)
    if len(rows) < 2:
        raise InvalidInput(
            "rows",
            expected="at least 2 rows",
            received=len(rows),
            fix="explain a population; for a single row use explanation.apply",
        )
    if not any(feature.free for feature in schema.features):
        raise InvalidInput(
            "schema",
            expected="at least one feature that may move",
            received="every feature is frozen",
            fix="free one with schema.free(name)",
        )
    donors = _drawn(rows if background is None else background, seed)
    # The model is asked about the donors too: their fixed values must be known.
    encoder = encoder.extend(donors)
    codes = encoder.encode(rows)
    _check_rules(schema, rows, codes)
    outputs = bind(model, encoder, probe=codes)
    placed, precise = outputs.place(codes), outputs.precise(codes)
    target = resolve(target, precise.values(placed))
    if target.columns not in (None, outputs.columns):
        raise InvalidInput(
            "target",
            expected=f"{outputs.columns} output column(s), as the model has",
            received=f"{target.name}, which has {target.columns}",
            fix="choose one output of the model, or give the target one value per column",
        )
    problem = Problem(
        factual=placed,
        schema=schema,
        embedding=schema.embedding().like(placed),
        outputs=outputs,
        precise=precise,
        target=target,
        background=outputs.place(encoder.encode(donors)),
        obeys=encoder.obeys if schema.rules else None,
        limits=limits,
        seed=seed,
    )
    return problem, encoder


def _drawn(background: pd.DataFrame, seed: int) -> pd.DataFrame:
    """At most `DONOR_ROWS` background rows."""
    size = len(background)
    rng = np.random.default_rng([seed, *b"background"])
    chosen = np.sort(rng.choice(size, size=min(size, DONOR_ROWS), replace=False))
    return background.iloc[chosen]


def _check_rules(schema: Schema, rows: pd.DataFrame, codes: np.ndarray) -> None:
    """Refuse a rule that no row keeps: nothing could ever move."""
    for rule in schema.rules:
        alone = replace(schema, rules=(rule,)).encoder(rows)
        if not alone.obeys(codes).any():
            raise InvalidInput(
                f"rule {rule.name!r}",
                expected="a rule that some of the rows satisfy",
                received="a rule that no row satisfies",
                fix="check the rule's direction and units",
            )
