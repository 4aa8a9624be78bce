"""Points of two distances, both better small: which are worth having, and where the bend is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elsewise.text import percent

# Share of the possible fall in output distance that is had at the knee.
FALL = 0.9


def pareto_front(inputs: Sequence[float], outputs: Sequence[float]) -> list[int]:
    """Indices of the points that no other point beats, by growing inputs.

    A point is beaten by one that is nowhere worse and somewhere better; of equal points the first
    stays. Along the answer inputs strictly grow and outputs strictly fall.

    Examples
    --------
    >>> pareto_front([0.0, 0.3, 0.1, 0.2], [1.0, 0.1, 0.5, 0.6])
    [0, 2, 1]
    """
    kept: list[int] = []
    least = np.inf
    # In the order of inputs, a point is beaten exactly if one before it has outputs as small.
    for k in np.lexsort((outputs, inputs)).tolist():
        if outputs[k] < least:
            kept.append(k)
            least = outputs[k]
    return kept


def monotone_front(
    points: Sequence[tuple[float, float]], limits: Sequence[tuple[float, float]]
) -> list[int]:
    """Indices of points that fall in both views, by growing inputs, as many as there are.

    What beats others by its distances may be beaten by its limits, or trade places with another.

    Parameters
    ----------
    points, limits
        Pairs (inputs, outputs) of the same points: distances, and upper limits of them.

    Examples
    --------
    >>> monotone_front([(0.1, 0.9), (0.2, 0.5), (0.3, 0.4)], [(0.2, 1.0), (0.5, 0.6), (0.4, 0.7)])
    [0, 1]
    """
    order = pareto_front(*zip(*points, strict=True))
    chains: list[list[int]] = []  # the longest that ends at each point
    for here in order:
        inputs, outputs = limits[here]
        before = [
            chain
            for chain in chains
            if limits[chain[-1]][0] < inputs and limits[chain[-1]][1] > outputs
        ]
        chains.append([*max(before, key=len, default=[]), here])
    return max(chains, key=len)


def knee(inputs: Sequence[float], outputs: Sequence[float]) -> int:
    """Index of the first point of a falling curve that has nine tenths of the possible fall.

    The point farthest below the chord is where the bend seems to be, but on a curve that is nearly
    straight it is anywhere, and another seed has it somewhere else. This one depends on the ends of
    the outputs alone: the factual distance and the least one found.

    Examples
    --------
    >>> knee([0.0, 0.1, 1.0], [1.0, 0.05, 0.0]), knee([0.0, 0.5, 1.0], [1.0, 0.5, 0.0])
    (1, 2)
    """
    goal = knee_level(outputs)
    reached = [k for k in range(len(outputs)) if outputs[k] <= goal]
    return min(reached, key=lambda k: inputs[k])


def knee_level(outputs: Sequence[float]) -> float:
    """Return the output distance of the knee of a curve with these.

    Examples
    --------
    >>> round(knee_level([1.0, 0.6, 0.5]), 6)
    0.55
    """
    # Rounding must not put it below the least distance itself.
    return max(min(outputs), max(outputs) - FALL * (max(outputs) - min(outputs)))


def knee_reason(inputs: Sequence[float], outputs: Sequence[float], chosen: int) -> str:
    """Say in words why the knee is where it is.

    Examples
    --------
    >>> knee_reason([0.0, 0.1, 1.0], [1.0, 0.1, 0.0], 1)
    '90% of the possible fall in output distance for 10% of the largest input distance'
    """
    if len(inputs) == 1:
        return "no other population is closer to the target"
    if chosen == len(inputs) - 1:
        return "the frontier has no bend: the closest outputs found"
    possible = max(outputs) - min(outputs)
    fall = (max(outputs) - outputs[chosen]) / possible if possible > 0 else 1.0
    price = inputs[chosen] / (max(inputs) or 1.0)
    return (
        f"{percent(float(fall))} of the possible fall in output distance for {percent(price)} of "
        "the largest input distance"
    )
