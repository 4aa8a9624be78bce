"""Numbers, shares and names as people read them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "amount",
    "figure",
    "format_distinct",
    "nearest",
    "one_line",
    "percent",
    "several",
    "visible",
]


def amount(value: float) -> str:
    """Return a number with as many digits as a person wants to read.

    Examples
    --------
    >>> [amount(x) for x in (5065.04, 32.06, 0.0412, -0.0, float("nan"))]
    ['5,065', '32.1', '0.0412', '0', 'unknown']
    """
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else ("infinite" if value > 0 else "-infinite")
    return f"{value:,.0f}" if abs(value) >= 1000 else figure(value + 0.0, 3)


def figure(value: float, digits: int = 4) -> str:
    """Return a number with so many digits, or with all before the point where those are more.

    Examples
    --------
    >>> figure(0.12345), figure(8839.21), figure(17310.4), figure(1234567.0, 6), figure(999.7, 3)
    ('0.1235', '8,839', '17,310', '1,234,567', '1,000')
    """
    text = f"{value:,.{digits}g}"
    return f"{value:,.0f}" if "e+" in text else text


def percent(share: float, *, exact: bool = False, fine: bool = False) -> str:
    """Return a share as a percentage.

    Parameters
    ----------
    share
        A number, 1 for all.
    exact
        Show up to four digits: for numbers that somebody chose, such as a level of confidence. By
        default a measured share is rounded to a whole number, but never to none or to all.
    fine
        Show three digits: for shares that are compared, which must not look equal by rounding.

    Examples
    --------
    >>> [percent(x) for x in (0.317, 0.004, 0.0, 0.99999, float("nan"))]
    ['32%', '0.4%', '0%', '99.99%', 'unknown']
    >>> percent(6.1e-7), percent(-1e-9, exact=True)
    ('under 0.0001%', 'above -0.0001%')
    >>> percent(0.975), percent(0.975, exact=True), percent(0.68251, fine=True)
    ('98%', '97.5%', '68.3%')
    """
    if not math.isfinite(share):
        return amount(share)
    if 0 < abs(share) < 1e-6:
        return "under 0.0001%" if share > 0 else "above -0.0001%"
    if exact:
        return f"{100 * share:.4g}%"
    if fine and 0.0095 <= abs(share) < 0.995:
        return f"{100 * share:.3g}%"
    if 0 < abs(share) < 0.0095 or 0.995 <= share < 1:
        return f"{100 * share:.2g}%" if share < 0.5 else f"{min(100 * share, 99.99):.2f}%"
    return f"{100 * share:.0f}%"


def format_distinct(value: float, bound: float, digits: int = 3) -> tuple[str, str]:
    """Return two numbers with as many digits as it takes to see which one is larger.

    Examples
    --------
    >>> format_distinct(0.123456, 0.2), format_distinct(0.20004, 0.2), format_distinct(0.2, 0.2)
    (('0.123', '0.2'), ('0.20004', '0.2'), ('0.2', '0.2'))
    """
    shown = ("", "")
    for precision in range(digits, 18):
        shown = (figure(value, precision), figure(bound, precision))
        if shown[0] != shown[1] or value == bound:
            break
    return shown


def nearest(name: object, known: Iterable[object]) -> str | None:
    """Return the known name most like the one given, as text; None where none is known.

    Examples
    --------
    >>> nearest("agee", ["age", "income"])
    'age'
    """
    # Any likeness will do: a poor guess still shows what names look like.
    return next(iter(get_close_matches(str(name), [str(one) for one in known], 1, 0.0)), None)


def several(names: Iterable[object], most: int = 3) -> str:
    """Return names in one line, the first of many.

    Examples
    --------
    >>> several(["a", "b", "c"]), several("abcdefg")
    ('a, b, c', '7 columns such as a, b, c')
    """
    shown = list(map(one_line, names))
    few = ", ".join(shown[:most])
    return few if len(shown) <= most else f"{len(shown)} columns such as {few}"


def one_line(name: object, width: int | None = None) -> str:
    r"""Return a name as one line of text, of at most ``width`` characters.

    Examples
    --------
    >>> one_line("Credit\n amount"), one_line("x" * 99, width=6)
    ('Credit amount', 'xxxxx…')
    """
    line = visible(" ".join(str(name).split()))
    return line if width is None or len(line) <= width else line[: width - 1] + "…"


def visible(text: str) -> str:
    r"""Return text in which control characters are escapes, so that it can be shown anywhere.

    Examples
    --------
    >>> visible("one\x1b[2Kline") == r"one\x1b[2Kline"
    True
    """
    control = {c for c in text if unicodedata.category(c)[0] == "C" and c not in "\n\t"}
    return "".join(ascii(letter)[1:-1] if letter in control else letter for letter in text)
