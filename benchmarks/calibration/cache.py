"""Work that can be interrupted: a file per piece, written at once or not at all."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from tqdm import tqdm

__all__ = ["Piece", "day_of", "done", "run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of work: JSON values, computed once."""

    key: str
    """Name of its file."""
    version: str
    """What the values depend on; another version is computed anew."""
    compute: Callable[[], Any]


def done(folder: Path, piece: Piece) -> Any | None:
    """The values of a piece that was computed before; None if it was not, or not like this."""
    path = folder / f"{piece.key}.json"
    if not path.exists():
        return None
    content = json.loads(path.read_text("utf-8"))
    return content["values"] if content["version"] == piece.version else None


def day_of(folder: Path, piece: Piece) -> str:
    """The day on which a piece was computed, as in 2026-11-19."""
    written = (folder / f"{piece.key}.json").stat().st_mtime
    return datetime.date.fromtimestamp(written).isoformat()


def run(folder: Path, pieces: Iterable[Piece], jobs: int = 1, name: str = "") -> list[Any]:
    """Compute the pieces that are missing; return the values of all, in order."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = list(pieces)
    missing = [piece for piece in pieces if done(folder, piece) is None]
    work = Parallel(n_jobs=jobs, return_as="generator_unordered")(
        delayed(_compute)(folder, piece) for piece in missing
    )
    for _ in tqdm(work, total=len(missing), desc=name, disable=None, unit=" pieces"):
        pass
    return [done(folder, piece) for piece in pieces]


def _compute(folder: Path, piece: Piece) -> None:
    content = {"version": piece.version, "values": piece.compute()}
    path = folder / f"{piece.key}.json"
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps(content), encoding="utf-8")
    # Renaming is atomic: a file is whole, or it is not there.
    part.replace(path)
