"""The choice among offers: every row takes what costs it least, checked offer by offer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import elsewise as ew
from elsewise.features import Schema
from elsewise.moves import Motion, MoveContext, Rows, Step, Stock
from elsewise.moves._choose import choose
from elsewise.moves._edits import draw_edits
from elsewise.moves._offers import Offers, edited_rows, side_by_side, stepped_rows
from elsewise.moves._steps import Aim
from elsewise.request import Bounds, Problem, populate, pose
from elsewise.transport import MonotoneMaps

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "income": RNG.normal(size=40),
        "debt": RNG.normal(size=40),
        "home": RNG.choice(["own", "rent", "free"], 40),
    }
)
ETA, PRICE = 0.6, 0.01


def score(rows: pd.DataFrame) -> np.ndarray:
    level = rows["income"] - 0.7 * rows["debt"] + 0.8 * (rows["home"] == "own")
    return np.asarray(1.0 / (1.0 + np.exp(-level)))


def ask(schema: Schema) -> Problem:
    model = ew.models.function(score, smooth=False, probability=True)
    return pose(
        ew.Request(model=model, rows=FRAME, target=ew.targets.constant(0.9), schema=schema),
        Bounds(),
    )[0]


def context(problem: Problem, price: float = 0.0) -> MoveContext:
    people = populate(problem, problem.factual)
    nowhere = MonotoneMaps(knots=np.zeros((1, 2)), displacements=np.zeros((1, 2)))
    step = Step(
        eta=ETA,
        directions=np.eye(people.embedded.shape[1]),
        anchors=nowhere,
        output_directions=np.eye(1),
        wanted=None,
        edits=None,
        sparsity=price * people.embedded.shape[1],
    )
    rows = Rows(people.codes, people.outputs)
    return MoveContext(problem, Motion(), people, step, rows, people.embedded)


def aim_of(now: MoveContext) -> Aim:
    people = now.population
    return Aim(anchor=people.embedded, wanted=np.full_like(people.outputs, 0.9), eta=ETA)


def edited(problem: Problem, now: MoveContext, count: int = 30) -> Offers:
    drawn = draw_edits(Stock.of(problem), count, np.random.default_rng(1))
    return edited_rows(now, aim_of(now), drawn)


def steps(now: MoveContext, *lengths: float) -> list[np.ndarray]:
    """Steps of both numbers, in opposite directions."""
    way = np.array([1.0, -1.0, 0.0, 0.0, 0.0])
    return [np.broadcast_to(length * way, now.embedded.shape) for length in lengths]


def cost(problem: Problem, now: MoveContext, codes: np.ndarray) -> np.ndarray:
    """(1 - eta) |phi(x) - c|^2 / d + eta |b(x) - s|^2 / K, written out, and the price of cells."""
    away = problem.embedding.embed(codes) - aim_of(now).anchor
    missed = problem.outputs.values(codes) - aim_of(now).wanted
    inputs = (1 - ETA) * (away**2).sum(axis=1) / away.shape[1]
    cells = now.price * (codes != now.population.codes).sum(axis=1)
    return inputs + ETA * (missed**2).mean(axis=1) + cells


def single(problem: Problem, now: MoveContext, offers: Offers) -> np.ndarray:
    """Costs (n, C) of every offer alone; infinite where a rule forbids it."""
    n, count = offers.inputs.shape
    columns = []
    for offer in range(count):
        codes = offers.rows(np.arange(n), np.full(n, offer))
        found = cost(problem, now, codes)
        if problem.obeys is not None:
            found = np.where(problem.obeys(codes), found, np.inf)
        columns.append(found)
    return np.column_stack(columns)


FREE = Schema.infer(FRAME)
RULED = FREE.rule(lambda rows: rows["income"] + rows["debt"] < 1.5)


@pytest.mark.parametrize("price", [0.0, PRICE])
@pytest.mark.parametrize("schema", [FREE, RULED], ids=["free", "rule"])
def test_no_row_could_do_better_with_one_offer(schema: Schema, price: float) -> None:
    problem = ask(schema)
    now = context(problem, price)
    offers = edited(problem, now)
    choice = choose(now, aim_of(now), offers)
    stay, alone = cost(problem, now, now.rows.codes), single(problem, now, offers)
    best = np.minimum(stay, alone.min(axis=1))
    after = cost(problem, now, choice.rows.codes)
    assert (after <= best + 1e-12).all()
    assert (after < stay - 1e-6).any()
    np.testing.assert_allclose(choice.costs, [stay, after], atol=1e-12)
    np.testing.assert_allclose(choice.rows.outputs, problem.outputs.values(choice.rows.codes))
    if problem.obeys is not None:
        moved = (choice.rows.codes != now.rows.codes).any(axis=1)
        assert problem.obeys(choice.rows.codes[moved]).all()


def test_rows_stay_where_no_offer_is_cheaper() -> None:
    problem = ask(FREE)
    now = context(problem)
    offers = edited(problem, now)
    choice = choose(now, aim_of(now), offers)
    stay, alone = cost(problem, now, now.rows.codes), single(problem, now, offers)
    content = alone.min(axis=1) >= stay
    assert content.any()
    np.testing.assert_array_equal(choice.rows.codes[content], now.rows.codes[content])
    np.testing.assert_array_equal(choice.costs[0, content], choice.costs[1, content])


def test_among_steps_alone_the_choice_is_the_cheapest() -> None:
    """Steps are lengths of one step: none is put together with another."""
    problem = ask(FREE)
    now = context(problem)
    moved = steps(now, 0.1, 0.4, 0.9)
    offers = stepped_rows(now, aim_of(now), moved)
    choice = choose(now, aim_of(now), offers)
    alone = np.column_stack([cost(problem, now, now.rows.codes), single(problem, now, offers)])
    np.testing.assert_allclose(choice.costs[1], alone.min(axis=1), atol=1e-12)
    taken = alone.argmin(axis=1)
    for row in np.flatnonzero(taken):
        expected = offers.rows(np.array([row]), taken[[row]] - 1)[0]
        np.testing.assert_array_equal(choice.rows.codes[row], expected)


def test_gains_are_what_each_offer_brought_to_those_who_took_it() -> None:
    problem = ask(FREE)
    now = context(problem)
    moved = steps(now, 0.1, 0.4)
    offers = stepped_rows(now, aim_of(now), moved)
    choice = choose(now, aim_of(now), offers)
    stay, alone = cost(problem, now, now.rows.codes), single(problem, now, offers)
    taken = np.where(alone.min(axis=1) < stay, alone.argmin(axis=1), -1)
    expected = [(stay - alone[:, k])[taken == k].sum() for k in range(2)]
    np.testing.assert_allclose(choice.gains, expected, atol=1e-12)


def test_edits_and_steps_side_by_side_are_no_worse_than_either() -> None:
    problem = ask(FREE)
    now = context(problem)
    edits = edited(problem, now)
    moved = steps(now, 0.2, 0.5)
    stepped = stepped_rows(now, aim_of(now), moved)
    both = side_by_side(edits, stepped)
    assert both.inputs.shape[1] == edits.inputs.shape[1] + 2
    last = choose(now, aim_of(now), both).costs[1]
    for offers in (edits, stepped):
        alone = single(problem, now, offers).min(axis=1)
        assert (last <= np.minimum(alone, cost(problem, now, now.rows.codes)) + 1e-12).all()


def test_a_choice_depends_on_the_row_alone() -> None:
    """The same rows in another batch choose the same."""
    problem = ask(FREE)
    now = context(problem)
    offers = edited(problem, now)
    whole = choose(now, aim_of(now), offers)
    half = now.block(slice(0, 20))
    part = choose(half, aim_of(half), edited(problem, half))
    np.testing.assert_array_equal(part.rows.codes, whole.rows.codes[:20])
