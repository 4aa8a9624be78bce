"""Targets that say something about rows: a sample of them, or each one by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from elsewise._arrays import Array, asarray_like, namespace
from elsewise.errors import InvalidInput
from elsewise.targets._checks import Level, columns_of, text


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """Outputs distributed as a sample.

    Parameters
    ----------
    values : ndarray (m, K)
        The rows of outputs to match, float64.
    kind : str
        "sample" or "group": how it was asked for.
    exact : bool
        Whether the values are the target themselves, and no draws from a larger population.
    """

    values: np.ndarray
    kind: str = "sample"
    exact: bool = False

    @property
    def name(self) -> str:
        """How the target was asked for."""
        return f"{self.kind}({self.values.shape[0]} rows{', exact' if self.exact else ''})"

    @property
    def columns(self) -> int:
        """Number of output columns the target fits."""
        return int(self.values.shape[1])

    def describe(self) -> str:
        """Return the target in words."""
        return f"outputs distributed as a {self.kind} of {self.values.shape[0]} rows"

    def to_dict(self) -> dict[str, Any]:
        """Return the target as JSON values."""
        values = self.values.tolist()
        return {"kind": self.kind, "arguments": [values, True] if self.exact else [values]}


_RULES: dict[str, Callable[[Any, Array, Array, Array], Array]] = {
    "at_least": lambda xp, outputs, level, about: xp.maximum(outputs, level),
    "at_most": lambda xp, outputs, level, about: xp.minimum(outputs, level),
    "shift": lambda xp, outputs, level, about: outputs + level,
    "mean": lambda xp, outputs, level, about: outputs + about,
    # NaN marks a column that does not matter: there every row wants the output it has.
    "constant": lambda xp, outputs, level, about: xp.where(
        xp.isnan(level), outputs, xp.zeros_like(outputs) + level
    ),
    # In this form a factor of 1 changes no bit of the output.
    "scale": lambda xp, outputs, level, about: level * outputs + (1.0 - level) * about,
}

_WORDS = {
    "at_least": "every output at least {level}, those above as they are",
    "at_most": "every output at most {level}, those below as they are",
    "shift": "every output moved by {level}",
    "mean": "a mean output of {level}",
    "scale": "every output's distance from {about} multiplied by {level}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A function of each row's own factual output.

    Parameters
    ----------
    kind : str
        "at_least", "at_most", "shift", "mean", "scale" or "constant".
    level : float or tuple (K,)
        The bound, the amount, the factor or the output, for all columns or column by column.
    about : float or tuple (K,)
        The output that "scale" leaves in place; how far a "mean" has to move, once `resolve` knows.
    """

    kind: str
    level: Level
    about: Level = 0.0

    @property
    def name(self) -> str:
        """How the target was asked for."""
        about = f", about={text(self.about)}" if self.kind == "scale" else ""
        return f"{self.kind}({text(self.level)}{about})"

    @property
    def columns(self) -> int | None:
        """Number of output columns the target fits, None for any."""
        return columns_of(self.level) or columns_of(self.about)

    def of(self, outputs: Array) -> Array:
        """Return the wanted outputs (n, K) of rows with these factual outputs (n, K)."""
        if outputs.ndim != 2 or self.columns not in (None, outputs.shape[1]):
            raise InvalidInput(
                "outputs",
                expected=f"an array (n, {self.columns or 'K'}) for {self.name}",
                received=f"shape {tuple(outputs.shape)}",
                fix="give the target one value per output column",
            )
        level, about = asarray_like(self.level, outputs), asarray_like(self.about, outputs)
        return _RULES[self.kind](namespace(outputs), outputs, level, about)

    def shortfall(self, outputs: Array) -> Array | None:
        """Return how far outputs are from what is asked, (n,); None where no end is asked for."""
        if self.kind not in ("at_least", "at_most"):
            return None
        xp = namespace(outputs)
        return xp.max(xp.abs(self.of(outputs) - outputs), axis=-1)

    def describe(self) -> str:
        """Return the target in words."""
        return _WORDS[self.kind].format(level=text(self.level), about=text(self.about))

    def to_dict(self) -> dict[str, Any]:
        """Return the target as JSON values."""
        about = [self.about] if self.kind in ("scale", "mean") else []
        return {"kind": self.kind, "arguments": [_saved(self.level), *about]}


def _saved(level: Level) -> Any:
    """Return a level as JSON values; None for the columns nobody cares about."""
    if not isinstance(level, tuple):
        return level
    return [value if np.isfinite(value) else None for value in level]


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Derived):
    """The same output for every row; NaN for columns nobody cares about.

    Parameters
    ----------
    tolerance : float, optional
        How far an output may be from it and still count as equal.
    """

    kind: str = "constant"
    tolerance: float | None = None

    @property
    def name(self) -> str:
        """How the target was asked for."""
        more = "" if self.tolerance is None else f", tolerance={text(self.tolerance)}"
        return f"constant({text(self.level)}{more})"

    def describe(self) -> str:
        """Return the target in words."""
        within = "" if self.tolerance is None else f" within {text(self.tolerance)}"
        return f"every output equal to {text(self.level)}{within}"

    def to_dict(self) -> dict[str, Any]:
        """Return the target as JSON values."""
        return {"kind": "constant", "arguments": [_saved(self.level), self.tolerance]}
