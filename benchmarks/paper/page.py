"""The page docs/paper.md: a pure function of the cells and the figures' numbers."""

from __future__ import annotations

import datetime
import os
import platform
from importlib.metadata import version
from pathlib import Path
from string import Template
from typing import Any

import pandas as pd
from benchmarks.paper import tables
from benchmarks.paper.cells import CALIBRATION_SEEDS
from benchmarks.paper.methods import DICE_SECONDS
from benchmarks.paper.models import FORESTS, NETWORKS
from benchmarks.paper.must_hold import checks, table_of_checks
from benchmarks.paper.published import DATA_DIVERSITY
from benchmarks.paper.tables import chosen, entry, number

__all__ = ["machine", "page", "summary"]

TEMPLATE = Path(__file__).with_name("page.md")
PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "torch", "lightgbm", "dice-ml")


def page(cells: pd.DataFrame, drawn: dict[str, dict[str, Any]]) -> str:
    """Return the page as Markdown."""
    networks = cells[cells["model"].isin(NETWORKS)]
    found = list(checks(networks))
    missed = [check for check in found if not check.reached]
    trees = cells[cells["model"].isin(FORESTS)]
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        date=datetime.date.today().isoformat(),
        seeds=_seeds(networks),
        forest_seeds=_seeds(trees),
        machine=machine(),
        reached=f"{len(found) - len(missed)} of {len(found)}",
        checks=table_of_checks(found),
        missed=_missed(missed),
        accuracies=tables.accuracies(networks),
        bounds=tables.bounds(cells),
        against=tables.against_papers_cost(cells),
        calibration=", ".join(map(str, CALIBRATION_SEEDS)),
        dice_seconds=f"{DICE_SECONDS:g}",
        dice_found=_dice(networks),
        heloc=tables.table_one(networks, "HELOC"),
        compas=tables.table_one(networks, "COMPAS"),
        differences=tables.differences(networks),
        shifts=tables.shifts(networks),
        illegal=_illegal(networks),
        heloc_diversity=tables.diversities(networks, "HELOC"),
        compas_diversity=tables.diversities(networks, "COMPAS"),
        data_diversity=_data_diversity(networks),
        forests=tables.forests(trees),
        rules=_rules(cells),
        **_figures(drawn),
    )


def summary(cells: pd.DataFrame) -> str:
    """Return what is printed at the end: accuracies and what must hold."""
    networks = cells[cells["model"].isin(NETWORKS)]
    return f"{tables.accuracies(networks)}\n\n{table_of_checks(list(checks(networks)))}"


def _seeds(cells: pd.DataFrame) -> str:
    seeds = sorted(set(cells["seed"]))
    return f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"


def machine() -> str:
    """Describe the machine, without its name."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), "
        f"Python {platform.python_version()}, {packages}"
    )


def _missed(missed: list[Any]) -> str:
    if not missed:
        return "All are reached."
    lines = [f"- {check.what}: {check.measured}, wanted {check.wanted}." for check in missed]
    return "\n".join(["Not reached:", "", *lines])


def _dice(cells: pd.DataFrame) -> str:
    """Say how often the time cap was met, and for which share of rows something was found."""
    runs = cells[cells["method"].isin(["DiCE genetic", "DiCE random"])]
    capped = int((runs["wall seconds"] >= DICE_SECONDS).sum())
    least = number(float(runs["found"].min()), 2)
    return (
        f"{_seeds(runs)}; {capped} of {len(runs)} runs met it; something was found for at least "
        f"{least} of the rows"
    )


def _illegal(cells: pd.DataFrame) -> str:
    """Count the illegal rows of the paper's step on COMPAS."""
    steps = chosen(cells, dataset="COMPAS", method="DISCOUNT")
    parts = []
    for target in dict.fromkeys(steps["target"]):
        part = chosen(steps, target=target)
        count, rows = int((part["illegal"] * part["rows"]).round().sum()), int(part["rows"].sum())
        parts.append(f"{count} of {rows} (target {target})")
    return " and ".join(parts)


def _data_diversity(cells: pd.DataFrame) -> str:
    parts = []
    for dataset, old in DATA_DIVERSITY.items():
        found = chosen(cells, dataset=dataset, method="DISCOUNT", target="ones")["data diversity"]
        parts.append(f"{dataset} {entry(found)} (paper {old})")
    return ", ".join(parts)


def _rules(cells: pd.DataFrame) -> str:
    """Quote a few rules of one run."""
    found = chosen(cells, dataset="HELOC", model="DNN", method="AReS")
    return "\n".join(found.iloc[0]["text"][:3])


def _figures(drawn: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Words with the figures' numbers."""
    german, scatter, run = drawn["german"], drawn["scatter"], drawn["convergence"]
    first = run["first"]
    return {
        "german_before": f"{german['before']:.1%}".replace("%", " %"),
        "german_after": f"{german['after']:.1%}".replace("%", " %"),
        "german_limits": f"{german['inputs limit']:.3f} and {german['outputs limit']:.3f}",
        "german_met": "both met" if german["met"] else "not both met",
        "scatter_before": f"{scatter['before']:.3f}",
        "scatter_after": f"{scatter['after']:.3f}",
        "scatter_step": f"{scatter['step']}",
        "scatter_young": f"{scatter['young lowered']:.0%}".replace("%", " %"),
        "scatter_count": f"{scatter['young']}",
        "scatter_others": f"{scatter['others lowered']:.0%}".replace("%", " %"),
        "scatter_surprises": "\n".join(scatter["surprises"]) or "none",
        "first": "no iteration" if first is None else f"iteration {first}",
        "last_eta": f"{run['last eta']:.2f}",
        "certificate": f"{run['inputs limit']:.3f} (inputs), {run['outputs limit']:.3f} (outputs)",
        "own": f"{run['own']:.2f}",
        "mu": f"{run['mu']:.2f}",
        "nu": f"{run['nu']:.2f}",
        "chance": f"{run['chance']:.2f}",
        "three_models": drawn["models"]["table"],
        "diversity_table": drawn["diversity"]["table"],
        "diversity_factual": f"{drawn['diversity']['factual']:.3f}",
        "encodings": drawn["encodings"]["table"],
        "encoding_seeds": f"{drawn['encodings']['seeds']}",
        "retail": drawn["retail"]["text"],
    }
