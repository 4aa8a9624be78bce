"""How a search is run: a record that is checked when it is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from elsewise._resources import Resources, parse_memory
from elsewise.errors import Check, check_fields
from elsewise.settings._balance import IntervalNarrowing

# Rows that a fit needs at most: its limit is then within about a hundredth of its distance.
FIT_ROWS = 20_000
# Standard deviation of the start noise in the paper's experiments.
PAPER_NOISE = 0.01
FIX = "see ew.Settings"
COUNT = Check(lambda count: count >= 1, "a whole number, at least 1", FIX)
MANY = Check(
    lambda count: 1 <= count <= 10**7, "a whole number, at least 1, at most 10,000,000", FIX
)
POSITIVE = Check(lambda number: number > 0, "a number > 0", FIX)
AT_LEAST_0 = Check(lambda number: number >= 0, "a number >= 0", FIX)
FINITE = Check(lambda number: 0 <= number < inf, "a number >= 0", FIX)
CHECKS = {
    "step": Check(lambda step: step in ("proposals", "gradient"), "'proposals' or 'gradient'", FIX),
    "iterations": COUNT,
    "epsilon": AT_LEAST_0,
    "seconds": POSITIVE,
    "directions": MANY,
    "draws": MANY,
    "tau": POSITIVE,
    "noise": AT_LEAST_0,
    "population_weight": Check(lambda share: 0 <= share <= 1, "a number in [0, 1]", FIX),
    "slack": FINITE,
    # A window wider than any number of rows is the same as all rows.
    "smoothing": Check(lambda width: 0 <= width <= 1e6, "a number from 0 to 1,000,000", FIX),
    "edits": MANY,
    "fit_rows": Check(lambda rows: rows >= 20, "a whole number, at least 20", FIX),
    "threads": COUNT,
}


class Balance(Protocol):
    """Anything that chooses eta from the room left on each side."""

    def choose(self, gap_inputs: float, gap_outputs: float) -> tuple[float, Balance]:
        """Return eta and the balance to use next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """The same eta at every iteration."""

    eta: float

    def choose(self, gap_inputs: float, gap_outputs: float) -> tuple[float, Fixed]:
        """Return eta, whatever the gaps."""
        return self.eta, self


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the search is run; the defaults are meant to be left alone."""

    step: str = "proposals"
    """"proposals" (propose legal rows, keep the best) or "gradient" (the paper's own step)."""
    balance: Balance = field(default_factory=IntervalNarrowing)
    """How eta is chosen when both limits are given."""
    iterations: int = 60
    """At most this many iterations for one choice of eta, or in all when both limits are given.
    With one limit eta changes at every iteration: the search ends when nothing improves, after at
    most four times as many."""
    epsilon: float = 0.02
    """Stop when rows move less than this (root mean square, in standard deviations of a row)."""
    seconds: float | None = None
    """Time budget of the whole answer, binding the model included: after three quarters of it the
    search ends with the best so far, and the certificate has the rest."""
    directions: int = 64
    """At least this many directions, in complete orthonormal blocks."""
    draws: int = 999
    """Bootstrap draws of the certificate."""
    tau: float = 1.0
    """Step size of the gradient step."""
    noise: float | None = None
    """Noise added to the start; None: 0.01 for the gradient step, none for proposals."""
    population_weight: float = 0.5
    """Share of the input cost that is the population's distance; the rest is each row's own move,
    so that no row moves only to make up for others. The paper's cost, and that of its gradient
    step, is 1."""
    smoothing: float = 1.0
    """Window of the recorded maps in units of sqrt(n) ranks; 0 records every pair."""
    slack: float = 0.05
    """What fewer changes may cost, as a share of a row's move (root scale); 0: nothing. Under a
    bound on outputs, tables of more than 256 free columns are left as they are."""
    sparse: bool = False
    """As few changes as possible, whatever they cost: the extreme of ``slack``."""
    redraw: bool = True
    """Draw new directions at every iteration, so that none is over-fitted; False: the paper's."""
    edits: int | None = None
    """Edits offered to every row at every iteration; None: 60 for 50 rows, 30 for many."""
    fit_rows: int = FIT_ROWS
    """With a held-out certificate, at most this many rows, drawn at random, are fitted to; the map
    is then applied to all rows."""
    threads: int | None = None
    """Threads over directions and rows; None: ELSEWISE_THREADS or OMP_NUM_THREADS if set, else all
    cores. Results do not depend on it."""
    memory: int | float | str | None = None
    """Bytes, or a text such as "2GB", for the arrays made on the way; None: 2 GiB. Results do not
    depend on it."""

    def __post_init__(self) -> None:
        check_fields(self, "settings", CHECKS)
        if self.memory is not None:
            parse_memory(self.memory)

    @property
    def resources(self) -> Resources:
        """What the search may use of the machine."""
        return Resources.of(self.threads, self.memory)

    @property
    def start_noise(self) -> float:
        """Noise of the start: what was asked for, or what goes with the step."""
        usual = PAPER_NOISE if self.step == "gradient" else 0.0
        return usual if self.noise is None else self.noise
