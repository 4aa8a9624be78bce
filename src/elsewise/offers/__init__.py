"""What every row is offered in one iteration, and what it takes.

Edits change few cells and share most of them: a row's anchor, its factual values, its donor. So
each cell is made, made legal and priced once, and an edit only says which cells it takes. Whole
rows are put together only where they may be cheaper than staying, and the model sees only those.
"""

from elsewise.offers._choice import Choice, choose
from elsewise.offers._edited import edited_rows
from elsewise.offers._in_turn import are_many, steps_in_turn
from elsewise.offers._offers import Now, Offers, legal_rows, side_by_side, stepped_rows

__all__ = [
    "Choice",
    "Now",
    "Offers",
    "are_many",
    "choose",
    "edited_rows",
    "legal_rows",
    "side_by_side",
    "stepped_rows",
    "steps_in_turn",
]
