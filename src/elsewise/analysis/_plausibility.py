"""Whether counterfactual rows look like rows that exist."""

from __future__ import annotations

import numpy as np
import pandas as pd

from elsewise._arrays import to_numpy
from elsewise.errors import InvalidInput
from elsewise.explanation import Explanation
from elsewise.features import to_pandas
from elsewise.measure import nearest_distances

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95)


def plausibility(explanation: Explanation, background: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return how far rows are from the nearest background row, before and after.

    Distances are Euclidean in the embedding. One background row with the very values of a row's
    factual version is taken for the row itself and is no neighbour of it, neither before nor
    after: a row that did not move is as far as it was.

    Parameters
    ----------
    explanation
        What to look at.
    background
        DataFrame of rows that exist; by default the background of the explanation, of which at
        most 1024 rows were kept.

    Returns
    -------
    DataFrame
        Rows "factual" and "counterfactual"; columns ``q10`` to ``q95``, quantiles of the distance,
        and ``farther``, the share of rows farther away than the factual 95 % quantile.

    Examples
    --------
    >>> import elsewise as ew
    >>> rows = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    >>> score = ew.models.function(lambda frame: frame["a"], smooth=True)
    >>> explanation = ew.explain(
    ...     score, rows, target=ew.targets.shift(0.5), bounds=ew.Bounds(outputs=0.3),
    ...     certify="in-sample",
    ... )
    >>> float(plausibility(explanation).loc["factual", "farther"])
    0.05
    """
    problem = explanation.problem
    codes = to_numpy(problem.background) if background is None else _codes(explanation, background)
    if len(codes) < 2:
        fix = "pass the rows the model was trained on"
        raise InvalidInput("background", "at least 2 rows", len(codes), fix)
    before, after = nearest_distances(problem, codes, problem.factual, explanation.rows.codes)
    far = np.quantile(before, LEVELS[-1])
    table = {
        name: [*np.quantile(distances, LEVELS), np.mean(distances > far)]
        for name, distances in (("factual", before), ("counterfactual", after))
    }
    columns = [*(f"q{100 * level:.0f}" for level in LEVELS), "farther"]
    return pd.DataFrame.from_dict(table, orient="index", columns=columns)


def _codes(explanation: Explanation, background: object) -> np.ndarray:
    background, _ = to_pandas(background, "background", explanation.encoder.columns)
    if not isinstance(background, pd.DataFrame):
        expected = "a DataFrame with the explained columns"
        fix = "leave it out for the background of the explanation"
        raise InvalidInput("background", expected, type(background).__name__, fix)
    return explanation.encoder.extend(background).encode(background)
