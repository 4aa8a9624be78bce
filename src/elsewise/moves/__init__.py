"""One row step: what every row is offered in one iteration, and which offer it takes.

`move` is the one way in: it takes a `MoveContext` (the question, the recorded step, the rows) and
returns `Moved`. Offers come from slopes (`_steps`) and from edits (`_edits`, `_edit_offers`);
`_choose` takes the cheapest for each row, `_in_turn` does so with less memory for many rows.

A question without a bound on outputs has no steps: `find_ways` searches each row by itself
(`_menu`, `_ground`, `_ways`, `_slope_ways`, `_question_map`), and `take_ways` says which rows take
the way that was found.
"""

from __future__ import annotations

from elsewise.moves._choose import Choice, choose
from elsewise.moves._costs import Aim, View, input_costs, output_costs, row_costs
from elsewise.moves._edit_offers import edited_rows
from elsewise.moves._edits import (
    Edits,
    EditScores,
    Source,
    Unit,
    draw_edits,
    draw_step_edits,
    revert_edits,
    units,
    update_scores,
)
from elsewise.moves._in_turn import steps_in_turn, worth_taking_in_turn
from elsewise.moves._menu import Menu
from elsewise.moves._offers import Offers, legal_rows, side_by_side, stepped_rows
from elsewise.moves._question_map import (
    SPARSE,
    QuestionMap,
    Ways,
    find_ways,
    merged_ways,
    prepare,
    take_ways,
)
from elsewise.moves._row_step import move, start
from elsewise.moves._step import Motion, MoveContext, Moved, Rows, Step
from elsewise.moves._steps import (
    SMOOTH_OFFERS,
    descent_step,
    gauss_newton_steps,
    link_steps,
    on_grid,
    row_noise,
    smooth_steps,
)

__all__ = [
    "SMOOTH_OFFERS",
    "SPARSE",
    "Aim",
    "Choice",
    "EditScores",
    "Edits",
    "Menu",
    "Motion",
    "MoveContext",
    "Moved",
    "Offers",
    "QuestionMap",
    "Rows",
    "Source",
    "Step",
    "Unit",
    "View",
    "Ways",
    "choose",
    "descent_step",
    "draw_edits",
    "draw_step_edits",
    "edited_rows",
    "find_ways",
    "gauss_newton_steps",
    "input_costs",
    "legal_rows",
    "link_steps",
    "merged_ways",
    "move",
    "on_grid",
    "output_costs",
    "prepare",
    "revert_edits",
    "row_costs",
    "row_noise",
    "side_by_side",
    "smooth_steps",
    "start",
    "stepped_rows",
    "steps_in_turn",
    "take_ways",
    "units",
    "update_scores",
    "worth_taking_in_turn",
]
