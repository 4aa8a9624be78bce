"""Many explanations at once: groups of a population, and sweeps over what may be chosen.

Every explanation is a `Request`, and a request holds all of its randomness: alone,
after others or in another process, it gives the same result. A request that fails is a row of the
table.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd

from elsewise.batch._results import Explanations, title
from elsewise.batch._run import run_requests
from elsewise.errors import InvalidInput
from elsewise.features import Schema, to_pandas
from elsewise.request import Bounds, Request, check_seed, derived_seed
from elsewise.settings import Settings
from elsewise.targets import Share, Target

# Name of the group of rows whose value of ``by`` is missing.
MISSING = "(missing)"


def explain_groups(
    model: Any,
    frame: Any,
    *,
    by: Hashable | Sequence[Hashable] | pd.Series[Any],
    background: Any = None,
    schema: Schema | None = None,
    simultaneous: bool = False,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool | None = None,
    **question: Any,
) -> Explanations:
    """Explain every group of a population, with one background and one schema for all.

    A group is explained as `elsewise.explain` explains its rows alone, with a seed made from
    ``seed`` and the group's name (column ``seed`` of the table): which other groups there are, and
    how many jobs, changes nothing. Each certificate holds at its own level, or with
    ``simultaneous=True`` all of them together.

    Parameters
    ----------
    model
        As for `elsewise.explain`. With several jobs it is pickled.
    frame
        DataFrame: the whole population.
    by
        A column of the frame, or several: the model may read them, and they are frozen, because
        a row that moves there is in another group. Or a Series with the frame's index, which is
        no part of the rows. Rows for which it is missing are a group of their own, "(missing)".
    background
        DataFrame that gives scales and observed ranges; the whole ``frame`` by default.
    schema
        What may change and how; inferred from the whole frame and background by default.
    simultaneous
        Whether the limits of all groups are to hold at once with the confidence of the bounds: of
        k groups each may miss with one k-th of the error (Bonferroni). Ask for this before
        picking out the best or worst group. The column ``confidence`` says what was used.
    seed
        The one source of randomness.
    jobs
        Processes to use, -1 for one per core; by default what ``joblib.parallel_config`` says,
        which can also name a cluster, else one.
    progress
        Show a progress bar; by default only on a terminal.
    **question
        The other arguments of `elsewise.explain`, for each group: ``target``, ``bounds``, ...

    Examples
    --------
    >>> import elsewise as ew
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"income": rng.normal(size=90), "home": ["own", "rent", "rent"] * 30})
    >>> groups = ew.explain_groups(
    ...     lambda rows: rows["income"] + (rows["home"] == "own"),
    ...     people,
    ...     by="home",
    ...     target=ew.targets.shift(0.5),
    ...     bounds=ew.Bounds(outputs=0.2),
    ...     settings=ew.Settings(iterations=5, draws=99),
    ... )
    >>> groups.table[["rows", "status", "ok"]]
          rows     status    ok
    home
    own     30  described  True
    rent    60  described  True
    """
    check_seed(seed)
    frame, source = to_pandas(frame)
    background = to_pandas(background, "background")[0]
    schema = Schema.infer(frame, background) if schema is None else schema
    columns = _columns(frame, by)
    parts = tuple(columns or [getattr(by, "name", None) or "group"])
    named = list(_groups(frame, columns or by, len(parts)))
    if simultaneous:
        question |= _together(question.get("bounds"), question.get("settings"), len(named))
    requests = [
        Request(
            name=name,
            model=model,
            rows=rows,
            schema=schema.freeze(*columns),
            background=frame if background is None else background,
            seed=derived_seed(seed, title(parts, name)),
            source=source,
            **question,
        )
        for name, rows in named
    ]
    return run_requests(requests, parts, jobs, progress)


def explain_sweep(
    request: Request, *, jobs: int | None = None, progress: bool | None = None, **choices: Any
) -> Explanations:
    """Explain one request with every combination of some of its fields.

    Parameters
    ----------
    request
        What stays the same; its name does not matter.
    jobs, progress
        As for `explain_groups`.
    **choices
        Values of fields of `Request`, such as ``bounds``, ``target``, ``seed``, ``model``: a
        mapping from label to value, or a sequence, in which numbers and texts are their own labels,
        targets have their names, and anything else is numbered.

    Examples
    --------
    >>> import elsewise as ew
    >>> rows = pd.DataFrame({"x": np.random.default_rng(0).normal(size=60)})
    >>> request = ew.Request(model=lambda rows: rows["x"], rows=rows,
    ...                target=ew.targets.shift(0.5), settings=ew.Settings(iterations=5, draws=99))
    >>> bounds = {"near": ew.Bounds(outputs=0.2), "far": ew.Bounds(outputs=0.4)}
    >>> ew.explain_sweep(request, bounds=bounds, seed=range(2)).table["ok"]
    bounds  seed
    near    0       True
            1       True
    far     0       True
            1       True
    Name: ok, dtype: bool
    """
    known = [field.name for field in fields(Request) if field.name != "name"]
    unknown = [name for name in choices if name not in known]
    if unknown or not choices:
        expected = f"fields of Request ({', '.join(known)})"
        received = repr(unknown[0]) if unknown else "none"
        fix = "for example bounds={'near': Bounds(outputs=0.1), 'far': Bounds(outputs=0.2)}"
        raise InvalidInput("choices", expected, received, fix)
    requests = []
    for chosen in itertools.product(*(_labelled(values) for values in choices.values())):
        labels, values = zip(*chosen, strict=True)
        changes = dict(zip(choices, values, strict=True))
        requests.append(replace(request, name=labels if len(labels) > 1 else labels[0], **changes))
    return run_requests(requests, tuple(choices), jobs, progress)


def explain_many(
    requests: Iterable[Request], *, jobs: int | None = None, progress: bool | None = None
) -> Explanations:
    """Make explanations, in parallel if asked for; what fails is reported, not raised.

    Parameters
    ----------
    requests
        What to explain, each under a name of its own.
    jobs, progress
        As for `explain_groups`.

    Examples
    --------
    >>> import elsewise as ew
    >>> rows = pd.DataFrame({"x": np.random.default_rng(0).normal(size=60)})
    >>> found = ew.explain_many(
    ...     ew.Request(name=name, model=lambda rows: rows["x"], rows=some,
    ...             target=ew.targets.shift(0.5), settings=ew.Settings(iterations=5, draws=99))
    ...     for name, some in {"all": rows, "one": rows[:1]}.items()
    ... )
    >>> found
    <Explanations: 2 requests, 1 as asked for, 1 failed>
    >>> found.failures["one"].error
    'InvalidInput: rows: expected at least 2 rows, received 1. Fix: ...'
    """
    return run_requests(list(requests), ("name",), jobs, progress)


def _columns(frame: pd.DataFrame, by: Any) -> list[Hashable]:
    """The columns of the frame that ``by`` names; none for a Series."""
    if isinstance(by, pd.Series):
        if by.index.equals(frame.index):
            return []
        fix = "pass by.reindex(frame.index) or by.set_axis(frame.index)"
        received = f"one of {len(by)} values with another index"
        raise InvalidInput("by", "a Series with the frame's index", received, fix)
    named = by in frame.columns if isinstance(by, Hashable) else False
    columns = [by] if named or not isinstance(by, Iterable) or isinstance(by, str) else list(by)
    unknown = [name for name in columns if name not in frame.columns]
    if unknown or not columns:
        received = repr(unknown[0]) if unknown else "no column"
        fix = "name a column, a list of columns, or pass a Series with the frame's index"
        raise InvalidInput("by", "columns of the frame", received, fix)
    return columns


def _groups(frame: pd.DataFrame, by: Any, count: int) -> Iterator[tuple[Hashable, pd.DataFrame]]:
    """Names and rows of the groups, in the order of their values."""
    # `observed`, because a category's unused levels are groups without rows; missing keys are a
    # group.
    for key, rows in frame.groupby(by, sort=True, observed=True, dropna=False):
        values = key if isinstance(by, list) else (key,)
        plain = tuple(_plain(value) for value in values)
        yield plain if count > 1 else plain[0], rows


def _together(bounds: Bounds | None, settings: Settings | None, groups: int) -> dict[str, Any]:
    """Return bounds and settings of each group that keep the confidence for all together."""
    bounds, settings = bounds or Bounds(), settings or Settings()
    error = (1.0 - bounds.confidence) / max(groups, 1)
    # A bootstrap's limit at 1 - error is its largest draw or lies beyond: draw enough.
    settings = replace(settings, draws=max(settings.draws, math.ceil(1.0 / error)))
    return {"bounds": replace(bounds, confidence=1.0 - error), "settings": settings}


def _plain(value: Any) -> Hashable:
    """A value as Python writes it, and one name for everything missing."""
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return MISSING
    return value.item() if isinstance(value, np.generic) else value  # type: ignore[no-any-return]


def _labelled(values: Any) -> list[tuple[Hashable, Any]]:
    """Labels and values of one choice."""
    if isinstance(values, Mapping):
        return list(values.items())
    if isinstance(values, str) or not isinstance(values, Iterable):
        expected = "a mapping from label to value, or a sequence of values"
        received = type(values).__name__
        raise InvalidInput("choices", expected, received, "put a single value into a list")
    return [(_label(value, place), value) for place, value in enumerate(values)]


def _label(value: Any, place: int) -> Hashable:
    if isinstance(value, int | float | str | np.number):
        return value
    return str(value.name) if isinstance(value, Target | Share) else place
