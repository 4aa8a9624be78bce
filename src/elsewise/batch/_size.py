"""How many rows a certificate justifies, and what more of them would buy."""

from __future__ import annotations

import math

from elsewise.certificate import Certificate, Evidence
from elsewise.explanation import Explanation

PILOT = 2_000
"""Rows of the pilot run that says how many are needed."""
MOST = 40_000
"""At most this many rows are drawn unless more are asked for."""
# Rows are enough when a limit is within this share of its bound, or of its distance without.
PRECISION = 0.05


def rows_wanted(pilot: Certificate) -> int:
    """Rows of both halves with which the limits of a pilot would be precise."""
    wanted = float(pilot.rows)
    for side in (pilot.inputs, pilot.outputs):
        excess = side.at_most - side.estimate
        allowed = PRECISION * (side.estimate if side.bound is None else side.bound)
        if excess > 0:
            wanted = max(wanted, pilot.rows * (excess / allowed) ** 2 if allowed else math.inf)
    return math.ceil(min(2 * wanted, MOST))


def limit_with(side: Evidence, rows: int, more: int) -> float:
    """About the limit that more rows would give: its excess shrinks like 1 / sqrt(rows)."""
    return side.estimate + (side.at_most - side.estimate) * math.sqrt(rows / more)


def what_more_rows_buy(explanation: Explanation, total: int) -> str:
    """Say how many of all rows were used, and what the limits would be with four times as many."""
    certificate, drawn = explanation.certificate, len(explanation.index)
    rows = certificate.rows
    text = f"sample: {drawn:,} of {total:,} rows, drawn at random, {rows:,} of them certified"
    if drawn == total:
        return f"{text}; there are no more"
    more = min(4 * rows, rows * total // drawn)
    limits = " and ".join(
        f"{limit_with(side, rows, more):.4g} ({name}, now {side.at_most:.4g})"
        for name, side in (("inputs", certificate.inputs), ("outputs", certificate.outputs))
    )
    return f"{text}; with {more:,} the limits would be about {limits}"
