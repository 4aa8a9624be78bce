"""Data: frames with their outcome, schema, source, licence and known harms.

German Credit travels with the package. The others are downloaded on first use from a pinned
address, checked against their sha256 and kept in a cache; the environment variable
``ELSEWISE_DATA`` names a local folder to read instead.
"""

from __future__ import annotations

from elsewise.datasets._cardio import cardio
from elsewise.datasets._compas import compas
from elsewise.datasets._dataset import Dataset
from elsewise.datasets._german_credit import german_credit
from elsewise.datasets._heloc import heloc

__all__ = ["Dataset", "cardio", "compas", "german_credit", "heloc"]
