"""What a page shows first: asked, reached and verdict, how far rows move, what changes most."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from elsewise.analysis._columns import rows_words
from elsewise.certificate import stayed_lines
from elsewise.policy import summary_of
from elsewise.report._render import Scale
from elsewise.report._view import bounds_words, capital, meaning
from elsewise.text import amount, figure, format_distinct, percent

if TYPE_CHECKING:
    from elsewise.certificate import Evidence, Reached
    from elsewise.policy import Policy
    from elsewise.report._view import View


# Actions of a policy that are told first; one more where that is all.
MOST_ACTIONS = 2
# Share of a gauge that is left free beyond the outermost number, where it has no natural ends.
ROOM = 0.12
SIDES = {"inputs": "how far the rows move", "outputs": "how far the outputs stay from the target"}

Tile = tuple[str, str, str]
"""What a number is, the number, and what belongs to it."""
Named = Mapping[str, tuple[str, float | None]]
"""Numbers of a gauge and their names, by how they look."""


class Mark(NamedTuple):
    """A number on a gauge, in per cent of its length."""

    look: str
    place: float
    label: str


class Gauge(NamedTuple):
    """A line with what was asked, what is reached, and how sure that is."""

    title: str
    marks: Sequence[Mark]
    limit: Sequence[float] | None
    """Between which places the confidence limit lies; None where none is claimed."""


def first_screen(view: View, policy: Policy | None) -> dict[str, Any]:
    """Return what a page shows below its answer, under the names that the template has for it."""
    certificate = view.explanation.certificate
    reached, stayed = certificate.reached, []
    if reached is None:
        gauges = [_side_gauge(name, side) for name, side in certificate.sides.items()]
        tiles = _side_tiles(view)
    else:
        gauges, tiles = [_reached_gauge(view, reached)], _reached_tiles(reached)
        stayed = [f"{capital(line)}." for line in stayed_lines(reached)]
    actions, achieved = _policy_sentences(policy, view.name)
    return {
        "gauges": gauges,
        "tiles": [*tiles, *_move_tiles(view)],
        "certificate": [*stayed, *bounds_words(certificate), meaning(certificate)],
        "actions": actions,
        "policy": achieved,
    }


def _reached_gauge(view: View, reached: Reached) -> Gauge:
    question = reached.question
    numbers = {"asked": reached.asked, "before": reached.before, "reached": reached.reached}
    if question.kind == "mean":
        known = [v for v in (*numbers.values(), reached.limit) if v is not None]
        low, high = min(known), max(known)
        room = ROOM * ((high - low) or abs(high) or 1.0)
        scale = Scale(low - room, high + room, 1.0)
        title = f"mean {question.output(view.name)}{' moves by' if question.relative else ''}"
    else:
        scale, title = Scale(0.0, 1.0, 0.25), f"share of rows {question.condition(view.name)}"
    named = {look: (look, value) for look, value in numbers.items()}
    return _gauge(title, scale, named, question.number, reached.limit)


def _side_gauge(name: str, side: Evidence) -> Gauge:
    most = max(side.at_most, side.bound or 0.0) * (1.0 + ROOM) or 1.0
    named = {"asked": ("bound", side.bound), "reached": ("distance", side.estimate)}
    return _gauge(SIDES[name], Scale(0.0, most, 1.0), named, amount, side.upper_limit)


def _gauge(
    title: str, scale: Scale, named: Named, number: Callable[[float], str], limit: float | None
) -> Gauge:
    """Return a gauge with the known ones of some named numbers; the last is what is reached."""
    marks = [
        Mark(look, scale.at(value), f"{name} {number(value)}")
        for look, (name, value) in named.items()
        if value is not None
    ]
    ends = None if limit is None else sorted((scale.at(limit), marks[-1].place))
    return Gauge(title, marks, ends)


def _reached_tiles(reached: Reached) -> list[Tile]:
    number, counted = reached.question.number, f"on {reached.rows:,} rows"
    if reached.limit is not None:
        counted = f"{'at most' if reached.falling else 'at least'} {number(reached.limit)}"
    asked = "every row" if reached.asked is None else number(reached.asked)
    before = f"{number(reached.before)} before"
    return [("asked", asked, before), ("reached", number(reached.reached), counted)]


def _side_tiles(view: View) -> list[Tile]:
    now, then = map(view.level, view.means)
    tiles = [(f"mean {view.output}", then, f"{now} before")]
    for name, side in view.explanation.certificate.sides.items():
        limit, bound = figure(side.at_most, 3), ""
        if side.bound is not None:
            limit, shown = format_distinct(side.at_most, side.bound)
            bound = f", bound {shown}"
        note = "exact" if side.upper_limit is None else f"at most {limit}"
        tiles.append((f"{name[:-1]} distance", amount(side.estimate), f"{note}{bound}"))
    return tiles


def _move_tiles(view: View) -> list[Tile]:
    count = int(view.moved.sum())
    share = f"{percent(count / view.rows)} of {view.rows:,}"
    cells = float(view.cells[view.moved].mean()) if count else 0.0
    features = f"in {cells:.2g} feature{'' if cells == 1 else 's'} on average"
    return [
        ("rows that change", f"{count:,}", share),
        ("a changed row moves by", f"{amount(view.move)} SD", features),
    ]


def _policy_sentences(policy: Policy | None, output: str) -> tuple[list[str], str]:
    """Return the first actions of a policy, a sentence each, and what all of them reach."""
    if policy is None or not policy.lines:
        return [], ""
    shown = MOST_ACTIONS if len(policy.lines) > MOST_ACTIONS + 1 else MOST_ACTIONS + 1
    said = [f"{capital(line.what)}: {rows_words(line.rows)}." for line in policy.lines[:shown]]
    more = len(policy.lines) - len(said)
    rest = f" {more} of them stand below." if more else ""
    return said, f"{summary_of(policy, output)[0]}{rest}"
