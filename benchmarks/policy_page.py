"""The page of `benchmarks.policy`: docs/policy.md from its results."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

__all__ = ["write_page"]


def write_page(results: dict[str, Any], place: Path) -> None:
    """Write the page, with the parts that there are results of."""
    lines = [OPENING.read_text("utf-8").rstrip() if OPENING.exists() else "# Few actions", ""]
    for name, section in SECTIONS.items():
        if name in results:
            about = results[name]["about"]
            lines += section(results[name]["result"])
            lines += [
                f"*Measured {about['date']} in {about['seconds']:.0f} s by "
                f"`python -m benchmarks.policy {name}` on a machine of {os.cpu_count()} cores, one "
                f"thread, Python {about['python']}.*",
                "",
            ]
    place.write_text("\n".join(lines), encoding="utf-8")


OPENING = Path(__file__).resolve().parent / "policy_opening.md"


def german(result: dict[str, Any]) -> list[str]:
    lines = [
        "## German Credit",
        "",
        "A risk above 50 % is asked to be at most 50 %; housing, both accounts, amount and "
        "duration are free. Half of the rows are held out; means over 20 splits, seeds 0 to 19. "
        "Costs are squared standard deviations, 1 for a change of category, over rows that "
        "arrive. Seconds are processor time of `explanation.policy(k)`, without the explanation.",
        "",
    ]
    for name, found in result.items():
        lines += [
            f"### {name}, {found['rows']} refused applicants",
            "",
            *table(GERMAN, found["table"]),
        ]
        lines += ["", "The memo with seed 0, k = 4, then the same as a rule:", ""]
        lines += ["```text", found["memo"], "```", "", "```text", found["rule"], "```", ""]
    return lines


GERMAN = {
    "k": ("actions", lambda row: f"{row['k']:.0f}" if row["k"] else "the per-row map"),
    "reach": ("held-out rows that arrive", lambda row: percent(row["reach"])),
    "lowest": ("in the worst split", lambda row: percent(row["lowest"])),
    "fit": ("fitted rows that arrive", lambda row: percent(row["fit"])),
    "cost": ("cost", lambda row: f"{row['cost']:.3f}"),
    "most_seconds": ("most seconds", lambda row: number(row["most_seconds"])),
}


def optimum(result: dict[str, Any]) -> list[str]:
    return [
        "## Beside the optimum",
        "",
        "Random tables, seeds 0 to 19: 60 rows, 150 actions, three chosen. The summed cost is at "
        f"most {percent(max(max(result['gaps']), 0.0))} above the optimum of an integer program "
        "(scipy's milp). Five tables of 200 rows and 40 actions with a budget of 60: the rows "
        f"served are at most {percent(max(result['budgets']))} short of what no solution can beat.",
        "",
    ]


def boosted(name: str) -> Any:
    def section(result: dict[str, Any]) -> list[str]:
        best = max(row["reach"] for row in result["curve"])
        return [
            f"## {name}, LightGBM",
            "",
            f"{result['rows']} rows with a score under 0.5, asked to have at least 0.5; seed 0, "
            f"half held out; at most {result['cells']} changes an action. The full map brings "
            f"{percent(result['full'])} of the held-out rows there, 12 actions {percent(best)}. "
            f"Choosing 12 took {result['seconds']:.1f} s of "
            "processor time.",
            "",
            *table(CURVE, result["curve"]),
            "",
            "```text",
            result["memo"],
            "```",
            "",
        ]

    return section


CURVE = {
    "k": ("actions", lambda row: f"{row['k']:.0f}"),
    "reach": ("held-out rows that arrive", lambda row: percent(row["reach"])),
    "limit": ("at least (95 %)", lambda row: percent(row["limit"])),
    "mean_cost": ("cost", lambda row: f"{row['mean_cost']:.3f}"),
    "reach_fit": ("fitted rows that arrive", lambda row: percent(row["reach_fit"])),
}


def rivals(result: list[dict[str, Any]]) -> list[str]:
    return [
        "## Beside AReS and GLOBE-CE",
        "",
        "German Credit, all refused applicants, in-sample as the two methods are; costs in bins "
        "(ten a number, a change of category 1), which the policies minimize here. AReS is asked "
        "for k rules; GLOBE-CE's scalars are rounded to the best k. *Ours at their reach*: the "
        "mean cost of the policy's cheapest rows, as many as the other method brings there. "
        "Held-out: the reach of a policy chosen on one half, on the other.",
        "",
        *table(RIVALS, result),
        "",
    ]


RIVALS = {
    "model": ("model", lambda row: row["model"]),
    "k": ("k", lambda row: f"{row['k']}"),
    "method": ("method", lambda row: row["method"]),
    "reach": ("rows that arrive", lambda row: percent(row["reach"])),
    "held": ("held-out", lambda row: percent(row["held_out"])),
    "bins": ("bins", lambda row: number(row["bins"])),
    "ours": ("ours at their reach", lambda row: number(row.get("ours_at_their_reach"))),
    "illegal": ("illegal rows", lambda row: f"{row['illegal']}"),
}


def coverage(result: dict[str, Any]) -> list[str]:
    return [
        "## Do the limits hold?",
        "",
        f"{result['repetitions']} repetitions of 300 rows, policies of two actions of one cell and "
        "a largest cost, so that many rows are not helped; each limit against 20,000 fresh rows. "
        "The limit at 95 % of the share that is inside was at most the share there in "
        f"{percent(result['covered'])} (mean limit {percent(result['limit'])}, mean share "
        f"{percent(result['reach'])}).",
        "",
    ]


def table(columns: dict[str, Any], rows: list[dict[str, Any]]) -> list[str]:
    """Return a Markdown table."""
    head = [title for title, _ in columns.values()]
    body = [[cell(row) for _, cell in columns.values()] for row in rows]
    return [f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *body)]


def percent(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{100 * value:.1f} %"


def number(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.2f}"


SECTIONS = {
    "german": german,
    "optimum": optimum,
    "HELOC": boosted("HELOC"),
    "COMPAS": boosted("COMPAS"),
    "rivals": rivals,
    "coverage": coverage,
}
