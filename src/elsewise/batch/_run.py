"""Tasks run by joblib: here, in other processes, or on the cluster it was told of."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Any

import cloudpickle
import joblib
import numpy as np
from joblib.parallel import get_active_backend
from tqdm.auto import tqdm

from elsewise._explain import explain_request
from elsewise.batch._results import Explanations, Failure, title
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
                answers[place] = answer
                bar.update()
        except Exception:
            # Tasks catch their own errors: a worker died, and took along what waited behind it.
            # One at a time, only what kills a worker fails.
            for place in sorted({*range(len(calls))} - answers.keys()):
                try:
                    ((_, answers[place]),) = _finished([calls[place]], jobs)
                except Exception as error:
                    answers[place] = failure(error)
                bar.update()
    ordered = tuple(answers[place] for place in range(len(requests)))
    return Explanations(requests=tuple(requests), arrived=ordered, parts=parts)


def _calls(requests: list[Request], jobs: int | None) -> list[Any]:
    """What joblib is to call, once per request."""
    backend, _ = get_active_backend()
    # Within one process nothing has to be pickled, and a model that cannot be is no obstacle.
    if getattr(backend, "supports_sharedmem", False) or joblib.effective_n_jobs(jobs) == 1:
        return [joblib.delayed(_answer)(*numbered) for numbered in enumerate(requests)]
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
        joblib.delayed(_answer)(
            place,
            replace(request, **left_behind),
            **{name: packed[id(getattr(request, name))] for name in SHARED},
        )
        for place, request in enumerate(requests)
    ]


def _answer(place: int, request: Request, **packed: np.ndarray) -> tuple[int, Any]:
    """Answer a request; where it comes with packed fields, pack what is found but for the model."""
    try:
        shared = {name: loads_array(content) for name, content in packed.items()}
        found = explain_request(replace(request, **shared) if packed else request, progress=False)
        if not packed:
            return place, found
        return place, dumps_array(replace(drop_model(found), model=None), "explanation")
    except Exception as error:
        return place, failure(error)


def _finished(calls: list[Any], jobs: int | None) -> Iterator[tuple[int, Explanation | Failure]]:
    """Yield places and answers as they come, or all at the end where the backend cannot.

    An answer from another process has no model until it is looked at.
    """
    backend, _ = get_active_backend()
    as_they_come = getattr(backend, "supports_return_generator", False)
    way = "generator_unordered" if as_they_come else "list"
    # Inner threads are limited by joblib (loky) and by Dask: cores / jobs, and one.
    for place, answer in joblib.Parallel(n_jobs=jobs, batch_size=1, return_as=way)(calls):
        try:
            answer = loads_array(answer) if isinstance(answer, np.ndarray) else answer
        except Exception as error:
            answer = failure(error)
        yield place, answer


def dumps_array(value: Any, argument: str) -> np.ndarray:
    """Return a value as bytes, an array uint8 (m,), or refuse it in the name of its argument.

    An array, because joblib maps a large one into the memory of all workers and Dask sends it to
    a worker once, however many tasks share it.

    Examples
    --------
    >>> loads_array(dumps_array(lambda x: x + 1, "model"))(1)
    2
    """
    try:
        content = cloudpickle.dumps(value)
    except Exception as error:  # what pickling raises depends on what is being pickled
        expected = "something that can be pickled, to travel to the workers"
        received = f"{type(value).__name__} ({type(error).__name__}: {error})"
        fix = "use jobs=1, or joblib.parallel_config(backend='threading')"
        raise InvalidInput(argument, expected, received, fix) from error
    return np.frombuffer(content, dtype=np.uint8)


def loads_array(content: np.ndarray) -> Any:
    """Return what a parcel holds, its own copy of it."""
    return pickle.loads(content.tobytes())


def drop_model(explanation: Explanation) -> Explanation:
    """Return the explanation without the model bound to its codes, which can be bound again."""
    nothing: Any = None
    problem = replace(explanation.problem, outputs=nothing, precise=nothing)
    return replace(explanation, problem=problem)


def failure(error: Exception) -> Failure:
    """Return an exception as text.

    Examples
    --------
    >>> failure(ZeroDivisionError("no luck")).error
    'ZeroDivisionError: no luck'
    """
    text = "".join(traceback.format_exception(error))
    return Failure(error=f"{type(error).__name__}: {error}", traceback=text)


def _check(requests: list[Request], parts: tuple[Hashable, ...], jobs: int | None) -> None:
    others = [type(one).__name__ for one in requests if not isinstance(one, Request)]
    if others or not requests:
        fix = "pass requests, as elsewise.Request(name=..., model=..., rows=..., target=...)"
        raise InvalidInput("requests", "at least one Request", others[0] if others else "none", fix)
    titles = [title(parts, request.name) for request in requests]
    twice = next((text for text in titles if titles.count(text) > 1), None)
    if twice is not None:
        expected, received = "names that differ, also as text", f"{twice!r} more than once"
        raise InvalidInput("requests", expected, received, "rename one of them")
    if jobs is not None and (not isinstance(jobs, int) or jobs == 0):
        raise InvalidInput("jobs", "a whole number, -1 for all cores", repr(jobs), "jobs=2")
