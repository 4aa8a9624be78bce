"""Can an answer be beaten? Writes ``docs/optimality.md``.

    python -m benchmarks.optimality                    # every part, under ten minutes
    python -m benchmarks.optimality knee --seeds 3     # only this one; the others are kept
    python -m benchmarks.optimality dominance --models logistic LightGBM

``dominance``: 40 problems, seven bounds on the outputs and none; is an answer beaten by any state
of another bound's search, and is a looser bound met wherever a tighter one is? ``knee``: answers
without bounds over seeds. ``rows``: row moves beside the least possible ones. ``sliced``: the
input distance beside its lower bound.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.questions import FROZEN, dataset, fitted

import elsewise as ew
from elsewise.request import Problem, Request, ask
from elsewise.search import Outcome, State, init, solve
from elsewise.search._sides import bounded_sides, selection_cost, selection_distance

ROOT = Path(__file__).resolve().parents[1]
PAGE, RESULTS = ROOT / "docs" / "optimality.md", ROOT / "docs" / "optimality.json"
DATA = (*FROZEN, "breast cancer")
MODELS = ("logistic", "LightGBM", "network", "forest")
TARGETS = ("sample", "at least")
TRAINED, ROWS = 1000, 80
SHARES = (0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.06)
"""Bounds, as shares of the factual output distance."""
BEATEN = 0.98
"""An answer is beaten by a state that is farther in neither and nearer by this in both."""
MET = (Outcome.MET, Outcome.NOTHING_TO_DO)
KNEES = (
    ("German Credit", "LightGBM", "sample"),
    ("breast cancer", "LightGBM", "at least"),
    ("breast cancer", "network", "sample"),
    ("HELOC", "forest", "sample"),
    ("COMPAS", "logistic", "at least"),
    ("cardio", "LightGBM", "sample"),
)


def posed(name: str, kind: str, asked: str, seed: int = 0) -> Problem:
    """Rows below the median score, whose outputs are to be like those of the best 40 %."""
    if name == "breast cancer":
        from sklearn.datasets import load_breast_cancer

        data = load_breast_cancer(as_frame=True)
        frame, outcome = data.data, data.target
    else:
        found = dataset(name)
        frame, outcome = found.frame, found.outcome
    order = np.random.default_rng([7, 0]).permutation(len(frame))
    half = min(TRAINED, len(frame) // 2)
    train, rows = frame.iloc[order[:half]], frame.iloc[order[half:]]
    model = fitted(kind, train, outcome.iloc[order[:half]])
    scores = model.predict_proba(train)[:, 1]
    rows = rows[model.predict_proba(rows)[:, 1] < np.median(scores)].iloc[:ROWS]
    cut = float(np.quantile(scores, 0.6))
    target = (
        ew.targets.at_least(cut) if asked == "at least" else ew.targets.sample(scores[scores > cut])
    )
    request = Request(
        model=model,
        rows=rows,
        target=target,
        schema=ew.Schema.infer(rows, train).freeze(*FROZEN.get(name, ())),
        background=train,
        bounds=ew.Bounds(outputs=1.0),
        certify="in-sample",
        seed=seed,
    )
    return ask(request)[0]


def dominance(seeds: int, models: tuple[str, ...] = MODELS) -> list[dict[str, Any]]:
    """Every problem at every bound, each answer against all states of all its searches."""
    table = []
    for name, kind, asked in itertools.product(DATA, models, TARGETS):
        for seed in range(max(1, seeds // 5)):
            base = posed(name, kind, asked, seed)
            start = time.process_time()
            rows = list(_answers(base))
            seconds = time.process_time() - start
            about = {"data": name, "model": kind, "target": asked, "seed": seed}
            table += [{**about, **row, "seconds": round(seconds, 2)} for row in rows]
    return table


def _answers(base: Problem) -> Iterator[dict[str, Any]]:
    settings = ew.Settings(slack=0.0)
    far = init(base, settings).record.outputs
    cost, distance = selection_cost(base), selection_distance(base)
    side = next(side for side in bounded_sides(base, settings) if side.name == "outputs")
    answers, seen = [], []
    for share in SHARES:
        bounds = ew.Bounds(outputs=share * far)
        solution, states = solve(replace(base, bounds=bounds), settings)
        answers.append((share, solution))
        seen += states[1:]
    solution, states = solve(replace(base, bounds=ew.Bounds()), settings)
    answers.append((None, solution))
    seen += states[1:]
    costs = np.array([cost(state) for state in seen])
    inputs = np.array([distance(state) for state in seen])
    outputs = np.array([state.record.outputs for state in seen])
    limits: dict[int, float] = {}

    def limit(k: int) -> float:
        return limits.setdefault(k, side.limit(seen[k]))

    for share, solution in answers:
        state = solution.state
        here, there = cost(state), state.record.outputs
        bounded, most = share is not None and solution.outcome in MET, (share or math.inf) * far
        # What a bound asks for is a limit: a state that breaks it beats nothing.
        beaten, sliced = (
            any(
                not bounded or limit(k) <= most
                for k in np.flatnonzero((paid < BEATEN * own) & (outputs < BEATEN * there))
            )
            for paid, own in ((costs, here), (inputs, distance(state)))
        )
        cheaper = 1.0
        if bounded and here > 0:
            order = [k for k in np.argsort(costs) if outputs[k] <= most and costs[k] < here]
            good = next((k for k in order[:40] if limit(k) <= most), None)
            cheaper = 1.0 if good is None else float(costs[good] / here)
        yield {
            "bound": share,
            "met": solution.outcome in MET or share is None,
            "cost": here,
            "inputs": distance(state),
            "outputs": there,
            "beaten": beaten,
            "beaten sliced": sliced,
            "cheapest": cheaper,
        }


def knee(seeds: int) -> list[dict[str, Any]]:
    """Answers without bounds: the same rows and model, another seed."""
    table = []
    for name, kind, asked in KNEES:
        base = replace(posed(name, kind, asked), bounds=ew.Bounds())
        found: list[State] = []
        for seed in range(seeds):
            found.append(solve(replace(base, seed=seed))[0].state)
        distance = selection_distance(base)
        outputs = np.array([state.record.outputs for state in found])
        inputs = np.array([distance(state) for state in found])
        middle = float(np.median(outputs))
        table.append(
            {
                "problem": f"{name}, {kind}, {asked}",
                "seeds": seeds,
                "outputs": middle,
                "least": float(outputs.min()),
                "largest": float(outputs.max()),
                "farthest from median": float(np.abs(outputs / middle - 1.0).max()),
                "inputs": float(np.median(inputs)),
            }
        )
    return table


def numbers(seed: int, columns: int, rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of numbers that go together, and noisy scores of them."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(rows, columns)) @ (
        np.eye(columns) + 0.3 * rng.normal(size=(columns,) * 2)
    )
    frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(columns)])
    return frame, values @ rng.normal(size=columns) + 0.5 * rng.normal(size=rows)


def rows(seeds: int) -> list[dict[str, Any]]:
    """Row moves beside the least possible: quadratic programs, and all cells of small trees."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LinearRegression, LogisticRegression

    table = []
    for seed in range(2 * seeds):
        for kind in ("linear", "logistic", "trees"):
            frame, scores = numbers(seed, 5, 60)
            level = 0.5 if kind != "linear" else float(np.quantile(scores, 0.6))
            if kind == "linear":
                model: Any = LinearRegression().fit(frame, scores)
            elif kind == "logistic":
                model = LogisticRegression().fit(frame, scores > np.quantile(scores, 0.6))
            else:
                model = RandomForestClassifier(4, max_depth=3, random_state=seed)
                model.fit(frame, scores > np.quantile(scores, 0.6))
            start = time.process_time()
            found = ew.explain(
                model,
                frame,
                target=ew.targets.at_least(level),
                certify="in-sample",
                settings=ew.Settings(slack=0.0),
            )
            seconds = time.process_time() - start
            scale = frame.std().to_numpy()
            moved = (found.counterfactual.to_numpy() - frame.to_numpy()) / scale
            arrived = np.flatnonzero(np.any(moved != 0.0, axis=1))
            low, high = frame.min().to_numpy(), frame.max().to_numpy()
            if kind == "trees":
                exact = _all_cells(model, frame.to_numpy()[arrived], scale, low, high, level)
            else:
                weights = model.coef_.ravel()
                need = (level if kind == "linear" else 0.0) - frame.to_numpy() @ weights
                need = need - float(np.ravel(model.intercept_)[0])
                ends = [(end - frame.to_numpy()) / scale for end in (low, high)]
                exact = np.array(
                    [_least(weights * scale, need[i], ends[0][i], ends[1][i]) for i in arrived]
                )
            paid = float((moved[arrived] ** 2).sum())
            table.append(
                {
                    "model": kind,
                    "seed": seed,
                    "rows": len(arrived),
                    "excess": float(np.sqrt(paid / exact.sum()) - 1.0),
                    "seconds": round(seconds, 2),
                }
            )
    return table


def _least(gains: np.ndarray, need: float, low: np.ndarray, high: np.ndarray) -> float:
    """The least |z|^2 with gains z >= need inside a box, by sequential quadratic programming."""
    from scipy.optimize import minimize

    found = minimize(
        lambda z: float(z @ z),
        np.where(gains > 0, high, low),
        jac=lambda z: 2.0 * z,
        bounds=list(zip(low, high, strict=True)),
        constraints={
            "type": "ineq",
            "fun": lambda z: float(gains @ z) - need,
            "jac": lambda _: gains,
        },
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 300},
    )
    return float(found.fun)


def _all_cells(
    model: Any, rows: np.ndarray, scale: np.ndarray, low: np.ndarray, high: np.ndarray, level: float
) -> np.ndarray:
    """The least squared move of each row into any cell of the thresholds in which trees agree."""
    cuts = [set() for _ in range(rows.shape[1])]
    for tree in model.estimators_:
        for column, cut in zip(tree.tree_.feature, tree.tree_.threshold, strict=True):
            if column >= 0:
                cuts[column].add(float(cut))
    edges = [
        np.array([low[j], *sorted(c for c in cut if low[j] < c < high[j]), high[j]])
        for j, cut in enumerate(cuts)
    ]
    places = np.array(list(itertools.product(*(range(len(e) - 1) for e in edges))))
    floor = np.column_stack([edge[places[:, j]] for j, edge in enumerate(edges)])
    ceiling = np.column_stack([edge[places[:, j] + 1] for j, edge in enumerate(edges)])
    middle = pd.DataFrame((floor + ceiling) / 2.0, columns=model.feature_names_in_)
    good = model.predict_proba(middle)[:, 1] >= level
    floor, ceiling = floor[good], ceiling[good]
    return np.array(
        [(((np.clip(row, floor, ceiling) - row) / scale) ** 2).sum(axis=1).min() for row in rows]
    )


def sliced(seeds: int) -> list[dict[str, Any]]:
    """Linear outputs that are to rise by a number: the input distance beside its lower bound.

    Sliced distances are at least |shift of the mean| / sqrt(d), and a mean output that rises by m
    needs a shift of m / |w|.
    """
    from sklearn.linear_model import LinearRegression

    table = []
    for columns, seed in itertools.product((2, 5, 10), range(max(1, seeds // 4))):
        frame, scores = numbers(seed, columns, 100)
        model = LinearRegression().fit(frame, scores)
        weights = model.coef_ * frame.std().to_numpy()
        schema = ew.Schema.infer(frame)
        for name in frame:
            schema = schema.range(name, -100.0, 100.0)
        bound = 0.1 * float(scores.std())
        found = ew.explain(
            model,
            frame,
            target=ew.targets.shift(0.8 * float(scores.std())),
            schema=schema,
            bounds=ew.Bounds(outputs=bound, trim=0.0),
            population="all",
        )
        rise = float(model.predict(found.counterfactual).mean() - model.predict(frame).mean())
        least = rise / (np.linalg.norm(weights) * np.sqrt(columns))
        reached = found.certificate.inputs.estimate
        table.append(
            {
                "columns": columns,
                "seed": seed,
                "inputs": reached,
                "least": float(least),
                "excess, %": round(100.0 * float(reached / least - 1.0), 4) + 0.0,
            }
        )
    return table


PARTS: dict[str, Any] = {"dominance": dominance, "knee": knee, "rows": rows, "sliced": sliced}


def markdown(table: pd.DataFrame) -> list[str]:
    """A table in Markdown."""
    head = [f"| {' | '.join(table.columns)} |", "|" + " --- |" * len(table.columns)]
    return [
        *head,
        *(f"| {' | '.join(map(_cell, row))} |" for row in table.itertuples(index=False)),
        "",
    ]


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _dominance_page(table: pd.DataFrame) -> list[str]:
    bounded = table[table["bound"].notna()]
    met = bounded[bounded["met"]]
    keys = ["data", "model", "target", "seed"]
    broken = 0
    for _, part in bounded.groupby(keys, sort=False):
        reached = part.sort_values("bound")["met"].to_numpy()
        broken += int((np.diff(reached.astype(int)) < 0).any())
    count = len(bounded.groupby(keys))
    by_model = (
        met.assign(more=1.0 / met["cheapest"] - 1.0)
        .groupby("model", sort=False)
        .agg(
            answers=("more", "size"),
            beaten=("beaten", "sum"),
            sliced=("beaten sliced", "sum"),
            over_2=("more", lambda more: int((more > 0.02).sum())),
            over_10=("more", lambda more: int((more > 0.1).sum())),
            mean=("more", lambda more: 100.0 * more.mean()),
            worst=("more", lambda more: 100.0 * more.max()),
        )
        .reset_index()
    )
    by_model.columns = [
        "model",
        "answers that meet their bound",
        "beaten",
        "beaten by sliced distance",
        "more than 2 % dearer than a state that meets the bound",
        "more than 10 %",
        "mean, %",
        "worst, %",
    ]
    free = table[table["bound"].isna()]
    return [
        f"{count} problems ({len(DATA)} datasets; {', '.join(table['model'].unique())}; "
        f"{len(TARGETS)} targets; {table['seed'].nunique()} seeds), {ROWS} rows, in-sample; bounds "
        f"of {', '.join(f'{share:g}' for share in SHARES)} times the factual output distance, and "
        "none; `Settings(slack=0)`. Every answer is compared with every state of all eight "
        "searches of the same problem and seed: beaten means that some state which meets the same "
        "bound is more than 2 % nearer on both sides; of an answer that misses its bound or has "
        "none, that any state is. Inputs are compared by what the search minimizes: half the "
        "squared sliced distance, half each row's own squared move (`population_weight=0.5`), on "
        "the root scale. A state may be nearer by the sliced distance alone, because its rows "
        "stand in for one another; that is counted, too, and is not what the search looks for.",
        "",
        f"A tighter bound is met where a looser one is not: in {broken} of {count} problems. Of "
        f"the {len(free)} answers without a bound, {int(free['beaten'].sum())} are beaten. None "
        f"should be: {int(table['beaten'].sum())} of {len(table)} are "
        f"({int(table['beaten sliced'].sum())} by the sliced distance). Without slopes a search "
        "goes by edits that are drawn at random, and another bound's may be luckier.",
        "",
        *markdown(by_model),
    ]


def _knee_page(table: pd.DataFrame) -> list[str]:
    return [
        "Without bounds: the same rows and model, other seeds. The output distance of the answer "
        "is to vary by no more than a quarter of its median "
        f"({int((table['farthest from median'] <= 0.25).sum())} of {len(table)} problems do).",
        "",
        *markdown(table),
    ]


def _rows_page(table: pd.DataFrame) -> list[str]:
    found = (
        table.assign(excess=100.0 * table["excess"])
        .groupby("model", sort=False)["excess"]
        .agg(
            [
                "size",
                "median",
                "max",
                lambda e: int((e <= 3.0).sum()),
                lambda e: int((e <= 10.0).sum()),
            ]
        )
        .reset_index()
    )
    found.columns = ["model", "problems", "median, %", "worst, %", "within 3 %", "within 10 %"]
    return [
        "`at_least`, 60 rows of five numbers, `Settings(slack=0)`: root mean square move beside "
        "the least possible one. Linear and logistic models: one quadratic program a row (SciPy's "
        "SLSQP). Trees: four of depth 3, every cell that their thresholds make. For linear models "
        'a notice of the answer says the same: "moves are at most x % longer than the least".',
        "",
        *markdown(found),
    ]


def _sliced_page(table: pd.DataFrame) -> list[str]:
    return [
        "Linear outputs, a shift by 0.8 standard deviations, no trimming, numbers that may go "
        "anywhere: no rows whose mean output rose as much have an input distance below `least`.",
        "",
        *markdown(table),
    ]


TITLES = {
    "dominance": ("Is an answer beaten by another setting's?", _dominance_page),
    "knee": ("Does the answer without bounds depend on the seed?", _knee_page),
    "rows": ("Row moves beside the least possible", _rows_page),
    "sliced": ("The input distance beside its lower bound", _sliced_page),
}


def page(results: dict[str, Any]) -> str:
    """Return the page of all parts that were run."""
    lines = [
        "# Can an answer be beaten?",
        "",
        "Made by `python -m benchmarks.optimality`; nothing here is written by hand.",
        "",
    ]
    for part, (title, section) in TITLES.items():
        if part in results:
            about = results[part]
            lines += [f"## {title}", "", *section(pd.DataFrame(about["table"]))]
            lines += [
                f"*Run of {about['date']}, {about['seconds']:.0f} s of processor time, one thread "
                "of 2 cores.*",
                "",
            ]
    return "\n".join(lines)


def main() -> None:
    """Run the parts that were asked for, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("parts", nargs="*", default=[])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--models", nargs="*", choices=MODELS, default=MODELS)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    for part in options.parts or PARTS:
        start = time.process_time()
        more = {"models": tuple(options.models)} if part == "dominance" else {}
        table = PARTS[part](options.seeds, **more)
        results[part] = {
            "date": date.today().isoformat(),
            "seconds": round(time.process_time() - start, 1),
            "table": table,
        }
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
