"""What changed, feature by feature and level by level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from elsewise._arrays import to_numpy
from elsewise.analysis._columns import Column, columns_of, embedded
from elsewise.errors import SavedRunError
from elsewise.explanation import Explanation

BINS = 10
# An empty bin counts as half a row in a PSI.
LEAST_ROWS = 0.5
QUANTILES = {"shift_q10": 0.1, "shift_q50": 0.5, "shift_q90": 0.9}
NUMBERS = "rows_up", "rows_down", "median_move", "mean_before", "mean_after"
KEPT = "(kept)"


def changes(explanation: Explanation) -> pd.DataFrame:
    """Return what changed, feature by feature, largest effect on the output first.

    Parameters
    ----------
    explanation
        What to describe.

    Returns
    -------
    DataFrame
        One row per feature that may move; a one-hot group is one feature, of the group's name.

        - ``kind``: number, integer, category or one-hot group
        - ``effect``: by how much the mean output (of several, the one that is asked about, such as
          the probability of a class) would differ without this feature's changes: the
          mean over all rows of the output as it is minus the output with the feature alone put
          back. NaN where the model is not there, as in a run loaded without it; the features are
          then in the order of ``share``
        - ``rows_moved``: share of rows in which it changed; ``rows_up`` and ``rows_down`` those in
          which a number rose and fell, NaN for categories
        - ``median_move``: median change of a number in the rows in which it changed
        - ``mean_before``, ``mean_after``, ``shift_q10``, ``shift_q50``, ``shift_q90``: means and
          shifts of quantiles of the known cells in the user's units; NaN for categories
        - ``psi``, ``ks``: see `psi` and `ks`; the KS of an unordered category is the largest over
          all orders of its levels, the total variation
        - ``distance``: 2-Wasserstein distance of this feature alone, in embedding units (standard
          deviations times weight); for a category weight * sqrt(total variation), as a swap costs
          its weight
        - ``share``: its share of the sum of squared distances; 0 where nothing moved at all

    Examples
    --------
    >>> import elsewise as ew
    >>> rows = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    >>> score = ew.models.function(lambda frame: frame["a"] + frame["b"] / 99, smooth=True)
    >>> explanation = ew.explain(
    ...     score, rows, target=ew.targets.shift(0.5), bounds=ew.Bounds(outputs=0.3),
    ...     certify="in-sample",
    ... )
    >>> changes(explanation)["share"].round(1).to_dict()
    {'a': 1.0, 'b': 0.0}
    """
    before, after = embedded(explanation)
    # Sorted against sorted in each dimension: the distance of eq. (4).
    gaps = np.sort(after, axis=0) - np.sort(before, axis=0)
    # The plan between two category distributions that pays w^2 / 2 to leave a level and as much to
    # enter one keeps what both share: the sum over indicators of w^2 / 2 |p - q|.
    squares = np.mean(gaps * gaps, axis=0)
    columns = [column for column in columns_of(explanation) if column.free]
    squared = np.array([squares[column.dimensions].sum() for column in columns])
    table = pd.DataFrame([_entry(column) for column in columns])
    table["distance"] = np.sqrt(squared)
    table["share"] = squared / (squared.sum() or 1.0)
    table.insert(2, "effect", _effects(explanation, columns))
    # Loaded without their model, features have no effect to be ordered by.
    size = table["effect"].abs().fillna(0.0)
    order = np.lexsort((-table["share"], -size))
    return table.iloc[order].set_index("feature")


def _effects(explanation: Explanation, columns: Sequence[Column]) -> np.ndarray:
    """What each feature adds to the mean output, (A,): its changes alone are put back."""
    outputs, asked = explanation.problem.outputs, explanation.main_output
    after, before = to_numpy(explanation.rows.codes), to_numpy(explanation.problem.factual)
    if not any(column.moved.any() for column in columns):
        return np.zeros(len(columns))
    put_back = []
    for column in columns:
        # Indexing by an array copies, so that the counterfactual itself stays as it is.
        codes, places = after[column.moved], list(column.places)
        codes[:, places] = before[column.moved][:, places]
        put_back.append(codes)
    try:
        # One call for all features: only rows in which a feature changed are asked about.
        without = to_numpy(outputs.values(outputs.place(np.concatenate(put_back))))[:, asked]
    except SavedRunError:
        return np.full(len(columns), np.nan)
    parts = np.split(without, np.cumsum([len(codes) for codes in put_back])[:-1])
    with_it = explanation.outputs[:, asked]
    added = [np.sum(with_it[c.moved] - part) for c, part in zip(columns, parts, strict=True)]
    return np.array(added) / len(with_it)


def _entry(column: Column) -> dict[str, Any]:
    before, after = column.before, column.after
    old, new = (values[~np.isnan(values)] for values in (before, after))
    entry: dict[str, Any] = {
        "feature": column.name,
        "kind": column.kind,
        "rows_moved": float(column.moved.mean()),
        **dict.fromkeys((*NUMBERS, *QUANTILES), np.nan),
        "psi": psi(before, after, category=not column.numeric),
        "ks": ks(before, after) if column.ordered else _total_variation(old, new),
    }
    if column.numeric and old.size:
        moves = (after - before)[column.moved]
        moves = moves[~np.isnan(moves)]
        entry["rows_up"] = float(np.sum(moves > 0) / before.size)
        entry["rows_down"] = float(np.sum(moves < 0) / before.size)
        entry["median_move"] = float(np.median(moves)) if moves.size else np.nan
        entry |= {"mean_before": float(old.mean()), "mean_after": float(new.mean())}
        for name, level in QUANTILES.items():
            entry[name] = float(np.quantile(new, level) - np.quantile(old, level))
    return entry


def psi(before: np.ndarray, after: np.ndarray, *, category: bool = False) -> float:
    """Return the population stability index: sum over bins of (q - p) log(q / p).

    Numbers are binned by the tenths of the first sample. A category, and a number of at most ten
    values, has a bin for every value. Missing cells are a bin of their own. An empty bin counts
    as half a row, so that a PSI stays finite; on few rows it is largely that choice.

    Parameters
    ----------
    before, after
        Arrays (n,) and (m,), NaN is missing.
    category
        Whether values are codes of a category.

    Examples
    --------
    >>> x = np.arange(100.0)
    >>> psi(x, x), round(psi(x, x + 20.0), 2)
    (0.0, 0.79)
    """
    known = before[~np.isnan(before)]
    values = np.unique(np.concatenate([known, after[~np.isnan(after)]]) if category else known)
    few = category or values.size <= BINS
    edges = values if few else np.unique(np.quantile(known, np.arange(1, BINS) / BINS))
    bins = 2 * edges.size + 2

    def shares(sample: np.ndarray) -> np.ndarray:
        places = np.searchsorted(edges, sample)
        if few:  # a value is a bin, and so is what lies between two values
            places = places + np.searchsorted(edges, sample, side="right")
        counts = np.bincount(np.where(np.isnan(sample), bins - 1, places), minlength=bins)
        return np.asarray(np.maximum(counts, LEAST_ROWS) / sample.size)

    p, q = shares(before), shares(after)
    return float(np.sum((q - p) * np.log(q / p)))


def ks(before: np.ndarray, after: np.ndarray) -> float:
    """Return Kolmogorov and Smirnov's distance, the largest gap of the distribution functions.

    Parameters
    ----------
    before, after
        Arrays (n,) and (m,); missing cells are left out, NaN without others.

    Examples
    --------
    >>> ks(np.arange(10.0), np.arange(10.0) + 5.0)
    0.5
    """
    first, second = (np.sort(values[~np.isnan(values)]) for values in (before, after))
    if not first.size or not second.size:
        return float("nan")
    points = np.concatenate([first, second])
    shares = [np.searchsorted(part, points, side="right") / part.size for part in (first, second)]
    return float(np.max(np.abs(shares[0] - shares[1])))


def _total_variation(before: np.ndarray, after: np.ndarray) -> float:
    """Half the summed gaps of the shares of levels; NaN without cells."""
    if not before.size or not after.size:
        return float("nan")
    k = int(max(before.max(), after.max())) + 1
    p, q = (np.bincount(codes.astype(int), minlength=k) / codes.size for codes in (before, after))
    return float(0.5 * np.abs(q - p).sum())


def flows(explanation: Explanation) -> pd.DataFrame:
    """Return the rows that change from one level to another, largest flows first.

    Parameters
    ----------
    explanation
        What to describe.

    Returns
    -------
    DataFrame
        Columns ``feature``, ``from``, ``to``, ``rows`` and ``share`` (of all rows), for every
        category, boolean and one-hot group that may move. The last row of each feature is the
        rows that keep their level, from and to "(kept)": a feature's rows add up to all rows.

    Examples
    --------
    >>> import elsewise as ew
    >>> rows = pd.DataFrame({"a": np.arange(40.0), "home": ["own", "rent"] * 20})
    >>> explanation = ew.explain(
    ...     lambda frame: 1.0 * (frame["home"] == "own"), rows, target=ew.targets.constant(1.0),
    ...     bounds=ew.Bounds(outputs=0.3), certify="in-sample",
    ... )
    >>> flows(explanation)[["from", "to"]].iloc[0].tolist()
    ['rent', 'own']
    """
    table: list[tuple[Any, ...]] = []
    for column in columns_of(explanation):
        if column.free and not column.numeric:
            for pair, count in zip(*column.level_changes(), strict=True):
                start, end = map(column.level, pair)
                table.append((column.name, start, end, int(count)))
            table.append((column.name, KEPT, KEPT, int(np.sum(~column.moved))))
    frame = pd.DataFrame(table, columns=["feature", "from", "to", "rows"])
    rows = frame["rows"].astype("int64")
    return frame.assign(rows=rows, share=rows / len(explanation.outputs))
