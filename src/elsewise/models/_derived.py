"""Outputs of rows whose derived columns are computed anew before the model is asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from elsewise._arrays import Array, asarray_like, to_numpy
from elsewise.models._differences import Differences
from elsewise.models._outputs import Outputs

if TYPE_CHECKING:
    from elsewise.features import Encoder


@dataclass(frozen=True, slots=True)
class DerivedOutputs:
    """A model's outputs as a function of the columns that are not derived; see `Outputs`."""

    inner: Any
    """Outputs of codes as they are."""
    encoder: Encoder
    """Knows the formulas."""

    def __getattr__(self, name: str) -> Any:
        """Whatever else is known of the outputs (columns, description, labels) is the same."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def precise(self, probe: np.ndarray) -> Outputs:
        """Return the same with the model computed in double precision."""
        return replace(self, inner=self.inner.precise(probe))

    def values(self, codes: Array) -> Array:
        """Return the outputs (n, K) of codes (n, p)."""
        return self.inner.values(self._derived(codes))

    def values_and_gradient(self, codes: Array) -> tuple[Array, Array]:
        """Return outputs (n, K) and d output / d codes (n, K, p), through the formulas."""
        values, gradient = self.inner.values_and_gradient(self._derived(codes))
        slopes, places = to_numpy(gradient).copy(), [made.place for made in self.encoder.made]
        through = slopes[:, :, places]
        slopes[:, :, places] = 0.0
        # d derived / d codes (n, derived, p); where a formula has no slope, it adds none.
        chain = Differences.of(self.encoder).slopes(self._made, to_numpy(codes))
        chain[:, :, places] = 0.0
        slopes += np.einsum("nkd,ndp->nkp", through, np.nan_to_num(chain, posinf=0.0, neginf=0.0))
        return values, asarray_like(slopes, gradient)

    def _made(self, codes: np.ndarray) -> np.ndarray:
        return np.column_stack([made.values(codes) for made in self.encoder.made])

    def _derived(self, codes: Array) -> Array:
        return asarray_like(self.encoder.derive(to_numpy(codes)), codes)


def settled(bound: tuple[Outputs, Outputs], values: Array) -> tuple[Outputs, Outputs]:
    """Return what `bind_for_search` did, known to be no probabilities where it guessed wrong.

    The first rows of a function may look like probabilities where others, in ``values`` (n, K), are
    none.
    """
    guessed = getattr(bound[0], "guessed", False)
    if not guessed or not np.any(np.abs(to_numpy(values) - 0.5) > 0.5):
        return bound
    first = _as_scores(bound[0])
    return first, first if bound[1] is bound[0] else _as_scores(bound[1])


def _as_scores(outputs: Outputs) -> Outputs:
    if isinstance(outputs, DerivedOutputs):
        return replace(outputs, inner=_as_scores(outputs.inner))
    return cast(Outputs, replace(cast(Any, outputs), probability=False))
