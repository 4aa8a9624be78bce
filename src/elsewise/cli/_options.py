"""What commands can be given: one table of arguments and options, from which each takes its own."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from elsewise.cli._inputs import names_in
from elsewise.errors import ElsewiseError

Run = Callable[[Namespace], int]

FILE: dict[str, Any] = {"type": Path}
NUMBER: dict[str, Any] = {"type": float}
FLAG: dict[str, Any] = {"action": "store_true"}
NAMES: dict[str, Any] = {"action": "extend", "type": names_in, "default": []}

ARGUMENTS: dict[str, dict[str, Any]] = {
    "rows": {"help": "The rows: a .csv or .parquet file."},
    "before": {"help": "Rows before: a .csv or .parquet file."},
    "after": {"help": "Rows after: a .csv or .parquet file."},
    "run": FILE | {"help": "A folder that `elsewise explain` wrote."},
    "runs": FILE | {"nargs": "+", "help": "Folders that `elsewise explain` wrote."},
    "study": FILE | {"help": "A .toml file with data, model, question, assertions."},
    "--model": {
        "required": True,
        "help": "A .skops file, a .joblib or .pickle file (loading it runs its code), module:name.",
    },
    "--trust": NAMES | {"help": "A type in a .skops file that may be loaded; repeat or a,b."},
    "--output": {"help": "The class to explain, of several."},
    "--target": {
        "required": True,
        "help": "at_most:0.4, at_least:0.6, constant:1, shift:-0.1, scale:0.5, share:0.6, "
        "sample:scores.csv[,column], group:scores.csv, distribution:beta,2,5.",
    },
    "--bounds": {
        "help": "inputs=0.2,outputs=0.1,moves=0.5,confidence=0.95,trim=0.05,method=auto,"
        "support=0:1,cutoff=0.5,reach=0.95,rows_moved=0.1,cells_per_row=2; all optional."
    },
    "--background": {"help": "Rows that give scales and ranges, such as the training data."},
    "--freeze": NAMES | {"help": "Columns that must not change; repeat or a,b."},
    "--drop": NAMES | {"help": "Columns to leave out, such as the outcome."},
    "--dtype": NAMES | {"help": "How a column is read: agent=str keeps codes text; repeat or a,b."},
    "--schema": {"help": "A file that `elsewise schema` wrote."},
    "--certify": {"default": "auto", "help": "auto, held-out or in-sample."},
    "--population": {"default": "sample", "help": "sample, or all: the rows are everybody."},
    "--frontier": FLAG | {"help": "Add how far for how close to the report; takes longer."},
    "--seconds": NUMBER | {"help": "Time budget of the search."},
    "--seed": {"type": int, "default": 0, "help": "The same seed gives the same result."},
    "--export": {"default": "csv,json", "help": "Formats among csv, json, parquet."},
    "--name": {"help": "What the model's output is called."},
    "--of": {"default": "mean", "help": "mean, share:0.5 or quantile:0.9."},
    "--cluster": {"help": "Column of what rows belong together by."},
    "--confidence": NUMBER | {"default": 0.95, "help": "Level of all intervals together."},
    "--rows": {"type": int, "default": 0, "help": "Show so many single rows."},
    "--k": {"type": int, "default": 4, "help": "Most actions."},
    "--cells": {"type": int, "default": 2, "help": "Most changes an action makes."},
    "--rule": FLAG | {"help": "Say by a rule whom each action is for."},
    "--reach": NUMBER | {"help": "Stop at this share of rows, such as 0.9."},
    "--budget": NUMBER | {"help": "Spend at most this on all rows."},
    "--junit": FILE | {"help": "A JUnit XML file."},
    "--markdown": FILE | {"help": "A summary in Markdown."},
    "--report": FILE | {"help": "The page."},
    "--out": FILE,
    "--quiet -q": FLAG | {"help": "Print nothing but errors."},
    "--json": FLAG | {"help": "Print one JSON object."},
}


class UsageError(ElsewiseError):
    """Arguments that no command takes."""


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print, so that all errors are told in one form."""
        raise UsageError(f"{message}. Fix: see {self.prog} --help.")


PARSER = _Parser(
    prog="elsewise",
    description="What would have to be different about a population for a model to answer "
    "differently.",
    allow_abbrev=False,
)
PARSER.add_argument("--version", action="version", version=f"elsewise {version('elsewise')}")
_COMMANDS = PARSER.add_subparsers(required=True, metavar="command", title="commands")


def command(
    names: str, out: tuple[str | None, str] = (None, ""), **changes: dict[str, Any]
) -> Callable[[Run], Run]:
    """Make a function of the parsed arguments the command of its name.

    ``names`` are those of `ARGUMENTS` that it takes, ``out`` the default of ``--out`` and what is
    said of it; ``changes`` say by name, without dashes, what is different about another one.
    """

    def add(run: Run) -> Run:
        about: dict[str, Any] = {"help": run.__doc__, "description": run.__doc__}
        parser = _COMMANDS.add_parser(run.__name__, allow_abbrev=False, **about)
        for name in [*names.split(), "--quiet -q"]:
            options = ARGUMENTS[name] | changes.get(name.lstrip("-"), {})
            if name == "--out":
                options["default"], options["help"] = out
            if options.get("default"):
                options["help"] += " Default: %(default)s."
            parser.add_argument(*name.split(), **options)
        parser.set_defaults(run_command=run)
        return run

    return add
