"""From the user's frames and model to the question the solver sees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from elsewise._arrays import LARGEST, Array, to_numpy
from elsewise.errors import InvalidInput
from elsewise.features import Encoder, Schema
from elsewise.models import Outputs, bind_for_search, known_range, settled
from elsewise.request._bounds import Bounds
from elsewise.request._problem import Problem, generator
from elsewise.request._request import Request
from elsewise.targets import Share, Target, check_levels, resolve

# At most this many background rows give values and donors.
DONOR_ROWS = 1024
# Standard deviation of the probabilities that a model gives, about.
USUAL_SPREAD = 0.2
# Probabilities that vary by less are counted as if they varied by this much.
LEAST_SPREAD = 0.05


def pose(request: Request, bounds: Bounds) -> tuple[Problem, Encoder]:
    """Turn the frames of a request into a problem in codes.

    The model is asked about the rows once here, for their outputs: targets, checks, the search and
    the certificate read those.

    Returns
    -------
    tuple of Problem and Encoder
        The question in codes, and the way back to frames.
    """
    rows, background, seed = request.rows, request.background, request.seed
    _check_request(request)
    target, schema = request.target, request.schema
    schema = Schema.infer(rows, background) if schema is None else _in_order(schema, rows)
    # What its file could not hold is no part of this question; notices say so.
    schema = replace(schema, lost=())
    encoder = replace(schema.encoder(rows), source=request.source)
    _check_free(schema)
    encoder.check_savable(rows.index)
    donors = _drawn(rows if background is None else _usable(background, schema), seed)
    # The model is asked about the donors too: their fixed values must be known.
    encoder = encoder.extend(donors)
    codes = encoder.encode(rows)
    _check_rules(encoder, codes)
    # Few rows are their own background: nothing has to be asked about them twice.
    same = background is None and len(donors) == len(rows)
    given = codes if same else encoder.encode(donors)
    outputs, precise = bind_for_search(
        request.model, encoder, codes, None if same else given, whole=True
    )
    labels, placed = getattr(outputs, "labels", ()), outputs.place(codes)
    precise_outputs = precise.values(placed)
    _check_outputs(precise_outputs)
    outputs, precise = settled((outputs, precise), precise_outputs)
    target = resolve(target, precise_outputs, labels)
    support = bounds.support or known_range(outputs)
    check_levels(target, support, outputs.probability)
    if target.columns not in (None, outputs.columns):
        raise InvalidInput(
            "target",
            expected=f"{outputs.columns} output column(s), as the model has",
            received=f"{target.name}, which has {target.columns}",
            fix="choose one output of the model, or give the target one value per column",
        )
    known = placed if same else outputs.place(given)
    known_outputs = precise_outputs if same else precise.values(known)
    problem = Problem(
        factual=placed,
        factual_outputs=precise_outputs if precise is outputs else outputs.values(placed),
        precise_outputs=precise_outputs,
        schema=schema,
        embedding=schema.embedding().like(placed),
        outputs=outputs,
        precise=precise,
        target=target,
        background=known,
        background_outputs=known_outputs,
        obeys=encoder.obeys if encoder.restricted else None,
        bounds=bounds,
        unit=_unit(precise, known_outputs),
        seed=seed,
        clusters=_clusters(request.clusters, rows),
    )
    return problem, encoder


def _check_outputs(outputs: Array) -> None:
    """Refuse outputs so small that their squares would vanish."""
    largest = float(np.abs(to_numpy(outputs)).max(initial=0.0))
    if 0.0 < largest < 1.0 / LARGEST:
        expected = f"outputs that can be squared, at least {1.0 / LARGEST:g} somewhere"
        fix = "change the unit of the outputs"
        raise InvalidInput("model", expected=expected, received=f"at most {largest:g}", fix=fix)


def _check_request(request: Request) -> None:
    """Refuse what is no target, or too few rows, before anything is read off them."""
    target, rows = request.target, request.rows
    if not isinstance(target, Target | Share):
        expected = "a target of elsewise.targets"
        fix = "for example elsewise.targets.constant(1.0) or sample(scores)"
        raise InvalidInput("target", expected=expected, received=type(target).__name__, fix=fix)
    if isinstance(rows, pd.DataFrame) and len(rows) < 2:
        fix = "explain a population; for a single row use explanation.apply"
        raise InvalidInput("rows", expected="at least 2 rows", received=len(rows), fix=fix)


def _check_free(schema: Schema) -> None:
    if not any(feature.free for feature in schema.features):
        expected, fix = "at least one feature that may move", "free one with schema.free(name)"
        raise InvalidInput("schema", expected=expected, received="every feature is frozen", fix=fix)


def _clusters(given: Any, rows: pd.DataFrame) -> np.ndarray | None:
    """The number (n,) of each row's cluster, from labels or from the name of a column."""
    if given is None:
        return None
    labels = rows[given] if isinstance(given, str) and given in rows.columns else given
    labels = labels if isinstance(labels, str) else np.asarray(labels)
    if isinstance(labels, str) or len(labels) != len(rows) or pd.isna(labels).any():
        raise InvalidInput(
            "clusters",
            expected=f"a column of the rows, or {len(rows)} labels with none missing",
            received=repr(labels) if isinstance(labels, str) else f"{len(labels)} labels",
            fix="give every row the label of the customer, site or period it belongs to",
        )
    found: np.ndarray = pd.factorize(labels)[0]
    if len(np.unique(found)) < 4:
        raise InvalidInput(
            "clusters",
            expected="at least 4 clusters, two for each half",
            received=f"{len(np.unique(found))}",
            fix="leave clusters out, or label smaller groups of rows",
        )
    return found


def _in_order(schema: Schema, rows: pd.DataFrame) -> Schema:
    """The schema with its columns in the order of the rows, in which a model may read them."""
    if not isinstance(rows, pd.DataFrame) or set(rows.columns) != set(schema.names):
        return schema  # which its encoder will refuse
    return replace(schema, features=tuple(schema[name] for name in rows.columns))


def _usable(background: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The background without the columns that are not explained, such as a label."""
    if not isinstance(background, pd.DataFrame):
        received, fix = type(background).__name__, "pass for example the training data"
    elif lacking := [name for name in schema.names if name not in background.columns]:
        received, fix = f"no column {lacking[0]!r}", "pass rows of the same table"
    elif not len(background):
        received, fix = "no rows", "leave it out, or pass for example the training data"
    else:
        return background[list(schema.names)]
    expected = "a DataFrame with rows and every explained column"
    raise InvalidInput("background", expected=expected, received=received, fix=fix)


def _drawn(background: pd.DataFrame, seed: int) -> pd.DataFrame:
    """At most `DONOR_ROWS` background rows."""
    size = len(background)
    rng = generator(seed, "background")
    chosen = np.sort(rng.choice(size, size=min(size, DONOR_ROWS), replace=False))
    return background.iloc[chosen]


def _unit(outputs: Outputs, of_background: Array) -> float:
    """What outputs are counted in; probabilities are their own unit, unless they hardly vary.

    Scores are counted in standard deviations, so that a model in cents is searched like the same
    model in euros, and one that is spread like probabilities are, like a model of those. Defaults
    of one in a thousand would be outweighed by every move of a row if they were not, too.
    """
    values = to_numpy(of_background).astype(np.float64)
    spread = float(np.sqrt(np.mean(np.var(values, axis=0))))
    rounding = np.finfo(np.float64).eps * float(np.abs(values).max())
    if not rounding < spread < np.inf:
        return 1.0
    return min(1.0, spread / LEAST_SPREAD) if outputs.probability else spread / USUAL_SPREAD


def _check_rules(encoder: Encoder, codes: np.ndarray) -> None:
    """Refuse a rule that no row keeps, or a formula that none agrees with: nothing could move."""
    rules = [f"rule {rule.name!r}" for rule in encoder.schema.rules]
    formulas = [f"formula of {made.feature.name!r}" for made in encoder.made]
    tests = [*encoder.tests, *(made.legal for made in encoder.made)]
    for name, test in zip([*rules, *formulas], tests, strict=True):
        if not test(codes).any():
            raise InvalidInput(
                name,
                expected="one that some of the rows keep",
                received="one that no row keeps",
                fix="check its direction and units",
            )
