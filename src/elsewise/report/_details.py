"""The parts of a report that a reader opens: measures, correlations, the search, the origin."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from elsewise.certificate import interval_text, probability_text
from elsewise.plots import charts
from elsewise.report._parts import Section, Table, card, cell_text, table
from elsewise.report._summary import drift, fingerprints
from elsewise.report._words import interval_words
from elsewise.text import amount, percent

if TYPE_CHECKING:
    from elsewise.certificate import Certificate
    from elsewise.explanation import Explanation
    from elsewise.report._view import View

PACKAGES = ("elsewise", "numpy", "scipy", "pandas", "scikit-learn")
# Pairs of features whose correlations are told.
MOST_PAIRS = 8
PSI_READING = "PSI is often read so: under 0.1 stable, up to 0.25 some shift, above a large one."


def certificate_tables(certificate: Certificate) -> tuple[Table, ...]:
    """Return the certificate in numbers: both distances, and what people decide on."""
    sides = []
    for name, side in (("inputs", certificate.inputs), ("outputs", certificate.outputs)):
        level = "–" if side.probability is None else probability_text(side.probability)
        known = side.estimate, side.untrimmed, side.upper_limit, side.bound
        shown = ("–" if value is None else f"{value:.4g}" for value in known)
        sides.append((name, *shown, level, side.method, str(side.directions)))
    numbers = "distance", "untrimmed", "upper limit", "bound", "P", "method", "directions"
    found = [table("Distances", ("side", *numbers), sides)]
    readouts = [
        (
            readout.name,
            *(
                interval_text(part, readout.in_percent)
                for part in (readout.before, readout.after, readout.together or readout.after)
            ),
            readout.after.method,
        )
        for readout in certificate.readouts
    ]
    if readouts:
        names = ("outputs of the certified rows", "before", "after", "after, all at once", "method")
        found.append(table(interval_words(certificate), names, readouts))
    return tuple(found)


def folded_sections(view: View, command: str | None) -> list[Section]:
    """Return the parts that a reader opens, in order."""
    made = [_measures(view), _joint(view), _search(view), _origin(view.explanation, command)]
    return [section for section in made if section is not None]


def _measures(view: View) -> Section:
    """How far each feature moves, by the paper's distance and by usual measures of drift."""
    measures = drift(view.explanation, view.changes)
    # The output, which comes first, is no part of the distance of the inputs.
    distances = ["–", *map(amount, view.changes["distance"])]
    shares = ["–", *map(percent, view.changes["share"])]
    drifts = (map(amount, measures["psi"]), (cell_text(ks, "–") for ks in measures["ks"]))
    rows = zip(map(str, measures.index), distances, shares, *drifts, strict=True)
    columns = ("feature", "distance (SD)", "share of the distance", "PSI", "KS")
    text = f"{PSI_READING} The KS of unordered categories is the total variation."
    return Section(
        anchor="drift",
        title="How large the shift is, by usual measures",
        text=(text,),
        tables=(table("Distances and drift, feature by feature", columns, rows),),
        folded=True,
    )


def _joint(view: View) -> Section | None:
    """The pairs of numbers whose correlation changes most; nothing with fewer than two numbers."""
    numbers = [column for column in view.columns.values() if column.numeric]
    before, after = (
        _correlations(np.array([getattr(column, side) for column in numbers]).T)
        for side in ("before", "after")
    )
    i, k = np.triu_indices(len(numbers), k=1)
    change = np.abs(after - before)[i, k] if numbers else np.empty(0)
    known = np.flatnonzero(~np.isnan(change))  # numbers that do not vary have no correlation
    largest = known[np.argsort(-change[known], kind="stable")][:MOST_PAIRS]
    if not largest.size:
        return None
    rows = [
        (*(str(numbers[j].name) for j in (a, b)), f"{before[a, b]:.2f}", f"{after[a, b]:.2f}")
        for a, b in zip(i[largest], k[largest], strict=True)
    ]
    columns = ("feature", "and", "before", "after")
    return Section(
        anchor="joint",
        title="Does the population hang together?",
        text=("The distance compares joint distributions, so relations between features count.",),
        tables=(table("Correlations that change most", columns, rows),),
        folded=True,
    )


def _correlations(codes: np.ndarray) -> np.ndarray:
    """Correlations of the columns, in which a missing cell counts as the mean."""
    numbers = pd.DataFrame(codes)
    return numbers.fillna(numbers.mean()).corr().to_numpy()


def _search(view: View) -> Section | None:
    """The iterations of the search; None for a question, whose rows are searched one by one."""
    explanation = view.explanation
    if not explanation.iterations:
        return None
    count = len(explanation.iterations) - 1
    distances, eta = charts.convergence(explanation), charts.weight(explanation)
    return Section(
        anchor="search",
        title="How it was found",
        text=(f"{count} iterations, and then: {explanation.status}.",),
        cards=(card(distances), card(eta)),
        folded=True,
    )


def _origin(explanation: Explanation, command: str | None) -> Section:
    problem, settings = explanation.problem, explanation.settings
    hashes = fingerprints(explanation)
    bounds = problem.bounds
    pairs: Sequence[tuple[str, object]] = (
        ("model", problem.outputs.description),
        ("target", problem.target.name),
        ("input bound", "as small as possible" if bounds.inputs is None else bounds.inputs),
        ("output bound", "as small as possible" if bounds.outputs is None else bounds.outputs),
        ("confidence", percent(bounds.confidence, exact=True)),
        ("trim", percent(bounds.trim, exact=True)),
        ("kind of limits", bounds.method),
        ("rows", f"{len(explanation.outputs):,}"),
        ("free features", sum(feature.free for feature in problem.schema.features)),
        ("seed", problem.seed),
        ("settings", settings),
        ("data (SHA-256 of the rows)", hashes["data"]),
        ("model (SHA-256 of its outputs on them)", hashes["model"]),
        ("made with", ", ".join(_versions())),
    )
    rows = [(name, str(value)) for name, value in pairs]
    return Section(
        anchor="origin",
        title="Where this comes from",
        tables=(table("Settings and origin", ("what", "value"), rows),),
        code=command or _call(explanation),
        folded=True,
    )


def _call(explanation: Explanation) -> str:
    problem = explanation.problem
    return (
        f"ew.explain(model, rows, target=ew.targets.{problem.target.name}, "
        f"bounds=ew.{problem.bounds}, seed={problem.seed})"
    )


def _versions() -> list[str]:
    found = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return found
