"""Explanations certified on rows the fit never saw, against fresh rows of the population.

What a limit claims to cover is the trimmed distance of the population, on the directions of the
certificate, between its rows and where the recorded map takes them (inputs), and between the
model's outputs there and the target (outputs). Many fresh rows, mapped by `Explanation.apply`, tell
what that distance is.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import elsewise as ew
from elsewise.confidence import Comparison
from elsewise.transport import direction_blocks, project

from .cache import Piece
from .gate import Check

__all__ = [
    "DESIGNS",
    "Design",
    "Run",
    "checks",
    "draw_rows",
    "joined",
    "pieces",
    "repeat",
    "summary",
]

CONFIDENCE, TRIM, CUT = 0.95, 0.05, 0.4
"""Level of each limit by itself; trim; scores are wanted at the cut at most."""
BOUNDS = {"logistic": 0.04, "trees": 0.03}
"""Bound on the output distance."""
DRAWS = 199
TREES = "20 boosted trees of 8 leaves"
CHUNK = 5
"""Repetitions in one file."""
REDUCTION = 3.0
"""The map has to reduce the output distance of fresh rows so many times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """One simulation."""

    model: str
    rows: int
    fresh: int
    kind: str
    repetitions: int
    wanted: float | None
    """Share of repetitions in which both limits have to hold; None where nothing is claimed."""


DESIGNS = tuple(
    Design(
        model=model,
        rows=rows,
        fresh=fresh,
        kind=kind,
        repetitions=repetitions if kind == "held-out" else 10,
        wanted=wanted if kind == "held-out" else None,
    )
    for model, rows, fresh, repetitions, wanted in (
        ("logistic", 400, 20_000, 100, 0.90),
        ("logistic", 2000, 20_000, 60, 0.90),
        ("trees", 400, 2000, 20, 0.90),
    )
    for kind in ("held-out", "in-sample")
)


class Run(NamedTuple):
    """One explanation and the truth about it."""

    inputs_limit: float
    inputs_truth: float
    outputs_limit: float
    outputs_truth: float
    outputs_before: float
    """True output distance of the population before it is moved."""
    outcome: str


def draw_rows(count: int, rng: np.random.Generator) -> pd.DataFrame:
    """Four normal features, correlated in pairs."""
    z = rng.standard_normal((count, 4))
    z[:, 1] += 0.5 * z[:, 0]
    z[:, 3] -= 0.5 * z[:, 2]
    return pd.DataFrame(z, columns=list("abcd"))


@cache
def fitted(name: str) -> tuple[Any, pd.DataFrame]:
    """A model and the rows it was trained on."""
    rng = np.random.default_rng(0)
    rows = draw_rows(4000, rng)
    scores = rows.to_numpy() @ [1.0, -0.8, 0.6, 0.4] - 0.3
    labels = (rng.random(len(rows)) < 1.0 / (1.0 + np.exp(-scores))).astype(int)
    if name == "logistic":
        return LogisticRegression().fit(rows, labels), rows
    trees = HistGradientBoostingClassifier(max_iter=20, max_leaf_nodes=8, random_state=0)
    return trees.fit(rows, labels), rows


def repeat(design: Design, repetition: int) -> Run:
    """Draw rows, explain, certify; ask fresh rows whether the limits hold."""
    model, background = fitted(design.model)
    rng = np.random.default_rng([5, design.rows, repetition])
    explanation = ew.explain(
        model,
        draw_rows(design.rows, rng),
        target=ew.targets.at_most(CUT),
        bounds=ew.Bounds(outputs=BOUNDS[design.model], confidence=CONFIDENCE, trim=TRIM),
        background=background,
        certify=design.kind,
        seed=repetition,
        settings=ew.Settings(draws=DRAWS),
        progress=False,
    )
    certificate = explanation.certificate
    fresh = draw_rows(design.fresh, rng)
    inputs, outputs, before = true_distances(explanation, fresh)
    return Run(
        inputs_limit=float(certificate.inputs.upper_limit),
        inputs_truth=inputs,
        outputs_limit=float(certificate.outputs.upper_limit),
        outputs_truth=outputs,
        outputs_before=before,
        outcome=explanation.status.verdict.value,
    )


def true_distances(explanation: ew.Explanation, fresh: pd.DataFrame) -> tuple[float, float, float]:
    """Input and output distance of fresh rows under the map, and the output distance before."""
    problem, encoder = explanation.problem, explanation.encoder
    trim = problem.bounds.trim
    moved = explanation.apply(fresh)
    # The certificate's own directions: the same seed and purpose give the same draw.
    theta = direction_blocks(problem.embedding.size, problem.generator("certificate directions"))
    sides = [
        project(problem.embedding.embed(encoder.encode(frame)), theta) for frame in (moved, fresh)
    ]
    after, before = (
        explanation.model.predict_proba(frame)[:, 1][None, :] for frame in (moved, fresh)
    )
    wanted = np.minimum(before, CUT)
    return (
        Comparison.paired(*sides, trim).distance,
        Comparison.paired(after, wanted, trim).distance,
        Comparison.paired(before, wanted, trim).distance,
    )


def pieces(designs: tuple[Design, ...] = DESIGNS) -> list[Piece]:
    """The repetitions, a few in each file."""
    found = []
    for design in designs:
        name = f"heldout-{design.model}-{design.rows}-{design.kind}"
        settings = f"{asdict(design) | {'repetitions': 0}} {TRIM} {BOUNDS} {CUT} {DRAWS}"
        for start in range(0, design.repetitions, CHUNK):
            found.append(
                Piece(
                    key=f"{name}-{start:03d}",
                    version=settings,
                    compute=lambda design=design, start=start: [
                        repeat(design, start + k) for k in range(CHUNK)
                    ],
                )
            )
    return found


def joined(chunks: list[list[list[Any]]]) -> dict[Design, list[Run]]:
    """Put the repetitions of each simulation together again."""
    found: dict[Design, list[Run]] = {}
    rest = iter(chunks)
    for design in DESIGNS:
        part = [next(rest) for _ in range(0, design.repetitions, CHUNK)]
        found[design] = [Run(*values) for chunk in part for values in chunk]
    return found


def summary(runs: list[Run]) -> dict[str, float]:
    """Coverage, width and reduction over repetitions."""
    table = pd.DataFrame(runs, columns=Run._fields)
    inputs = table["inputs_limit"] >= table["inputs_truth"]
    outputs = table["outputs_limit"] >= table["outputs_truth"]
    reduction = table["outputs_before"] / table["outputs_truth"]
    return {
        "repetitions": len(table),
        "inputs": float(inputs.mean()),
        "outputs": float(outputs.mean()),
        "both": float((inputs & outputs).mean()),
        "inputs_ratio": float((table["inputs_limit"] / table["inputs_truth"]).median()),
        "outputs_ratio": float((table["outputs_limit"] / table["outputs_truth"]).median()),
        "reduction_median": float(reduction.median()),
        "reduction_least": float(reduction.min()),
        "certified": float((table["outcome"] == "certified").mean()),
    }


def checks(design: Design, runs: list[Run]) -> list[Check]:
    """Judge a held-out simulation: it covers, and it is not the identity that covers."""
    if design.wanted is None:
        return []
    found = summary(runs)
    name = f"held-out, {design.model}, n = {design.rows}, {design.fresh:,} fresh rows"
    return [
        Check(
            name=f"{name}: both limits hold",
            wanted=f"at least {design.wanted:g} of {design.repetitions}",
            found=f"{found['both']:.3f} of {found['repetitions']} (inputs {found['inputs']:.3f}, "
            f"outputs {found['outputs']:.3f})",
            passed=found["both"] >= design.wanted and len(runs) == design.repetitions,
        ),
        Check(
            name=f"{name}: output distance reduced",
            wanted=f"at least {REDUCTION:g} times",
            found=f"{found['reduction_least']:.2f} times at least, "
            f"{found['reduction_median']:.2f} in the middle",
            passed=found["reduction_least"] >= REDUCTION,
        ),
    ]
