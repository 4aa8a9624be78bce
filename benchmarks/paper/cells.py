"""One cell: one method on one question. Each is kept in a file of its own, so a run can go on.

A cell is written to a temporary file and moved into place: it is there whole, or not at all.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from benchmarks.paper import methods, models
from benchmarks.paper.measures import measured, timed
from benchmarks.paper.published import TABLE, wanted_rows
from benchmarks.paper.questions import THRESHOLD, Question, ask
from joblib import Parallel, delayed
from tqdm.auto import tqdm

__all__ = [
    "BOUNDS",
    "Cell",
    "Store",
    "calibrated",
    "cells_of",
    "pattern_of",
    "run_bounds",
    "run_cells",
    "table_of",
]

BOUNDS = {
    "ones": (0.45, 0.425, 0.4, 0.375, 0.35, 0.325, 0.3, 0.25, 0.2),
    "at least 0.6": (0.1, 0.08, 0.06, 0.05, 0.04, 0.03, 0.02),
}
"""Output bounds to choose from in calibration, loosest first."""
CALIBRATION_SEEDS = (100, 101, 102)
"""Models that no table uses."""
FOREST_VALIDITY = 0.98
"""Share of valid rows that is asked for where nothing is published."""
NETWORK_METHODS = (
    *methods.COSTS,
    "DISCOUNT",
    "DiCE genetic",
    "DiCE random",
    "AReS",
    "GLOBE-CE per row",
    "GLOBE-CE shared",
)
FOREST_SEEDS = 3
"""Trees are run with so many seeds at most: dice-ml takes long to ask them."""
FOREST_METHODS = (*methods.COSTS, "DiCE genetic", "DiCE random", "AReS", "GLOBE-CE legal")
BOTH_TARGETS = (*methods.COSTS, "DISCOUNT")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Cell:
    """One method on one question."""

    dataset: str
    model: str
    seed: int
    method: str
    target: str = "ones"

    @property
    def place(self) -> str:
        """Name of its file."""
        parts = (self.dataset, self.model, f"{self.seed:03d}", self.method, self.target)
        return "-".join(part.replace(" ", "_") for part in parts) + ".json"


def cells_of(seeds: Iterable[int], dice_seeds: int = 10**6) -> list[Cell]:
    """Return all cells of the tables; those of one question side by side.

    Parameters
    ----------
    seeds
        Of models and methods.
    dice_seeds
        With so many of them at most dice-ml runs: it takes most of the time.
    """
    found = []
    for place, seed in enumerate(seeds):
        for dataset in ("HELOC", "COMPAS"):
            for model in (*models.NETWORKS, *models.FORESTS):
                network = model in models.NETWORKS
                if not network and place >= FOREST_SEEDS:
                    continue
                for method in NETWORK_METHODS if network else FOREST_METHODS:
                    if method.startswith("DiCE") and place >= dice_seeds:
                        continue
                    targets = ["ones"]
                    if dataset == "COMPAS" and network and method in BOTH_TARGETS:
                        targets.append("at least 0.6")
                    found += [
                        Cell(dataset=dataset, model=model, seed=seed, method=method, target=target)
                        for target in targets
                    ]
    return found


@dataclass(frozen=True, slots=True)
class Store:
    """A folder of finished cells."""

    folder: Path

    def read(self, place: str) -> dict[str, Any] | None:
        """Return what a file holds, or None where it is missing."""
        path = self.folder / place
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    def write(self, place: str, record: dict[str, Any]) -> None:
        """Keep a record under a name, whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / place
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_text(json.dumps(record, indent=1), encoding="utf-8")
        temporary.replace(path)

    def forget(self, pattern: str) -> int:
        """Remove records by a pattern; returns how many there were."""
        paths = list(self.folder.glob(pattern))
        for path in paths:
            path.unlink()
        return len(paths)


def calibrated(store: Store, dataset: str, model: str, target: str) -> float:
    """Return our output bound for a dataset and model: chosen once, on rows nobody is judged by.

    The loosest bound that leaves as many rows valid as published, on 100 rows of the training block
    and for each of three models of other seeds. The input distance is not looked at.
    """
    place = _bound_place(dataset, model, target)
    record = store.read(place)
    if record is None:
        record = {"bound": _loosest(dataset, model, target)}
        store.write(place, record)
    return float(record["bound"])


def _loosest(dataset: str, model: str, target: str) -> float:
    row = TABLE.get((dataset, model, "DISCOUNT"))
    wanted = FOREST_VALIDITY if row is None else row.coverage
    questions = [ask(dataset, model, seed, calibration=True) for seed in CALIBRATION_SEEDS]

    def enough(bound: float) -> bool:
        return all(_is_valid(question, target, bound, wanted) for question in questions)

    bounds = BOUNDS[target]
    # The tighter the bound, the more rows are valid; the tightest is taken where none will do.
    return bounds[min(bisect_left(bounds, True, key=enough), len(bounds) - 1)]


def _is_valid(question: Question, target: str, bound: float, wanted: float) -> bool:
    outputs = methods.ours(question, target, bound).outputs[:, 0]
    return int((outputs >= THRESHOLD).sum()) >= wanted_rows(wanted, len(outputs))


def pattern_of(name: str) -> str:
    """Return the pattern of what ``--redo`` forgets: a method, all bounds, or all figures."""
    kinds = {"bounds": "bound-*", "figures": "figure-*"}
    return kinds.get(name, f"*-{name.replace(' ', '_')}-*")


def run_bounds(store: Store, cells: Sequence[Cell], jobs: int) -> None:
    """Calibrate what our cells need and is missing."""
    needed = dict.fromkeys(
        (c.dataset, c.model, c.target) for c in cells if c.method in methods.COSTS
    )
    missing = [key for key in needed if store.read(_bound_place(*key)) is None]
    tasks = (delayed(_calibrate)(store.folder, *key) for key in missing)
    with tqdm(total=len(missing), desc="bounds", unit="bound") as bar:
        for _ in Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks):
            bar.update()


def _calibrate(folder: Path, dataset: str, model: str, target: str) -> float:
    import torch

    torch.set_num_threads(1)
    return calibrated(Store(folder), dataset, model, target)


def _bound_place(dataset: str, model: str, target: str) -> str:
    return f"bound-{dataset}-{model}-{target.replace(' ', '_')}.json"


def _finished(store: Store, cell: Cell) -> dict[str, Any]:
    """Run one cell."""
    question = ask(cell.dataset, cell.model, cell.seed)
    extra: dict[str, Any] = {}
    if cell.method in methods.COSTS:
        extra["bound"] = bound = calibrated(store, cell.dataset, cell.model, cell.target)
        asked = question, cell.target, bound, methods.COSTS[cell.method]
        explanation, seconds = timed(lambda: methods.ours(*asked))
    elif cell.method == "DISCOUNT":
        explanation, seconds = timed(lambda: methods.published(question, cell.target))
    else:
        explanation, seconds = timed(lambda: methods.RIVALS[cell.method](question))
        if cell.method == "AReS":
            extra["text"] = [str(rule) for rule in explanation.rules]
    return {**measured(question, explanation), **seconds, **extra}


def _run_question(folder: Path, cells: Sequence[Cell]) -> int:
    """Run the cells of one question, which share its model; returns how many."""
    import torch

    torch.set_num_threads(1)
    store = Store(folder)
    first = cells[0]
    # Imports and caches are not what is timed.
    methods.ours(ask(first.dataset, first.model, first.seed), "ones", BOUNDS["ones"][0])
    for cell in cells:
        store.write(cell.place, _finished(store, cell))
    return len(cells)


def run_cells(store: Store, cells: Sequence[Cell], jobs: int) -> None:
    """Run what is missing, in parallel over questions, with a progress bar."""
    missing = [cell for cell in cells if store.read(cell.place) is None]
    groups = list(_by_question(missing))
    tasks = (delayed(_run_question)(store.folder, group) for group in groups)
    with tqdm(total=len(missing), desc="cells", unit="cell", smoothing=0.0) as bar:
        for done in Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks):
            bar.update(done)


def _by_question(cells: Sequence[Cell]) -> Iterator[list[Cell]]:
    groups: dict[tuple[str, str, int], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.dataset, cell.model, cell.seed), []).append(cell)
    yield from groups.values()


def table_of(store: Store, cells: Sequence[Cell]) -> pd.DataFrame:
    """Return finished cells as a table, one row each."""
    rows = []
    for cell in cells:
        record = store.read(cell.place)
        if record is not None:
            rows.append({**asdict(cell), **record})
    return pd.DataFrame(rows)
