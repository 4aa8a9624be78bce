"""Planted shifts between two samples: does `elsewise.difference` find the attribute, and how sure.

    python -m benchmarks.difference [--rounds 2] [--sizes 300 1000 5000] [--attributes 4 10 30]

Only one attribute shifts, by five standard errors of the functional, so that all of the change is
its own. The population's change is computed on many rows. Beside it, on the same samples: the
group difference of SHAP values (exact for the linear model; for trees LightGBM's own TreeSHAP),
gain importances of a domain classifier, and the population stability index of every column.
The matching was tuned on samples like the made-up ones; the same shifts planted in rows of HELOC
and cardio, which it was not tuned on, check it. Every round adds runs to every cell; another call
goes on where the last one stopped. Writes the tables of docs/difference.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import lightgbm
import numpy as np
import pandas as pd
from scipy.optimize import brentq

import elsewise as ew
from benchmarks import datasets

PAGE = Path(__file__).parents[1] / "docs" / "difference.md"
START, END = "<!-- results -->\n", "<!-- end of results -->"
KINDS = ("none", "none, 0.9", "mean", "mix", "part", "scale", "decoy")
NULLS = KINDS[:2]
ERRORS, LEAST = 5.0, 4.0
"""Shifts in standard errors of the functional; cells that cannot reach the least are left out."""
MANY, FEW = 100_000, 20_000
METHODS = ("elsewise", "SHAP", "classifier", "PSI")
FEWEST = 4
SEEDS = {300: 4, 1000: 2, 5000: 1}
"""Runs of a cell in a round; each size has about the same processor time."""


class World(NamedTuple):
    """A population, a model of it, and which columns shift."""

    name: str
    attributes: int
    sample: Callable[[int, Any], pd.DataFrame]
    score: Callable[[pd.DataFrame], np.ndarray]
    shap: Callable[[pd.DataFrame], np.ndarray]
    """SHAP values (n, J) of the rows."""
    number: str
    """What shifts, but for a change of the mix."""
    level: tuple[str, Any]
    """A column, and the value that a change of its mix makes more frequent."""
    part: Callable[[pd.DataFrame], Any]
    """Rows of the sub-population, bool."""
    idle: str | None
    """A column that the model does not look at."""
    unit: float = 1.0
    """Standard deviation of the number."""

    def true(self, kind: str) -> str:
        """Return the attribute that shifts."""
        return self.level[0] if kind == "mix" else self.number

    def plant(self, rows: pd.DataFrame, kind: str, amount: float, seed: Any) -> pd.DataFrame:
        """Return the rows with one attribute shifted by so many of its standard deviations."""
        frame, numbers, step = rows.copy(), rows[self.number], amount * self.unit
        if kind in ("mean", "decoy"):
            frame[self.number] = numbers + step
        if kind == "decoy":
            frame[self.idle] += 1.0
        if kind == "part":
            frame[self.number] = numbers + step * self.part(rows)
        if kind == "scale":
            middle = self.sample(FEW, 97)[self.number].mean()
            frame[self.number] = middle + (1.0 + amount) * (numbers - middle)
        if kind == "mix":
            turned = np.random.default_rng([*np.atleast_1d(seed), 1]).random(len(rows)) < amount
            frame.loc[turned, self.level[0]] = self.level[1]
        return frame


def made_up(attributes: int, size: int, seed: Any) -> pd.DataFrame:
    """Correlated columns, two of them categories."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(size, 1))
    numbers = 0.5 * factor + rng.normal(size=(size, attributes - 2))
    numbers[:, 1] = np.expm1(0.4 * numbers[:, 1])
    frame = pd.DataFrame(numbers, columns=[f"x{j}" for j in range(attributes - 2)])
    segment = np.digitize(rng.normal(size=size) + 0.5 * factor[:, 0], [-0.5, 0.6])
    region = (rng.random(size) < 0.4).astype(int)
    frame["segment"] = pd.Categorical.from_codes(segment, ["a", "b", "c"])
    frame["region"] = pd.Categorical.from_codes(region, ["n", "s"])
    return frame


@cache
def linear(attributes: int) -> World:
    """Weights 1 and, falling, those of other numbers, smaller if there are many; 0 for the last."""
    others = np.linspace(0.8, 0.3, attributes - 4) * min(1.0, 6.0 / attributes)
    weights = np.r_[1.0, others, 0.0]

    def shap(frame: pd.DataFrame) -> np.ndarray:
        numbers = frame.iloc[:, :-2].to_numpy() * weights
        levels = np.array([0.0, 1.2, 2.4])[frame["segment"].cat.codes]
        return np.column_stack([numbers, levels, 0.5 * frame["region"].cat.codes])

    return World(
        "linear",
        attributes,
        partial(made_up, attributes),
        lambda frame: shap(frame).sum(axis=1),
        shap,
        number="x0",
        level=("segment", "c"),
        part=lambda rows: rows["region"] == "s",
        idle=f"x{attributes - 3}",
    )


@cache
def trees(attributes: int) -> World:
    """LightGBM on a target with thresholds and interactions."""
    world = linear(attributes)
    rows = world.sample(6000, [0, attributes])
    kinked = np.maximum(rows["x0"], 0.0) * (1.0 + 0.5 * rows["region"].cat.codes)
    noise = 0.3 * np.random.default_rng(1).normal(size=len(rows))
    names = [name for name in rows if name != world.idle]
    booster = lightgbm.LGBMRegressor(
        n_estimators=50, learning_rate=0.2, num_leaves=15, n_jobs=1, verbose=-1
    ).fit(rows[names], world.score(rows) + kinked + noise)

    def shap(frame: pd.DataFrame) -> np.ndarray:
        found = pd.DataFrame(
            booster.predict(frame[names], pred_contrib=True)[:, :-1], columns=names
        )
        return found.reindex(columns=frame.columns, fill_value=0.0).to_numpy()

    return world._replace(
        name="trees", score=lambda frame: booster.predict(frame[names]), shap=shap
    )


@cache
def real(name: str) -> World:
    """Rows of HELOC or cardio, and LightGBM on their outcome."""
    number, level, split = "ap_hi", ("cholesterol", 3.0), "gender"
    if name == "HELOC":
        number, level, split = (
            "ExternalRiskEstimate",
            ("ExternalRiskEstimate", 90.0),
            "AverageMInFile",
        )
    data = datasets.heloc() if name == "HELOC" else datasets.cardio()
    rows = data.frame.astype(float).dropna(subset=[number])
    if name == "cardio":  # pressures that cannot be are left out
        rows = rows[rows["ap_hi"].between(60, 250) & rows["ap_lo"].between(30, 200)]
    booster = lightgbm.LGBMClassifier(
        n_estimators=50, learning_rate=0.1, num_leaves=15, n_jobs=1, verbose=-1
    ).fit(rows, data.outcome[rows.index])

    def sample(size: int, seed: Any) -> pd.DataFrame:
        places = np.random.default_rng(seed).integers(0, len(rows), size)
        return rows.iloc[places].reset_index(drop=True)

    return World(
        name,
        rows.shape[1],
        sample,
        lambda frame: booster.predict_proba(frame)[:, 1],
        lambda frame: booster.predict(frame, pred_contrib=True)[:, :-1],
        number=number,
        level=level,
        part=lambda frame: frame[split] > rows[split].mean(),
        idle=None,
        unit=float(rows[number].std()),
    )


def functional_of(kind: str) -> Any:
    """Return what is asked: the 0.9 quantile where the scale changes, else the mean."""
    return ("quantile", 0.9) if kind in ("scale", "none, 0.9") else "mean"


def value(scores: np.ndarray, kind: str) -> float:
    """Return what is asked about, for outputs."""
    level = functional_of(kind)
    return float(
        scores.mean() if level == "mean" else np.quantile(scores, level[1], method="inverted_cdf")
    )


@cache
def amount_for(world: Callable[..., World], arguments: Any, kind: str, size: int) -> Any:
    """Return a shift of `ERRORS` standard errors, and the change of the functional by it."""
    made = world(arguments)
    rows = made.sample(FEW, 99)
    scores = made.score(rows)
    error = scores.std()
    if kind == "scale":
        low, high = np.quantile(scores, [0.88, 0.92])
        error = 0.3 * (high - low) / 0.04
    wanted = ERRORS * error * (2.0 / size) ** 0.5

    def gap(amount: float) -> float:
        return value(made.score(made.plant(rows, kind, amount, 99)), kind) - value(scores, kind)

    most = 0.95 if kind == "mix" else 6.0
    enough = gap(most) > wanted
    amount = brentq(lambda x: gap(x) - wanted, 0.0, most, xtol=1e-2) if enough else most
    rows = made.sample(MANY, 98)
    ends = [value(made.score(made.plant(rows, kind, x, 98)), kind) for x in (0.0, amount)]
    return amount, ends[1] - ends[0], (ends[1] - ends[0]) / wanted * ERRORS


def rivals(world: World, before: pd.DataFrame, after: pd.DataFrame) -> dict[str, str]:
    """Return the attribute that each of the other methods puts first."""
    shap = np.abs(world.shap(after).mean(axis=0) - world.shap(before).mean(axis=0))
    side = np.repeat([0, 1], [len(before), len(after)])
    domain = lightgbm.LGBMClassifier(
        n_estimators=60, num_leaves=7, importance_type="gain", n_jobs=1, verbose=-1
    ).fit(pd.concat([before, after], ignore_index=True), side)
    psi = [stability_index(before[name], after[name]) for name in before]
    scores = {"SHAP": shap, "classifier": domain.feature_importances_, "PSI": psi}
    return {name: str(before.columns[int(np.argmax(values))]) for name, values in scores.items()}


def stability_index(before: pd.Series[Any], after: pd.Series[Any]) -> float:
    """PSI over ten quantiles of a number or the levels of a category; missing cells are a level."""
    if before.dtype == "category":
        sides = [s.cat.codes for s in (before, after)]
    else:
        cuts = np.quantile(before.dropna(), np.arange(1, 10) / 10)
        sides = [np.where(s.isna(), 10, np.digitize(s, cuts)) for s in (before, after)]
    shares = [np.maximum(np.bincount(s, minlength=11) / len(s), 1e-4) for s in sides]
    return float(np.sum((shares[1] - shares[0]) * np.log(shares[1] / shares[0])))


def runs(
    make: Callable[..., World], arguments: Any, size: int, seed: int, done: set[Any]
) -> Iterator[dict[str, Any]]:
    """Yield a record for each kind of shift that is not done, on the same rows.

    The bias is measured so that most of the noise is gone, which does not change its mean: what the
    shift did to these very rows stands for the truth, and the parts are compared with those of the
    same rows without the shift, or of a quantile, where that does not help, averaged with those of
    the second sample as before and the first one, shifted, as after.
    """
    world = make(arguments)
    before, plain = (world.sample(size, [side, seed, size]) for side in (1, 2))
    unshifted: dict[str, pd.Series[float]] = {}
    for kind in KINDS:
        cell = {"kind": kind, "model": world.name, "rows": size, "attributes": world.attributes}
        if (kind, world.name, size, world.attributes, seed) in done:
            continue
        if kind == "decoy" and world.idle is None:
            continue
        amount, change, errors = 0.0, 0.0, 0.0
        if kind not in NULLS:
            amount, change, errors = amount_for(make, arguments, kind, size)
            if errors < LEAST:
                continue
        after = world.plant(plain, kind, amount, [seed, size])
        asked = {"functional": functional_of(kind), "seed": seed, "progress": False}
        started = time.process_time()
        found = ew.difference(world.score, before, after, **asked)
        spent = time.process_time() - started
        table = found.table().loc[before.columns]
        true = (table.index == world.true(kind)).astype(float)
        record = cell | {"seed": seed, "rejected": found.p_value <= 0.05}
        record |= {"seconds": spent, "errors": errors}
        record["cover"] = bool(table["low"].le(true * change).all())
        record["cover"] &= bool(table["high"].ge(true * change).all())
        if kind in NULLS:
            unshifted[kind] = table["part"]
        else:
            did = value(world.score(after), kind) - value(world.score(plain), kind)
            if kind == "scale":
                other = world.plant(before, kind, amount, [seed, size])
                back = ew.difference(world.score, plain, other, draws=19, **asked).table()
                did += value(world.score(other), kind) - value(world.score(before), kind)
                off = (table["part"] + back["part"][table.index] - true * did) / 2.0
            else:
                off = table["part"] - unshifted["none"] - true * did
            record["off"] = (off / change).tolist()
            record["place"] = int(true.argmax())
            first = {"elsewise": found.table().index[0]} | rivals(world, before, after)
            record |= {method: name == world.true(kind) for method, name in first.items()}
        yield record


def bias_of(cells: pd.DataFrame) -> tuple[float, float]:
    """Return the largest mean error over the attributes of one cell, and its standard error."""
    errors = np.stack(cells["off"].tolist())
    worst = int(np.abs(errors.mean(axis=0)).argmax())
    spread = errors[:, worst].std(ddof=1) / len(errors) ** 0.5
    return float(np.abs(errors[:, worst].mean())), float(spread)


def worst_of(cells: pd.DataFrame) -> str:
    """Return the largest bias over cells of a few runs, its standard error, and the cell."""
    groups = cells.groupby(["model", "rows", "attributes", "kind"])
    found = [(*bias_of(cell), name) for name, cell in groups if len(cell) >= FEWEST]
    if not found:
        return "-"
    bias, noise, (model, rows, attributes, kind) = max(found, key=lambda each: each[0])
    return f"{bias:.3f} ± {noise:.3f} ({model}, {rows:,} rows, {attributes} columns, {kind})"


def own_bias(cells: pd.DataFrame) -> str:
    """Return the mean error of the shifted attribute over all cells, and its standard error."""
    own = [off[int(place)] for off, place in zip(cells["off"], cells["place"], strict=True)]
    return f"{np.mean(own):+.3f} ± {np.std(own, ddof=1) / len(own) ** 0.5:.3f}"


def percent(cells: pd.DataFrame, name: str) -> str:
    """Return a share over all runs of the cells."""
    return f"{100 * cells[name].mean():.1f} %" if len(cells) else "-"


def written(table: pd.DataFrame) -> str:
    """Return the tables of the page."""
    made = table[table["model"].isin(["linear", "trees"])]
    lines = [
        f"Measured on {datetime.date.today()}, 2 cores, one thread, {len(table):,} runs "
        f"({len(made):,} on made-up rows), by `python -m benchmarks.difference`. The shift is "
        f"{ERRORS:g} standard errors of the functional; cells in which it cannot be {LEAST:g} are "
        "left out. Biases are shares of the change, with standard errors: that of the shifted "
        "attribute over all cells, and the largest of all attributes in a cell of at least "
        f"{FEWEST} runs.",
    ]
    for title, cells in (("Made-up rows", made), ("HELOC and cardio", table.drop(made.index))):
        if len(cells):
            lines += ["", f"### {title}", "", *_section(cells)]
    return "\n".join(lines) + "\n"


def _section(cells: pd.DataFrame) -> list[str]:
    shifted, null = (cells[cells["kind"].isin(NULLS) == flag] for flag in (False, True))
    lines = [
        "| shift | runs | " + " first | ".join(METHODS) + " first | covered | its bias "
        "| largest bias of any attribute |",
        "|---|---|" + "---|" * 7,
    ]
    for kind in (*KINDS[2:], "all"):
        part = shifted if kind == "all" else shifted[shifted["kind"] == kind]
        if len(part):
            shares = " | ".join(percent(part, name) for name in (*METHODS, "cover"))
            biases = f"{own_bias(part)} | {worst_of(part)}"
            lines.append(f"| {kind} | {len(part)} | {shares} | {biases} |")
    lines += [
        "",
        f"Without a shift, {len(null)} runs: covered in {percent(null, 'cover')}, "
        f'"nothing changed" rejected at 5 % in {percent(null, "rejected")}.',
        "",
        "| model | rows a side | columns | runs | elsewise first | covered | its bias "
        "| largest bias | processor seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (name, size, count), part in cells.groupby(["model", "rows", "attributes"]):
        moved = part[~part["kind"].isin(NULLS)]
        each = [(*bias_of(c), kind) for kind, c in moved.groupby("kind") if len(c) >= FEWEST]
        worst = "{:.3f} ± {:.3f} ({})".format(*max(each)) if each else "-"
        lines.append(
            f"| {name} | {size:,} | {count} | {len(part)} | {percent(moved, 'elsewise')} | "
            f"{percent(part, 'cover')} | {own_bias(moved)} | {worst} | "
            f"{part['seconds'].mean():.1f} |"
        )
    return lines


def main() -> None:
    """Run the grid, round by round, and write the page after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 1000, 5000])
    parser.add_argument("--attributes", type=int, nargs="+", default=[4, 10, 30])
    parser.add_argument("--real", nargs="*", default=["HELOC", "cardio"])
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument(
        "--keep",
        type=Path,
        default=Path("build/difference.json"),
        help="every run; goes on where it stopped, so remove it after a change of the method",
    )
    options = parser.parse_args()
    worlds = [(make, count) for count in options.attributes for make in (linear, trees)]
    worlds += [(real, name) for name in options.real]
    found: list[dict[str, Any]] = []
    options.keep.parent.mkdir(parents=True, exist_ok=True)
    if options.keep.exists():
        found = json.loads(options.keep.read_text(encoding="utf-8"))
    done = {(r["kind"], r["model"], r["rows"], r["attributes"], r["seed"]) for r in found}
    for turn in range(options.rounds):
        for size in options.sizes:
            for make, arguments in worlds:
                # Real rows check the method; 5,000 of HELOC's 9,871 would hardly be another draw.
                if make is real and size > 1000:
                    continue
                count = SEEDS.get(size, 1)
                for seed in range(turn * count, (turn + 1) * count):
                    found += runs(make, arguments, size, seed, done)
                print(
                    turn, arguments, make.__name__, size, f"{time.process_time():.0f} s", flush=True
                )
            table = pd.DataFrame(found)
            options.keep.write_text(json.dumps(found), encoding="utf-8")
            head, rest = options.page.read_text(encoding="utf-8").split(START)
            text = head + START + written(table) + END + rest.split(END)[1]
            options.page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
