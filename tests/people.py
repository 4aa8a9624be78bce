"""A small population with every kind of column, and a hostile twin of it."""

from __future__ import annotations

import numpy as np
import pandas as pd

import elsewise as ew

HOSTILE = "<script>alert(\"1\")</script>\n'quoted' & $\\frac{" + "x" * 300
HOSTILE_LEVEL = '"><img src=x onerror=alert(2)>{{ 7 * 7 }}'
HOSTILE_MODEL = "<b>model</b>\n{% raw %}" + "y" * 300


def frame(rows: int = 90) -> pd.DataFrame:
    """Return numbers, an integer, a category, and a category with missing cells."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "income": rng.normal(30.0, 8.0, rows),
            "debt": rng.normal(5.0, 2.0, rows),
            "cards": rng.integers(0, 6, rows),
            "home": rng.choice(["own", "rent", "free"], rows, p=[0.3, 0.5, 0.2]),
            "savings": pd.Series(rng.choice(["low", "high"], rows)).where(rng.random(rows) > 0.1),
        }
    )


def score(rows: pd.DataFrame) -> np.ndarray:
    """Return a probability that rises with income and falls with debt."""
    level = 0.06 * (rows["income"] - 30) - 0.2 * (rows["debt"] - 5) - 0.1 * rows["cards"]
    level = level + 0.8 * (rows["home"] == "own") + 0.5 * (rows["savings"] == "high")
    return np.asarray(1.0 / (1.0 + np.exp(-level)))


def explained(target: ew.targets.Target | None = None, **limits: float) -> ew.Explanation:
    """Explain the population, by default with both limits given and met."""
    return ew.explain(
        ew.models.function(score, smooth=True, probability=True),
        frame(),
        target=target or ew.targets.at_least(0.6),
        bounds=ew.Bounds(**(limits or {"inputs": 0.5, "outputs": 0.12})),
        settings=ew.Settings(iterations=12, draws=99, slack=0.0),
    )


def wide() -> ew.Explanation:
    """Explain many numbers, an ordered category, a one-hot group, a date and a frozen column."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(60, 14)), columns=[f"x{k}" for k in range(14)])
    own = rng.integers(0, 2, 60)
    size = pd.Categorical(rng.choice(["S", "M", "L"], 60), categories=["S", "M", "L"], ordered=True)
    rows = rows.assign(own=own, rent=1 - own, size=size, day=pd.Timestamp("2024-01-02"))
    weights = np.linspace(1.0, 2.0, 14)

    def model(table: pd.DataFrame) -> np.ndarray:
        numbers = table[[f"x{k}" for k in range(14)]].to_numpy() @ weights
        return np.asarray(numbers + 3.0 * table["own"] + 2.0 * table["size"].cat.codes)

    return ew.explain(
        ew.models.function(model, smooth=True),
        rows,
        target=ew.targets.shift(4.0),
        schema=ew.Schema.infer(rows).one_hot_group("home", ["own", "rent"]).freeze("x1"),
        bounds=ew.Bounds(outputs=2.0),
        settings=ew.Settings(iterations=6, draws=99),
    )


def hostile() -> ew.Explanation:
    """Explain the same population under names that try to break a page."""
    renamed = {"debt": HOSTILE, "cards": "$x_1$", "savings": "line\nbreak\x00\x1b[31m"}
    rows = frame().rename(columns=renamed)
    rows["home"] = rows["home"].replace({"own": HOSTILE, "rent": HOSTILE_LEVEL})
    back = {new: old for old, new in renamed.items()}

    def model(table: pd.DataFrame) -> np.ndarray:
        named = table.rename(columns=back)
        levels = {HOSTILE: "own", HOSTILE_LEVEL: "rent"}
        return score(named.assign(home=named["home"].astype(str).replace(levels)))

    model.__name__ = model.__qualname__ = HOSTILE_MODEL
    return ew.explain(
        ew.models.function(model, smooth=True, probability=True),
        rows,
        target=ew.targets.at_least(0.6),
        bounds=ew.Bounds(outputs=0.05),  # near enough that every hostile name has to move
        settings=ew.Settings(iterations=5, draws=99, population_weight=1.0, slack=0.0),
    )


def asked() -> ew.Explanation:
    """Ask for a share of the population, certified on held-out rows."""
    return ew.explain(
        ew.models.function(score, smooth=True, probability=True),
        frame(240),
        target=ew.targets.share(0.6, above=0.55),
        schema=ew.Schema.infer(frame(240)).freeze("home"),
        settings=ew.Settings(draws=99),
        seed=0,
    )


def differing() -> ew.Difference:
    """Compare two samples that differ in income."""
    before, after = frame(80), frame(160).iloc[80:]
    model = ew.models.function(score, smooth=True, probability=True)
    return ew.difference(model, before, after.assign(income=after["income"] + 8.0), draws=99)
