"""DiCE, by the dice-ml package.

R. K. Mothilal, A. Sharma, C. Tan, Explaining Machine Learning Classifiers through Diverse
Counterfactual Explanations, FAT* 2020. One counterfactual per row, the package's own defaults. It
is told to write numbers to a thousandth of their standard deviation: left to guess, it counts up to
ten digits of a float, and its search for sparsity then takes steps of that size.
"""

from __future__ import annotations

import io
import random
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from benchmarks.rivals.question import Question, answer, filled, pose

from elsewise.analysis import BaselineExplanation
from elsewise.errors import InvalidInput, MissingExtra
from elsewise.features import Kind, Schema
from elsewise.request import Bounds
from elsewise.targets import Target

__all__ = ["Dice", "DiceSettings", "dice"]

OUTCOME = "outcome"
DIGITS = 3
"""Digits that a number of standard deviation 1 is written with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiceSettings:
    """How DiCE is run."""

    threshold: float = 0.5
    """Output from which a row counts as valid."""
    method: str = "genetic"
    """"genetic" or "random"."""
    seconds: float = 600.0
    """Time cap; rows not reached by then stay as they are."""

    def __post_init__(self) -> None:
        if self.method not in ("genetic", "random"):
            raise InvalidInput(
                "settings.method",
                expected="'genetic' or 'random'",
                received=repr(self.method),
                fix="'genetic' stays closer to the rows",
            )
        if not self.seconds > 0:
            raise InvalidInput(
                "settings.seconds",
                expected="a number > 0",
                received=repr(self.seconds),
                fix="600 is the default",
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Dice(BaselineExplanation):
    """What DiCE found."""

    found: np.ndarray
    """bool (n,): rows for which the package returned a counterfactual."""


def dice(
    model: Any,
    rows: pd.DataFrame,
    *,
    schema: Schema | None = None,
    background: pd.DataFrame | None = None,
    target: Target | None = None,
    bounds: Bounds | None = None,
    seed: int = 0,
    settings: DiceSettings | None = None,
) -> Dice:
    """Explain rows one by one with dice-ml (in the extra ``test``).

    Parameters
    ----------
    model, rows, schema, background, bounds, seed
        As in `elsewise.explain`. Frozen features and missing cells do not move; ranges, directions
        and allowed levels are given to the package as the permitted ranges of each row.
    target
        What the certificate compares outputs with; all ones by default.
    settings
        See `DiceSettings`.

    Returns
    -------
    Dice
        An explanation; rows without a counterfactual stay as they are.
    """
    settings = settings or DiceSettings()
    package, refusal = _package()
    question = pose(
        model,
        rows,
        schema=schema,
        background=background,
        target=target,
        bounds=bounds,
        threshold=settings.threshold,
        seed=seed,
    )
    reached = np.zeros(len(rows), dtype=bool)

    def find() -> tuple[np.ndarray, tuple[str, ...]]:
        codes = question.codes.copy()
        with _quietly(seed):
            for i, found in _rows(package, refusal, question, settings, seed):
                codes[i], reached[i] = found, True
        return codes, (
            f"{int(reached.sum())} of {len(rows)} rows found, time cap {settings.seconds:g} s",
        )

    common = answer(question, f"DiCE, {settings.method}", find)
    return Dice(**common, found=reached)


def _package() -> tuple[Any, type[Exception]]:
    """The package, and what it raises when it finds nothing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import dice_ml
            import raiutils.exceptions
    except ImportError as error:
        raise MissingExtra("dice-ml", "test") from error
    return dice_ml, raiutils.exceptions.UserConfigValidationException


@contextmanager
def _quietly(seed: int) -> Iterator[None]:
    """Keep the package's prints, bars and warnings away, and the global generators as they were."""
    state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    try:
        with (
            warnings.catch_warnings(),
            redirect_stdout(io.StringIO()),
            redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        random.setstate(state)
        np.random.set_state(numpy_state)  # noqa: NPY002


class _OutOfTimeError(Exception):
    """The time cap is reached."""


class _Classifier:
    """The model as dice-ml asks for it: a frame of attributes in, two probabilities out."""

    def __init__(self, question: Question, seconds: float) -> None:
        self.question = question
        self.deadline = time.perf_counter() + seconds
        self.row = question.codes[0]
        """The row in hand: its fixed columns and missing cells stand in every frame."""
        fields = question.fields
        self.names = [str(k) for k in range(len(fields))]
        self.number_fields = [k for k, field in enumerate(fields) if field.levels is None]
        self.numbers = [fields[k].columns[0] for k in self.number_fields]

    def codes(self, frame: pd.DataFrame) -> np.ndarray:
        """Codes (n, p) of a frame of attributes."""
        values = frame[self.names].to_numpy(dtype=np.float64)
        codes = np.tile(self.row, (len(frame), 1))
        codes[:, self.numbers] = values[:, self.number_fields]
        for k, field in enumerate(self.question.fields):
            if field.levels is not None:
                codes[:, field.columns] = field.levels[values[:, k].astype(np.int64)]
        return np.where(np.isnan(self.row), np.nan, codes)

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """Probabilities (n, 2); the threshold is moved to one half."""
        if time.perf_counter() > self.deadline:
            raise _OutOfTimeError
        outputs = self.question.outputs(self.codes(frame))
        score = np.clip(outputs - self.question.threshold + 0.5, 0.0, 1.0)
        return np.column_stack([1.0 - score, score])

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """Class (n,)."""
        return np.asarray(self.predict_proba(frame)[:, 1] >= 0.5).astype(np.int64)


def _rows(
    package: Any, refusal: type[Exception], question: Question, settings: DiceSettings, seed: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the counterfactual codes (p,) of every row for which there are some."""
    background = filled(question.background, question.background, question.fields)
    table = _attributes(question, background)
    table[OUTCOME] = question.valid(question.background).astype(np.int64)
    numbers = [str(k) for k, field in enumerate(question.fields) if field.levels is None]
    classifier = _Classifier(question, settings.seconds)
    explainer = package.Dice(
        package.Data(
            dataframe=table,
            continuous_features=numbers,
            outcome_name=OUTCOME,
            continuous_features_precision=_digits(question),
        ),
        package.Model(model=classifier, backend="sklearn", model_type="classifier"),
        method=settings.method,
    )
    queries = _attributes(question, filled(question.codes, background, question.fields))
    options = {"random_seed": seed} if settings.method == "random" else {}
    valid = question.valid(question.codes)
    for i in range(len(question.codes)):
        freedom = _freedom(question, i, table, queries.iloc[i])
        if valid[i] or not freedom.features:
            continue
        classifier.row = question.codes[i]
        try:
            found = explainer.generate_counterfactuals(
                queries.iloc[[i]],
                total_CFs=1,
                desired_class=1,
                features_to_vary=freedom.features,
                permitted_range=freedom.ranges,
                **options,
            )
        except _OutOfTimeError:
            return
        except refusal as error:
            if not str(error).startswith("No counterfactuals found"):
                raise
            continue
        example = found.cf_examples_list[0]
        # What the package shows: after its own step for sparsity, where it has made one.
        frame = example.final_cfs_df_sparse
        if frame is None or not len(frame):
            frame = example.final_cfs_df
        if frame is not None and len(frame):
            yield i, _written_back(question, i, classifier.codes(frame.iloc[:1])[0])


def _digits(question: Question) -> dict[str, int]:
    """Digits after the point of each number; none for whole ones."""
    features = question.problem.schema.features
    digits = {}
    for k, field in enumerate(question.fields):
        feature = features[field.columns[0]]
        if field.levels is None:
            wanted = DIGITS - int(np.floor(np.log10(feature.scale)))
            digits[str(k)] = 0 if feature.kind is Kind.INTEGER else max(wanted, 0)
    return digits


def _written_back(question: Question, i: int, codes: np.ndarray) -> np.ndarray:
    """Codes (p,) without the package's rounding: a cell it left alone, or at the end of its range.

    The package computes in single precision and rounds; neither is a change anybody proposed.
    """
    whole = [feature.kind is Kind.INTEGER for feature in question.problem.schema.features]
    unit = np.zeros(len(codes))
    for name, digits in _digits(question).items():
        unit[question.fields[int(name)].columns[0]] = 10.0**-digits
    unit[whole] = 0.0
    before = question.codes[i]
    same = np.abs(codes - before) <= 0.51 * unit + 1e-6 * np.abs(before)
    legal = question.legal.take(np.array([i])).legalize(codes[None])[0]
    near = np.abs(legal - codes) <= unit
    return np.where(same, before, np.where(near, legal, codes))


def _attributes(question: Question, codes: np.ndarray) -> pd.DataFrame:
    """Codes (n, p) as the package likes them: numbers, and levels as text."""
    features = question.problem.schema.features
    columns: dict[str, np.ndarray] = {}
    for k, field in enumerate(question.fields):
        if field.levels is not None:
            columns[str(k)] = field.level_of(codes).astype(str)
        elif features[field.columns[0]].kind is Kind.INTEGER:
            columns[str(k)] = codes[:, field.columns[0]].astype(np.int64)
        else:
            columns[str(k)] = codes[:, field.columns[0]]
    return pd.DataFrame(columns)


class _Freedom(NamedTuple):
    """What one row may change, in the package's words; its defaults wherever they will do."""

    features: list[str] | str
    ranges: dict[str, list[Any]] | None


def _freedom(question: Question, i: int, table: pd.DataFrame, query: pd.Series[Any]) -> _Freedom:
    free: list[str] = []
    ranges: dict[str, list[Any]] = {}
    lower, upper = question.legal.lower[i], question.legal.upper[i]
    for k, field in enumerate(question.fields):
        name, j = str(k), field.columns[0]
        if not field.free or np.isnan(question.codes[i, j]) or question.legal.broken[i]:
            continue
        if field.levels is None:
            low, high = table[name].min(), table[name].max()
            if not lower[j] < upper[j]:
                continue
            if lower[j] > low or upper[j] < high:
                ranges[name] = [max(lower[j], low), min(upper[j], high)]
        elif not field.allowed.all():
            ranges[name] = sorted({*np.flatnonzero(field.allowed).astype(str), query[name]})
        free.append(name)
    everything = len(free) == len(question.fields)
    return _Freedom("all" if everything else free, ranges or None)
