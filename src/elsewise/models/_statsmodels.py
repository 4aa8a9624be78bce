"""Results of statsmodels, recognised without importing it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

from elsewise.models._faces import ScoringAdapter, read_columns, reader

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
    columns, as_array, constant = own, False, False
    if getattr(fitted, "formula", None) is None:
        names = list(fitted.exog_names)
        constant = "const" in names and "const" not in own
        columns, as_array = _columns(
            own, [name for name in names if name != "const" or not constant]
        )
    read = reader(columns, as_array)

    def score(frame: pd.DataFrame) -> object:
        inputs = read(frame)
        if constant:
            inputs = pd.DataFrame(inputs, columns=columns)
            inputs.insert(names.index("const"), "const", 1.0)
        return model.predict(inputs)

    return ScoringAdapter(
        name=f"{kind}.predict",
        score=score,
        columns=columns,
        classes=[],
        probability=kind in PROBABILITIES or binomial,
        smooth=True,
    )


def _columns(own: list[Hashable], names: list[Hashable]) -> tuple[list[Hashable], bool]:
    """Return the columns read and whether as an array, whose columns statsmodels calls x1, x2."""
    if all(str(name) == f"x{j + 1}" for j, name in enumerate(names)) and names[0] not in own:
        return read_columns(own, None, len(names))
    return read_columns(own, names, None)
