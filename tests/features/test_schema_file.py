"""The schema file: one line a column, whole after a round trip, and refused with the place."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elsewise.datasets import german_credit
from elsewise.errors import InvalidInput
from elsewise.features import Schema

FRAME = pd.DataFrame(
    {
        "age": [31, 45, 22],
        "Credit amount": [1.5, 2.25, 9.0],
        "job": ["a", "b", "a"],
        "size": pd.Categorical(list("SML"), list("SML"), ordered=True),
        "flag": [True, False, True],
        "day": pd.date_range("2024-01-01", periods=3),
        "one": [1, 1, 1],
    }
)
HAND = """
format = 1
[columns]
age = { kind = "integer", range = [18, 99], only = "increase" }
"Credit amount" = { kind = "number", range = [-inf, 5000], weight = 2 }
job = { kind = "category", allowed = ["a"] }
size = { kind = "category", free = false }
flag = { kind = "category" }
day = { kind = "fixed" }
one = { kind = "integer" }
[rules]
grown = "age >= 18"
"""


def test_one_line_a_column() -> None:
    data = german_credit()
    wide = pd.concat([data.frame, data.frame.add_suffix(" 2"), data.frame.add_suffix(" 3")], axis=1)
    schema = Schema.infer(wide.iloc[:, :25]).freeze("Age").only_decrease("Duration")
    text = schema.rule("`Credit amount` >= 50 * Duration", "at least 50 a month").to_toml()
    assert len(text.splitlines()) <= 40
    assert all(len(line) < 250 for line in text.splitlines())
    duration = next(line for line in text.splitlines() if line.startswith("Duration "))
    assert duration.startswith('Duration = { kind = "integer", only = "decrease", seen = [4, 72], ')
    again = Schema.from_toml(text)
    assert again.rules[0].condition == "`Credit amount` >= 50 * Duration"
    assert again == Schema.from_toml(again.to_toml())


def test_round_trip() -> None:
    chosen = (
        replace(Schema.infer(FRAME), joint=True)
        .range("Credit amount", upper=5000)
        .only_increase("age", "size")
        .allowed("job", ["b"])
        .weight("age", 1 / 3)
        .cost("job", 12)
        .freeze("flag")
        .rule("age > 18 and job != 'b'")
        .rule("`Credit amount` < 9000", "not too much")
    )
    assert Schema.from_toml(chosen.to_toml()) == chosen
    assert Schema.from_toml(chosen.to_toml(), FRAME) == chosen
    made = Schema.infer(FRAME).derived("Credit amount", "age / 20")
    assert Schema.from_toml(made.to_toml()) == made


def test_functions_are_kept_by_name() -> None:
    rule = lambda frame: frame["age"] > 0  # noqa: E731
    schema = Schema.infer(FRAME)
    text = schema.rule(rule, "born").derived("Credit amount", lambda frame: frame["age"]).to_toml()
    assert 'functions = ["born", "Credit amount"]' in text
    again = Schema.from_toml(text)
    assert again.lost == ("born", "Credit amount")
    assert again.notices[-1] == "'Credit amount' is not obeyed: files hold no functions"
    assert again.with_functions({"born": rule}).rules[0].condition is rule
    assert again.with_functions({"born": rule}).lost == ("Credit amount",)


@pytest.mark.parametrize(
    "names",
    [
        [1, "1", "1'"],
        [("u", "a"), ("u", "b"), ("v", "a")],
        ["a.b", 'quote "', "new\nline\x7f\x01"],
        ["", "é", "#"],
        [pd.Timestamp("2024-01-01"), 1.5, True],
        ["format", "columns", "rules"],
    ],
    ids=str,
)
def test_any_names(names: list[object]) -> None:
    frame = pd.DataFrame(np.arange(6).reshape(2, 3))
    frame.columns = pd.Index(names, dtype=object, tupleize_cols=False)
    schema = Schema.infer(frame).freeze(names[0])
    assert Schema.from_toml(schema.to_toml()) == schema


@pytest.mark.parametrize(
    "cells",
    [
        pd.Series(pd.cut([1.0, 5.0, 9.0], 3)),
        pd.Categorical([1.0, 2.5, 1.0]),
        pd.Categorical([3, 1, 3]),
        pd.Categorical(pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-01"])),
        pd.Categorical(["a", 1, "a"]),
        ["\x00\x1f\x7f\\\"'", "=1", "ü"],
    ],
    ids=str,
)
def test_any_levels(cells: object) -> None:
    schema = Schema.infer(pd.DataFrame({"x": cells}))
    again = Schema.from_toml(schema.to_toml())
    assert again == schema
    assert list(map(type, again["x"].levels)) == list(map(type, schema["x"].levels))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.floats(-1e60, 1e60).filter(lambda x: x == 0 or abs(x) > 1e-60), min_size=2, max_size=5
    ),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), min_size=2, max_size=5),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
)
def test_numbers_and_texts_survive(values: list[float], words: list[str], name: str) -> None:
    size = min(len(values), len(words))
    frame = pd.DataFrame({name: values[:size], f"{name} too": words[:size]})
    schema = Schema.infer(frame)
    assert Schema.from_toml(schema.to_toml()) == schema


def test_a_file_by_hand_takes_the_rest_from_the_rows() -> None:
    schema = Schema.from_toml(HAND, FRAME)
    wanted = (
        Schema.infer(FRAME)
        .range("age", 18, 99)
        .only_increase("age")
        .range("Credit amount", upper=5000)
        .weight("Credit amount", 2)
        .allowed("job", ["a"])
        .freeze("size", "one")
        .rule("age >= 18", "grown")
    )
    for made, by_hand in zip(wanted.features, schema.features, strict=True):
        # What inference noted is not in the file, and no word of it decides anything.
        assert by_hand == replace(made, notice="", free=by_hand.free)
    assert schema.rules == wanted.rules
    with pytest.raises(InvalidInput, match="column 'age': expected seen, mean and deviation of"):
        Schema.from_toml(HAND)


LINE = 'age = { kind = "integer", range = [18, 99], only = "increase" }'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("format = 1", "format = 2", "schema file.format: expected 1, received 2"),
        ("format = 1", "", "schema file: expected a field 'format'"),
        ("format = 1", "format = 1\nextra = 1", "fields among .*, received 'extra'"),
        ("format = 1", "format = true", "format: expected a whole number, received True"),
        ("[columns]", "[columns", r"schema file \(TOML\), received .* \(at line 3, column"),
        ("[columns]", "columns = 3\n[rules]", "Cannot|received"),
        (LINE, "age = 3", "column 'age': expected an object with the fields"),
        (LINE, "age = {}", "column 'age': expected a field 'kind'"),
        (LINE, f"{LINE}\n{LINE}", "Cannot overwrite a value .at line 5"),
        (LINE, "", "a line for every column, received none for 'age'"),
        (LINE, f'agee = {{ kind = "integer" }}\n{LINE}', "column 'agee': expected a column of the"),
        ('kind = "integer"', 'kind = "int"', "column 'age'.kind: expected one of 'number', 'inte"),
        ('kind = "integer"', 'kind = "category"', "column 'age'.kind: expected 'integer', as the"),
        ('only = "increase"', 'only = "up"', "column 'age'.only: .* 'increase', 'decrease'.* 'up'"),
        ('only = "increase"', "onlly = 1", "column 'age': expected fields among .* 'onlly'"),
        ("range = [18, 99]", "range = [99, 18]", "range of 'age': .* lower <= upper"),
        ("range = [18, 99]", "range = [18]", r"column 'age'.range: .* received \[18\]"),
        ("range = [18, 99]", 'range = "18 to 99"', "column 'age'.range: "),
        ("range = [18, 99]", "range = [18.2, 18.8]", "range of 'age': .* meets the observed one"),
        ("weight = 2", "weight = 0", "weight of 'Credit amount': .* above 0"),
        ("weight = 2", 'weight = "2"', "column 'Credit amount'.weight: expected a number"),
        ("weight = 2", "weight = nan", "weight of 'Credit amount': .* received nan"),
        ("weight = 2", "cost = -2", "cost of 'Credit amount': .* price"),
        ('allowed = ["a"]', 'allowed = ["z"]', "allowed values of 'job'"),
        ('allowed = ["a"]', "allowed = [{ what = 1 }]", "column 'job': expected cells as"),
        ('allowed = ["a"]', "seen = [1, 2, 3]", "column 'job'.seen"),
        ('"fixed"', '"fixed", free = true', "column 'day': expected a column that can move"),
        ('"fixed"', '"fixed", levels = ["a"]', "levels of 'day'"),
        ("grown =", "grown.of =", "rule 'grown': expected a condition as text"),
        ("age >= 18", "age >> 18", "rule 'age >> 18', character 1: .* received 'age >> 18'"),
        ("age >= 18", "age + 18", "rule: expected a condition, received age . 18"),
        ("range = [18, 99]", 'derived = "2 * 3"', "column 'age': expected a column that can move"),
        ("weight = 2", 'derived = "agee"', "formula of 'Credit amount' 'agee', character 1"),
        ("weight = 2", 'derived = "2"', "formula of 'Credit amount': expected a number made of"),
        ("weight = 2", 'derived = "`Credit amount`"', "columns that are not derived themselves"),
        ("weight = 2", "derived = 3", "column 'Credit amount'.derived"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(old: str, new: str, message: str) -> None:
    assert old in HAND
    with pytest.raises(InvalidInput, match=message):
        Schema.from_toml(HAND.replace(old, new, 1), FRAME)


def test_a_file_cut_short_is_refused() -> None:
    text = Schema.infer(FRAME).rule("age > 0").to_toml()
    for end in range(0, len(text) - 20, 7):
        with pytest.raises(InvalidInput):
            Schema.from_toml(text[:end], FRAME)


def test_what_toml_cannot_hold_is_refused() -> None:
    deep = "format = 1\n[columns]\nx = " + "[" * 10_000
    with pytest.raises(InvalidInput, match="schema file"):
        Schema.from_toml(deep)
    with pytest.raises(InvalidInput, match="text: expected"):
        Schema.from_toml(b"format = 1")  # type: ignore[arg-type]
    assert tomllib.loads(Schema.infer(FRAME).to_toml())["columns"]["one"]["notice"] == "constant"
