"""``make paper``: train, run every method, draw, and write the page.

    python -m benchmarks.paper [--quick] [--jobs 2] [--redo ours] [--out docs]

Finished cells and pictures are kept in ``runs/paper``; a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

# Before NumPy loads: one thread each, so that processor time is what one core would take.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[2]
SEEDS = 10


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="make paper", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, a page under runs/paper")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds 0, 1, ...")
    parser.add_argument("--dice-seeds", type=int, default=SEEDS, help="of these with DiCE")
    parser.add_argument("--jobs", type=int, default=2, help="questions run side by side")
    parser.add_argument(
        "--redo", nargs="*", default=[], help="methods (or 'bounds', 'figures') to forget first"
    )
    parser.add_argument("--cache", type=Path, default=ROOT / "runs" / "paper" / "cells")
    parser.add_argument("--out", type=Path, help="folder of paper.md and images/paper")
    parser.add_argument("--only", nargs="*", help="run the cells of these methods, no page")
    arguments = parser.parse_args()

    from benchmarks.paper import cells, figures, page

    store = cells.Store(arguments.cache)
    for name in arguments.redo:
        print(f"{name}: {store.forget(cells.pattern_of(name))} forgotten")
    seeds = range(1 if arguments.quick else arguments.seeds)
    wanted = [
        c
        for c in cells.cells_of(seeds, arguments.dice_seeds)
        if arguments.only is None or c.method in arguments.only
    ]
    cells.run_bounds(store, wanted, arguments.jobs)
    cells.run_cells(store, wanted, arguments.jobs)
    if arguments.only is not None:
        return
    table = cells.table_of(store, wanted)
    quick = ROOT / "runs" / "paper" / "quick"
    out = arguments.out or (quick if arguments.quick else ROOT / "docs")
    drawn = figures.draw_all(store, out / "images" / "paper", arguments.jobs)
    figures.draw_methods(table, drawn, out / "images" / "paper")
    path = out / "paper.md"
    path.write_text(page.page(table, drawn), encoding="utf-8")
    print(page.summary(table))
    print(f"written to {path}")


if __name__ == "__main__":
    main()
