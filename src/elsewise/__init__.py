"""What would have to be different about a population for a model's outcomes to look as wanted.

>>> import elsewise as ew
>>> ew.Limits(inputs=0.2, outputs=0.1).confidence
0.95
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elsewise import (
        baselines,
        datasets,
        features,
        insight,
        metrics,
        models,
        plots,
        report,
        targets,
        transport,
    )
    from elsewise._explain import explain
    from elsewise.balance import IntervalNarrowing, SetShrinking
    from elsewise.certificate import Certificate
    from elsewise.explanation import Explanation, Status
    from elsewise.features import Schema
    from elsewise.problem import Limits, Problem
    from elsewise.saving import load
    from elsewise.search import Outcome, iterate
    from elsewise.solver import Settings

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "Explanation",
    "IntervalNarrowing",
    "Limits",
    "Outcome",
    "Problem",
    "Schema",
    "SetShrinking",
    "Settings",
    "Status",
    "baselines",
    "datasets",
    "explain",
    "features",
    "insight",
    "iterate",
    "load",
    "metrics",
    "models",
    "plots",
    "report",
    "targets",
    "transport",
]

_HOME = {
    "Certificate": "certificate",
    "Explanation": "explanation",
    "IntervalNarrowing": "balance",
    "Limits": "problem",
    "Outcome": "search",
    "Problem": "problem",
    "Schema": "features",
    "SetShrinking": "balance",
    "Settings": "solver",
    "Status": "explanation",
    "explain": "_explain",
    "iterate": "search",
    "load": "saving",
}


def __getattr__(name: str) -> Any:
    """Import a public name the first time it is asked for (PEP 562)."""
    if name in _HOME:
        return getattr(import_module(f"elsewise.{_HOME[name]}"), name)
    if name in __all__:
        return import_module(f"elsewise.{name}")
    raise AttributeError(f"module 'elsewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
