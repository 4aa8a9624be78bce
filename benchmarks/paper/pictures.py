"""How pictures are kept: small, without a date, so that the same run gives the same file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

__all__ = ["plt", "save"]

DPI = 80


def save(figure: Any, path: Path, **options: Any) -> None:
    """Write a figure as PNG and close it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI, metadata={"Software": None}, **options)
    plt.close(figure)
