"""An explanation as its page sees it, what it says in plain words, and as JSON for programs."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Hashable
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from elsewise._arrays import to_numpy
from elsewise.analysis import changes, columns_of, embedded, ks, psi
from elsewise.certificate import move_sentence, reached_sentence, stayed_lines
from elsewise.measure import FAR
from elsewise.request import Kind, Verdict
from elsewise.targets import question_of
from elsewise.text import amount, format_distinct, one_line, percent

if TYPE_CHECKING:
    from elsewise.analysis import Column
    from elsewise.certificate import Certificate, Evidence
    from elsewise.explanation import Explanation


FORMAT = 1
# What a summary takes from `Status` as it is.
STATUS = ["sentence", "asked", "aimed", "before", "reached", "limit", "ok", "binding"]
STATUS += ["reachable", "rows_needed"]
# Features named in the headline, and the least effect of one that is, as a share of the largest.
NAMED, LEAST_NAMED = 3, 0.02
# Letters of a name in a sentence.
NAME_WIDTH = 60


class View:
    """An explanation, what its output is called, and what its tables and pictures share."""

    def __init__(self, explanation: Explanation, output: str = "") -> None:
        self.explanation = explanation
        self.rows = len(explanation.outputs)
        """Number of explained rows."""
        self.probability = bool(explanation.problem.outputs.probability)
        """Whether outputs are probabilities, which are said in per cent."""
        self.name = output
        """What the user calls the model's output; nothing where nobody said."""
        self.output = output or ("predicted probability" if self.probability else "model output")
        """What the model's output is called."""
        self.unit = ", points" if self.probability else ""
        """What a heading adds to the effects of features, which are points for probabilities."""
        column = explanation.main_output
        self.both = explanation.factual_outputs[:, column], explanation.outputs[:, column]
        """The output that was asked about, (n,) each, before and after."""

    @cached_property
    def changes(self) -> pd.DataFrame:
        """What changed, feature by feature, largest effect first."""
        return changes(self.explanation)

    @cached_property
    def columns(self) -> dict[Hashable, Column]:
        """Every feature before and after, by its name."""
        return {column.name: column for column in columns_of(self.explanation)}

    @cached_property
    def moved(self) -> np.ndarray:
        """The rows of which some cell changed, bool (n,)."""
        return self.cells > 0

    @cached_property
    def cells(self) -> np.ndarray:
        """Number of features that changed in each row, (n,)."""
        parts = [column.moved for column in self.columns.values()]
        return np.sum(parts, axis=0) if parts else np.zeros(self.rows, dtype=int)

    @cached_property
    def move(self) -> float:
        """Root mean square move of the rows that change, in standard deviations of a row.

        sqrt(mean |phi(x) - phi(x')|^2), undivided by the dimension; 0 where no row changes.
        """
        before, after = embedded(self.explanation)
        squares = np.sum((after - before) ** 2, axis=1)
        moving = squares > 0
        return float(np.sqrt(np.mean(squares[moving]))) if moving.any() else 0.0

    @cached_property
    def means(self) -> tuple[float, float]:
        """Mean of the output that was asked about, before and after."""
        before, after = self.both
        return float(before.mean()), float(after.mean())

    def level(self, value: float) -> str:
        """Return a model output: a percentage if outputs are probabilities."""
        return percent(value, fine=True) if self.probability else amount(value)

    def effects(self) -> list[str]:
        """Return the effect of each feature of `changes` on the mean output, in one format."""
        return differences(self.changes["effect"].to_numpy(), self.probability)

    def answer(self) -> str:
        """Return what it takes to get where, and the verdict."""
        status, certificate = self.explanation.status, self.explanation.certificate
        rows = f"{int(self.moved.sum()):,} of {self.rows:,} rows are changed"
        if certificate.reached is not None:
            sentence = reached_sentence(certificate.reached, self.name)
            if not self.moved.any():
                return f"{capital(str(status.verdict))}: {sentence}."
            return f"{capital(str(certificate.verdict))}. {capital(sentence)}. {rows}."
        now, then = map(self.level, self.means)
        if not self.moved.any():
            return f"Nothing changes: the mean {self.output} stays at {now} ({status})."
        goes = f"the mean {self.output} goes from {now} to {then}."
        if self.explanation.ok:
            return f"{rows}: {goes}"
        missed = "not reached within the bounds"
        verdict = missed if status.verdict is Verdict.NOT_REACHED else str(status.verdict)
        return f"{capital(verdict)}: {rows}, and {goes}"

    def first_changes(self) -> tuple[str, ...]:
        """Return the features with the largest effect on the output, and how they change."""
        effect = self.changes["effect"].abs().fillna(self.changes["share"])
        told = (self.changes["rows_moved"] > 0) & (effect >= LEAST_NAMED * effect.max())
        named = [self.columns[name] for name in self.changes.index[told][:NAMED]]
        return tuple(f"{one_line(one.name, NAME_WIDTH)}: {one.change_words()}" for one in named)

    def headline(self) -> str:
        """Return the answer as one line of text."""
        said, changes = [self.answer()], self.first_changes()
        if changes:
            said.append(f"Most of all: {'; '.join(changes)}.")
        said += [f"{line}." for line in self.explanation.status.notices if FAR in line]
        return " ".join(said)

    def question(self) -> str:
        """Return what was asked, as the question that the page answers."""
        start = f"What would have to be different about {self.rows:,} rows for"
        reached, problem = self.explanation.certificate.reached, self.explanation.problem
        if reached is None:
            target, outputs = problem.target, problem.outputs
            question = question_of(target, outputs.columns, probability=outputs.probability)
            if question is None or question.wanted is None:
                wanted = target.describe() if hasattr(target, "describe") else target.name
                return f"{start} the model to give {wanted}?"
            asked = None if question.kind == "every" else question.asked
            near = ", or as near to it as the bounds ask"
        else:
            question, asked, near = reached.question, reached.asked, ""
        if question.kind == "mean":
            verb, number = "move by" if question.relative else "be", question.number(question.mean)
            return f"{start} their mean {question.output(self.name)} to {verb} {number}?"
        most = "at most " if question.falling else ""
        share = "all of them" if asked is None else f"{most}{percent(asked, exact=True)} of them"
        return f"{start} {share} to end up {question.condition(self.name)}{near}?"

    def change_lines(self, most: int | None = None) -> list[tuple[str, str, str]]:
        """Return name, effect and change of each feature, largest effect on the output first."""
        return [
            (one_line(name, NAME_WIDTH), effect, self.columns[name].change_words())
            for name, effect in zip(self.changes.index[:most], self.effects(), strict=False)
        ]


def differences(values: Any, probability: bool) -> list[str]:
    """Return differences of outputs as texts with the same decimals; points for probabilities.

    Examples
    --------
    >>> differences([-0.0111, 0.0044, -5e-5, 0.0, float("nan")], probability=True)
    ['-1.11', '+0.44', '-0.01', '0', 'unknown']
    >>> differences([1200.0, -3.0], probability=False)
    ['+1,200', '-3']
    """
    numbers = np.asarray(values, dtype=np.float64) * (100.0 if probability else 1.0)
    largest = float(np.max(np.abs(numbers), where=np.isfinite(numbers), initial=0.0))
    digits = max(0, 2 - int(np.floor(np.log10(largest)))) if largest > 0 else 0
    texts = []
    for number in numbers.tolist():
        text = f"{number:+,.{digits}f}" if np.isfinite(number) else "unknown"
        # What is not nothing is not said to be nothing.
        small = number != 0 and np.isfinite(number) and not text.strip("+-0.,")
        texts.append("0" if number == 0 else f"under {10.0**-digits:g}" if small else text)
    return texts


def capital(text: str) -> str:
    """Return a sentence with its first letter as a capital."""
    return text[:1].upper() + text[1:]


def side_words(name: str, side: Evidence) -> str:
    """Return one side of a certificate, "inputs" or "outputs", as a sentence."""
    what, place = {
        "inputs": ("The rows are", "where they were"),
        "outputs": ("The outputs are", "the target"),
    }[name]
    exact = side.upper_limit is None
    if side.bound is None:
        far = f"{'' if exact else 'at most '}{amount(side.at_most)}"
        return f"{what} {far} away from {place}; no bound was asked for."
    limit, bound = amount(side.at_most), amount(side.bound)
    if limit == bound:
        limit, bound = format_distinct(side.at_most, side.bound)
    most = "" if exact else "at most " if side.met else "up to "
    start = f"{what} {most}{limit} away from {place}"
    if side.met:
        return f"{start}, within the bound of {bound}."
    return f"{start}, more than the bound of {bound}. {capital(side.advice)}."


def bounds_words(certificate: Certificate) -> list[str]:
    """Return both sides as sentences; of a question, only those that somebody bounded."""
    sides, asked = certificate.sides.items(), certificate.reached is not None
    return [side_words(name, s) for name, s in sides if not asked or s.bound is not None]


def certificate_words(certificate: Certificate, output: str = "") -> list[str]:
    """Return what a certificate says as sentences: what is reached, how far rows move, bounds."""
    said, reached, move = [], certificate.reached, certificate.row_move
    if reached is not None:
        lines = reached_sentence(reached, output), *stayed_lines(reached)
        said.append(" ".join(f"{capital(line)}." for line in lines))
    if move is not None:
        said.append(f"{capital(move_sentence(move, certificate.moves_bound))}.")
    return [*said, *bounds_words(certificate)]


def meaning(certificate: Certificate) -> str:
    """Return what a certificate speaks of."""
    rows = f"{certificate.rows:,} rows"
    if certificate.confidence is None:
        return (
            f"The {rows} are taken for the whole population: the numbers are exact, and no "
            "confidence is claimed or needed."
        )
    level_ = percent(certificate.confidence, exact=True)
    if certificate.kind is Kind.IN_SAMPLE:
        return (
            f"The numbers describe the {rows} the change was fitted to. Rows it never saw may be "
            "farther away; nothing is certified of them."
        )
    return (
        f"Counted on {rows} that the search never saw. Each limit holds with {level_} confidence "
        "by itself, for the population they were drawn from."
    )


def interval_words(certificate: Certificate) -> str:
    """Return what the intervals of a certificate's readouts hold for."""
    if certificate.confidence is None:
        return "The rows are the whole population, so that these numbers are exact."
    level_ = percent(certificate.confidence, exact=True)
    each = f"Each interval holds with {level_} confidence by itself"
    return f'{each}, those of "all at once" together, on the same {certificate.rows:,} rows.'


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
    drifts = drift(view).reset_index().to_dict(orient="records")
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
        "drift": [record | {"feature": str(record["feature"])} for record in drifts],
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
