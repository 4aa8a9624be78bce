"""The paper's figure: outputs, all features, and the features that move most."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from elsewise.analysis import changes as changes_of
from elsewise.plots._change_plots import changes
from elsewise.plots._quantile_plots import feature, outputs, projected

if TYPE_CHECKING:
    from elsewise.explanation import Explanation


COLUMNS = 3


def panel(explanation: Explanation, most: int = 6) -> np.ndarray:
    """Compose the paper's figure: outputs and all features, the changes, then feature by feature.

    Parameters
    ----------
    explanation
        What to draw.
    most
        At most this many features get a picture of their own.

    Returns
    -------
    ndarray of Axes
        In reading order; their figure is ``axes[0].figure``.
    """
    import matplotlib.pyplot as plt

    names = list(changes_of(explanation).index[:most])
    rows = 1 + -(-len(names) // COLUMNS)
    figure = plt.figure(figsize=(12.0, 3.6 * rows), layout="constrained")
    grid = figure.add_gridspec(rows, COLUMNS)
    places = [grid[0, 0], grid[0, 1], grid[0, 2]]
    places += [grid[1 + k // COLUMNS, k % COLUMNS] for k in range(len(names))]
    axes = [figure.add_subplot(place) for place in places]
    outputs(explanation, axes[0])
    projected(explanation, axes[1])
    changes(explanation, axes[2], most=8)
    for name, ax in zip(names, axes[3:], strict=True):
        feature(explanation, name, ax)
    return np.array(axes, dtype=object)
