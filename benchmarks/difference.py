"""Planted shifts between two samples: does `elsewise.difference` find the attribute, and how sure.

    python -m benchmarks.difference [--sizes 300 1000] [--attributes 4 10] [--seeds 12]

Only one attribute shifts, by five standard errors of the functional, so that all of the change is
its own. The population's change is computed on 200,000 rows. Beside it, on the same samples: the
group difference of SHAP values (exact for the linear model; for trees LightGBM's own TreeSHAP),
gain importances of a domain classifier, and the population stability index of every column.
Writes the tables of docs/difference.md.
"""

from __future__ import annotations

import argparse
import datetime
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import lightgbm
import numpy as np
import pandas as pd
from scipy.optimize import brentq

import elsewise as ew

PAGE = Path(__file__).parents[1] / "docs" / "difference.md"
START, END = "<!-- results -->\n", "<!-- end of results -->"
KINDS = ("none", "none, 0.9", "mean", "mix", "part", "scale", "decoy")
NULLS = KINDS[:2]
ERRORS = 5.0
MANY = 200_000
METHODS = ("elsewise", "SHAP", "classifier", "PSI")


def draw(size: int, attributes: int, kind: str, amount: float, seed: Any) -> pd.DataFrame:
    """Correlated columns, two of them categories; one attribute shifted."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(size, 1))
    numbers = 0.5 * factor + rng.normal(size=(size, attributes - 2))
    numbers[:, 1] = np.expm1(0.4 * numbers[:, 1])
    frame = pd.DataFrame(numbers, columns=[f"x{j}" for j in range(attributes - 2)])
    segment = np.digitize(rng.normal(size=size) + 0.5 * factor[:, 0], [-0.5, 0.6])
    region = (rng.random(size) < 0.4).astype(int)
    if kind in ("mean", "decoy"):
        frame["x0"] += amount
    if kind == "part":
        frame["x0"] += amount * region
    if kind == "scale":
        frame["x0"] *= 1.0 + amount
    if kind == "mix":
        segment = np.where(rng.random(size) < amount, 2, segment)
    if kind == "decoy":
        frame[f"x{attributes - 3}"] += 1.0  # which no model looks at
    frame["segment"] = pd.Categorical.from_codes(segment, ["a", "b", "c"])
    frame["region"] = pd.Categorical.from_codes(region, ["n", "s"])
    return frame


class Model(NamedTuple):
    """A model and its SHAP values by attribute."""

    score: Callable[[pd.DataFrame], np.ndarray]
    shap: Callable[[pd.DataFrame], np.ndarray]


def linear(attributes: int) -> Model:
    """Weights that fall from 1, none for the last number."""
    weights = np.r_[np.linspace(1.0, 0.3, attributes - 3), 0.0] if attributes > 4 else [1.0, 0.0]

    def shap(frame: pd.DataFrame) -> np.ndarray:
        numbers = frame.iloc[:, :-2].to_numpy() * weights
        levels = np.array([0.0, 0.6, 1.2])[frame["segment"].cat.codes]
        return np.column_stack([numbers, levels, 0.5 * frame["region"].cat.codes])

    return Model(lambda frame: shap(frame).sum(axis=1), shap)


def trees(attributes: int) -> Model:
    """LightGBM on a target with thresholds and interactions."""
    rows = draw(6000, attributes, "none", 0.0, [0, attributes])
    plain = linear(attributes).score(rows)
    kinked = np.maximum(rows["x0"], 0.0) * (1.0 + 0.5 * rows["region"].cat.codes)
    noise = 0.3 * np.random.default_rng(1).normal(size=len(rows))
    names = [name for name in rows if name != f"x{attributes - 3}"]
    booster = lightgbm.LGBMRegressor(n_estimators=100, num_leaves=15, n_jobs=1, verbose=-1)
    booster.fit(rows[names], plain + kinked + noise)

    def shap(frame: pd.DataFrame) -> np.ndarray:
        found = pd.DataFrame(
            booster.predict(frame[names], pred_contrib=True)[:, :-1], columns=names
        )
        return found.reindex(columns=frame.columns, fill_value=0.0).to_numpy()

    return Model(lambda frame: booster.predict(frame[names]), shap)


def functional_of(kind: str) -> Any:
    """Return what is asked: the 0.9 quantile where the scale changes, else the mean."""
    return ("quantile", 0.9) if kind in ("scale", "none, 0.9") else "mean"


def population(model: Model, attributes: int, kind: str, amount: float) -> tuple[float, float]:
    """Value of the functional and its standard error for one row."""
    scores = model.score(draw(MANY, attributes, kind, amount, 99))
    if kind != "scale":
        return float(scores.mean()), float(scores.std())
    low, value, high = np.quantile(scores, [0.88, 0.9, 0.92])
    return float(value), float(0.3 * (high - low) / 0.04)


def amount_for(model: Model, attributes: int, kind: str, size: int) -> tuple[float, float]:
    """Return a shift of `ERRORS` standard errors, and the change of the functional by it."""
    before, error = population(model, attributes, kind, 0.0)
    wanted = ERRORS * error * (2.0 / size) ** 0.5

    def gap(amount: float) -> float:
        return population(model, attributes, kind, amount)[0] - before - wanted

    most = 0.95 if kind == "mix" else 6.0
    amount = brentq(gap, 0.0, most, xtol=1e-3) if gap(most) > 0 else most
    return amount, gap(amount) + wanted


def rivals(model: Model, before: pd.DataFrame, after: pd.DataFrame) -> dict[str, str]:
    """Return the attribute that each of the other methods puts first."""
    shap = np.abs(model.shap(after).mean(axis=0) - model.shap(before).mean(axis=0))
    side = np.repeat([0, 1], [len(before), len(after)])
    domain = lightgbm.LGBMClassifier(
        n_estimators=60, num_leaves=7, importance_type="gain", n_jobs=1, verbose=-1
    ).fit(pd.concat([before, after], ignore_index=True), side)
    psi = [stability_index(before[name], after[name]) for name in before]
    scores = {"SHAP": shap, "classifier": domain.feature_importances_, "PSI": psi}
    return {name: str(before.columns[int(np.argmax(values))]) for name, values in scores.items()}


def stability_index(before: pd.Series[Any], after: pd.Series[Any]) -> float:
    """PSI over ten quantiles of a number or the levels of a category."""
    cuts = None if before.dtype == "category" else np.quantile(before, np.arange(1, 10) / 10)
    sides = [s.cat.codes if cuts is None else np.digitize(s, cuts) for s in (before, after)]
    shares = [np.maximum(np.bincount(s, minlength=10) / len(s), 1e-4) for s in sides]
    return float(np.sum((shares[1] - shares[0]) * np.log(shares[1] / shares[0])))


def run(
    name: str,
    model: Model,
    kind: str,
    size: int,
    attributes: int,
    seeds: int,
    nulls: dict[Any, np.ndarray],
) -> dict[str, Any]:
    """Measure one cell of the grid; ``nulls`` collects the parts of samples without a shift.

    Those have mean 0 and nearly the same sampling errors: what is left after subtracting them is
    the bias, at a fraction of its noise.
    """
    true = "segment" if kind == "mix" else "x0"
    amount, change = (0.0, 0.0) if kind in NULLS else amount_for(model, attributes, kind, size)
    first = dict.fromkeys(METHODS, 0)
    parts, covered, rejected, spent = [], 0, 0, 0.0
    for seed in range(seeds):
        before = draw(size, attributes, "none", 0.0, [1, seed, size])
        after = draw(size, attributes, kind, amount, [2, seed, size])
        started = time.process_time()
        found = ew.difference(
            model.score, before, after, functional=functional_of(kind), seed=seed, progress=False
        )
        spent += time.process_time() - started
        table = found.table().loc[before.columns]
        truth = (table.index == true) * change
        covered += bool(((table["low"] <= truth) & (truth <= table["high"])).all())
        rejected += found.p_value <= 0.05
        parts.append(table["part"] - truth)
        told = {"elsewise": found.table().index[0]} | rivals(model, before, after)
        for method, attribute in told.items():
            first[method] += attribute == true
    errors = np.stack(parts)
    if kind in NULLS:
        nulls[functional_of(kind)] = errors
    errors = errors - nulls[functional_of(kind)]
    cell = {"kind": kind, "model": name, "rows": size, "attributes": attributes, "runs": seeds}
    shares = {method: first[method] / seeds for method in METHODS}
    return cell | shares | {
        "cover": covered / seeds,
        "rejected": rejected / seeds,
        "bias": np.abs(errors.mean(axis=0)).max() / (change or 1.0),
        "noise of bias": errors.std(axis=0).max() / seeds**0.5 / (change or 1.0),
        "seconds": spent / seeds,
    }  # fmt: skip


def written(cells: pd.DataFrame, seeds: int) -> str:
    """Return the tables of the page."""
    shifted, null = (cells[cells["kind"].isin(NULLS) == flag] for flag in (False, True))
    lines = [
        f"Measured on {datetime.date.today()}, 2 cores, one thread, up to {seeds} seeds a cell "
        f"(fewer with many rows), {int(cells['runs'].sum()):,} runs, by `python -m "
        f"benchmarks.difference`. The shift is {ERRORS:g} standard errors of the functional, or "
        "as far as the mix goes.",
        "",
        "| shift | runs | " + " first | ".join(METHODS) + " first | covered | largest bias |",
        "|---|---|" + "---|" * 6,
    ]
    for kind in (*KINDS[2:], "all"):
        part = shifted if kind == "all" else shifted[shifted["kind"] == kind]
        shares = " | ".join(percent(part, name) for name in (*METHODS, "cover"))
        lines.append(
            f"| {kind} | {int(part['runs'].sum())} | {shares} | {part['bias'].max():.3f} |"
        )
    lines += [
        "",
        f"Without a shift, {int(null['runs'].sum())} runs: covered in {percent(null, 'cover')}, "
        f'"nothing changed" rejected at 5 % in {percent(null, "rejected")}.',
        "",
        "| model | rows a side | attributes | elsewise first | covered | largest bias | its noise "
        "| processor seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (name, size, count), part in cells.groupby(["model", "rows", "attributes"]):
        moved = shifted.loc[part.index.intersection(shifted.index)]
        worst = moved.loc[moved["bias"].idxmax()]
        seconds = np.average(part["seconds"], weights=part["runs"])
        lines.append(
            f"| {name} | {size:,} | {count} | {percent(moved, 'elsewise')} | "
            f"{percent(part, 'cover')} | {worst['bias']:.3f} ({worst['kind']}) | "
            f"{worst['noise of bias']:.3f} | {seconds:.1f} |"
        )
    return "\n".join(lines) + "\n"


def percent(cells: pd.DataFrame, name: str) -> str:
    """Return a share over all runs of the cells."""
    return f"{100 * np.average(cells[name], weights=cells['runs']):.1f} %"


def main() -> None:
    """Run the grid and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 1000])
    parser.add_argument("--attributes", type=int, nargs="+", default=[4, 10])
    parser.add_argument("--seeds", type=int, default=48, help="with 300 rows; fewer with more")
    parser.add_argument("--csv", type=Path, help="also write every cell")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    cells: list[dict[str, Any]] = []
    for attributes in options.attributes:
        for name, model in (("linear", linear(attributes)), ("trees", trees(attributes))):
            for size in options.sizes:
                nulls: dict[Any, np.ndarray] = {}
                seeds = max(4, options.seeds * 300 // max(size, 300))
                for kind in KINDS:
                    cells.append(run(name, model, kind, size, attributes, seeds, nulls))
                    print(cells[-1], flush=True)
    table = pd.DataFrame(cells)
    if options.csv:
        table.to_csv(options.csv, index=False)
    page = options.page.read_text(encoding="utf-8")
    head, rest = page.split(START)
    text = head + START + written(table, options.seeds) + END + rest.split(END)[1]
    options.page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
