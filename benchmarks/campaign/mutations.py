"""Mutations of every file the project reads: saved runs, schema files, tables and notes."""

from __future__ import annotations

import json
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import elsewise as ew
from elsewise import saving
from elsewise.cli import _about
from elsewise.cli._inputs import read_table
from elsewise.features import _toml

from .inputs import ROWS, check, explain, score
from .verdicts import Attempt

COUNT = 10_000
JUNK: tuple[Any, ...] = (
    *(None, True, -1, 0, 1e308, float("nan"), 10**25, "", "test", "__class__", "../../etc"),
    *([], {}, [None], {"a": 1}, [[1.0, "x"]], "\ud800", "\x1b[2K", {"float": "nan"}, {"tuple": 3}),
)
BYTES = (b"", b"\x00", b"\xff", b"PK", b'{"', b"[" * 5000, b"\n", b"NaN", b'"', b"=cmd", b"\r")


def attempts() -> Iterator[Attempt]:
    """Every attempt, in one order."""
    kinds = (record, arrays, schema, raw_bytes, table, notes)
    for seed in range(COUNT):
        kind = kinds[seed % len(kinds)]
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
    ew.load(run, model=score).apply(loaded.factual)


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
    values = found[name]
    changes: list[Any] = [
        lambda: values[:-1],
        lambda: values.ravel(),
        lambda: values[:0],
        lambda: values.astype(np.float32),
        lambda: values.astype(bool),
        lambda: values + rng.integers(-3, 9),
        lambda: np.where(rng.random(values.shape) < 0.1, np.nan, values),
        lambda: np.where(rng.random(values.shape) < 0.1, 1e308, values),
        lambda: values[..., None],
        lambda: np.flip(values),
    ]
    found[name] = changes[int(rng.integers(len(changes)))]()
    if rng.random() < 0.1:
        del found[name]
    np.savez(run / "arrays.npz", **found)
    content = json.loads((run / "explanation.json").read_text())
    content["hashes"]["arrays"] = saving._digest(found)
    (run / "explanation.json").write_text(json.dumps(content))
    read(run)


def schema(run: Path, rng: np.random.Generator) -> None:
    """Edit the file that is meant to be edited."""
    rows = pd.read_csv(run / "rows.csv", parse_dates=["day"])
    text = (run / "schema.toml").read_text()
    if rng.random() < 0.3:
        text = damaged(text.encode(), rng).decode(errors="replace")
    else:
        content = tomllib.loads(text)
        mutate(content, rng)
        text = as_toml(content)
    again = ew.Schema.from_toml(text, rows if rng.random() < 0.5 else None)
    explain(rows=rows, schema=again)


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


def notes(run: Path, rng: np.random.Generator) -> None:
    """Change what the command noted beside a run."""
    path = run / "command.json"
    if rng.random() < 0.5:
        content = json.loads(path.read_text())
        mutate(content, rng)
        path.write_text(json.dumps(content))
    else:
        path.write_bytes(damaged(path.read_bytes(), rng))
    _about(run)


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
