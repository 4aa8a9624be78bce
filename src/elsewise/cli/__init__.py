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
import shlex
import sys
import time
import traceback
from collections.abc import Sequence
from importlib.metadata import version as package_version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer import Argument, Option

from elsewise import report as reports
from elsewise._difference import difference as difference_of
from elsewise._explain import explain as explain_rows
from elsewise._storage import folder_in_place, read_json, write_text
from elsewise.cli import _demo, _inputs
from elsewise.cli._console import Interrupted, ended_by, give_up, interruptible, say, tell
from elsewise.cli._exports import check_formats, export, write_table
from elsewise.cli._study import Study, findings, junit, markdown, read_study, within
from elsewise.errors import ElsewiseError, InvalidInput, SavedRunError
from elsewise.policy import Policy
from elsewise.saving import OWN, load
from elsewise.settings import Settings

if TYPE_CHECKING:
    from elsewise.analysis import Frontier
    from elsewise.explanation import Explanation

__all__ = ["app", "main"]

CERTIFIED, FAILED, BAD_INPUT, NOT_FEASIBLE, INTERRUPTED = 0, 1, 2, 3, 130
COMMAND, POLICY = "command.json", "policy.json"


app = typer.Typer(
    name="elsewise",
    help="What would have to be different about a population for a model to answer differently.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Rows = Annotated[Path, Argument(help="The rows: a .csv or .parquet file.")]
Run = Annotated[Path, Argument(help="A folder that `elsewise explain` wrote.")]
Model = Annotated[
    str,
    Option(
        help="A .skops file, a .joblib or .pickle file (loading it runs its code), module:name."
    ),
]
Trust = Annotated[
    list[str] | None, Option(help="A type in a .skops file that may be loaded; repeat or a,b.")
]
Background = Annotated[
    Path | None,
    Option(help="Rows that give scales and observed ranges, such as the training data."),
]
Freeze = Annotated[list[str] | None, Option(help="Columns that must not change; repeat or a,b.")]
Drop = Annotated[list[str] | None, Option(help="Columns to leave out, such as the outcome.")]
Dtypes = Annotated[
    list[str] | None,
    Option("--dtype", help="How a column is read: agent=str keeps codes text; repeat or a,b."),
]
SchemaFile = Annotated[Path | None, Option(help="A file that `elsewise schema` wrote.")]
Class = Annotated[str | None, Option(help="The class to explain, of several.")]
Name = Annotated[str, Option(help="What the model's output is called.")]
OtherName = Annotated[str | None, Option(help="What the model's output is called.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print nothing but errors.")]
Json = Annotated[bool, Option("--json", help="Print one JSON object.")]
Seed = Annotated[int, Option(help="The same seed gives the same result.", min=0)]
Target = Annotated[
    str,
    Option(
        help="at_most:0.4, at_least:0.6, constant:1, shift:-0.1, scale:0.5, share:0.6, "
        "sample:scores.csv[,column], group:scores.csv, distribution:beta,2,5."
    ),
]
BoundsText = Annotated[
    str | None,
    Option(
        help="inputs=0.2,outputs=0.1,confidence=0.95,trim=0.05,method=auto,"
        "support=0:1,cutoff=0.5,reach=0.95,rows_moved=0.1,cells_per_row=2; all optional."
    ),
]
Formats = Annotated[str, Option("--export", help="Formats among csv, json, xlsx, parquet.")]
PopulationKind = Annotated[
    str, Option(help="sample, or all where the rows are the whole population.")
]
WithFrontier = Annotated[
    bool, Option("--frontier", help="Add how far for how close to the report; takes longer.")
]
RunFolder = Annotated[Path, Option(help="Folder for the run, its exports and report.html.")]


def _print_version(asked: bool) -> None:
    if asked:
        say(f"elsewise {package_version('elsewise')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Options of the command itself."""


@app.command()
def demo(
    out: Annotated[Path, Option(help="Folder for report.html and explore.html.")] = Path(
        "elsewise-demo"
    ),
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Explain a credit model on built-in data and write a report."""
    if not quiet and not as_json:
        say(_demo.INTRODUCTION)
    began = time.perf_counter()
    explanation = _demo.more_accepted(seed, progress=False if quiet or as_json else None)
    seconds = time.perf_counter() - began
    pages = _demo.pages(explanation, out, f"elsewise demo --seed {seed}")
    words = [f"Model and explanation took {seconds:.1f} s.", f"Report: {pages[0].resolve()}"]
    words.append(f"Page to play with: {pages[1].resolve()}")
    files = [page.name for page in pages]
    _end(explanation, _demo.OUTPUT, out, files, "\n".join(words), quiet, as_json)


@app.command()
def explain(
    rows: Rows,
    model: Model,
    target: Target,
    bounds: BoundsText = None,
    output: Class = None,
    trust: Trust = None,
    freeze: Freeze = None,
    drop: Drop = None,
    dtype: Dtypes = None,
    schema: SchemaFile = None,
    background: Background = None,
    out: RunFolder = Path("run"),
    formats: Formats = "csv,json",
    name: Name = "model output",
    certify: Annotated[str, Option(help="auto, held-out or in-sample.")] = "auto",
    population: PopulationKind = "sample",
    frontier: WithFrontier = False,
    seconds: Annotated[float | None, Option(help="Time budget of the search.")] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Explain rows and write the run, its exports and a report to a folder."""
    wanted, given, kinds = (
        _inputs.parse_target(target),
        _inputs.parse_bounds(bounds),
        check_formats(formats),
    )
    settings = Settings(seconds=seconds)
    table, other = _tables(rows, background, drop, dtype)
    features = _inputs.make_schema(table, other, schema, _inputs.names_in(freeze))
    loaded = _loaded(model, output, trust)
    with folder_in_place(out, OWN, "--out") as folder, interruptible() as stopped:
        explanation = explain_rows(
            loaded,
            table,
            target=wanted,
            schema=features,
            background=other,
            bounds=given,
            certify=certify,
            population=population,
            seed=seed,
            settings=settings,
            progress=False if quiet else None,
            stop=stopped,
        )
        curve = None
        if frontier and not stopped():
            curve = explanation.frontier(progress=False if quiet else None)
        files, escaped = _write_run(explanation, folder, kinds, name, curve)
    words = f"Run: {out}\nReport: {out / 'report.html'}"
    if stopped():
        words = f"Interrupted: this is the best found so far.\n{words}"
    words = f"{_escaped_notice(escaped)}{words}"
    _end(explanation, name, out, files, words, quiet, as_json, interrupted=stopped())


def _end(
    explanation: Explanation,
    name: str,
    folder: Path,
    files: Sequence[str],
    words: str,
    quiet: bool,
    as_json: bool,
    *,
    interrupted: bool = False,
) -> NoReturn:
    """Print the answer, and end with its exit code."""
    code = INTERRUPTED if interrupted else _code(explanation)
    if as_json:
        record = reports.summary(explanation, name)
        record |= {"exit_code": code, "interrupted": interrupted}
        record |= {"folder": str(folder), "files": list(files)}
        tell(record, "", quiet, as_json)
    elif not quiet:
        sentence, changes = reports.answer(explanation, name)
        say("\n".join([sentence, *(f"  - {line}" for line in changes), ""]))
        say(f"{explanation.certificate}\n\n{reports.change_table(explanation)}\n")
        for notice in explanation.status.notices:
            say(f"Notice: {notice}.")
        say(words if explanation.ok else f"{explanation.status}.\n{words}")
    raise typer.Exit(code)


def _write_run(
    explanation: Explanation, folder: Path, kinds: Sequence[str], name: str, curve: Frontier | None
) -> tuple[list[str], int]:
    """Fill the folder of a run; returns its exports, and what was escaped in them."""
    explanation.save(folder)
    command = shlex.join(["elsewise", *sys.argv[1:]])
    about = json.dumps({"command": command, "output": name})
    (folder / COMMAND).write_text(about, encoding="utf-8")
    files, escaped = export(explanation, folder, kinds, name)
    page = folder / "report.html"
    reports.write(explanation, page, output=name, command=command, frontier=curve)
    return [*files, "report.html"], escaped


@app.command()
def difference(
    before: Rows,
    after: Rows,
    model: Model,
    of: Annotated[str, Option(help="mean, share:0.5 or quantile:0.9.")] = "mean",
    output: Class = None,
    trust: Trust = None,
    cluster: Annotated[str | None, Option(help="Column of what rows belong together by.")] = None,
    confidence: Annotated[float, Option(help="Level of all intervals together.")] = 0.95,
    drop: Drop = None,
    dtype: Dtypes = None,
    schema: SchemaFile = None,
    out: Annotated[Path, Option(help="The page; beside it the numbers, as .npz.")] = Path(
        "difference.html"
    ),
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Say which attributes a change of scores between two samples goes through."""
    wanted = _inputs.parse_functional(of)
    tables = _tables(before, after, drop, dtype, "after")
    found = difference_of(
        _loaded(model, output, trust),
        *tables,
        functional=wanted,
        schema=None if schema is None else _inputs.make_schema(tables[0], None, schema, ()),
        clusters=cluster,
        confidence=confidence,
        seed=seed,
        progress=False if quiet else None,
    )
    place, numbers = found.report(out), found.save(out.with_suffix(".npz"))
    record = found.to_dict() | {"exit_code": 0, "files": [str(place), str(numbers)]}
    tell(record, f"{found}\n\nReport: {place}", quiet, as_json)


@app.command()
def report(
    run: Run,
    out: Annotated[Path | None, Option(help="The page; by default report.html in the run.")] = None,
    name: OtherName = None,
    rows: Annotated[int, Option(help="Show so many single rows.", min=0)] = 0,
    quiet: Quiet = False,
) -> None:
    """Write the report of a saved run."""
    explanation, about = load(run), _about(run)
    place = reports.write(
        explanation,
        out or run / "report.html",
        output=name or about["output"],
        command=about["command"],
        policy=Policy.load(run) if (run / POLICY).is_file() else None,
        rows=rows,
    )
    tell({}, f"Report: {place}", quiet, as_json=False)


@app.command()
def explore(
    run: Run,
    out: Annotated[Path | None, Option(help="The page; else explore.html in the run.")] = None,
    name: OtherName = None,
    quiet: Quiet = False,
) -> None:
    """Write a page of a saved run to play with: fewer moves, other features, one group, one row."""
    output = name or _about(run)["output"]
    place = reports.write_explore(load(run), out or run / "explore.html", output=output)
    tell({}, f"Page to play with: {place}", quiet, as_json=False)


@app.command()
def policy(
    run: Run,
    k: Annotated[int, Option("--k", help="Most actions.", min=1)] = 4,
    model: Annotated[
        str | None, Option(help="As in explain; without it the run's saved policy is printed.")
    ] = None,
    output: Class = None,
    trust: Trust = None,
    cells: Annotated[int, Option(help="Most changes an action makes.", min=1)] = 2,
    rule: Annotated[bool, Option("--rule", help="Say by a rule whom each action is for.")] = False,
    budget: Annotated[float | None, Option(help="Spend at most this on all rows.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Say what a run comes to in a few actions, and keep it in the run."""
    place = run / POLICY
    if model is not None:
        explanation = load(run, model=_loaded(model, output, trust))
        found = explanation.policy(
            k, cells=cells, budget=budget, assign="rule" if rule else "choose"
        )
        found.save(run, run=False)
    elif place.is_file():
        found = Policy.load(run)
    else:
        raise SavedRunError(f"{run}: expected a saved policy, received none. Fix: pass --model.")
    code, lines = _code(found), [line._asdict() for line in found.lines]
    record = {"exit_code": code, "file": str(place), "verdict": found.verdict.value}
    tell(record | {"lines": lines, "summary": found.summary}, str(found), quiet, as_json)
    raise typer.Exit(code)


@app.command()
def compare(
    runs: Annotated[list[Path], Argument(help="Folders that `elsewise explain` wrote.")],
    out: Annotated[Path, Option(help="The page.")] = Path("comparison.html"),
    name: OtherName = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Compare saved runs on one page."""
    names = _distinct(runs)
    explanations = {label: load(run) for label, run in zip(names, runs, strict=True)}
    output = {label: name or _about(run)["output"] for label, run in zip(names, runs, strict=True)}
    place = write_text(reports.render_comparison(explanations, output=output), out)
    found = {label: reports.summary(e, output[label]) for label, e in explanations.items()}
    words = "".join(
        f"{label}: certificate {summary['certificate']['verdict']}\n  {summary['headline']}\n"
        for label, summary in found.items()
    )
    record = {"exit_code": 0, "file": str(place), "runs": found}
    tell(record, f"{words}Comparison: {place}", quiet, as_json)


@app.command()
def apply(
    run: Run,
    rows: Rows,
    model: Model,
    output: Class = None,
    trust: Trust = None,
    drop: Drop = None,
    dtype: Dtypes = None,
    out: Annotated[Path, Option(help="A .csv, .parquet or .xlsx file.")] = Path("moved.csv"),
    quiet: Quiet = False,
) -> None:
    """Move new rows as the saved run moved its own."""
    explanation = load(run, model=_loaded(model, output, trust))
    # What the run has as text is text here, too: codes that look like numbers.
    known = zip(explanation.encoder.columns, explanation.encoder.tables, strict=True)
    texts = [n for n, t in known if t is not None and all(isinstance(v, str) for v in t.values)]
    table, _ = _tables(rows, None, drop, dtype, texts=texts)
    moved = explanation.apply(table)
    place, escaped = write_table(moved, out)
    notices = "".join(f"Notice: {notice}\n" for notice in moved.attrs.get("notices", ()))
    words = f"{notices}{_escaped_notice(escaped)}{len(table):,} rows written: {place}"
    tell({}, words, quiet, as_json=False)


@app.command()
def schema(
    rows: Rows,
    background: Background = None,
    freeze: Freeze = None,
    drop: Drop = None,
    dtype: Dtypes = None,
    out: Annotated[Path, Option(help="The file to edit.")] = Path("schema.toml"),
    quiet: Quiet = False,
) -> None:
    """Write what the columns are and how they may move, to be edited and given to explain."""
    table, other = _tables(rows, background, drop, dtype)
    found = _inputs.make_schema(table, other, None, _inputs.names_in(freeze))
    place = write_text(found.to_toml(), out)
    tell({}, f"{found}\n\nSchema: {place}", quiet, as_json=False)


@app.command()
def check(
    study: Annotated[Path, Argument(help="A .toml file with data, model, question, assertions.")],
    model: Annotated[str | None, Option(help="As in explain, in place of the study's.")] = None,
    trust: Trust = None,
    junit_file: Annotated[Path | None, Option("--junit", help="A JUnit XML file.")] = None,
    markdown_file: Annotated[
        Path | None, Option("--markdown", help="A summary in Markdown.")
    ] = None,
    report_file: Annotated[Path | None, Option("--report", help="The page.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Ask a stored question: exit code 0 if its assertions hold, 1 if one fails, 2 if broken."""
    try:
        with within(study):
            asked = read_study(study)
            explanation = _answered(asked, study.parent, model, trust)
            found = findings(asked, explanation)
    except Exception as error:  # 1 is kept for assertions that fail
        if junit_file is not None:
            write_text(junit(study.name, error), junit_file)
        if isinstance(error, ElsewiseError | OSError):
            raise
        traceback.print_exc()
        raise typer.Exit(BAD_INPUT) from error
    sentence = reports.headline(explanation, asked.name)
    texts = (junit(study.name, found), markdown(study.name, sentence, found))
    for place, text in zip((junit_file, markdown_file), texts, strict=True):
        if place is not None:
            write_text(text, place)
    if report_file is not None:
        reports.write(explanation, report_file, output=asked.name)
    code = CERTIFIED if all(one.holds for one in found) else FAILED
    record = {"exit_code": code, "assertions": [one._asdict() for one in found]}
    lines = [f"{'holds' if one.holds else 'FAILS'}: {one.text} ({one.said})" for one in found]
    tell(record | {"headline": sentence}, "\n".join([sentence, *lines]), quiet, as_json)
    raise typer.Exit(code)


def _answered(
    study: Study, folder: Path, model: str | None, trust: Sequence[str] | None
) -> Explanation:
    """The answer to a study's question, by its own model or by the one that is named instead."""
    if model is None and study.model is None:
        fix = "name a .skops file there, or any model with --model"
        raise InvalidInput("model", expected="a model", received="none", fix=fix)
    named = study.schema, study.background
    schema, other = (None if name is None else folder / name for name in named)
    rows, background = _tables(folder / study.rows, other, study.drop, study.dtype)
    loaded = _loaded(model or str(folder / str(study.model)), study.output, trust)
    return explain_rows(
        loaded,
        rows,
        target=_inputs.parse_target(study.target, folder),
        schema=_inputs.make_schema(rows, background, schema, study.freeze),
        background=background,
        bounds=study.bounds,
        certify=study.certify,
        population=study.population,
        seed=study.seed,
        settings=Settings(seconds=study.seconds),
        progress=False,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; never shows a traceback for what the user gave."""
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        with ended_by(give_up):
            # Not standalone: errors come here, so that all are told in one form and with our exit
            # codes.
            code = app(given, prog_name="elsewise", standalone_mode=False) or 0
    except (KeyboardInterrupt, typer.Abort, Interrupted) as error:
        said = str(error) if isinstance(error, Interrupted) else "interrupted; nothing was written"
        code = _fail(said, INTERRUPTED, given)
    except (ElsewiseError, OSError) as error:
        said = str(error) if isinstance(error, ElsewiseError) else _of_the_system(error)
        code = _fail(said, BAD_INPUT, given)
    except Exception as error:
        # Errors in options and arguments, of typer or of the click it is built on.
        if not hasattr(error, "format_message"):
            raise
        code = _fail(error.format_message(), BAD_INPUT, given)
    raise SystemExit(code)


def _of_the_system(error: OSError) -> str:
    """What the system refused, in words."""
    place = "" if error.filename is None else f" ({error.filename})"
    reason = error.strerror.lower() if error.strerror else str(error)
    return f"the system says: {reason}{place}. Fix: check the path, its permissions and the disk."


def _fail(message: str, code: int, given: Sequence[str]) -> int:
    say(f"elsewise: {message}", err=True)
    tell({"error": message, "exit_code": code}, "", quiet=True, as_json="--json" in given)
    return code


def _loaded(model: str, output: str | None, trust: Sequence[str] | None) -> Any:
    if _inputs.is_pickle(model):  # said with --quiet, too: it is about safety, not about progress
        trusted = "runs the code stored in it; load only files you trust"
        say(f"elsewise: loading {model} {trusted}", err=True)
    return _inputs.load_model(model, output, _inputs.names_in(trust))


def _escaped_notice(count: int) -> str:
    """Return a line about texts that were escaped; nothing where none was."""
    said = f"Notice: {count:,} texts in CSV files that look like formulas begin with '\n"
    return said if count else ""


def _tables(
    rows: Path,
    background: Path | None,
    drop: Sequence[str] | None,
    dtype: Sequence[str] | None = None,
    second: str = "--background",
    texts: Sequence[str] = (),
) -> tuple[Any, Any]:
    """Read rows and background without the dropped columns; ``texts`` are read as text."""
    named, dropped = _inputs.parse_dtypes(dtype), _inputs.names_in(drop)
    dtypes = dict.fromkeys(texts, "str") | named
    found = [_inputs.read_table(rows, "rows", dtypes)]
    found += [] if background is None else [_inputs.read_table(background, second, dtypes)]
    for option, name in [*(("--drop", n) for n in dropped), *(("--dtype", n) for n in named)]:
        if not any(name in part.columns for part in found):
            expected = f"columns of the rows: {', '.join(map(str, found[0].columns))}"
            fix = "check the spelling, and repeat the option for names with commas"
            raise InvalidInput(option, expected=expected, received=name, fix=fix)
    kept, *other = (part.drop(columns=dropped, errors="ignore") for part in found)
    return kept, other[0] if other else None


def _about(run: Path) -> dict[str, Any]:
    """How a run was made; runs saved from Python do not say."""
    try:
        known = read_json(run / COMMAND)
        return {"command": str(known["command"]), "output": str(known["output"])}
    except FileNotFoundError:
        return {"command": None, "output": "model output"}
    except (SavedRunError, KeyError, TypeError) as error:
        raise SavedRunError(f"{run}: {COMMAND} is damaged. Fix: remove that file.") from error


def _distinct(runs: Sequence[Path]) -> list[str]:
    """Names of the runs: the folders' own, or their paths where these are equal."""
    short = [run.resolve().name for run in runs]
    if len(set(short)) == len(short):
        return short
    return [f"{k + 1}: {run}" for k, run in enumerate(runs)]


def _code(found: Explanation | Policy) -> int:
    return CERTIFIED if found.ok else NOT_FEASIBLE
