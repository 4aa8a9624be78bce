"""Differences on disk: one npz file with a JSON record inside, versioned, without pickle."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from elsewise._difference._answer import Difference
from elsewise._difference._matching import Plan
from elsewise._difference._shapley import Functional
from elsewise._storage import read_arrays, write_bytes
from elsewise.errors import SavedRunError, from_mapping
from elsewise.features import pack_index, unpack_index

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """The columns of `Difference.parts`, a value per attribute and one for the change itself."""

    kind: tuple[str, ...]
    part: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    detectable: tuple[float, ...]
    own_change: tuple[float, ...]
    named: tuple[bool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Groups:
    """The columns of `Difference.groups`."""

    who: tuple[str, ...]
    rows: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    mostly: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Saved:
    """What the record holds; the file may be anybody's."""

    output: str
    before: float
    after: float
    sizes: tuple[int, int]
    clusters: int
    confidence: float
    draws: int
    seed: int
    exact: bool
    same: bool
    functional: Functional
    attributes: Any
    parts: _Parts
    groups: _Groups

    def __post_init__(self) -> None:
        tables = [table for part in (self.parts, self.groups) for table in asdict(part).values()]
        numbers = [self.before, self.after, *(value for table in tables for value in table)]
        known = all(np.isfinite(value) for value in numbers if not isinstance(value, str))
        if not known or not 0.0 < self.confidence < 1.0 or min(*self.sizes, self.clusters) < 1:
            raise ValueError("numbers that no difference has")


PLAIN = ["output", "before", "after", "sizes", "clusters", "confidence", "draws", "seed"]
PLAIN += ["exact", "same", "functional"]
"""Fields that JSON holds as they are."""


def save(found: Difference, path: str | Path) -> Path:
    """Write one file, which appears whole or not at all."""
    record = {name: getattr(found, name) for name in PLAIN}
    record |= {"format": FORMAT, "elsewise": version("elsewise")}
    record |= {"attributes": pack_index(found.parts.index), "parts": found.parts.to_dict("list")}
    record |= {"groups": found.groups.to_dict("list")}
    arrays = {**found.pairs._asdict(), "before_only": found.unmatched[0]}
    arrays |= {"after_only": found.unmatched[1]}
    text = json.dumps(record | {"hash": _digest(record, arrays)}).encode()
    written = BytesIO()
    np.savez(written, record=np.frombuffer(text, np.int8), **arrays)
    return write_bytes(written.getvalue(), path)


def load(path: str | Path) -> Difference:
    """Read what `save` wrote; anything else is a `SavedRunError`."""
    try:
        arrays = read_arrays(Path(path))
        record = json.loads(arrays.pop("record").tobytes())
        if record["format"] != FORMAT:
            raise ValueError(f"format {record['format']!r}, made by {record.get('elsewise')}")
        if record.pop("hash") != _digest(record, arrays):
            raise ValueError("the file was changed after it was saved")
        content = {name: record[name] for name in record if name not in ("format", "elsewise")}
        saved = from_mapping(_Saved, content, "difference")
        pairs = Plan(*(arrays[name] for name in Plan._fields))
        unmatched = arrays["before_only"], arrays["after_only"]
        for rows, size in zip((*pairs[:2], *unmatched), saved.sizes * 2, strict=True):
            if rows.ndim != 1 or rows.dtype.kind != "i" or not np.isin(rows, range(size)).all():
                raise ValueError("rows that are in neither sample")
        if not len(pairs.before) == len(pairs.after) == len(pairs.mass):
            raise ValueError("pairs without a mass")
        return Difference(
            **{name: getattr(saved, name) for name in PLAIN},
            parts=pd.DataFrame(asdict(saved.parts), index=unpack_index(saved.attributes)),
            groups=pd.DataFrame(asdict(saved.groups)),
            pairs=pairs,
            unmatched=unmatched,
        )
    except Exception as error:
        raise SavedRunError(
            f"{path}: expected what Difference.save wrote (format {FORMAT}), received "
            f"{type(error).__name__}: {error}. Fix: save it again."
        ) from error


def _digest(record: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name}{array.shape}{array.dtype.str}".encode() + array.tobytes())
    return digest.hexdigest()
