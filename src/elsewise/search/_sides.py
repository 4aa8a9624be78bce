"""The bounded sides of the question, as the search over eta sees them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from elsewise._arrays import namespace, row_products
from elsewise.certificate import certify_inputs, certify_moves, certify_outputs
from elsewise.confidence import Method, steering_method
from elsewise.measure import input_distance
from elsewise.moves import Rows
from elsewise.request import Problem
from elsewise.search._loop import State
from elsewise.settings import Settings
from elsewise.transport import direction_blocks

# Bootstrap draws of the limits that steer the search.
SEARCH_DRAWS = 199


class Side(NamedTuple):
    """One bounded side."""

    name: str
    bound: float
    sign: float
    """+1 where a larger eta lowers this side's limit, else -1."""
    at_most: Callable[[State, int], float]
    """The limit that a certificate has of a state, from that many bootstrap draws."""
    draws: int
    """Draws of the certificate that counts."""
    seen: Callable[[State], float]
    """What stands for the limit between two certificates: cheap, and about proportional to it."""
    other: Callable[[State], float]
    """What is paid on the other side: the output distance, or the cost of the inputs."""

    def limit(self, state: State) -> float:
        """The limit that steers the search: the certificate's own method, with fewer draws."""
        return self.at_most(state, min(self.draws, SEARCH_DRAWS))

    def met(self, state: State) -> bool:
        """Whether the certificate that counts is within the bound."""
        return self.at_most(state, self.draws) <= self.bound


def bounded_sides(problem: Problem, settings: Settings, *, steering: bool = True) -> list[Side]:
    """The sides that have a bound, in this order: outputs, inputs, the rows' own moves.

    By limits that steer; otherwise as they are returned, by another method where few rows move.
    """
    return [side for side in _sides(problem, settings, steering) if math.isfinite(side.bound)]


def distance_side(problem: Problem, settings: Settings, distance: float) -> Side:
    """The side of outputs whose distance itself, not a limit of it, is to be at most so large."""
    outputs, *_ = _sides(problem, settings)

    def known(state: State, draws: int) -> float:
        return state.record.outputs

    return outputs._replace(bound=distance, at_most=known, seen=_output_distance)


def row_move(state: State) -> float:
    """Root mean square move of the rows, in standard deviations."""
    moves = state.embedded - state.setup.population.embedded
    return math.sqrt(float(namespace(moves).mean(row_products(moves, moves))))


def _sides(problem: Problem, settings: Settings, steering: bool = True) -> list[Side]:
    """The sides of outputs, inputs and the rows' own moves, whether they have a bound or not."""
    bounds, draws = problem.bounds, settings.draws
    method = Method(bounds.method)
    if steering:
        method = steering_method(bounds.method, bounds.trim, problem.factual.shape[0])
    distance = selection_distance(problem)

    def outputs(state: State, draws: int) -> float:
        rows = state.rows
        # The certificate that counts asks the model; a compiled pipeline says the same to 1e-12.
        if problem.precise is not problem.outputs and not getattr(problem.precise, "exact", False):
            rows = Rows(rows.codes, problem.outputs.values(rows.codes))
        population = state.setup.population
        return certify_outputs(problem, population, rows, draws, method=method).at_most

    def inputs(state: State, draws: int) -> float:
        about = problem, state.setup.population, state.rows
        return certify_inputs(*about, draws, method=method, still=state.still).at_most

    def moves(state: State, draws: int) -> float:
        about = problem, state.setup.population, state.rows
        return certify_moves(*about, still=state.still).at_most

    def seen(state: State) -> float:
        # The loop's distance and limit share the noise of their directions, which are drawn anew
        # at every iteration; their ratio does not.
        record = state.record
        return distance(state) * (record.inputs_limit / record.inputs if record.inputs > 0 else 1.0)

    ends = [bound or math.inf for bound in (bounds.outputs, bounds.inputs, bounds.moves)]
    return [
        Side("outputs", ends[0], 1.0, outputs, draws, _output_limit, selection_cost(problem)),
        Side("inputs", ends[1], -1.0, inputs, draws, seen, _output_distance),
        Side("moves", ends[2], -1.0, moves, draws, row_move, _output_distance),
    ]


def _output_distance(state: State) -> float:
    return state.record.outputs


def _output_limit(state: State) -> float:
    return state.record.outputs_limit


def selection_distance(problem: Problem) -> Callable[[State], float]:
    """Input distance on directions kept for choosing between states.

    They are neither the optimizer's nor the certificate's: both keep their innocence.
    """
    kept = direction_blocks(problem.embedding.size, problem.generator("selection"))

    def distance(state: State) -> float:
        return input_distance(problem, state.setup.population, state.rows.codes, kept)

    return distance


def selection_cost(problem: Problem) -> Callable[[State], float]:
    """What the inputs cost the search, on the root scale: that distance and the rows' own moves."""
    distance = selection_distance(problem)

    def cost(state: State) -> float:
        weight, size = state.setup.motion.population_weight, state.embedded.shape[1]
        own = row_move(state) ** 2 / size
        return math.sqrt(weight * distance(state) ** 2 + (1.0 - weight) * own)

    return cost
