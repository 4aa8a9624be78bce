"""The numbers of a report that the explanation does not carry already; pure functions."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Hashable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from elsewise._arrays import to_numpy
from elsewise.analysis import changes as changes_of
from elsewise.analysis import ks, psi
from elsewise.report._view import View
from elsewise.report._words import headline
from elsewise.text import percent

if TYPE_CHECKING:
    from elsewise.explanation import Explanation


FORMAT = 1
# What a summary takes from `Status` as it is.
STATUS = ["sentence", "asked", "aimed", "before", "reached", "limit", "ok", "binding"]
STATUS += ["reachable", "rows_needed"]


def drift(explanation: Explanation, changes: pd.DataFrame | None = None) -> pd.DataFrame:
    """PSI and KS of the model's output and of every feature that may move.

    ``changes`` is what `elsewise.analysis.changes` returned, where the caller has it.
    """
    asked = explanation.main_output
    before, after = explanation.factual_outputs[:, asked], explanation.outputs[:, asked]
    first = pd.DataFrame({"psi": psi(before, after), "ks": ks(before, after)}, ["model output"])
    features = (changes_of(explanation) if changes is None else changes)[["psi", "ks"]]
    return pd.concat([first, features]).rename_axis("feature")


def output_table(explanation: Explanation, column: int = 0) -> pd.DataFrame:
    """Mean and quantiles of the model's output, before and after."""
    levels = (0.1, 0.25, 0.5, 0.75, 0.9)
    both = {
        "factual": explanation.factual_outputs[:, column],
        "counterfactual": explanation.outputs[:, column],
    }
    names = ["mean", *(f"{percent(level)} quantile" for level in levels)]
    table = {k: [v.mean(), *np.quantile(v, levels)] for k, v in both.items()}
    return pd.DataFrame(table, index=names)


def correlation_changes(
    names: list[Hashable], before: np.ndarray, after: np.ndarray, most: int = 8
) -> list[tuple[Hashable, Hashable, float, float]]:
    """The pairs of numbers whose correlation changes most: names, before, after."""
    rows, columns = np.triu_indices(len(names), k=1)
    order = np.argsort(-np.abs(after - before)[rows, columns], kind="stable")[:most]
    return [
        (names[i], names[k], float(before[i, k]), float(after[i, k]))
        for i, k in zip(rows[order], columns[order], strict=True)
    ]


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
    status, certificate = explanation.status, explanation.certificate
    view = View(explanation, output)
    changes = view.changes.reset_index().to_dict(orient="records")
    content: dict[str, Any] = {
        "format": FORMAT,
        "elsewise": version("elsewise"),
        "headline": headline(explanation, output),
        "status": {
            "verdict": status.verdict.value,
            "text": str(status),
            **{name: getattr(status, name) for name in STATUS},
        },
        "certificate": certificate.to_dict(),
        "rows": len(explanation.outputs),
        "rows_moved": int(view.moved.sum()),
        "output": {
            "description": explanation.problem.outputs.description,
            "target": explanation.problem.target.name,
            "mean_before": float(explanation.factual_outputs[:, explanation.main_output].mean()),
            "mean_after": float(explanation.outputs[:, explanation.main_output].mean()),
        },
        "changes": [record | {"feature": str(record["feature"])} for record in changes],
        "drift": [
            {"feature": str(name), **row}
            for name, row in drift(explanation, view.changes).to_dict(orient="index").items()
        ],
        "bounds": dataclasses.asdict(explanation.problem.bounds),
        "seed": explanation.problem.seed,
        "hashes": fingerprints(explanation),
        "notices": list(status.notices),
    }
    plain: dict[str, Any] = _plain(content)
    return plain


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
