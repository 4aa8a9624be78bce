"""German Credit: a frame with its outcome, schema, source, licence and known harms.

It travels with the package, for the examples and for trying things out.
"""

from __future__ import annotations

from elsewise.datasets._dataset import Dataset
from elsewise.datasets._german_credit import german_credit

__all__ = ["Dataset", "german_credit"]
