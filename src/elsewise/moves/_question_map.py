"""The question's own loss, row by row: which ways there are, and which rows take theirs.

A fit records a menu, a price and a hash: a row whose cheapest way costs less than the price takes
it, of those whose way costs exactly the price the ones with the smaller hash do. For a mean it
records the exchange rate between movement and output. All of it replays on any row by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from elsewise._arrays import Array, to_numpy
from elsewise._resources import current
from elsewise.moves._ground import Goal, Ground, Pool, changed
from elsewise.moves._menu import Menu, build_menu, move_prices
from elsewise.moves._slope_ways import offer_slopes
from elsewise.moves._step import Motion, Step
from elsewise.moves._steps import row_noise
from elsewise.moves._ways import explore, improve, put_back, refine, refine_donors, settle
from elsewise.request import Population, Problem, broken_rows
from elsewise.targets import Question

RATE_POWERS = np.arange(-4.0, 8.5, 0.5)
"""Powers of two, in units of the outputs' standard deviation, of the rates of exchange tried."""
GOOD, MOST_GOOD = 0.75, 256
"""Donors of a mean: background rows with outputs beyond this quantile, so many at most."""
LARGEST = 1 << 23
"""Cells of all candidates of a block of rows."""
FARTHER_INSIDE = (1e-7, 1e-4, 1e-2)
"""Margins, in logits or in units of the outputs, that rows are to be inside by."""
FAR_SLOTS = (-1, 2)
"""Places of the pool that are searched around: the cheapest way, the cheapest short one."""
FEW_SLOTS = (1, 2, -1)
"""The same where the fewest changes are wanted, whatever they cost."""
SPARSE = 1e6
"""Slack of the fewest changes."""
SPARSE_CELL = 1e4
"""What a changed attribute costs then, in squared standard deviations: more than any move."""
CELL_PRICE = 0.1
"""Price of a changed attribute where outputs are traded, over the slack: moves by less than its
root, 0.07 standard deviations by default, do not pay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionMap:
    """The recorded answer to a question: what any row does, by itself."""

    question: Question
    menu: Menu
    slack: float
    """What fewer changes may cost, as a share of the length of a row's move."""
    cells: int | None = None
    """Most attributes that a row may change."""
    screen: float = math.inf
    """Rows whose first way costs more than this are searched no further, as they will stay."""
    price: float = math.inf
    """Rows whose way costs more than this stay."""
    tie: float = math.inf
    """Of rows whose way costs exactly the price, those with a larger hash stay."""
    rates: tuple[float, ...] = ()
    """For a mean: the rates of exchange that ways were made for."""
    polished: float = 0.0
    """For a mean: the rate at which ways were searched once more."""
    rate: float = 0.0
    """For a mean: what a unit of output may cost, in squared standard deviations."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """No steps: a row goes all its way at once."""
        return ()

    @property
    def motion(self) -> Motion:
        """No motion, for want of steps."""
        return Motion()

    @property
    def still(self) -> bool:
        """Whether no row moves, whatever its way costs."""
        return self.price < 0.0 if self.question.wanted is not None else self.rate == 0.0

    def with_price(self, price: float, tie: float) -> QuestionMap:
        """Return the map in which only rows with cheaper ways move."""
        return replace(self, price=price, tie=tie)


class Ways(NamedTuple):
    """Where rows could go, and what that costs."""

    codes: np.ndarray
    """(n, p): the rows where they are where they have no way."""
    factual: np.ndarray
    """(n, p)."""
    costs: np.ndarray
    """(n,): the row's own move, in squared standard deviations; infinite where there is no way."""
    hashes: np.ndarray
    """(n,): decides between rows with equal costs."""
    inside: np.ndarray
    """bool (n,): rows that need not move."""
    frozen: np.ndarray
    """bool (n,): rows that break a rule or range themselves, and so stay."""
    attempted: bool = False
    """Whether any row had something to try: a free attribute or a donor."""
    stopped: bool = False
    """Whether time was up before all rows were searched."""
    front: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    """For a mean: costs (n, B), outputs gained (n, B) and codes (n, B, p) of the ways kept."""


def prepare(
    problem: Problem, question: Question, slack: float, cells: int | None = None
) -> QuestionMap:
    """Record what rows are offered: the menu, the donors, the rates."""
    background = to_numpy(problem.background).astype(np.float64)
    outputs = to_numpy(problem.of_background()).astype(np.float64)
    factual = to_numpy(problem.factual).astype(np.float64)
    rates: tuple[float, ...] = ()
    if question.wanted is not None:
        donors = background[question.wanted.contains(outputs)]
    else:
        good = outputs[:, 0] * (-1.0 if question.falling else 1.0)
        donors = background[good >= np.quantile(good, GOOD)][:MOST_GOOD]
        spread = float(np.std(outputs)) or 1.0
        rates = tuple((2.0**RATE_POWERS / spread).tolist())
    seen = np.concatenate([background, factual])
    relevance = _relevance(background, outputs)
    menu = build_menu(problem.schema, seen, donors, relevance, fine=slack >= SPARSE)
    return QuestionMap(question=question, menu=menu, slack=slack, cells=cells, rates=rates)


def _relevance(background: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """How much of each output goes with each column, (p,): the largest squared correlation."""
    known = ~np.isnan(background)
    means = np.nan_to_num(background).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    centered = np.where(known, background - means, 0.0)
    wanted = outputs - outputs.mean(axis=0)
    joint = (centered.T @ wanted) ** 2
    scale = (centered**2).sum(axis=0)[:, None] * (wanted**2).sum(axis=0)
    return np.asarray(np.max(joint / np.where(scale > 0.0, scale, np.inf), axis=1))


def find_ways(
    problem: Problem, recorded: QuestionMap, codes: Array, stop: Callable[[], bool] = lambda: False
) -> Ways:
    """Search each of the rows (n, p), a bounded number at a time, until ``stop()``.

    Rows whose first way costs more than the map's ``screen`` keep that way.
    """
    plain = to_numpy(codes).astype(np.float64)
    question = recorded.question
    outputs = to_numpy(problem.outputs.values(codes)).astype(np.float64)
    frozen = to_numpy(broken_rows(problem, codes)).astype(bool)
    inside = np.zeros(len(plain), dtype=bool)
    if question.wanted is not None:
        inside = question.wanted.contains(outputs)
    moving = np.flatnonzero(~inside & ~frozen)
    costs = np.full(len(plain), np.inf)
    ways = Ways(plain.copy(), plain, costs, row_noise(plain, problem.seed, 1)[:, 0], inside, frozen)
    if not recorded.menu.attributes or not moving.size:
        # A mean is asked about its ways even where there are none.
        return ways if question.wanted else _trades(problem, recorded, ways, [], stop)
    ways = ways._replace(attempted=True)
    count = len(recorded.menu.owner) + recorded.menu.attributes
    size = max(1, min(_budget() // (count * plain.shape[1]), 512))
    blocks = [moving[k : k + size] for k in range(0, moving.size, size)]
    if question.wanted is None:
        return _trades(problem, recorded, ways, blocks, stop)
    for block in blocks:
        if stop():
            return ways._replace(stopped=True)
        ways.codes[block], costs[block] = _into(problem, recorded, plain[block])
    return ways


def _budget() -> int:
    """Cells that the candidates of a block may take."""
    memory = current().memory
    return LARGEST if memory is None else min(LARGEST, memory // 128)


def _into(
    problem: Problem, recorded: QuestionMap, codes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The way of each row (n, p) into the wanted outputs, and its cost.

    In single precision an output depends on the rows it is asked with, in its last digits, and a
    model of single precision is searched in double precision where it can be: rows then go farther
    inside, and those that the model's own outputs still leave outside farther again.
    """
    wanted = recorded.question.wanted
    assert wanted is not None  # what this search is for
    single = problem.precise is not problem.outputs
    single = single or to_numpy(problem.factual_outputs[:1, :]).dtype == np.float32
    chosen, costs = codes, np.full(len(codes), np.inf)
    rows = np.arange(len(codes))
    for inside in FARTHER_INSIDE[1:] if single else FARTHER_INSIDE[:1]:
        if not rows.size:
            break
        found, paid = _inside_by(problem, recorded, codes[rows], inside)
        chosen = chosen.copy()
        chosen[rows], costs[rows] = found, paid
        if not single:
            return chosen, costs
        outputs = to_numpy(problem.outputs.values(problem.outputs.place(chosen)))
        missed = np.isfinite(costs) & ~wanted.contains(outputs.astype(np.float64))
        rows = np.flatnonzero(missed)
    chosen[rows], costs[rows] = codes[rows], np.inf
    return chosen, costs


def _inside_by(
    problem: Problem, recorded: QuestionMap, codes: np.ndarray, inside: float
) -> tuple[np.ndarray, np.ndarray]:
    """The way of each row (n, p) to a margin of at least ``inside``, and its cost."""
    wanted, probability = recorded.question.wanted, problem.outputs.probability
    assert wanted is not None  # what this search is for
    unit = 1.0 if probability else problem.unit
    # Votes of trees are often exactly at the cut-off, where rows are as wanted. Those that the
    # model's own outputs leave outside are searched again, farther inside.
    stepped = inside < FARTHER_INSIDE[-1] and not problem.precise.smooth

    def margins(outputs: np.ndarray) -> np.ndarray:
        found = wanted.margins(outputs, probability) / unit
        if not stepped:
            return found
        return np.where(wanted.contains(outputs), np.maximum(found, 2.0 * inside), found)

    def slopes(outputs: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return wanted.slopes(outputs, gradient, probability) / unit

    goal = Goal(margins, slopes, inside=inside)
    ground = _ground(problem, recorded.menu, goal, codes)
    pool = Pool.start(ground, _here(ground))
    explore(ground, pool, -1)
    near = np.flatnonzero(pool.costs[:, -1] <= recorded.screen)
    if near.size:
        part, some = ground.take(near), pool.take(near)
        refine_donors(part, some)
        pool.put(near, some)
    slots = FEW_SLOTS if recorded.slack >= SPARSE else FAR_SLOTS
    for slot in slots if near.size else ():
        part, some = ground.take(near), pool.take(near)
        _search_around(part, some, slot)
        pool.put(near, some)
    chosen, found = settle(ground, pool, recorded.slack, recorded.cells)
    rows = np.flatnonzero(found)
    if rows.size:
        chosen[rows] = put_back(ground.take(rows), pool.take(rows), chosen[rows])
    cells = ground.cell_costs(chosen)
    costs = cells.sum(axis=-1)
    if recorded.slack >= SPARSE:  # rows with fewer changed cells come first, whatever they move
        member = recorded.menu.member.astype(np.float64)
        changed = ((cells > 0.0).astype(np.float64) @ member.T > 0.0).sum(axis=-1)
        costs = costs + SPARSE_CELL * changed
    return chosen, np.where(found, np.round(costs, 9), np.inf)


def _ground(problem: Problem, menu: Menu, goal: Goal, codes: np.ndarray) -> Ground:
    """Rows (n, p) that may all move, and what their search may look at."""
    population = Population(
        codes=codes,
        embedded=codes[:, :0],
        outputs=codes[:, :0],
        legal=problem.schema.legal(codes),
        wanted=None,
        shortfall=None,
        pinned=np.zeros(len(codes), dtype=bool),
        complete=not bool(np.isnan(codes).any()),
    )
    schema = problem.schema
    return Ground(problem, menu, goal, schema.embedding(), population, move_prices(schema))


def _search_around(ground: Ground, pool: Pool, slot: int) -> None:
    """Change what a place of the pool holds, follow the slope from there, and draw it back."""
    other = changed(pool.codes[:, slot], pool.codes[:, -1]) | (slot == -1)
    rows = np.flatnonzero(np.isfinite(pool.scores[:, slot]) & other)
    if rows.size:
        part, some = ground.take(rows), pool.take(rows)
        improve(part, some, slot)
        offer_slopes(part, some, some.codes[:, slot])
        refine(part, some, some.codes[:, slot])
        pool.put(rows, some)


def _here(ground: Ground) -> np.ndarray:
    """Margins (n,) of rows where they are; rows that break nothing are asked about."""
    return ground.ask(ground.codes[:, None, :], np.ones((len(ground.codes), 1), dtype=bool))[:, 0]


def _trades(
    problem: Problem,
    recorded: QuestionMap,
    ways: Ways,
    blocks: list[np.ndarray],
    stop: Callable[[], bool],
) -> Ways:
    """The best trades of movement for output of each row, at each of the recorded rates."""
    n, rates = len(ways.codes), np.array(recorded.rates)
    sign = -1.0 if recorded.question.falling else 1.0
    price, unit = CELL_PRICE * recorded.slack, problem.unit

    def margins(outputs: np.ndarray) -> np.ndarray:
        return sign * outputs[:, 0] / unit

    def slopes(outputs: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return sign * gradient[:, 0, :] / unit

    count = len(rates) + (recorded.polished > 0.0)
    costs, gains = np.zeros((n, count)), np.zeros((n, count))
    codes = np.repeat(ways.codes[:, None, :], count, axis=1)
    for block in blocks:
        if stop():
            ways = ways._replace(stopped=True)
            break
        goal = Goal(margins, slopes, rates * unit, price)
        ground = _ground(problem, recorded.menu, goal, ways.codes[block])
        here = _here(ground)
        pool = Pool.start(ground, here)
        explore(ground, pool, 0)
        kept = [pool]
        if recorded.polished > 0.0:
            ground = ground._replace(goal=goal._replace(rates=np.array([recorded.polished * unit])))
            kept.append(_polished(ground, pool))
        paid = [one.costs + price * ground.counts(ground.cell_costs(one.codes)) for one in kept]
        costs[block] = np.concatenate(paid, axis=1)
        gained = np.concatenate([one.margins for one in kept], axis=1) - here[:, None]
        gains[block] = unit * gained
        codes[block] = np.concatenate([one.codes for one in kept], axis=1)
    return ways._replace(front=(costs, gains, codes))


def _polished(ground: Ground, pool: Pool) -> Pool:
    """Search once more around the best way of each row at the one rate of the ground."""
    scores = ground.goal.scores(
        pool.costs, ground.counts(ground.cell_costs(pool.codes)), pool.margins
    )
    best = np.argmin(scores[..., 0], axis=1)
    rows = np.arange(len(best))
    parts = (pool.codes, pool.margins, pool.costs, scores[..., 0])
    last = Pool(*(part[rows, best][:, None] for part in parts))
    improve(ground, last, 0)
    offer_slopes(ground, last, last.codes[:, 0])
    return last


def merged_ways(first: Ways, second: Ways, places: np.ndarray) -> Ways:
    """Return the ways of all rows, those of ``second`` at ``places`` (m,), the others in order."""
    rest = np.ones(len(first.costs) + len(second.costs), dtype=bool)
    rest[places] = False

    def both(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        found = np.empty((rest.size, *one.shape[1:]), dtype=one.dtype)
        found[rest], found[places] = one, other
        return found

    front = None
    if first.front is not None and second.front is not None:
        one, two = first.front, second.front
        front = (both(one[0], two[0]), both(one[1], two[1]), both(one[2], two[2]))
    return Ways(
        codes=both(first.codes, second.codes),
        factual=both(first.factual, second.factual),
        costs=both(first.costs, second.costs),
        hashes=both(first.hashes, second.hashes),
        inside=both(first.inside, second.inside),
        frozen=both(first.frozen, second.frozen),
        attempted=first.attempted or second.attempted,
        stopped=first.stopped or second.stopped,
        front=front,
    )


def take_ways(recorded: QuestionMap, ways: Ways) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows (n, p) after their moves, and which of them move, bool (n,)."""
    if recorded.still:
        return ways.factual, np.zeros(len(ways.factual), dtype=bool)
    if ways.front is not None:
        costs, gains, codes = ways.front
        values = np.round(costs - recorded.rate * gains, 9)
        best = np.argmin(values, axis=1)
        rows = np.arange(len(best))
        moves = values[rows, best] < 0.0
        return np.where(moves[:, None], codes[rows, best], ways.codes), moves
    moves = (ways.costs < recorded.price) | (
        np.isfinite(ways.costs) & (ways.costs == recorded.price) & (ways.hashes <= recorded.tie)
    )
    return np.where(moves[:, None], ways.codes, ways.factual), moves
