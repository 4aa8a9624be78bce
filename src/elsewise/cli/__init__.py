"""The command ``elsewise``: explain, check, policy, difference, report, explore, compare, ...

Exit codes: 0 the result is what was asked for, 3 it is not (not feasible, out of time), 2 something
given cannot be used, 130 interrupted (the best so far is saved); of ``check`` 1 if an assertion
fails. With ``--json`` one JSON object is
written to standard output: the keys of `elsewise.report.summary`, and ``exit_code``,
``interrupted``, ``folder`` and ``files``; or ``error`` and ``exit_code``. The file
``output.schema.json`` beside this one is its JSON schema.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
import traceback
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elsewise import report as reports
from elsewise._difference import difference as difference_of
from elsewise._explain import explain as explain_rows
from elsewise._storage import folder_in_place, read_json, write_text
from elsewise.cli import _demo, _inputs
from elsewise.cli._console import ended_by, give_up, interruptible, say, tell
from elsewise.cli._exports import check_formats, export, write_table
from elsewise.cli._options import PARSER, command
from elsewise.cli._study import Finding, Study, findings, junit, markdown, read_study, within
from elsewise.errors import ElsewiseError, InvalidInput, SavedRunError
from elsewise.policy import Policy
from elsewise.saving import OWN, load
from elsewise.settings import Settings

if TYPE_CHECKING:
    from elsewise.explanation import Explanation

__all__ = ["main"]

CERTIFIED, FAILED, BAD_INPUT, NOT_FEASIBLE, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 3, 130, 141
COMMAND, POLICY = "command.json", "policy.json"


@command("--out --seed --json", out=("elsewise-demo", "Folder for report.html and explore.html."))
def demo(given: Namespace) -> int:
    """Explain a credit model on built-in data and write a report."""
    silent = given.quiet or given.json
    if not silent:
        say(_demo.INTRODUCTION)
    began = time.perf_counter()
    explanation = _demo.more_accepted(given.seed, progress=False if silent else None)
    seconds = time.perf_counter() - began
    report, page = _demo.pages(explanation, given.out, f"elsewise demo --seed {given.seed}")
    words = f"Model and explanation took {seconds:.1f} s.\nReport: {report.resolve()}\n"
    words += f"Page to play with: {page.resolve()}"
    return _end(explanation, _demo.OUTPUT, [report.name, page.name], words, given)


@command(
    "rows --model --target --bounds --output --trust --freeze --drop --dtype --schema --background "
    "--out --export --name --certify --population --frontier --seconds --seed --json",
    name={"default": "model output"},
    out=("run", "Folder for the run, its exports and report.html."),
)
def explain(given: Namespace) -> int:
    """Explain rows and write the run, its exports and a report to a folder."""
    # Options are called like the keys of a study, but for its assertions.
    known: dict[str, Any] = {f.name: getattr(given, f.name, ()) for f in fields(Study)}
    known["bounds"] = _inputs.parse_bounds(given.bounds)
    asked = Study(**known)
    kinds, progress = check_formats(given.export), False if given.quiet else None
    question = _question(asked, Path(), given)
    with folder_in_place(given.out, OWN, "--out") as folder, interruptible() as stopped:
        explanation = explain_rows(**question, progress=progress, stop=stopped)
        wanted = given.frontier and not stopped()
        curve = explanation.frontier(progress=progress) if wanted else None
        explanation.save(folder)
        about = {"command": shlex.join(["elsewise", *sys.argv[1:]]), "output": given.name}
        (folder / COMMAND).write_text(json.dumps(about), encoding="utf-8")
        files, escaped = export(explanation, folder, kinds, given.name)
        reports.write(explanation, folder / "report.html", **about, frontier=curve)
    words = _escaped_notice(escaped)
    if stopped():
        words += "Interrupted: this is the best found so far.\n"
    words += f"Run: {given.out}\nReport: {given.out / 'report.html'}"
    files.append("report.html")
    return _end(explanation, given.name, files, words, given, interrupted=stopped())


def _question(asked: Study, folder: Path, given: Namespace) -> dict[str, Any]:
    """Return the arguments of `elsewise.explain` for a question about files in a folder."""
    target = _inputs.parse_target(asked.target, folder)
    if given.model is None and asked.model is None:
        fix = "name a .skops file there, or any model with --model"
        raise InvalidInput("model", "a model", "none", fix)
    named = asked.schema, asked.background
    schema, other = (None if name is None else folder / name for name in named)
    rows, background = _inputs.read_tables(folder / asked.rows, other, asked.drop, asked.dtype)
    model = given.model or str(folder / str(asked.model))
    as_asked = ("bounds", "certify", "population", "seed")
    return {name: getattr(asked, name) for name in as_asked} | {
        "model": _inputs.load_model(model, asked.output, given.trust),
        "rows": rows,
        "target": target,
        "schema": _inputs.make_schema(rows, background, schema, asked.freeze),
        "background": background,
        "settings": Settings(seconds=asked.seconds),
    }


def _end(
    explanation: Explanation,
    name: str,
    files: Sequence[str],
    words: str,
    given: Namespace,
    *,
    interrupted: bool = False,
) -> int:
    """Print the answer, and return its exit code."""
    code = CERTIFIED if explanation.ok else NOT_FEASIBLE
    if interrupted:
        code = INTERRUPTED
    if given.json:
        record = reports.summary(explanation, name) | {"folder": str(given.out)}
        tell(given, "", code, **record, interrupted=interrupted, files=list(files))
    elif not given.quiet:
        sentence, changes = reports.answer(explanation, name)
        say("\n".join([sentence, *(f"  - {line}" for line in changes), ""]))
        say(f"{explanation.certificate}\n\n{reports.change_table(explanation)}\n")
        for notice in explanation.status.notices:
            say(f"Notice: {notice}.")
        say(words if explanation.ok else f"{explanation.status}.\n{words}")
    return code


@command(
    "before after --model --of --output --trust --cluster --confidence --drop --dtype --schema "
    "--out --seed --json",
    out=("difference.html", "The page; beside it the numbers, as .npz."),
)
def difference(given: Namespace) -> int:
    """Say which attributes a change of scores between two samples goes through."""
    functional = _inputs.parse_functional(given.of)
    tables = _inputs.read_tables(given.before, given.after, given.drop, given.dtype, "after")
    file = None if given.schema is None else Path(given.schema)
    found = difference_of(
        _inputs.load_model(given.model, given.output, given.trust),
        *tables,
        functional=functional,
        schema=None if file is None else _inputs.make_schema(tables[0], None, file, ()),
        clusters=given.cluster,
        confidence=given.confidence,
        seed=given.seed,
        progress=False if given.quiet else None,
    )
    files = [str(found.report(given.out)), str(found.save(given.out.with_suffix(".npz")))]
    return tell(given, f"{found}\n\nReport: {files[0]}", **found.to_dict(), files=files)


@command("run --out --name --rows", out=(None, "The page; by default report.html in the run."))
def report(given: Namespace) -> int:
    """Write the report of a saved run."""
    run = given.run
    place = reports.write(
        load(run),
        given.out or run / "report.html",
        **_about(run, given.name),
        policy=Policy.load(run) if (run / POLICY).is_file() else None,
        rows=given.rows,
    )
    return tell(given, f"Report: {place}")


@command("run --out --name", out=(None, "The page; else explore.html in the run."))
def explore(given: Namespace) -> int:
    """Write a page of a saved run to play with: fewer moves, other features, one group, one row."""
    run, output = given.run, _about(given.run, given.name)["output"]
    place = reports.write_explore(load(run), given.out or run / "explore.html", output=output)
    return tell(given, f"Page to play with: {place}")


@command(
    "run --k --model --output --trust --cells --rule --reach --budget --json",
    model={"required": False, "help": "As in explain; without it the saved policy is printed."},
)
def policy(given: Namespace) -> int:
    """Say what a run comes to in a few actions, and keep it in the run."""
    run, place = given.run, given.run / POLICY
    if given.model is not None:
        explanation = load(run, model=_inputs.load_model(given.model, given.output, given.trust))
        about = {"assign": "rule" if given.rule else "choose", "cells": given.cells}
        found = explanation.policy(given.k, **about, reach=given.reach, budget=given.budget)
        found.save(run, run=False)
    elif place.is_file():
        found = Policy.load(run)
    else:
        raise SavedRunError(f"{run}: expected a saved policy, received none. Fix: pass --model.")
    record = {"file": str(place), "verdict": found.verdict.value, "summary": found.summary}
    lines = [line._asdict() for line in found.lines]
    code = CERTIFIED if found.ok else NOT_FEASIBLE
    return tell(given, str(found), code, **record, lines=lines)


@command("runs --out --name --json", out=("comparison.html", "The page."))
def compare(given: Namespace) -> int:
    """Compare saved runs on one page."""
    runs = _named(given.runs)
    explanations = {label: load(run) for label, run in runs.items()}
    output = {label: _about(run, given.name)["output"] for label, run in runs.items()}
    place = write_text(reports.render_comparison(explanations, output=output), given.out)
    found = {label: reports.summary(e, output[label]) for label, e in explanations.items()}
    words = "".join(
        f"{label}: certificate {summary['certificate']['verdict']}\n  {summary['headline']}\n"
        for label, summary in found.items()
    )
    return tell(given, f"{words}Comparison: {place}", file=str(place), runs=found)


@command(
    "run rows --model --output --trust --drop --dtype --out",
    out=("moved.csv", "A .csv or .parquet file."),
)
def apply(given: Namespace) -> int:
    """Move new rows as the saved run moved its own."""
    explanation = load(given.run, model=_inputs.load_model(given.model, given.output, given.trust))
    # What the run has as text is text here, too: codes that look like numbers.
    known = zip(explanation.encoder.columns, explanation.encoder.tables, strict=True)
    texts = [n for n, t in known if t is not None and all(isinstance(v, str) for v in t.values)]
    table, _ = _inputs.read_tables(given.rows, None, given.drop, given.dtype, texts=texts)
    moved = explanation.apply(table)
    place, escaped = write_table(moved, given.out)
    notices = "".join(f"Notice: {notice}\n" for notice in moved.attrs.get("notices", ()))
    return tell(given, f"{notices}{_escaped_notice(escaped)}{len(table):,} rows written: {place}")


@command(
    "rows --background --freeze --drop --dtype --out", out=("schema.toml", "The file to edit.")
)
def schema(given: Namespace) -> int:
    """Write what the columns are and how they may move, to be edited and given to explain."""
    table, other = _inputs.read_tables(given.rows, given.background, given.drop, given.dtype)
    found = _inputs.make_schema(table, other, None, given.freeze)
    return tell(given, f"{found}\n\nSchema: {write_text(found.to_toml(), given.out)}")


@command(
    "study --model --trust --junit --markdown --report --json",
    model={"required": False, "help": "As in explain, in place of the study's."},
)
def check(given: Namespace) -> int:
    """Ask a stored question: exit code 0 if its assertions hold, 1 if one fails, 2 if broken."""
    study = given.study
    try:
        with within(study):
            asked = read_study(study)
            explanation = explain_rows(**_question(asked, study.parent, given), progress=False)
            found = findings(asked, explanation)
    except Exception as error:  # 1 is kept for assertions that fail
        if given.junit is not None:
            broken = Finding("the study can be asked", False, str(error))
            write_text(junit(study.name, [broken], "error"), given.junit)
        if isinstance(error, ElsewiseError | OSError):
            raise
        traceback.print_exc()
        return BAD_INPUT
    sentence = reports.headline(explanation, asked.name)
    summary = markdown(study.name, sentence, found)
    for place, text in ((given.junit, junit(study.name, found)), (given.markdown, summary)):
        if place is not None:
            write_text(text, place)
    if given.report is not None:
        reports.write(explanation, given.report, output=asked.name)
    code = CERTIFIED if all(one.holds for one in found) else FAILED
    told = [f"{'holds' if one.holds else 'FAILS'}: {one.text} ({one.said})" for one in found]
    assertions = [one._asdict() for one in found]
    words = "\n".join([sentence, *told])
    return tell(given, words, code, assertions=assertions, headline=sentence)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; never shows a traceback for what the user gave."""
    typed = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        with ended_by(give_up):
            given = PARSER.parse_args(typed)
            code = given.run_command(given)
    except BrokenPipeError:
        # Whoever read the output has gone, as "| head" does: nobody is left to be told.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = PIPE_CLOSED
    except (KeyboardInterrupt, ElsewiseError, OSError) as error:
        code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else BAD_INPUT
        message = _in_words(error)
        say(f"elsewise: {message}", err=True)
        if "--json" in typed:
            say(json.dumps({"error": message, "exit_code": code}))
    raise SystemExit(code)


def _in_words(error: BaseException) -> str:
    """What ended a command: the user, something that was refused, or the system."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted; nothing was written"
    if not isinstance(error, OSError) or isinstance(error, ElsewiseError):
        return str(error)
    place = "" if error.filename is None else f" ({error.filename})"
    reason = error.strerror.lower() if error.strerror else str(error)
    return f"the system says: {reason}{place}. Fix: check the path, its permissions and the disk."


def _escaped_notice(count: int) -> str:
    """Return a line about texts that were escaped; nothing where none was."""
    said = f"Notice: {count:,} texts in CSV files that look like formulas begin with '\n"
    return said if count else ""


def _about(run: Path, output: str | None) -> dict[str, Any]:
    """How a run was made and what its output is called; runs saved from Python do not say."""
    try:
        known = read_json(run / COMMAND)
        return {"command": str(known["command"]), "output": output or str(known["output"])}
    except FileNotFoundError:
        return {"command": None, "output": output or "model output"}
    except (SavedRunError, KeyError, TypeError) as error:
        raise SavedRunError(f"{run}: {COMMAND} is damaged. Fix: remove that file.") from error


def _named(runs: Sequence[Path]) -> dict[str, Path]:
    """Runs by the names of their folders, or by their paths where two of these are equal."""
    names = [run.resolve().name for run in runs]
    if len(set(names)) < len(names):
        names = [f"{k + 1}: {run}" for k, run in enumerate(runs)]
    return dict(zip(names, runs, strict=True))
