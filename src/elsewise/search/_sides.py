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


def bounded_sides(
    problem: Problem, settings: Settings, *, steering: bool = True
) -> tuple[Side | None, Side | None]:
    """The sides of inputs and outputs; None where there is no bound.

    By limits that steer; otherwise as they are returned, by another method where few rows move.
    """
    bounds = problem.bounds
    inputs, outputs = _sides(problem, settings, steering)
    return (None if bounds.inputs is None else inputs, None if bounds.outputs is None else outputs)


def distance_side(problem: Problem, settings: Settings, distance: float) -> Side:
    """The side of outputs whose distance itself, not a limit of it, is to be at most so large."""
    _, outputs = _sides(problem, settings)

    def known(state: State, draws: int) -> float:
        return state.record.outputs

    return outputs._replace(bound=distance, at_most=known, seen=_output_distance)


def moves_side(problem: Problem, settings: Settings) -> Side | None:
    """The side of the rows' own moves; None where they have no bound."""
    bound = problem.bounds.moves
    if bound is None:
        return None

    def at_most(state: State, draws: int) -> float:
        still, population = _is_still(state, settings), state.setup.population
        return certify_moves(problem, population, state.rows, still=still).at_most

    return Side("moves", bound, -1.0, at_most, settings.draws, row_move, _output_distance)


def row_move(state: State) -> float:
    """Root mean square move of the rows, in standard deviations."""
    moves = state.embedded - state.setup.population.embedded
    return math.sqrt(float(namespace(moves).mean(row_products(moves, moves))))


def _is_still(state: State, settings: Settings) -> bool:
    return state.trail is None and not settings.start_noise


def _sides(problem: Problem, settings: Settings, steering: bool = True) -> tuple[Side, Side]:
    bounds, draws = problem.bounds, settings.draws
    method = Method(bounds.method)
    if steering:
        method = steering_method(bounds.method, bounds.trim, problem.factual.shape[0])

    def inputs(state: State, draws: int) -> float:
        still, population = _is_still(state, settings), state.setup.population
        found = certify_inputs(problem, population, state.rows, draws, method=method, still=still)
        return found.at_most

    def outputs(state: State, draws: int) -> float:
        rows = state.rows
        # The certificate that counts asks the model; a compiled pipeline says the same to 1e-12.
        if problem.precise is not problem.outputs and not getattr(problem.precise, "exact", False):
            rows = Rows(rows.codes, problem.outputs.values(rows.codes))
        population = state.setup.population
        return certify_outputs(problem, population, rows, draws, method=method).at_most

    distance, cost = selection_distance(problem), selection_cost(problem)

    def seen(state: State) -> float:
        # The loop's distance and limit share the noise of their directions, which are drawn anew
        # at every iteration; their ratio does not.
        record = state.record
        return distance(state) * (record.inputs_limit / record.inputs if record.inputs > 0 else 1.0)

    within, close = bounds.inputs or math.inf, bounds.outputs or math.inf
    return (
        Side("inputs", within, -1.0, inputs, draws, seen, _output_distance),
        Side("outputs", close, 1.0, outputs, draws, _output_limit, cost),
    )


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
