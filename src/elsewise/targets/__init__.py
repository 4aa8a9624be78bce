"""What the model's outputs should look like on the counterfactual population.

Four kinds, told apart by what they can say:

- ``Sample``: rows of outputs to be matched in distribution (``sample``, ``group``);
- ``DistributionTarget``: a distribution given by its quantile function (``distribution``);
- ``Derived``: a function of each row's own factual output (``at_least``, ``at_most``, ``shift``,
  ``scale``);
- ``Constant``: the ``Derived`` target that is one value for every row (``constant``), so that its
  distribution is known.

A ``Share`` ("60 % approved", a ``quantile``, a ``label``) becomes a ``Derived`` target once the
rows are known, and a ``mean`` gets its distance from theirs: ``resolve``. What a target asks in
its own unit is a ``Question``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from elsewise._arrays import Array, to_numpy
from elsewise.errors import InvalidInput, from_mapping, share_fix
from elsewise.targets._checks import columns_of, level_of, rows_of, text
from elsewise.targets._distribution import (
    DistributionTarget,
    family_of,
    from_family,
    from_function,
    from_scipy,
    from_table,
)
from elsewise.targets._question import Question, check_levels, question_of
from elsewise.targets._rowwise import Constant, Derived, Sample
from elsewise.targets._shares import ResolvedShare, Share
from elsewise.targets._wanted import Wanted

__all__ = [
    "Constant",
    "Derived",
    "DistributionTarget",
    "Question",
    "ResolvedShare",
    "Sample",
    "Share",
    "Target",
    "Wanted",
    "at_least",
    "at_most",
    "check_levels",
    "constant",
    "distribution",
    "family_of",
    "from_dict",
    "group",
    "label",
    "mean",
    "quantile",
    "question_of",
    "resolve",
    "sample",
    "scale",
    "share",
    "shift",
]

Target = Sample | DistributionTarget | Derived
"""Any target of known rows."""


def sample(values: Array, exact: bool = False) -> Sample:
    """Ask for outputs distributed as a sample.

    Parameters
    ----------
    values : array (m,) or (m, K)
        Outputs wanted; they need not be as many as the rows explained.
    exact : bool
        Whether these values are the target themselves. By default they stand for a larger
        population that they were drawn from, and the certificate counts their sampling error.

    Examples
    --------
    >>> sample([0.2, 0.7, 0.9]).name
    'sample(3 rows)'
    """
    return Sample(values=rows_of("values", values), exact=exact)


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
    # A distribution without shape parameters, such as scipy.stats.norm, needs no arguments.
    if hasattr(known, "freeze") and not known.shapes:
        known = known.freeze()
    if hasattr(known, "dist") and hasattr(known, "ppf"):
        return from_scipy(known)
    if callable(known) and not hasattr(known, "freeze"):
        return from_function(known, "distribution(quantile function)")
    expected = "a frozen scipy.stats distribution or a quantile function"
    fix = "pass for example scipy.stats.beta(2, 5), or a function of an array of levels"
    raise InvalidInput("known", expected=expected, received=type(known).__name__, fix=fix)


def constant(level: Any, tolerance: float | None = None) -> Constant:
    """Ask for the same output on every row.

    Parameters
    ----------
    level : float or list (K,)
        The output, for all columns or column by column; None for a column nobody cares about.
    tolerance : float, optional
        How far an output may be from it and still count, in the unit of the outputs. With it the
        question is how many rows arrive; without it, how far the outputs are from the value.

    Examples
    --------
    >>> import numpy
    >>> constant(1.0).of(numpy.array([[0.3], [0.8]])).T
    array([[1., 1.]])
    """
    if tolerance is not None and _number("tolerance", tolerance) < 0.0:
        raise InvalidInput(
            "tolerance", expected="a number >= 0", received=repr(tolerance), fix="leave it out"
        )
    return Constant(level=level_of("level", level, np.nan), tolerance=tolerance)


def at_least(level: Any) -> Derived:
    """Ask for outputs of at least ``level``; rows that have it stay as they are.

    Parameters
    ----------
    level : float or list (K,)
        The bound, for all columns or column by column; None for a column nobody cares about.

    Examples
    --------
    >>> import numpy
    >>> at_least(0.6).of(numpy.array([[0.3], [0.8]])).T
    array([[0.6, 0.8]])
    """
    return Derived(kind="at_least", level=level_of("level", level, -np.inf))


def at_most(level: Any) -> Derived:
    """Ask for outputs of at most ``level``; rows that have it stay as they are.

    Parameters
    ----------
    level : float or list (K,)
        The bound, for all columns or column by column; None for a column nobody cares about.

    Examples
    --------
    >>> import numpy
    >>> at_most(0.6).of(numpy.array([[0.3], [0.8]])).T
    array([[0.3, 0.6]])
    """
    return Derived(kind="at_most", level=level_of("level", level, np.inf))


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
    above: float | None = None,
    below: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    margin: float = 0.05,
    **named: float,
) -> Share:
    """Ask for a share of the rows past a cut-off, moving as few rows as little as possible.

    The share rises or falls to what is asked. Rows that need not move stay as they are.

    Parameters
    ----------
    value : float
        The share, in [0, 1]; or given by a name for what passes: ``share(approved=0.6)``.
    of : class label, int or str, optional
        Of a model with several outputs, the class that is to be the most likely. With one output,
        a name for what passes.
    above, below : float, optional
        With one output, the output that counts as passing, from there on or up to there; 0.5 and
        above by default, which suits probabilities.
    at_least, at_most : float, optional
        In the place of ``value``: the share, moved in one direction only.
    margin : float
        How far past the cut-off rows are asked to go under `Bounds(outputs=)`, in units of the
        output; with several outputs, by how much the class is to lead.

    Examples
    --------
    >>> import numpy
    >>> outputs = numpy.array([[0.1], [0.3], [0.4], [0.9]])
    >>> share(approved=0.75).resolved(outputs).of(outputs).T
    array([[0.1 , 0.55, 0.55, 0.9 ]])
    >>> share(0.2, below=1.5).describe()
    '20% of rows with an output of at most 1.5, the others as they are'
    """
    ways = {"to": value, "at_least": at_least, "at_most": at_most}
    given = {way: number for way, number in ways.items() if number is not None}
    if len(named) + (len(given) > 0 or of is not None) != 1 or len(given) > 1:
        raise InvalidInput(
            "share",
            expected="one share, with or without a name",
            received=f"{named or 'none'}" + (f" beside {given}" if given else ""),
            fix="share(approved=0.6), share(0.6, of='approved') or share(at_least=0.6)",
        )
    asked: tuple[Any, Any] = of, next(iter(given.values()), None)
    of, value = next(iter(named.items()), asked)
    if above is not None and below is not None:
        expected, received = "above= or below=", f"above={above!r} beside below={below!r}"
        fix = "give one of them; share(0.2, below=0.3) counts outputs of at most 0.3"
        raise InvalidInput("below", expected=expected, received=received, fix=fix)
    return Share(
        value=value,
        of=of,
        cutoff=next((end for end in (above, below) if end is not None), 0.5),
        margin=margin,
        below=below is not None,
        direction=next(iter(given), "to"),
    )


def quantile(q: float, value: float) -> Share:
    """Ask for a quantile of the outputs: a share ``q`` of the rows at or below ``value``.

    Examples
    --------
    >>> quantile(0.5, 0.3).describe()
    '50% of rows with an output of at most 0.3, the others as they are'
    """
    if not 0.0 < _number("q", q) < 1.0:
        fix = share_fix(q, "0.5 is the median")
        raise InvalidInput("q", expected="a level in (0, 1)", received=repr(q), fix=fix)
    asked = share(q, below=_number("value", value))
    return replace(asked, said=f"quantile({q:g}, {text(value)})")


def label(of: int | str) -> Share:
    """Ask for one class to be the most likely for every row.

    Examples
    --------
    >>> label("promoted").name
    "label('promoted')"
    """
    return replace(share(1.0, of=of), direction="every", said=f"label({of!r})")


def mean(value: float) -> Derived:
    """Ask for a mean output, whatever the outputs of single rows.

    Examples
    --------
    >>> mean(0.5).describe()
    'a mean output of 0.5'
    """
    return Derived(kind="mean", level=_number("value", value))


def resolve(target: Target | Share, outputs: Array, labels: Sequence[Any] = ()) -> Target:
    """Return the target for rows with these factual outputs (n, K) of a model with these classes.

    Examples
    --------
    >>> import numpy
    >>> resolve(mean(0.5), numpy.array([[0.2], [0.4]])).of(numpy.array([[0.2], [0.4]])).T
    array([[0.4, 0.6]])
    """
    if isinstance(target, Share):
        return target.labelled(labels, outputs.shape[1]).resolved(outputs)
    if not isinstance(target, Derived) or target.kind != "mean":
        return target
    if outputs.shape[1] != 1:
        expected, received = "one output column for a mean", f"{outputs.shape[1]} columns"
        fix = "explain one class: estimator(model, output=label)"
        raise InvalidInput("target", expected=expected, received=received, fix=fix)
    # Every output moves by what the mean lacks.
    lacking = float(np.ravel(target.level)[0]) - float(np.mean(to_numpy(outputs)))
    return replace(target, about=lacking)


def from_dict(saved: Mapping[str, Any]) -> Target:
    """Rebuild a target from its ``to_dict``.

    Examples
    --------
    >>> from_dict(at_least(0.6).to_dict()).name
    'at_least(0.6)'
    """
    kind = saved.get("kind") if isinstance(saved, Mapping) else saved
    if not isinstance(kind, str) or kind not in _MAKERS:
        expected, fix = f"a kind among {', '.join(_MAKERS)}", "pass what to_dict returned"
        raise InvalidInput("saved", expected=expected, received=repr(kind), fix=fix)
    try:
        return _MAKERS[kind](*saved["arguments"])
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        if isinstance(error, InvalidInput):
            raise
        expected, received = f"the arguments of {kind}", f"{type(error).__name__}: {error}"
        fix = "pass what to_dict returned"
        raise InvalidInput("saved", expected=expected, received=received, fix=fix) from error


def _resolved_share(share: Any, threshold: Any, falling: Any) -> ResolvedShare:
    """Rebuild a share of known rows from its ``to_dict``."""
    known = from_mapping(Share, share, "share")
    threshold = _number("threshold", threshold)
    return ResolvedShare(
        level=known.cutoff, share=known, threshold=threshold, falling=bool(falling)
    )


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
    "mean": lambda level, about: Derived(
        kind="mean", level=_number("level", level), about=_number("about", about)
    ),
    "at_least": at_least,
    "at_most": at_most,
    "shift": shift,
    "scale": scale,
    "share": _resolved_share,
    "distribution": from_family,
    "quantiles": from_table,
}
