"""Differences on disk: one npz file with a JSON record inside, versioned, without pickle."""

from __future__ import annotations

import hashlib
import json
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
from elsewise.errors import SavedRunError
from elsewise.features import pack_index, unpack_index

FORMAT = 1
PLAIN = ["output", "before", "after", "sizes", "clusters", "confidence", "draws", "seed"]
PLAIN += ["exact", "same"]
"""Fields that JSON holds as they are."""


def save(found: Difference, path: str | Path) -> Path:
    """Write one file, which appears whole or not at all."""
    record = {name: getattr(found, name) for name in PLAIN}
    record |= {"format": FORMAT, "elsewise": version("elsewise"), "functional": found.functional}
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
        index = unpack_index(record["attributes"])
        return Difference(
            **{name: record[name] for name in PLAIN} | {"sizes": tuple(record["sizes"])},
            functional=Functional(*record["functional"]),
            parts=pd.DataFrame(record["parts"], index=index),
            groups=pd.DataFrame(record["groups"]),
            pairs=Plan(*(arrays[name] for name in Plan._fields)),
            unmatched=(arrays["before_only"], arrays["after_only"]),
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
