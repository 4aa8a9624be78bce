"""Run what is missing and write the page: ``python -m benchmarks.calibration``."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

# One thread for each job, before NumPy is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pandas as pd

from .page import write
from .results import collect

ROOT = Path(__file__).parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--redo", action="store_true", help="forget what was computed before")
    parser.add_argument(
        "--keep",
        type=Path,
        help="take cells that are missing from this earlier table, for limits that did not change",
    )
    parser.add_argument("--cache", type=Path, default=ROOT / "runs" / "calibration")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    arguments = parser.parse_args()
    if arguments.redo:
        shutil.rmtree(arguments.cache, ignore_errors=True)
    kept = None if arguments.keep is None else pd.read_csv(arguments.keep)
    results = collect(arguments.cache, arguments.jobs, kept)
    page = write(results, arguments.docs)
    print(f"written to {page}")


if __name__ == "__main__":
    main()
