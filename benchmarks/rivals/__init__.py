"""The methods, measures and limits of the paper that no user of the library needs.

`ares` and `globe_ce` are written here from their papers; `dice` runs the dice-ml package. Each
takes a model and rows, looks for counterfactual rows whose output reaches a threshold, and returns
an explanation, so that the same measures, pictures and reports work on all.
"""

from __future__ import annotations

from benchmarks.rivals.ares import Ares, AresRule, AresSettings, ares
from benchmarks.rivals.dice import Dice, DiceSettings, dice
from benchmarks.rivals.globe_ce import GlobeCE, GlobeSettings, globe_ce

__all__ = [
    "Ares",
    "AresRule",
    "AresSettings",
    "Dice",
    "DiceSettings",
    "GlobeCE",
    "GlobeSettings",
    "ares",
    "dice",
    "globe_ce",
]
