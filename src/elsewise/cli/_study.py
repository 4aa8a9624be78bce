"""A study as a file: a question, and what has to hold of its answer, for ``elsewise check``.

Nothing in the file becomes a call: it names a model that is read without pickle, and assertions
are a name, a comparison and a number.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from elsewise.errors import InvalidInput, from_mapping
from elsewise.explanation import Explanation
from elsewise.report import summary
from elsewise.request import Bounds
from elsewise.text import format_distinct, nearest, visible

ASSERTION = re.compile(
    r"\s*([a-z]+(?:_[a-z]+)*)\s*(<=|>=|==|!=|<|>)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*",
    re.ASCII,
)
COMPARISONS = {"<=": le, ">=": ge, "<": lt, ">": gt, "==": eq, "!=": ne}
AS_ASKED = "the answer is as asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """The whole file: the options of ``elsewise explain``, with paths relative to its folder."""

    rows: str
    target: str
    model: str | None = None
    """A .skops file; other models are named on the command line."""
    output: str | None = None
    background: str | None = None
    drop: tuple[str, ...] = ()
    dtype: tuple[str, ...] = ()
    """How columns are read, such as "agent=str"."""
    schema: str | None = None
    freeze: tuple[str, ...] = ()
    bounds: Bounds = field(default_factory=Bounds)
    certify: str = "auto"
    population: str = "sample"
    seed: int = 0
    seconds: float | None = None
    name: str = "model output"
    assertions: tuple[str, ...] = ()
    """What has to hold; where there are none, that the answer is as asked."""


class Finding(NamedTuple):
    """One assertion, and what became of it."""

    text: str
    holds: bool
    said: str


@contextmanager
def within(path: Path) -> Iterator[None]:
    """Name the file and its key in what is refused inside, in place of an option."""
    try:
        yield
    except InvalidInput as error:
        place = ": ".join(filter(None, (str(path), error.argument.lstrip("-."))))
        raise InvalidInput(place, error.expected, error.received, error.fix) from error


def read_study(path: Path) -> Study:
    """Return the study in a file; refuse unknown keys, wrong types and unreadable assertions."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, TypeError) as error:
        fix = "correct it; docs/questions.md shows one"
        raise InvalidInput("", "a study file (TOML)", error, fix) from error
    study = from_mapping(Study, content, "")
    for place, text in enumerate(study.assertions, start=1):
        _parts(text, place)
    if study.model is not None and Path(study.model).suffix != ".skops":
        expected = "a .skops file, which can be read without running code"
        fix = "name other models on the command line, with --model"
        raise InvalidInput("model", expected, repr(study.model), fix)
    return study


def _parts(text: str, place: int) -> tuple[str, str, float]:
    """Return name, comparison and number of an assertion, or refuse anything else.

    Examples
    --------
    >>> _parts("reached >= 0.6", 1)
    ('reached', '>=', 0.6)
    """
    found = ASSERTION.fullmatch(text)
    # A number such as 1e999 fits the pattern and reads as infinity, which no assertion means.
    number = float(found[3]) if found else math.inf
    if found is None or not math.isfinite(number):
        expected = "a name, a comparison (<, <=, >, >=, ==, !=) and a number"
        fix = 'for example "reached >= 0.6"'
        raise InvalidInput(f"assertions[{place}]", expected, repr(text), fix)
    return found[1], found[2], number


def _measures(explanation: Explanation) -> dict[str, float]:
    """What assertions can speak of, by name; what is unknown for this answer is left out."""
    told = summary(explanation)
    found = {name: told["status"][name] for name in ("asked", "before", "reached", "limit", "ok")}
    for name in ("inputs", "outputs"):
        side = getattr(explanation.certificate, name)
        found |= {name: side.estimate, f"{name}_limit": side.at_most}
    found |= {name: told["output"][name] for name in ("mean_before", "mean_after")}
    found |= {name: told[name] for name in ("rows", "rows_moved")}
    found["share_moved"] = told["rows_moved"] / told["rows"]
    return {name: float(value) for name, value in found.items() if value is not None}


def findings(study: Study, explanation: Explanation) -> list[Finding]:
    """Return what became of each assertion; without any, whether the answer is as asked."""
    if not study.assertions:
        return [Finding(AS_ASKED, explanation.ok, str(explanation.status))]
    known, made = _measures(explanation), []
    for place, text in enumerate(study.assertions, start=1):
        name, comparison, number = _parts(text, place)
        if name not in known:
            expected = f"a number that this answer has: {', '.join(known)}"
            fix = f"did you mean {nearest(name, known)!r}"
            raise InvalidInput(f"assertions[{place}]", expected, repr(name), fix)
        holds = COMPARISONS[comparison](known[name], number)
        made.append(Finding(text, holds, f"{name} is {format_distinct(known[name], number)[0]}"))
    return made


def markdown(title: str, sentence: str, found: Sequence[Finding]) -> str:
    """Return a summary that a pull request can show; what the user named is escaped."""
    lines = [f"# {_plain(title)}", "", _plain(sentence), "", "| assertion | | found |", "|-|-|-|"]
    lines += [
        f"| {_plain(one.text)} | {'holds' if one.holds else 'FAILS'} | {_plain(one.said)} |"
        for one in found
    ]
    return "\n".join([*lines, ""])


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|&!~])", r"\\\1", " ".join(visible(text).split()))


def junit(title: str, found: Sequence[Finding], kind: str = "failure") -> str:
    """Return a JUnit report, a test case per assertion; ``kind`` is what those are that fail."""
    counts = {"failures": 0, "errors": 0} | {f"{kind}s": sum(not one.holds for one in found)}
    about = {"name": visible(title), "tests": str(len(found))}
    suite = ElementTree.Element("testsuite", about | {n: str(k) for n, k in counts.items()})
    for one in found:
        names = {"classname": "elsewise", "name": visible(one.text)}
        case = ElementTree.SubElement(suite, "testcase", names)
        if not one.holds:
            ElementTree.SubElement(case, kind, {"message": visible(one.said)})
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)
