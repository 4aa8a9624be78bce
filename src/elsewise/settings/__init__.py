"""How a search is run, and how eta is chosen at each iteration."""

from __future__ import annotations

from elsewise.settings._balance import IntervalNarrowing, SetShrinking, balance_gaps
from elsewise.settings._settings import Balance, Fixed, Settings

__all__ = ["Balance", "Fixed", "IntervalNarrowing", "SetShrinking", "Settings", "balance_gaps"]
