"""Results of statsmodels, recognised without importing it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

from elsewise.models._faces import ScoringAdapter, read_columns

# Models whose predictions are probabilities; so are those of a GLM with a binomial family.
PROBABILITIES = frozenset({"Logit", "Probit", "MNLogit", "OrderedModel"})


def results_face(model: Any, own: list[Hashable]) -> ScoringAdapter | None:
    """Return how fitted results of statsmodels are read, or None for any other model.

    A model made from a formula reads the frame by itself. One made from arrays reads the columns
    it was fitted on; a column "const" that the frame lacks is 1.

    Parameters
    ----------
    model : statsmodels results, or anything else
        What ``fit`` returned.
    own : list
        Columns of the frame.
    """
    fitted = getattr(model, "model", None)
    if not type(model).__module__.startswith("statsmodels.") or fitted is None:
        return None
    kind = type(fitted).__name__
    binomial = type(getattr(fitted, "family", None)).__name__ == "Binomial"
    names: list[Hashable] | None = None
    place, count = -1, None
    if getattr(fitted, "formula", None) is None:
        names = list(fitted.exog_names)
        if "const" in names and "const" not in own:
            place = names.index("const")
            del names[place]
        # What statsmodels calls the columns of an array: it knows how many there were.
        numbered = [f"x{j + 1}" for j in range(len(names))]
        if [*map(str, names)] == numbered and "x1" not in own:
            names, count = None, len(numbered)
    columns, read = read_columns(own, names, count)

    def score(frame: pd.DataFrame) -> object:
        inputs = read(frame)
        if place >= 0:
            inputs = pd.DataFrame(inputs, columns=columns)
            inputs.insert(place, "const", 1.0)
        return model.predict(inputs)

    return ScoringAdapter(
        name=f"{kind}.predict",
        score=score,
        columns=columns,
        classes=[],
        probability=kind in PROBABILITIES or binomial,
        smooth=True,
    )
