"""Many explanations at once, in processes or on a cluster, and rows held by Dask."""

from __future__ import annotations

from elsewise.batch import dask
from elsewise.batch._many import explain_groups, explain_many, explain_sweep
from elsewise.batch._results import Explanations, Failure

__all__ = ["Explanations", "Failure", "dask", "explain_groups", "explain_many", "explain_sweep"]
