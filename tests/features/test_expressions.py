"""Rules and formulas as texts: the value of Python's own arithmetic, and nothing but values."""

from __future__ import annotations

import ast
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from elsewise.errors import InvalidInput
from elsewise.features import Expression, Schema

FRAME = pd.DataFrame(
    {
        "a": [1.0, -2.5, 0.0, 4.0],
        "b": [3, 3, 0, 1],
        "Credit amount": [10.0, 20.0, 30.0, 40.0],
        "job": ["cook", "smith", "cook", "nurse"],
        "size": pd.Categorical(list("SMLM"), categories=list("SML"), ordered=True),
        "member": [True, False, True, False],
        "day": pd.date_range("2024-01-01", periods=4),
    }
)
SCHEMA = Schema.infer(FRAME)
CODES = SCHEMA.encoder(FRAME).encode(FRAME)


def value(text: str, codes: np.ndarray = CODES) -> list[float]:
    return Expression.parse(text, SCHEMA.features).values(codes).tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 * a + b / 2", [3.5, -3.5, 0.0, 8.5]),
        ("-a", [-1.0, 2.5, 0.0, -4.0]),
        ("abs(a) - max(a, b, 2)", [-2.0, -0.5, -2.0, 0.0]),
        ("min(a, `Credit amount`)", [1.0, -2.5, 0.0, 4.0]),
        ("`Credit amount` >= 10 * b", [0, 0, 1, 1]),
        ("0 <= a < b", [1, 0, 0, 0]),
        ("job == 'cook'", [1, 0, 1, 0]),
        ('"cook" != job', [0, 1, 0, 1]),
        ("size >= 'M'", [0, 1, 1, 1]),
        ("'S' < size < 'L'", [0, 1, 0, 1]),
        ("member", [1, 0, 1, 0]),
        ("not member and a > -9", [0, 1, 0, 1]),
        ("member or b == 1", [1, 0, 1, 1]),
        ("member == True", [1, 0, 1, 0]),
        ("True", [1, 1, 1, 1]),
        (" a\n > 0 ", [1, 0, 0, 1]),
    ],
)
def test_values(text: str, expected: list[float]) -> None:
    assert value(text) == expected


def test_categories_of_numbers() -> None:
    frame = pd.DataFrame({"grade": pd.Categorical([3, 1, -2], [-2, 1, 3], ordered=True)})
    schema = Schema.infer(frame)
    codes = schema.encoder(frame).encode(frame)
    for text, expected in {"grade >= 1": [1, 1, 0], "grade == -2": [0, 0, 1]}.items():
        found = Expression.parse(text, schema.features).values(codes)
        assert found.tolist() == expected


def test_a_missing_cell_is_unknown_and_unknown_is_no_yes() -> None:
    codes = CODES.copy()
    codes[:, 0] = np.nan
    nan = pytest.approx(np.nan, nan_ok=True)
    assert value("a > 0", codes) == [nan] * 4
    assert value("a != 0", codes) == [nan] * 4
    assert value("not a > 0", codes) == [nan] * 4
    # What is known decides, as soon as it can.
    assert value("a > 0 or b == 3", codes) == [1, 1, nan, nan]
    assert value("a > 0 and b == 3", codes) == [nan, nan, 0, 0]
    ruled = SCHEMA.rule("a > 0").encoder(FRAME)
    assert not ruled.obeys(codes).any()


def test_a_division_by_zero_is_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert value("a / b > 1") == [0, 0, pytest.approx(np.nan, nan_ok=True), 1]
        assert value("1 / b")[2] == np.inf


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.sum()", r"character 1: expected columns, numbers, .* received 'a.sum\(\)'"),
        ("a.real > 0", "character 1: .* received 'a.real'"),
        ("__import__('os')", r"received \"__import__\('os'\)\""),
        ("abs.__class__", "received 'abs.__class__'"),
        ("`abs`(a)", r"received '`abs`\(a\)'"),
        ("abs(a, b)", r"abs\(\) of one number, received 2"),
        ("max(a)", r"max\(\) of two numbers or more, received 1"),
        ("max(*a, b)", r"received '\*a'"),
        ("max(a, default=b)", r"received 'max\(a, default=b\)'"),
        ("max(a, **b)", r"received 'max\(a, \*\*b\)'"),
        ("@a > b", "character 1: .* received invalid syntax"),
        ("a @ b > 0", "character 1: .* received 'a @ b'"),
        ("a ** 2 > 0", r"received 'a \*\* 2'"),
        ("a // 2 > 0", "received 'a // 2'"),
        ("a % 2 > 0", "received 'a % 2'"),
        ("a & b", "received 'a & b'"),
        ("~a", "received '~a'"),
        ("a[0] > 1", r"received 'a\[0\]'"),
        ("[a] == 1", r"received '\[a\]'"),
        ("{a}", "received '{a}'"),
        ("(a, b)", r"received '\(a, b\)'"),
        ("a if member else b", "received 'a if member else b'"),
        ("lambda: a", "received 'lambda: a'"),
        ("(x := a)", "received 'x := a'"),
        ("f'{a}' == job", 'received "f'),
        ("a in (1, 2)", r"character 1: .* received 'a in \(1, 2\)'"),
        ("a is 1", "received 'a is 1'"),
        ("b'x' == job", "number or a text in quotes, received \"b'x'"),
        ("None", "received 'None'"),
        ("... > a", "received '...'"),
        ("1j > a", "received '1j'"),
        ("a > 1e999", "a finite number, received a larger one"),
        (f"a > {10**400}", "a finite number, received a larger one"),
        ("a; b", "received invalid syntax"),
        ("import os", "received invalid syntax"),
        ("", "received invalid syntax"),
        ("a >", "received invalid syntax"),
        ("a > \x00", "received"),
        ("`a > 1", "received invalid syntax"),
        ("aa > 1", "character 1: expected a column of the schema, received 'aa'.* did you mean"),
        ("1 < `Credit amout`", "character 5: .* did you mean 'Credit amount'"),
        ("day > 3", "numbers or categories, received 'day'"),
        ("job > 'cook'", "for a category without an order"),
        ("job == 'cok'", "a level of the category, received 'cok'.* nearest level is 'cook'"),
        ("job == size", "compared with one of its levels"),
        ("a == 'x'", "a text compared with a category"),
        ("job + 1 > 2", "character 1: expected a number, received a category"),
        ("a + 'x' > 2", "character 5: expected a number, received a text"),
        ("job", "a condition or a number, received a category"),
        ("'job'", "a condition or a number, received a category or a text"),
        ("a and member", "character 1: expected a condition"),
        ("not a", "expected a condition"),
        ("-" * 300 + "a > 0", "at most 150 operations inside each other"),
        ("a + " * 2000 + "a > 0", "at most 5,000 characters"),
        ("(" * 250 + "a" + ")" * 250, "received"),
    ],
)
def test_everything_else_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        Expression.parse(text, SCHEMA.features, "rule")
    assert str(caught.value).startswith("rule ")


def test_the_place_is_counted_in_letters() -> None:
    frame = FRAME.rename(columns={"a": "höhe"})
    with pytest.raises(InvalidInput, match=r"character 12: .* received '`x`'"):
        Expression.parse("höhe > 1 / `x`", Schema.infer(frame).features)
    found = Expression.parse("höhe * `höhe`", Schema.infer(frame).features)
    assert found.values(CODES).tolist() == [1.0, 6.25, 0.0, 16.0]


def test_names_that_two_columns_share_are_refused() -> None:
    frame = pd.DataFrame([[1, 2], [3, 4]], columns=pd.Index([1, "1"], dtype=object))
    with pytest.raises(InvalidInput, match="several columns are called"):
        Expression.parse("`1` > 0", Schema.infer(frame).features)
    frame = pd.DataFrame([[1, 2], [3, 4]], columns=[0, 1])
    assert Expression.parse("`0` < `1`", Schema.infer(frame).features).places == (0, 1)


# --- laws -----------------------------------------------------------------------------------------

NUMBERS = ["a", "b", "c"]


def numbers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner),
        st.builds("(-{})".format, inner),
        st.builds("abs({})".format, inner),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner),
    )


AMOUNTS = st.recursive(
    st.one_of(st.sampled_from(NUMBERS), st.integers(-9, 9).map("({})".format)), numbers
)
COMPARED = st.builds(
    "({} {} {})".format, AMOUNTS, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), AMOUNTS
)
CONDITIONS = st.recursive(
    COMPARED,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner),
        st.builds("(not {})".format, inner),
    ),
)


@settings(max_examples=300, deadline=None)
@given(CONDITIONS, st.lists(st.tuples(*[st.integers(-5, 5)] * 3), min_size=2, max_size=5))
def test_the_value_is_pythons(text: str, rows: list[tuple[int, int, int]]) -> None:
    frame = pd.DataFrame(rows, columns=NUMBERS).astype(float)
    found = Expression.parse(text, Schema.infer(frame).features).values(frame.to_numpy())
    for row, ours in zip(rows, found, strict=True):
        try:
            theirs = eval(text, {"abs": abs, "min": min, "max": max}, dict(zip("abc", row)))  # noqa: B905
        except ZeroDivisionError:
            continue
        assert bool(theirs) == (ours == 1.0)


PIECES = st.sampled_from(
    [
        *("a", "b", "job", "member", "`Credit amount`", "1", "2.5", "'cook'", "+", "-", "*", "/"),
        *("<", "==", "and", "or", "not", "(", ")", ",", "abs(", "min(", "max(", " ", "`"),
        *("__class__", "__import__", ".", "@", "[", "]", "{", "}", "lambda", ":", ":=", "eval("),
        *("import", "open(", "exec(", "'", '"', "\\", "\n", "#", ";", "**", "//", "if", "else"),
        *("\x00", "é", "\ud800", "await", "yield", "None", "1e999", "0x1", "1_0", "f'", "%s"),
    ]
)


@example("\ud800`Credit amount`")
@settings(max_examples=500, deadline=None)
@given(st.one_of(st.lists(PIECES, max_size=14).map("".join), st.text(max_size=30)))
def test_a_text_is_numbers_or_refused(text: str) -> None:
    """Whatever is written, it comes to numbers of columns and constants, or to a sentence."""
    try:
        expression = Expression.parse(text, SCHEMA.features)
    except InvalidInput:
        return
    found = expression.values(CODES)
    assert found.dtype == np.float64
    assert found.shape == (4,)
    # An independent reading of the accepted text finds no syntax that could do anything else.
    allowed = (
        *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Call, ast.Name),
        *(ast.Constant, ast.Load, ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
    )
    if "`" not in text:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip().replace("\n", " "), mode="eval")
        assert all(isinstance(node, allowed) for node in ast.walk(tree))
        called = [node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call)]  # type: ignore[attr-defined]
        assert set(called) <= {"abs", "min", "max"}


def test_the_largest_number_stays_finite() -> None:
    assert not math.isinf(value("1e308 > a")[0])
