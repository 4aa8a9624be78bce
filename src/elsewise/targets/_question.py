"""What a target asks in its own unit: a set of outputs, a share of rows in it, or a mean."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from elsewise.errors import InvalidInput, from_mapping
from elsewise.targets._rowwise import Constant, Derived
from elsewise.targets._wanted import Wanted

if TYPE_CHECKING:
    from elsewise.targets import Target
    from elsewise.targets._shares import ResolvedShare


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is to be reached, by which rows that arrive are counted."""

    kind: str
    """"every", "share" or "mean"."""
    wanted: Wanted | None = None
    """The outputs that rows are to enter; None for a mean."""
    share: float = 1.0
    """The share of rows that is to be among them."""
    falling: bool = False
    """Whether the user's number is to fall: a share of the other outputs, or a mean."""
    mean: float = 0.0
    """The mean asked for, or how far it is to move."""
    relative: bool = False
    """Whether ``mean`` is a difference from the factual mean."""
    subject: str = ""
    """What is counted, in words."""
    one_way: bool = True
    """Whether rows that have more than was asked are left alone."""

    @property
    def asked(self) -> float:
        """What was asked for, in the user's unit."""
        if self.kind == "mean":
            return self.mean
        return 1.0 - self.share if self.falling else self.share

    def said(self, share: float) -> float:
        """Return a share of arrived rows as the user counts them."""
        return 1.0 - share if self.falling and self.kind == "share" else share

    def to_dict(self) -> dict[str, Any]:
        """Return the question as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Question:
        """Return the question that `to_dict` described."""
        wanted = saved["wanted"]
        known = None if wanted is None else from_mapping(Wanted, wanted, "question.wanted")
        return from_mapping(cls, {**saved, "wanted": known}, "question")


def question_of(target: Target, columns: int) -> Question | None:
    """Return what a target asks of a model with that many outputs; None for a distribution.

    Examples
    --------
    >>> from elsewise.targets import at_most
    >>> question_of(at_most(0.5), 1).wanted.upper
    (0.5,)
    """
    if isinstance(target, Derived) and target.kind == "share":
        resolved = cast("ResolvedShare", target)
        share, wanted = resolved.share, resolved.share.wanted(columns)
        if share.direction == "every":
            return Question(kind="every", wanted=wanted, subject=f"every row {share.passing}")
        return Question(
            kind="share",
            wanted=wanted.opposite() if resolved.falling else wanted,
            share=1.0 - share.value if resolved.falling else share.value,
            falling=resolved.falling,
            subject=share.passing,
            one_way=share.direction != "to",
        )
    if isinstance(target, Constant) and target.tolerance is not None:
        level = np.broadcast_to(target.level, (columns,))
        anything = np.isnan(level)
        lower = tuple(np.where(anything, -np.inf, level - target.tolerance).tolist())
        upper = tuple(np.where(anything, np.inf, level + target.tolerance).tolist())
        return Question(
            kind="every", wanted=Wanted(lower=lower, upper=upper), subject=target.describe()
        )
    if not isinstance(target, Derived):
        return None
    if target.kind in ("at_least", "at_most"):
        ends = tuple(np.broadcast_to(target.level, (columns,)).tolist())
        wanted = Wanted(lower=ends) if target.kind == "at_least" else Wanted(upper=ends)
        return Question(kind="every", wanted=wanted, subject=target.describe().partition(",")[0])
    if target.kind in ("mean", "shift") and columns == 1:
        relative = target.kind == "shift"
        amount = float(np.ravel(target.level if relative else target.about)[0])
        return Question(
            kind="mean",
            mean=float(np.ravel(target.level)[0]),
            relative=relative,
            falling=amount < 0.0,
            subject="mean output" + (" moved by" if relative else ""),
        )
    return None


def check_levels(target: Target, support: tuple[float, float] | None, probability: bool) -> None:
    """Refuse a number that no output of the model can have.

    Parameters
    ----------
    support
        The ends that no output can leave; None where they are not known.
    probability
        Whether outputs are probabilities, which people like to give in per cent.
    """
    if support is None or not isinstance(target, Constant | Derived):
        return
    if isinstance(target, Derived) and target.kind in ("shift", "scale"):
        return
    if isinstance(target, Constant) and target.tolerance is None:
        return  # a distance to any value can be made small
    low, high = support
    for level in np.ravel(target.level):
        if np.isnan(level) or np.isinf(level) or low <= level <= high:
            continue
        percent = probability and 2.0 <= level <= 100.0
        expected = f"a number the outputs can have, from {low:g} to {high:g}"
        fix = f"did you mean {level / 100:.3g}" if percent else "give it in the model's unit"
        raise InvalidInput("target", expected=expected, received=target.name, fix=fix)
