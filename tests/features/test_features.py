"""What a schema reads off a frame, what its methods do, and what they refuse."""

import json
import re
from dataclasses import FrozenInstanceError, replace
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import torch

import elsewise.features as features
from elsewise.errors import InvalidInput
from elsewise.features import Encoder, Kind, Rule, Schema, _json

ORDER = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "age": [20, 30, 40, 60],
            "income": [1.5, 2.5, np.nan, 5.0],
            "job": ["clerk", "cook", None, "clerk"],
            "saving": pd.Categorical(["low", "high", "mid", "low"], dtype=ORDER),
            "member": [True, False, True, True],
            "day": pd.to_datetime(["2024-01-01", "2024-01-02", None, "2024-01-01"]),
        },
        index=["a", "b", "c", "d"],
    )


@pytest.fixture
def schema(frame):
    return Schema.infer(frame)


def codes_of(schema, frame):
    return schema.encoder(frame).encode(frame)


def test_public_names():
    assert features.__all__ == [
        "UNREAD",
        "Attribute",
        "Embedding",
        "Encoder",
        "Expression",
        "Feature",
        "Formula",
        "Kind",
        "Legal",
        "Rule",
        "Schema",
        "Source",
        "attributes",
        "hash_rows",
        "largest_squared_move",
        "outside_notices",
        "pack_index",
        "rows_outside",
        "to_pandas",
        "unpack_index",
    ]


class TestInfer:
    def test_kinds(self, schema):
        assert [feature.kind.value for feature in schema.features] == [
            "integer",
            "number",
            "category",
            "category",
            "category",
            "fixed",
        ]
        assert schema.names == ("age", "income", "job", "saving", "member", "day")

    def test_numbers(self, schema):
        income = schema["income"]
        assert income.observed == (1.5, 5.0)
        assert income.center == pytest.approx(3.0)
        assert income.scale == pytest.approx(np.std([1.5, 2.5, 5.0], ddof=1))
        assert income.free
        assert income.declared is None

    def test_levels(self, schema):
        assert schema["job"].levels == ("clerk", "cook")
        assert schema["saving"].levels == ("low", "mid", "high")
        assert schema["saving"].ordered
        assert schema["saving"].observed == (0.0, 2.0)
        assert schema["member"].levels == (False, True)
        assert (schema["job"].center, schema["job"].scale) == (0.0, 1.0)

    def test_background_gives_scales_ranges_and_levels(self, frame):
        background = pd.concat([frame, frame]).reset_index(drop=True)
        background.loc[0, ["age", "job"]] = [99, "nurse"]
        schema = Schema.infer(frame, background)
        assert schema["age"].observed == (20.0, 99.0)
        assert schema["age"].center == pytest.approx(background["age"].mean())
        assert schema["age"].scale == pytest.approx(background["age"].std())
        assert schema["job"].levels == ("clerk", "cook", "nurse")

    def test_background_without_spread_leaves_the_scale_to_all_rows(self):
        frame = pd.DataFrame({"x": [1.0, 2.5]})
        schema = Schema.infer(frame, pd.DataFrame({"x": [2.5, 2.5]}))
        assert schema["x"].scale == pytest.approx(np.std([1.0, 2.5, 2.5, 2.5], ddof=1))

    def test_missing_background_column_is_no_obstacle(self):
        frame = pd.DataFrame({"x": ["a", "b"]})
        assert Schema.infer(frame, pd.DataFrame({"x": [np.nan, np.nan]}))["x"].levels == ("a", "b")

    @pytest.mark.parametrize(
        ("cells", "kind", "free", "notice"),
        [
            ([1.0, 2.0, np.nan], Kind.INTEGER, True, "whole numbers: kept whole"),
            ([7, 7, 7], Kind.INTEGER, False, "constant"),
            (["x", "x", None], Kind.CATEGORY, False, "constant"),
            ([np.nan, np.nan, np.nan], Kind.FIXED, False, "all missing"),
            ([f"n{k}" for k in range(51)], Kind.FIXED, False, "text with 51 values"),
            (pd.Categorical(range(51)), Kind.CATEGORY, False, "category of 51 levels"),
            ([2**53 + 1, 1, 2], Kind.FIXED, False, r"integers beyond 2\*\*53"),
            (pd.array([2**60, None], dtype="Int64"), Kind.FIXED, False, "integers beyond"),
            ([date(2024, 1, 1), date(2024, 1, 2)], Kind.FIXED, False, "dtype object"),
            ([Decimal(1), Decimal(2)], Kind.FIXED, False, "dtype object"),
            (pd.to_timedelta(["1D", "2D"]), Kind.FIXED, False, "dtype timedelta64"),
            ([0, 1, 1], Kind.INTEGER, True, "^$"),
            ([1e17, 2e17], Kind.NUMBER, True, "^$"),
            (pd.arrays.SparseArray([0, 1, 5]), Kind.INTEGER, True, "^$"),
            (pd.array([1, None, 3], dtype="Int64"), Kind.INTEGER, True, "^$"),
            (pd.array([True, None, False], dtype="boolean"), Kind.CATEGORY, True, "^$"),
        ],
    )
    def test_notices(self, cells, kind, free, notice):
        feature = Schema.infer(pd.DataFrame({"x": cells}))["x"]
        assert (feature.kind, feature.free) == (kind, free)
        assert feature.scale > 0
        assert re.search(notice, feature.notice)

    def test_big_integers_in_the_background_alone(self):
        frame = pd.DataFrame({"x": [1, 2]})
        assert Schema.infer(frame, pd.DataFrame({"x": [2**60, 1]}))["x"].kind is Kind.FIXED

    def test_huge_values_have_a_finite_scale(self):
        feature = Schema.infer(pd.DataFrame({"x": [-1e308, 1.5e308]}))["x"]
        assert np.isfinite([feature.center, feature.scale]).all()

    @pytest.mark.parametrize(
        ("frame", "background", "message"),
        [
            ([[1, 2]], None, "frame: expected a DataFrame of pandas or polars.* received list"),
            (pd.DataFrame(index=[0, 1]), None, "expected at least one column"),
            (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), None, "received 'a' more than"),
            (pd.DataFrame({"a": [1]}), None, "expected at least 2 rows, received 1"),
            (pd.DataFrame({"a": []}), None, "expected at least 2 rows, received 0"),
            (pd.DataFrame({"a": [1.0, np.inf]}), None, "column 'a': expected finite or missing"),
            (pd.DataFrame({"a": [1, "b"]}), None, "column 'a': .* a mixture of int and str"),
            (pd.DataFrame({"a": [1, 2.5, None]}, dtype=object), None, "mixture of float and int"),
            (pd.DataFrame({"a": [[1], [2]]}), None, "column 'a': expected hashable cells"),
            (
                pd.DataFrame({"a": [1, 2]}),
                [1],
                "background: expected a DataFrame of pandas or polars",
            ),
            (pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"b": [1]}), "received no column 'a'"),
            (
                pd.DataFrame({"a": [1, 2]}),
                pd.DataFrame({"a": ["x"]}),
                "background column 'a': expected numbers, as in the frame",
            ),
            (
                pd.DataFrame({"a": pd.Categorical(["x", "y"])}),
                pd.DataFrame({"a": ["x", "z"]}),
                "background column 'a': expected values among the frame's categories, .* 'z'",
            ),
        ],
    )
    def test_refusals(self, frame, background, message):
        with pytest.raises(InvalidInput, match=message):
            Schema.infer(frame, background)


class TestMethods:
    def test_each_returns_a_new_schema(self, schema):
        assert not schema.freeze("age")["age"].free
        assert schema["age"].free
        with pytest.raises(FrozenInstanceError):
            schema.joint = True

    def test_free_and_only(self, schema):
        assert schema.freeze("age", "job").free("job")["job"].free
        chosen = schema.only("age", "saving")
        assert [f.name for f in chosen.features if f.free] == ["age", "saving"]
        assert not any(f.free for f in schema.only().features)

    def test_many_levels_can_be_freed(self):
        schema = Schema.infer(pd.DataFrame({"x": pd.Categorical(range(51))}))
        assert schema.free("x")["x"].free

    def test_range_direction_weight_allowed(self, schema):
        changed = (
            schema.range("income", lower=2)
            .only_increase("saving")
            .only_decrease("age")
            .weight("age", 3)
            .allowed("job", ["cook"])
        )
        assert changed["income"].declared == (2.0, np.inf)
        assert changed["saving"].direction == 1
        assert changed["age"].direction == -1
        assert changed["age"].weight == 3.0
        assert changed["job"].allowed == ("cook",)

    def test_continuous_and_integer(self, schema):
        relaxed = schema.continuous("age")
        assert relaxed["age"].kind is Kind.NUMBER
        assert relaxed.integer("age") == schema

    def test_rules_have_names(self, schema):
        def adult(frame):
            return frame["age"] >= 18

        ruled = schema.rule(adult).rule(lambda frame: frame["age"] > 0).rule(adult, "grown")
        assert [rule.name for rule in ruled.rules] == ["adult", "rule 2", "grown"]
        assert ruled.rules[0] == Rule(name="adult", condition=adult)
        assert "rule 'grown'" in repr(ruled)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda s: s.freeze("incme"), "received 'incme'. Fix: did you mean 'income'"),
            (lambda s: s["agee"], "did you mean 'age'"),
            (lambda s: s.freeze(["age", "sex"]), "give the names one by one"),
            (lambda s: Schema(features=())["x"], "infer the schema from a frame"),
            (lambda s: s.free("day"), "column 'day': .* received dtype datetime64"),
            (lambda s: s.free("one"), "column 'one': .* received constant"),
            (lambda s: s.range("income", 5, 1), "range of 'income': .* received 5 to 1"),
            (lambda s: s.range("income", np.nan), "lower <= upper, received nan to inf"),
            (lambda s: s.range("income", "2"), "two numbers, lower <= upper, received 2 to inf"),
            (lambda s: s.range("income", 6, 9), "meets the observed one, 1.5 to 5, received 6 to"),
            (lambda s: s.range("income", upper=1), "meets the observed one"),
            (lambda s: s.range("age", 20.2, 20.8), "holds a whole number, received 20.2 to 20.8"),
            (
                lambda s: s.continuous("age").range("age", 20.2, 20.8).integer("age"),
                "holds a whole number",
            ),
            (lambda s: s.range("job", 0, 1), "column 'job': .* use Schema.allowed"),
            (lambda s: s.allowed("job", ["cook", "king"]), "allowed values of 'job': .* 'king'"),
            (lambda s: s.allowed("job", []), "allowed values of 'job': .* received none"),
            (lambda s: s.allowed("age", [1]), "column 'age': .* use Schema.range"),
            (lambda s: s.only_increase("job"), "column 'job': .* an unordered category column"),
            (lambda s: s.only_decrease("day"), "column 'day': .* number or an ordered category"),
            (lambda s: s.weight("age", 0), "value: expected a finite weight above 0, received 0"),
            (lambda s: s.weight("age", np.inf), "received inf"),
            (lambda s: s.weight("age", "2"), "received '2'"),
            (lambda s: s.continuous("job"), "column 'job': expected a column of numbers"),
            (lambda s: s.integer("day"), "column 'day': expected a column of numbers"),
            (lambda s: s.one_hot_group("g", ["own"]), "columns: expected at least two columns"),
            (lambda s: s.one_hot_group("g", ["own", "age"]), "column 'age': expected a column of"),
            (
                lambda s: s.one_hot_group("g", ["own", "rent"]).one_hot_group("h", ["own", "one"]),
                "column 'own': .* received group 'g'",
            ),
            (
                lambda s: s.one_hot_group("g", ["own", "rent"]).one_hot_group("g", ["one", "age"]),
                "name: expected the name of a new group, received 'g'",
            ),
            (lambda s: s.rule(3), "condition: expected a text or a function of a frame"),
        ],
    )
    def test_refusals(self, frame, change, message):
        more = frame.assign(one=1, own=[0, 1, 0, 1], rent=[1, 0, 1, 0])
        with pytest.raises(InvalidInput, match=message):
            change(Schema.infer(more))


class TestShowing:
    def test_repr(self, schema):
        lines = repr(schema.freeze("job").allowed("member", [True])).splitlines()
        assert lines[0] == "Schema of 6 columns, 4 free"
        assert lines[1].split() == ["column", "kind", "moves", "range", "weight", "notice"]
        assert "saving  ordered category  freely  low, mid, high" in lines[5]
        assert lines[6].split()[:4] == ["member", "category", "freely", "True"]

    def test_repr_of_many_levels_and_groups(self):
        frame = pd.DataFrame({"x": list("abcdef"), "p": [0, 1] * 3, "q": [1, 0] * 3})
        shown = repr(Schema.infer(frame).one_hot_group("g", ["p", "q"]))
        assert "a, b, c, d, ... (6)" in shown
        assert "one of 'g'" in shown

    def test_html_is_escaped(self):
        frame = pd.DataFrame({"<script>": ["<b>", "&"]})
        html = Schema.infer(frame).rule(lambda rows: rows, "<i>")._repr_html_()
        assert "<script>" not in html
        assert "<b>" not in html
        assert "<i>" not in html
        assert "&lt;script&gt;" in html


class TestEncoder:
    def test_codes(self, schema, frame):
        encoder = schema.encoder(frame)
        assert encoder.schema is schema
        expected = [
            [20, 1.5, 0, 0, 1, 0],
            [30, 2.5, 1, 2, 0, 1],
            [40, np.nan, np.nan, 1, 1, np.nan],
            [60, 5.0, 0, 0, 1, 0],
        ]
        np.testing.assert_array_equal(encoder.encode(frame), expected)

    def test_index_is_given_or_a_range(self, schema, frame):
        encoder = schema.encoder(frame)
        codes = encoder.encode(frame)
        pd.testing.assert_frame_equal(encoder.decode(codes, index=frame.index), frame)
        assert encoder.decode(codes).index.equals(pd.RangeIndex(4))

    def test_decoded_frames_share_no_memory_with_codes(self):
        frame = pd.DataFrame({"x": [0.5, 1.5]})
        encoder = Schema.infer(frame).encoder(frame)
        codes = encoder.encode(frame)
        codes_before = codes.copy()
        decoded = encoder.decode(codes)
        decoded.loc[:, "x"] = 7.0
        np.testing.assert_array_equal(codes, codes_before)

    def test_moved_codes_keep_the_dtypes(self, schema, frame):
        encoder = schema.encoder(frame)
        codes = encoder.encode(frame)
        codes[0, :5] = [21.0000001, 9.75, 1, 2, 0]
        moved = encoder.decode(torch.asarray(codes))
        assert (moved.dtypes == frame.dtypes).all()
        assert moved.iloc[0, :5].tolist() == [21, 9.75, "cook", "high", False]

    def test_relaxed_integers_decode_as_floats(self):
        frame = pd.DataFrame({"x": [1, 2], "y": pd.array([1, None], dtype="Int64")})
        frame = pd.concat([frame, frame + 1], ignore_index=True)
        encoder = Schema.infer(frame).continuous("x", "y").encoder(frame)
        decoded = encoder.decode([[1.5, 1.25]])
        assert decoded.dtypes.astype(str).tolist() == ["float64", "Float64"]
        assert decoded.iloc[0].tolist() == [1.5, 1.25]

    def test_columns_are_put_in_the_order_of_the_schema(self, schema, frame):
        turned = frame[frame.columns[::-1]]
        encoder = schema.encoder(turned)
        pd.testing.assert_frame_equal(
            encoder.decode(encoder.encode(turned), index=frame.index), frame
        )

    def test_column_labels_are_kept(self):
        columns = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["k", None])
        frame = pd.DataFrame([[1, 0.5], [2, 1.5]], columns=columns)
        encoder = Encoder.from_dict(Schema.infer(frame, frame).encoder(frame).to_dict())
        pd.testing.assert_frame_equal(encoder.decode(encoder.encode(frame)), frame)

    def test_one_row_and_no_row(self, schema, frame):
        for rows in (frame[:1], frame[:0]):
            encoder = schema.encoder(rows)
            decoded = encoder.decode(encoder.encode(rows), index=rows.index)
            pd.testing.assert_frame_equal(decoded, rows)

    def test_categories_are_found_by_value_not_by_code(self, schema, frame):
        other = frame.assign(
            job=frame["job"].astype(pd.CategoricalDtype(["cook", "nurse", "clerk"]))
        )
        encoder = schema.encoder(other)
        codes = encoder.encode(other)
        np.testing.assert_array_equal(codes, codes_of(schema, frame))
        pd.testing.assert_frame_equal(encoder.decode(codes, index=frame.index), other)
        np.testing.assert_array_equal(encoder.encode(frame), codes)

    @pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
    def test_missing_objects_stay_what_they_are(self, missing):
        frame = pd.DataFrame({"x": pd.Series(["a", missing, "b"], dtype=object)})
        encoder = Encoder.from_dict(Schema.infer(frame).encoder(frame).to_dict())
        assert encoder.decode(encoder.encode(frame))["x"].iloc[1] is missing

    @pytest.mark.parametrize(
        "cells",
        [
            pd.period_range("2024-01", periods=3, freq="M"),
            pd.arrays.IntervalArray.from_tuples([(0, 2), (1, 3), (0, 2)]),
            pd.to_timedelta(["1D", None, "2D"]),
            pd.array([2**60 + 1, None, 1], dtype="Int64"),
            np.array([1 + 2j, np.nan, 3]),
            pd.Series([date(2024, 1, 1), None, date(2024, 1, 1)], dtype=object),
            pd.Series([(1, 2), None, (1, 2)], dtype=object),
            pd.Categorical([None] * 3, categories=["a"]),
            np.full(3, np.nan),
            pd.arrays.SparseArray([0, 1, 5]),
        ],
    )
    def test_other_dtypes_round_trip(self, cells):
        frame = pd.DataFrame({"x": cells})
        encoder = Schema.infer(frame).encoder(frame)
        pd.testing.assert_frame_equal(encoder.decode(encoder.encode(frame)), frame)

    def test_extend_keeps_old_codes(self, schema, frame):
        encoder = schema.encoder(frame)
        codes = encoder.encode(frame)
        later = frame.assign(day=pd.Timestamp("2025-05-05"))
        with pytest.raises(InvalidInput, match=r"column 'day': .*2025.* Encoder.extend"):
            encoder.encode(later)
        wider = encoder.extend(later)
        np.testing.assert_array_equal(wider.encode(frame), codes)
        decoded = wider.decode(wider.encode(later), index=frame.index)
        pd.testing.assert_frame_equal(decoded, later.astype(frame.dtypes.to_dict()))

    def test_saved_durations(self):
        frame = pd.DataFrame({"x": pd.to_timedelta(["1D", None, "2h"])})
        encoder = Schema.infer(frame).encoder(frame)
        again = Encoder.from_dict(encoder.to_dict())
        pd.testing.assert_frame_equal(again.decode(encoder.encode(frame)), frame)

    def test_saved_objects(self):
        day = pd.Timestamp("2024-01-02 03:04:05").to_pydatetime()
        cells = {"day": [day, None], "date": [date(2024, 1, 2), None], "i": pd.cut([1, 2], 2)}
        frame = pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in cells.items()})
        encoder = Schema.infer(frame).encoder(frame)
        again = Encoder.from_dict(json.loads(json.dumps(encoder.to_dict(), allow_nan=False)))
        pd.testing.assert_frame_equal(again.decode(encoder.encode(frame)), frame)

    @pytest.mark.parametrize("value", [1.5, np.inf, np.int64(3), None, True, "x", ("a", 1)])
    def test_cells_survive_packing(self, value):
        assert _json.unpack(json.loads(json.dumps(_json.pack(value)))) == value

    def test_saving_refuses_other_objects(self):
        frame = pd.DataFrame({"x": [Decimal(1), Decimal(2)]})
        with pytest.raises(InvalidInput, match=r"cell: .* Decimal\('1'\) of type Decimal"):
            Schema.infer(frame).encoder(frame).to_dict()
        with pytest.raises(InvalidInput, match="dtype: expected a dtype that its name describes"):
            _json.pack_dtype(np.dtype([("a", "i8")]))
        with pytest.raises(InvalidInput, match=r"data: expected what Encoder.to_dict returned"):
            Encoder.from_dict(Schema.infer(frame).encoder(frame[:0]).to_dict() | {"columns": 3})
        with pytest.raises(InvalidInput, match=r"data: expected what Encoder.to_dict returned"):
            Encoder.from_dict({})

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda f: f.to_numpy(), "expected an array .rows, columns. of numbers"),
            (lambda f: f.drop(columns="job"), "received no column 'job'"),
            (lambda f: f.assign(extra=1), "received an extra column 'extra'"),
            (lambda f: f.assign(job="coook"), "column 'job': .* 'coook'. Fix: the nearest .*cook"),
            (lambda f: f.assign(income="much"), "column 'income': expected numbers, .* dtype str"),
            (lambda f: f.assign(income=True), "column 'income': expected numbers, .* dtype bool"),
            (lambda f: f.assign(income=-np.inf), "column 'income': expected finite"),
            (lambda f: f.assign(age=20.5), "column 'age': expected whole numbers, .* 20.5"),
            (lambda f: f.assign(age=2**60), r"column 'age': expected integers up to 2\*\*53"),
        ],
    )
    def test_refusals_of_both(self, schema, frame, change, message):
        with pytest.raises(InvalidInput, match=message):
            schema.encoder(change(frame))
        with pytest.raises(InvalidInput, match=message):
            schema.encoder(frame).encode(change(frame))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                lambda f: f.assign(saving=f["saving"].cat.remove_categories("high").fillna("low")),
                "column 'saving': expected a dtype that holds every level",
            ),
            (lambda f: f.assign(job=1.5), "column 'job': expected a dtype that holds every level"),
            (
                lambda f: f.assign(member=f["member"].astype(str)),
                "column 'member': expected a dtype that holds every level",
            ),
        ],
    )
    def test_refusals_of_new_encoders(self, schema, frame, change, message):
        with pytest.raises(InvalidInput, match=message):
            schema.encoder(change(frame))

    def test_narrow_dtype_is_refused(self):
        frame = pd.DataFrame({"x": np.array([1, 2], dtype=np.int8)})
        with pytest.raises(InvalidInput, match=r"a dtype that holds the range 1 to 300, .* int8"):
            Schema.infer(frame).range("x", 1, 300).encoder(frame)
        with pytest.raises(InvalidInput, match="column 'x': expected a dtype that holds"):
            Schema.infer(frame, pd.DataFrame({"x": [1, 300]})).encoder(frame)

    def test_missing_where_the_dtype_has_none(self, schema, frame):
        encoder = schema.encoder(frame)
        with pytest.raises(InvalidInput, match=r"column 'age': expected no missing values, .*64"):
            encoder.encode(frame.assign(age=[1, None, 3, 4]))
        with pytest.raises(InvalidInput, match=r"column 'member': .* 'a missing value'"):
            encoder.encode(frame.assign(member=pd.array([True, None, True, True], "boolean")))

    def test_decode_refuses_other_shapes(self, schema, frame):
        with pytest.raises(InvalidInput, match=r"codes: expected an array \(n, 6\), .* \(1, 2\)"):
            schema.encoder(frame).decode([[1, 2]])


class TestRules:
    def test_obeys(self, schema, frame):
        codes = codes_of(schema, frame)
        assert schema.encoder(frame).obeys(codes).tolist() == [True] * 4
        ruled = schema.rule(lambda rows: rows["age"] < 50).rule(
            lambda rows: rows["age"].to_numpy() > 20
        )
        assert ruled.encoder(frame).obeys(torch.asarray(codes)).tolist() == [
            False,
            True,
            True,
            False,
        ]

    def test_an_unknown_answer_is_a_no(self):
        frame = pd.DataFrame({"x": pd.array([1, None, 3], dtype="Int64")})
        encoder = Schema.infer(frame).rule(lambda rows: rows["x"] > 0).encoder(frame)
        assert encoder.obeys(encoder.encode(frame)).tolist() == [True, False, True]

    def test_a_rule_cannot_disturb_the_next(self, schema, frame):
        def careless(rows):
            rows["age"] = 0
            return rows["age"] == 0

        encoder = schema.rule(careless).rule(lambda rows: rows["age"] > 0).encoder(frame)
        assert encoder.obeys(encoder.encode(frame)).all()

    @pytest.mark.parametrize(
        ("function", "message"),
        [
            (lambda rows: rows["agee"] > 1, "rule 'mine': .* received one that reads 'agee'"),
            (lambda rows: True, "rule 'mine': expected 4 booleans, one per row, received .* bool"),
            (lambda rows: [True], r"expected 4 booleans, one per row, received \(1,\) of list"),
            (lambda rows: rows["age"], r"expected 4 booleans, .* received \(4,\) of int64"),
            (lambda rows: rows[["age"]] > 0, r"expected 4 booleans, .* received \(4, 1\)"),
        ],
    )
    def test_refusals(self, schema, frame, function, message):
        encoder = schema.rule(function, "mine").encoder(frame)
        with pytest.raises(InvalidInput, match=message):
            encoder.obeys(encoder.encode(frame))


class TestGroups:
    @pytest.mark.parametrize("dtype", ["int64", "bool", "float64"])
    def test_one_block_in_which_a_swap_costs_the_weight(self, dtype):
        frame = pd.DataFrame({"z": [0.5, 1.5, 2.5], "own": [1, 0, 0], "rent": [0, 1, 1]})
        frame = frame.astype({"own": dtype, "rent": dtype})
        schema = Schema.infer(frame).one_hot_group("home", ["own", "rent"])
        schema = schema.weight("own", 2).weight("rent", 2).freeze("z")
        embedding = schema.embedding()
        assert embedding.labels == ("own", "rent")
        assert not embedding.movable.any()
        places = embedding.embed(codes_of(schema, frame))
        assert np.linalg.norm(places[0] - places[1]) == pytest.approx(2.0)
        assert np.linalg.norm(places[1] - places[2]) == 0.0

    @pytest.mark.parametrize(
        ("row", "shown"), [([1, 1], "1.0, 1.0"), ([0, 0], "0.0, 0.0"), ([0, np.nan], "0.0, nan")]
    )
    def test_exactly_one_per_row(self, row, shown):
        frame = pd.DataFrame({"own": [1, 0, 0.0], "rent": [0, 1, 1.0]})
        schema = Schema.infer(frame).one_hot_group("home", ["own", "rent"])
        frame.loc[1] = row
        message = rf"exactly one 1 per row in the one-hot group 'home', .*{shown}\] in row 1"
        with pytest.raises(InvalidInput, match=message):
            schema.encoder(frame)


class TestEmbedding:
    def test_layout(self, schema):
        assert schema.embedding().labels == (
            *("age", "income", "saving"),
            *("job", "job", "member", "member"),
        )
        joint = replace(schema.freeze("age", "member"), joint=True).embedding()
        assert joint.labels == (
            *("income", "age", "saving"),
            *("job", "job", "member", "member"),
        )
        assert joint.movable.tolist() == [True] + [False] * 6

    def test_values(self, schema, frame):
        places = schema.weight("age", 2).embedding().embed(codes_of(schema, frame))
        ages = frame["age"]
        np.testing.assert_allclose(places[:, 0], 2 * (ages - ages.mean()) / ages.std())
        half = np.sqrt(0.5)
        np.testing.assert_allclose(places[1, 2:], [1.0, 0, half, half, 0])
        # Missing income and job embed as 0.
        np.testing.assert_allclose(places[2, 1:], [0, 0.5, 0, 0, 0, half])

    def test_a_missing_gradient_of_a_category_is_ignored(self, schema):
        gradient = np.full((1, 1, 6), np.nan)
        gradient[..., :2] = 1.0
        pulled = schema.embedding().pull(gradient)
        np.testing.assert_array_equal(pulled[0, 0, 2:], 0.0)
        assert (pulled[0, 0, :2] > 0).all()

    def test_nothing_free(self, schema, frame):
        embedding = schema.only().embedding()
        codes = codes_of(schema, frame)
        assert embedding.size == 0
        assert embedding.embed(codes).shape == (4, 0)
        assert embedding.pull(np.ones((4, 1, 6))).shape == (4, 1, 0)
        np.testing.assert_array_equal(embedding.push(codes, np.zeros((4, 0))), codes)

    def test_torch_differentiates_it(self, schema, frame):
        codes = torch.asarray(np.nan_to_num(codes_of(schema, frame))).requires_grad_()
        embedding = schema.embedding()
        embedding.like(codes).embed(codes)[:, 0].sum().backward()
        np.testing.assert_allclose(codes.grad.numpy()[:, 0], embedding.factor[0])


class TestLegal:
    def test_boxes(self, schema, frame):
        chosen = schema.freeze("job").only_increase("age").only_decrease("saving")
        legal = chosen.range("income", lower=1.6).legal(codes_of(chosen, frame))
        # The first row's income breaks the declared range: it stays as it is.
        assert legal.broken.tolist() == [True, False, False, False]
        np.testing.assert_array_equal(legal.lower[0], legal.upper[0])
        np.testing.assert_array_equal(legal.lower[1], [30, 1.6, 1, 0, 0, 1])
        np.testing.assert_array_equal(legal.upper[1], [60, 5.0, 1, 2, 1, 1])
        np.testing.assert_array_equal(legal.lower[2], [40, np.nan, np.nan, 0, 0, np.nan])
        assert legal.integer.tolist() == [True, False, True, True, True, True]

    def test_the_observed_range_makes_room_for_the_row(self, schema, frame):
        codes = codes_of(schema, frame.assign(age=[10, 90, 30, 30]))
        legal = schema.legal(codes)
        assert legal.lower[:3, 0].tolist() == [10, 20, 20]
        assert legal.upper[:3, 0].tolist() == [60, 90, 60]

    def test_integer_ends_are_whole(self, schema, frame):
        legal = schema.range("age", 19.5, 60.5).legal(codes_of(schema, frame))
        assert (legal.lower[0, 0], legal.upper[0, 0]) == (20, 60)
        assert legal.legalize(np.full((4, 6), 60.4))[0, 0] == 60

    def test_broken_rows_are_the_callers_too(self, schema, frame):
        codes = codes_of(schema, frame)
        legal = schema.legal(codes, broken=np.array([False, True, False, False]))
        moved = legal.legalize(codes + 1.0)
        np.testing.assert_array_equal(moved[1], codes[1])
        assert moved[0, 0] == 21

    def test_missing_is_no_place_to_move_to(self, schema, frame):
        codes = codes_of(schema, frame)
        np.testing.assert_array_equal(schema.legal(codes).legalize(codes * np.nan), codes)

    def test_frozen_cells_keep_their_bits(self):
        frame = pd.DataFrame({"x": [-0.0, 0.5]})
        codes = codes_of(Schema.infer(frame), frame)
        moved = Schema.infer(frame).freeze("x").legal(codes).legalize(codes + 1)
        assert moved.tobytes() == codes.tobytes()

    def test_other_shapes_are_refused(self, schema):
        with pytest.raises(InvalidInput, match=r"codes: expected an array \(n, 6\), .* \(2,\)"):
            schema.legal(np.ones(2))
