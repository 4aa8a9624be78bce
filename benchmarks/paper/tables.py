"""Medians over seeds, and the tables of the page as Markdown: pure functions of the cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pandas as pd
from benchmarks.paper import published
from benchmarks.paper.published import PERCENTILES, SHIFTS, Row

__all__ = [
    "LABELS",
    "Spread",
    "accuracies",
    "against_papers_cost",
    "bounds",
    "chosen",
    "differences",
    "diversities",
    "entry",
    "forests",
    "markdown",
    "number",
    "shifts",
    "spread",
    "table_one",
]

LABELS = {
    "AReS": "AReS",
    "GLOBE-CE shared": "GLOBE-CE, one translation",
    "GLOBE-CE per row": "GLOBE-CE, scaled per row",
    "GLOBE-CE legal": "GLOBE-CE, scaled per row, legal",
    "DiCE random": "DiCE, random",
    "DiCE genetic": "DiCE, genetic",
    "DISCOUNT": "DISCOUNT, the paper's step",
    "ours": "**elsewise**",
    "ours by default": "elsewise, its defaults",
}
"""Methods in the order of the tables."""

MOVES = ("root mean square move", "cells changed")
"""Columns that a person reads: how far a row moves, and how much of it changes."""

COUNTERPARTS = {
    "AReS": "AReS",
    "GLOBE-CE shared": "GLOBE-CE",
    "DiCE random": "DiCE",
    "DiCE genetic": "DiCE",
    "DISCOUNT": "DISCOUNT",
}
"""Where a method's published numbers stand; a shared translation is what the paper ran."""


class Spread(NamedTuple):
    """Median and quartiles over seeds."""

    median: float
    low: float
    high: float


def spread(values: Iterable[float]) -> Spread:
    """Return the median and the quartiles of the values that are numbers; NaN without any."""
    known = pd.Series(list(values), dtype="float64").dropna()
    if known.empty:
        return Spread(math.nan, math.nan, math.nan)
    low, median, high = known.quantile([0.25, 0.5, 0.75])
    return Spread(float(median), float(low), float(high))


def chosen(cells: pd.DataFrame, **keys: object) -> pd.DataFrame:
    """Return the cells with these keys, for instance ``dataset="HELOC"``."""
    for name, value in keys.items():
        cells = cells[cells[name] == value]
    return cells


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with this many decimals, fewer where it is large; a dash for none."""
    if value is None or math.isnan(value):
        return "-"
    whole = len(str(int(abs(value))))
    return f"{value:.{max(0, min(digits, digits + 1 - whole))}f}"


def entry(values: Iterable[float], digits: int = 3) -> str:
    """Return the median with its quartiles, which are left out where all are the same."""
    found = spread(values)
    median, low, high = (number(value, digits) for value in found)
    return median if low == median == high else f"{median} ({low} to {high})"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _blocks(cells: pd.DataFrame) -> Iterable[tuple[str, str, str, pd.DataFrame]]:
    """Yield model, method, target and cells, in the order of the tables."""
    for model in dict.fromkeys(cells["model"]):
        for method in LABELS:
            part = chosen(cells, model=model, method=method)
            for target in dict.fromkeys(part["target"]):
                yield model, method, target, chosen(part, target=target)


def _label(method: str, target: str, cells: pd.DataFrame) -> str:
    """Name a method; the target too, where one method ran with several."""
    several = len(set(chosen(cells, method=method)["target"])) > 1
    return f"{LABELS[method]}, {target}" if several else LABELS[method]


def against_papers_cost(cells: pd.DataFrame) -> str:
    """Say what the defaults do to each measure, as a factor: smallest to largest of all questions.

    Medians over seeds are compared, not single runs.
    """
    keys = ["dataset", "model", "target"]
    names = {"ot": "OT", "row move": "the root mean square move", "cells changed": "changed cells"}
    ways = (chosen(cells, method=method) for method in ("ours", "ours by default"))
    papers, defaults = (way.groupby(keys)[list(names)].median() for way in ways)
    factors = (defaults / papers).dropna()
    said = []
    for measure, name in names.items():
        low, high = (number(end, 1) for end in (factors[measure].min(), factors[measure].max()))
        said.append(f"{name} {low if low == high else f'{low} to {high}'} times")
    return f"{', '.join(said[:-1])} and {said[-1]}"


def _moves(cells: pd.DataFrame) -> list[str]:
    """The entries of `MOVES`."""
    return [entry(cells["row move"], 2), entry(cells["cells changed"], 2)]


def _published(dataset: str, model: str, method: str, target: str) -> Row | None:
    if target != "ones" or method not in COUNTERPARTS:
        return None
    return published.TABLE.get((dataset, model, COUNTERPARTS[method]))


def table_one(cells: pd.DataFrame, dataset: str) -> str:
    """Return the paper's Table 1 for a dataset: validity, distances, cost, seconds."""
    part = chosen(cells, dataset=dataset)
    rows = []
    for model, method, target, found in _blocks(part):
        row = _published(dataset, model, method, target)
        grey = not published.comparable(spread(found["validity"]).median)
        rows.append(
            [
                model,
                _label(method, target, part) + (" (grey)" if grey else ""),
                entry(found["validity"]),
                number(row and row.coverage),
                entry(found["ot"]),
                number(row and published.corrected_ot(row.ot)),
                entry(found["mmd"]),
                number(row and row.mmd),
                entry(found["ares cost"], 2),
                entry(found["ares cost published"], 2),
                number(row and row.ares_cost, 2),
                *_moves(found),
                entry(found["illegal"], 2),
                entry(found["seconds"], 2),
                number(row and row.seconds, 1),
            ]
        )
    header = ["model", "method", "validity", "paper", "OT", "paper / 1.25", "MMD", "paper"]
    header += ["AReS cost", "its norm", "paper", *MOVES, "illegal", "seconds", "paper"]
    return markdown(header, rows)


def differences(cells: pd.DataFrame) -> str:
    """Return the differences at percentiles on HELOC, by both definitions."""
    part = chosen(cells, dataset="HELOC")
    rows = []
    for model, method, target, found in _blocks(part):
        row = _published("HELOC", model, method, target)
        old = row.differences if row else (None,) * len(PERCENTILES)
        pooled = [
            f"{number(spread(found[f'% published {name}']).median, 1)} / {number(value, 1)}"
            for name, value in zip(PERCENTILES, old, strict=True)
        ]
        own = [entry(found[f"% at {name}"], 1) for name in PERCENTILES]
        rows.append([model, _label(method, target, part), *own, *pooled])
    header = ["model", "method", *PERCENTILES, *(f"pooled {name} / paper" for name in PERCENTILES)]
    return markdown(header, rows)


def shifts(cells: pd.DataFrame) -> str:
    """Return the differences of categories and the shifts of counts on COMPAS."""
    part = chosen(cells, dataset="COMPAS")
    rows = []
    for model, method, target, found in _blocks(part):
        row = _published("COMPAS", model, method, target)
        old = row.differences if row else (None,) * len(SHIFTS)
        counts = [
            f"{entry(found[name], 1)} / {number(value, 1)}"
            for name, value in zip(SHIFTS, old, strict=True)
        ]
        category = f"{entry(found['category difference'])} / "
        category += number(row and row.category_difference)
        broken = entry(found["broken groups"], 2)
        rows.append([model, _label(method, target, part), category, *counts, broken])
    header = ["model", "method", "category difference / paper"]
    header += [f"{name}, % / paper" for name in SHIFTS]
    return markdown([*header, "rows with a broken group"], rows)


def diversities(cells: pd.DataFrame, dataset: str) -> str:
    """Return the paper's table of diversity for a dataset."""
    part = chosen(cells, dataset=dataset)
    rows = []
    for model, method, target, found in _blocks(part):
        old = published.DIVERSITY.get((dataset, model, COUNTERPARTS.get(method, "")))
        old = old if target == "ones" else None
        grey = not published.comparable(spread(found["validity"]).median)
        rows.append(
            [
                model,
                _label(method, target, part) + (" (grey)" if grey else ""),
                entry(found["diversity"]),
                number(old and old.diversity),
                entry(found["dpc"], 2),
                number(old and published.corrected_dpc(old.dpc), 2),
            ]
        )
    return markdown(["model", "method", "diversity", "paper", "DPC", "paper x 1.25"], rows)


def forests(cells: pd.DataFrame) -> str:
    """Return the table for trees, all rows legal by construction or by its own count."""
    rows = []
    for dataset in dict.fromkeys(cells["dataset"]):
        part = chosen(cells, dataset=dataset)
        for model, method, target, found in _blocks(part):
            rows.append(
                [
                    dataset,
                    f"{model} ({number(spread(found['accuracy']).median)})",
                    _label(method, target, part),
                    entry(found["validity"]),
                    entry(found["ot"]),
                    entry(found["mmd median"]),
                    entry(found["ares cost"], 2),
                    entry(found["dpc"], 2),
                    *_moves(found),
                    entry(found["illegal"], 2),
                    entry(found["seconds"], 2),
                ]
            )
    header = ["dataset", "model (accuracy)", "method", "validity", "OT", "MMD, median width"]
    return markdown([*header, "AReS cost", "DPC", *MOVES, "illegal", "seconds"], rows)


def accuracies(cells: pd.DataFrame) -> str:
    """Return test accuracies beside the published ones."""
    rows = []
    for (dataset, model), old in published.ACCURACY.items():
        found = chosen(cells, dataset=dataset, model=model, method="DISCOUNT", target="ones")
        rows.append(
            [dataset, model, entry(found["accuracy"]), number(old), entry(found["rows"], 0)]
        )
    return markdown(["dataset", "model", "accuracy", "paper", "rows predicted 0"], rows)


def bounds(cells: pd.DataFrame) -> str:
    """Return the output bounds that calibration gave."""
    found = chosen(cells, method="ours").drop_duplicates(["dataset", "model", "target"])
    rows = [
        [str(row["dataset"]), str(row["model"]), str(row["target"]), f"{row['bound']:g}"]
        for _, row in found.iterrows()
    ]
    return markdown(["dataset", "model", "target", "bound on the outputs"], rows)
