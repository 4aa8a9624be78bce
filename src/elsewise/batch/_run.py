"""Tasks run by joblib: here, in other processes, or on the cluster it was told of."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Any

import joblib
import numpy as np
from joblib.parallel import get_active_backend
from tqdm.auto import tqdm

from elsewise._explain import explain_request
from elsewise.batch._results import (
    Explanations,
    Failure,
    drop_model,
    dumps_array,
    failure,
    loads_array,
    title,
)
from elsewise.errors import InvalidInput
from elsewise.explanation import Explanation
from elsewise.request import Request

# What requests have in common: packed once, however many requests share it.
SHARED = ("model", "target", "schema", "background")


def run_requests(
    requests: list[Request], parts: tuple[Hashable, ...], jobs: int | None, progress: bool | None
) -> Explanations:
    """Run the requests; the answers are in their order, whichever is done first."""
    _check(requests, parts, jobs)
    calls = _calls(requests, jobs)
    answers: dict[int, Explanation | Failure] = {}
    disable = None if progress is None else not progress
    with tqdm(total=len(requests), desc="elsewise", unit=" requests", disable=disable) as bar:
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
    ordered = tuple(answers[place] for place in range(len(requests)))
    return Explanations(requests=tuple(requests), arrived=ordered, parts=parts)


def _calls(requests: list[Request], jobs: int | None) -> list[Any]:
    """What joblib is to call, once per request."""
    backend, _ = get_active_backend()
    # Within one process nothing has to be pickled, and a model that cannot be is no obstacle.
    if getattr(backend, "supports_sharedmem", False) or joblib.effective_n_jobs(jobs) == 1:
        return [joblib.delayed(_run_in_process)(*numbered) for numbered in enumerate(requests)]
    packed: dict[int, np.ndarray] = {}
    left_behind: dict[str, Any] = dict.fromkeys(SHARED)
    for request in requests:
        for name in SHARED:
            value = getattr(request, name)
            # By identity, since models need not be comparable; the requests keep them alive, so
            # that no id is given out twice.
            if id(value) not in packed:
                packed[id(value)] = dumps_array(value, name)
    return [
        joblib.delayed(_run_in_worker)(
            place,
            replace(request, **left_behind),
            **{name: packed[id(getattr(request, name))] for name in SHARED},
        )
        for place, request in enumerate(requests)
    ]


def _finished(calls: list[Any], jobs: int | None) -> Iterator[tuple[int, Any]]:
    """Yield places and answers as they come, or all at the end where the backend cannot."""
    backend, _ = get_active_backend()
    as_they_come = getattr(backend, "supports_return_generator", False)
    way = "generator_unordered" if as_they_come else "list"
    # Inner threads are limited by joblib (loky) and by Dask: cores / jobs, and one.
    yield from joblib.Parallel(n_jobs=jobs, batch_size=1, return_as=way)(calls)


def _run_in_process(place: int, request: Request) -> tuple[int, Explanation | Failure]:
    """Answer a request in this process."""
    try:
        return place, explain_request(request, progress=False)
    except Exception as error:
        return place, failure(error)


def _run_in_worker(place: int, request: Request, **packed: np.ndarray) -> tuple[int, np.ndarray]:
    """Answer a request in a process of its own: unpack, explain, send back all but the model."""
    try:
        shared = {name: loads_array(content) for name, content in packed.items()}
        explanation = drop_model(explain_request(replace(request, **shared), progress=False))
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


def _check(requests: list[Request], parts: tuple[Hashable, ...], jobs: int | None) -> None:
    others = [type(one).__name__ for one in requests if not isinstance(one, Request)]
    if others or not requests:
        expected, received = "at least one Request", others[0] if others else "none"
        fix = "pass requests, as elsewise.Request(name=..., model=..., rows=..., target=...)"
        raise InvalidInput("requests", expected=expected, received=received, fix=fix)
    titles = [title(parts, request.name) for request in requests]
    twice = next((text for text in titles if titles.count(text) > 1), None)
    if twice is not None:
        expected, received = "names that differ, also as text", f"{twice!r} more than once"
        fix = "rename one of them"
        raise InvalidInput("requests", expected=expected, received=received, fix=fix)
    if jobs is not None and (not isinstance(jobs, int) or jobs == 0):
        expected = "a whole number, -1 for all cores"
        raise InvalidInput("jobs", expected=expected, received=repr(jobs), fix="jobs=2")
