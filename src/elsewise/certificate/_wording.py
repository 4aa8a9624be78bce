"""The certificate in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from elsewise.request import Kind
from elsewise.text import figure, format_distinct, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from elsewise.certificate._numbers import Reached
    from elsewise.certificate._record import Certificate, Evidence
    from elsewise.confidence import Interval


DESCRIPTIVE = "Descriptive: computed on the rows the map was fitted to, not on unseen ones."


def not_claimed(certificate: Certificate) -> tuple[str, ...]:
    """Return what a certificate does not say."""
    said = [
        "Not causal: it says what the model answers for such rows, not what changing people or "
        "things in this way would bring about.",
        "Not about single rows: distances compare whole distributions.",
    ]
    if certificate.trim > 0:
        tails = percent(certificate.trim, exact=True)
        said += [
            f"Nothing about the most extreme {tails} at either end.",
            "Of inputs these are the ends of each projection: other rows in every direction, so no "
            "rows that could be named.",
        ]
    if certificate.kind is Kind.IN_SAMPLE:
        said.append(DESCRIPTIVE)
    if certificate.kind is Kind.POPULATION:
        said.append("Nothing about other rows: these are taken for the whole population.")
    if certificate.probability is not None:
        said.append(
            "P is one minus the p-value of 'the distance is at least the bound', not the "
            "probability that the bound holds."
        )
    return tuple(said)


def probability_text(probability: float) -> str:
    """Return an attained level, which is shown as 1 only where it is 1.

    Examples
    --------
    >>> probability_text(0.999), probability_text(1.0), probability_text(0.999999)
    ('= 0.999', '= 1', '> 0.9999')
    """
    # Four digits would round it to 1, which only a certain bound may show.
    nearly = 0.99995 <= probability < 1.0
    return "> 0.9999" if nearly else f"= {probability:.4g}"


def interval_text(interval: Interval, share: bool = False) -> str:
    """Return a number and its interval; a share, or a probability, in per cent.

    Examples
    --------
    >>> from elsewise.confidence import Interval
    >>> interval_text(Interval.known(0.25))
    '0.25'
    >>> interval_text(Interval.known(0.25), share=True)
    '25%'
    """

    def shown(value: float) -> str:
        return percent(value, fine=True) if share else figure(value)

    if interval.lower is None or interval.upper is None:
        return shown(interval.estimate)
    return f"{shown(interval.estimate)} ({shown(interval.lower)} to {shown(interval.upper)})"


def move_sentence(row_move: Interval, bound: float | None = None, short: bool = False) -> str:
    """Return how far a row moves, with its limit and bound; in short for one line among others.

    Examples
    --------
    >>> from elsewise.confidence import Interval
    >>> move_sentence(Interval.known(0.25))
    'a row moves by 0.25 standard deviations (root mean square over all rows)'
    >>> move_sentence(Interval.known(0.25), bound=0.3, short=True)
    'a row moves by 0.25 sd (0.25 <= bound 0.3)'
    """
    limit = "" if row_move.upper is None else f", at most {row_move.upper:.3g}"
    if bound is not None:
        shown, against = format_distinct(row_move.at_most, bound)
        sign = "<=" if row_move.at_most <= bound else ">"
        limit = f", {'' if row_move.upper is None else 'at most '}{shown} {sign} bound {against}"
    moves = f"a row moves by {row_move.estimate:.3g}"
    if short:
        return f"{moves} sd{limit and f' ({limit[2:]})'}"
    return f"{moves} standard deviations (root mean square over all rows{limit})"


def reached_sentence(reached: Reached, output: str = "") -> str:
    """Return what was asked and what was reached, as one sentence without an end.

    The one place that makes this sentence: status, headline, report, CLI and JSON show it.

    Parameters
    ----------
    output
        What the user calls the model's output.
    """
    question = reached.question
    seen = "rows" if reached.limit is None else "unseen rows"
    before, found = question.number(reached.before), question.number(reached.reached)
    counted = f"{reached.rows:,} {seen}"
    if reached.limit is not None:
        way = "at most" if reached.falling else "at least"
        counted += f" ({way} {question.number(reached.limit)})"
    asked = "" if reached.asked is None else f"{question.number(reached.asked)} asked"
    if question.kind == "every":
        asked = asked and f", {asked}"
        told = f"{reached.arrived:,} of {counted}{asked}, {before} before"
        return f"rows {question.condition(output)}: {told}"
    if reached.aimed is not None and reached.limit is not None:
        asked = f"{asked} (aimed at {question.number(reached.aimed)})"
    told = f"{asked}, {before} before, {found} reached on {counted}"
    if question.kind == "share":
        return f"share {question.condition(output)}: {told}"
    return f"mean {question.output(output)}{' moved by' if question.relative else ''}: {told}"


def asked_sentence(certificate: Certificate) -> str:
    """Return what was asked for and reached, as a question or as distances, without an end."""
    if certificate.reached is not None:
        return reached_sentence(certificate.reached)
    sides = {"input": certificate.inputs, "output": certificate.outputs}
    bounded = {name: side for name, side in sides.items() if side.bound is not None}
    unseen = "unseen " if certificate.kind is Kind.HELD_OUT else ""
    counted, parts = f"{certificate.rows:,} {unseen}rows", []
    for name, side in (bounded if bounded or certificate.moves_bound else sides).items():
        found, at_most = f"{figure(side.estimate, 3)} reached on {counted}", figure(side.at_most, 3)
        if side.bound is not None:
            at_most, bound = format_distinct(side.at_most, side.bound)
            found = f"at most {bound} asked, {found}"
        limit = "" if side.upper_limit is None else f" (at most {at_most})"
        parts.append(f"{name} distance: {found}{limit}")
    move, most = certificate.row_move, certificate.moves_bound
    if move is not None and most is not None:
        parts.append(move_sentence(move, most))
    return "; ".join(parts)


def stayed_lines(reached: Reached) -> Iterator[str]:
    """Yield why rows do not arrive, reason by reason."""
    for reason, count in reached.stayed:
        yield f"{count:,} {'row is' if count == 1 else 'rows are'} put back: {reason}"


def certificate_lines(certificate: Certificate) -> Iterator[str]:
    """Yield the certificate line by line; `not_claimed` says more of what it does not say."""
    confidence, joint = certificate.confidence, certificate.joint_probability
    level = "exact" if confidence is None else f"{percent(confidence, exact=True)} each"
    # Rounded down: it is a bound from below.
    both = "" if joint is None else f", joint P >= {math.floor(1e4 * joint) / 1e4:.4g}"
    verdict = f"{certificate.verdict}{both}"
    yield f"Certificate ({certificate.kind}, {level}, {certificate.rows:,} rows): {verdict}"
    if certificate.reached is not None:
        yield f"  {reached_sentence(certificate.reached)}"
        yield from (f"    {line}" for line in stayed_lines(certificate.reached))
    if certificate.row_move is not None:
        yield f"  {move_sentence(certificate.row_move, certificate.moves_bound)}"
        yield from (f"    {line}" for line in (certificate.row_move.notice,) if line)
    for name, side in certificate.sides.items():
        yield f"  {name}: {_side_text(side)}"
        yield from (f"    {line}" for line in (side.advice, side.notice) if line)
    alone = "" if confidence is None else f" ({percent(confidence, exact=True)} each, by itself)"
    for readout in certificate.readouts:
        before = interval_text(readout.before, readout.in_percent)
        after = interval_text(readout.after, readout.in_percent)
        yield f"  {readout.name}: {before} before, {after} after{alone}"
    inputs, outputs = certificate.inputs.assumption, certificate.outputs.assumption
    if inputs == outputs:
        yield f"  Assumed: {inputs}"
    else:
        yield from (f"  Assumed for inputs: {inputs}", f"  Assumed for outputs: {outputs}")
    tails = ""
    if certificate.trim:
        tails = f" or the most extreme {percent(certificate.trim, exact=True)} at either end"
    yield f"  Not claimed: anything about causes, single rows{tails}."
    if certificate.kind is Kind.IN_SAMPLE:
        yield f"  {DESCRIPTIVE}"
    if certificate.probability is not None:
        yield "  P is one minus the p-value of 'the distance is at least the bound'."


def _side_text(side: Evidence) -> str:
    shown, bound, untrimmed = figure(side.at_most), "", figure(side.untrimmed)
    if side.bound is not None:
        shown, against = format_distinct(side.at_most, side.bound, 4)
        bound = f" {'<=' if side.met else '>'} bound {against}"
    parts = [f"distance {figure(side.estimate)} (untrimmed {untrimmed})"]
    if side.upper_limit is None:
        parts = [f"distance {shown}{bound} (untrimmed {untrimmed})"]
    else:
        parts.append(f"upper limit {shown}{bound}")
    if side.probability is not None:
        parts.append(f"P {probability_text(side.probability)}")
    directions = f"{side.directions} direction{'s' if side.directions > 1 else ''}"
    count = side.target_values
    values = "" if count is None else f", {count:,} target value{'s' if count > 1 else ''}"
    return f"{', '.join(parts)}  [{side.method}, {directions}{values}]"
