"""The records: one side of a certificate, and both together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from elsewise.certificate._numbers import Reached, Readout
from elsewise.certificate._wording import asked_sentence, certificate_lines, not_claimed
from elsewise.confidence import Interval
from elsewise.errors import from_mapping
from elsewise.request import Kind, Verdict
from elsewise.text import figure


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
    target_values: int | None = None
    """Number of values of a sampled target, whose luck the limit counts too; None: there is none.
    """

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
        if self.met:
            return ""
        if self.rows_needed is not None:
            needed = f"needs about n = {self.rows_needed:,} certified"
            return f"not certifiable with these rows: {needed}"
        distance = self.estimate if self.debiased is None else self.debiased
        if self.upper_limit is None:
            return f"the distance itself is {figure(distance)}"
        return (
            f"probably no number of rows will do: the distance itself is about {figure(distance)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Both sides, and what they say together."""

    inputs: Evidence
    outputs: Evidence
    kind: Kind
    confidence: float | None
    """Level of each limit by itself; None where the rows are the population."""
    trim: float
    rows: int
    """Number of rows behind both sides; values of a sampled target come on top."""
    readouts: tuple[Readout, ...] = ()
    """Mean output and share past a cut-off, before and after, each with its own interval."""
    reached: Reached | None = None
    """What the question asked and what was reached; None where a distance was made small."""
    row_move: Interval | None = None
    """Root mean square move of a row in standard deviations, undivided by the dimension: its upper
    limit bounds the unsliced 2-Wasserstein distance of the inputs."""
    moves_bound: float | None = None
    """What was asked of that limit; None: no bound."""
    ended: Verdict | None = None
    """How the search ended, where that says more than the numbers: nothing to do, not found, not
    possible."""

    @property
    def sides(self) -> dict[str, Evidence]:
        """Both sides by their names."""
        return {"inputs": self.inputs, "outputs": self.outputs}

    @property
    def at_most(self) -> dict[str, float]:
        """What is compared with the bounds on inputs, outputs and moves, by their names."""
        found = {name: side.at_most for name, side in self.sides.items()}
        move = self.row_move
        return found if move is None else {**found, "moves": move.at_most}

    @property
    def missed(self) -> str | None:
        """The name of the first bound that is missed; None where none is."""
        moves = self.moves_bound is None or self.at_most["moves"] <= self.moves_bound
        sides = (name for name, side in self.sides.items() if not side.met)
        return next(sides, None if moves else "moves")

    @property
    def met(self) -> bool:
        """Whether every given bound is met, and what was asked is reached."""
        reached = self.reached
        if reached is None or self.missed:
            return not self.missed
        return reached.ok if reached.asked is None else reached.certified

    @property
    def verdict(self) -> Verdict:
        """What the answer comes to; every bound and ask has to hold for "certified"."""
        sides, reached = self.sides.values(), self.reached
        if self.ended is Verdict.NOTHING_TO_DO and (self.met or (reached and reached.ok)):
            return self.ended
        # Neither a question nor a bound: there is nothing that could be missed.
        if reached is None and self.moves_bound is None and all(s.bound is None for s in sides):
            return self.ended or Verdict.DESCRIBED
        if self.met:
            if self.kind is Kind.IN_SAMPLE:
                return Verdict.DESCRIBED
            # That every unseen row arrives cannot be certified from some of them.
            told = reached is not None and reached.asked is None
            return Verdict.REACHED if told and self.kind is Kind.HELD_OUT else Verdict.CERTIFIED
        # Not proven on these rows, but more rows would do.
        hopeful = all(side.met or side.rows_needed is not None for side in sides)
        move, bound = self.row_move, self.moves_bound
        hopeful = hopeful and (move is None or bound is None or move.estimate <= bound)
        if hopeful and (reached is None or reached.ok):
            return Verdict.REACHED
        # How the search ended says why, where it can be said.
        return self.ended or Verdict.NOT_REACHED

    @property
    def probability(self) -> float | None:
        """The paper's P of eq. (3): the smaller attained level of the bounded sides."""
        levels = [p for p in (self.inputs.probability, self.outputs.probability) if p is not None]
        return min(levels) if levels else None

    @property
    def joint_probability(self) -> float | None:
        """Level at which both limits hold at once, by Bonferroni; None unless both have bounds.

        The verdict needs no such correction: all bounds have to hold for it.
        """
        first, second = self.inputs.probability, self.outputs.probability
        return None if first is None or second is None else max(0.0, first + second - 1.0)

    @property
    def rows_needed(self) -> int | None:
        """About how many rows to explain would do, the half that is fitted to included.

        None where the bounds are met, or where no number of rows would do.
        """
        parts = [part for part in (self.inputs, self.outputs, self.reached) if part is not None]
        needed = [part.rows_needed for part in parts if part.rows_needed is not None]
        if self.verdict is not Verdict.REACHED or not needed:
            return None
        return max(needed) * (2 if self.kind is Kind.HELD_OUT else 1)

    @property
    def sentence(self) -> str:
        """What was asked and what was reached, in the question's unit or as distances."""
        return asked_sentence(self)

    @property
    def not_claimed(self) -> tuple[str, ...]:
        """What the certificate does not say, each in a sentence."""
        return not_claimed(self)

    @property
    def notices(self) -> tuple[str, ...]:
        """Why limits or intervals may be too small, one line for those alike; empty if not so."""
        said = [(name, side.notice) for name, side in self.sides.items()]
        said += [(each.name, each.after.notice) for each in self.readouts]
        said += [("move of a row", self.row_move.notice)] if self.row_move else []
        names: dict[str, list[str]] = {}
        for name, notice in said:
            names.setdefault(notice, []).append(name)
        return tuple(f"{', '.join(alike)}: {said}" for said, alike in names.items() if said)

    def to_dict(self) -> dict[str, Any]:
        """Return every number and sentence as JSON values; `from_dict` reads it back."""
        found = asdict(self)
        for name, side in self.sides.items():
            found[name] |= {"met": side.met, "advice": side.advice}
        return {
            **found,
            "kind": self.kind.value,
            "readouts": list(found["readouts"]),
            "reached": None if self.reached is None else self.reached.to_dict(),
            "ended": None if self.ended is None else self.ended.value,
            "verdict": self.verdict.value,
            "sentence": self.sentence,
            "met": self.met,
            "probability": self.probability,
            "joint_probability": self.joint_probability,
            "not_claimed": list(self.not_claimed),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Certificate:
        """Return the certificate that `to_dict` wrote."""
        given = _fields(cls, content)
        for name, kind in (("inputs", Evidence), ("outputs", Evidence), ("reached", Reached)):
            given[name] = given[name] and _fields(kind, given[name])
        return from_mapping(cls, given, "certificate")

    def _repr_html_(self) -> str:
        from elsewise.report._other_pages import certificate_html

        return certificate_html(self)

    def __str__(self) -> str:
        return "\n".join(certificate_lines(self))


def _fields(kind: Any, content: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record without what `Certificate.to_dict` works out from them."""
    return {field.name: content[field.name] for field in fields(kind)}
