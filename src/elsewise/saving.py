"""Explanations on disk: a folder of one JSON file and one npz file, versioned, without pickle.

A folder appears whole or not at all: it is written beside its place and renamed into it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from elsewise import targets
from elsewise._arrays import LARGEST, Array, to_numpy
from elsewise._storage import (
    damaged,
    folder_in_place,
    path_of,
    read_arrays,
    read_json,
    write_arrays,
)
from elsewise.certificate import Certificate
from elsewise.errors import InvalidInput, SavedRunError, checked, from_mapping
from elsewise.explanation import Explanation, Status
from elsewise.features import Encoder, pack_index, unpack_index
from elsewise.maps import Map
from elsewise.models import Outputs, bind_for_search, same_outputs, settled
from elsewise.moves import Edits, Menu, Motion, QuestionMap, Rows, Source, Step
from elsewise.request import Bounds, Problem, check_seed
from elsewise.search import Iteration
from elsewise.settings import Fixed, IntervalNarrowing, SetShrinking, Settings
from elsewise.transport import MonotoneMaps, directions_like, pack_directions, unpack_directions

__all__ = ["load", "save"]

FORMAT = 2
RECORD, ARRAYS = "explanation.json", "arrays.npz"
# Files of a run and of its exports; any other file in a run's folder is the user's.
OWN = (
    RECORD,
    ARRAYS,
    *("command.json", "report.html", "explore.html", "summary.json", "explanation.xlsx"),
    *(f"counterfactual.{ending}" for ending in ("csv", "json", "parquet")),
    *("changes.csv", "certificate.csv"),
)
# A model is compared on this many of the saved rows at most, spread evenly.
FINGERPRINT_ROWS = 20_000
# The records of a step by the first word of their arrays' names in the file.
STEP_PARTS: dict[str, tuple[str, Any]] = {
    "anchor": ("anchors", MonotoneMaps),
    "wanted": ("wanted", MonotoneMaps),
    "edit": ("edits", Edits),
}
# What is kept of the outputs, besides their description.
OUTPUTS = ("columns", "probability", "smooth")
BALANCES = {kind.__name__: kind for kind in (IntervalNarrowing, SetShrinking, Fixed)}


def save(explanation: Explanation, folder: str | Path) -> Path:
    """Write an explanation to ``folder``, replacing an earlier saved run but nothing else."""
    arrays = _arrays(explanation)
    record = json.dumps(_record(explanation, arrays), indent=1, allow_nan=True)
    with folder_in_place(folder, OWN) as fresh:
        (fresh / RECORD).write_text(record, encoding="utf-8")
        write_arrays(fresh / ARRAYS, arrays)
    return Path(folder)


def load(
    folder: str | Path, model: Any = None, rules: Mapping[str, Callable[[Any], Any]] | None = None
) -> Explanation:
    """Read a saved explanation.

    Parameters
    ----------
    folder
        What `Explanation.save` wrote.
    model
        The explained model, needed for `apply`; refused if its outputs on the saved rows differ
        from the saved ones. Without it the explanation can be looked at.
    rules
        The rules and derived columns that are functions, by name: files hold only texts. Without
        them the explanation can be looked at, too.
    """
    return _rebuild(_read(path_of(folder)), model, rules or {})


class _Saved(NamedTuple):
    """What a folder holds; it may be anybody's."""

    place: Path
    record: dict[str, Any]
    arrays: dict[str, np.ndarray]

    def part(self, name: str, read: Callable[[Any], Any]) -> Any:
        """Read a field of the record."""
        with damaged(self.place, f"is damaged in {RECORD}, {name!r}"):
            return read(self.record[name])

    def part_of(self, name: str, kind: Any, **more: Any) -> Any:
        """Read a field of the record that is a dataclass."""
        return self.part(name, lambda content: from_mapping(kind, {**content, **more}, name))


def _read(place: Path) -> _Saved:
    try:
        record, arrays = read_json(place / RECORD), read_arrays(place / ARRAYS)
    except FileNotFoundError as error:
        said = f"expected a saved run ({RECORD} and {ARRAYS}), received none"
        fix = "pass the folder that Explanation.save wrote"
        raise SavedRunError(f"{place}: {said}. Fix: {fix}.") from error
    fix = "save it again"
    if not isinstance(record, dict) or "format" not in record:
        said = f"expected the record of a saved run in {RECORD}, received something else"
    elif record["format"] != FORMAT or isinstance(record["format"], bool):
        said = f"expected format {FORMAT}, received {record['format']!r}"
        fix = f"load it with elsewise {record.get('elsewise', 'of its time')}"
    # Against accidents, such as an edited file: whoever writes both can make the hashes fit, so
    # that everything else is checked all the same.
    elif record.get("hashes") != {"arrays": _digest(arrays), "settings": _settings_digest(record)}:
        said = "the files were changed after they were saved"
    else:
        return _Saved(place, record, arrays)
    raise SavedRunError(f"{place}: {said}. Fix: {fix}.")


def _record(explanation: Explanation, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    problem, settings, recorded = explanation.problem, explanation.settings, explanation.map
    balance, kind, status = settings.balance, type(settings.balance).__name__, explanation.status
    if kind not in BALANCES:
        expected = f"one that a file can name: {', '.join(BALANCES)}"
        fix = "save what you need of the answer, such as explanation.counterfactual"
        raise InvalidInput("settings.balance", expected=expected, received=kind, fix=fix)
    question_map = None
    if isinstance(recorded, QuestionMap):
        question = dataclasses.asdict(recorded.question)
        question_map = _fields(recorded, "menu") | {"question": question}
    content = {
        "format": FORMAT,
        "elsewise": version("elsewise"),
        "model": problem.outputs.description,
        "outputs": {name: getattr(problem.outputs, name) for name in OUTPUTS},
        "encoder": explanation.encoder.to_dict(),
        "index": pack_index(explanation.index),
        "target": problem.target.to_dict(),
        "bounds": dataclasses.asdict(problem.bounds),
        "unit": problem.unit,
        "seed": problem.seed,
        "settings": _fields(settings, "balance") | {"balance": {"kind": kind} | _fields(balance)},
        "motion": dataclasses.asdict(recorded.motion),
        "question map": question_map,
        "status": {**_fields(status), "verdict": status.verdict.value},
        "certificate": explanation.certificate.to_dict(),
        "history": [list(iteration) for iteration in explanation.iterations],
    }
    return content | {"hashes": {"arrays": _digest(arrays), "settings": _settings_digest(content)}}


def _fields(record: Any, but: str = "") -> dict[str, Any]:
    """The fields of a dataclass as they are, all but one."""
    names = [field.name for field in dataclasses.fields(record)]
    return {name: getattr(record, name) for name in names if name != but}


def _question_map(saved: dict[str, Any], arrays: dict[str, np.ndarray]) -> QuestionMap:
    """The numbers and the menu of a question answered row by row."""
    menu = Menu(**{f.name: arrays[f"menu_{f.name}"] for f in dataclasses.fields(Menu)})
    menu.check(arrays["factual"].shape[1])
    recorded = from_mapping(QuestionMap, {**saved, "menu": menu}, "question map")
    if recorded.question.wanted is not None:
        recorded.question.wanted.check(arrays["outputs"].shape[1])
    return recorded


def _arrays(explanation: Explanation) -> dict[str, np.ndarray]:
    steps = explanation.map.steps
    arrays = {
        "factual": to_numpy(explanation.problem.factual),
        "background": to_numpy(explanation.problem.background),
        "counterfactual": to_numpy(explanation.rows.codes),
        "outputs": explanation.outputs,
        "factual_outputs": explanation.factual_outputs,
        "etas": np.array([step.eta for step in steps]),
        "sparsities": np.array([step.sparsity for step in steps]),
    }
    if isinstance(explanation.map, QuestionMap):
        menu = _fields(explanation.map.menu)
        arrays |= {f"menu_{name}": values for name, values in menu.items()}
    if explanation.problem.clusters is not None:
        arrays["clusters"] = explanation.problem.clusters
    tables = [_tables(step) for step in steps]
    for name in tables[0] if tables else ():
        given = [table[name] for table in tables]
        if any(values is not None for values in given):
            arrays[name] = np.concatenate([to_numpy(v) for v in given if v is not None])
            arrays[f"{name}_sizes"] = np.array([0 if v is None else v.shape[0] for v in given])
    return arrays


def _tables(step: Step) -> dict[str, Array]:
    """Every array of a step by its name in the file; None where the step has none."""
    found = {
        "directions": pack_directions(step.directions),
        "output_directions": step.output_directions,
    }
    for name, (part, kind) in STEP_PARTS.items():
        for field in dataclasses.fields(kind):
            found[f"{name}_{field.name}"] = getattr(getattr(step, part), field.name, None)
    return found


def _digest(arrays: dict[str, np.ndarray]) -> str:
    """Hash of names, shapes and bytes: what the run was computed from and what it found."""
    digest = hashlib.sha256()
    # Sorted, because the order of arrays in a file is no part of what they say.
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.shape}{array.dtype.str}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _settings_digest(record: dict[str, Any]) -> str:
    """Hash of everything in the record but the hashes: settings, limits, target, findings."""
    content = {name: value for name, value in record.items() if name != "hashes"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _rebuild(saved: _Saved, model: Any, rules: Mapping[str, Callable[[Any], Any]]) -> Explanation:
    arrays, part, part_of = saved.arrays, saved.part, saved.part_of
    encoder: Encoder = part("encoder", Encoder.from_dict)
    model_name = part("model", str)
    outputs: Outputs = part_of("outputs", _NoModel, description=model_name)
    index = part("index", unpack_index)
    with damaged(saved.place, f"is damaged in {ARRAYS}"):
        # Runs of older versions have neither a background, for which the rows do, nor clusters.
        arrays = {"background": arrays["factual"], "clusters": np.empty(0, dtype=int)} | arrays
        _check_arrays(arrays, encoder, (len(index), outputs.columns))
    encoder = encoder.keep_given(arrays["factual"])
    encoder, precise = replace(encoder, schema=encoder.schema.with_functions(rules)), outputs
    if model is not None:
        # Bound as it was for the search, so that the same rows give the same bits.
        bound = bind_for_search(model, encoder, arrays["factual"])
        outputs, precise = settled(bound, arrays["factual_outputs"])
        _check_fingerprint(outputs, arrays, model_name)
    factual = outputs.place(arrays["factual"])
    embedding = encoder.schema.embedding()
    with damaged(saved.place, f"is damaged in {ARRAYS}, steps"):
        steps = _steps(arrays, outputs)
        for step in steps:
            _check_step(step, (embedding.size, len(encoder.columns), outputs.columns))
    stepped = Map(steps=steps, motion=part_of("motion", Motion))
    factual_outputs = outputs.place(arrays["factual_outputs"])
    problem = Problem(
        factual=factual,
        factual_outputs=factual_outputs,
        precise_outputs=factual_outputs,
        schema=encoder.schema,
        embedding=embedding.like(factual),
        outputs=outputs,
        precise=precise,
        target=part("target", targets.from_dict),
        background=outputs.place(arrays["background"]),
        obeys=encoder.obeys if encoder.restricted else None,
        bounds=part_of("bounds", Bounds),
        unit=part("unit", _positive) if "unit" in saved.record else 1.0,
        seed=part("seed", check_seed),
        clusters=arrays["clusters"] if arrays["clusters"].size else None,
    )
    return Explanation(
        problem=problem,
        model=model,
        encoder=encoder,
        index=index,
        rows=Rows(outputs.place(arrays["counterfactual"]), outputs.place(arrays["outputs"])),
        factual_outputs=arrays["factual_outputs"],
        map=part("question map", lambda found: found and _question_map(found, arrays)) or stepped,
        certificate=part("certificate", Certificate.from_dict),
        status=part_of("status", Status),
        iterations=part("history", lambda rows: checked("history", rows, tuple[Iteration, ...])),
        settings=part("settings", _settings),
    )


def _settings(content: dict[str, Any]) -> Settings:
    balance = dict(content["balance"])
    kind = BALANCES[balance.pop("kind")]
    known = from_mapping(kind, balance, "settings.balance")
    return from_mapping(Settings, {**content, "balance": known}, "settings")


def _positive(value: Any) -> float:
    if not isinstance(value, int | float) or not LARGEST**-2 <= value <= LARGEST:
        raise ValueError(f"expected a number above 0 that can be squared, received {value!r}")
    return value


def _check_arrays(arrays: dict[str, np.ndarray], encoder: Encoder, shape: tuple[int, int]) -> None:
    """Refuse arrays that are not those of the rows, columns and outputs of the record."""
    rows, outputs = shape
    for name in ("factual", "counterfactual"):
        _check_table(arrays[name], (rows, len(encoder.columns)), "f", holes=True)
        encoder.check_codes(arrays[name])
    for name in ("outputs", "factual_outputs"):
        _check_table(arrays[name], (rows, outputs), "f")
    given, clusters = arrays["background"], arrays["clusters"]
    _check_table(given, (len(given), len(encoder.columns)), "f", holes=True)
    # Where cells are missing that no explained row lacks, those of a row stand in.
    encoder.check_codes(np.where(np.isnan(given), arrays["factual"][:1], given))
    if clusters.size:
        _check_table(clusters[:, None], (rows, 1), "i")
        if not 0 <= clusters.min() <= clusters.max() < rows:
            raise ValueError("clusters that are not numbered")


def _check_table(
    table: Array, shape: tuple[int, int], kinds: str = "fi", *, holes: bool = False
) -> None:
    """Refuse a table of another shape or type, or with numbers that are missing or too large."""
    if tuple(table.shape) != shape:
        raise ValueError(f"a table of shape {tuple(table.shape)} instead of {shape}")
    # Directions of very many coordinates are sparse; what they hold is checked all the same.
    values = table.data if sparse.issparse(table) else to_numpy(table)
    if values.dtype.kind not in kinds:
        raise ValueError(f"a table of {values.dtype}")
    if not np.all((np.abs(values) <= LARGEST) | (holes & np.isnan(values))):
        raise ValueError("a table of numbers that are not finite, or too large")


def _check_step(step: Step, sizes: tuple[int, int, int]) -> None:
    """Refuse a step whose tables do not fit the embedding (d), the columns (p) and outputs (K)."""
    size, columns, outputs = sizes
    count, several = step.directions.shape[1], step.output_directions.shape[1]
    _check_table(step.directions, (size, count))
    _check_table(step.output_directions, (outputs, several))
    for maps, rows in ((step.anchors, count), (step.wanted, several)):
        if maps is not None:
            for table in (maps.knots, maps.displacements):
                _check_table(table, (rows, maps.knots.shape[1]))
            if np.any(np.diff(to_numpy(maps.knots)) < 0):
                raise ValueError("knots that do not rise")
    if (edits := step.edits) is not None:
        many, donors = len(edits.sources), len(edits.donors)
        _check_table(edits.sources, (many, columns), "i")
        _check_table(edits.values, (many, columns), holes=True)
        _check_table(edits.donors, (donors, columns), holes=True)
        _check_table(edits.donor_outputs, (donors, outputs))
        if not np.isin(edits.sources, list(Source)).all():
            raise ValueError("edit_sources: no source of this number")
    if not (0.0 <= step.eta <= 1.0 and 0.0 <= step.sparsity < float("inf")):
        raise ValueError("etas or sparsities out of range")


def _steps(arrays: dict[str, np.ndarray], outputs: Outputs) -> tuple[Step, ...]:
    names = [name.removesuffix("_sizes") for name in arrays if name.endswith("_sizes")]
    numbers = arrays["etas"], arrays["sparsities"], *(_split(arrays, name) for name in names)
    return tuple(
        _step(eta, sparsity, dict(zip(names, tables, strict=True)), outputs)
        for eta, sparsity, *tables in zip(*numbers, strict=True)
    )


def _step(eta: float, sparsity: float, tables: dict[str, np.ndarray], outputs: Outputs) -> Step:
    packed = tables.pop("directions")
    # Sources are numbers of a list, which stay on the host.
    placed = {n: t if n == "edit_sources" else outputs.place(t) for n, t in tables.items()}
    parts: dict[str, Any] = {}
    for name, (part, kind) in STEP_PARTS.items():
        fields = [field.name for field in dataclasses.fields(kind)]
        # Where a step has no such part, its first table is empty; anchors it always has.
        empty = not len(placed.get(f"{name}_{fields[0]}", ()))
        given = name == "anchor" or not empty
        parts[part] = kind(**{f: placed[f"{name}_{f}"] for f in fields}) if given else None
    return Step(
        eta=float(eta),
        directions=directions_like(unpack_directions(packed), placed["output_directions"]),
        output_directions=placed["output_directions"],
        sparsity=float(sparsity),
        **parts,
    )


def _split(arrays: dict[str, np.ndarray], name: str) -> list[np.ndarray]:
    """One table per step from the tables written one after the other."""
    sizes = arrays[f"{name}_sizes"]
    if sizes.dtype.kind != "i" or sizes.min(initial=0) < 0 or sizes.sum() != len(arrays[name]):
        raise ValueError(f"{name}_sizes does not fit {name}")
    return np.split(arrays[name], np.cumsum(sizes)[:-1])


def _check_fingerprint(outputs: Outputs, arrays: dict[str, np.ndarray], saved: str) -> None:
    """Refuse a model whose outputs on the saved rows are not the saved outputs."""
    size = len(arrays["factual"])
    # Spread evenly: files are often sorted, and the first rows would be alike.
    some = np.unique(np.linspace(0, size - 1, min(size, FINGERPRINT_ROWS)).astype(int))
    now = to_numpy(outputs.values(outputs.place(arrays["factual"][some])))
    then = arrays["factual_outputs"][some]
    # Looser than rounding, because another machine or version of a library sums in another order.
    if not same_outputs(now, then, rtol=1e-4, atol=1e-6):
        said = f"expected the explained model ({saved}), received {outputs.description}, whose "
        fix = "pass the model the run was made with"
        raise SavedRunError(f"model: {said}outputs on the saved rows differ. Fix: {fix}.")


@dataclasses.dataclass(frozen=True, slots=True)
class _NoModel:
    """Stands in for the model of a run that was loaded without it."""

    description: str
    columns: int
    probability: bool
    smooth: bool

    def place(self, codes: np.ndarray) -> Array:
        return codes

    def precise(self, probe: np.ndarray) -> Outputs:
        return self

    def values(self, codes: Array) -> Array:
        fix = "load the run with elsewise.load(folder, model=model)"
        raise SavedRunError(f"model: expected the explained model, received none. Fix: {fix}.")

    def values_and_gradient(self, codes: Array) -> tuple[Array, Array]:
        return self.values(codes), codes
