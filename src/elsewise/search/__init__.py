"""Which eta, which iterate: the whole search, from the limits the user gave.

Both limits: the paper's Algorithm 1, then the feasible iterate with the largest probability.
One limit: eta follows that bound, and the iterate that meets it with the smallest distance on the
other side is chosen. None: the knee of the frontier, the curve of input distance against output
distance.
"""

from elsewise.search._cases import iterate, solve
from elsewise.search._outcome import Outcome, Solution
from elsewise.search._running import clock, finish
from elsewise.search._shorter import shortened
from elsewise.search._sweeps import sweep, trace

__all__ = [
    "Outcome",
    "Solution",
    "clock",
    "finish",
    "iterate",
    "shortened",
    "solve",
    "sweep",
    "trace",
]
