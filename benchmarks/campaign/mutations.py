"""Mutations of every file the project reads, through the library and through the command."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skops import io as skops_io  # here, because importing it unpickles functions of its own

import elsewise as ew
from elsewise import saving
from elsewise._storage import read_arrays
from elsewise.cli import main
from elsewise.cli._inputs import parse_target, read_table
from elsewise.errors import SavedRunError
from elsewise.features import Expression, _toml

from .inputs import ROWS, check, explain, score
from .verdicts import Attempt

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from legality import assert_legal

COUNT = 10_000
SCORE = "benchmarks.campaign.inputs:score"
TYPES = (
    *(("os", "system"), ("builtins", "eval"), ("builtins", "exec"), ("subprocess", "Popen")),
    *(("posix", "system"), ("operator", "methodcaller"), ("functools", "partial")),
    *(("pickle", "loads"), ("numpy", "load"), ("joblib", "load"), ("importlib", "import_module")),
    *(("sklearn.preprocessing", "FunctionTransformer"), ("sklearn.utils", "Bunch")),
)
LOADERS = (
    *("ObjectNode", "TypeNode", "FunctionNode", "PartialNode", "MethodNode", "OperatorFuncNode"),
    *("ReduceNode", "UfuncNode", "NdArrayNode", "RandomStateNode", "BytesNode", "NoSuchNode"),
)
JUNK: tuple[Any, ...] = (
    *(None, True, -1, 0, 1e308, float("nan"), 10**25, "", "test", "__class__", "../../etc"),
    *([], {}, [None], {"a": 1}, [[1.0, "x"]], "\ud800", "\x1b[2K", {"float": "nan"}, {"tuple": 3}),
    *("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "=cmd|'/c calc'!A1", 2**63),
)
OF_EXPLORE = 2
"""Scripts of a page to play with: its data, which is inert, and its own."""
BOUNDS = ew.Bounds(outputs=0.1)
BYTES = (b"", b"\x00", b"\xff", b"PK", b'{"', b"[" * 5000, b"\n", b"NaN", b'"', b"=cmd", b"\r")


def attempts() -> Iterator[Attempt]:
    """Every attempt, in one order."""
    kinds: tuple[Any, ...] = (record, arrays, schema, raw_bytes, table, command, scores, study)
    kinds += (difference, policy, rule)
    for seed in range(COUNT):
        # Not in turn, so that every sample of one in so many has some of each.
        kind = kinds[np.random.default_rng([seed, 3]).integers(len(kinds))]
        yield Attempt(f"{kind.__name__} {seed}", lambda kind=kind, seed=seed: in_folder(kind, seed))


def in_folder(kind: Any, seed: int) -> None:
    """Mutate a copy of a saved run, read it, and remove it."""
    place = Path(tempfile.mkdtemp(prefix="campaign-"))
    try:
        shutil.copytree(saved(), place / "run")
        kind(place / "run", np.random.default_rng([seed, 17]))
    finally:
        shutil.rmtree(place, ignore_errors=True)


@cache
def saved() -> Path:
    """A run as the command saves it, and the files that it was made from."""
    place = Path(tempfile.mkdtemp(prefix="campaign-run-")) / "run"
    rows = ROWS.assign(day=pd.date_range("2024-01-01", periods=len(ROWS)))
    explain(rows=rows).save(place)
    answer = explain(rows=rows, bounds=None)
    answer.policy(2).save(place / "policy")
    halves = rows[:20].drop(columns="day"), rows[20:].drop(columns="day")
    ew.difference(score, *halves, draws=19).save(place / "difference.npz")
    (place / "command.json").write_text(json.dumps({"command": "elsewise", "output": "risk"}))
    (place / "schema.toml").write_text(ew.Schema.infer(rows).to_toml())
    rows.to_csv(place / "rows.csv", index=False)
    rows.to_parquet(place / "rows.parquet")
    return place


def read(run: Path) -> None:
    """Read a run and look at it, with its model too where that is the same."""
    loaded = ew.load(run)
    check(loaded)
    f"{loaded!r} {loaded.status} {loaded.certificate}"
    loaded.changes(), loaded.history, ew.report.summary(loaded)
    check_page(ew.report.render(loaded))
    check_page(ew.report.render_explore(loaded), scripts=OF_EXPLORE)
    ew.load(run, model=score).apply(loaded.factual)


class Tags(HTMLParser):
    """What a browser would run or ask for; text inside quotes and entities is none of it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.scripts, self.others = 0, list[str]()
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        """Note scripts, other elements that load something, handlers and addresses."""
        self.scripts += tag == "script"
        self.others += [tag] * (tag in ("img", "iframe", "object", "embed", "base", "form", "link"))
        self.others += [name for name, _ in attributes if name.startswith("on")]
        links = [value or "" for name, value in attributes if name in ("href", "src", "action")]
        self.others += [link for link in links if not link.startswith(("#", "data:"))]


def check_page(page: str, scripts: int = 0) -> None:
    """Refuse pages in which something of the file became a tag, a handler or a link."""
    found = Tags(page)
    assert found.scripts == scripts, f"{found.scripts} scripts"
    assert not found.others, f"in the page: {found.others[:3]}"


def record(run: Path, rng: np.random.Generator) -> None:
    """Replace, remove or double a value of the record, with the hash that fits."""
    content = json.loads((run / "explanation.json").read_text())
    if rng.random() < 0.4:
        inner = tomllib.loads(content["encoder"]["schema"])
        mutate(inner, rng)
        content["encoder"]["schema"] = as_toml(inner)
    else:
        mutate(content, rng)
    if isinstance(content.get("hashes"), dict):
        content["hashes"]["settings"] = saving._settings_digest(content)
    (run / "explanation.json").write_text(json.dumps(content))
    read(run)


def arrays(run: Path, rng: np.random.Generator) -> None:
    """Change an array's values, shape or dtype, with the hashes that fit."""
    with np.load(run / "arrays.npz") as stored:
        found = dict(stored)
    name = str(rng.choice(sorted(found)))
    found[name] = odd_array(found[name], rng)
    if rng.random() < 0.1:
        del found[name]
    np.savez(run / "arrays.npz", **found)
    content = json.loads((run / "explanation.json").read_text())
    content["hashes"]["arrays"] = saving._digest(found)
    (run / "explanation.json").write_text(json.dumps(content))
    read(run)


def odd_array(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return other values, or the same in another shape or dtype."""
    changes: list[Any] = [
        lambda: values[:-1],
        lambda: values.ravel(),
        lambda: values[:0],
        lambda: values.astype(np.float32),
        lambda: values.astype(bool),
        lambda: values + rng.integers(-3, 9).astype(values.dtype),
        lambda: np.where(rng.random(values.shape) < 0.1, np.nan, values),
        lambda: np.where(rng.random(values.shape) < 0.1, 1e308, values),
        lambda: values[..., None],
        lambda: np.flip(values),
    ]
    return changes[int(rng.integers(len(changes)))]()


def schema(run: Path, rng: np.random.Generator) -> None:
    """Edit the file that is meant to be edited."""
    rows = pd.read_csv(run / "rows.csv", parse_dates=["day"])
    text = (run / "schema.toml").read_text()
    roll, content = rng.random(), tomllib.loads(text)
    if roll < 0.2:
        text = damaged(text.encode(), rng).decode(errors="replace")
    elif roll < 0.5:
        mutate(content, rng)
        text = as_toml(content)
    else:
        for _ in range(int(rng.integers(1, 4))):
            edit(content, rng)
        text = as_toml(content)
    again = ew.Schema.from_toml(text, rows if rng.random() < 0.5 else None)
    answer = explain(rows=rows, schema=again, bounds=ew.Bounds() if roll < 0.7 else BOUNDS)
    assert_legal(answer)


def edit(content: dict[str, Any], rng: np.random.Generator) -> None:
    """Edit a line of a schema file as people do, well or badly."""
    name = str(rng.choice(["a", "b", "c"]))
    low, high = sorted(rng.normal(size=2).round(2).tolist())
    choices: dict[str, list[Any]] = {
        "free": [True, False, "no"],
        "only": ["increase", "decrease", "up"],
        "range": [[low, high], [0, 3], [high, low], [low], [float("-inf"), high]],
        "allowed": [["x", "y"], ["x"], [], ["new"], "x"],
        "weight": [2.5, 1, 0, -1, "2"],
        "cost": [3, 0.5, -1],
        "kind": ["number", "integer", "category", "fixed"],
        "derived": ["a + 1", "2 * b", "c", "b", ""],
        "seen": [[-3, 3], [0, 8], [3, -3]],
        "levels": [["x", "y", "z"], ["x", "y"], ["z", "y", "x"], ["x", "x"]],
        "ordered": [True, False],
        "name": ["a", {"tuple": ["a", 1]}],
        "group": ["g"],
    }
    field = str(rng.choice(list(choices)))
    if rng.random() < 0.15:
        content.setdefault("rules", {})["r"] = condition(rng, 0)
    else:
        content["columns"][name][field] = choices[field][int(rng.integers(len(choices[field])))]


def raw_bytes(run: Path, rng: np.random.Generator) -> None:
    """Flip, cut or insert bytes of either file; hashes are as they were."""
    name = str(rng.choice(["explanation.json", "arrays.npz"]))
    before = (run / name).read_bytes()
    (run / name).write_bytes(damaged(before, rng))
    read(run)


def table(run: Path, rng: np.random.Generator) -> None:
    """Flip, cut or insert bytes of a table, read and apply it."""
    path = run / str(rng.choice(["rows.csv", "rows.parquet"]))
    path.write_bytes(damaged(path.read_bytes(), rng))
    rows = read_table(path)
    answer = explain(rows=rows)
    answer.apply(rows)


def scores(run: Path, rng: np.random.Generator) -> None:
    """Damage a file of scores that a target names."""
    path = run / "scores.csv"
    lines = b"score,name\n" + b"".join(b"%.3f,x\n" % value for value in rng.random(30))
    path.write_bytes(damaged(lines, rng))
    column = ",score" if rng.random() < 0.5 else ""
    explain(target=parse_target(f"{'sample' if rng.random() < 0.5 else 'group'}:{path}{column}"))


def command(run: Path, rng: np.random.Generator) -> None:
    """Let the command read a changed run, or what was noted beside it, and print."""
    name = str(rng.choice(["command.json", "command.json", "explanation.json"]))
    content = json.loads((run / name).read_text())
    mutate(content, rng)
    if name == "explanation.json" and isinstance(content.get("hashes"), dict):
        content["hashes"]["settings"] = saving._settings_digest(content)
    text = json.dumps(content).encode()
    (run / name).write_bytes(damaged(text, rng) if rng.random() < 0.3 else text)
    apply = ["apply", str(run), str(run / "rows.parquet")]
    both = ["compare", str(run), str(saved()), "--out", str(run / "both.html")]
    verbs = (
        ["report", str(run)],
        ["report", str(run), "--rows", "3"],
        ["explore", str(run)],
        ["policy", str(run), "--model", SCORE, "--k", "1"],
        [*both, "--json"],
        both,
        [*apply, "--model", SCORE, "--out", str(run / "m.csv")],
    )
    told = run_command(verbs[int(rng.integers(len(verbs)))])
    for name, scripts in (("report.html", 0), ("explore.html", OF_EXPLORE), ("both.html", 0)):
        if (run / name).exists():
            check_page((run / name).read_text("utf-8"), scripts)
    if told:
        raise SavedRunError(told)


def run_command(arguments: list[str]) -> str:
    """Run the command; return what it says where it refuses, in words and without escapes."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as end:
            code = end.code
    assert "\x1b" not in out.getvalue() + err.getvalue(), "an escape on the terminal"
    assert "Traceback" not in err.getvalue(), "a traceback"
    # Codes of `explain` and `check`: 1 and 3 are answers too.
    return err.getvalue() if code not in (0, None, 1, 3) else ""


def study(run: Path, rng: np.random.Generator) -> None:
    """Change or damage a study file, or the model that it names, and check it."""
    (run / "model.skops").write_bytes(odd_skops(rng))
    content: dict[str, Any] = {
        "rows": str(rng.choice(["rows.parquet", "rows.csv"])),
        "drop": ["c", "day"],
        "target": "at_most:0.45",
        "model": "model.skops",
        "seconds": 5,
        "bounds": {"inputs": 0.9},
        "freeze": ["b"],
        "assertions": ["reached >= 0.1", "rows_moved < 1000"],
    }
    if rng.random() < 0.5:
        mutate(content, rng)
    text = as_toml(content).encode(errors="surrogatepass")
    path = run / "study.toml"
    path.write_bytes(damaged(text, rng) if rng.random() < 0.3 else text)
    more = ["--model", SCORE] if rng.random() < 0.3 else []
    files = ["--junit", str(run / "junit.xml"), "--markdown", str(run / "study.md")]
    told = run_command(["check", str(path), *more, *files, "--report", str(run / "study.html")])
    if (run / "junit.xml").exists():
        ElementTree.parse(run / "junit.xml")
    if (run / "study.html").exists():
        check_page((run / "study.html").read_text("utf-8"))
    if told:
        raise SavedRunError(told)


def odd_skops(rng: np.random.Generator) -> bytes:
    """Return a model file in which a type, a function or some bytes are others."""
    if rng.random() < 0.2:
        return model_file()
    if rng.random() < 0.3:
        return damaged(model_file(), rng)
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(model_file())) as old, zipfile.ZipFile(written, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            if name == "schema.json":
                content = json.loads(part)
                (change_type if rng.random() < 0.7 else mutate)(content, rng)
                part = json.dumps(content).encode()
            new.writestr(name, part)
    return written.getvalue()


def change_type(content: Any, rng: np.random.Generator) -> None:
    """Let one part of a model file be of a type, or made by a loader, that runs code."""
    nodes = [content]
    for node in nodes:
        parts = node.values() if isinstance(node, dict) else node
        nodes += [part for part in parts if isinstance(part, dict | list)]
    named = [node for node in nodes if isinstance(node, dict) and "__class__" in node]
    node = named[int(rng.integers(len(named)))]
    module, name = TYPES[int(rng.integers(len(TYPES)))]
    node |= {"__module__": module, "__class__": name}
    if rng.random() < 0.6:
        node["__loader__"] = LOADERS[int(rng.integers(len(LOADERS)))]
        argument = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}
        argument |= {"content": '"true"', "is_json": True}
        node["content"] = argument if rng.random() < 0.5 else {"args": argument, "func": name}


@cache
def model_file() -> bytes:
    """A fitted model as skops writes it."""
    reader = make_column_transformer((StandardScaler(), ["a", "b"]))
    rows = ROWS[["a", "b"]]
    return skops_io.dumps(make_pipeline(reader, LogisticRegression()).fit(rows, rows["a"] > 0))


def difference(run: Path, rng: np.random.Generator) -> None:
    """Change a saved difference, with the hash that fits, read it and look at it."""
    path = run / "difference.npz"
    if rng.random() < 0.3:
        path.write_bytes(damaged(path.read_bytes(), rng))
    else:
        found = read_arrays(path)
        content = json.loads(found.pop("record").tobytes())
        if rng.random() < 0.7:
            mutate(content, rng)
        else:
            name = str(rng.choice(sorted(found)))
            found[name] = odd_array(found[name], rng)
        text = np.frombuffer(json.dumps(content).encode(), np.int8)
        np.savez(path, record=text, **found)
    loaded = ew.Difference.load(path)
    f"{loaded} {loaded.to_dict()} {loaded.p_value} {loaded.change}"
    names = {str(name) for name in loaded.parts.index}  # a file may call an attribute NaN
    assert "nan" in names or "nan" not in str(loaded).lower().split(), "NaN in words"
    check_page(loaded._repr_html_() + ew.report.render_difference(loaded))


def policy(run: Path, rng: np.random.Generator) -> None:
    """Change a saved policy, read it, look at it and apply it."""
    run = run / "policy"
    path = run / "policy.json"
    if rng.random() < 0.3:
        path.write_bytes(damaged(path.read_bytes(), rng))
    else:
        content = json.loads(path.read_text())
        mutate(content, rng)
        path.write_text(json.dumps(content))
    loaded = ew.Policy.load(run, model=score)
    text = f"{loaded} {loaded.summary}"
    assert "nan" not in text.lower().split(), "NaN in words"
    rows = loaded.explanation.factual
    check(replace(loaded.explanation, rows=_as_rows(loaded, loaded.apply(rows))))


def _as_rows(loaded: ew.Policy, moved: pd.DataFrame) -> Any:
    kept = loaded.explanation
    return kept.rows._replace(codes=kept.encoder.encode(moved))


BAD_TEXTS = (
    *("__import__('os').system('true')", "a.__class__", "a[0]", "lambda: 1", "9**9**9", "a @ b"),
    *("(" * 400, "-" * 3000 + "1", "a" * 6000, "\uff41 < 1", "a\u037e b", "1e999", "0x10", "1j"),
    *("[x for x in a]", "f'{a}'", "a if b else 1", "(a := 1)", "a; b", "a\nb", "a#b", "\x00"),
    *("exec('1')", "eval('1')", "open('/etc/passwd')", "a._mgr", "b'x' < a", "...", "None"),
    *("abs(*[a])", "abs(x=a)", "min(a)", "a in b", "a is b", "not", "``", "`", "'", '"' * 3),
    *("c < 'x'", "c == 'no level'", "a == 'x'", "a < b < ", "a //", "a % 2", "a and", "c", "'x'"),
)
"""Parts that no rule may have."""


def rule(run: Path, rng: np.random.Generator) -> None:
    """Parse a random text as a rule; what is accepted is what Python makes of it, row by row."""
    frame = ROWS.head(20)
    text = condition(rng, 3)
    roll = rng.random()
    if roll < 0.3:
        bad = BAD_TEXTS[int(rng.integers(len(BAD_TEXTS)))]
        text = bad if roll < 0.15 else text.replace(" a ", f" {bad} ", 1)
    elif roll < 0.5:
        text = damaged(text.encode(), rng).decode(errors="replace")
    features = ew.Schema.infer(frame).rule(text, "random").features
    parsed = Expression.parse(text, features)
    mine = parsed.values(ew.Schema.infer(frame).encoder(frame).encode(frame))
    assert set(np.unique(mine[~np.isnan(mine)])) <= {0.0, 1.0}, "a rule that is no truth"
    if not np.isfinite(mine).all():
        return  # Python has another idea of what is unknown
    text = re.sub(r"[`\s]", " ", text).strip()
    known = {"__builtins__": {}, "abs": abs, "min": min, "max": max}
    # NumPy's numbers divide by zero as a frame does.
    each = [{"a": np.float64(a), "b": np.float64(b), "c": c} for a, b, c in frame.to_numpy()]
    with contextlib.suppress(ZeroDivisionError):
        theirs = [float(eval(text, known, row)) for row in each]
        assert np.array_equal(mine, np.broadcast_to(theirs, mine.shape)), text


def condition(rng: np.random.Generator, depth: int) -> str:
    """Return a random condition on the columns."""
    roll = rng.random()
    if depth and roll < 0.4:
        joined = f" {rng.choice(['and', 'or'])} ".join(condition(rng, depth - 1) for _ in range(2))
        return f"({joined})"
    if depth and roll < 0.5:
        return f"not ({condition(rng, depth - 1)})"
    if roll < 0.65:
        return f"c {rng.choice(['==', '!='])} '{rng.choice(list('xyz'))}'"
    compared = f" {rng.choice(['<', '<=', '>', '>=', '==', '!='])} "
    return compared.join(amount(rng, depth) for _ in range(2))


def amount(rng: np.random.Generator, depth: int) -> str:
    """Return random arithmetic of the columns."""
    roll = rng.random()
    if depth and roll < 0.5:
        return f"( a {rng.choice(list('+-*/'))} {amount(rng, depth - 1)} )"
    if depth and roll < 0.6:
        return f"{rng.choice(['min', 'max'])}({amount(rng, depth - 1)}, b)"
    if depth and roll < 0.7:
        return f"abs({amount(rng, depth - 1)})"
    return str(rng.choice(["a", "b", "`b`", "-a", "2", "0.5", "-1.5e-3"]))


def as_toml(content: dict[str, Any]) -> str:
    """Write anything as TOML, as the library does; what TOML cannot say comes out unreadable."""
    return "".join(f"{_toml._key(str(k))} = {_toml._value(v)}\n" for k, v in content.items())


def mutate(content: Any, rng: np.random.Generator) -> None:
    """Change one value somewhere in nested JSON."""
    while True:
        keys = list(content) if isinstance(content, dict) else list(range(len(content)))
        key = keys[int(rng.integers(len(keys)))]
        part = content[key]
        if isinstance(part, dict | list) and len(part) and rng.random() < 0.8:
            content = part
            continue
        if rng.random() < 0.15:
            del content[key]
        elif rng.random() < 0.1 and isinstance(content, dict):
            content["extra"] = part
        else:
            content[key] = JUNK[int(rng.integers(len(JUNK)))]
        return


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Cut, flip or insert bytes."""
    place = int(rng.integers(len(content)))
    roll = rng.random()
    if roll < 0.3:
        return content[:place]
    if roll < 0.7:
        return (
            content[:place]
            + bytes([content[place] ^ int(rng.integers(1, 256))])
            + content[place + 1 :]
        )
    return content[:place] + BYTES[int(rng.integers(len(BYTES)))] + content[place:]
