"""What the user names on the command line: tables, models, targets, limits and schemas."""

from __future__ import annotations

import importlib
import pickle
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import pandas as pd

from elsewise import models, targets
from elsewise.errors import InvalidInput, MissingExtra
from elsewise.features import Schema
from elsewise.request import Bounds

PICKLES = (".joblib", ".pkl", ".pickle")
TARGETS = (
    "share, quantile, mean, label, at_least, at_most, constant, shift, scale, sample, group or "
    "distribution"
)
# Targets that take one value for each output column.
PER_COLUMN = ("at_least", "at_most", "constant", "shift")
MODELS = "a .skops, .joblib or .pickle file, or module:name"
TABLES = "a readable .csv or .parquet file"
DTYPES = ("str", "int", "float", "bool", "category")


def _refused(
    option: str, expected: str, given: object, fix: str, error: Exception | None = None
) -> InvalidInput:
    """Build the error for what an option cannot take, with what a library said about it."""
    reason = "" if error is None else f" ({type(error).__name__}: {error})"
    return InvalidInput(option, expected=expected, received=f"{given}{reason}", fix=fix)


def read_table(
    path: Path, argument: str = "rows", dtypes: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Read a .csv or .parquet file; ``dtypes`` says how columns are read that it has."""
    known = dict(dtypes or {})
    if not path.is_file():
        given = f"{path}, which is {'a folder' if path.is_dir() else 'not there'}"
        raise _refused(argument, "a .csv or .parquet file", given, "check the path")
    try:
        if path.suffix == ".parquet":
            table = pd.read_parquet(path)
            return table.astype({name: known[name] for name in known if name in table.columns})
        return pd.read_csv(path, dtype=cast(Any, known))
    except ImportError as error:
        raise MissingExtra("pyarrow", "parquet") from error
    # The file may be anybody's: there is no telling what its readers raise.
    except Exception as error:
        fix = f"open the file and check its first lines{' and --dtype' if known else ''}"
        raise _refused(argument, TABLES, path, fix, error) from error


def parse_functional(text: str) -> str | tuple[str, float]:
    """Return what ``mean``, ``share:0.5`` or ``quantile:0.9`` asks about.

    Examples
    --------
    >>> parse_functional("mean"), parse_functional("share:0.5")
    ('mean', ('share', 0.5))
    """
    kind, colon, number = text.partition(":")
    level = _value(number)
    if colon and isinstance(level, str):
        fix = "write the cut-off or the level after the colon"
        raise _refused("--of", "mean, share:0.5 or quantile:0.9", text, fix)
    return (kind, float(level)) if colon else kind


def load_model(text: str, output: str | None = None, trust: Sequence[str] = ()) -> Any:
    """Load the model the user names: a .skops, .joblib or .pickle file, or ``module:name``.

    ``trust`` names the types of a .skops file that may be loaded beside those of scikit-learn.
    """
    ending = Path(text).suffix
    if ending not in (*PICKLES, ".skops"):
        model = _from_module(text)
    elif not Path(text).is_file():
        raise _refused("--model", MODELS, f"{text}, which is not there", "check the path")
    else:
        model = _from_skops(Path(text), trust) if ending == ".skops" else _from_file(Path(text))
    if output is None:
        return model
    classes = getattr(model, "classes_", None)
    labels = {str(label): label for label in ([] if classes is None else classes.tolist())}
    if output not in labels:
        expected = f"one of the model's classes {', '.join(labels) or '(it has none)'}"
        raise _refused("--output", expected, output, "leave --output out, or name a class")
    return models.estimator(model, output=labels[output])


def is_pickle(text: str) -> bool:
    """Whether loading the named model runs code stored in a file."""
    return Path(text).suffix in PICKLES


def _from_skops(path: Path, trust: Sequence[str]) -> Any:
    """Load a model of types that are known to be harmless, or that the user named."""
    try:
        from skops import io
    except ImportError as error:
        raise MissingExtra("skops", "skops") from error
    try:
        # Listed before anything is loaded, so that what is not trusted is not built.
        unknown = sorted({*io.get_untrusted_types(file=path)} - {*trust})
        if not unknown:
            return io.load(path, trusted=list(trust))
    # The file may be anybody's: there is no telling what reading it raises.
    except Exception as error:
        expected, fix = "a file that skops.io.dump wrote", "save the model again"
        raise _refused("--model", expected, path, fix, error) from error
    expected = "a .skops file of types that skops knows, or that --trust names"
    fix = f"if you trust them: {' '.join(f'--trust {name}' for name in unknown)}"
    raise _refused("--model", expected, f"{path} with {', '.join(unknown)}", fix)


def _from_file(path: Path) -> Any:
    try:
        if path.suffix == ".joblib":
            import joblib

            return joblib.load(path)
        with path.open("rb") as file:
            return pickle.load(file)
    # A pickle runs its own code: it may fail in any way at all.
    except Exception as error:
        expected = "a model saved with the installed versions of its packages"
        fix = "save the model again, or name it as module:name"
        raise _refused("--model", expected, path, fix, error) from error


def _from_module(text: str) -> Any:
    module, _, name = text.partition(":")
    if not name:
        fix = "for example scoring:predict, for the function predict in scoring.py"
        raise _refused("--model", MODELS, text, fix)
    # A command that was installed does not look in the current folder, unlike `python -m`.
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return getattr(importlib.import_module(module), name)
    # The user's module runs its own code: it may fail in any way at all.
    except Exception as error:
        fix = "check the names, and run the command in the module's folder"
        raise _refused("--model", "an importable module:name", text, fix, error) from error


def parse_target(text: str, folder: Path = Path()) -> Any:
    """Return the target that a text such as ``at_most:0.4`` or ``share:0.6,above=10`` asks for.

    Files of scores are looked for in ``folder``.

    Examples
    --------
    >>> parse_target("at_most:0.4").name, parse_target("distribution:beta,2,5").name
    ('at_most(0.4)', 'distribution(beta(2, 5))')
    >>> parse_target("share:at_least=0.6,of=rich").name
    "share(at_least=0.6, of='rich')"
    """
    found = re.fullmatch(r"\s*(\w+)\s*[:(](.*?)\)?\s*", text)
    kind, given = (found[1], found[2]) if found else (text, "")
    if kind not in TARGETS.replace(",", "").split():
        raise _refused("--target", TARGETS, text, "for example --target at_most:0.4")
    make: Callable[..., Any] = getattr(targets, kind)
    if kind in ("sample", "group"):
        return make(_scores(given, folder))
    if kind == "distribution":
        family, _, given = given.partition(",")
        make = targets.family_of(family.strip(), "--target")
    parts = [part.partition("=") for part in given.split(",")]
    plain: list[Any] = [_value(name) for name, equals, _ in parts if name and not equals]
    named = {name.strip(): _value(value) for name, equals, value in parts if equals}
    if kind != "label" and any(isinstance(value, str) for value in plain):
        fix = "for example --target at_most:0.4"
        raise _refused("--target", "numbers after the colon", text, fix)
    try:
        made = make(*([plain] if kind in PER_COLUMN and len(plain) > 1 else plain), **named)
    except TypeError as error:
        what = f"scipy.stats.{family}" if kind == "distribution" else f"targets.{kind}"
        fix = "for example --target share:0.6,above=3500"
        raise _refused("--target", f"the parts of {what}", text, fix, error) from error
    return targets.distribution(made) if kind == "distribution" else made


def _value(text: str) -> float | int | str:
    """Return a whole number, a number, or else the text: class labels can be any of them."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip()


def _scores(given: str, folder: Path) -> Any:
    path, _, column = given.partition(",")
    table = read_table(folder / path, "--target")
    if column and column not in table.columns:
        expected = f"a column of {path}: {', '.join(map(str, table.columns))}"
        raise _refused("--target", expected, column, "name the column that holds the outputs")
    return (table[[column]] if column else table.select_dtypes("number")).to_numpy()


def parse_bounds(text: str | None) -> Bounds:
    """Return the limits that a text such as ``inputs=0.2,outputs=0.1`` gives.

    Examples
    --------
    >>> parse_bounds("outputs=0.1,confidence=0.9").confidence
    0.9
    """
    known = [field.name for field in fields(Bounds)]
    values: dict[str, Any] = {}
    for part in filter(None, (text or "").split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in known or not equals:
            expected = f"name=value, with names among {', '.join(known)}"
            fix = "for example --bounds inputs=0.2,outputs=0.1"
            raise _refused("--bounds", expected, part, fix)
        ends = [_value(end) for end in value.split(":")]
        values[name] = ends[0] if len(ends) == 1 else ends
    return Bounds(**values)


def make_schema(
    rows: pd.DataFrame, background: pd.DataFrame | None, path: Path | None, freeze: Sequence[str]
) -> Schema:
    """Return the schema in the file, or the inferred one, with the named columns frozen."""
    if path is None:
        schema = Schema.infer(rows, background)
    else:
        try:
            if not path.is_file():  # a pipe or a device, named in somebody's study, never ends
                raise FileNotFoundError("no file")
            schema = Schema.from_toml(path.read_text(encoding="utf-8"), rows, background)
        except (OSError, UnicodeDecodeError, InvalidInput) as error:
            expected = "a file that `elsewise schema` wrote"
            fix = "run elsewise schema rows.csv --out schema.toml"
            raise _refused("--schema", expected, path, fix, error) from error
    names = {str(name): name for name in schema.names}
    return schema.freeze(*(names.get(name, name) for name in freeze))


def parse_dtypes(given: Sequence[str]) -> dict[str, str]:
    """Return how columns are to be read, by name; text that looks like numbers stays text.

    Examples
    --------
    >>> parse_dtypes(["agent=str", "zip code=str"])
    {'agent': 'str', 'zip code': 'str'}
    """
    found = {}
    for part in given:
        name, _, dtype = (piece.strip() for piece in part.rpartition("="))
        if not name or dtype not in DTYPES:
            expected = f"column=dtype, with a dtype among {', '.join(DTYPES)}"
            raise _refused("--dtype", expected, part, "for example --dtype agent=str")
        found[name] = dtype
    return found


def names_in(text: str) -> list[str]:
    """Return the names in an option that can be repeated or written as a,b.

    Examples
    --------
    >>> names_in("a, b")
    ['a', 'b']
    """
    return [part.strip() for part in text.split(",") if part.strip()]
