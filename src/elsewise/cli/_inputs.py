"""What the user names on the command line: tables, models, targets, limits and schemas."""

from __future__ import annotations

import importlib.util
import pickle
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import joblib
import pandas as pd

from elsewise import models, targets
from elsewise.cli._console import say
from elsewise.errors import InvalidInput, MissingExtra
from elsewise.features import Schema
from elsewise.request import Bounds

PICKLES = (".joblib", ".pkl", ".pickle")
TARGETS = ["share", "quantile", "mean", "label", "at_least", "at_most", "constant", "shift"]
TARGETS += ["scale", "sample", "group", "distribution"]
# Targets that take one value for each output column.
PER_COLUMN = ("at_least", "at_most", "constant", "shift")
MODELS = "a .skops, .joblib or .pickle file, or module:name"
DTYPES = ("str", "int", "float", "bool", "category")


@contextmanager
def _refusing(
    option: str, expected: str, given: object, fix: str, errors: Any = Exception
) -> Iterator[None]:
    """Refuse what raises inside: by default anything, as files and modules may be anybody's."""
    try:
        yield
    except errors as error:
        received = f"{given} ({type(error).__name__}: {error})"
        raise InvalidInput(option, expected, received, fix) from error


def need(package: str, extra: str) -> None:
    """Refuse to go on without a package that an extra installs."""
    if importlib.util.find_spec(package) is None:
        raise MissingExtra(package, extra)


def read_table(
    path: Path, argument: str = "rows", dtypes: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Read a .csv or .parquet file; ``dtypes`` says how columns are read that it has."""
    known = dict(dtypes or {})
    if not path.is_file():
        given = f"{path}, which is {'a folder' if path.is_dir() else 'not there'}"
        raise InvalidInput(argument, "a .csv or .parquet file", given, "check the path")
    if path.suffix == ".parquet":
        need("pyarrow", "parquet")
    fix = f"open the file and check its first lines{' and --dtype' if known else ''}"
    with _refusing(argument, "a readable .csv or .parquet file", path, fix):
        if path.suffix != ".parquet":
            return pd.read_csv(path, dtype=cast(Any, known))
        table = pd.read_parquet(path)
        return table.astype({name: known[name] for name in known if name in table.columns})


def read_tables(
    rows: str | Path,
    background: str | Path | None,
    drop: Sequence[str],
    dtype: Sequence[str],
    second: str = "--background",
    texts: Sequence[str] = (),
) -> tuple[Any, Any]:
    """Read rows and background without the dropped columns; ``texts`` are read as text."""
    named = parse_dtypes(dtype)
    dtypes = dict.fromkeys(texts, "str") | named
    found = [read_table(Path(rows), "rows", dtypes)]
    if background is not None:
        found.append(read_table(Path(background), second, dtypes))
    for option, name in [*(("--drop", n) for n in drop), *(("--dtype", n) for n in named)]:
        if not any(name in part.columns for part in found):
            expected = f"columns of the rows: {', '.join(map(str, found[0].columns))}"
            fix = "check the spelling, and repeat the option for names with commas"
            raise InvalidInput(option, expected, name, fix)
    kept, *other = (part.drop(columns=list(drop), errors="ignore") for part in found)
    return kept, other[0] if other else None


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
        raise InvalidInput("--of", "mean, share:0.5 or quantile:0.9", text, fix)
    return (kind, float(level)) if colon else kind


def load_model(text: str, output: str | None = None, trust: Sequence[str] = ()) -> Any:
    """Load the model the user names: a .skops, .joblib or .pickle file, or ``module:name``.

    ``trust`` names the types of a .skops file that may be loaded beside those of scikit-learn.
    """
    ending = Path(text).suffix
    if ending not in (*PICKLES, ".skops"):
        model = _from_module(text)
    elif not Path(text).is_file():
        raise InvalidInput("--model", MODELS, f"{text}, which is not there", "check the path")
    else:
        model = _from_skops(Path(text), trust) if ending == ".skops" else _from_pickle(Path(text))
    if output is None:
        return model
    classes = getattr(model, "classes_", None)
    labels = {str(label): label for label in ([] if classes is None else classes.tolist())}
    if output not in labels:
        expected = f"one of the model's classes {', '.join(labels) or '(it has none)'}"
        raise InvalidInput("--output", expected, output, "leave --output out, or name a class")
    return models.estimator(model, output=labels[output])


def _from_skops(path: Path, trust: Sequence[str]) -> Any:
    """Load a model of types that are known to be harmless, or that the user named."""
    need("skops", "skops")
    from skops import io

    with _refusing("--model", "a file that skops.io.dump wrote", path, "save the model again"):
        # Listed before anything is loaded, so that what is not trusted is not built.
        unknown = sorted({*io.get_untrusted_types(file=path)} - {*trust})
        if not unknown:
            return io.load(path, trusted=list(trust))
    expected = "a .skops file of types that skops knows, or that --trust names"
    fix = f"if you trust them: {' '.join(f'--trust {name}' for name in unknown)}"
    raise InvalidInput("--model", expected, f"{path} with {', '.join(unknown)}", fix)


def _from_pickle(path: Path) -> Any:
    # Said with --quiet, too: it is about safety, not about progress.
    trusted = "runs the code stored in it; load only files you trust"
    say(f"elsewise: loading {path} {trusted}", err=True)
    expected = "a model saved with the installed versions of its packages"
    with _refusing("--model", expected, path, "save the model again, or name it as module:name"):
        if path.suffix == ".joblib":
            return joblib.load(path)
        return pickle.loads(path.read_bytes())


def _from_module(text: str) -> Any:
    module, _, name = text.partition(":")
    if not name:
        fix = "for example scoring:predict, for the function predict in scoring.py"
        raise InvalidInput("--model", MODELS, text, fix)
    # A command that was installed does not look in the current folder, unlike `python -m`.
    if "" not in sys.path:
        sys.path.insert(0, "")
    fix = "check the names, and run the command in the module's folder"
    with _refusing("--model", "an importable module:name", text, fix):
        return getattr(importlib.import_module(module), name)


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
    if kind not in TARGETS:
        expected = f"{', '.join(TARGETS[:-1])} or {TARGETS[-1]}"
        raise InvalidInput("--target", expected, text, "for example --target at_most:0.4")
    make: Callable[..., Any] = getattr(targets, kind)
    if kind in ("sample", "group"):
        return make(_scores(given, folder))
    made_of = f"targets.{kind}"
    if kind == "distribution":
        family, _, given = given.partition(",")
        make, made_of = targets.family_of(family.strip(), "--target"), f"scipy.stats.{family}"
    parts = [part.partition("=") for part in given.split(",")]
    plain: list[Any] = [_value(name) for name, equals, _ in parts if name and not equals]
    named = {name.strip(): _value(value) for name, equals, value in parts if equals}
    if kind != "label" and any(isinstance(value, str) for value in plain):
        fix = "for example --target at_most:0.4"
        raise InvalidInput("--target", "numbers after the colon", text, fix)
    if kind in PER_COLUMN and len(plain) > 1:
        plain = [plain]
    fix = "for example --target share:0.6,above=3500"
    with _refusing("--target", f"the parts of {made_of}", text, fix, TypeError):
        made = make(*plain, **named)
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
        raise InvalidInput("--target", expected, column, "name the column that holds the outputs")
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
            raise InvalidInput("--bounds", expected, part, "for example inputs=0.2,outputs=0.1")
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
        expected = "a file that `elsewise schema` wrote"
        fix = "run elsewise schema rows.csv --out schema.toml"
        wrong = OSError, UnicodeDecodeError, InvalidInput
        with _refusing("--schema", expected, path, fix, wrong):
            if not path.is_file():  # a pipe or a device, named in somebody's study, never ends
                raise FileNotFoundError("no file")
            schema = Schema.from_toml(path.read_text(encoding="utf-8"), rows, background)
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
            raise InvalidInput("--dtype", expected, part, "for example --dtype agent=str")
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
