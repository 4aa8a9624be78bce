"""Other methods, as explanations: the same measures, pictures and reports work on all.

`dice` runs the dice-ml package; `ares` and `globe_ce` are written here from their papers. Each
takes a model and rows and looks for counterfactual rows whose output reaches a threshold. `given`
takes rows that any other method made.
"""

from __future__ import annotations

from elsewise.baselines._ares import Ares, AresRule, AresSettings, ares
from elsewise.baselines._common import Rival
from elsewise.baselines._dice import Dice, DiceSettings, dice
from elsewise.baselines._given import given
from elsewise.baselines._globe_ce import GlobeCE, GlobeSettings, globe_ce

__all__ = [
    "Ares",
    "AresRule",
    "AresSettings",
    "Dice",
    "DiceSettings",
    "GlobeCE",
    "GlobeSettings",
    "Rival",
    "ares",
    "dice",
    "given",
    "globe_ce",
]
