"""A share of the rows past a cut-off: "60 % approved", "the median at 0.3", "all promoted"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from elsewise._arrays import LARGEST, Array, namespace, to_numpy
from elsewise.errors import Check, InvalidInput, check_fields, share_fix
from elsewise.targets._rowwise import Derived
from elsewise.targets._wanted import Wanted
from elsewise.text import figure, percent

CHECKS = {
    "value": Check(
        lambda share: 0 <= share <= 1,
        "a share in [0, 1]",
        lambda share: share_fix(share, "share(0.6) asks for 60% of rows"),
    ),
    "of": Check(
        lambda of: True,
        "the label or column of a class, or a name",
        "share(0.6, of='promoted') or share(approved=0.6)",
    ),
    "cutoff": Check(lambda end: abs(end) <= LARGEST, "a finite number", "0.5 for probabilities"),
    "margin": Check(lambda margin: 0 <= margin <= LARGEST, "a number >= 0", "leave it out"),
    "direction": Check(
        lambda way: way in ("to", "at_least", "at_most", "every"), "one that is known"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share of the rows past a cut-off, before the rows are known; made by ``share``.

    Parameters
    ----------
    value : float
        The share asked for, in [0, 1].
    of : int or str, optional
        Of several outputs, the column or label of the class; of one, a name for what passes.
    cutoff : float
        The output that counts as passing, where there is one.
    margin : float
        How far past the cut-off rows are asked to go under a bound on the output distance.
    below : bool
        Whether outputs at or below the cut-off are meant, instead of those at or above it.
    direction : str
        "to": the share rises or falls to the value; "at_least", "at_most": it moves that way only;
        "every": all rows are to pass, and the share is told.
    said : str
        How the target was asked for, where not as a share.
    label : str
        What the model calls the class in column ``of``.
    """

    value: float
    of: int | str | None = None
    cutoff: float = 0.5
    margin: float = 0.05
    below: bool = False
    direction: str = "to"
    said: str = ""
    label: str = ""

    def __post_init__(self) -> None:
        check_fields(self, "share", CHECKS)

    @property
    def name(self) -> str:
        """How the target was asked for."""
        if self.said:
            return self.said
        value = f"{self.value:g}" if self.direction == "to" else f"{self.direction}={self.value:g}"
        if isinstance(self.of, str):
            plain = self.direction == "to"
            return f"share({self.of}={value})" if plain else f"share({value}, of={self.of!r})"
        return f"share({value}" + (")" if self.of is None else f", of={self.label or self.of})")

    @property
    def passing(self) -> str:
        """What counts as passing, in words."""
        if isinstance(self.of, int):
            return f"class {self.label or self.of} the most likely"
        way = "at most" if self.below else "at least"
        if self.of is None:
            return f"with an output of {way} {figure(self.cutoff, 6)}"
        return f"{self.of} (output {way} {figure(self.cutoff, 6)})"

    def describe(self) -> str:
        """Return the target in words."""
        if self.direction == "every":
            return f"every row {self.passing}"
        words = {"at_least": "at least ", "at_most": "at most "}.get(self.direction, "")
        rows = f"{percent(self.value, exact=True)} of rows {self.passing}"
        return f"{words}{rows}, the others as they are"

    def labelled(self, labels: Sequence[Any], columns: int) -> Share:
        """Return the share with its class as a column, for a model with these class labels.

        A model of two classes has one output, the probability of the second: the first is the most
        likely where that is at most 0.5.

        Examples
        --------
        >>> Share(value=0.8, of="bad").labelled(["bad", "good"], 1).passing
        'of class bad (output at most 0.5)'
        """
        if len(labels) < 2 or self.of is None:
            return self
        if columns == 1:
            if self.of in labels:
                first = list(labels).index(self.of) == 0
                of, said = f"of class {self.of}", self.said or self.name
                return replace(self, of=of, below=self.below != first, said=said)
            if isinstance(self.of, str):
                return self  # a name for what passes the cut-off
        elif self.of in labels:
            return replace(self, of=list(labels).index(self.of), label=f"{self.of}")
        if columns > 1 and isinstance(self.of, int) and 0 <= self.of < len(labels):
            return replace(self, label=f"{labels[self.of]}")
        expected, fix = f"one of the classes {list(labels)}", f"share(0.6, of={labels[-1]!r})"
        raise InvalidInput("of", expected=expected, received=repr(self.of), fix=fix)

    def resolved(self, outputs: Array, falling: bool | None = None) -> ResolvedShare:
        """Return the target row by row, for a population with these factual outputs (n, K).

        As many rows as the share needs are asked to pass, those nearest to it first; rows with
        equal outputs are asked together. The others keep their output. Whether the share is to fall
        is ``falling``, or what these rows say.

        Examples
        --------
        >>> outputs = np.array([[0.1], [0.3], [0.4], [0.9]])
        >>> Share(value=0.5, margin=0.0).resolved(outputs).of(outputs).T
        array([[0.1, 0.3, 0.5, 0.9]])
        """
        lead = to_numpy(self.lead(outputs))
        if falling is None:
            more = float(np.mean(lead >= 0.0)) > self.value
            falling = self.direction == "at_most" or (self.direction == "to" and more)
        toward = np.sort(_toward(lead, falling))[::-1]
        needed = 1.0 - self.value if falling else self.value
        # A share that is a whole number of rows asks for no row more, in spite of rounding.
        count, threshold = ceil(needed * toward.size - 1e-9), 0.0
        if count:
            last = toward[count - 1]
            lower = toward[toward < last]
            # Halfway to the next row: the last bit of an output cannot decide who is asked.
            threshold = min(float((last + lower[0]) / 2 if lower.size else last - 1.0), 0.0)
        return ResolvedShare(level=self.cutoff, share=self, threshold=threshold, falling=falling)

    def lead(self, outputs: Array) -> Array:
        """Return how far each row (n,) is past the cut-off, or its class ahead of the next best."""
        xp = namespace(outputs)
        column = self.column(outputs.shape[1])
        if column is None:
            return (outputs[:, 0] - self.cutoff) * (-1.0 if self.below else 1.0)
        rest = xp.where(is_column(outputs, column), xp.full_like(outputs, -np.inf), outputs)
        return outputs[:, column] - xp.max(rest, axis=-1)

    def column(self, count: int) -> int | None:
        """Return the column of the class among ``count`` outputs; None where there is one."""
        if count == 1:
            return None
        if not isinstance(self.of, int) or not 0 <= self.of < count:
            expected = f"the column of a class, 0 to {count - 1}, for a model of {count} outputs"
            fix = "share(0.6, of=2), or explain one class: estimator(model, output=label)"
            raise InvalidInput("of", expected=expected, received=repr(self.of), fix=fix)
        return self.of

    def wanted(self, columns: int) -> Wanted:
        """Return the outputs that pass."""
        column = self.column(columns)
        if column is not None:
            return Wanted(column=column)
        return Wanted(upper=(self.cutoff,)) if self.below else Wanted(lower=(self.cutoff,))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedShare(Derived):
    """A share of known rows past a cut-off, as a function of each row's own output.

    Parameters
    ----------
    share : Share
        What was asked for.
    threshold : float
        Rows that fall short of passing, but by no more than this number <= 0, are asked to pass.
    falling : bool
        Whether rows are asked to leave the outputs that pass.
    """

    kind: str = "share"
    share: Share
    threshold: float
    falling: bool = False

    @property
    def name(self) -> str:
        """How the target was asked for."""
        return self.share.name

    def of(self, outputs: Array) -> Array:
        """Return the wanted outputs (n, K) of rows with these factual outputs (n, K)."""
        xp = namespace(outputs)
        share, column = self.share, self.share.column(outputs.shape[1])
        lead = _toward(share.lead(outputs), self.falling)
        asked = (lead >= self.threshold) & (lead < 0.0)
        if column is None:
            sign = -1.0 if share.below != self.falling else 1.0
            wanted = xp.full_like(outputs, share.cutoff + sign * share.margin)
        else:
            # The mixture with certainty of a class at which it leads by the margin.
            # A share p of certainty makes the lead (1 - p) lead + p; the p for which that is the
            # margin.
            apart = 1.0 - xp.where(asked, lead, xp.zeros_like(lead))  # asked: lead < 0
            part = xp.where(asked, (share.margin - lead) / apart, xp.zeros_like(lead))
            own = is_column(outputs, column)
            if self.falling:
                rest = xp.where(own, xp.full_like(outputs, -np.inf), outputs)
                own = rest == xp.max(rest, axis=-1, keepdims=True)
            certain = xp.astype(own, outputs.dtype)
            wanted = outputs + part[:, None] * (certain - outputs)
        return xp.where(asked[:, None], wanted, outputs)

    def shortfall(self, outputs: Array) -> Array:
        """Return how far outputs are from passing, or from no longer passing, (n,)."""
        lead = _toward(self.share.lead(outputs), self.falling)
        return namespace(outputs).clip(-lead, 0.0, None)

    def describe(self) -> str:
        """Return the target in words."""
        return self.share.describe()

    def to_dict(self) -> dict[str, Any]:
        """Return the target as JSON values."""
        return {"kind": "share", "arguments": [asdict(self.share), self.threshold, self.falling]}


def _toward(lead: Array, falling: bool) -> Array:
    """Return how far rows are where they should go; one at the cut-off passes and has to leave."""
    if not falling:
        return lead
    xp = namespace(lead)
    return xp.where(lead == 0.0, xp.full_like(lead, -1e-300), -lead)


def is_column(outputs: Array, column: int) -> Array:
    """Return a boolean array (1, K): which output is the class."""
    xp = namespace(outputs)
    # By counting, which gives a mask of the library and on the device of the outputs.
    return xp.cumulative_sum(xp.ones_like(outputs[:1, ...]), axis=-1) == column + 1
