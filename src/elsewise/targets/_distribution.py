"""Targets that are distributions, known through their quantile functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from elsewise._arrays import LARGEST, Array
from elsewise.errors import InvalidInput
from elsewise.targets._checks import numbers, text

TABLE = np.clip(0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, 1025)), 1e-7, 1.0 - 1e-7)
"""Levels, denser towards 0 and 1, at which a quantile function without a name is saved."""

FLOOR = 2.0**-52
"""Levels closer than this to 0 or 1 count as this close, where nothing better is known."""

EPSILON = float(np.finfo(np.float64).eps)

TOLERANCE = 1e-10
"""Largest difference, in standard deviations, that ends the subdivision of a cell."""

# Gauss-Lobatto: the ends are nodes, so that no jump of the quantile function goes unseen; they
# are moved inwards by a hair, so that a jump exactly between two cells belongs to neither. Roots
# are complex from NumPy 2.5 on.
_LEGENDRE = np.polynomial.Legendre.basis(6)
NODES = np.array([-1.0 + 1e-12, *_LEGENDRE.deriv().roots().real, 1.0 - 1e-12])
WEIGHTS = 2.0 / (42.0 * _LEGENDRE(NODES) ** 2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistributionTarget:
    """Outputs with a known distribution.

    Parameters
    ----------
    name : str
        How the target was asked for.
    quantile : callable
        Levels u (any shape) to quantiles.
    upper_quantile : callable
        Levels v to quantiles at 1 - v, exact where 1 - v would round.
    saved : dict or None
        Name and parameters, where there are any; None saves a table of quantiles.
    """

    name: str
    quantile: Callable[[np.ndarray], np.ndarray]
    upper_quantile: Callable[[np.ndarray], np.ndarray]
    saved: dict[str, Any] | None = None

    @property
    def columns(self) -> int:
        """Number of output columns the target fits."""
        return 1

    def cells(self, breaks: Array) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of the quantile function on each cell between breaks.

        Adaptive Gauss-Lobatto quadrature: a piece is halved until its halves agree with it, which
        follows the quantile function into its tails at 0 and 1 and finds its jumps.

        Parameters
        ----------
        breaks : array (S + 1,)
            Increasing levels in [0, 1].

        Returns
        -------
        means, variances : ndarray (S,)

        Examples
        --------
        >>> from elsewise.targets import distribution
        >>> means, variances = distribution(lambda u: 12 * u).cells([0, 0.5, 1])
        >>> means.round(6), variances.round(6)
        (array([3., 9.]), array([3., 3.]))
        """
        breaks = np.asarray(breaks, dtype=np.float64)
        self._check_tails(breaks)
        cell, weight, value = self._nodes(breaks)
        size = breaks.size - 1
        mass = np.bincount(cell, weight, size)
        means = np.bincount(cell, weight * value, size) / mass
        variances = np.bincount(cell, weight * (value - means[cell]) ** 2, size) / mass
        return means, variances

    def describe(self) -> str:
        """Return the target in words."""
        return f"outputs distributed as {self.name.removeprefix('distribution(')[:-1]}"

    def to_dict(self) -> dict[str, Any]:
        """Return the target as JSON values; a function without a name becomes a table."""
        if self.saved is not None:
            return dict(self.saved)
        return {"kind": "quantiles", "arguments": [self.quantile(TABLE).tolist()]}

    def _check_tails(self, breaks: np.ndarray) -> None:
        """Refuse cells that reach a tail of infinite variance, where W2 does not exist."""
        levels = np.array([2.0**-52, 2.0**-26])
        middle = self.quantile(np.array([0.5]))
        for reached, quantile in (
            (breaks[0] == 0, self.quantile),
            (breaks[-1] == 1, self.upper_quantile),
        ):
            # A finite variance needs u q(u)^2 -> 0.
            far, near = levels * (quantile(levels) - middle) ** 2
            if reached and far > 0.99 * near > 0:
                expected = "a distribution with a finite variance"
                fix = "trim the tails, or choose a target with lighter ones"
                raise InvalidInput("target", expected=expected, received=self.name, fix=fix)

    def _nodes(self, breaks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return quadrature nodes as (cell, weight, quantile), each flat."""
        # The upper half is measured from 1 downwards, so that both tails have full precision.
        cell = np.arange(breaks.size - 1)
        start, stop = breaks[:-1], breaks[1:]
        low, high = start < 0.5, stop > 0.5
        cell = np.concatenate([cell[low], cell[high]])
        upper = np.arange(cell.size) >= np.count_nonzero(low)
        left = np.concatenate([start[low], 1.0 - stop[high]])
        right = np.concatenate([np.minimum(stop[low], 0.5), np.minimum(1.0 - start[high], 0.5)])

        # A piece may be wrong by as much as rounding, or by a tolerance in standard deviations.
        typical = self.quantile(breaks[0] + (breaks[-1] - breaks[0]) * TABLE)
        spread, noise = np.std(typical), 8 * EPSILON * np.max(np.abs(typical))
        error = TOLERANCE * spread + noise
        width = np.diff(breaks)[cell]

        kept: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        while cell.size:
            middle = 0.5 * (left + right)
            weight, value = self._panel(upper, left, right)
            halves = self._panel(upper, left, middle), self._panel(upper, middle, right)
            fine_weight, fine_value = (np.hstack(pair) for pair in zip(*halves, strict=True))

            # Moments about a value of the piece: about 0, a large mean would hide the change in its
            # rounding.
            origin = value[:, :1]
            change = _moments(fine_weight, fine_value - origin) - _moments(weight, value - origin)
            done = np.abs(change[0]) <= error * width
            done &= np.abs(change[1]) <= error * (spread + noise) * width
            done |= right - left <= 4 * EPSILON * right  # floats leave nothing to halve
            nodes = np.repeat(cell[done], fine_weight.shape[1])
            kept.append((nodes, fine_weight[done].ravel(), fine_value[done].ravel()))

            left, middle, right = left[~done], middle[~done], right[~done]
            left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
            cell, upper, width = (np.tile(part[~done], 2) for part in (cell, upper, width))
        cells, weights, values = (np.concatenate(parts) for parts in zip(*kept, strict=True))
        return cells, weights, values

    def _panel(
        self, upper: np.ndarray, left: np.ndarray, right: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and quantiles (pieces, nodes) of Gauss-Lobatto on each [left, right]."""
        half = 0.5 * (right - left)[:, None]
        levels = 0.5 * (left + right)[:, None] + half * NODES
        values = np.empty_like(levels)
        values[~upper] = self.quantile(levels[~upper])
        values[upper] = self.upper_quantile(levels[upper])
        if not np.all(np.isfinite(values)):
            raise _not_a_quantile_function("outputs that are not finite")
        return half * WEIGHTS, values


def _moments(weight: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return the first and second moment (2, pieces) of values (pieces, nodes)."""
    return np.stack([np.sum(weight * value, axis=1), np.sum(weight * value**2, axis=1)])


def from_scipy(frozen: Any) -> DistributionTarget:
    """Return the target of a frozen scipy.stats distribution."""
    from scipy import stats

    family, arguments = frozen.dist.name, [*frozen.args, *frozen.kwds.values()]
    if np.ndim(frozen.ppf(0.5)) or not np.all(np.abs(frozen.ppf(TABLE[[0, 512, -1]])) <= LARGEST):
        raise InvalidInput(
            "known",
            expected="one distribution with valid parameters",
            received=f"{family} with parameters {arguments}",
            fix="pass numbers inside the family's domain",
        )

    def reliable(quantile: Callable[..., Any]) -> Callable[[np.ndarray], np.ndarray]:
        # Far tails that SciPy cannot resolve stop at the spacing of floats near 1.
        floor = 1e-25 if np.isfinite(quantile(1e-25)) else FLOOR
        return lambda levels: np.asarray(quantile(np.maximum(levels, floor)), dtype=np.float64)

    args = [float(value) for value in frozen.args]
    kwds = {key: float(value) for key, value in frozen.kwds.items()}
    can_be_named = type(getattr(stats, str(family), None)) is type(frozen.dist)
    saved = {"kind": "distribution", "arguments": [family, args, kwds]}
    shown = ", ".join([text(value) for value in args] + [f"{k}={v:g}" for k, v in kwds.items()])
    return DistributionTarget(
        name=f"distribution({family}({shown}))",
        quantile=reliable(frozen.ppf),
        upper_quantile=reliable(frozen.isf),
        saved=saved if can_be_named else None,
    )


def from_function(function: Callable[..., Any], name: str, saved: Any = None) -> DistributionTarget:
    """Return the target of a quantile function, checked on a table of levels."""

    def quantile(levels: np.ndarray) -> np.ndarray:
        return np.asarray(function(np.clip(levels, FLOOR, 1.0 - FLOOR)), dtype=np.float64)

    try:
        table = quantile(TABLE)
    except Exception as error:
        raise _not_a_quantile_function(f"{type(error).__name__}: {error}") from error
    if table.shape != TABLE.shape:
        raise _not_a_quantile_function(f"an output of shape {table.shape} for {TABLE.shape}")
    if not np.all(np.abs(table) <= LARGEST):
        raise _not_a_quantile_function("outputs that are not finite")
    if np.any(np.diff(table) < 0):
        raise _not_a_quantile_function("outputs that decrease")
    return DistributionTarget(
        name=name,
        quantile=quantile,
        # A function of the level knows nothing of the distance to 1, so the upper tail is only as
        # fine as doubles are near 1.
        upper_quantile=lambda levels: quantile(1.0 - levels),
        saved=saved,
    )


def _not_a_quantile_function(received: str) -> InvalidInput:
    return InvalidInput(
        "known",
        expected="a quantile function: an array of levels in (0, 1) to as many finite, "
        "non-decreasing outputs",
        received=received,
        fix="write it with NumPy functions, or wrap it in numpy.vectorize",
    )


def from_table(table: list[float]) -> DistributionTarget:
    """Return the target that interpolates a saved table of quantiles."""
    table = numbers("saved", table).tolist()
    saved = {"kind": "quantiles", "arguments": [table]}
    name = f"distribution(interpolated table of {len(table)} quantiles)"
    return from_function(lambda levels: np.interp(levels, TABLE, table), name, saved)


def from_family(family: str, args: list[float], kwds: dict[str, float]) -> DistributionTarget:
    """Return the target of a scipy.stats distribution saved by name."""
    numbers("saved", [*args, *kwds.values()])
    known, named = family_of(family, "saved"), {name: float(value) for name, value in kwds.items()}
    return from_scipy(known(*map(float, args), **named))


def family_of(name: Any, argument: str) -> Any:
    """Return the distribution of scipy.stats of this name; nothing else of it is ever called.

    Names come from files and command lines, and scipy.stats also holds functions that do more than
    describe a distribution: ``scipy.stats.test`` runs files.
    """
    from scipy import stats

    known = getattr(stats, name, None) if isinstance(name, str) else None
    if not isinstance(known, stats.rv_continuous | stats.rv_discrete):
        expected = "the name of a distribution of scipy.stats"
        fix = "for example beta, as in distribution:beta,2,5"
        raise InvalidInput(argument, expected=expected, received=repr(name), fix=fix)
    return known
