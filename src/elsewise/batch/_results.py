"""Many answers: by name, in one table, on one page."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from elsewise._arrays import changed_cells, to_numpy
from elsewise._storage import write_text
from elsewise.explanation import Explanation
from elsewise.models import bind_for_search, settled
from elsewise.request import Request


def rebind_model(explanation: Explanation, model: Any) -> Explanation:
    """Return a detached explanation with its model, bound as it was for the search."""
    problem = explanation.problem
    bound = bind_for_search(model, explanation.encoder, to_numpy(problem.factual))
    outputs, precise = settled(bound, explanation.factual_outputs)
    problem = replace(problem, outputs=outputs, precise=precise)
    return replace(explanation, model=model, problem=problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a request has no explanation; text, because not every exception can travel."""

    error: str
    """Kind and message of the exception."""
    traceback: str
    """Where it was raised."""


def title(parts: tuple[Hashable, ...], name: Hashable) -> str:
    """Return a name as text.

    Examples
    --------
    >>> title(("region", "year"), ("north", 2024)), title(("name",), "north")
    ('region=north, year=2024', 'north')
    """
    if parts == ("name",):
        return str(name)
    values = name if isinstance(name, tuple) and len(parts) > 1 else (name,)
    return ", ".join(f"{part}={value}" for part, value in zip(parts, values, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Explanations(Mapping[Hashable, Explanation]):
    """Explanations by name, the failures beside them, and one table of all."""

    requests: tuple[Request, ...]
    """What was asked, in order."""
    arrived: tuple[Explanation | Failure, ...]
    """What came of each, as it came: what another process found has no model yet."""
    parts: tuple[Hashable, ...]
    """What the parts of a name are called: the names of the table's index."""
    _complete: dict[Hashable, Explanation] = field(default_factory=dict, init=False)
    """Those that were looked at, with their model: binding it to every group's columns takes time
    that nobody has while workers wait."""

    def __getitem__(self, name: Hashable) -> Explanation:
        if name not in self._complete:
            request, answer = {pair[0].name: pair for pair in self._pairs()}[name]
            if isinstance(answer, Failure):
                raise KeyError(f"{name!r} failed: {answer.error}")
            bound = answer.model is not None
            self._complete[name] = answer if bound else rebind_model(answer, request.model)
        return self._complete[name]

    def __contains__(self, name: object) -> bool:
        return name in set(self)

    def __iter__(self) -> Iterator[Hashable]:
        return (request.name for request, one in self._pairs() if isinstance(one, Explanation))

    def __len__(self) -> int:
        return sum(isinstance(answer, Explanation) for answer in self.arrived)

    @property
    def failures(self) -> dict[Hashable, Failure]:
        """The failures by name."""
        return {request.name: one for request, one in self._pairs() if isinstance(one, Failure)}

    @property
    def table(self) -> pd.DataFrame:
        """One row per request: its size, seed, status and distances, or its error.

        ``asked``, ``before``, ``reached`` and its one-sided ``limit`` are the number that the
        question is about, in its own unit; ``confidence`` is the level of each limit by itself.
        ``inputs`` and ``outputs`` are estimated distances; ``inputs_limit`` and ``outputs_limit``
        their upper limits (the distances themselves where the rows are all of the population);
        ``mean_before`` and ``mean_after`` the mean of the output asked about;
        ``rows_changed`` a share.
        """
        names: list[Any] = [request.name for request in self.requests]
        index: pd.Index[Any]
        if len(self.parts) > 1:
            index = pd.MultiIndex.from_tuples(names, names=list(self.parts))
        else:
            index = pd.Index(names, name=self.parts[0], tupleize_cols=False)
        lines = [
            {"rows": len(request.rows), "seed": request.seed} | _findings(answer)
            for request, answer in self._pairs()
        ]
        return pd.DataFrame(lines, index=index, columns=list(COLUMNS))

    def report(self, path: str | Path, **options: Any) -> Path:
        """Write one page that compares them; options as in `elsewise.report.render_comparison`."""
        from elsewise import report as reports

        titled = {title(self.parts, name): explanation for name, explanation in self.items()}
        return write_text(reports.render_comparison(titled, **options), path)

    def _pairs(self) -> Iterator[tuple[Request, Explanation | Failure]]:
        return zip(self.requests, self.arrived, strict=True)

    def __repr__(self) -> str:
        fine = sum(isinstance(answer, Explanation) and answer.ok for answer in self.arrived)
        counts = f"{len(self.requests)} requests, {fine} as asked for, {len(self.failures)} failed"
        return f"<Explanations: {counts}>"


COLUMNS = (
    *("rows", "seed", "status", "ok", "certificate", "confidence"),
    *("asked", "before", "reached", "limit"),
    *("inputs", "inputs_limit", "outputs", "outputs_limit"),
    *("mean_before", "mean_after", "rows_changed", "error"),
)


def _findings(answer: Explanation | Failure) -> dict[str, Any]:
    if isinstance(answer, Failure):
        return {"status": "failed", "ok": False, "certificate": "none", "error": answer.error}
    certificate, reached = answer.certificate, answer.certificate.reached
    sides = certificate.sides.items()
    changed = changed_cells(to_numpy(answer.problem.factual), to_numpy(answer.rows.codes))
    return {
        "status": answer.status.verdict.value,
        "ok": answer.ok,
        "certificate": certificate.kind.value,
        "confidence": answer.problem.bounds.confidence,
        **{name: getattr(reached, name, None) for name in ("asked", "before", "reached", "limit")},
        **{name: side.estimate for name, side in sides},
        **{f"{name}_limit": side.at_most for name, side in sides},
        "mean_before": float(answer.factual_outputs[:, answer.main_output].mean()),
        "mean_after": float(answer.outputs[:, answer.main_output].mean()),
        "rows_changed": float(changed.any(axis=1).mean()),
        "error": "",
    }
