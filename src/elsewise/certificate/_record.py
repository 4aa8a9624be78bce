"""The records: one side of a certificate, and both together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from elsewise.certificate._readouts import Readout
from elsewise.certificate._wording import certificate_lines, not_claimed, side_advice
from elsewise.errors import from_mapping
from elsewise.request import Kind, Verdict

__all__ = ["Certificate", "Evidence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One side of the certificate; distances on the root scale."""

    estimate: float
    """Trimmed distance of the samples."""
    untrimmed: float
    """The same with nothing left out."""
    upper_limit: float | None
    """One-sided upper limit at the side's level; None where the rows are the population."""
    bound: float | None
    """What was asked for; None: as small as possible."""
    probability: float | None
    """Largest level at which the limit is under the bound; None without a bound or a limit."""
    method: str
    assumption: str
    """One sentence: what has to be true for the limit to hold."""
    directions: int
    """Number of directions, none of which the optimizer used."""
    debiased: float | None = None
    """The distance less what sampling adds to it; known only where the limit misses the bound."""
    rows_needed: int | None = None
    """About how many rows would bring the limit under the bound; None where none are needed, or
    no number of them would do."""
    notice: str = ""
    """Why the limit may be too small; nothing if there is no reason."""

    @property
    def at_most(self) -> float:
        """What is compared with the bound: the upper limit, or the distance where it is exact."""
        return self.estimate if self.upper_limit is None else self.upper_limit

    @property
    def met(self) -> bool:
        """Whether the upper limit, or the exact distance, is within the bound."""
        return self.bound is None or self.at_most <= self.bound

    @property
    def advice(self) -> str:
        """What would help where the bound is missed; nothing where it is met."""
        return side_advice(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Both sides, and what they say together."""

    inputs: Evidence
    outputs: Evidence
    kind: Kind
    confidence: float | None
    """Joint level of the two upper limits; None where the rows are the population."""
    trim: float
    rows: int
    """Number of rows behind both sides."""
    readouts: tuple[Readout, ...] = ()
    """Mean output and share past a cut-off, before and after, each with its own interval."""

    @property
    def met(self) -> bool:
        """Whether every given bound is met."""
        return self.inputs.met and self.outputs.met

    @property
    def verdict(self) -> Verdict:
        """What the certificate comes to."""
        sides = (self.inputs, self.outputs)
        if all(side.bound is None for side in sides):
            return Verdict.NOT_ASKED
        if self.met:
            return Verdict.MET
        hopeful = all(side.met or side.rows_needed is not None for side in sides)
        return Verdict.NOT_CERTIFIABLE if hopeful else Verdict.NOT_MET

    @property
    def probability(self) -> float | None:
        """The paper's P: the smaller attained level of the bounded sides."""
        levels = [p for p in (self.inputs.probability, self.outputs.probability) if p is not None]
        return min(levels) if levels else None

    @property
    def joint_probability(self) -> float | None:
        """Level at which both bounds hold together, by Bonferroni; None unless both are given."""
        first, second = self.inputs.probability, self.outputs.probability
        return None if first is None or second is None else max(0.0, first + second - 1.0)

    @property
    def rows_needed(self) -> int | None:
        """About how many rows to explain would do, the half that is fitted to included.

        None where the bounds are met, or where no number of rows would do.
        """
        needed = [s.rows_needed for s in (self.inputs, self.outputs) if s.rows_needed is not None]
        if self.verdict is not Verdict.NOT_CERTIFIABLE:
            return None
        return max(needed) * (2 if self.kind is Kind.HELD_OUT else 1)

    @property
    def not_claimed(self) -> tuple[str, ...]:
        """What the certificate does not say, each in a sentence."""
        return not_claimed(self)

    @property
    def notices(self) -> tuple[str, ...]:
        """Why a limit may be too small, side by side; empty if there is no reason."""
        sides = (("inputs", self.inputs), ("outputs", self.outputs))
        return tuple(f"{name}: {side.notice}" for name, side in sides if side.notice)

    def to_dict(self) -> dict[str, Any]:
        """Return every number and sentence as JSON values; `from_dict` reads it back."""
        found = asdict(self)
        for name, side in (("inputs", self.inputs), ("outputs", self.outputs)):
            found[name] |= {"met": side.met, "advice": side.advice}
        return {
            **found,
            "kind": self.kind.value,
            "readouts": list(found["readouts"]),
            "verdict": self.verdict.value,
            "met": self.met,
            "probability": self.probability,
            "joint_probability": self.joint_probability,
            "not_claimed": list(self.not_claimed),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Certificate:
        """Return the certificate that `to_dict` wrote."""
        given = {field.name: content[field.name] for field in fields(cls)}
        sides = {
            name: {field.name: given[name][field.name] for field in fields(Evidence)}
            for name in ("inputs", "outputs")
        }
        return from_mapping(cls, given | sides, "certificate")

    def _repr_html_(self) -> str:
        from elsewise.report._notebook import certificate_html

        return certificate_html(self)

    def __str__(self) -> str:
        return "\n".join(certificate_lines(self))
