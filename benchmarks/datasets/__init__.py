"""The paper's data beside German Credit: HELOC, COMPAS and cardio.

They are downloaded on first use from a pinned address, checked against their sha256 and kept in a
cache; the environment variable ``ELSEWISE_DATA`` names a local folder to read instead.
"""

from __future__ import annotations

from benchmarks.datasets._cardio import cardio
from benchmarks.datasets._compas import compas
from benchmarks.datasets._heloc import heloc

__all__ = ["cardio", "compas", "heloc"]
