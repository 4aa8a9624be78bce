"""Other methods, as explanations: the same measures, pictures and reports work on all.

`dice` runs the dice-ml package; `given` takes rows that any other method made.
"""

from __future__ import annotations

from elsewise.baselines._common import Rival
from elsewise.baselines._dice import Dice, DiceSettings, dice
from elsewise.baselines._given import given

__all__ = ["Dice", "DiceSettings", "Rival", "dice", "given"]
