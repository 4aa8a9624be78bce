"""Built-in data: frames with their outcome, schema, source, licence and known harms."""

from __future__ import annotations

from elsewise.datasets._dataset import Dataset
from elsewise.datasets._german_credit import german_credit

__all__ = ["Dataset", "german_credit"]
