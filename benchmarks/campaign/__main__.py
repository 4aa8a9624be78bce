"""Run what is missing of the campaign and write its summary: ``python -m benchmarks.campaign``."""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections import Counter
from datetime import date
from importlib.metadata import version
from pathlib import Path

# One thread, before NumPy is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from . import inputs, mutations, problems
from .verdicts import BAD, VERDICTS, Attempt, verdict

ROOT = Path(__file__).parents[2]
KINDS = {"inputs": inputs, "problems": problems, "mutations": mutations}
SAMPLE = 33
"""One attempt in so many is the fixed sample that the tests run: 3 %."""

INTRODUCTION = """\
From `make campaign` ({day}, elsewise {version}). *Inputs*: every argument with values
that are passed by mistake, odd frames and odd models. *Problems*: random schemas, models and
targets; rows must be legal, outputs the model's, and no number NaN. *Mutations*: saved runs with
hashes that fit, policies, differences, schema files, studies, models of skops, tables and notes,
through the library and the command. An attempt is answered, and the answer checked, or it is
refused in a sentence with a remedy; anything else is a fault. Attempts are made in a random order,
so that those tried are a sample of those listed, and a campaign goes on where it stopped. Faults
that it found are mended, tried again and tests of their own, beside a fixed 3% of the campaign."""


def listed() -> dict[str, list[Attempt]]:
    """Every attempt of every kind."""
    return {kind: list(module.attempts()) for kind, module in KINDS.items()}


def sampled(kind: str) -> list[Attempt]:
    """The fixed sample of a kind."""
    return list(KINDS[kind].attempts())[::SAMPLE]


def _missing(everything: dict[str, list[Attempt]], done: set[str]) -> list[tuple[str, Attempt]]:
    """What is left, in a random order, so that a run cut short is a sample of the whole."""
    left = [
        (kind, attempt)
        for kind, attempts in everything.items()
        for attempt in attempts
        if f"{kind}: {attempt.key}" not in done
    ]
    random.Random(0).shuffle(left)
    return left


def main() -> None:
    """Run, remember every verdict, write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.campaign", description=__doc__)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--redo", action="store_true", help="forget what was tried before")
    parser.add_argument("--cache", type=Path, default=ROOT / "runs" / "campaign.jsonl")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "campaign.md")
    arguments = parser.parse_args()
    cache: Path = arguments.cache
    cache.parent.mkdir(parents=True, exist_ok=True)
    if arguments.redo:
        cache.unlink(missing_ok=True)
    lines = cache.read_text().splitlines() if cache.exists() else []
    results = {(line := json.loads(text))["key"]: line for text in lines}
    everything = listed()
    end = time.monotonic() + arguments.seconds
    with cache.open("a") as file:
        for kind, attempt in _missing(everything, set(results)):
            if time.monotonic() > end:
                break
            found, said = verdict(attempt)
            key = f"{kind}: {attempt.key}"
            results[key] = {"key": key, "kind": kind, "verdict": found, "said": said}
            file.write(json.dumps(results[key]) + "\n")
            file.flush()
            if found in BAD:
                print(f"{found}: {key}: {said}", flush=True)
    arguments.page.write_text(page(everything, list(results.values())), encoding="utf-8")
    print(f"{len(results):,} attempts so far; written to {arguments.page}")


def page(everything: dict[str, list[Attempt]], results: list[dict[str, str]]) -> str:
    """The summary, as Markdown."""
    rows, keys = [], {f"{kind}: {one.key}" for kind, all_ in everything.items() for one in all_}
    results = [r for r in results if r["key"] in keys]
    for kind, attempts in everything.items():
        counts = Counter(r["verdict"] for r in results if r["kind"] == kind)
        cells = [
            kind,
            f"{len(attempts):,}",
            f"{counts.total():,}",
            *(f"{counts[v]:,}" for v in VERDICTS),
        ]
        rows.append("| " + " | ".join(cells) + " |")
    bad = [r for r in results if r["verdict"] in BAD]
    failures = [f"- {r['key']}: {r['verdict']} (`{r['said'][:160]}`)" for r in bad[:40]]
    head = ["kind", "listed", "tried", *VERDICTS]
    return "\n".join(
        [
            "# Attempts to break it",
            "",
            INTRODUCTION.format(day=date.today(), version=version("elsewise")),
            "",
            "| " + " | ".join(head) + " |",
            "|---|" + "---:|" * (len(head) - 1),
            *rows,
            "",
            *(failures or ["No fault in what was tried."]),
            "",
        ]
    )


if __name__ == "__main__":
    main()
