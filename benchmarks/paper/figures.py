"""Every figure of the paper: drawn once, its numbers kept beside the cells."""

from __future__ import annotations

import io
import runpy
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pandas as pd
from benchmarks.paper import cardio_figures, german_figures, method_figures
from benchmarks.paper.cells import Store
from joblib import Parallel, delayed
from tqdm.auto import tqdm

__all__ = ["FIGURES", "draw_all", "draw_methods"]

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "retail.py"


def retail(folder: Path) -> dict[str, Any]:
    """Run the retail example of the paper's first figure."""
    text = io.StringIO()
    with redirect_stdout(text):
        runpy.run_path(str(EXAMPLE))["main"](folder)
    (folder / "gallery-retail.png").rename(folder / "retail.png")
    return {"text": text.getvalue().rstrip()}


FIGURES: dict[str, tuple[Callable[[Path], dict[str, Any]], tuple[str, ...]]] = {
    "german": (german_figures.panel, ("german-credit.png",)),
    "scatter": (german_figures.scatter, ("german-credit-scatter.png",)),
    "encodings": (german_figures.encodings, ()),
    "convergence": (cardio_figures.convergence, ("convergence.png", "plans.png")),
    "models": (cardio_figures.three_models, ("three-models.png",)),
    "diversity": (cardio_figures.diversity, ("diversity.png",)),
    "curves": (method_figures.frontier_curves, ()),
    "retail": (retail, ("retail.png",)),
}
"""What draws each figure, and the pictures it makes."""


def draw_all(store: Store, folder: Path, jobs: int) -> dict[str, dict[str, Any]]:
    """Draw what is missing; returns the numbers of all figures."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [
        name
        for name, (_, pictures) in FIGURES.items()
        if store.read(_place(name)) is None
        or not all((folder / picture).is_file() for picture in pictures)
    ]
    tasks = (delayed(_drawn)(store.folder, folder, name) for name in missing)
    with tqdm(total=len(missing), desc="figures", unit="figure") as bar:
        for _ in Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks):
            bar.update()
    return {name: store.read(_place(name)) or {} for name in FIGURES}


def draw_methods(cells: pd.DataFrame, drawn: dict[str, dict[str, Any]], folder: Path) -> None:
    """Draw the pictures of all methods, from the cells."""
    method_figures.overview(cells, folder)
    method_figures.frontier(cells, drawn["curves"], folder)


def _place(name: str) -> str:
    return f"figure-{name}.json"


def _drawn(records: Path, folder: Path, name: str) -> None:
    import torch

    torch.set_num_threads(1)
    draw, _ = FIGURES[name]
    Store(records).write(_place(name), draw(folder))
