"""What the model's outputs should look like on the counterfactual population.

Four kinds, told apart by what they can say:

- ``Sample``: rows of outputs to be matched in distribution (``sample``, ``group``);
- ``Known``: a distribution given by its quantile function (``distribution``);
- ``Constant``: one value for every row (``constant``), known and derived at once;
- ``Derived``: a function of each row's own factual output (``at_least``, ``at_most``, ``shift``,
  ``scale``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from elsewise._arrays import Array
from elsewise.errors import InvalidInput
from elsewise.targets._checks import columns_of, level_of, rows_of
from elsewise.targets._known import Known, from_family, from_function, from_scipy, from_table
from elsewise.targets._rows import Constant, Derived, Sample

__all__ = [
    "Constant",
    "Derived",
    "Known",
    "Sample",
    "Target",
    "at_least",
    "at_most",
    "constant",
    "distribution",
    "from_dict",
    "group",
    "sample",
    "scale",
    "shift",
]

Target = Sample | Known | Constant | Derived
"""Any target."""


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


def distribution(known: Any) -> Known:
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
    >>> target.name, target.support
    ('distribution(beta(0.1, 0.9))', (0.0, 1.0))
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


def from_dict(saved: Mapping[str, Any]) -> Target:
    """Rebuild a target from its ``to_dict``.

    Examples
    --------
    >>> from_dict(at_least(0.6).to_dict()).name
    'at_least(0.6)'
    """
    kind = saved.get("kind")
    if kind not in _MAKERS:
        raise InvalidInput(
            "saved",
            expected=f"a kind among {', '.join(_MAKERS)}",
            received=repr(kind),
            fix="pass what to_dict returned",
        )
    return _MAKERS[kind](*saved["arguments"])


_MAKERS: dict[Any, Callable[..., Target]] = {
    "sample": sample,
    "group": group,
    "constant": constant,
    "at_least": at_least,
    "at_most": at_most,
    "shift": shift,
    "scale": scale,
    "distribution": from_family,
    "quantiles": from_table,
}
