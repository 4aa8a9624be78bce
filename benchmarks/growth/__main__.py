"""Measure what is missing and write the page: ``python -m benchmarks.growth``."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .page import write

ROOT = Path(__file__).parents[2]
SIZES = (100, 1000, 10_000, 100_000, 1_000_000)


def cells() -> list[dict[str, Any]]:
    """Everything that is measured on a CPU, the quick first."""
    kernels = [
        {"what": "kernel", "rows": n, "dimension": 23, "directions": 50, "dtype": dtype}
        for dtype in ("float64", "float32")
        for n in SIZES
    ]
    wide = [
        {"what": "kernel", "rows": 10_000, "dimension": d, "directions": d * -(-64 // d)}
        for d in (5, 23, 100, 784)
    ]
    many = [
        {"what": "kernel", "rows": 10_000, "dimension": 23, "directions": n} for n in (23, 230, 690)
    ]
    for cell in kernels + wide + many:
        cell.setdefault("dtype", "float64")
        cell["pot"] = cell["rows"] <= 100_000 and cell["directions"] <= 100
    whole = [{"what": "whole", "rows": n, "dimension": 23} for n in SIZES]
    columns = [{"what": "whole", "rows": 1000, "dimension": d} for d in (5, 100, 784)]
    return [
        *kernels,
        *wide,
        *many,
        *({"what": "limits", "rows": n, "directions": 69} for n in SIZES),
        *([{"what": "heloc"}] if os.environ.get("ELSEWISE_DATA") else []),
        {"what": "dice", "rows": 20},
        {"what": "apply", "rows": 100_000},
        {"what": "groups", "rows": 200},
        *whole,
        *columns,
    ]


def measured(cell: dict[str, Any]) -> dict[str, Any]:
    """Run one cell in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.growth.cell", json.dumps(cell)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{cell}:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def machine() -> dict[str, str]:
    """Where and with what the figures were made."""
    packages = ("numpy", "scipy", "pandas", "scikit-learn", "POT", "dice-ml")
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "versions": ", ".join(
            [f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in packages)]
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--redo", action="store_true", help="forget what was measured before")
    parser.add_argument("--only", nargs="*", help="kinds of cells to measure, such as kernel")
    parser.add_argument("--results", type=Path, default=ROOT / "docs" / "performance.json")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    arguments = parser.parse_args()
    results: dict[str, Any] = {"cells": {}}
    if arguments.results.exists() and not arguments.redo:
        results = json.loads(arguments.results.read_text("utf-8"))
    for cell in cells():
        key = json.dumps(cell, sort_keys=True)
        if key in results["cells"] or (arguments.only and cell["what"] not in arguments.only):
            continue
        start = time.perf_counter()
        results["cells"][key] = measured(cell)
        results["machine"] = machine()
        arguments.results.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
        print(f"{time.perf_counter() - start:6.1f} s  {cell}", flush=True)
    print(f"written to {write(results, arguments.docs)}")


if __name__ == "__main__":
    main()
