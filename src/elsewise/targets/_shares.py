"""A share of the rows past a cut-off: "60 % approved"."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from elsewise._arrays import Array, namespace, to_numpy
from elsewise.errors import InvalidInput
from elsewise.targets._rowwise import Derived
from elsewise.text import percent


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share of the rows past a cut-off, before the rows are known; made by ``share``.

    Parameters
    ----------
    value : float
        The share asked for, in (0, 1].
    of : int or str, optional
        Of several outputs, the column of the class; of one, a name for what passes the cut-off.
    cutoff : float
        The output that counts as passing, where there is one.
    margin : float
        How far past the cut-off rows are asked to go.
    """

    value: float
    of: int | str | None = None
    cutoff: float = 0.5
    margin: float = 0.05

    @property
    def name(self) -> str:
        """How the target was asked for."""
        if isinstance(self.of, str):
            return f"share({self.of}={self.value:g})"
        return f"share({self.value:g}" + (")" if self.of is None else f", of={self.of})")

    def describe(self) -> str:
        """Return the target in words."""
        if isinstance(self.of, int):
            what = f"with class {self.of} the most likely"
        else:
            what = f"{self.of or 'past the cut-off'} (output at least {self.cutoff:g})"
        return f"at least {percent(self.value, exact=True)} of rows {what}, the others as they are"

    def resolved(self, outputs: Array) -> ResolvedShare:
        """Return the target row by row, for a population with these factual outputs (n, K).

        As many rows as the share needs are asked to pass, those nearest to it first; rows with
        equal outputs are asked together. The others keep their output.

        Examples
        --------
        >>> outputs = np.array([[0.1], [0.3], [0.4], [0.9]])
        >>> Share(value=0.5, margin=0.0).resolved(outputs).of(outputs).T
        array([[0.1, 0.3, 0.5, 0.9]])
        """
        lead = np.sort(to_numpy(self.lead(outputs)))[::-1]
        # A share that is a whole number of rows asks for no row more, in spite of rounding.
        last = lead[ceil(self.value * lead.size - 1e-9) - 1]
        lower = lead[lead < last]
        # Halfway to the next row: the last bit of an output cannot decide who is asked.
        threshold = (last + lower[0]) / 2 if lower.size else last - 1.0
        return ResolvedShare(level=self.cutoff, share=self, threshold=min(float(threshold), 0.0))

    def lead(self, outputs: Array) -> Array:
        """Return how far each row (n,) is past the cut-off, or its class ahead of the next best."""
        xp = namespace(outputs)
        column = self.column(outputs.shape[1])
        if column is None:
            return outputs[:, 0] - self.cutoff
        rest = xp.where(is_column(outputs, column), xp.full_like(outputs, -np.inf), outputs)
        return outputs[:, column] - xp.max(rest, axis=-1)

    def column(self, count: int) -> int | None:
        """Return the column of the class among ``count`` outputs; None where there is one."""
        if count == 1:
            return None
        if not isinstance(self.of, int) or not 0 <= self.of < count:
            raise InvalidInput(
                "of",
                expected=f"the column of a class, 0 to {count - 1}, for a model of {count} outputs",
                received=repr(self.of),
                fix="share(0.6, of=2), or explain one class: estimator(model, output=label)",
            )
        return self.of


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedShare(Derived):
    """A share of known rows past a cut-off, as a function of each row's own output.

    Parameters
    ----------
    share : Share
        What was asked for.
    threshold : float
        Rows that fall short of passing, but by no more than this number <= 0, are asked to pass.
    """

    kind: str = "share"
    share: Share
    threshold: float

    @property
    def name(self) -> str:
        """How the target was asked for."""
        return self.share.name

    def of(self, outputs: Array) -> Array:
        """Return the wanted outputs (n, K) of rows with these factual outputs (n, K)."""
        xp = namespace(outputs)
        share, column = self.share, self.share.column(outputs.shape[1])
        lead = share.lead(outputs)
        asked = (lead >= self.threshold) & (lead < 0.0)
        if column is None:
            wanted = xp.full_like(outputs, share.cutoff + share.margin)
        else:
            # The mixture with certainty of the class at which it leads by the margin.
            part = xp.where(asked, (share.margin - lead) / (1.0 - lead), xp.zeros_like(lead))
            certain = xp.astype(is_column(outputs, column), outputs.dtype)
            wanted = outputs + part[:, None] * (certain - outputs)
        return xp.where(asked[:, None], wanted, outputs)

    def describe(self) -> str:
        """Return the target in words."""
        return self.share.describe()

    def to_dict(self) -> dict[str, Any]:
        """Return the target as JSON values."""
        share = self.share
        asked = [share.value, share.of, share.cutoff, share.margin]
        return {"kind": "share", "arguments": [*asked, self.threshold]}


def is_column(outputs: Array, column: int) -> Array:
    """Return a boolean array (1, K): which output is the class."""
    xp = namespace(outputs)
    return xp.cumulative_sum(xp.ones_like(outputs[:1, ...]), axis=-1) == column + 1
