"""What the model's outputs should look like on the counterfactual population.

Four kinds, told apart by what they can say:

- ``Sample``: rows of outputs to be matched in distribution (``sample``, ``group``);
- ``DistributionTarget``: a distribution given by its quantile function (``distribution``);
- ``Constant``: one value for every row (``constant``), known and derived at once;
- ``Derived``: a function of each row's own factual output (``at_least``, ``at_most``, ``shift``,
  ``scale``).

A ``Share`` ("60 % approved") becomes a ``Derived`` target once the rows are known: ``resolve``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from elsewise._arrays import Array
from elsewise.errors import InvalidInput
from elsewise.targets._checks import columns_of, level_of, rows_of
from elsewise.targets._distribution import (
    DistributionTarget,
    family_of,
    from_family,
    from_function,
    from_scipy,
    from_table,
)
from elsewise.targets._rowwise import Constant, Derived, Sample
from elsewise.targets._shares import ResolvedShare, Share

__all__ = [
    "Constant",
    "Derived",
    "DistributionTarget",
    "ResolvedShare",
    "Sample",
    "Share",
    "Target",
    "at_least",
    "at_most",
    "constant",
    "distribution",
    "family_of",
    "from_dict",
    "group",
    "resolve",
    "sample",
    "scale",
    "share",
    "shift",
]

Target = Sample | DistributionTarget | Constant | Derived
"""Any target of known rows."""


def sample(values: Array) -> Sample:
    """Ask for outputs distributed as a sample.

    Parameters
    ----------
    values : array (m,) or (m, K)
        Outputs wanted; they need not be as many as the rows explained.

    Examples
    --------
    >>> sample([0.2, 0.7, 0.9]).name
    'sample(3 rows)'
    """
    return Sample(values=rows_of("values", values))


def group(scores: Array) -> Sample:
    """Ask for the outputs another group of rows has.

    Parameters
    ----------
    scores : array (m,) or (m, K)
        The model's outputs on that group.

    Examples
    --------
    >>> group([0.2, 0.7]).describe()
    'outputs distributed as a group of 2 rows'
    """
    return Sample(values=rows_of("scores", scores), kind="group")


def distribution(known: Any) -> DistributionTarget:
    """Ask for outputs with a known distribution.

    Parameters
    ----------
    known : frozen scipy.stats distribution, or callable
        A distribution (continuous or discrete), or its quantile function: an array of levels in
        (0, 1) to an array of outputs.

    Examples
    --------
    >>> from scipy import stats
    >>> target = distribution(stats.beta(0.1, 0.9))
    >>> target.name
    'distribution(beta(0.1, 0.9))'
    """
    if hasattr(known, "freeze") and not known.shapes:
        known = known.freeze()
    if hasattr(known, "dist") and hasattr(known, "ppf"):
        return from_scipy(known)
    if callable(known) and not hasattr(known, "freeze"):
        return from_function(known, "distribution(quantile function)")
    raise InvalidInput(
        "known",
        expected="a frozen scipy.stats distribution or a quantile function",
        received=type(known).__name__,
        fix="pass for example scipy.stats.beta(2, 5), or a function of an array of levels",
    )


def constant(level: Any) -> Constant:
    """Ask for the same output on every row.

    Parameters
    ----------
    level : float or array (K,)
        The output, for all columns or column by column.

    Examples
    --------
    >>> import numpy
    >>> constant(1.0).of(numpy.array([[0.3], [0.8]])).T
    array([[1., 1.]])
    """
    return Constant(level=level_of("level", level))


def at_least(level: Any) -> Derived:
    """Ask for outputs of at least ``level``; rows that have it stay as they are.

    Parameters
    ----------
    level : float or array (K,)
        The bound, for all columns or column by column.

    Examples
    --------
    >>> import numpy
    >>> at_least(0.6).of(numpy.array([[0.3], [0.8]])).T
    array([[0.6, 0.8]])
    """
    return Derived(kind="at_least", level=level_of("level", level))


def at_most(level: Any) -> Derived:
    """Ask for outputs of at most ``level``; rows that have it stay as they are.

    Parameters
    ----------
    level : float or array (K,)
        The bound, for all columns or column by column.

    Examples
    --------
    >>> import numpy
    >>> at_most(0.6).of(numpy.array([[0.3], [0.8]])).T
    array([[0.3, 0.6]])
    """
    return Derived(kind="at_most", level=level_of("level", level))


def shift(amount: Any) -> Derived:
    """Ask for every output moved by ``amount``.

    Parameters
    ----------
    amount : float or array (K,)
        What is added, for all columns or column by column.

    Examples
    --------
    >>> import numpy
    >>> shift(-0.25).of(numpy.array([[0.5], [0.75]])).T
    array([[0.25, 0.5 ]])
    """
    return Derived(kind="shift", level=level_of("amount", amount))


def scale(factor: Any, about: Any = 0.0) -> Derived:
    """Ask for every output's distance from ``about`` multiplied by ``factor``.

    Parameters
    ----------
    factor, about : float or array (K,)
        For all columns or column by column.

    Examples
    --------
    >>> import numpy
    >>> scale(0.5, about=1.0).of(numpy.array([[0.0], [1.0]])).T
    array([[0.5, 1. ]])
    """
    target = Derived(kind="scale", level=level_of("factor", factor), about=level_of("about", about))
    if len({columns_of(target.level), columns_of(target.about)} - {None}) == 2:
        raise InvalidInput(
            "about",
            expected=f"a number, or {columns_of(target.level)} numbers as in factor",
            received=f"{columns_of(target.about)} numbers",
            fix="give both one value per output column",
        )
    return target


def share(
    value: float | None = None,
    *,
    of: int | str | None = None,
    cutoff: float = 0.5,
    margin: float = 0.05,
    **named: float,
) -> Share:
    """Ask for a share of the rows past a cut-off, moving as few rows as little as possible.

    Rows that pass stay as they are. Of the others, as many as the share needs are asked to pass,
    those with the highest outputs; the rest keep their outputs. A held-out row is asked if its
    output is as high as theirs. Rows may stop short of what is asked by about the output limit:
    the share is reached where that limit is small against the margin.

    Parameters
    ----------
    value : float
        The share, in (0, 1]; or given by a name for what passes: ``share(approved=0.6)``.
    of : int or str, optional
        Of a model with several outputs, the column of the class that is to be the most likely.
        With one output, a name for what passes.
    cutoff : float
        With one output, the output that counts as passing.
    margin : float
        How far past the cut-off rows are asked to go, in units of the output; with several
        outputs, by how much the class is to lead.

    Examples
    --------
    >>> import numpy
    >>> outputs = numpy.array([[0.1], [0.3], [0.4], [0.9]])
    >>> share(approved=0.75).resolved(outputs).of(outputs).T
    array([[0.1 , 0.55, 0.55, 0.9 ]])
    """
    if len(named) + (value is not None or of is not None) != 1:
        raise InvalidInput(
            "share",
            expected="one share, with or without a name",
            received=f"{named or 'none'}" + (f" beside {value!r}" if named and value else ""),
            fix="share(approved=0.6), or share(0.6, of='approved')",
        )
    of, value = next(iter(named.items()), (of, value))
    if value is None or not 0.0 < _number("value", value) <= 1.0:
        raise InvalidInput(
            "value",
            expected="a share in (0, 1]",
            received=repr(value),
            fix="share(0.6) asks for 60 % of the rows",
        )
    if _number("margin", margin) < 0.0:
        raise InvalidInput(
            "margin", expected="a number >= 0", received=repr(margin), fix="leave it out"
        )
    if not (of is None or isinstance(of, str | int | np.integer)) or isinstance(of, bool):
        raise InvalidInput(
            "of",
            expected="the column of a class, or a name",
            received=repr(of),
            fix="share(0.6, of=2) or share(approved=0.6)",
        )
    return Share(
        value=float(value),
        of=int(of) if isinstance(of, np.integer) else of,
        cutoff=_number("cutoff", cutoff),
        margin=float(margin),
    )


def resolve(target: Target | Share, outputs: Array) -> Target:
    """Return the target for rows with these factual outputs (n, K).

    Examples
    --------
    >>> import numpy
    >>> resolve(at_least(0.6), numpy.array([[0.3]])).name
    'at_least(0.6)'
    """
    return target.resolved(outputs) if isinstance(target, Share) else target


def from_dict(saved: Mapping[str, Any]) -> Target:
    """Rebuild a target from its ``to_dict``.

    Examples
    --------
    >>> from_dict(at_least(0.6).to_dict()).name
    'at_least(0.6)'
    """
    kind = saved.get("kind") if isinstance(saved, Mapping) else saved
    if not isinstance(kind, str) or kind not in _MAKERS:
        raise InvalidInput(
            "saved",
            expected=f"a kind among {', '.join(_MAKERS)}",
            received=repr(kind),
            fix="pass what to_dict returned",
        )
    try:
        return _MAKERS[kind](*saved["arguments"])
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            "saved",
            expected=f"the arguments of {kind}",
            received=f"{type(error).__name__}: {error}",
            fix="pass what to_dict returned",
        ) from error


def _resolved_share(value: Any, of: Any, cutoff: Any, margin: Any, threshold: Any) -> ResolvedShare:
    """Rebuild a share of known rows from its ``to_dict``."""
    asked = share(value, of=of, cutoff=cutoff, margin=margin)
    return ResolvedShare(level=asked.cutoff, share=asked, threshold=_number("threshold", threshold))


def _number(argument: str, value: Any) -> float:
    """Return one finite number, or refuse."""
    level = level_of(argument, value)
    if isinstance(level, tuple):
        raise InvalidInput(
            argument, expected="one number", received=repr(value), fix="pass a scalar"
        )
    return level


_MAKERS: dict[Any, Callable[..., Target]] = {
    "sample": sample,
    "group": group,
    "constant": constant,
    "at_least": at_least,
    "at_most": at_most,
    "shift": shift,
    "scale": scale,
    "share": _resolved_share,
    "distribution": from_family,
    "quantiles": from_table,
}
