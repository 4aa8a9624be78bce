"""Many explanations at once, in processes or on a cluster, and rows held by Dask."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from elsewise.batch._many import explain_groups, explain_many, explain_sweep
from elsewise.batch._results import Explanations, Failure

__all__ = ["Explanations", "Failure", "explain_groups", "explain_many", "explain_sweep"]


def __getattr__(name: str) -> Any:
    """Import the functions for Dask the first time they are asked for."""
    if name == "dask":
        return import_module("elsewise.batch.dask")
    raise AttributeError(f"module 'elsewise.batch' has no attribute {name!r}")
