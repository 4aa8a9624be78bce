"""What the user asks: checked, or refused with the remedy, and turned into a problem in codes.

`ask` is the one way in. `Bounds` says how far each side may be, `Problem` is the question as the
search sees it, `Population` the rows before they move, `halve` the split into rows to fit to and
rows to certify on.
"""

from __future__ import annotations

from elsewise.request._ask import Asked, ask, check_seed
from elsewise.request._bounds import Bounds, Kind, Verdict
from elsewise.request._halve import CERTIFIED_ROWS, halve, repeated_rows
from elsewise.request._pose import pose
from elsewise.request._problem import (
    Population,
    Problem,
    broken_rows,
    derived_seed,
    generator,
    populate,
)
from elsewise.request._request import Request

__all__ = [
    "CERTIFIED_ROWS",
    "Asked",
    "Bounds",
    "Kind",
    "Population",
    "Problem",
    "Request",
    "Verdict",
    "ask",
    "broken_rows",
    "check_seed",
    "derived_seed",
    "generator",
    "halve",
    "populate",
    "pose",
    "repeated_rows",
]
