"""What a limit is computed from: two sides of a distance and how they were drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from elsewise._arrays import Array, asarray_like, namespace
from elsewise.errors import InvalidInput
from elsewise.transport import Ranked, Reference, rank, reference, sorted_squared_distances

__all__ = ["Comparison", "Pairing"]


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
    known: Reference | None
    """A known distribution as n rows see it, trimmed; None for a sample."""
    known_untrimmed: Reference | None
    """The same without trimming."""
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
            raise InvalidInput(
                "fixed",
                expected=f"the moving rows' shape {tuple(moving.shape)}",
                received=tuple(fixed.shape),
                fix="pair row i with row i, or compare as independent samples",
            )
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
        cls, moving: Array, known: Reference, known_untrimmed: Reference, trim: float
    ) -> Comparison:
        """Compare moved rows (N, n) with a known distribution, given by its n quantile cells.

        Examples
        --------
        >>> import numpy as np
        >>> ones = Reference(partners=np.ones((1, 4)), weights=np.full(4, 0.25), spread=np.zeros(1))
        >>> Comparison.known_target(np.zeros((1, 4)), ones, ones, 0.0).distance
        1.0
        """
        moving = _float64(moving)
        _check(moving, trim)
        for name, side in (("known", known), ("known_untrimmed", known_untrimmed)):
            if tuple(side.partners.shape) != tuple(moving.shape):
                raise InvalidInput(
                    name,
                    expected=f"one cell per moving row, shape {tuple(moving.shape)}",
                    received=tuple(side.partners.shape),
                    fix="cut the distribution into as many cells as there are rows",
                )
        return cls(
            moving=rank(moving),
            fixed=None,
            known=_like(known, moving),
            known_untrimmed=_like(known_untrimmed, moving),
            trim=trim,
            pairing=Pairing.KNOWN,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Number of directions and of moving rows, (N, n)."""
        directions, rows = self.moving.sorted.shape
        return directions, rows

    @property
    def distance(self) -> float:
        """The trimmed distance of the samples, root scale."""
        return root_distance(self.moving.sorted, self.side(self.trim))

    @property
    def untrimmed_distance(self) -> float:
        """The distance of the samples without trimming, root scale."""
        return root_distance(self.moving.sorted, self.side(0.0))

    def side(self, trim: float) -> Reference:
        """Return the fixed side as the moving rows see it, trimmed or (with 0) not."""
        if self.fixed is not None:
            return reference(self.fixed.sorted, self.shape[1], trim)
        known = self.known if trim else self.known_untrimmed
        assert known is not None  # a side is either a sample or known
        return known


def root_distance(moving_sorted: Array, side: Reference) -> float:
    """Return the root of the mean over directions of the squared distances."""
    xp = namespace(moving_sorted)
    return math.sqrt(float(xp.mean(sorted_squared_distances(moving_sorted, side))))


def _samples(moving: Array, fixed: Array, trim: float, pairing: Pairing) -> Comparison:
    moving, fixed = _float64(moving), _float64(fixed)
    _check(moving, trim)
    if len(fixed.shape) != 2 or fixed.shape[0] != moving.shape[0] or fixed.shape[1] < 2:
        raise InvalidInput(
            "fixed",
            expected=f"shape ({moving.shape[0]}, m) with m >= 2",
            received=tuple(fixed.shape),
            fix="project both sides on the same directions",
        )
    return Comparison(
        moving=rank(moving),
        fixed=rank(fixed),
        known=None,
        known_untrimmed=None,
        trim=trim,
        pairing=pairing,
    )


def _check(moving: Array, trim: float) -> None:
    if len(moving.shape) != 2 or moving.shape[1] < 2:
        raise InvalidInput(
            "moving",
            expected="shape (N, n) with n >= 2",
            received=tuple(moving.shape),
            fix="pass projections, one row per direction, of at least two rows",
        )
    if not 0.0 <= trim < 0.5:
        raise InvalidInput("trim", expected="a number in [0, 0.5)", received=trim, fix="try 0.05")


def _float64(array: Array) -> Array:
    xp = namespace(array)
    return xp.astype(array, xp.float64, copy=False)


def _like(side: Reference, moving: Array) -> Reference:
    return Reference(
        partners=asarray_like(side.partners, moving),
        weights=asarray_like(side.weights, moving),
        spread=asarray_like(side.spread, moving),
    )
