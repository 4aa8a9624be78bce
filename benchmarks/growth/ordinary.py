"""The section of the page about the time of an ordinary question, from ``docs/speed.json``."""

from __future__ import annotations

from statistics import median
from typing import Any

__all__ = ["section"]

TEXT = """
`python -m benchmarks.speed` measures old and new in one run, in processor time, each part in a
process of its own, the least of three runs. *Before* is what the library did until 2026-11-18:
pipelines asked frame by frame, ranks sorted by comparison, thread pools of BLAS left alone.

- **A pipeline is read once into tables.** Four fifths of the README example went into
  `ColumnTransformer`, `OneHotEncoder` and their checks, called 302 times for small frames. When a
  model is bound, preprocessing that works column by column (encoders, scalers, `SimpleImputer`,
  `KBinsDiscretizer`, nested pipelines, passthrough) becomes a table per category and arithmetic per
  number, and the final estimator is asked directly. Linear models behind it have exact slopes. The
  tables must give the pipeline's own outputs on the rows and the background to 1e-12; if they do
  not, or a step cannot be read, the pipeline is asked as it is and the status says so. What is
  returned and certified are always the pipeline's own outputs.
- **The bootstrap sorts 16-bit ranks by radix**, or counts draws where samples are larger, with the
  same limits to the last digit.
- **BLAS and OpenMP pools are held to one thread** beside our own, and given back to a model that is
  asked about 4,096 rows or more.
- **Above 1,024 dimensions directions stay inside random groups of 128 coordinates**; they are still
  a complete orthonormal basis, without a decomposition of d x d, and are kept sparse.
"""


def section(speed: dict[str, Any]) -> str:
    """Return the section as Markdown."""
    measured = speed["measured"]
    parts = [
        "## Where the time of an ordinary question goes",
        TEXT,
        f"Measured {measured['date']}, {measured['machine']}; the machine was busy with other work "
        f"(load {measured['load']:g}), so look at ratios.\n",
        "| question | before | after | ratio | wanted |",
        "|---|---|---|---|---|",
        *_lines(speed),
        "",
        *_threads(speed),
    ]
    return "\n".join(parts)


def _lines(speed: dict[str, Any]) -> list[str]:
    lines = []
    if "readme" in speed:
        lines.append(_line("README example, 242 rows", speed["readme"], "at most 0.25"))
    if "models" in speed:
        found = speed["models"]
        lines += [_line(f"German Credit, 200 rows, {name}", found[name], "") for name in found]
        middle = median(times["after"] / times["before"] for times in found.values())
        lines.append(f"| the median of these six | | | **{middle:.2f}** | at most 0.4 |")
    if "arrays" in speed:
        text = "on prepared arrays (before), through a pipeline (after)"
        lines.append(_line(text, speed["arrays"], "at most 1.5"))
    for part, wanted in (("certificate", ("", "")), ("certificate without AVX-512", (0.3, 0.35))):
        for (kind, times), most in zip(speed.get(part, {}).items(), wanted, strict=False):
            text = f"n = 1,000, d = 4, {kind}{part.removeprefix('certificate')}"
            lines.append(_line(text, times, f"at most {most}" if most else ""))
    if "wide" in speed:
        size, used = speed["wide"]["gigabytes"], speed["wide"]["seconds"]
        text = "50 x 5,000, linear, both bounds"
        lines.append(f"| {text} | over 7.5 GB | {used:.3g} s, {size:.2f} GB | | 60 s, 2 GB |")
    return lines


def _line(text: str, times: dict[str, float], wanted: str) -> str:
    before, after = times["before"], times["after"]
    return f"| {text} | {before:.3g} s | {after:.3g} s | **{after / before:.2f}** | {wanted} |"


def _threads(speed: dict[str, Any]) -> list[str]:
    if "threads" not in speed:
        return []
    rows = [
        f"| {name} | {times['clock']:.3g} s | {times['processor']:.3g} s |"
        for name, times in speed["threads"].items()
    ]
    return [
        "20,000 rows, 23 columns, a linear model, no environment variable set:\n",
        "| threads | clock | processor |",
        "|---|---|---|",
        *rows,
        "",
    ]
