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
        distributed,
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
    from elsewise._frontier import Frontier, frontier
    from elsewise._stability import Stability
    from elsewise.balance import IntervalNarrowing, SetShrinking
    from elsewise.certificate import Certificate
    from elsewise.explanation import Explanation, Status
    from elsewise.features import Schema
    from elsewise.many import (
        Explanations,
        Failure,
        Task,
        explain_groups,
        explain_many,
        explain_sweep,
    )
    from elsewise.problem import Limits, Problem
    from elsewise.saving import load
    from elsewise.search import Outcome, iterate
    from elsewise.settings import Settings

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "Explanation",
    "Explanations",
    "Failure",
    "Frontier",
    "IntervalNarrowing",
    "Limits",
    "Outcome",
    "Problem",
    "Schema",
    "SetShrinking",
    "Settings",
    "Stability",
    "Status",
    "Task",
    "baselines",
    "datasets",
    "distributed",
    "explain",
    "explain_groups",
    "explain_many",
    "explain_sweep",
    "features",
    "frontier",
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
    "Frontier": "_frontier",
    "Stability": "_stability",
    "frontier": "_frontier",
    "Explanations": "many",
    "Failure": "many",
    "IntervalNarrowing": "balance",
    "Limits": "problem",
    "Outcome": "search",
    "Problem": "problem",
    "Schema": "features",
    "SetShrinking": "balance",
    "Settings": "settings",
    "Status": "explanation",
    "Task": "many",
    "explain": "_explain",
    "explain_groups": "many",
    "explain_many": "many",
    "explain_sweep": "many",
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
