"""Tasks run by joblib: here, in other processes, or on the cluster it was told of."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Any

import joblib
import numpy as np
from joblib.parallel import get_active_backend
from tqdm.auto import tqdm

from elsewise.batch._pickling import drop_model, dumps_array, loads_array
from elsewise.batch._results import Explanations, title
from elsewise.batch._task import Failure, Task, failure
from elsewise.errors import InvalidInput
from elsewise.explanation import Explanation

__all__ = ["run_tasks"]

SHARED = ("model", "target", "schema", "background")
"""What tasks have in common: packed once, however many tasks share it."""


def run_tasks(
    tasks: list[Task], parts: tuple[Hashable, ...], jobs: int | None, progress: bool | None
) -> Explanations:
    """Run the tasks; the answers are in their order, whichever is done first."""
    _check(tasks, parts, jobs)
    calls = _calls(tasks, jobs)
    answers: dict[int, Explanation | Failure] = {}
    disable = None if progress is None else not progress
    with tqdm(total=len(tasks), desc="elsewise", unit=" tasks", disable=disable) as bar:
        try:
            for place, answer in _finished(calls, jobs):
                answers[place] = _decode_result(answer)
                bar.update()
        except Exception:
            # Tasks catch their own errors: a worker died, and took along what waited behind it.
            # One at a time, only what kills a worker fails.
            for place, call in enumerate(calls):
                if place not in answers:
                    answers[place] = _rerun_alone(call, jobs)
                    bar.update()
    ordered = tuple(answers[place] for place in range(len(tasks)))
    return Explanations(tasks=tuple(tasks), arrived=ordered, parts=parts)


def _calls(tasks: list[Task], jobs: int | None) -> list[Any]:
    """What joblib is to call, once per task."""
    backend, _ = get_active_backend()
    if getattr(backend, "supports_sharedmem", False) or joblib.effective_n_jobs(jobs) == 1:
        return [joblib.delayed(_run_in_process)(place, task) for place, task in enumerate(tasks)]
    packed: dict[int, np.ndarray] = {}
    left_behind: dict[str, Any] = dict.fromkeys(SHARED)
    for task in tasks:
        for name in SHARED:
            value = getattr(task, name)
            if id(value) not in packed:
                packed[id(value)] = dumps_array(value, name)
    return [
        joblib.delayed(_run_in_worker)(
            place,
            replace(task, **left_behind),
            **{name: packed[id(getattr(task, name))] for name in SHARED},
        )
        for place, task in enumerate(tasks)
    ]


def _finished(calls: list[Any], jobs: int | None) -> Iterator[tuple[int, Any]]:
    """Yield places and answers as they come, or all at the end where the backend cannot."""
    backend, _ = get_active_backend()
    as_they_come = getattr(backend, "supports_return_generator", False)
    way = "generator_unordered" if as_they_come else "list"
    # Inner threads are limited by joblib (loky) and by Dask: cores / jobs, and one.
    yield from joblib.Parallel(n_jobs=jobs, batch_size=1, return_as=way)(calls)


def _run_in_process(place: int, task: Task) -> tuple[int, Explanation | Failure]:
    """Run a task in this process."""
    try:
        return place, task.run()
    except Exception as error:
        return place, failure(error)


def _run_in_worker(place: int, task: Task, **packed: np.ndarray) -> tuple[int, np.ndarray]:
    """Run a task in a process of its own: unpack, explain, send back all but the model."""
    try:
        shared = {name: loads_array(content) for name, content in packed.items()}
        explanation = drop_model(replace(task, **shared).run())
        return place, dumps_array(replace(explanation, model=None), "explanation")
    except Exception as error:
        return place, dumps_array(failure(error), "failure")


def _decode_result(answer: Any) -> Explanation | Failure:
    """An answer as it is here; one from another process has no model until it is looked at."""
    if not isinstance(answer, np.ndarray):
        return answer  # type: ignore[no-any-return]
    try:
        return loads_array(answer)  # type: ignore[no-any-return]
    except Exception as error:
        return failure(error)


def _rerun_alone(call: Any, jobs: int | None) -> Explanation | Failure:
    """Run what was left over when the workers were lost."""
    try:
        ((_, answer),) = _finished([call], jobs)
    except Exception as error:
        return failure(error)
    return _decode_result(answer)


def _check(tasks: list[Task], parts: tuple[Hashable, ...], jobs: int | None) -> None:
    if not tasks or not all(isinstance(task, Task) for task in tasks):
        raise InvalidInput(
            "tasks",
            expected="at least one Task",
            received=next((type(t).__name__ for t in tasks if not isinstance(t, Task)), "none"),
            fix="pass rows to explain, as elsewise.Task(name=..., model=..., rows=..., target=...)",
        )
    titles = [title(parts, task.name) for task in tasks]
    twice = next((text for text in titles if titles.count(text) > 1), None)
    if twice is not None:
        raise InvalidInput(
            "tasks",
            expected="names that differ, also as text",
            received=f"{twice!r} more than once",
            fix="rename one of them",
        )
    if jobs is not None and (not isinstance(jobs, int) or jobs == 0):
        raise InvalidInput(
            "jobs", expected="a whole number, -1 for all cores", received=repr(jobs), fix="jobs=2"
        )
