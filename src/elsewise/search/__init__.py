"""Which eta, which iterate: the whole search, from the bounds the user gave.

Both bounds: the paper's Algorithm 1, then the feasible iterate with the largest probability.
One bound: eta follows that bound, and the iterate that meets it with the smallest distance on the
other side is chosen. None: the knee of the frontier, the curve of input distance against output
distance. A question (a share, a mean, "at most 0.5" for every row) without a bound on outputs is
answered row by row instead: `fit_question`.
"""

from __future__ import annotations

from elsewise.search._loop import Iteration, State, init, step
from elsewise.search._pareto import knee, knee_reason, monotone_front, pareto_front
from elsewise.search._row_by_row import answer_row_by_row
from elsewise.search._runs import Outcome, Solution, begin, clock, finish, run, trace
from elsewise.search._strategies import iterate, solve

__all__ = [
    "Iteration",
    "Outcome",
    "Solution",
    "State",
    "answer_row_by_row",
    "begin",
    "clock",
    "finish",
    "init",
    "iterate",
    "knee",
    "knee_reason",
    "monotone_front",
    "pareto_front",
    "run",
    "solve",
    "step",
    "trace",
]
