"""How a search is run, and how the weight eta between inputs and outputs is chosen.

The objective is ``(1 - eta) * Q_x + eta * Q_y``. The gaps say how much room each limit leaves:
``gap_inputs = U_x - limit_x`` and ``gap_outputs = U_y - limit_y``, negative where a limit is
broken (minus infinity where it is infinite). Both strategies of the paper are immutable:
``choose`` returns eta together with the strategy to use at the next iteration.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from elsewise._resources import Resources, parse_memory
from elsewise.errors import Check, InvalidInput, check_fields

__all__ = ["Balance", "Fixed", "IntervalNarrowing", "SetShrinking", "Settings", "balance_gaps"]

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
FINITE = Check(lambda number: 0 <= number < math.inf, "a number >= 0", FIX)
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


def balance_gaps(gap_inputs: float, gap_outputs: float) -> float:
    """Return the weight in [0, 1] that the outputs deserve, given the room left on both sides.

    A side that is the only one to break its limit gets everything. Where both do, the larger
    violation gets more; where neither does, the smaller room gets more.

    Parameters
    ----------
    gap_inputs, gap_outputs : float
        Limit wanted minus limit attained; may be infinite.

    Returns
    -------
    float
        0 looks at the inputs only, 1 at the outputs only.

    References
    ----------
    You et al. (2025), appendix "Optimization of eta", eq. eta_strategy.

    Examples
    --------
    >>> balance_gaps(-0.1, 0.2), balance_gaps(0.1, -0.2)
    (0.0, 1.0)
    >>> balance_gaps(-0.25, -0.75), balance_gaps(0.25, 0.75)
    (0.75, 0.25)
    """
    for name, gap in (("gap_inputs", gap_inputs), ("gap_outputs", gap_outputs)):
        if math.isnan(gap):
            fix = "pass -inf for a limit that could not be computed"
            raise InvalidInput(name, expected="a number or an infinity", received="nan", fix=fix)
    if gap_inputs < 0 and gap_outputs < 0:
        return _share(-gap_outputs, -gap_inputs)
    if gap_inputs < 0:
        return 0.0
    if gap_outputs < 0:
        return 1.0
    return _share(gap_inputs, gap_outputs)


def _share(first: float, second: float) -> float:
    """Return first / (first + second) for non-negative numbers, never 0/0 or infinity/infinity."""
    if first == second:
        return 0.5
    if math.isinf(first):
        return 1.0
    return first / (first + second)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalNarrowing:
    """Eta from an interval that loses the share ``kappa`` of its length at every iteration.

    Parameters
    ----------
    lower, upper : float
        The interval, inside [0, 1].
    kappa : float
        The share lost per iteration, strictly between 0 and 1.

    References
    ----------
    You et al. (2025), algorithm "Interval Narrowing".

    Examples
    --------
    >>> eta, balance = IntervalNarrowing(kappa=0.1).choose(0.3, -0.2)
    >>> eta, balance
    (1.0, IntervalNarrowing(lower=0.1, upper=1.0, kappa=0.1))
    """

    lower: float = 0.0
    upper: float = 1.0
    kappa: float = 0.05

    def __post_init__(self) -> None:
        if not 0 <= self.lower <= self.upper <= 1:
            expected, received = "0 <= lower <= upper <= 1", f"{self.lower}, {self.upper}"
            fix = "IntervalNarrowing() takes the whole interval [0, 1]"
            raise InvalidInput("lower, upper", expected=expected, received=received, fix=fix)
        if not 0 < self.kappa < 1:
            expected = "a number strictly between 0 and 1"
            raise InvalidInput("kappa", expected=expected, received=self.kappa, fix="try 0.05")

    def choose(self, gap_inputs: float, gap_outputs: float) -> tuple[float, IntervalNarrowing]:
        """Return eta and the narrower interval.

        Examples
        --------
        >>> IntervalNarrowing(lower=0.5, kappa=0.5).choose(0.0, 0.0)
        (0.75, IntervalNarrowing(lower=0.5, upper=0.75, kappa=0.5))
        """
        # Line 1: balance the gaps. The clip only absorbs rounding.
        share = balance_gaps(gap_inputs, gap_outputs)
        eta = (1.0 - share) * self.lower + share * self.upper
        eta = min(max(eta, self.lower), self.upper)
        # Lines 2-6: cut the end that eta is farther from.
        cut = self.kappa * (self.upper - self.lower)
        if eta > (self.lower + self.upper) / 2:
            return eta, replace(self, lower=min(self.lower + cut, self.upper))
        return eta, replace(self, upper=max(self.upper - cut, self.lower))


@dataclass(frozen=True, slots=True)
class SetShrinking:
    """Eta from a finite set that loses the element it gave, until one is left.

    Parameters
    ----------
    values : tuple of float
        Candidates in [0, 1]; any iterable, kept sorted. A value that may be used several times
        is listed several times.

    References
    ----------
    You et al. (2025), algorithm "Set Shrinking".

    Examples
    --------
    >>> eta, balance = SetShrinking([0.0, 0.5, 0.5, 1.0]).choose(0.1, 0.1)
    >>> eta, balance
    (0.5, SetShrinking(values=(0.0, 0.5, 1.0)))
    """

    values: Sequence[float]

    def __post_init__(self) -> None:
        values = tuple(sorted(float(value) for value in self.values))
        if not values or not all(0 <= value <= 1 for value in values):
            expected = "at least one number, each in [0, 1]"
            fix = "for example SetShrinking(numpy.linspace(0, 1, 101))"
            raise InvalidInput("values", expected=expected, received=values, fix=fix)
        object.__setattr__(self, "values", values)

    def choose(self, gap_inputs: float, gap_outputs: float) -> tuple[float, SetShrinking]:
        """Return eta, the element nearest to the balanced weight, and the set without it.

        Examples
        --------
        >>> SetShrinking([0.25, 0.75]).choose(0.1, 0.1)
        (0.25, SetShrinking(values=(0.75,)))
        """
        # Line 1: balance the gaps inside the set. The values ascend, so ties give the smaller.
        wish = balance_gaps(gap_inputs, gap_outputs)
        values = tuple(self.values)
        place = min(range(len(values)), key=lambda index: abs(values[index] - wish))
        # Lines 2-4: remove that copy, never the last.
        if len(values) == 1:
            return values[0], self
        return values[place], SetShrinking(values[:place] + values[place + 1 :])


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
    search ends with the best so far, and the certificate has the rest. A call of the model is never
    broken off, and a certificate takes its time where there are many rows."""
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
