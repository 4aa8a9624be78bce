"""One row step: what every row is offered in one iteration, and which offer it takes.

`move` is the one way in: it takes a `MoveContext` (the question, the recorded step, the rows) and
returns `Moved`. A `Stock` draws the edits of a step; `_steps` follows the model's slope; `_offers`
makes both legal and says what their inputs cost; `_choose` takes the cheapest for each row,
`_in_turn` does so with less memory for many rows.

A question without a bound on outputs has no steps: `find_ways` searches each row by itself
(`_menu`, `_row_search`, `_ways`, `_slope_ways`, `_question_map`), and `take_ways` says which rows
take the way that was found.
"""

from __future__ import annotations

from elsewise.moves._edits import Edits, Source, Stock, Unit, units
from elsewise.moves._menu import Menu
from elsewise.moves._question_map import (
    QuestionMap,
    Ways,
    find_ways,
    merged_ways,
    prepare,
    take_ways,
)
from elsewise.moves._row_search import move_prices
from elsewise.moves._row_step import move, start
from elsewise.moves._step import Motion, MoveContext, Rows, Step
from elsewise.moves._steps import row_noise

__all__ = [
    "Edits",
    "Menu",
    "Motion",
    "MoveContext",
    "QuestionMap",
    "Rows",
    "Source",
    "Step",
    "Stock",
    "Unit",
    "Ways",
    "find_ways",
    "merged_ways",
    "move",
    "move_prices",
    "prepare",
    "row_noise",
    "start",
    "take_ways",
    "units",
]
