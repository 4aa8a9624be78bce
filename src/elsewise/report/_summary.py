"""The answer as text, and as JSON for programs."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from elsewise._arrays import to_numpy
from elsewise.analysis import ks, psi
from elsewise.report._view import View

if TYPE_CHECKING:
    from elsewise.explanation import Explanation


FORMAT = 1
# What a summary takes from `Status` as it is.
STATUS = ["sentence", "asked", "aimed", "before", "reached", "limit", "ok", "binding"]
STATUS += ["reachable", "rows_needed"]


def answer(explanation: Explanation, output: str = "") -> tuple[str, tuple[str, ...]]:
    """Return the answer in one sentence, and the changes that matter most.

    Parameters
    ----------
    explanation
        What to put into words.
    output
        What the model's output is called.
    """
    view = View(explanation, output)
    return view.answer(), view.first_changes()


def headline(explanation: Explanation, output: str = "") -> str:
    """Return the answer as one line of text; see `answer`."""
    return View(explanation, output).headline()


def change_table(explanation: Explanation) -> str:
    """Return the changes as a table of text, largest effect on the output first."""
    view = View(explanation)
    unit = " (points)" if view.probability else ""
    table = [("feature", f"effect on the mean output{unit}", "change in the rows that change")]
    table += view.change_lines()
    widths = [max(len(row[k]) for row in table) for k in range(2)]
    return "\n".join(f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c}" for a, b, c in table)


def drift(view: View) -> pd.DataFrame:
    """PSI and KS of the model's output and of every feature that may move."""
    first = pd.DataFrame({"psi": psi(*view.both), "ks": ks(*view.both)}, ["model output"])
    return pd.concat([first, view.changes[["psi", "ks"]]]).rename_axis("feature")


def fingerprints(explanation: Explanation) -> dict[str, str]:
    """Hashes of the explained rows and of the model's outputs on them."""
    names = "\0".join(map(str, explanation.problem.schema.names))
    codes = np.ascontiguousarray(to_numpy(explanation.problem.factual), dtype=np.float64)
    data = hashlib.sha256(names.encode("utf-8", "surrogatepass") + codes.tobytes())
    outputs = np.ascontiguousarray(explanation.factual_outputs, dtype=np.float64)
    return {"data": data.hexdigest(), "model": hashlib.sha256(outputs.tobytes()).hexdigest()}


def summary(explanation: Explanation, output: str = "") -> dict[str, Any]:
    """Return what a program wants to know, as JSON values; infinite and unknown numbers are None.

    Keys: format, elsewise, headline, status (verdict, sentence, asked, aimed,
    before, reached, limit, text, ok, binding, reachable, rows_needed),
    certificate (`Certificate.to_dict`), rows, rows_moved, output (description, target,
    mean_before, mean_after), changes (one record per feature), drift, limits, seed, hashes,
    notices.
    """
    status, problem, view = explanation.status, explanation.problem, View(explanation, output)
    before, after = view.means
    changes = view.changes.reset_index().to_dict(orient="records")
    drifts = drift(view).to_dict(orient="index")
    content: dict[str, Any] = {
        "format": FORMAT,
        "elsewise": version("elsewise"),
        "headline": view.headline(),
        "status": {
            "verdict": status.verdict.value,
            "text": str(status),
            **{name: getattr(status, name) for name in STATUS},
        },
        "certificate": explanation.certificate.to_dict(),
        "rows": view.rows,
        "rows_moved": int(view.moved.sum()),
        "output": {
            "description": problem.outputs.description,
            "target": problem.target.name,
            "mean_before": before,
            "mean_after": after,
        },
        "changes": [record | {"feature": str(record["feature"])} for record in changes],
        "drift": [{"feature": str(name), **row} for name, row in drifts.items()],
        "bounds": dataclasses.asdict(problem.bounds),
        "seed": problem.seed,
        "hashes": fingerprints(explanation),
        "notices": list(status.notices),
    }
    return dict(_plain(content))


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
