"""Explanations on disk: a folder of one JSON file and one npz file, versioned, without pickle.

A folder appears whole or not at all: it is written beside its place and renamed into it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from elsewise import targets
from elsewise._arrays import Array, to_numpy
from elsewise.certificate import Certificate
from elsewise.errors import InvalidInput, SavedRunError
from elsewise.explanation import Explanation, Status
from elsewise.features import Encoder, pack_index, unpack_index
from elsewise.maps import Map
from elsewise.models import Outputs, bind, same_outputs
from elsewise.moves import Edits, Motion, Rows, Step
from elsewise.request import Bounds, Problem
from elsewise.search import Iteration, Outcome
from elsewise.settings import Fixed, IntervalNarrowing, SetShrinking, Settings
from elsewise.transport import MonotoneMaps

__all__ = ["load", "save"]

FORMAT = 1
RECORD, ARRAYS = "explanation.json", "arrays.npz"
FINGERPRINT_ROWS = 256
BALANCES = {kind.__name__: kind for kind in (IntervalNarrowing, SetShrinking, Fixed)}


def save(explanation: Explanation, folder: str | Path) -> Path:
    """Write an explanation to ``folder``, replacing an earlier saved run but nothing else."""
    place = Path(folder)
    _check_place(place)
    arrays = _arrays(explanation)
    record = json.dumps(_record(explanation, arrays), indent=1, allow_nan=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        (fresh / RECORD).write_text(record, encoding="utf-8")
        # Without allow_pickle=: NumPy 2.0 and 2.1 would store it as one more array.
        np.savez_compressed(fresh / ARRAYS, **arrays)
        fresh.chmod(0o755)
        _swap(fresh, place)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    return place


def _check_place(place: Path) -> None:
    if (
        place.exists()
        and not (place / RECORD).is_file()
        and (place.is_file() or any(place.iterdir()))
    ):
        raise InvalidInput(
            "folder",
            expected="a new folder, an empty one or an earlier saved run",
            received=f"{place}, which holds something else",
            fix="choose another folder",
        )


def _swap(fresh: Path, place: Path) -> None:
    """Put ``fresh`` in its place; an earlier run is moved aside first and removed last."""
    if not place.exists():
        fresh.replace(place)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{place.name}-old-", dir=place.parent))
    place.replace(aside)
    try:
        fresh.replace(place)
    except BaseException:
        aside.replace(place)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def load(folder: str | Path, model: Any = None) -> Explanation:
    """Read a saved explanation.

    Parameters
    ----------
    folder
        What `Explanation.save` wrote.
    model
        The explained model, needed for `apply`; refused if its outputs on the saved rows differ
        from the saved ones. Without it the explanation can be looked at.
    """
    place = Path(folder)
    record, arrays = _read(place)
    try:
        return _rebuild(record, arrays, model)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise SavedRunError(
            f"{place}: the saved run is damaged ({type(error).__name__}: {error}). "
            "Fix: save it again."
        ) from error


def _read(place: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        record = json.loads((place / RECORD).read_text(encoding="utf-8"))
        with (place / ARRAYS).open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = dict(stored)
    except FileNotFoundError as error:
        raise SavedRunError(
            f"{place}: expected a saved run ({RECORD} and {ARRAYS}), received none. "
            "Fix: pass the folder that Explanation.save wrote."
        ) from error
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise SavedRunError(
            f"{place}: the saved run cannot be read ({error}). Fix: save it again."
        ) from error
    if not isinstance(record, dict) or "format" not in record:
        raise SavedRunError(
            f"{place}: expected the record of a saved run in {RECORD}, received something else. "
            "Fix: save it again."
        )
    if record["format"] != FORMAT:
        raise SavedRunError(
            f"{place}: expected format {FORMAT}, received {record['format']!r}. "
            f"Fix: load it with elsewise {record.get('elsewise', 'of its time')}."
        )
    if record.get("hashes") != {"arrays": _digest(arrays), "settings": _settings_digest(record)}:
        raise SavedRunError(
            f"{place}: the files were changed after they were saved. Fix: save it again."
        )
    return record, arrays


def _record(explanation: Explanation, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    content = _content(explanation)
    return content | {"hashes": {"arrays": _digest(arrays), "settings": _settings_digest(content)}}


def _content(explanation: Explanation) -> dict[str, Any]:
    problem, settings = explanation.problem, explanation.settings
    balance = settings.balance
    return {
        "format": FORMAT,
        "elsewise": version("elsewise"),
        "model": problem.outputs.description,
        "outputs": {
            "columns": problem.outputs.columns,
            "probability": problem.outputs.probability,
            "smooth": problem.outputs.smooth,
        },
        "encoder": explanation.encoder.to_dict(),
        "index": pack_index(explanation.index),
        "target": problem.target.to_dict(),
        "bounds": dataclasses.asdict(problem.bounds),
        "unit": problem.unit,
        "seed": problem.seed,
        "settings": {
            **{
                field.name: getattr(settings, field.name)
                for field in dataclasses.fields(settings)
                if field.name != "balance"
            },
            "balance": {
                "kind": type(balance).__name__,
                **{f.name: getattr(balance, f.name) for f in dataclasses.fields(balance)},  # type: ignore[arg-type]
            },
        },
        "motion": dataclasses.asdict(explanation.map.motion),
        "status": {
            **dataclasses.asdict(explanation.status),
            "outcome": explanation.status.outcome.name,
        },
        "certificate": explanation.certificate.to_dict(),
        "history": [list(iteration) for iteration in explanation.iterations],
        "rules": [rule.name for rule in problem.schema.rules],
    }


def _arrays(explanation: Explanation) -> dict[str, np.ndarray]:
    steps = explanation.map.steps
    arrays = {
        "factual": to_numpy(explanation.problem.factual),
        "counterfactual": to_numpy(explanation.rows.codes),
        "outputs": explanation.outputs,
        "factual_outputs": explanation.factual_outputs,
        "etas": np.array([step.eta for step in steps]),
        "sparsities": np.array([step.sparsity for step in steps]),
    }
    for name, values in _tables(steps).items():
        given = [to_numpy(value) for value in values if value is not None]
        if given:
            arrays[name] = np.concatenate(given)
            arrays[f"{name}_sizes"] = np.array([0 if v is None else v.shape[0] for v in values])
    return arrays


def _tables(steps: tuple[Step, ...]) -> dict[str, list[Array]]:
    """Every array of the steps by its name in the file; None where a step has none."""
    readers: dict[str, Callable[[Step], Array]] = {
        "directions": lambda step: step.directions,
        "output_directions": lambda step: step.output_directions,
        "anchor_knots": lambda step: step.anchors.knots,
        "anchor_displacements": lambda step: step.anchors.displacements,
        "wanted_knots": lambda step: step.wanted and step.wanted.knots,
        "wanted_displacements": lambda step: step.wanted and step.wanted.displacements,
        "edit_sources": lambda step: step.edits and step.edits.sources,
        "edit_values": lambda step: step.edits and step.edits.values,
        "edit_donors": lambda step: step.edits and step.edits.donors,
        "edit_donor_outputs": lambda step: step.edits and step.edits.donor_outputs,
    }
    return {name: [read(step) for step in steps] for name, read in readers.items()}


def _digest(arrays: dict[str, np.ndarray]) -> str:
    """Hash of names, shapes and bytes: what the run was computed from and what it found."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.shape}{array.dtype.str}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _settings_digest(record: dict[str, Any]) -> str:
    """Hash of everything in the record but the hashes: settings, limits, target, findings."""
    content = {name: value for name, value in record.items() if name != "hashes"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _rebuild(record: dict[str, Any], arrays: dict[str, np.ndarray], model: Any) -> Explanation:
    encoder = Encoder.from_dict(record["encoder"])
    schema = encoder.schema
    outputs: Outputs = _NoModel(description=record["model"], **record["outputs"])
    if model is not None:
        outputs = bind(model, encoder, probe=arrays["factual"])
        _check_fingerprint(outputs, arrays, record["model"])
    factual = outputs.place(arrays["factual"])
    saved = dict(record["settings"])
    balance = dict(saved.pop("balance"))
    settings = Settings(**saved, balance=BALANCES[balance.pop("kind")](**balance))
    bounds = dict(record["bounds"])
    bounds["support"] = bounds["support"] and tuple(bounds["support"])
    status = dict(record["status"])
    status |= {"outcome": Outcome[status["outcome"]], "notices": tuple(status["notices"])}
    return Explanation(
        problem=Problem(
            factual=factual,
            factual_outputs=outputs.place(arrays["factual_outputs"]),
            precise_outputs=outputs.place(arrays["factual_outputs"]),
            schema=schema,
            embedding=schema.embedding().like(factual),
            outputs=outputs,
            precise=outputs.precise(arrays["factual"]),
            target=targets.from_dict(record["target"]),
            background=factual,
            obeys=_refuse_rules if record["rules"] else None,
            bounds=Bounds(**bounds),
            unit=record.get("unit", 1.0),  # runs saved before it was there
            seed=record["seed"],
        ),
        model=model,
        encoder=encoder,
        index=unpack_index(record["index"]),
        rows=Rows(outputs.place(arrays["counterfactual"]), outputs.place(arrays["outputs"])),
        factual_outputs=arrays["factual_outputs"],
        map=Map(
            steps=_steps(arrays, outputs),
            motion=Motion(**record["motion"]),
        ),
        certificate=Certificate.from_dict(record["certificate"]),
        status=Status(**status),
        iterations=tuple(Iteration(*values) for values in record["history"]),
        settings=settings,
    )


def _refuse_rules(codes: Array) -> np.ndarray:
    """Stand in for the rules of a loaded run: functions are not saved, so nothing can obey them."""
    raise SavedRunError(
        "rules: expected the schema's rules, which are functions and were not saved. "
        "Fix: explain the rows again to apply the map."
    )


def _steps(arrays: dict[str, np.ndarray], outputs: Outputs) -> tuple[Step, ...]:
    tables = {
        name.removesuffix("_sizes"): _split(arrays, name.removesuffix("_sizes"))
        for name in arrays
        if name.endswith("_sizes")
    }

    def at(name: str, k: int) -> Array:
        return outputs.place(tables[name][k])

    def has(name: str, k: int) -> bool:
        return name in tables and tables[name][k].shape[0] > 0

    def maps(name: str, k: int) -> MonotoneMaps:
        return MonotoneMaps(
            knots=at(f"{name}_knots", k), displacements=at(f"{name}_displacements", k)
        )

    def edits(k: int) -> Edits:
        return Edits(
            sources=at("edit_sources", k),
            values=at("edit_values", k),
            donors=at("edit_donors", k),
            donor_outputs=at("edit_donor_outputs", k),
        )

    return tuple(
        Step(
            eta=float(eta),
            directions=at("directions", k),
            anchors=maps("anchor", k),
            output_directions=at("output_directions", k),
            wanted=maps("wanted", k) if has("wanted_knots", k) else None,
            edits=edits(k) if has("edit_sources", k) else None,
            sparsity=float(arrays["sparsities"][k]),
        )
        for k, eta in enumerate(arrays["etas"])
    )


def _split(arrays: dict[str, np.ndarray], name: str) -> list[np.ndarray]:
    """One table per step from the tables written one after the other."""
    return np.split(arrays[name], np.cumsum(arrays[f"{name}_sizes"])[:-1])


def _check_fingerprint(outputs: Outputs, arrays: dict[str, np.ndarray], saved: str) -> None:
    """Refuse a model whose outputs on the saved rows are not the saved outputs."""
    probe = arrays["factual"][:FINGERPRINT_ROWS]
    now = to_numpy(outputs.values(outputs.place(probe)))
    then = arrays["factual_outputs"][:FINGERPRINT_ROWS]
    if not same_outputs(now, then, rtol=1e-4, atol=1e-6):
        raise SavedRunError(
            f"model: expected the explained model ({saved}), received {outputs.description}, whose "
            "outputs on the saved rows differ. Fix: pass the model the run was made with."
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _NoModel:
    """Stands in for the model of a run that was loaded without it."""

    columns: int
    probability: bool
    smooth: bool
    description: str

    def place(self, codes: np.ndarray) -> Array:
        return codes

    def precise(self, probe: np.ndarray) -> Outputs:
        return self

    def values(self, codes: Array) -> Array:
        raise SavedRunError(
            "model: expected the explained model, received none. "
            "Fix: load the run with elsewise.load(folder, model=model)."
        )

    def values_and_gradient(self, codes: Array) -> tuple[Array, Array]:
        return self.values(codes), codes
