"""Sub-populations that moved alike: who they are and what changed for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from elsewise._arrays import to_numpy
from elsewise.analysis._columns import Column, columns_of, embedded
from elsewise.analysis._tree import Leaf, smallest_leaf, sub_populations
from elsewise.errors import InvalidInput
from elsewise.text import one_line, percent, signed, visible

if TYPE_CHECKING:
    from elsewise.explanation import Explanation


# At most this many changes are named per group.
NAMED = 3
# A change is named from this share of its group's squared mean move on.
LEAST_NAMED = 0.01
# A group is split where that explains at least this share of the shift.
LEAST_GAIN = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rows that moved alike."""

    who: str
    """The condition all of its rows and no others meet, as factual rows."""
    rows: int
    share: float
    """Its share of all rows."""
    changes: tuple[str, ...]
    """Its mean moves that matter most, in words, largest first; none where nothing moves."""
    explained: float
    """Share of the whole shift that moving its rows by their mean move explains."""
    named: float
    """The same by the moves in `changes` alone."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Groups:
    """Sub-populations that moved alike, most explaining first."""

    groups: tuple[Group, ...]
    labels: np.ndarray
    """int (n,): the group of each row, a place in `groups`."""
    effect: float | None = None
    """Share of the mean change of the model's first output, over the rows that move, that their
    named moves bring about when applied literally; None where no output changes or the explanation
    was loaded without its model."""

    @property
    def explained(self) -> float:
        """Share of the shift, the summed squared moves, that the groups' mean moves explain."""
        return sum(group.explained for group in self.groups)

    @property
    def named(self) -> float:
        """The same by the moves in words alone."""
        return sum(group.named for group in self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[Group]:
        return iter(self.groups)

    def __getitem__(self, place: int) -> Group:
        return self.groups[place]

    def __str__(self) -> str:
        plural = "" if len(self) == 1 else "s"
        lines = [
            f"{len(self)} group{plural} of {self.labels.size:,} rows, explaining "
            f"{percent(self.explained)} of the shift, {percent(self.named)} by what is named"
            + ("" if self.effect is None else f", and {percent(self.effect)} of the effect")
        ]
        for place, group in enumerate(self, start=1):
            what = ", ".join(group.changes) or "nothing changes"
            lines += [
                f"{place}. {group.who}: {group.rows:,} rows ({percent(group.share)})",
                f"   {what}; explains {percent(group.explained)}",
            ]
        return visible("\n".join(lines))

    __repr__ = __str__


def groups(explanation: Explanation, k: int = 4) -> Groups:
    """Return at most ``k`` sub-populations that moved alike, in words.

    A regression tree on the factual rows (frozen columns too) predicts their moves in the
    embedding. A leaf holds at least 5 % of the rows and at least 5 of them, a split explains at
    least 2 % of the shift. These are k-cluster shift maps with clusters in words, and what is named
    of each is its k-sparse one (Kulinski and Inouye, Towards Explaining Distribution Shifts, 2023).
    Their share explained compares distributions; here, where every row has its counterfactual, it
    compares rows: 1 - sum |move - mean move of its group|^2 / sum |move|^2.

    Parameters
    ----------
    explanation
        What to describe.
    k
        At most this many groups.

    Examples
    --------
    >>> import pandas as pd
    >>> import elsewise as ew
    >>> rows = pd.DataFrame({"debt": np.linspace(1.0, 9.0, 60), "age": [20, 50, 70] * 20})
    >>> score = ew.models.function(lambda frame: frame["debt"] * (frame["age"] < 60), smooth=True)
    >>> explanation = ew.explain(
    ...     score, rows, target=ew.targets.shift(-1.0), schema=ew.Schema.infer(rows).freeze("age"),
    ...     bounds=ew.Bounds(outputs=0.9), certify="in-sample",
    ... )
    >>> sorted(group.who for group in groups(explanation, k=2))
    ['age <= 60', 'age is 70']
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InvalidInput(
            "k", expected="a whole number >= 1", received=repr(k), fix="k=4 is the default"
        )
    before, after = embedded(explanation)
    moves = after - before
    columns = columns_of(explanation)
    leaves = sub_populations(
        columns, moves, most=int(k), least_rows=smallest_leaf(len(moves)), least_gain=LEAST_GAIN
    )
    free = [column for column in columns if column.free]
    found = [(leaf, _group(leaf, free, moves)) for leaf in leaves]
    found.sort(key=lambda pair: -pair[1].explained)
    labels = np.empty(len(moves), dtype=np.int64)
    for place, (leaf, _) in enumerate(found):
        labels[leaf.rows] = place
    told = [(leaf, _told(leaf, free, moves)) for leaf, _ in found]
    return Groups(
        groups=tuple(group for _, group in found),
        labels=labels,
        effect=_effect(explanation, free, told),
    )


def _effect(
    explanation: Explanation, columns: Sequence[Column], told: Sequence[tuple[Leaf, list[int]]]
) -> float | None:
    """Apply the named moves of each group to its rows that move, and compare mean outputs."""
    if explanation.model is None or not columns:
        return None
    problem = explanation.problem
    codes = to_numpy(problem.factual).astype(np.float64)
    moved = np.any([column.moved for column in columns], axis=0)
    full = float((explanation.outputs - explanation.factual_outputs)[moved, 0].sum())
    if full == 0.0:
        return None
    literal = codes.copy()
    for leaf, places in told:
        for column in (columns[j].take(leaf.rows) for j in places):
            here = list(column.places)
            if column.numeric:
                literal[leaf.rows, here[0]] += np.nanmean(column.after - column.before)
                continue
            start, end, _ = _largest_flow(column)
            rows = leaf.rows[column.before == start]
            # A one-hot group has a column per level, a category one column for all.
            new = end if len(here) == 1 else np.eye(len(here))[int(end)]
            literal[np.ix_(rows, here)] = new
    literal = problem.schema.legal(codes, broken=~moved).legalize(literal)
    outputs = to_numpy(problem.outputs.values(problem.outputs.place(literal)))
    return float((outputs - explanation.factual_outputs)[moved, 0].sum() / full)


def _told(leaf: Leaf, columns: Sequence[Column], moves: np.ndarray) -> list[int]:
    """Return the places of the columns that are named of a group, largest move first."""
    mean = moves[leaf.rows].mean(axis=0)
    squares = np.array([np.sum(mean[column.dimensions] ** 2) for column in columns])
    order = np.argsort(-squares, kind="stable")[:NAMED]
    return [int(j) for j in order if squares[j] > LEAST_NAMED * squares.sum()]


def _largest_flow(column: Column) -> tuple[float, float, int]:
    """Return the commonest change of a category: from, to, and how many rows."""
    pairs = np.stack([column.before, column.after], axis=1)[column.moved]
    found, counts = np.unique(pairs, axis=0, return_counts=True)
    largest = int(counts.argmax())
    return float(found[largest, 0]), float(found[largest, 1]), int(counts[largest])


def _group(leaf: Leaf, columns: Sequence[Column], moves: np.ndarray) -> Group:
    total = float(np.sum(moves * moves)) or 1.0
    mean = moves[leaf.rows].mean(axis=0)
    squares = np.array([np.sum(mean[column.dimensions] ** 2) for column in columns])
    told = _told(leaf, columns, moves)
    size = leaf.rows.size
    return Group(
        who=leaf.who,
        rows=size,
        share=size / len(moves),
        changes=tuple(_change(columns[j].take(leaf.rows)) for j in told),
        explained=float(size * squares.sum() / total),
        named=float(size * squares[told].sum() / total),
    )


def _change(column: Column) -> str:
    """Say how a column changes: the mean move of a number, the largest flow of a category."""
    name = one_line(column.name)
    if column.numeric:
        return f"{name} {signed(float(np.nanmean(column.after - column.before)))}"
    *codes, count = _largest_flow(column)
    start, end = (one_line(column.level(code)) for code in codes)
    return f"{name} {start} to {end} ({percent(count / column.before.size)})"
