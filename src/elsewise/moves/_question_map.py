"""The question's own loss, row by row: which ways there are, and which rows take theirs.

A fit records a menu, a price and a hash: a row whose cheapest way costs less than the price takes
it, of those whose way costs exactly the price the ones with the smaller hash do. For a mean it
records the exchange rate between movement and output. All of it replays on any row by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from elsewise._arrays import Array, to_numpy
from elsewise._resources import TimeIsUp, current, until
from elsewise.moves._menu import Menu, build_menu
from elsewise.moves._row_search import Goal, Pool, RowSearch, changed
from elsewise.moves._slope_ways import offer_slopes
from elsewise.moves._step import Motion, Step
from elsewise.moves._steps import row_noise
from elsewise.moves._ways import explore, improve, put_back, refine, refine_donors, settle
from elsewise.request import Problem, broken_rows
from elsewise.settings import Settings
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


Front = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Costs (n, B), outputs gained (n, B) and codes (n, B, p) of B ways of each row."""


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
    front: Front | None = None
    """For a mean: the ways kept at each rate."""

    @classmethod
    def of_content(cls, codes: np.ndarray) -> Ways:
        """Return the ways of rows (n, p) that are all as they are wanted."""
        plain, nowhere = codes.astype(np.float64), np.full(len(codes), np.inf)
        content = np.ones(len(codes), dtype=bool)
        return cls(plain, plain, nowhere, nowhere, content, ~content)

    def trades(self, rate: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For a mean: whether a row moves at a rate, bool (n,), what it gains (n,), its way."""
        assert self.front is not None  # the search of a mean keeps it
        costs, gains, codes = self.front
        values, rows = np.round(costs - rate * gains, 9), np.arange(len(costs))
        best = np.argmin(values, axis=1)
        moves = values[rows, best] < 0.0
        return moves, np.where(moves, gains[rows, best], 0.0), codes[rows, best]


def prepare(problem: Problem, question: Question, settings: Settings) -> QuestionMap:
    """Record what rows are offered: the menu, the donors, the rates."""
    slack, cells = SPARSE if settings.sparse else settings.slack, problem.bounds.cells_per_row
    background = to_numpy(problem.background).astype(np.float64)
    outputs = to_numpy(problem.of_background()).astype(np.float64)
    factual = to_numpy(problem.factual).astype(np.float64)
    rates: tuple[float, ...] = ()
    if question.wanted is not None:
        donors = background[question.wanted.contains(outputs)]
    else:
        good = outputs[:, 0] * question.sign
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
    problem: Problem,
    recorded: QuestionMap,
    codes: Array,
    stop: Callable[[], bool] = lambda: False,
    known: Array | None = None,
) -> Ways:
    """Search each of the rows (n, p), a bounded number at a time, until ``stop()``.

    Rows whose first way costs more than the map's ``screen`` keep that way. ``known`` are their
    outputs (n, K), where the model has been asked about them.
    """
    plain, wanted = to_numpy(codes).astype(np.float64), recorded.question.wanted
    frozen = to_numpy(broken_rows(problem, codes)).astype(bool)
    inside, front = np.zeros(len(plain), dtype=bool), None
    if wanted is not None:
        outputs = problem.outputs.values(codes) if known is None else known
        inside = wanted.contains(to_numpy(outputs).astype(np.float64))
    else:
        kept = len(recorded.rates) + (recorded.polished > 0.0)
        nothing = np.zeros((2, len(plain), kept))
        front = *nothing, np.repeat(plain[:, None, :], kept, axis=1)
    blocks = _blocks(recorded.menu, np.flatnonzero(~inside & ~frozen))
    hashes, costs = row_noise(plain, problem.seed, 1)[:, 0], np.full(len(plain), np.inf)
    ways = Ways(plain.copy(), plain, costs, hashes, inside, frozen, bool(blocks), front=front)
    stopped = False

    def is_over() -> bool:
        nonlocal stopped
        stopped = stopped or stop()
        return stopped

    for block in blocks:
        with until(is_over, interrupt=True), suppress(TimeIsUp):
            if front is None:
                ways.codes[block], ways.costs[block] = _into(problem, recorded, plain[block])
                continue
            for kept_so, new in zip(front, _traded(problem, recorded, plain[block]), strict=True):
                kept_so[block] = new
        if stopped:
            break
    return ways._replace(stopped=stopped)


def _blocks(menu: Menu, moving: np.ndarray) -> list[np.ndarray]:
    """Places of rows, int (m,), a few at a time; none where there is nothing to try."""
    if not menu.attributes:
        return []
    memory = current().memory
    most = LARGEST if memory is None else min(LARGEST, memory // 128)
    cells = (len(menu.owner) + menu.attributes) * menu.attribute.size
    size = max(1, min(most // cells, 512))
    return [moving[k : k + size] for k in range(0, moving.size, size)]


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
    double = to_numpy(problem.factual_outputs[:1, :]).dtype != np.float32
    if double and problem.precise is problem.outputs:
        return _inside_by(problem, recorded, codes, FARTHER_INSIDE[0])
    chosen, costs, rows = codes.copy(), np.full(len(codes), np.inf), np.arange(len(codes))
    for inside in FARTHER_INSIDE[1:]:
        if rows.size:
            with suppress(TimeIsUp):
                chosen[rows], costs[rows] = _inside_by(problem, recorded, codes[rows], inside)
            with until(lambda: False):  # no row may move that the model has not been asked about
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
    search = RowSearch.start(problem, recorded.menu, goal, codes)
    with suppress(TimeIsUp):
        explore(search, -1)
        near = np.flatnonzero(search.pool.costs[:, -1] <= recorded.screen)
        search.among(near, refine_donors)
        for slot in FEW_SLOTS if recorded.slack >= SPARSE else FAR_SLOTS:
            search.among(near, _search_around, slot)
    chosen, found = settle(search, recorded.slack, recorded.cells)
    rows = np.flatnonzero(found)
    with suppress(TimeIsUp):
        chosen[rows] = search.among(rows, put_back, chosen[rows])
    cells = search.cell_costs(chosen)
    costs = cells.sum(axis=-1)
    if recorded.slack >= SPARSE:  # rows with fewer changed cells come first, whatever they move
        costs = costs + SPARSE_CELL * search.counts(cells)
    return chosen, np.where(found, np.round(costs, 9), np.inf)


def _search_around(search: RowSearch, slot: int) -> None:
    """Change what a place of the pool holds, follow the slope from there, and draw it back."""
    pool = search.pool
    other = changed(pool.codes[:, slot], pool.codes[:, -1]) | (slot == -1)

    def search_on(part: RowSearch) -> None:
        improve(part, slot)
        offer_slopes(part, part.pool.codes[:, slot])
        refine(part, part.pool.codes[:, slot])

    search.among(np.flatnonzero(np.isfinite(pool.scores[:, slot]) & other), search_on)


def _traded(problem: Problem, recorded: QuestionMap, codes: np.ndarray) -> Front:
    """The best trades of movement for output of rows (n, p), at each of the recorded rates."""
    sign, unit, price = recorded.question.sign, problem.unit, CELL_PRICE * recorded.slack

    def margins(outputs: np.ndarray) -> np.ndarray:
        return sign * outputs[:, 0] / unit

    def slopes(outputs: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return sign * gradient[:, 0, :] / unit

    goal = Goal(margins, slopes, np.array(recorded.rates) * unit, price)
    search = RowSearch.start(problem, recorded.menu, goal, codes)
    here = search.pool.margins[:, [0]].copy()
    with suppress(TimeIsUp):
        explore(search, 0)
    pools = [search.pool]
    if recorded.polished > 0.0:
        goal = goal._replace(rates=np.array([recorded.polished * unit]))
        pools.append(_polished(search._replace(goal=goal)))
    kept, margin, moves, _ = (np.concatenate(parts, axis=1) for parts in zip(*pools, strict=True))
    return moves + price * search.counts(search.cell_costs(kept)), unit * (margin - here), kept


def _polished(search: RowSearch) -> Pool:
    """Search once more around the best way of each row at the one rate of the goal."""
    pool, counts = search.pool, search.counts(search.cell_costs(search.pool.codes))
    scores = search.goal.scores(pool.costs, counts, pool.margins)[..., 0]
    best = np.argmin(scores, axis=1)
    parts, rows = (*pool[:3], scores), np.arange(len(best))
    last = search._replace(pool=Pool(*(part[rows, best][:, None] for part in parts)))
    with suppress(TimeIsUp):
        improve(last, 0)
        offer_slopes(last, last.pool.codes[:, 0])
    return last.pool


def merged_ways(first: Ways, second: Ways, places: np.ndarray) -> Ways:
    """Return the ways of all rows, those of ``second`` at ``places`` (m,), the others in order."""
    rest = np.delete(np.arange(len(first.costs) + len(second.costs)), places)
    order = np.argsort(np.concatenate([rest, places]))

    def both(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.concatenate([one, other])[order]

    merged = zip(Ways._fields[:6], map(both, first[:6], second[:6]), strict=True)
    front = None
    if first.front is not None and second.front is not None:
        costs, gains, codes = map(both, first.front, second.front)
        front = costs, gains, codes
    attempted, stopped = first.attempted or second.attempted, first.stopped or second.stopped
    return Ways(**dict(merged), attempted=attempted, stopped=stopped, front=front)


def take_ways(recorded: QuestionMap, ways: Ways) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows (n, p) after their moves, and which of them move, bool (n,)."""
    if recorded.still:
        return ways.factual, np.zeros(len(ways.factual), dtype=bool)
    if ways.front is not None:
        moves, _, codes = ways.trades(recorded.rate)
        return np.where(moves[:, None], codes, ways.codes), moves
    moves = (ways.costs < recorded.price) | (
        np.isfinite(ways.costs) & (ways.costs == recorded.price) & (ways.hashes <= recorded.tie)
    )
    return np.where(moves[:, None], ways.codes, ways.factual), moves
