"""What a limit is computed from: two sides of a distance and how they were drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache

from elsewise._arrays import Array, namespace
from elsewise.errors import InvalidInput
from elsewise.transport import Ranked, Reference, rank, reference, sorted_squared_distances


class Pairing(StrEnum):
    """How the fixed side was drawn relative to the moving rows."""

    PAIRED = "paired"
    """Row i of the fixed side comes from the same draw as row i of the moving side."""
    INDEPENDENT = "independent"
    """The fixed side is a sample of its own."""
    KNOWN = "known"
    """The fixed side is a known distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One side of a certificate: a moved sample, what it is compared with, how both are drawn.

    Built by `paired`, `independent` or `known_target`.
    """

    moving: Ranked
    """Projections (N, n) of the moved rows, sorted; N = 1 for one output column."""
    fixed: Ranked | None
    """Projections (N, m) of a sample, sorted; None for a known distribution."""
    side: Callable[[float], Reference]
    """The fixed side as n rows see it, by the trim; made once for each."""
    trim: float
    """Share of mass left out at either end."""
    pairing: Pairing
    """How the fixed side was drawn."""

    @classmethod
    def paired(cls, moving: Array, fixed: Array, trim: float) -> Comparison:
        """Compare moved rows (N, n) with the rows (N, n) they came from, in the same order.

        Examples
        --------
        >>> import numpy as np
        >>> x = np.array([[0.0, 1.0, 2.0]])
        >>> Comparison.paired(x + 3.0, x, 0.0).distance
        3.0
        """
        if moving.shape != fixed.shape:
            expected = f"the moving rows' shape {tuple(moving.shape)}"
            fix = "pair row i with row i, or compare as independent samples"
            raise InvalidInput("fixed", expected=expected, received=tuple(fixed.shape), fix=fix)
        return _samples(moving, fixed, trim, Pairing.PAIRED)

    @classmethod
    def independent(cls, moving: Array, fixed: Array, trim: float) -> Comparison:
        """Compare moved rows (N, n) with a sample (N, m) drawn independently of them.

        Examples
        --------
        >>> import numpy as np
        >>> Comparison.independent(np.zeros((1, 4)), np.full((1, 7), 2.0), 0.1).distance
        2.0
        """
        return _samples(moving, fixed, trim, Pairing.INDEPENDENT)

    @classmethod
    def known_target(
        cls, moving: Array, side: Callable[[float], Reference], trim: float
    ) -> Comparison:
        """Compare moved rows (N, n) with a known distribution: its n quantile cells, by the trim.

        Examples
        --------
        >>> import numpy as np
        >>> ones = Reference(partners=np.ones((1, 4)), weights=np.full(4, 0.25), spread=np.zeros(1))
        >>> Comparison.known_target(np.zeros((1, 4)), lambda trim: ones, 0.0).distance
        1.0
        """
        _check(moving, trim)
        # The i-th smallest row meets the mean of the quantile function from (i - 1) / n to i / n.
        (ranked,) = _ranked(moving)
        like = cache(lambda share: side(share).like(ranked.sorted))
        return cls(moving=ranked, fixed=None, side=like, trim=trim, pairing=Pairing.KNOWN)

    def of(self, moving: Array) -> Comparison:
        """Compare other moved rows (N, n) with the same fixed side, which is not sorted again.

        Examples
        --------
        >>> import numpy as np
        >>> x = np.array([[0.0, 1.0, 2.0]])
        >>> Comparison.paired(x + 3.0, x, 0.0).of(x - 4.0).distance
        4.0
        """
        # The fixed side depends on the number of moving rows, not on their values.
        return replace(self, moving=_ranked(moving)[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Number of directions and of moving rows, (N, n)."""
        directions, rows = self.moving.sorted.shape
        return directions, rows

    @property
    def samples(self) -> tuple[Ranked, ...]:
        """The moving rows, and the fixed side where that is a sample."""
        return (self.moving,) if self.fixed is None else (self.moving, self.fixed)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Size of each sample: one, or two."""
        return tuple(sample.sorted.shape[1] for sample in self.samples)

    @property
    def partners(self) -> Array | None:
        """Where each row belongs: (N, n), or (N, 1) for a known constant; None for other sides."""
        if self.pairing is Pairing.INDEPENDENT:
            return None
        if self.fixed is not None:
            return self.fixed.rows
        # Untrimmed, because trimmed cells repeat the mean of their neighbour: a heavy trim could
        # make another distribution look constant.
        side, xp = self.side(0.0), namespace(self.moving.sorted)
        constant = side.partners[:, :1]
        known = bool(xp.all(side.partners == constant)) and bool(xp.all(side.spread == 0.0))
        return constant if known else None

    @property
    def distance(self) -> float:
        """The trimmed distance of the samples, root scale."""
        return root_distance(self.moving.sorted, self.side(self.trim))

    @property
    def untrimmed_distance(self) -> float:
        """The distance of the samples without trimming, root scale."""
        return root_distance(self.moving.sorted, self.side(0.0))


def root_distance(moving_sorted: Array, side: Reference) -> float:
    """Return the root of the mean over directions of the squared distances."""
    # The mean of squares, then the root, as in eq. (2): influences add up over directions only so.
    xp = namespace(moving_sorted)
    return math.sqrt(float(xp.mean(sorted_squared_distances(moving_sorted, side))))


def _samples(moving: Array, fixed: Array, trim: float, pairing: Pairing) -> Comparison:
    _check(moving, trim)
    if len(fixed.shape) != 2 or fixed.shape[0] != moving.shape[0] or fixed.shape[1] < 2:
        expected = f"shape ({moving.shape[0]}, m) with m >= 2"
        fix = "project both sides on the same directions"
        raise InvalidInput("fixed", expected=expected, received=tuple(fixed.shape), fix=fix)
    first, second = _ranked(moving, fixed)
    size = moving.shape[1]
    side = cache(lambda share: reference(second.sorted, size, share))
    return Comparison(moving=first, fixed=second, side=side, trim=trim, pairing=pairing)


def _check(moving: Array, trim: float) -> None:
    if len(moving.shape) != 2 or moving.shape[1] < 2:
        expected = "shape (N, n) with n >= 2"
        fix = "pass projections, one row per direction, of at least two rows"
        raise InvalidInput("moving", expected=expected, received=tuple(moving.shape), fix=fix)
    if not 0.0 <= trim < 0.5:
        raise InvalidInput("trim", expected="a number in [0, 0.5)", received=trim, fix="try 0.05")


def _ranked(*sides: Array) -> tuple[Ranked, ...]:
    """Sort in the precision given, go on in double precision."""
    # Single precision halves what a sort moves, but sums over many rows need double.
    xp, ranked = namespace(*sides), map(rank, sides)
    return tuple(Ranked(xp.astype(one.sorted, xp.float64, copy=False), one.order) for one in ranked)
