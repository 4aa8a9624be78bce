"""Sub-populations that moved alike: who they are and what changed for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from elsewise._arrays import to_double, to_numpy
from elsewise.analysis._columns import Column, columns_of, embedded, rows_words
from elsewise.analysis._tree import Leaf, sub_populations
from elsewise.errors import check_count
from elsewise.explanation import Explanation
from elsewise.text import one_line, percent, visible

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
    moved: int
    """How many of its rows change."""
    changes: tuple[str, ...]
    """What changes most in them, in words, largest mean move first; none where nothing moves."""
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
    """Share of the change of the mean output that is left if every row that changes something does
    no more than what is named of its group: the group's median change of a number, its commonest
    change of a category. None where changes of outputs make up for each other, or without the
    model."""

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
        plural, moved = "" if len(self) == 1 else "s", sum(group.moved for group in self)
        head = f"{len(self)} group{plural} of {self.labels.size:,} rows, {moved:,} of which change"
        lines = [head]
        for place, group in enumerate(self, start=1):
            lines += [f"{place}. {group.who}: {group.moved:,} of {rows_words(group.rows)}"]
            lines += [f"   {what}" for what in group.changes or ("nothing changes",)]
        if self.effect is not None:
            lines += [
                "If every row that changes did just what is said of its group, the mean output "
                f"would change by {percent(self.effect)} of what it does."
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
    most = check_count("k", k, "k=4 is the default")
    before, after = embedded(explanation)
    moves, columns = after - before, columns_of(explanation)
    free = [column for column in columns if column.free]
    leaves = sub_populations(columns, moves, most=most, least_gain=LEAST_GAIN)
    found = [(leaf.rows, *_group(leaf, free, moves)) for leaf in leaves]
    found.sort(key=lambda one: -one[1].explained)
    labels = np.empty(len(moves), dtype=np.int64)
    for place, (rows, _, _) in enumerate(found):
        labels[rows] = place
    effect = _effect(explanation, free, [(rows, told) for rows, _, told in found])
    return Groups(groups=tuple(group for _, group, _ in found), labels=labels, effect=effect)


def _effect(
    explanation: Explanation,
    columns: Sequence[Column],
    groups: Sequence[tuple[np.ndarray, list[Column]]],
) -> float | None:
    """Apply what is named of each group to its rows that change it, and compare mean outputs."""
    if explanation.model is None or not columns:
        return None
    problem, asked = explanation.problem, explanation.main_output
    codes = to_double(problem.factual)
    moved = np.any([column.moved for column in columns], axis=0)
    gained = (explanation.outputs - explanation.factual_outputs)[moved, asked]
    full = float(gained.sum())
    # Where rows that rise and rows that fall nearly make up for each other, a share of what is
    # left would be any number.
    if abs(full) <= 0.1 * float(np.abs(gained).sum()):
        return None
    literal = codes.copy()
    for group, told in groups:
        for column in told:
            here, rows = list(column.places), group[column.moved]
            if rows.size and column.numeric:
                literal[rows, here[0]] += np.nanmedian((column.after - column.before)[column.moved])
            elif rows.size:
                start, end = column.level_changes()[0][0]
                rows = group[column.moved & (column.before == start)]
                # A one-hot group has a column per level, a category one column for all.
                literal[np.ix_(rows, here)] = end if len(here) == 1 else np.eye(len(here))[int(end)]
    # The words may ask for what a row cannot do: every row is brought back to its legal values.
    literal = problem.schema.legal(codes, broken=~moved).legalize(literal)
    outputs = to_numpy(problem.outputs.values(problem.outputs.place(literal)))
    return float((outputs - explanation.factual_outputs)[moved, asked].sum() / full)


def _group(leaf: Leaf, columns: Sequence[Column], moves: np.ndarray) -> tuple[Group, list[Column]]:
    """Return a group, and its part of the columns that are named of it, largest move first."""
    total = float(np.sum(moves * moves)) or 1.0
    mean, size = moves[leaf.rows].mean(axis=0), leaf.rows.size
    squares = np.array([np.sum(mean[column.dimensions] ** 2) for column in columns])
    order = np.argsort(-squares, kind="stable")[:NAMED]
    told = [int(j) for j in order if squares[j] > LEAST_NAMED * squares.sum()]
    here = [column.take(leaf.rows) for column in columns]
    named = [here[j] for j in told]
    group = Group(
        who=leaf.who,
        rows=size,
        share=size / len(moves),
        moved=int(np.any([column.moved for column in here], axis=0).sum()),
        changes=tuple(f"{one_line(column.name)}: {column.change_words()}" for column in named),
        explained=float(size * squares.sum() / total),
        named=float(size * squares[told].sum() / total),
    )
    return group, named
