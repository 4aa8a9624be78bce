"""Optimal transport between populations, as sorting.

With equal weights the optimal plan in one dimension pairs order statistics, so a squared distance,
its gradient and its plan all come from one batched sort. Populations are arrays (n, d); projections
are stored as (N, n), one contiguous row per direction: the layout that sorts fastest.

Everything here is written on the array API standard and gives the same numbers in NumPy, torch and
array-api-strict.
"""

from elsewise.transport._directions import (
    direction_blocks,
    direction_parts,
    directions_like,
    lift,
    pack_directions,
    project,
    row_tiles,
    unpack_directions,
)
from elsewise.transport._monotone import MonotoneMaps, fit_monotone_maps, join_maps, transported
from elsewise.transport._ranking import Ranked, rank
from elsewise.transport._sorted import (
    Reference,
    cell_weights,
    potentials,
    reference,
    segments,
    sliced_squared_distance,
    sliced_squared_distance_and_gradient,
    sorted_squared_distances,
    squares_and_influence,
)

__all__ = [
    "MonotoneMaps",
    "Ranked",
    "Reference",
    "cell_weights",
    "direction_blocks",
    "direction_parts",
    "directions_like",
    "fit_monotone_maps",
    "join_maps",
    "lift",
    "pack_directions",
    "potentials",
    "project",
    "rank",
    "reference",
    "row_tiles",
    "segments",
    "sliced_squared_distance",
    "sliced_squared_distance_and_gradient",
    "sorted_squared_distances",
    "squares_and_influence",
    "transported",
    "unpack_directions",
]
