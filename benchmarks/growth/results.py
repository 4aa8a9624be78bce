"""Reading results: the cells of one kind in order, exponents, ratios."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

__all__ = ["Cell", "asked", "exponent"]

Cell = tuple[dict[str, Any], dict[str, Any]]
"""What was asked, and what was found."""


def asked(results: dict[str, Any], what: str, **wanted: Any) -> list[Cell]:
    """The cells of one kind with these arguments, by number of rows."""
    found = []
    for key, values in results["cells"].items():
        arguments = json.loads(key)
        if arguments["what"] == what and all(arguments.get(k) == v for k, v in wanted.items()):
            found.append((arguments, values))
    return sorted(found, key=lambda cell: (cell[0].get("rows", 0), cell[0].get("directions", 0)))


def exponent(cells: list[Cell], name: str, fewest: int = 10_000) -> float:
    """Slope of log(value) against log(rows), from so many rows on.

    Examples
    --------
    >>> cells = [({"rows": n}, {"seconds": 2e-6 * n**1.1}) for n in (10**4, 10**5, 10**6)]
    >>> round(exponent(cells, "seconds"), 3)
    1.1
    """
    large = [(a["rows"], v[name]) for a, v in cells if a["rows"] >= fewest and name in v]
    rows, values = np.log(np.asarray(large, dtype=float)).T
    return float(np.polyfit(rows, values, 1)[0])
