"""What a target asks in its own unit: a set of outputs, a share of rows in it, or a mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from elsewise.errors import InvalidInput, share_fix
from elsewise.targets._rowwise import Constant, Derived
from elsewise.targets._wanted import Wanted
from elsewise.text import figure, percent

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
    """What makes a row count, in words, where it is more than one end of one output."""
    passing: str = ""
    """What the user calls rows that count: "approved"."""
    probability: bool = False
    """Whether the outputs are probabilities, which are said in per cent."""
    one_way: bool = True
    """Whether rows that have more than was asked are left alone."""

    @property
    def column(self) -> int:
        """The place of the output that is asked about, the first one where several are.

        Examples
        --------
        >>> Question(kind="every", wanted=Wanted(column=2)).column
        2
        >>> Question(kind="every", wanted=Wanted(upper=(np.inf, 0.5))).column
        1
        """
        if self.wanted is None or self.wanted.column is not None:
            return 0 if self.wanted is None else int(self.wanted.column or 0)
        ends = np.array([ends for ends in (self.wanted.lower, self.wanted.upper) if ends])
        return int(np.argmax(np.isfinite(ends).any(axis=0)))

    @property
    def sign(self) -> float:
        """Whether the user's number is to rise, 1, or to fall, -1."""
        return -1.0 if self.falling else 1.0

    @property
    def asked(self) -> float:
        """What was asked for, in the user's unit."""
        if self.kind == "mean":
            return self.mean
        return 1.0 - self.share if self.falling else self.share

    def said(self, share: float) -> float:
        """Return a share of arrived rows as the user counts them."""
        return 1.0 - share if self.falling and self.kind == "share" else share

    def output(self, name: str = "") -> str:
        """Return what the output is called: ``name``, or what can be said without one."""
        return name or ("predicted probability" if self.probability else "output")

    def number(self, value: float) -> str:
        """Return a share, a mean or a difference of means as people read it."""
        if self.kind != "mean":
            return percent(value, fine=True)
        if not self.probability:
            return figure(value)
        return f"{100 * value:.3g} points" if self.relative else percent(value, fine=True)

    def condition(self, name: str = "") -> str:
        """Return what makes a row count, in words.

        Parameters
        ----------
        name
            What the user calls the output.

        Examples
        --------
        >>> from elsewise.targets import share
        >>> asked = share(0.9, below=0.5).resolved(np.array([[0.4], [0.8]]))
        >>> question_of(asked, 1).condition()
        'with an output of at most 0.5'
        >>> question_of(asked, 1, probability=True).condition("risk of a bad credit")
        'with a risk of a bad credit of at most 50%'
        """
        assert self.wanted is not None  # a mean counts no rows
        if self.subject:
            return self.subject
        way, ends = (
            ("at least", self.wanted.lower) if self.wanted.lower else ("at most", self.wanted.upper)
        )
        end = percent(ends[0], exact=True) if self.probability else figure(ends[0], 6)
        called = self.output(name)
        if self.passing:
            return f"{self.passing} ({called} {way} {end})"
        article = "an" if called[:1].lower() in "aeiou" else "a"
        return f"with {article} {called} of {way} {end}"


def question_of(target: Target, columns: int, *, probability: bool = False) -> Question | None:
    """Return what a target asks of a model with that many outputs; None for a distribution.

    Examples
    --------
    >>> from elsewise.targets import at_most
    >>> question_of(at_most(0.5), 1).wanted.upper
    (0.5,)
    """
    if isinstance(target, Derived) and target.kind == "share":
        return _share_question(cast("ResolvedShare", target), columns, probability)
    every = Question(kind="every", probability=probability)
    if isinstance(target, Constant) and target.tolerance is not None:
        level = np.broadcast_to(target.level, (columns,))
        anything = np.isnan(level)
        lower = tuple(np.where(anything, -np.inf, level - target.tolerance).tolist())
        upper = tuple(np.where(anything, np.inf, level + target.tolerance).tolist())
        within = Wanted(lower=lower, upper=upper)
        return replace(every, wanted=within, subject=f"with {target.describe()}")
    if not isinstance(target, Derived):
        return None
    if target.kind in ("at_least", "at_most"):
        ends = tuple(np.broadcast_to(target.level, (columns,)).tolist())
        wanted = Wanted(lower=ends) if target.kind == "at_least" else Wanted(upper=ends)
        several = f"with {target.describe().partition(',')[0]}" if columns > 1 else ""
        return replace(every, wanted=wanted, subject=several)
    if target.kind in ("mean", "shift") and columns == 1:
        relative = target.kind == "shift"
        # The sign says whether the mean has an upper or a lower limit.
        amount = float(np.ravel(target.level if relative else target.about)[0])
        return Question(
            kind="mean",
            mean=float(np.ravel(target.level)[0]),
            relative=relative,
            falling=amount < 0.0,
            probability=probability,
        )
    return None


def _share_question(target: ResolvedShare, columns: int, probability: bool) -> Question:
    share, wanted = target.share, target.share.wanted(columns)
    # A share that is to fall is asked as one of the other outputs that is to rise, so that the row
    # steps only ever bring rows into a set.
    every = share.direction == "every"
    return Question(
        kind="every" if every else "share",
        wanted=wanted.opposite() if target.falling else wanted,
        share=1.0 if every else 1.0 - share.value if target.falling else share.value,
        falling=target.falling,
        subject=f"with {share.passing}" if isinstance(share.of, int) else "",
        passing=share.of if isinstance(share.of, str) else "",
        probability=probability,
        one_way=every or share.direction != "to",
    )


def check_levels(target: Target, support: tuple[float, float] | None, probability: bool) -> None:
    """Refuse a number that no output of the model can have.

    Parameters
    ----------
    support
        The ends that no output can leave; None where they are not known.
    probability
        Whether outputs are probabilities, which people like to give in per cent.
    """
    # Numbers of a shift and a scale are differences and factors, not outputs.
    if support is None or not isinstance(target, Derived) or target.kind in ("shift", "scale"):
        return
    if isinstance(target, Constant) and target.tolerance is None:
        return  # a distance to any value can be made small
    low, high = support
    for level in np.ravel(target.level):
        if np.isnan(level) or np.isinf(level) or low <= level <= high:
            continue
        fix = "give it in the model's unit"
        expected = f"a number the outputs can have, from {low:g} to {high:g}"
        fix = share_fix(float(level), fix) if probability else fix
        raise InvalidInput("target", expected=expected, received=target.name, fix=fix)
