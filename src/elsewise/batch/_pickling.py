"""What goes to another process and comes back: parcels, and explanations without their model."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import cloudpickle
import numpy as np

from elsewise._arrays import to_numpy
from elsewise.errors import InvalidInput
from elsewise.explanation import Explanation
from elsewise.models import bind_for_search, settled


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
        raise InvalidInput(
            argument,
            expected="something that can be pickled, to travel to the workers",
            received=f"{type(value).__name__} ({type(error).__name__}: {error})",
            fix="use jobs=1, or joblib.parallel_config(backend='threading')",
        ) from error
    return np.frombuffer(content, dtype=np.uint8)


def loads_array(content: np.ndarray) -> Any:
    """Return what a parcel holds, its own copy of it."""
    return pickle.loads(content.tobytes())


def drop_model(explanation: Explanation) -> Explanation:
    """Return the explanation without the model bound to its codes, which can be bound again."""
    nothing: Any = None
    problem = replace(explanation.problem, outputs=nothing, precise=nothing)
    return replace(explanation, problem=problem)


def rebind_model(explanation: Explanation, model: Any) -> Explanation:
    """Return a detached explanation with its model, bound as it was for the search."""
    problem = explanation.problem
    bound = bind_for_search(model, explanation.encoder, to_numpy(problem.factual))
    outputs, precise = settled(bound, explanation.factual_outputs)
    problem = replace(problem, outputs=outputs, precise=precise)
    return replace(explanation, model=model, problem=problem)
