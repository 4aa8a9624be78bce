"""docs/calibration.md: the gate, tables and pictures, from the results."""

from __future__ import annotations

import datetime
import math
import os
import textwrap
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from . import convergence, families, heldout, row_moves, rows
from .gate import Check, checks, standard_error
from .grid import REPETITIONS
from .methods import DRAWS
from .pictures import NAMES, draw_all
from .results import SEED, Results
from .scenarios import CLIFF

__all__ = ["all_checks", "write"]

TEMPLATE = Path(__file__).with_name("page.template.md")
COUNTS = tuple(REPETITIONS)
FACTOR = 4.0
""""Needs about n rows" has to be enough, and at most so many times too much."""
FEW_MOVERS = ("5% subgroup", "1% subgroup")
KEPT = (
    "Cells of an earlier day were kept, because their limits did not change since: on the same "
    "samples of every population (12 at n = 50 and 100, 5 at 500, 2 at 2000; bands on one) the "
    "code of that day and of today gave the same limits, to 1e-6. Where it chose another method "
    "in any sample, of 1,000 at n = 50 and 100, which is where few rows move, cells were measured "
    "again."
)
"""Said of kept cells."""


def write(results: Results, docs: Path) -> Path:
    """Write the page, its table and its pictures into the docs; return the page's path."""
    pictures = draw_all(results.cells, results.convergence, docs / "images")
    table = results.cells.round({"truth": 7, "ratio": 4, "limit": 7, "milliseconds": 3})
    table.to_csv(docs / "calibration.csv", index=False, float_format="%g")
    page = docs / "calibration.md"
    fields = {f"picture_{name}": file for name, file in pictures.items()} | _fields(results)
    page.write_text(TEMPLATE.read_text("utf-8").format(**fields), encoding="utf-8")
    return page


def all_checks(results: Results) -> list[Check]:
    """Every requirement of the page."""
    found = checks(results.cells)
    for design, runs in results.runs.items():
        found += heldout.checks(design, runs)
    least, most = (pick(needed.ratio for needed in results.needed) for pick in (min, max))
    return [
        *found,
        *families.checks(results.families),
        *row_moves.checks(results.moves),
        Check(
            name='"needs about n rows", the median of samples',
            wanted=f"0.8 to {FACTOR:g} times the n at which four in five limits do",
            found=f"{least:.2f} to {most:.2f} times",
            passed=least >= 0.8 and most <= FACTOR,
        ),
    ]


def _fields(results: Results) -> dict[str, object]:
    cells = results.cells
    gated = cells[cells["scenario"] != CLIFF]
    return {
        "date": datetime.date.today(),
        "seed": SEED,
        "cores": os.cpu_count(),
        "populations": gated.groupby(["side", "scenario", "dimension"]).ngroups,
        "counts": ", ".join(map(str, COUNTS)),
        "cells": int((gated["method"] == "certificate").sum()),
        "repetitions": _repetitions(cells),
        "kept": textwrap.fill(KEPT, 120) if len(set(cells["measured"])) > 1 else "",
        "draws": DRAWS,
        "truth_error": f"{results.truth_error:.2%}",
        "gate": gate_table(all_checks(results)),
        "methods_outputs": _methods(gated, "outputs"),
        "methods_inputs": _methods(gated, "inputs"),
        "times": " / ".join(map(str, COUNTS)),
        "scenarios": _scenarios(gated[gated["trim"] == 0.05]),
        "untrimmed": _scenarios(gated[gated["trim"] == 0.0]),
        "few_movers": _few_movers(cells),
        "cliff": _cliff(cells),
        "cut": heldout.CUT,
        "bounds": " and ".join(f"{bound:g}" for bound in heldout.BOUNDS.values()),
        "trim": heldout.TRIM,
        "heldout_draws": heldout.DRAWS,
        "trees": heldout.TREES,
        "heldout": _held_out(results.runs),
        "samples": rows.SAMPLES,
        "needed": _needed(results.needed),
        "families": _families(results.families),
        "moves": _moves(results.moves),
        "move_least": row_moves.LEAST,
        "pairs": convergence.REPETITIONS,
        "convergence": _convergence(results.convergence),
    }


def _repetitions(cells: pd.DataFrame) -> str:
    """How many cells were measured when, and how often each was repeated."""
    own = cells[cells["method"] == "certificate"]
    lines = []
    for (day, side), group in own.groupby(["measured", "side"]):
        times = []
        for n in COUNTS:
            counts = sorted(group[group["rows"] == n]["repetitions"].unique())
            errors = ", ".join(f"{standard_error(count):.3f}" for count in counts)
            times.append(f"{', '.join(map(str, counts))} ({errors})" if counts else "-")
        names = ", ".join(group["scenario"].unique())
        lines.append((str(day), f"{side}: {names}", str(len(group)), *times))
    return _table(("measured", "populations", "cells", *(f"n = {n}" for n in COUNTS)), lines)


def gate_table(found: list[Check]) -> str:
    """The requirements and how they came out."""
    return _table(
        ("", "wanted", "found", ""),
        [(c.name, c.wanted, c.found, "passed" if c.passed else "**failed**") for c in found],
    )


def _methods(cells: pd.DataFrame, side: str) -> str:
    part = cells[(cells["side"] == side) & (cells["trim"] == 0.1)]
    lines = []
    for method, name in NAMES.items():
        here = part[part["method"] == method]
        if here.empty:
            continue
        by = here.groupby("rows")
        least, ratio, time = by["coverage"].min(), by["ratio"].median(), by["milliseconds"].median()
        lines.append(
            (
                name,
                *(f"{least[n]:.3f} / {ratio[n]:.2f}" for n in COUNTS),
                f"{here['below'].max():.0%}",
                f"{here['infinite'].max():.0%}",
                " / ".join("-" if math.isnan(time[n]) else f"{time[n]:.2g}" for n in COUNTS),
            )
        )
    heads = (f"n = {n}" for n in COUNTS)
    return _table((side, *heads, "below estimate, at most", "infinite, at most", "ms"), lines)


def _scenarios(part: pd.DataFrame) -> str:
    lines = []
    for (side, scenario), group in part.groupby(["side", "scenario"], sort=False):
        values = []
        for n in COUNTS:
            here = group[group["rows"] == n]
            ours = here[here["method"] == "certificate"]
            basic = here[here["method"] == "basic"]
            ratio = ours["ratio"].median()
            shown = "truth 0" if math.isnan(ratio) else f"{ratio:.3g}"
            values.append(f"{ours['coverage'].min():.3f} / {basic['coverage'].min():.2f} ({shown})")
        lines.append((f"{side}: {scenario}", *values))
    return _table(("", *(f"n = {n}" for n in COUNTS)), lines)


def _few_movers(cells: pd.DataFrame) -> str:
    lines = []
    for scenario in FEW_MOVERS:
        for n in COUNTS:
            here = cells[
                (cells["scenario"] == scenario) & (cells["rows"] == n) & (cells["trim"] > 0)
            ]
            least = here.groupby("method")["coverage"].min()
            ours = here[here["method"] == "certificate"]
            lines.append(
                (
                    scenario,
                    str(n),
                    *(f"{least[m]:.3f}" for m in ("default", "coupling", "certificate")),
                    f"{ours['switched'].mean():.0%}",
                    f"{ours['ratio'].median():.3g}",
                )
            )
    heads = ("bootstrap and CLT", "coupling + betting", "certificate", "switched", "limit / truth")
    return _table(("", "n", *heads), lines)


def _cliff(cells: pd.DataFrame) -> str:
    here = cells[cells["scenario"] == CLIFF].set_index(["trim", "rows", "method"]).sort_index()
    return _table(
        ("coverage (limit / truth)", *(f"n = {n}" for n in COUNTS)),
        [
            (
                f"trim {trim:g}, {NAMES[method]}",
                *(
                    f"{cell['coverage']:.3f} ({cell['ratio']:.2f})"
                    for n in COUNTS
                    for cell in [here.loc[(trim, n, method)]]
                ),
            )
            for trim in (0.05, 0.1)
            for method in ("certificate", "band", "basic")
        ],
    )


def _held_out(runs: dict[heldout.Design, list[heldout.Run]]) -> str:
    lines = []
    for design, each in runs.items():
        found = heldout.summary(each)
        lines.append(
            (
                f"{design.model}, n = {design.rows}, {design.fresh:,} fresh rows",
                design.kind,
                f"{found['repetitions']:.0f}",
                *(f"{found[name]:.3f}" for name in ("inputs", "outputs", "both")),
                f"{found['inputs_ratio']:.2f}, {found['outputs_ratio']:.2f}",
                f"{found['reduction_median']:.1f} ({found['reduction_least']:.1f})",
                f"{found['certified']:.0%}",
            )
        )
    return _table(
        (
            "",
            "certificate",
            "runs",
            "inputs",
            "outputs",
            "both",
            "limit / truth, inputs and outputs",
            "output distance reduced, median (least)",
            "certified",
        ),
        lines,
    )


def _needed(needed: list[rows.Needed]) -> str:
    return _table(
        ("", "n", "bound", "said (quartiles)", "no number would do", "found", "said / found"),
        [
            (
                one.scenario,
                str(one.rows),
                f"{one.bound:.4f}",
                f"{one.said:,.0f} ({one.low:,.0f} to {_count(one.high)})",
                f"{one.none:.0%}",
                f"{one.found:,.0f}",
                f"{one.ratio:.2f}",
            )
            for one in needed
        ],
    )


def _families(lines: list[families.Line]) -> str:
    return _table(
        ("", "repetitions", "went well", "wanted at least"),
        [
            (
                one.name,
                f"{one.repetitions:,}",
                f"{one.found:.3f}",
                "-" if one.wanted is None else f"{one.wanted:.3g}",
            )
            for one in lines
        ],
    )


def _moves(moves: list[row_moves.Move]) -> str:
    counts = tuple(row_moves.REPETITIONS)
    table = pd.DataFrame(moves).set_index(["scenario", "dimension", "rows"])
    lines = []
    for scenario, dimension in dict.fromkeys(place[:2] for place in table.index):
        cells = [table.loc[(scenario, dimension, n)] for n in counts]
        lines.append(
            (
                f"{scenario}, d = {dimension}",
                *(f"{c['coverage']:.3f} ({c['ratio']:.3g}), {c['notices']:.0%}" for c in cells),
            )
        )
    return _table(("", *(f"n = {n}" for n in counts)), lines)


def _count(number: float) -> str:
    return "none would do" if math.isinf(number) else f"{number:,.0f}"


def _convergence(table: pd.DataFrame) -> str:
    lines = []
    for (apart, dimension), line in table.groupby(["apart", "dimension"], sort=False):
        errors = line.set_index("rows")["error"]
        label = f"{'apart' if apart else 'equal'}, d = {dimension}"
        lines.append((label, *(f"{errors[n]:.4f}" for n in convergence.ROWS)))
    return _table(("", *(f"n = {n:,}" for n in convergence.ROWS)), lines)


def _table(heads: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    body = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([f"| {' | '.join(heads)} |", "|" + "---|" * len(heads), *body])
