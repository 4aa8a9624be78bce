"""The page ``docs/performance.md``, written from results and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .groups import GROUPS
from .ordinary import section
from .picture import draw
from .results import Cell, asked, exponent

__all__ = ["write"]

STEEPER = 0.03
"""By how much the exponent of the kernel may exceed that of a bare argsort."""
SHARE = 0.25
"""The share of a step that may be spent outside sort, projection and model."""

INTRODUCTION = """# Performance

How time and memory grow with rows, columns and directions. `make bench` measures what is missing
and writes this page; results are kept in `docs/performance.json`. It also measures the quality and
time of whole runs on real data, see [Benchmarks](benchmarks.md).

Times are wall times, the best of several where a run is short. Compare ratios, not seconds:
machines differ. `python benchmarks/kernel.py` fails below six times POT.
"""

HOW = """
## What makes it fast

- **A plan is a sort.** Distances, plans and limits come from the same batched sorts; no array of
  n x n or n x m entries is ever made. Where no limit is asked for, values are sorted without
  keeping their order, which is three times cheaper. From 32,768 rows on value and row are packed
  into one integer and sorted together, at a million rows in half (float32) or two thirds
  (float64) of the time of an argsort.
- **Threads over directions and rows**, `Settings(threads=...)`, by default all cores
  (`ELSEWISE_THREADS` and `OMP_NUM_THREADS` are respected). The model is never called from two
  threads at once. Work is cut at the same places whatever the number of threads, so a seed gives
  the same bytes.
- **Bounded memory**, `Settings(memory="2GB")`: rows are moved in blocks, directions are looked at a
  few at a time. The rows, the result and what the model itself needs come on top.
- **A sample of many rows.** With a held-out certificate at most `Settings(fit_rows=20_000)` rows,
  drawn at random, are fitted to; the map is applied to all, and at most 100,000 of the other rows
  are certified on. What a limit adds to its distance shrinks like one over the root of the rows:
  at 100,000 it is a few thousandths of a standard deviation. The status says which rows were used.
- **Bounds only where they are needed.** The history shows the upper limit of a side with a bound;
  of a side without one it shows the distance alone (NaN for the limit).
- **Precision.** Everything is in double precision on the CPU. On an accelerator the precision
  follows the data: a frame of float32 columns under a float32 module is searched in float32, with
  limits and sums over rows in float64; any other frame in float64. In single precision a row's path
  may change in its last digits with the batch it comes in.
- **Linear models of scikit-learn** are searched as what they are, a product and a link, once that
  agrees with the model on the first rows. What is returned and certified are the model's own
  outputs.

## GPU

`ew.models.torch_model(module, device="cuda")`, or a module that is on a device already: rows, maps,
proposals and limits then stay there. `device="cpu"` runs the same path on the CPU. A device that
torch cannot use is refused by name.

By default changes that do not matter are taken back (`Settings(slack=0.05)`), and the map that all
rows go through has more steps. On the H200, 2026-11-19, two networks, d = 4: a million rows take
2.2 and 4.2 s, with `slack=0` 1.8 s; ten million 9.1 and 25 s, with `slack=0` 9.1 s.
"""


def write(results: dict[str, Any], docs: Path) -> Path:
    """Write the page and its picture."""
    path = docs / "gpu-results.json"
    device = json.loads(path.read_text("utf-8")) if path.exists() else None
    path = docs / "speed.json"
    speed = json.loads(path.read_text("utf-8")) if path.exists() else None
    draw(results, device, docs / "images" / "performance.png")
    machine = results["machine"]
    parts = [
        INTRODUCTION,
        f"Measured {machine['date']} on {machine['machine']}, seed 0. {machine['versions']}.\n",
        "![Time and memory against the number of rows](images/performance.png)\n",
        _kernel(results),
        _columns(results),
        _limits(results),
        _whole(results),
        *([] if device is None else [_device(device)]),
        *([] if speed is None else [section(speed)]),
        HOW,
    ]
    page = docs / "performance.md"
    page.write_text("\n".join(parts), "utf-8")
    return page


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{1e3 * value:.3g} ms" if value < 1 else f"{value:.3g} s"


def _kernel(results: dict[str, Any]) -> str:
    head = ("n", "dtype", "value and gradient", "2 threads", "bare argsort", "POT's value", "ratio")
    rows, exponents = [], []
    for dtype in ("float64", "float32"):
        cells = asked(results, "kernel", dimension=23, directions=50, dtype=dtype)
        for arguments, found in cells:
            gain, pot = found["seconds_1"] / found["seconds_2"], found.get("pot")
            rows.append(
                (
                    f"{arguments['rows']:,}",
                    dtype,
                    _seconds(found["seconds_1"]),
                    f"{gain:.2f} x",
                    _seconds(found["argsort"]),
                    _seconds(pot),
                    "" if pot is None else f"**{pot / found['seconds_1']:.1f} x**",
                )
            )
        ours, bare = exponent(cells, "seconds_1"), exponent(cells, "argsort")
        verdict = "reached" if ours <= bare + STEEPER else "not reached"
        exponents.append(
            f"From 1e4 to 1e6 rows, {dtype}: n^{ours:.3f}, bare argsort n^{bare:.3f}; wanted: no "
            f"more than {bare + STEEPER:.3f}, {verdict}."
        )
    text = "## Kernel\n\nd = 23, N = 50, one thread; POT computes the value alone.\n"
    return "\n".join([text, _table(head, rows), *exponents, ""])


def _columns(results: dict[str, Any]) -> str:
    cells = asked(results, "kernel", rows=10_000, dtype="float64")
    cells.sort(key=lambda cell: (cell[0]["dimension"], cell[0]["directions"]))
    rows = [
        (
            str(arguments["dimension"]),
            str(arguments["directions"]),
            _seconds(found["seconds_1"]),
            f"{1e9 * found['seconds_1'] / (1e4 * arguments['directions']):.1f} ns",
            f"{found['megabytes']:.0f} MB",
        )
        for arguments, found in cells
    ]
    head = ("d", "N", "value and gradient", "a projection", "memory on the way")
    return "## Columns and directions\n\nn = 10,000, float64, one thread.\n\n" + _table(head, rows)


def _limits(results: dict[str, Any]) -> str:
    cells = asked(results, "limits", directions=69)
    rows = [(f"{a['rows']:,}", _seconds(v["clt"]), _seconds(v.get("bootstrap"))) for a, v in cells]
    table = _table(("n", "CLT", "bootstrap, 999 draws"), rows)
    return (
        f"## Bounds\n\nA paired comparison on 69 directions, one thread, sorts included.\n\n{table}"
    )


def _whole(results: dict[str, Any]) -> str:
    def row(cell: Cell) -> tuple[str, ...]:
        arguments, found = cell
        return (
            f"{arguments['rows']:,}",
            str(arguments["dimension"]),
            _seconds(found["seconds"]),
            _seconds(found["cpu"]),
            f"{found['megabytes']:,.0f} MB",
            str(found["iterations"]),
            str(found["steps"]),
            found["outcome"].lower(),
        )

    head = ("n", "d", "wall", "processor", "peak memory", "iterations", "steps of the map", "ended")
    lines = [
        "## Whole runs",
        "",
        "`explain()` with scikit-learn's `LogisticRegression`, target: at least 0.6, output limit",
        "0.15, default certificate (held-out from 200 rows on), two threads.",
        "",
        _table(head, [row(cell) for cell in asked(results, "whole")]),
    ]
    for _, found in asked(results, "apply"):
        lines.append(
            f"`explanation.apply` on 100,000 new rows: {_seconds(found['seconds'])} "
            f"({found['steps']} steps).\n"
        )
    for _, found in asked(results, "heloc"):
        lines.append(
            f"HELOC, DNN, 55 rows, in-sample certificate, one core, processor time: both limits in "
            f"the loop **{_seconds(found['both'])}**, output limit alone "
            f"{_seconds(found['outputs'])}.\n"
        )
    for arguments, found in asked(results, "groups"):
        lines.append(
            f"`explain_groups`, {GROUPS} groups of {arguments['rows']} rows, one thread in each "
            f"worker: one worker {_seconds(found['one'])}, two {_seconds(found['two'])}, "
            f"**{found['one'] / found['two']:.2f} x** (their start, {_seconds(found['start'])}, is "
            "not counted).\n"
        )
    dice, whole = asked(results, "dice"), asked(results, "whole", rows=10_000, dimension=23)
    if dice and whole:
        theirs = dice[0][0]["rows"] / dice[0][1]["seconds"]
        ours = 10_000 / whole[0][1]["seconds"]
        lines.append(
            f"dice-ml (random search, one counterfactual a row, same model): {theirs:.2g} rows a "
            f"second; elsewise at n = 10,000: {ours:,.0f} rows a second, certificate included.\n"
        )
    return "\n".join(lines)


def _wide(key: str, seconds: float) -> str:
    rows, width = key.split()
    return f"- {int(rows):,} rows, layers of {width}: {seconds:.2f} s"


def _share_verdict(device: dict[str, Any]) -> str:
    """Which of the models leave less than a quarter of a step to all else."""
    rows = max(int(key.split()[0]) for key in device["shares"])
    parts = {
        int(key.split()[1]): found["other"]
        for key, found in device["shares"].items()
        if int(key.split()[0]) == rows
    }
    enough = [width for width, other in parts.items() if other < SHARE]
    reached = f"reached with layers of {_listed(enough)}" if enough else "not reached"
    missed = [f"{other:.0%} with {width}" for width, other in parts.items() if other >= SHARE]
    also = f" ({_listed(missed)})" if missed else ""
    return (
        f"Wanted: less than {SHARE:.0%} outside\nsort, projection and model. With {rows:,} rows in "
        f"the loop: {reached}{also}."
    )


def _listed(items: list[Any]) -> str:
    *most, last = map(str, items)
    return f"{', '.join(most)} and {last}" if most else last


def _device(device: dict[str, Any]) -> str:
    head = (
        "n",
        "explain()",
        "frame in",
        "fit",
        "map on all rows",
        "frame out",
        "certificate",
        "GB",
    )
    rows = []
    for size, found in device["whole"].items():
        stages = list(found["stages"].values())
        rows.append(
            (
                f"{int(size):,}",
                f"**{found['seconds']:.2f} s**",
                *(f"{seconds:.2f} s" for seconds in stages),
                f"{found['device_gigabytes']:.1f}",
            )
        )
    lines = [
        f"## On one {device['device']}",
        "",
        f"Measured {device['date']}; {device['versions']}. float32 frame, network of two hidden",
        "layers of 128, d = 23, N = 69, held-out certificate included; by",
        "`python -m benchmarks.growth.device`.",
        "",
        _table(head, rows),
        "The same with other widths, and again:",
        "",
        *(_wide(key, found["seconds"]) for key, found in device["wide"].items()),
        "",
        f"What a step of the loop is spent on, as shares of its time. {_share_verdict(device)}",
        "All else is passes over the rows (finding their anchors, moving them within their boxes,",
        "comparing costs), which take as long whatever the model, and waiting for Python. At",
        "20,000 rows, the default `fit_rows`, a step is mostly that: some 350 small pieces of work",
        "go to a device that is done with each before the next arrives.",
        "",
    ]
    head = ("n", "hidden", "a step", "sort", "projection", "model", "all else")
    rows = [
        (
            f"{int(key.split()[0]):,}",
            key.split()[1],
            _seconds(found["seconds_a_step"]),
            *(f"{found['kinds'].get(kind, 0.0):.0%}" for kind in ("sort", "projection", "model")),
            f"{found['other']:.0%}",
        )
        for key, found in device["shares"].items()
    ]
    return "\n".join([*lines, _table(head, rows)])
