"""Rules and derived columns as texts: a small language, parsed and computed by ourselves.

A text is parsed to Python's syntax tree, and every node that is not in the list below is refused
with its place. Nothing is evaluated by Python or pandas, so a text from a file cannot run code.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple, NoReturn

import numpy as np

from elsewise.errors import InvalidInput
from elsewise.features._feature import Feature, Kind
from elsewise.text import nearest

# Longer or deeper texts are refused: they would fill the stack of the parser or of our own.
LONGEST, DEEPEST = 5000, 150
GRAMMAR = "columns, numbers, texts, + - * /, comparisons, and, or, not, abs(), min() and max()"
FIX = "write it with these, or pass a function of a frame"
# A quoted text, which may hold backticks, or a column name in backticks.
QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`([^`]*)`""")

Compute = Callable[..., np.ndarray]
Values = Callable[[np.ndarray], np.ndarray]
"""Codes (n, p) to float64 (n,); truth is 1 or 0, and NaN is unknown."""

ARITHMETIC: dict[type[ast.AST], Compute] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.UAdd: np.positive,
    ast.USub: np.negative,
}
COMPARISONS: dict[type[ast.cmpop], Compute] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
FUNCTIONS: dict[str, Compute] = {
    "abs": np.abs,
    "min": lambda *parts: reduce(np.minimum, parts),
    "max": lambda *parts: reduce(np.maximum, parts),
}
"""Names that may be called: abs() of one number, the others of two or more."""


class _Term(NamedTuple):
    """A part of an expression."""

    values: Values
    truth: bool = False
    """Whether it is true or false, and not an amount."""
    category: Feature | None = None
    """The category that it is, whose level's place is the value."""
    text: object = None
    """A quoted text, or the value of a number."""

    @property
    def number(self) -> bool:
        """Whether it can be computed with."""
        return self.category is None and not isinstance(self.text, str)


@dataclass(frozen=True, slots=True)
class Expression:
    """A text such as ``"years <= age - 16"`` about the columns of one schema.

    Examples
    --------
    >>> age = Feature(name="age", kind=Kind.NUMBER, free=True, observed=(18.0, 75.0))
    >>> Expression.parse("2 * age > 60 or age == 18", [age]).values(np.array([[18.0], [20.0]]))
    array([1., 0.])
    """

    text: str
    """As it was written."""
    truth: bool
    """Whether it says yes or no; otherwise it is a number."""
    places: tuple[int, ...]
    """Positions of the columns it reads."""
    compute: Values

    @classmethod
    def parse(cls, text: str, features: Sequence[Feature], argument: str = "text") -> Expression:
        """Return the expression; refuse what is not one, or does not fit the columns."""
        parser = _Parser(text, features, argument)
        term = parser.parsed()
        if not term.number:
            parser.refuse(0, "a condition or a number", "a category or a text")
        return cls(text, term.truth, tuple(dict.fromkeys(parser.places)), term.values)

    def values(self, codes: np.ndarray) -> np.ndarray:
        """Return float64 (n,) for codes (n, p): numbers, or 1 and 0; NaN where that is unknown."""
        # Without warnings: a division by zero is infinite or unknown.
        with np.errstate(all="ignore"):
            return self.compute(codes)


class _Parser:
    """One text on its way to an expression."""

    def __init__(self, text: str, features: Sequence[Feature], argument: str) -> None:
        # Blanks in front would be an indentation.
        self.text, self.features, self.argument = text.strip(), features, argument
        self.source, self.quoted = _without_backticks(self.text)
        self.places: list[int] = []

    def parsed(self) -> _Term:
        """Return the term that the whole text is."""
        if len(self.text) > LONGEST:
            self.refuse(LONGEST, f"at most {LONGEST:,} characters", f"{len(self.text):,}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of Python, about texts that look like code
                tree = ast.parse(self.source, mode="eval")
        except SyntaxError as error:
            self.refuse((error.offset or 1) - 1, GRAMMAR, error.msg)
        except (ValueError, RecursionError, MemoryError) as error:
            self.refuse(0, GRAMMAR, str(error) or type(error).__name__)
        return self.term(tree.body, 0)

    def term(self, node: ast.expr, depth: int) -> _Term:
        """Return the term of a node; refuse every node that has no reader here."""
        read = getattr(self, f"read_{type(node).__name__.lower()}", None)
        if read is None:
            self.refuse_node(node, GRAMMAR)
        if depth > DEEPEST:
            self.refuse_node(node, f"at most {DEEPEST} operations inside each other", "more")
        found: _Term = read(node, depth + 1)
        return found

    def number(self, node: ast.expr, depth: int) -> Values:
        """Return the values of a part that has to be a number."""
        term = self.term(node, depth)
        if not term.number:
            self.refuse_node(node, "a number", "a category" if term.category else "a text")
        return term.values

    def condition(self, node: ast.expr, depth: int) -> Values:
        """Return the values of a part that has to be true or false."""
        term = self.term(node, depth)
        if not term.truth:
            self.refuse_node(node, "a condition, such as a comparison", "something else")
        return term.values

    def read_name(self, node: ast.Name, depth: int) -> _Term:
        name = self.quoted.get(node.col_offset, node.id)
        found = [j for j, feature in enumerate(self.features) if str(feature.name) == name]
        if len(found) != 1:
            received = f"{name!r}, which several columns are called" if found else None
            near = nearest(name, [feature.name for feature in self.features])
            fix = f"did you mean {near!r}; names that are not one word stand in backticks"
            self.refuse_node(node, "a column of the schema", received, fix)
        (place,) = found
        feature = self.features[place]
        if feature.kind is Kind.FIXED:
            self.refuse_node(node, "a column of numbers or categories", f"{name!r}, which is none")
        self.places.append(place)
        truth = feature.levels == (False, True)
        category = feature if feature.levels and not truth else None
        return _Term(values=lambda codes: codes[:, place], truth=truth, category=category)

    def read_constant(self, node: ast.Constant, depth: int) -> _Term:
        value = node.value
        if isinstance(value, str):
            return _Term(values=_constant(np.nan), text=value)
        if not isinstance(value, bool | int | float):
            self.refuse_node(node, "a number or a text in quotes")
        if abs(value) > sys.float_info.max:
            self.refuse_node(node, "a finite number", "a larger one")
        return _Term(values=_constant(float(value)), truth=isinstance(value, bool), text=value)

    def read_binop(self, node: ast.BinOp, depth: int) -> _Term:
        return self.computed(node, ARITHMETIC.get(type(node.op)), [node.left, node.right], depth)

    def read_unaryop(self, node: ast.UnaryOp, depth: int) -> _Term:
        if isinstance(node.op, ast.Not):
            asked = self.condition(node.operand, depth)
            return _Term(values=lambda codes: 1.0 - asked(codes), truth=True)
        term = self.computed(node, ARITHMETIC.get(type(node.op)), [node.operand], depth)
        inner = getattr(node.operand, "value", None)
        if not isinstance(inner, int | float):
            return term
        # A negative number is still a number that may be a level.
        return term._replace(text=-inner if isinstance(node.op, ast.USub) else +inner)

    def computed(
        self, node: ast.expr, compute: Compute | None, parts: list[ast.expr], depth: int
    ) -> _Term:
        """Return the term that is computed from numbers."""
        if compute is None:
            self.refuse_node(node, GRAMMAR)
        numbers = [self.number(part, depth) for part in parts]
        return _Term(values=lambda codes: compute(*(number(codes) for number in numbers)))

    def read_boolop(self, node: ast.BoolOp, depth: int) -> _Term:
        parts = [self.condition(part, depth) for part in node.values]
        join = _both if isinstance(node.op, ast.And) else _either
        return _Term(values=lambda codes: reduce(join, (p(codes) for p in parts)), truth=True)

    def read_compare(self, node: ast.Compare, depth: int) -> _Term:
        operands = [node.left, *node.comparators]
        if any(type(operator) not in COMPARISONS for operator in node.ops):
            self.refuse_node(node, GRAMMAR)
        terms = [self.term(part, depth) for part in operands]
        steps = []
        for k, operator in enumerate(node.ops):
            left, right = self._like(operands[k], terms[k], terms[k + 1], operator)
            steps.append((COMPARISONS[type(operator)], left, right))

        def values(codes: np.ndarray) -> np.ndarray:
            found = np.ones(len(codes))
            for compare, left, right in steps:
                one, other = left(codes), right(codes)
                unknown = np.isnan(one) | np.isnan(other)
                found = _both(found, np.where(unknown, np.nan, compare(one, other)))
            return found

        return _Term(values=values, truth=True)

    def _like(
        self, node: ast.expr, left: _Term, right: _Term, operator: ast.cmpop
    ) -> tuple[Values, Values]:
        """Return both sides of a comparison, a text or number as the place of its level."""
        category = left.category or right.category
        if category is None:
            if not (left.number and right.number):
                self.refuse_node(node, "a text compared with a category", "a number beside a text")
            return left.values, right.values
        if not category.ordered and not isinstance(operator, ast.Eq | ast.NotEq):
            fix = "make it ordered: pandas.CategoricalDtype(levels, ordered=True)"
            self.refuse_node(node, "== or != for a category without an order", "another", fix)
        other = right if left.category else left
        if other.text is None:
            self.refuse_node(node, "a category compared with one of its levels", "with a column")
        if other.text not in category.levels:
            fix = f"the nearest level is {nearest(other.text, category.levels)!r}"
            self.refuse_node(node, "a level of the category", repr(other.text), fix)
        level = _constant(float(category.levels.index(other.text)))
        return (left.values, level) if left.category else (level, right.values)

    def read_call(self, node: ast.Call, depth: int) -> _Term:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in FUNCTIONS or node.func.col_offset in self.quoted or node.keywords:
            self.refuse_node(node, GRAMMAR)
        count, alone = len(node.args), name == "abs"
        if count == 0 or (count == 1) != alone:
            expected = f"{name}() of {'one number' if alone else 'two numbers or more'}"
            self.refuse_node(node, expected, f"{count}")
        return self.computed(node, FUNCTIONS[name], node.args, depth)

    def refuse_node(
        self, node: ast.expr, expected: str, received: str | None = None, fix: str = FIX
    ) -> NoReturn:
        """Refuse the text because of a node, whose ends Python counts in bytes."""
        content, start, end = self.text.encode(), node.col_offset, node.end_col_offset
        shown = repr(content[start:end].decode(errors="ignore"))
        place = len(content[:start].decode(errors="ignore"))
        self.refuse(place, expected, received or shown, fix)

    def refuse(self, place: int, expected: str, received: str, fix: str = FIX) -> NoReturn:
        """Refuse the text, naming the place."""
        shown = self.text if len(self.text) <= 80 else f"{self.text[:79]}…"
        argument = f"{self.argument} {shown!r}, character {place + 1}"
        raise InvalidInput(argument, expected=expected, received=received, fix=fix)


def _without_backticks(text: str) -> tuple[str, dict[int, str]]:
    """Return the text with words of the same length for names in backticks, by their place."""
    text = re.sub(r"[\r\n\t\f]", " ", text)
    quoted: dict[int, str] = {}

    def word(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        quoted[len(text[: found.start()].encode("utf-8", "surrogatepass"))] = found[1]
        return "c" + "_" * (len(found[0].encode()) - 1)

    return QUOTED.sub(word, text), quoted


def _constant(value: float) -> Values:
    return lambda codes: np.full(len(codes), value)


def _both(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return one and other: no as soon as one is no, unknown where nothing but unknown is left."""
    return np.where((one == 0.0) | (other == 0.0), 0.0, np.minimum(one, other))


def _either(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return one or other: yes as soon as one is yes, unknown where nothing but unknown is left."""
    return np.where((one == 1.0) | (other == 1.0), 1.0, np.maximum(one, other))
