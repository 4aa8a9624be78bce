"""Count how often one step of the search goes from one unit of the package to another.

A unit is a module or package directly under src/elsewise. The trace follows every call and return
while one step of a German Credit search with edits runs. Frames outside the package, and helpers
that every unit uses (arrays, threads, errors, text), count as part of the frame that called them.
Prints the number, and the pairs of units, most frequent first.

    OMP_NUM_THREADS=1 python scripts/trace_step.py
"""

from __future__ import annotations

import argparse
import inspect
import pkgutil
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

import elsewise as ew

PACKAGE = Path(ew.__file__).parent
FOUNDATIONS = ("_arrays", "_resources", "errors", "text")
"""Helpers that every unit uses: a call of one is no change of place for a reader."""


def step_code() -> CodeType:
    """Return the code of ``step(problem, state)`` in the package `elsewise.search`."""
    home = import_module("elsewise.search")
    for part in pkgutil.iter_modules(home.__path__):
        found = getattr(import_module(f"{home.__name__}.{part.name}"), "step", None)
        if inspect.isfunction(found) and list(inspect.signature(found).parameters)[1:] == ["state"]:
            return found.__code__
    raise SystemExit("elsewise.search has no function step(problem, state)")


class Place(NamedTuple):
    """Where the trace is: one frame of the package."""

    frame: FrameType
    unit: str
    room: str
    """The unit, or for a helper of `FOUNDATIONS` the room of its caller."""


class Tracer:
    """A profile function that counts changes of unit while the step with this number runs."""

    def __init__(self, code: CodeType, number: int) -> None:
        self.code, self.number = code, number
        self.pairs: Counter[tuple[str, str]] = Counter()
        """Changes of room: from, to."""
        self.changes = 0
        """Changes of unit, helpers included."""
        self.calls = 0
        self._units: dict[str, str | None] = {}
        self._stack: list[Place] = []

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """Note a call of, or a return from, a function of the package."""
        if event not in ("call", "return"):
            return
        if not self._stack:
            if event == "call" and frame.f_code is self.code:
                self.number -= 1
                if self.number == 0:
                    unit = self._unit(frame) or ""
                    self._stack.append(Place(frame, unit, unit))
        elif event == "return":
            if frame is self._stack[-1].frame:
                left = self._stack.pop()
                if self._stack:
                    self._moved(left, self._stack[-1])
        elif (unit := self._unit(frame)) is not None:
            self.calls += 1
            caller = self._stack[-1]
            entered = Place(frame, unit, caller.room if unit in FOUNDATIONS else unit)
            self._moved(caller, entered)
            self._stack.append(entered)

    def _moved(self, before: Place, after: Place) -> None:
        self.changes += before.unit != after.unit
        if before.room != after.room:
            self.pairs[before.room, after.room] += 1

    def _unit(self, frame: FrameType) -> str | None:
        """Return the unit whose code this is; None outside the package."""
        name = frame.f_code.co_filename
        if name not in self._units:
            path = Path(name)
            inside = path.is_relative_to(PACKAGE)
            self._units[name] = Path(path.relative_to(PACKAGE).parts[0]).stem if inside else None
        return self._units[name]


def search(model: str) -> None:
    """Run a short search on German Credit, whose categories can only be moved by edits."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    data = ew.datasets.german_credit()
    texts = OneHotEncoder(sparse_output=False), make_column_selector(dtype_exclude="number")
    classifier = {
        "logistic": LogisticRegression(),
        "boosting": HistGradientBoostingClassifier(max_depth=3, random_state=0),
    }[model]
    prepare = make_column_transformer(texts, remainder=StandardScaler())
    fitted = make_pipeline(prepare, classifier).fit(data.frame, data.outcome)
    refused = data.frame[fitted.predict_proba(data.frame)[:, 1] > 0.5]
    ew.explain(
        fitted,
        refused,
        target=ew.targets.at_most(0.4),
        schema=ew.Schema.infer(refused, data.frame).freeze("Age", "Sex", "Job", "Purpose"),
        background=data.frame,
        bounds=ew.Bounds(inputs=0.3, outputs=0.1),
        certify="in-sample",
        seed=0,
        settings=ew.Settings(iterations=8, draws=39),
        progress=False,
    )


def main() -> None:
    """Trace one step and print what was counted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", choices=("logistic", "boosting"), default="logistic")
    parser.add_argument("--step", type=int, default=4, help="which step of the search is traced")
    asked = parser.parse_args()
    tracer = Tracer(step_code(), asked.step)
    sys.setprofile(tracer)
    try:
        search(asked.model)
    finally:
        sys.setprofile(None)
    total = sum(tracer.pairs.values())
    print(f"{total} switches between units in step {asked.step}, {asked.model} model")
    print(f"({tracer.changes} with those to helpers and back; {tracer.calls} calls)")
    for (before, after), count in tracer.pairs.most_common():
        print(f"{count:5d}  {before} -> {after}")


if __name__ == "__main__":
    main()
