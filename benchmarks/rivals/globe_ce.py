"""GLOBE-CE: one direction for everyone, a step length for each.

D. Ley, S. Mishra, D. Magazzeni, GLOBE-CE: A Translation-Based Approach for Global Counterfactual
Explanations, ICML 2023. Directions are sampled on the standardized scale, each of a few features,
and scaled to cost 1, where a cost is a move in bin widths (10 bins a feature) and a category change
costs 1. The best direction covers the most rows at the least mean cost; each row then goes along it
only as far as it must, on a fixed grid of scalars. One thing is added here: half of the directions
are sampled between the best of the other half, which finds cheaper ones in the same time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from benchmarks.rivals.question import Field, Question, answer, pose

from elsewise.analysis import BaselineExplanation
from elsewise.errors import InvalidInput
from elsewise.features import Kind, Schema
from elsewise.request import Bounds, generator
from elsewise.targets import Target

__all__ = ["GlobeCE", "GlobeSettings", "globe_ce"]

BINS = 10
COARSE, FINE = 8, 50
"""Scalars, in geometric steps, at which every direction is tried, and the best of them."""
SPANS = 100.0, 500.0
"""The largest of those scalars by the smallest."""
FINALISTS = 32
"""Directions that are tried on the finer of the two."""
PENALTY = 10.0
"""A row that is not reached counts as this many times the largest scalar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobeSettings:
    """How GLOBE-CE is run."""

    threshold: float = 0.5
    """Output from which a row counts as valid."""
    scaling: str = "rows"
    """"rows": every row goes as far as it must; "shared": one translation for all."""
    directions: int = 1000
    """Directions sampled."""
    features: tuple[int, ...] = (1, 2, 3, 5, 8)
    """Numbers of features that sampled directions have."""
    translations: int = 1
    """Directions kept; with several, each row takes the one that is cheapest for it."""
    scalars: int = 250
    """Size of the grid on which rows go along a direction."""
    reach: float = 25.0
    """Largest scalar, in units of cost."""
    legal: bool = False
    """True: steps are made legal before the model sees them; the published method does not."""

    def __post_init__(self) -> None:
        if self.scaling not in ("rows", "shared"):
            raise InvalidInput(
                "settings.scaling",
                expected="'rows' or 'shared'",
                received=repr(self.scaling),
                fix="'rows' lets each row go as far as it must",
            )
        counts = (self.directions, self.translations, self.scalars, *self.features)
        if min(counts) < 1 or not self.features or not self.reach > 0:
            raise InvalidInput(
                "settings",
                expected="positive counts and a positive reach",
                received=repr(self),
                fix="the defaults are meant to be left alone",
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class GlobeCE(BaselineExplanation):
    """What GLOBE-CE found."""

    directions: pd.DataFrame
    """One row per translation, one column per code: the move of each number per unit of cost."""
    category_rules: tuple[str, ...]
    """What the translations do to categories, as text."""
    chosen: np.ndarray
    """int (n,): the translation each row took."""
    scalars: np.ndarray
    """ndarray (n,): how far each row went; NaN where no scalar reaches the threshold."""
    profile: pd.DataFrame
    """Cost profile of the first translation: scalar, coverage, mean cost of the rows covered."""


def globe_ce(
    model: Any,
    rows: pd.DataFrame,
    *,
    schema: Schema | None = None,
    background: pd.DataFrame | None = None,
    target: Target | None = None,
    bounds: Bounds | None = None,
    seed: int = 0,
    settings: GlobeSettings | None = None,
) -> GlobeCE:
    """Explain rows by a global translation (Ley, Mishra and Magazzeni 2023).

    Parameters
    ----------
    model, rows, schema, background, bounds, seed
        As in `elsewise.explain`. Frozen features do not move; ranges and the like are kept only
        with ``settings.legal``, whole numbers always.
    target
        What the certificate compares outputs with; all ones by default.
    settings
        See `GlobeSettings`.

    Returns
    -------
    GlobeCE
        An explanation with its directions, scalars and cost profile. Rows that no scalar makes
        valid stay as they are when each row has its own.

    Examples
    --------
    >>> rows = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=list("abc"))
    >>> found = globe_ce(lambda frame: frame["a"] - frame["b"], rows)
    >>> bool((found.outputs >= 0.5).all())
    True
    """
    settings = settings or GlobeSettings()
    question = pose(
        model,
        rows,
        schema=schema,
        background=background,
        target=target,
        bounds=bounds,
        threshold=settings.threshold,
        seed=seed,
    )
    search = _Search(question, settings)
    found: list[_Found] = []

    def find() -> tuple[np.ndarray, tuple[str, ...]]:
        found.append(search.run(generator(seed, "globe-ce")))
        return found[0].codes, ()

    variant = "per-row scaling" if settings.scaling == "rows" else "one translation"
    common = answer(question, f"GLOBE-CE, {variant}", find)
    result = found[0]
    return GlobeCE(
        **common,
        directions=search.readable(result.directions),
        category_rules=search.category_rules(result.directions),
        chosen=result.chosen,
        scalars=result.scalars,
        profile=result.profile,
    )


class _Directions(NamedTuple):
    """Sampled directions, S of them, each of cost 1."""

    steps: np.ndarray
    """ndarray (S, p): move of each number per unit of cost, 0 elsewhere."""
    votes: tuple[np.ndarray | None, ...]
    """Per field, ndarray (S, L): what is added to a category's indicators; None for a number."""

    def take(self, places: np.ndarray) -> _Directions:
        votes = tuple(None if vote is None else vote[places] for vote in self.votes)
        return _Directions(self.steps[places], votes)


class _Found(NamedTuple):
    """The end of a search."""

    codes: np.ndarray
    directions: _Directions
    chosen: np.ndarray
    scalars: np.ndarray
    profile: pd.DataFrame


class _Search:
    """The tables that stay the same during a search."""

    def __init__(self, question: Question, settings: GlobeSettings) -> None:
        self.question = question
        self.settings = settings
        features = question.problem.schema.features
        self.whole = np.array([f.kind is Kind.INTEGER and f.group is None for f in features])
        spread = np.array([f.observed[1] - f.observed[0] for f in features])
        self.widths = np.where(spread > 0, spread / BINS, 1.0)
        self.scales = np.array([f.scale for f in features])
        self.free = [field for field in question.fields if field.free]

    def run(self, rng: np.random.Generator) -> _Found:
        """Sample, choose, scale."""
        half = -(-self.settings.directions // 2)
        sampled = self.sample(rng, half)
        finalists = sampled.take(self.shortlist(sampled))
        mixed = _joined(finalists, self.mixed(rng, finalists, half))
        finalists = mixed.take(self.shortlist(mixed))
        fine = self.scalars(FINE, SPANS[1])
        reached = self.reached(finalists, fine)
        if self.settings.scaling == "shared":
            costs = self.shared_costs(fine, reached).min(axis=1, keepdims=True)
        else:
            costs = self.least_costs(finalists, fine, reached)
        best = np.concatenate(list(self.rounds(costs, 1)))
        kept = finalists.take(best)
        # The fixed grid ends where the last row is reached.
        last = fine[reached[best].argmax(axis=1).max()]
        grid = np.union1d(np.linspace(0.0, last, self.settings.scalars), fine[fine <= last])
        reached = self.reached(kept, grid)
        profile = self.profile(kept, grid, reached[0])
        every = np.arange(len(self.question.codes))
        if self.settings.scaling == "shared":
            chosen = np.zeros_like(every)
            scalars = np.full(len(every), grid[self.shared_costs(grid, reached[0]).argmin()])
        else:
            chosen = self.least_costs(kept, grid, reached).argmin(axis=0)
            own = reached[chosen, :, every]
            scalars = np.where(own.any(axis=1), grid[own.argmax(axis=1)], np.nan)
        moved = self.moved(every, kept.take(chosen), np.nan_to_num(scalars))
        return _Found(moved, kept, chosen, scalars, profile)

    def sample(self, rng: np.random.Generator, count: int) -> _Directions:
        """Directions of a few features each, uniform on the standardized scale, of cost 1."""
        names = len(self.free)
        sizes = np.minimum(rng.choice(self.settings.features, count), names)
        order = rng.random((count, names)).argsort(axis=1).argsort(axis=1)
        taken = order < sizes[:, None]
        steps = np.zeros((count, self.question.codes.shape[1]))
        votes: list[np.ndarray | None] = []
        for k, field in enumerate(self.free):
            if field.levels is None:
                drawn = rng.standard_normal(count) * self.scales[field.columns[0]]
                if field.direction:
                    drawn = field.direction * np.abs(drawn)
                steps[:, field.columns[0]] = np.where(taken[:, k], drawn, 0.0)
                votes.append(None)
            else:
                # A level without a vote is kept by those who have it and taken by nobody else.
                vote = rng.random((count, len(field.levels))) * field.allowed
                votes.append(np.where(taken[:, k, None], vote, 0.0))
        return _Directions(self.of_cost_one(steps), tuple(votes))

    def mixed(self, rng: np.random.Generator, parents: _Directions, count: int) -> _Directions:
        """Directions between two of the parents, their numbers mixed and stretched at random."""
        first, second = (parents.take(p) for p in rng.integers(len(parents.steps), size=(2, count)))
        share = rng.random((count, 1))
        stretch = rng.lognormal(sigma=0.5, size=first.steps.shape)
        steps = (share * first.steps + (1.0 - share) * second.steps) * stretch
        votes = tuple(
            one if one is None or two is None else np.where(share < 0.5, one, two)
            for one, two in zip(first.votes, second.votes, strict=True)
        )
        return _Directions(self.of_cost_one(steps), votes)

    def of_cost_one(self, steps: np.ndarray) -> np.ndarray:
        """Steps (S, p) scaled to one bin width in all."""
        costs = (np.abs(steps) / self.widths).sum(axis=1, keepdims=True)
        return np.asarray(steps / np.where(costs > 0, costs, 1.0))

    def moved(self, rows: np.ndarray, directions: _Directions, scalars: np.ndarray) -> np.ndarray:
        """Codes (m, p) of ``rows``, int (m,), each moved by its scalar along its direction."""
        codes = self.question.codes[rows]
        after = codes + scalars[:, None] * directions.steps
        after[:, self.whole] = np.rint(after[:, self.whole])
        for field, vote in zip(self.free, directions.votes, strict=True):
            if vote is not None and field.levels is not None:
                after[:, field.columns] = _voted(field, field.levels, codes, vote, scalars)
        if self.settings.legal:
            after = self.question.legal.take(rows).legalize(after)
        return np.asarray(after)

    def reached(self, directions: _Directions, grid: np.ndarray) -> np.ndarray:
        """Bool (S, G, n): which rows are valid at each scalar of each direction."""
        count, n = len(directions.steps), len(self.question.codes)
        rows = np.tile(np.arange(n), len(grid))
        scalars = np.repeat(grid, n)
        answers = np.empty((count, len(grid), n), dtype=bool)
        together = max(1, 2**16 // len(rows))
        for first in range(0, count, together):
            places = np.arange(first, min(first + together, count))
            repeated = np.repeat(places, len(rows))
            every = np.tile(rows, len(places))
            codes = self.moved(every, directions.take(repeated), np.tile(scalars, len(places)))
            valid = self.question.valid(codes) & self.question.possible(codes)
            answers[places] = valid.reshape(len(places), len(grid), n)
        return answers

    def least_costs(
        self, directions: _Directions, grid: np.ndarray, reached: np.ndarray
    ) -> np.ndarray:
        """Cost (S, n) of each row's smallest scalar along each direction; infinite if none."""
        count, _, n = reached.shape
        first = reached.argmax(axis=1)
        scalars = grid[first]
        places = np.repeat(np.arange(count), n)
        rows = np.tile(np.arange(n), count)
        after = self.moved(rows, directions.take(places), scalars.ravel())
        costs = self.costs(self.question.codes[rows], after).reshape(count, n)
        return np.where(reached.any(axis=1), costs, np.inf)

    def costs(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Cost (n,) of moves: bin widths of numbers, 1 for a category change."""
        total = np.zeros(len(before))
        for field in self.free:
            columns = list(field.columns)
            if field.levels is None:
                move = np.abs(after[:, columns[0]] - before[:, columns[0]])
                total += np.nan_to_num(move) / self.widths[columns[0]]
            else:
                total += field.level_of(after) != field.level_of(before)
        return total

    def scalars(self, count: int, span: float) -> np.ndarray:
        """Return 0 and scalars in geometric steps up to the reach."""
        reach = self.settings.reach
        return np.concatenate([[0.0], np.geomspace(reach / span, reach, count)])

    def shortlist(self, directions: _Directions) -> np.ndarray:
        """Places of the directions that look best at a few scalars."""
        coarse = self.scalars(COARSE, SPANS[0])
        reached = self.reached(directions, coarse)
        # Scalars stand for costs here: they differ by rounding, clipping and categories only.
        if self.settings.scaling == "shared":
            costs = self.shared_costs(coarse, reached).min(axis=1, keepdims=True)
        else:
            costs = np.where(reached.any(axis=1), coarse[reached.argmax(axis=1)], np.inf)
        share = -(-FINALISTS // self.settings.translations)
        return np.unique(np.concatenate(list(self.rounds(costs, share))))

    def shared_costs(self, grid: np.ndarray, reached: np.ndarray) -> np.ndarray:
        """Cost (..., G) of one scalar for all, rows that it does not reach penalised."""
        missed = 1.0 - reached.mean(axis=-1)
        return np.asarray(grid + PENALTY * self.settings.reach * missed)

    def rounds(self, costs: np.ndarray, count: int) -> Iterator[np.ndarray]:
        """For each translation, the ``count`` best ones beside those first in earlier rounds.

        The best has the least mean cost (S, n), where a row it does not reach costs far more than
        one it does: coverage comes first.
        """
        penalised = np.where(np.isinf(costs), PENALTY * self.settings.reach, costs)
        least = np.full(costs.shape[1], np.inf)
        for _ in range(self.settings.translations):
            order = np.minimum(least, penalised).mean(axis=1).argsort(kind="stable")
            yield order[:count]
            least = np.minimum(least, penalised[order[0]])

    def profile(
        self, directions: _Directions, grid: np.ndarray, reached: np.ndarray
    ) -> pd.DataFrame:
        """Coverage (G,) by each scalar, and the mean cost of the rows covered by then."""
        first = self.least_costs(directions.take(np.array([0])), grid, reached[None])[0]
        earliest = np.where(reached.any(axis=0), grid[reached.argmax(axis=0)], np.inf)
        covered = earliest <= grid[:, None]
        counts = covered.sum(axis=1)
        sums = np.where(covered, np.where(np.isinf(first), 0.0, first), 0.0).sum(axis=1)
        return pd.DataFrame(
            {
                "scalar": grid,
                "coverage": covered.mean(axis=1),
                "mean_cost": np.where(counts > 0, sums / np.maximum(counts, 1), np.nan),
            }
        )

    def readable(self, directions: _Directions) -> pd.DataFrame:
        """Moves of the numbers per unit of cost."""
        names: list[Hashable] = [f.name for f in self.question.problem.schema.features]
        return pd.DataFrame(directions.steps, columns=names)

    def category_rules(self, directions: _Directions) -> tuple[str, ...]:
        """If-else rules of the translations, one line per category they change."""
        lines = []
        for field, vote in zip(self.free, directions.votes, strict=True):
            if vote is None:
                continue
            for k, votes in enumerate(vote):
                if np.ptp(votes) > 0:
                    best = int(votes.argmax())
                    far = 1.0 / (votes[best] - votes)[np.arange(len(votes)) != best]
                    lines.append(
                        f"translation {k}: {field.name} -> {field.labels[best]} "
                        f"from scalar {far.min():.3g} to {far.max():.3g} on"
                    )
        return tuple(lines)


def _joined(first: _Directions, second: _Directions) -> _Directions:
    votes = tuple(
        one if one is None or two is None else np.concatenate([one, two])
        for one, two in zip(first.votes, second.votes, strict=True)
    )
    return _Directions(np.concatenate([first.steps, second.steps]), votes)


def _voted(
    field: Field, levels: np.ndarray, codes: np.ndarray, votes: np.ndarray, scalars: np.ndarray
) -> np.ndarray:
    """Codes (n, columns) of a category: the largest of its indicators plus the scaled votes."""
    current = field.level_of(codes)
    indicators = (current[:, None] == np.arange(len(levels))).astype(np.float64)
    best = (indicators + scalars[:, None] * votes).argmax(axis=1)
    missing = current < 0
    return np.where(missing[:, None], codes[:, field.columns], levels[best])
