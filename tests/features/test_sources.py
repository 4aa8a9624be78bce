"""Frames of polars, Arrow and NumPy go in, and the same kind with the same values comes back."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import elsewise as ew
from elsewise.errors import InvalidInput, MissingExtra
from elsewise.features import Encoder, to_pandas

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
pytest.importorskip("narwhals")

SIZE = 240
RNG = np.random.default_rng(0)
TARGET = ew.targets.at_least(0.6)


def people() -> Any:
    """Numbers, text, categories, booleans and dates, with missing cells of each."""
    rng = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "income": pl.Series(rng.normal(30.0, 8.0, SIZE), dtype=pl.Float32),
            "age": pl.Series(rng.integers(18, 70, SIZE), dtype=pl.UInt8),
            "kids": [None if k % 7 == 0 else k % 4 for k in range(SIZE)],
            "debt": [None if k % 11 == 0 else float(k % 9) / 3 for k in range(SIZE)],
            "home": [["own", "rent", None][k % 3] for k in range(SIZE)],
            "job": pl.Series([["a", "b", "c"][k % 3] for k in range(SIZE)], dtype=pl.Categorical),
            "grade": pl.Series(
                [["low", "mid", "high"][k % 3] for k in range(SIZE)],
                dtype=pl.Enum(["low", "mid", "high"]),
            ),
            "member": [None if k % 13 == 0 else k % 2 == 0 for k in range(SIZE)],
            "since": [date(2020, 1, 1) + timedelta(days=k % 40) for k in range(SIZE)],
            "seen": pl.Series(
                [None if k == 3 else datetime(2024, 1, 1, tzinfo=UTC) for k in range(SIZE)],
                dtype=pl.Datetime("ns", "UTC"),
            ),
        }
    )


def as_pandas(frame: Any) -> pd.DataFrame:
    """The same rows as a user of pandas would have them, by polars' own conversion."""
    return frame.to_pandas().assign(
        kids=frame["kids"].to_pandas().astype("Int64"),
        member=pd.array(frame["member"].to_list(), dtype="boolean"),
    )


def score(frame: Any) -> Any:
    """Read columns of either kind of frame."""
    if isinstance(frame, pl.DataFrame):  # which pandas has no such calls for
        own = frame.select((pl.col("home") == "own").fill_null(False)).to_series().to_numpy()
    else:
        own = (frame["home"] == "own").fillna(False).to_numpy(dtype=bool)
    return frame["income"].to_numpy().astype(float) / 60 + 0.2 * own


def same(ours: Any, pandas: pd.DataFrame) -> None:
    """A polars frame equals the frame that pandas' users got, cell by cell."""
    assert list(ours.columns) == list(pandas.columns)
    for name in pandas:
        theirs = pandas[name].astype(object).where(pandas[name].notna(), None).tolist()
        for one, other in zip(ours[name].to_list(), theirs, strict=True):
            if isinstance(other, pd.Timestamp):
                other = other.to_pydatetime() if other.tz else other.date()
            assert one == other or (one is None and other is None), (name, one, other)


@pytest.fixture(scope="module")
def both() -> tuple[Any, ew.Explanation, ew.Explanation]:
    frame = people()
    ours, theirs = (
        ew.explain(
            score,
            rows,
            target=TARGET,
            schema=ew.Schema.infer(rows).freeze("age").rule(lambda r: r["income"] < 80, "cap"),
            background=rows.head(200),
            progress=False,
        )
        for rows in (frame, as_pandas(frame))
    )
    return frame, ours, theirs


def test_explain_gives_polars_back_with_equal_values_and_dtypes(both: Any) -> None:
    frame, ours, theirs = both
    assert ours.factual.equals(frame)
    assert ours.counterfactual.schema == frame.schema
    assert not ours.counterfactual.equals(frame)
    same(ours.counterfactual, theirs.counterfactual)
    np.testing.assert_array_equal(ours.outputs, theirs.outputs)
    assert ours.certificate == theirs.certificate
    same(ours.changes(), theirs.changes().reset_index())
    same(ours.flows(), theirs.flows())


def test_apply_gives_back_the_kind_of_frame_it_was_given(both: Any) -> None:
    frame, ours, theirs = both
    some = frame[50:80]
    moved = ours.apply(some)
    assert moved.schema == frame.schema
    assert moved.equals(ours.counterfactual[50:80])
    # Rows of pandas to the same explanation, and no rows at all.
    given = as_pandas(frame).iloc[50:80]
    pd.testing.assert_frame_equal(ours.apply(given), theirs.apply(given))
    empty = ours.apply(frame.head(0))
    assert empty.schema == frame.schema
    assert len(empty) == 0


def test_what_lies_outside_the_fit_is_a_warning_where_frames_hold_no_notes(both: Any) -> None:
    frame, ours, _ = both
    far = frame.head(2).with_columns(pl.Series("income", [900.0, 20.0], dtype=pl.Float32))
    with pytest.warns(UserWarning, match="income"):
        ours.apply(far)


def test_a_policy_gives_polars_back(both: Any) -> None:
    frame, ours, theirs = both
    mine, other = ours.policy(2), theirs.policy(2)
    moved = mine.apply(frame)
    assert moved.schema == frame.schema
    assert not moved.equals(frame)
    same(moved, other.apply(as_pandas(frame)))
    same(mine.table(), other.table())
    assert str(mine) == str(other)


def test_a_difference_gives_polars_back() -> None:
    frame = people()
    before, after = frame.head(120), frame.tail(120).with_columns(pl.col("income") + 4)
    ours = ew.difference(score, before, after, progress=False)
    theirs = ew.difference(score, as_pandas(before), as_pandas(after), progress=False)
    assert isinstance(ours.table(), pl.DataFrame)
    same(ours.table(), theirs.table().reset_index())
    assert ours.sentences() == theirs.sentences()


@pytest.mark.slow
def test_frontier_and_groups_take_polars() -> None:
    frame = people().select("income", "home")
    search = {"settings": ew.Settings(iterations=5, draws=99), "target": TARGET}
    curves = [
        ew.frontier(score, rows, points=3, progress=False, **search)
        for rows in (frame, frame.to_pandas())
    ]
    pd.testing.assert_frame_equal(curves[0].table, curves[1].table)
    groups = [
        ew.explain_groups(score, rows, by="home", progress=False, target=TARGET)
        for rows in (frame, frame.to_pandas())
    ]
    pd.testing.assert_frame_equal(groups[0].table, groups[1].table)
    assert groups[0]["own"].counterfactual.schema == frame.schema


@pytest.mark.parametrize("own_step", [False, True])
def test_a_pipeline_fitted_on_polars_is_explained_on_polars(own_step: bool) -> None:
    frame = people().select("income", "home").with_columns(pl.col("home").fill_null("none"))
    columns = ColumnTransformer(
        [("n", StandardScaler(), ["income"]), ("c", OneHotEncoder(), ["home"])]
    )
    # A step that only polars understands: the pipeline can only be asked about polars frames.
    step = FunctionTransformer(lambda table: table.with_columns(pl.col("income") / 10))
    model = Pipeline(
        [*([("own", step)] if own_step else []), ("c", columns), ("l", LogisticRegression())]
    )
    model.fit(frame, frame["income"].to_numpy() + 5 * (frame["home"] == "own").to_numpy() > 31)
    found = ew.explain(model, frame, target=TARGET, progress=False)
    assert found.counterfactual.schema == frame.schema
    asked = model.predict_proba(found.counterfactual)[:, 1]
    np.testing.assert_allclose(found.outputs[:, 0], asked, atol=1e-12)
    assert (asked >= 0.6).mean() > 0.95


@pytest.mark.slow
def test_arrow_tables_come_back_as_they_were() -> None:
    table = people().to_arrow()
    found = ew.explain(
        lambda rows: rows["income"].to_numpy() / 60, table, target=TARGET, progress=False
    )
    assert isinstance(found.counterfactual, pa.Table)
    assert found.counterfactual.schema.equals(table.schema)
    assert found.factual.equals(table)
    assert found.apply(table).equals(found.counterfactual)


def test_arrays_are_asked_and_come_back_as_arrays() -> None:
    values = RNG.normal(size=(80, 2))
    weights = np.array([0.5, 0.25])
    schema = ew.Schema.infer(values, names=["gain", "loss"]).freeze("loss")
    found = ew.explain(
        lambda rows: rows @ weights, values, target=TARGET, schema=schema, progress=False
    )
    np.testing.assert_array_equal(found.factual, values)
    assert list(found.changes().index) == ["gain"]
    np.testing.assert_array_equal(found.counterfactual[:, 1], values[:, 1])
    np.testing.assert_allclose(found.counterfactual @ weights, found.outputs[:, 0])
    np.testing.assert_array_equal(found.apply(values), found.counterfactual)
    assert found.policy(1).apply(values).shape == values.shape
    named = ew.explain(LogisticRegression().fit(values, values[:, 0] > 0), values, target=TARGET)
    assert [f.name for f in named.problem.schema.features] == ["x0", "x1"]


def test_structured_arrays_have_names_of_their_own() -> None:
    values = np.zeros(60, dtype=[("income", "f4"), ("kids", "i2"), ("home", "U4")])
    values["income"], values["kids"] = RNG.normal(size=60), RNG.integers(0, 4, 60)
    values["home"] = np.where(np.arange(60) % 2, "own", "rent")
    found = ew.explain(
        lambda rows: rows["income"] + (rows["home"] == "own"), values, target=TARGET, progress=False
    )
    assert found.counterfactual.dtype == values.dtype
    np.testing.assert_array_equal(found.factual, values)


def test_whole_numbers_read_as_continuous_come_back_as_floats() -> None:
    frame = pl.DataFrame({"a": [1, 2, 3, 4] * 10})
    schema = ew.Schema.infer(frame).continuous("a")
    found = ew.explain(lambda rows: rows["a"] / 8, frame, target=TARGET, schema=schema)
    assert found.counterfactual.schema["a"] == pl.Float64


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (["x", None], pl.String),
        (["x", None], pl.Categorical),
        (["lo", None], pl.Enum(["hi", "lo"])),
        ([2**62 + 1, None], pl.Int64),
        ([2**64 - 1, 0], pl.UInt64),
        ([True, None], pl.Boolean),
        ([1.5, None], pl.Float32),
        ([1.5, float("nan")], pl.Float64),
        ([date(1, 1, 1), None], pl.Date),
        ([datetime(2024, 1, 1, 2), None], pl.Datetime("ms")),
        ([datetime(2024, 1, 1, 2, tzinfo=UTC), None], pl.Datetime("us", "Europe/Paris")),
        ([timedelta(hours=3), None], pl.Duration("us")),
        ([time(3, 4), None], pl.Time),
        ([b"raw", None], pl.Binary),
        (["", "None", "nan", "<NA>"], pl.String),
    ],
)
def test_every_kind_of_column_survives_the_round_trip(values: Any, dtype: Any) -> None:
    frame = pl.DataFrame({"a": pl.Series(values, dtype=dtype), "b": pl.Series(values, dtype=dtype)})
    plain, source = to_pandas(frame)
    assert source is not None
    back = source.back(plain)
    assert back.schema == frame.schema
    assert back.equals(frame, null_equal=True)


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pl.DataFrame({"a": [[1], [2]]}), "frame column 'a': expected numbers, text"),
        (pl.DataFrame({"a": [{"b": 1}, {"b": 2}]}), "received struct"),
        (pl.DataFrame({"a": [None, None]}), "received null"),
        (pl.DataFrame({"a": [None, float("nan"), 1.0]}), "both null and NaN"),
        (pl.DataFrame({"a": [1, 2]}).lazy(), "received LazyFrame. Fix: collect"),
        (pl.Series("a", [1, 2]), "received Series"),
        (pa.table([[1, 2], [3, 4]], names=["a", "a"]), "'a' 2 times"),
        (np.zeros((2, 2, 2)), r"received an array of shape \(2, 2, 2\)"),
        (np.array([["x", 1], ["y", 2]], dtype=object), "structured array"),
        ([[1, 2], [3, 4]], "expected a DataFrame of pandas or polars"),
    ],
)
def test_what_cannot_come_back_is_refused(frame: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        ew.Schema.infer(frame)


def test_names_of_an_array_have_to_fit_it() -> None:
    with pytest.raises(InvalidInput, match="expected 1 columns, as there are names, received 2"):
        ew.Schema.infer(np.zeros((3, 2)), names=["a"])


@pytest.mark.parametrize("kind", ["polars", "arrow", "array", "records"])
def test_a_saved_run_knows_its_kind_of_frame(kind: str, tmp_path: Path) -> None:
    frame = people().select("income", "age", "grade", "since")
    numbers = RNG.normal(size=(60, 2))
    rows, model = {
        "polars": (frame, lambda r: r.select(pl.col("income") / 60).to_series()),
        "arrow": (frame.to_arrow(), lambda r: r.column("income").to_numpy() / 60),
        "array": (numbers, lambda r: r[:, 0]),
        "records": (np.rec.fromarrays(numbers.T, names="a,b"), lambda r: np.asarray(r["a"])),
    }[kind]
    found = ew.explain(model, rows, target=TARGET, certify="in-sample", progress=False)
    loaded = ew.load(found.save(tmp_path / "run"), model=model)
    for one, other in (
        (loaded.counterfactual, found.counterfactual),
        (loaded.apply(rows), found.apply(rows)),
    ):
        assert type(one) is type(other)
        equal = one.equals if hasattr(one, "equals") else lambda o, one=one: (one == o).all()
        assert equal(other)
    pandas = ew.load(tmp_path / "run")
    assert isinstance(pandas.frames[0], pd.DataFrame)


@pytest.mark.parametrize(
    "source",
    [
        {"kind": "polars"},
        {"kind": "polars", "schema": "?", "nan": []},
        {"kind": "polars", "schema": "AAAA", "nan": []},
        {"kind": "polars", "schema": None, "nan": 3},
        {"array": "O"},
        {"array": [["a", "O"]]},
        {"array": [["other", "<f8"]]},
        {"array": 3},
        [],
        "polars",
    ],
)
def test_a_damaged_kind_of_frame_is_refused(source: Any) -> None:
    frame = people().select("income", "home")
    written = ew.Schema.infer(frame).encoder(frame).to_dict()
    other = ew.Schema.infer(people()).encoder(people()).to_dict()["source"]
    assert Encoder.from_dict(written).source is not None
    for wrong in (source, other | {"schema": other["schema"][:-40]}):
        with pytest.raises(InvalidInput, match=r"expected what Encoder\.to_dict returned"):
            Encoder.from_dict(written | {"source": wrong})


def test_a_kind_of_frame_whose_library_is_missing_is_read_as_pandas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = people().select("income", "home")
    written = ew.Schema.infer(frame).encoder(frame).to_dict()
    monkeypatch.setattr("elsewise.features._sources.find_spec", lambda name: None)
    assert Encoder.from_dict(written).source is None
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(MissingExtra, match=r"pip install 'elsewise\[polars\]'"):
        ew.Schema.infer(frame)
