"""What would have to be different about a population for a model's outcomes to look as wanted.

>>> import elsewise as ew
>>> ew.Bounds(inputs=0.2, outputs=0.1).confidence
0.95
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elsewise import (
        analysis,
        batch,
        datasets,
        features,
        models,
        plots,
        report,
        targets,
        transport,
    )
    from elsewise._difference import Difference, difference
    from elsewise._explain import explain
    from elsewise.analysis import Frontier, Stability, frontier
    from elsewise.batch import Explanations, Failure, explain_groups, explain_many, explain_sweep
    from elsewise.certificate import Certificate
    from elsewise.cli._versions import show_versions
    from elsewise.explanation import Explanation, Status
    from elsewise.features import Schema
    from elsewise.policy import Policy
    from elsewise.request import Bounds, Problem, Request, Verdict
    from elsewise.saving import load
    from elsewise.search import iterate
    from elsewise.settings import IntervalNarrowing, SetShrinking, Settings

__version__ = "0.1.0"

__all__ = [
    "Bounds",
    "Certificate",
    "Difference",
    "Explanation",
    "Explanations",
    "Failure",
    "Frontier",
    "IntervalNarrowing",
    "Policy",
    "Problem",
    "Request",
    "Schema",
    "SetShrinking",
    "Settings",
    "Stability",
    "Status",
    "Verdict",
    "analysis",
    "batch",
    "datasets",
    "difference",
    "explain",
    "explain_groups",
    "explain_many",
    "explain_sweep",
    "features",
    "frontier",
    "iterate",
    "load",
    "models",
    "plots",
    "report",
    "show_versions",
    "targets",
    "transport",
]

_NAMES = {
    "_difference": ("Difference", "difference"),
    "_explain": ("explain",),
    "analysis": ("Frontier", "Stability", "frontier"),
    "batch": ("Explanations", "Failure", "explain_groups", "explain_many", "explain_sweep"),
    "certificate": ("Certificate",),
    "cli._versions": ("show_versions",),
    "explanation": ("Explanation", "Status"),
    "features": ("Schema",),
    "policy": ("Policy",),
    "request": ("Bounds", "Problem", "Request", "Verdict"),
    "saving": ("load",),
    "search": ("iterate",),
    "settings": ("IntervalNarrowing", "SetShrinking", "Settings"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name the first time it is asked for (PEP 562)."""
    if name in _HOME:
        return getattr(import_module(f"elsewise.{_HOME[name]}"), name)
    if name in __all__:
        return import_module(f"elsewise.{name}")
    raise AttributeError(f"module 'elsewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
