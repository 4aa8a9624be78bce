"""Frames in, explanations out."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from elsewise._arrays import to_numpy
from elsewise.certificate import Kind
from elsewise.certificate import certify as certify_rows
from elsewise.errors import InvalidInput
from elsewise.explanation import Explanation, Status
from elsewise.features import Encoder, Schema
from elsewise.maps import Rows
from elsewise.models import bind
from elsewise.problem import Limits, Problem
from elsewise.search import Solution, iterate
from elsewise.solver import Iteration, Settings, State
from elsewise.targets import Target

__all__ = ["explain"]

PROBES = 32
"""Rows the model is tried out on before anything else."""
DONOR_ROWS = 1024
"""At most this many background rows give values and donors."""
CERTIFY = ("auto", "in-sample")


def explain(
    model: Any,
    rows: pd.DataFrame,
    *,
    target: Target,
    schema: Schema | None = None,
    background: pd.DataFrame | None = None,
    limits: Limits | None = None,
    certify: str = "auto",
    seed: int = 0,
    settings: Settings | None = None,
    progress: bool | None = None,
) -> Explanation:
    """Find what would have to be different about a population for the model's outputs to change.

    Parameters
    ----------
    model
        A torch module, a scikit-learn estimator or pipeline, or a function frame -> scores.
    rows
        DataFrame: the population to explain.
    target
        What its outputs should look like: see `elsewise.targets`.
    schema
        What may change and how; inferred from ``rows`` and ``background`` by default.
    background
        DataFrame that gives scales and observed ranges; ``rows`` by default.
    limits
        How far inputs and outputs may be; see `Limits`. By default the knee of the frontier.
    certify
        "in-sample" (the paper's, descriptive) or "auto".
    seed
        The one source of randomness: the same seed gives the same result.
    settings
        How the search is run; see `Settings`.
    progress
        Show a progress bar; by default only on a terminal.

    Examples
    --------
    >>> import numpy as np
    >>> import elsewise as ew
    >>> rows = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 2)), columns=["a", "b"])
    >>> score = ew.models.function(lambda frame: frame["a"] + frame["b"], smooth=True)
    >>> explanation = ew.explain(
    ...     score, rows, target=ew.targets.shift(0.5), limits=ew.Limits(outputs=0.2)
    ... )
    >>> explanation.ok
    True
    """
    settings = settings or Settings()
    limits = limits or Limits()
    _check_choice(certify)
    problem, encoder = _pose(model, rows, target, schema, background, limits, seed)
    solution, records = _watch(iterate(problem, settings), progress)
    state = solution.state
    # The outputs are asked for once more, of all returned rows together: they are the model's.
    chosen = Rows(state.rows.codes, problem.outputs.values(state.rows.codes))
    population = state.setup.population
    return Explanation(
        problem=problem,
        model=model,
        encoder=encoder,
        index=rows.index,
        rows=chosen,
        factual_outputs=to_numpy(population.outputs),
        map=state.map(),
        certificate=certify_rows(problem, population, chosen, settings.draws, Kind.IN_SAMPLE),
        status=Status(
            outcome=solution.outcome,
            binding=solution.binding,
            reachable=solution.reachable,
            notices=encoder.schema.notices,
        ),
        iterations=tuple(records),
        settings=settings,
    )


def _pose(
    model: Any,
    rows: pd.DataFrame,
    target: Target,
    schema: Schema | None,
    background: pd.DataFrame | None,
    limits: Limits,
    seed: int,
) -> tuple[Problem, Encoder]:
    """Turn frames into a problem, refusing at the door what cannot be answered."""
    if not isinstance(limits, Limits):
        raise InvalidInput(
            "limits",
            expected="elsewise.Limits",
            received=type(limits).__name__,
            fix="Limits(inputs=0.2, outputs=0.1)",
        )
    if not isinstance(target, Target):
        raise InvalidInput(
            "target",
            expected="a target of elsewise.targets",
            received=type(target).__name__,
            fix="for example elsewise.targets.constant(1.0) or sample(scores)",
        )
    schema = Schema.infer(rows, background) if schema is None else schema
    encoder = schema.encoder(rows)
    if not any(feature.free for feature in schema.features):
        raise InvalidInput(
            "schema",
            expected="at least one feature that may move",
            received="every feature is frozen",
            fix="free one with schema.free(name)",
        )
    codes = encoder.encode(rows)
    outputs = bind(model, encoder, probe=codes[:PROBES])
    if target.columns not in (None, outputs.columns):
        raise InvalidInput(
            "target",
            expected=f"{outputs.columns} output column(s), as the model has",
            received=f"{target.name}, which has {target.columns}",
            fix="choose one output of the model, or give the target one value per column",
        )
    placed = outputs.place(codes)
    problem = Problem(
        factual=placed,
        schema=schema,
        embedding=schema.embedding().like(placed),
        outputs=outputs,
        precise=outputs.precise(codes[:PROBES]),
        target=target,
        background=outputs.place(_sampled(encoder, background, codes, seed)),
        obeys=encoder.obeys if schema.rules else None,
        limits=limits,
        seed=seed,
    )
    return problem, encoder


def _sampled(
    encoder: Encoder, background: pd.DataFrame | None, codes: np.ndarray, seed: int
) -> np.ndarray:
    """Codes of at most `DONOR_ROWS` background rows."""
    size = len(codes if background is None else background)
    rng = np.random.default_rng([seed, *b"background"])
    chosen = np.sort(rng.choice(size, size=min(size, DONOR_ROWS), replace=False))
    if background is None:
        return codes[chosen]
    rows = background.iloc[chosen]
    return encoder.extend(rows).encode(rows)


def _watch(
    search: Generator[State, None, Solution], progress: bool | None
) -> tuple[Solution, list[Iteration]]:
    """Run the search with a progress bar; keep each iteration's record."""
    records: list[Iteration] = []
    with tqdm(desc="elsewise", unit=" iterations", disable=_disabled(progress), delay=1.0) as bar:
        while True:
            try:
                record = next(search).record
            except StopIteration as end:
                return end.value, records
            records.append(record._replace(iteration=len(records)))
            bar.set_postfix(
                inputs=f"{record.inputs:.3f}", outputs=f"{record.outputs:.3f}", refresh=False
            )
            bar.update()


def _disabled(progress: bool | None) -> bool | None:
    """The value tqdm wants: None leaves the bar out where there is no terminal."""
    return None if progress is None else not progress


def _check_choice(certify: str) -> None:
    if certify not in CERTIFY:
        raise InvalidInput(
            "certify",
            expected=" or ".join(map(repr, CERTIFY)),
            received=repr(certify),
            fix="'in-sample' describes the explained rows",
        )
