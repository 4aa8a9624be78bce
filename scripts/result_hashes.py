"""Hash what a fixed list of problems returns, to show that a change of the code changes no result.

    OMP_NUM_THREADS=1 python scripts/result_hashes.py --out before.json
    OMP_NUM_THREADS=1 python scripts/result_hashes.py --out after.json --compare before.json

One line per problem: hash of the counterfactual frame (names, dtypes, values and index), outcome of
the search, hash of the certificate's numbers to 12 significant digits. ``--out`` also keeps the
numbers. ``--compare`` wants equal frames and outcomes, and numbers that differ by at most 1e-12;
against a file that ``--table`` wrote, which holds hashes only, equal hashes.

HELOC and COMPAS are read from the folder ``ELSEWISE_DATA``, or downloaded. Hashes are comparable on
one machine with one set of libraries: a processor may add in another order.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import elsewise as ew

ROOT = Path(__file__).parents[1]
TOLERANCE = 1e-12
FAST = {"iterations": 15, "draws": 199}
"""Settings of problems that would take longer than a few seconds."""
SIDE = ("estimate", "untrimmed", "upper_limit", "bound", "probability", "directions")
SIDE_ADVICE = ("debiased", "rows_needed")
INTERVAL = ("estimate", "lower", "upper", "level")

Answers = Iterator[tuple[pd.DataFrame, Any]]
"""Frames with the explanations they belong to."""

# --- Problems -------------------------------------------------------------------------------------

PROBLEMS: dict[str, Callable[[], Answers]] = {}


def problem(name: str) -> Callable[[Callable[[], Answers]], Callable[[], Answers]]:
    """Enter a generator of answers into the list under this name."""

    def entered(run: Callable[[], Answers]) -> Callable[[], Answers]:
        PROBLEMS[name] = run
        return run

    return entered


def explain(model: Any, rows: Any, bounds: dict[str, Any] | None, **options: Any) -> Any:
    """Call `elsewise.explain` with these bounds, or with none."""
    asked = {} if bounds is None else {"bounds": ew.Bounds(**bounds)}
    return ew.explain(model, rows, **asked, **{"seed": 0, "progress": False} | options)


@cache
def german_model(name: str) -> Any:
    """Fit a classifier to German Credit as it comes: texts, integers, missing cells."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    data = ew.datasets.german_credit()
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    texts = encoder, make_column_selector(dtype_exclude="number")
    rest, classifier = {
        "logistic": (StandardScaler(), LogisticRegression()),
        "boosting": (
            "passthrough",
            HistGradientBoostingClassifier(max_depth=3, max_iter=60, random_state=0),
        ),
        "forest": (
            "passthrough",
            RandomForestClassifier(40, min_samples_leaf=5, random_state=0, n_jobs=1),
        ),
    }[name]
    prepare = make_column_transformer(texts, remainder=rest)
    return make_pipeline(prepare, classifier).fit(data.frame, data.outcome)


def german_question(name: str, rows: int) -> dict[str, Any]:
    """Return what is asked about the first rows with a risk above 35 %."""
    frame = ew.datasets.german_credit().frame
    model = german_model(name)
    refused = frame[model.predict_proba(frame)[:, 1] > 0.35][:rows]
    return {
        "model": model,
        "rows": refused,
        "target": ew.targets.at_most(0.35),
        "schema": ew.Schema.infer(refused, frame).freeze("Age", "Sex"),
        "background": frame,
    }


def _german(name: str, case: str) -> Answers:
    rows, bounds, options = {
        "in-sample": (120, {"inputs": 0.3, "outputs": 0.1}, {"certify": "in-sample"}),
        "held-out": (240, {"inputs": 0.4, "outputs": 0.1}, {"certify": "held-out"}),
        "no bounds": (120, None, {"certify": "in-sample"}),
    }[case]
    answer = explain(
        **german_question(name, rows), bounds=bounds, settings=ew.Settings(**FAST), **options
    )
    yield answer.counterfactual, answer


for _name in ("logistic", "boosting", "forest"):
    for _case in ("in-sample", "held-out", "no bounds"):
        problem(f"German Credit, {_name}, {_case}")(
            lambda name=_name, case=_case: _german(name, case)
        )


@problem("German Credit, logistic, default settings, then applied to other rows")
def _applied() -> Answers:
    question = german_question("logistic", 300)
    rows = question.pop("rows")
    answer = explain(rows=rows[:220], bounds={"inputs": 0.4, "outputs": 0.1}, **question)
    yield answer.counterfactual, answer
    yield answer.apply(rows[220:]), answer


@problem("German Credit, logistic, bounds that cannot be met")
def _too_tight() -> Answers:
    answer = explain(
        **german_question("logistic", 80),
        bounds={"inputs": 0.05, "outputs": 0.05},
        settings=ew.Settings(**FAST),
    )
    yield answer.counterfactual, answer


@problem("German Credit, boosting, held-out, bounds met by the fitted half only")
def _not_certified() -> Answers:
    question = german_question("boosting", 160)
    question["target"] = ew.targets.sample(np.linspace(0.1, 0.5, 80))
    answer = explain(
        **question,
        bounds={"outputs": 0.075},
        certify="held-out",
        settings=ew.Settings(**FAST),
    )
    yield answer.counterfactual, answer


@problem("German Credit, boosting, sparse, outputs bound only")
def _sparse() -> Answers:
    answer = explain(
        **german_question("boosting", 80),
        bounds={"outputs": 0.1},
        settings=ew.Settings(sparse=True, **FAST),
    )
    yield answer.counterfactual, answer


@problem("German Credit, logistic, inputs bound only, whole population")
def _population() -> Answers:
    answer = explain(
        **german_question("logistic", 120),
        bounds={"inputs": 0.15, "method": "exact"},
        population="all",
        settings=ew.Settings(**FAST),
    )
    yield answer.counterfactual, answer


def _paper(dataset: str, model: str, target: Any, bounds: dict[str, Any] | None) -> Answers:
    yield from _paper_with(dataset, model, target, bounds, ew.Settings())


def _paper_with(
    dataset: str, model: str, target: Any, bounds: dict[str, Any] | None, settings: Any
) -> Answers:
    from benchmarks.paper.questions import ask

    question = ask(dataset, model)
    answer = explain(
        question.model,
        question.rows,
        bounds,
        target=target,
        schema=question.schema,
        background=question.experiment.train,
        certify="in-sample",
        settings=settings,
    )
    yield answer.counterfactual, answer


for _name in ("DNN", "RBFNet", "SVM", "LightGBM"):
    problem(f"HELOC, {_name}, outputs bound only")(
        lambda name=_name: _paper("HELOC", name, ew.targets.at_least(0.6), {"outputs": 0.1})
    )
for _name in ("DNN", "LightGBM"):
    problem(f"COMPAS, {_name}, outputs bound only")(
        lambda name=_name: _paper("COMPAS", name, ew.targets.at_least(0.6), {"outputs": 0.1})
    )


@problem("HELOC, DNN, the paper's step")
def _paper_step() -> Answers:
    settings = ew.Settings(step="gradient", iterations=30, tau=10.0, redraw=False)
    bounds = {"inputs": 0.5, "outputs": 0.3}
    yield from _paper_with("HELOC", "DNN", ew.targets.constant(1.0), bounds, settings)


@problem("German Credit, logistic, explain_groups by housing")
def _groups() -> Answers:
    question = german_question("logistic", 300)
    groups = ew.explain_groups(
        question["model"],
        question["rows"],
        by="Housing",
        target=question["target"],
        schema=question["schema"],
        background=question["background"],
        bounds=ew.Bounds(inputs=0.5, outputs=0.12),
        certify="in-sample",
        settings=ew.Settings(**FAST),
        jobs=1,
        progress=False,
    )
    for answer in groups.values():
        yield answer.counterfactual, answer


@problem("Dask frame, smooth function, then applied to every partition")
def _dask() -> Answers:
    import dask
    import dask.dataframe as dd

    from elsewise.batch import dask as partitioned

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "income": rng.normal(30.0, 8.0, 1500),
            "debt": np.where(rng.random(1500) < 0.05, np.nan, rng.normal(5.0, 2.0, 1500)),
            "cards": rng.integers(0, 6, 1500),
            "home": rng.choice(["own", "rent"], 1500),
        }
    )

    def score(rows: pd.DataFrame) -> np.ndarray:
        level = 0.1 * (rows["income"] - 30) - 0.3 * (rows["debt"].fillna(5.0) - 5)
        level = level - 0.1 * rows["cards"] + np.asarray(rows["home"] == "own", dtype=float)
        return np.asarray(1.0 / (1.0 + np.exp(-level)))

    with dask.config.set(scheduler="synchronous"):
        partitions = dd.from_pandas(frame, npartitions=4)
        answer = partitioned.explain(
            ew.models.function(score, smooth=True),
            partitions,
            target=ew.targets.at_least(0.6),
            rows=400,
            bounds=ew.Bounds(inputs=2.0, outputs=0.3),
            settings=ew.Settings(**FAST),
            progress=False,
        )
        yield answer.counterfactual, answer
        yield partitioned.apply(answer, partitions).compute(), answer


# --- Hashes ---------------------------------------------------------------------------------------


def frame_bytes(frame: pd.DataFrame) -> Iterator[bytes]:
    """Yield the index, then name, dtype and values of every column."""
    columns = [("index", frame.index.to_frame()), ("columns", frame)]
    for part, table in columns:
        yield f"{part} {table.shape}".encode()
        for name, column in table.items():
            yield f"{name!r} {column.dtype}".encode()
            if isinstance(column.dtype, pd.CategoricalDtype):
                yield repr([*column.cat.categories, column.cat.ordered]).encode()
                yield column.cat.codes.to_numpy().tobytes()
            elif isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufmM":
                yield np.ascontiguousarray(column.to_numpy()).tobytes()
            else:
                missing = column.isna()
                cells = zip(column, missing, strict=True)
                yield repr([None if gone else str(cell) for cell, gone in cells]).encode()


def numbers(answer: Any) -> dict[str, float | None]:
    """Return every number of a certificate, and what the status adds, by name."""
    certificate, status = answer.certificate, answer.status
    found = {f"certificate.{name}": getattr(certificate, name) for name in ("rows", "trim")}
    found["certificate.confidence"] = certificate.confidence
    for side in ("inputs", "outputs"):
        evidence = getattr(certificate, side)
        names = SIDE + SIDE_ADVICE
        found |= {f"{side}.{name}": getattr(evidence, name, None) for name in names}
    for readout in certificate.readouts:
        for when in ("before", "after"):
            interval = getattr(readout, when)
            start = f"{readout.name} of column {readout.column} {when}"
            found |= {f"{start}.{name}": getattr(interval, name) for name in INTERVAL}
    found["status.reachable"] = status.reachable
    found["status.rows_needed"] = status.rows_needed
    found["search.iterations"] = len(answer.iterations)
    return {
        name: None if value is None or math.isnan(value) else float(value)
        for name, value in found.items()
    }


def digest(parts: Iterator[bytes] | list[bytes]) -> str:
    """Return the SHA-256 of all parts, each with its length before it."""
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "big") + part)
    return total.hexdigest()


def answered(run: Callable[[], Answers]) -> dict[str, Any]:
    """Run a problem; return its hashes, outcomes, numbers and the processor time it took."""
    start = time.process_time()
    answers = list(run())
    values: dict[str, float | None] = {}
    for k, (_, answer) in enumerate(answers):
        values |= {f"{k}: {name}": value for name, value in numbers(answer).items()}
    shown = [f"{name} {value:.12g}" for name, value in values.items() if value is not None]
    return {
        "frame": digest([part for frame, _ in answers for part in frame_bytes(frame)]),
        "outcome": " + ".join(str(answer.status.verdict) for _, answer in answers),
        "certificate": digest([line.encode() for line in shown]),
        "numbers": values,
        "seconds": round(time.process_time() - start, 2),
    }


def differences(name: str, before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return what differs between two answers to a problem, in words."""
    found = [
        f"{name}: {what} {before[what]} before, {after[what]} after"
        for what in ("frame", "outcome")
        if before[what] != after[what]
    ]
    if "numbers" not in before:
        same = before["certificate"] == after["certificate"]
        return found if same else [*found, f"{name}: numbers of the certificate differ"]
    old, new = before["numbers"], after["numbers"]
    for key in sorted(set(old) | set(new)):
        first, second = old.get(key), new.get(key)
        if first is None or second is None:
            same = first is second
        else:
            same = math.isclose(first, second, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        if not same:
            found.append(f"{name}: {key} {first!r} before, {second!r} after")
    return found


def arguments() -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, help="file for hashes, outcomes and numbers")
    parser.add_argument("--table", type=Path, help="file for hashes and outcomes alone")
    parser.add_argument("--compare", type=Path, help="file of an earlier run, to compare with")
    parser.add_argument("--only", default="", help="problems whose name contains this text")
    return parser.parse_args()


def main() -> int:
    """Run the problems; returns 1 where a comparison finds a difference."""
    asked = arguments()
    sys.path.insert(0, str(ROOT))  # the paper's experiments are in benchmarks
    if os.environ.get("OMP_NUM_THREADS") != "1":
        raise SystemExit("set OMP_NUM_THREADS=1: the order of sums depends on the threads")
    results: dict[str, Any] = {}
    for name, run in PROBLEMS.items():
        if asked.only not in name:
            continue
        found = results[name] = answered(run)
        print(
            f"{name:72} {found['frame'][:16]} {found['certificate'][:16]} "
            f"{found['seconds']:5.1f} s  {found['outcome']}",
            flush=True,
        )
    if asked.out:
        asked.out.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    if asked.table:
        kept = ("frame", "outcome", "certificate")
        table = {name: {key: found[key] for key in kept} for name, found in results.items()}
        asked.table.write_text(json.dumps(table, indent=1) + "\n", "utf-8")
    if asked.compare is None:
        return 0
    before = json.loads(asked.compare.read_text("utf-8"))
    lines = [f"{name}: not in {asked.compare}" for name in results if name not in before]
    if not asked.only:
        lines += [f"{name}: not run" for name in before if name not in results]
    for name, found in results.items():
        if name in before:
            lines += differences(name, before[name], found)
    print("\n".join(lines) or f"{len(results)} problems: the same as in {asked.compare}")
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
