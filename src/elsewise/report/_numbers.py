"""The numbers of a report that the explanation does not carry already; pure functions."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Hashable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from elsewise._arrays import to_numpy
from elsewise.features import Kind
from elsewise.report._words import headline, moved_rows, verdict

if TYPE_CHECKING:
    from elsewise.explanation import Explanation

__all__ = [
    "correlation_changes",
    "drift",
    "fingerprints",
    "flow_table",
    "ks",
    "output_table",
    "psi",
    "rank_correlation",
    "summary",
]

FORMAT = 1
BINS = 10
LEAST_SHARE = 1e-4
"""Shares are raised to this before logarithms are taken."""


def psi(before: np.ndarray, after: np.ndarray, *, category: bool = False) -> float:
    """Population stability index: tenths of the first sample, or levels of a category.

    Missing cells are a bin of their own; shares under 1e-4 count as 1e-4.

    Examples
    --------
    >>> x = np.arange(100.0)
    >>> psi(x, x), round(psi(x, x + 20.0), 2)
    (0.0, 1.6)
    """
    known = before[~np.isnan(before)]
    if category:
        edges = np.unique(np.concatenate([known, after[~np.isnan(after)]]))
    else:
        edges = np.unique(np.quantile(known, np.arange(1, BINS) / BINS)) if known.size else known

    def shares(values: np.ndarray) -> np.ndarray:
        places = np.searchsorted(edges, values)
        places = np.where(np.isnan(values), edges.size + 1, places)
        counts = np.bincount(places, minlength=edges.size + 2)
        return np.asarray(np.maximum(counts / values.size, LEAST_SHARE))

    first, second = shares(before), shares(after)
    return float(np.sum((second - first) * np.log(second / first)))


def ks(before: np.ndarray, after: np.ndarray) -> float:
    """Kolmogorov and Smirnov's distance: the largest gap of the two distribution functions.

    Examples
    --------
    >>> ks(np.arange(10.0), np.arange(10.0) + 5.0)
    0.5
    """
    first, second = (np.sort(values[~np.isnan(values)]) for values in (before, after))
    if not first.size or not second.size:
        return math.nan
    points = np.concatenate([first, second])
    shares = [np.searchsorted(part, points, side="right") / part.size for part in (first, second)]
    return float(np.max(np.abs(shares[0] - shares[1])))


def drift(explanation: Explanation) -> pd.DataFrame:
    """PSI and KS of the model's first output and of every feature that may move."""
    before, after = to_numpy(explanation.problem.factual), to_numpy(explanation.rows.codes)
    first, second = explanation.factual_outputs[:, 0], explanation.outputs[:, 0]
    rows: list[tuple[Hashable, float, float]] = [
        ("model output", psi(first, second), ks(first, second))
    ]
    for j, feature in enumerate(explanation.problem.schema.features):
        if feature.free:
            category = feature.kind is Kind.CATEGORY
            gap = math.nan if category else ks(before[:, j], after[:, j])
            rows.append((feature.name, psi(before[:, j], after[:, j], category=category), gap))
    return pd.DataFrame(rows, columns=["feature", "psi", "ks"]).set_index("feature")


def output_table(explanation: Explanation, column: int = 0) -> pd.DataFrame:
    """Mean and quantiles of the model's output, before and after."""
    levels = (0.1, 0.25, 0.5, 0.75, 0.9)
    both = {
        "factual": explanation.factual_outputs[:, column],
        "counterfactual": explanation.outputs[:, column],
    }
    names = ["mean", *(f"{100 * level:.0f} % quantile" for level in levels)]
    table = {k: [v.mean(), *np.quantile(v, levels)] for k, v in both.items()}
    return pd.DataFrame(table, index=names)


class Flow(NamedTuple):
    """Rows that change from one level of a category to another."""

    feature: Hashable
    before: object
    after: object
    rows: int
    share: float


def flow_table(explanation: Explanation, most: int = 15) -> list[Flow]:
    """The largest flows between levels of categories, largest first."""
    before, after = to_numpy(explanation.problem.factual), to_numpy(explanation.rows.codes)
    flows = []
    for j, feature in enumerate(explanation.problem.schema.features):
        if feature.kind is not Kind.CATEGORY:
            continue
        moved = before[:, j] != after[:, j]
        moved &= ~(np.isnan(before[:, j]) | np.isnan(after[:, j]))
        pairs = before[moved, j].astype(int) * len(feature.levels) + after[moved, j].astype(int)
        for pair, count in zip(*np.unique(pairs, return_counts=True), strict=True):
            start, end = (feature.levels[code] for code in divmod(int(pair), len(feature.levels)))
            flows.append(Flow(feature.name, start, end, int(count), float(count / len(before))))
    return sorted(flows, key=lambda flow: -flow.rows)[:most]


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


def rank_correlation(before: np.ndarray, after: np.ndarray) -> float:
    """Spearman's rank correlation; 0 where one side has no order.

    Examples
    --------
    >>> rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([1.0, 9.0, 5.0]))
    0.5
    """
    ranks = [pd.Series(values).rank().to_numpy() for values in (before, after)]
    first, second = (rank - rank.mean() for rank in ranks)
    size = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / size if size > 0 else 0.0


def fingerprints(explanation: Explanation) -> dict[str, str]:
    """Hashes of the explained rows and of the model's outputs on them."""
    names = "\0".join(map(str, explanation.problem.schema.names))
    codes = np.ascontiguousarray(to_numpy(explanation.problem.factual), dtype=np.float64)
    data = hashlib.sha256(names.encode("utf-8", "surrogatepass") + codes.tobytes())
    outputs = np.ascontiguousarray(explanation.factual_outputs, dtype=np.float64)
    return {"data": data.hexdigest(), "model": hashlib.sha256(outputs.tobytes()).hexdigest()}


def summary(explanation: Explanation, output: str = "model output") -> dict[str, Any]:
    """Return what a program wants to know, as JSON values; infinite and unknown numbers are None.

    Keys: format, elsewise, headline, status (outcome, text, ok, binding, reachable), certificate
    (verdict, met, probability and its fields), rows, rows_moved, output (description, target,
    mean_before, mean_after), changes (one record per feature), drift, limits, seed, hashes,
    notices.
    """
    status, certificate = explanation.status, explanation.certificate
    changes = explanation.changes().reset_index().to_dict(orient="records")
    content: dict[str, Any] = {
        "format": FORMAT,
        "elsewise": version("elsewise"),
        "headline": headline(explanation, output),
        "status": {
            "outcome": status.outcome.name,
            "text": str(status),
            "ok": status.ok,
            "binding": status.binding,
            "reachable": status.reachable,
        },
        "certificate": {
            "verdict": verdict(certificate).value,
            "met": certificate.met,
            "probability": certificate.probability,
            **dataclasses.asdict(certificate),
        },
        "rows": len(explanation.outputs),
        "rows_moved": moved_rows(explanation),
        "output": {
            "description": explanation.problem.outputs.description,
            "target": explanation.problem.target.name,
            "mean_before": float(explanation.factual_outputs[:, 0].mean()),
            "mean_after": float(explanation.outputs[:, 0].mean()),
        },
        "changes": [record | {"feature": str(record["feature"])} for record in changes],
        "drift": [
            {"feature": str(name), **row}
            for name, row in drift(explanation).to_dict(orient="index").items()
        ],
        "limits": dataclasses.asdict(explanation.problem.limits),
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
