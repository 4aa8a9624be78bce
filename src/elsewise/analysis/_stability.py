"""How much an answer depends on chance and on choices: the same question, asked again and again."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from elsewise._arrays import to_numpy
from elsewise._explain import explain_request
from elsewise.analysis._changes import changes
from elsewise.errors import InvalidInput, SavedRunError
from elsewise.explanation import Explanation
from elsewise.features import Feature, Schema
from elsewise.measure import input_comparison, output_comparison, output_directions
from elsewise.moves import Rows
from elsewise.request import Kind, Request, populate
from elsewise.text import figure, percent
from elsewise.transport import direction_blocks

# The input distance of the answer is measured again on this many draws of directions.
DIRECTION_DRAWS = 20
WEIGHT_FACTORS = (0.5, 2.0)
GIVEN, SHARE = "as given", "share of "


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Stability:
    """How an answer varies. Distances are all measured alike, on the rows and scales as given."""

    spread: pd.DataFrame
    """Over seeds: the value as ``given``, ``lowest``, ``highest`` and ``sd`` of both distances,
    their limits and every feature's share of the input distance; and of the input distance of the
    answer itself over direction draws."""
    sensitivity: pd.DataFrame
    """One row per change of trim, background or weights: both distances and their limits, ``ok``
    (the answer is as asked), the feature of the largest share, its ``share``, and
    ``shares_moved``: which part of the distance went from some features to others."""
    seeds: int
    """Number of seeds, that of the answer included."""
    ok: int
    """For how many of them the answer is as asked."""

    def __repr__(self) -> str:
        low, high = self.spread["lowest"], self.spread["highest"]
        inputs, outputs = (
            f"{figure(low[name], 3)} to {figure(high[name], 3)}"
            for name in ("input distance", "output distance")
        )
        largest = str(self.sensitivity.loc[GIVEN, "largest"])
        ends = f"{percent(low[SHARE + largest])} to {percent(high[SHARE + largest])}"
        return (
            f"Over {self.seeds} seeds the input distance was {inputs} and the output distance "
            f"{outputs}, {self.ok} of {self.seeds} answers were as asked, and {largest} had {ends} "
            "of the input distance."
        )


class _Run(NamedTuple):
    """What one answer comes to, measured on the rows and scales as given."""

    inputs: float
    inputs_limit: float
    outputs: float
    outputs_limit: float
    ok: bool
    shares: pd.Series[Any]
    """Every feature's share of the input distance."""


def stability_of(explanation: Explanation, seeds: int, progress: bool | None) -> Stability:
    """Ask an explanation's question again with other seeds, trims, backgrounds and weights.

    The trim is dropped and doubled; the background is replaced by either random half of it, for
    observed values and for scales; the weight of the feature with the largest share is halved and
    doubled. Bounds are those of each answer's own certificate.

    Parameters
    ----------
    explanation
        Made by `explain`, or loaded with its model.
    seeds
        Number of seeds, at least 2; the explanation's own is the first.
    progress
        Show a progress bar; None: only on a terminal.

    Examples
    --------
    >>> import elsewise as ew
    >>> rows = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    >>> score = ew.models.function(lambda frame: frame["a"] + frame["b"] / 9, smooth=True)
    >>> explanation = ew.explain(
    ...     score, rows, target=ew.targets.shift(0.5), bounds=ew.Bounds(outputs=0.2),
    ...     settings=ew.Settings(draws=99),
    ... )
    >>> explanation.stability(seeds=2)
    Over 2 seeds the input distance was 0... to 0... and the output distance 0... to 0...,
    2 of 2 answers were as asked, and a had ...% to ...% of the input distance.
    """
    _check(explanation, seeds)
    asked, problem = _asked(explanation), explanation.problem
    seed, bounds = problem.seed, problem.bounds
    others = [replace(asked, name=f"seed {n}", seed=n) for n in range(seed + 1, seed + seeds)]
    trims = (0.0, min(2.0 * bounds.trim, 0.25)) if bounds.trim > 0 else (0.05, 0.1)
    changed = [
        replace(asked, name=f"trim {trim:g}", bounds=replace(bounds, trim=trim))
        for trim in trims
        if trim != bounds.trim
    ]
    changed += _backgrounds(explanation, asked)
    first = changes(explanation)["share"].idxmax()
    for factor in WEIGHT_FACTORS:
        schema = _reweighed(problem.schema, first, factor)
        changed.append(replace(asked, name=f"weight of {first} times {factor:g}", schema=schema))
    disable = None if progress is None else not progress
    bar = tqdm([*others, *changed], desc="stability", unit=" answers", disable=disable, delay=1.0)
    given = _measured(explanation, explanation)
    runs = [_measured(explanation, explain_request(change, progress=False)) for change in bar]
    over_seeds = [given, *runs[: len(others)]]
    names = [GIVEN, *(str(change.name) for change in changed)]
    entries = [_entry(run, given.shares) for run in (given, *runs[len(others) :])]
    sensitivity = pd.DataFrame(entries, index=pd.Index(names, name="change"))
    spread, ok = _spread(explanation, over_seeds), sum(run.ok for run in over_seeds)
    return Stability(spread=spread, sensitivity=sensitivity, seeds=seeds, ok=ok)


def _check(explanation: Explanation, seeds: int) -> None:
    if seeds < 2:
        raise InvalidInput("seeds", "at least 2", seeds, "leave it out for 5")
    if hasattr(explanation, "method"):
        expected = "one made by elsewise.explain, which can be asked again"
        fix = "explain the same rows with elsewise.explain"
        raise InvalidInput("explanation", expected, "one made by another method", fix)
    if explanation.model is None:
        raise SavedRunError(
            "model: expected the explained model, received none. "
            "Fix: load the run with elsewise.load(folder, model=model)."
        )
    if explanation.problem.schema.lost:
        # A loaded run refuses without its functions.
        explanation.encoder.obeys(explanation.problem.factual)


def _asked(explanation: Explanation) -> Request:
    """The question as it was asked."""
    problem, kind = explanation.problem, explanation.certificate.kind
    return Request(
        name=GIVEN,
        model=explanation.model,
        rows=explanation.factual,
        target=problem.target,
        schema=problem.schema,
        background=explanation.encoder.decode(problem.background),
        bounds=problem.bounds,
        certify="auto" if kind is Kind.POPULATION else kind.value,
        seed=problem.seed,
        settings=explanation.settings,
        clusters=problem.clusters,
    )


def _backgrounds(explanation: Explanation, asked: Request) -> list[Request]:
    """Either half of the background, drawn at random, gives values and scales."""
    problem, found = explanation.problem, []
    background = to_numpy(problem.background)
    order = problem.generator("stability background").permutation(len(background))
    middle = len(order) // 2
    for name, half in (("one half", order[:middle]), ("the other half", order[middle:])):
        if len(half) < 2:
            continue
        # In the order of the rows: sums of a sample in another order differ in their last bits.
        codes = background[np.sort(half)]
        schema, frame = _rescaled(problem.schema, codes), explanation.encoder.decode(codes)
        found.append(replace(asked, name=f"background, {name}", schema=schema, background=frame))
    return found


def _rescaled(schema: Schema, codes: np.ndarray) -> Schema:
    """The schema with the means and standard deviations of these rows."""

    def scaled(feature: Feature, column: np.ndarray) -> Feature:
        known = column[~np.isnan(column)]
        spread = float(known.std(ddof=1)) if known.size > 1 else 0.0
        if not feature.numeric or spread == 0.0:
            return feature
        return replace(feature, center=float(known.mean()), scale=spread)

    return replace(schema, features=tuple(map(scaled, schema.features, codes.T)))


def _reweighed(schema: Schema, name: Hashable, factor: float) -> Schema:
    """The schema with another weight of a feature, or of all columns of a one-hot group."""
    for feature in schema.features:
        if name in (feature.name, feature.group):
            schema = schema.weight(feature.name, factor * feature.weight)
    return schema


def _measured(explanation: Explanation, other: Explanation) -> _Run:
    """Measure another answer to the question on the rows, scales and trim of this one."""
    # Other runs have scales and trims of their own. Measured on those given, a difference is one of
    # the answer, not of the unit.
    problem, certificate = explanation.problem, other.certificate
    codes = problem.outputs.place(explanation.encoder.encode(other.counterfactual))
    alike = replace(explanation, rows=Rows(codes, other.rows.outputs))
    across = output_directions(problem, problem.generator("stability output directions"))
    outputs = output_comparison(problem, populate(problem), alike.rows.outputs, across)
    return _Run(
        inputs=_input_distance(alike, "stability directions"),
        inputs_limit=certificate.inputs.at_most,
        outputs=outputs.distance,
        outputs_limit=certificate.outputs.at_most,
        ok=other.ok,
        shares=changes(alike)["share"],
    )


def _input_distance(explanation: Explanation, purpose: str) -> float:
    problem = explanation.problem
    directions = direction_blocks(problem.embedding.size, problem.generator(purpose))
    population = populate(problem)
    return input_comparison(problem, population, explanation.rows.codes, directions).distance


def _spread(explanation: Explanation, runs: list[_Run]) -> pd.DataFrame:
    """Given, lowest, highest and standard deviation of everything that was measured."""
    redrawn = (f"stability directions {draw}" for draw in range(DIRECTION_DRAWS))
    again = [_input_distance(explanation, purpose) for purpose in redrawn]
    values = {
        "input distance": [run.inputs for run in runs],
        "input distance, directions redrawn": [runs[0].inputs, *again],
        "input limit": [run.inputs_limit for run in runs],
        "output distance": [run.outputs for run in runs],
        "output limit": [run.outputs_limit for run in runs],
    }
    for name in runs[0].shares.index:
        values[f"{SHARE}{name}"] = [float(run.shares[name]) for run in runs]
    table = [(v[0], min(v), max(v), float(np.std(v, ddof=1))) for v in values.values()]
    index = pd.Index(values, name="quantity")
    return pd.DataFrame(table, index=index, columns=["given", "lowest", "highest", "sd"])


def _entry(run: _Run, given: pd.Series[Any]) -> dict[str, Any]:
    """One row of the table of changes, against the shares of the answer as given."""
    entry = run._asdict()
    shares = entry.pop("shares")
    # Half of the sum: what one share loses another gains.
    moved = 0.5 * float((shares.reindex(given.index) - given).abs().sum())
    largest = {"largest": str(shares.idxmax()), "share": float(shares.max())}
    return entry | largest | {"shares_moved": moved}
