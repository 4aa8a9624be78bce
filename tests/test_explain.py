"""From frames to explanations: what is refused, what comes back, and that it is the model's."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch
from benchmarks.rivals.distances import sliced_ot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import elsewise as ew
from elsewise.errors import ElsewiseError, InvalidInput, ModelError, NotFeasible
from elsewise.request import derived_seed, generator
from elsewise.transport import project

FAST = ew.Settings(iterations=8, draws=99)
BOTH = ew.Bounds(inputs=0.7, outputs=0.3)


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-z))


def numbers(n: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])


ROWS = numbers()


def score(frame: pd.DataFrame) -> pd.Series:
    return sigmoid(frame["a"] + 0.5 * frame["b"] - 1.0)


MODEL = ew.models.function(score, smooth=True)


def explain(model: object = MODEL, rows: object = ROWS, **more: object) -> ew.Explanation:
    asked = {"target": ew.targets.constant(0.7), "bounds": BOTH, "settings": FAST} | more
    return ew.explain(model, rows, **asked)


@pytest.fixture(scope="module")
def explanation() -> ew.Explanation:
    return explain()


# --- what is refused ------------------------------------------------------------------------------


def with_cell(value: float) -> pd.DataFrame:
    frame = ROWS.copy()
    frame.loc[3, "b"] = value
    return frame


SCHEMA = ew.Schema.infer(ROWS)

REFUSED = {
    "empty frame": (lambda: explain(rows=ROWS[:0]), "rows: expected at least 2 rows"),
    "one row": (lambda: explain(rows=ROWS[:1]), "at least 2 rows"),
    "no columns": (lambda: explain(rows=ROWS[[]]), "column"),
    "infinity": (lambda: explain(rows=with_cell(np.inf)), "b.*infinit|infinit.*b"),
    "duplicate columns": (
        lambda: explain(rows=ROWS.set_axis(["a", "b", "a"], axis=1)),
        "column names that differ|unique|duplicate",
    ),
    "no frame": (lambda: explain(rows=ROWS.to_dict()), "DataFrame"),
    "empty frame, schema given": (lambda: explain(rows=ROWS[:0], schema=SCHEMA), "at least 2 rows"),
    "one row, schema given": (lambda: explain(rows=ROWS[:1], schema=SCHEMA), "at least 2 rows"),
    "infinity, schema given": (lambda: explain(rows=with_cell(np.inf), schema=SCHEMA), "infinit"),
    "no frame, schema given": (
        lambda: explain(rows=ROWS.to_dict(), schema=SCHEMA),
        "DataFrame",
    ),
    "missing column": (lambda: explain(rows=ROWS[["a", "b"]], schema=SCHEMA), "'c'"),
    "other background": (lambda: explain(background=ROWS[["a", "b"]]), "background"),
    "background of another kind": (lambda: explain(background=ROWS.to_numpy()), "background"),
    "target with NaN": (
        lambda: explain(target=ew.targets.sample([0.2, np.nan])),
        "values: expected finite numbers",
    ),
    "no target": (lambda: explain(target=0.7), "target: expected a target of elsewise.targets"),
    "target of other width": (
        lambda: explain(target=ew.targets.constant([0.1, 0.2])),
        "target: expected 1 output column",
    ),
    "input limit of zero": (lambda: ew.Bounds(inputs=0.0), "bounds.inputs: expected a positive"),
    "negative output limit": (lambda: ew.Bounds(outputs=-0.1), "bounds.outputs: expected a pos"),
    "limit that is text": (lambda: ew.Bounds(outputs="0.1"), "bounds.outputs: expected a positive"),
    "infinite limit": (lambda: ew.Bounds(inputs=np.inf), "bounds.inputs: expected a positive"),
    "trim of a half": (lambda: ew.Bounds(trim=0.5), r"bounds.trim: expected a number in \[0, 0.5"),
    "negative trim": (lambda: ew.Bounds(trim=-0.01), "bounds.trim: expected a number in"),
    "certain": (lambda: ew.Bounds(confidence=1.0), "bounds.confidence: expected a number strictly"),
    "no limits": (lambda: explain(bounds=0.2), "bounds: expected elsewise.Bounds"),
    "no settings": (lambda: explain(settings={"tau": 1}), "settings: expected elsewise.Settings"),
    "no schema": (lambda: explain(schema={"a": "free"}), "schema: expected elsewise.Schema"),
    "negative seed": (lambda: explain(seed=-1), "seed: expected a whole number"),
    "seed that is text": (lambda: explain(seed="0"), "seed: expected a whole number"),
    "unknown certificate": (lambda: explain(certify="surely"), "certify: expected"),
    "unknown column in freeze": (
        lambda: explain(schema=SCHEMA.freeze("aa")),
        "expected.*column.*received 'aa'",
    ),
    "nothing free": (
        lambda: explain(schema=SCHEMA.freeze("a", "b", "c")),
        "schema: expected at least one feature that may move",
    ),
    "nothing but constants": (
        lambda: explain(rows=pd.DataFrame({"a": [1.5, 1.5], "b": [0.5, 0.5]})),
        "schema: expected at least one feature that may move",
    ),
    "no model": (lambda: explain(model="a model"), "model: expected a torch module"),
    "torch model on two devices": (
        lambda: explain(
            torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1, device="meta"))
        ),
        "model: expected a module on one device, received parameters on cpu, meta",
    ),
    "device that is not there": (
        lambda: ew.models.torch_model(torch.nn.Linear(3, 1), device="cuda:63"),
        "device: expected a device this torch can use",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused(case: str) -> None:
    call, message = REFUSED[case]
    with pytest.raises(InvalidInput, match=message) as caught:
        call()
    error = caught.value
    assert isinstance(error, ElsewiseError)
    assert isinstance(error, ValueError)
    assert all(str(part) in str(error) for part in (error.argument, error.expected, error.fix))


def raising(frame: pd.DataFrame) -> pd.Series:
    raise ZeroDivisionError("no luck")


BROKEN = {
    "wrong length": (lambda frame: score(frame)[:-1], "expected one score .* received shape"),
    "NaN": (lambda frame: score(frame).where(frame["a"] < 0), "finite numbers.*NaN or infinity"),
    "raises": (raising, "received ZeroDivisionError: no luck"),
    "text": (lambda frame: ["good"] * len(frame), "expected numbers"),
    "cube": (lambda frame: np.zeros((len(frame), 2, 2)), "expected one score"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_model_is_named(case: str) -> None:
    model, message = BROKEN[case]
    with pytest.raises(ModelError, match=message) as caught:
        explain(model)
    assert str(caught.value).startswith("model: expected")
    if case == "raises":
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_model_that_breaks_on_the_way_is_named() -> None:
    """Fine on the explained rows, NaN on those it is moved to."""
    largest = float(score(ROWS).max())
    model = ew.models.function(
        lambda frame: score(frame).where(score(frame) <= largest + 1e-12),
        gradient=lambda frame: np.ones((len(frame), 3)),
    )
    with pytest.raises(ModelError, match="NaN or infinity in"):
        explain(model, target=ew.targets.constant(2.0))


def test_apply_refuses_what_is_not_the_explained_frame(explanation: ew.Explanation) -> None:
    with pytest.raises(InvalidInput, match="rows: expected a DataFrame with the explained"):
        explanation.apply(ROWS.to_dict())
    with pytest.raises(InvalidInput, match="'c'"):
        explanation.apply(ROWS[["a", "b"]])
    with pytest.raises(InvalidInput, match="infinit"):
        explanation.apply(with_cell(-np.inf))


# --- what comes back ------------------------------------------------------------------------------


def wide_frame(n: int = 50) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "float": rng.normal(size=n),
            "small": rng.normal(size=n).astype(np.float32),
            "count": rng.integers(0, 9, n),
            "tiny": rng.integers(0, 5, n).astype(np.int8),
            "maybe": pd.array(np.where(rng.random(n) < 0.1, None, rng.integers(0, 9, n)), "Int64"),
            "flag": rng.random(n) < 0.5,
            "level": pd.Categorical(rng.choice(["x", "y", "z"], n), ["z", "y", "x", "unused"]),
            "text": rng.choice(["red", "green"], n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 99, n), "D"),
            "same": np.full(n, 7.0),
        }
    )
    return frame.set_axis(pd.MultiIndex.from_product([["u", "v"], range(n // 2)], names=["g", "i"]))


WIDE = wide_frame()


def wide_score(frame: pd.DataFrame) -> np.ndarray:
    z = frame["float"] + frame["small"] + 0.3 * frame["count"] + 0.2 * frame["tiny"]
    z = z + 0.1 * frame["maybe"].astype("Float64").fillna(0.0).astype(float) + frame["flag"]
    return sigmoid((z + (frame["level"] == "x") + (frame["text"] == "red") - 3.0).to_numpy())


@pytest.mark.parametrize("smooth", [True, False])
def test_frames_come_back_as_they_went_in(smooth: bool) -> None:
    found = explain(ew.models.function(wide_score, smooth=smooth), WIDE)
    for frame in (found.counterfactual, found.apply(WIDE)):
        pd.testing.assert_index_equal(frame.index, WIDE.index)
        pd.testing.assert_index_equal(frame.columns, WIDE.columns)
        pd.testing.assert_series_equal(frame.dtypes, WIDE.dtypes)
        pd.testing.assert_frame_equal(frame.isna(), WIDE.isna())
        pd.testing.assert_frame_equal(frame[["day", "same"]], WIDE[["day", "same"]])
    pd.testing.assert_frame_equal(found.factual, WIDE)
    assert not found.counterfactual.equals(WIDE)
    assert set(found.counterfactual["level"]) <= set(WIDE["level"].cat.categories)


def test_constant_columns_are_frozen_with_a_notice() -> None:
    found = explain(rows=ROWS.assign(same=2.0))
    assert any("same" in notice and "constant" in notice for notice in found.status.notices)
    assert "same" not in found.changes().index
    assert (found.counterfactual["same"] == 2.0).all()


def double_net(columns: int) -> torch.nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(columns, 1), torch.nn.Sigmoid()).double()


SMALL = ROWS.astype({"a": np.float32, "b": np.float32})
LABELS = (ROWS["a"] > 0).astype(int)
EXACT = {
    "function": (MODEL, ROWS, score),
    "function of float32": (MODEL, SMALL, score),
    "trees": (
        DecisionTreeClassifier(max_depth=4, random_state=0).fit(ROWS, LABELS),
        ROWS,
        lambda frame: EXACT["trees"][0].predict_proba(frame)[:, 1],
    ),
    "linear": (
        LogisticRegression().fit(ROWS, LABELS),
        ROWS,
        lambda frame: EXACT["linear"][0].predict_proba(frame)[:, 1],
    ),
    "linear of float32": (
        LogisticRegression().fit(ROWS, LABELS),
        SMALL,
        lambda frame: EXACT["linear of float32"][0].predict_proba(frame)[:, 1],
    ),
    "torch float32": (
        double_net(3).float(),
        ROWS,
        lambda frame: (
            EXACT["torch float32"][0](torch.tensor(frame.to_numpy(), dtype=torch.float32))[:, 0]
            .detach()
            .numpy()
        ),
    ),
    "torch float64 of float32": (
        double_net(3),
        SMALL,
        lambda frame: (
            EXACT["torch float64 of float32"][0](
                torch.tensor(np.ascontiguousarray(frame, dtype=np.float64))
            )[:, 0]
            .detach()
            .numpy()
        ),
    ),
}


@pytest.mark.parametrize("case", EXACT)
def test_stored_outputs_are_the_models_on_the_returned_frame(case: str) -> None:
    model, rows, ask = EXACT[case]
    found = explain(model, rows)
    assert not found.counterfactual.equals(rows)
    np.testing.assert_array_equal(found.outputs[:, 0], np.asarray(ask(found.counterfactual)))
    np.testing.assert_allclose(found.factual_outputs[:, 0], np.asarray(ask(rows)), atol=1e-6)
    assert found.outputs.dtype == np.float64


def test_the_certificate_is_of_what_is_returned(explanation: ew.Explanation) -> None:
    """Distances computed here, from the returned frame alone, with the certificate's trim."""
    trim = explanation.certificate.trim
    levels = np.linspace(trim, 1 - trim, 200_001)
    outputs = np.quantile(explanation.outputs[:, 0], levels, method="inverted_cdf")
    expected = np.sqrt(np.mean((outputs - 0.7) ** 2))
    assert explanation.certificate.outputs.estimate == pytest.approx(expected, rel=1e-3)
    z = (explanation.counterfactual - ROWS.mean()) / ROWS.std()
    origin = (ROWS - ROWS.mean()) / ROWS.std()
    squared = sliced_ot(z.to_numpy(), origin.to_numpy(), trim=trim)
    assert explanation.certificate.inputs.estimate == pytest.approx(np.sqrt(squared), rel=0.05)
    for side in (explanation.certificate.inputs, explanation.certificate.outputs):
        assert side.upper_limit >= side.estimate
        assert side.met == (side.upper_limit <= side.bound)
        assert 0 <= side.probability <= 1
    assert explanation.certificate.rows == len(ROWS)


def test_history_is_one_row_per_iteration(explanation: ew.Explanation) -> None:
    history = explanation.history
    assert list(history.index) == list(range(len(history)))
    assert {"eta", "inputs", "inputs_limit", "outputs", "outputs_limit"} <= set(history.columns)
    assert history["eta"].between(0, 1).all()
    assert history.loc[0, "inputs"] == 0
    assert (history["inputs_limit"] >= history["inputs"]).all()
    assert (history["outputs_limit"] >= history["outputs"]).all()
    assert history["outputs"].iloc[-1] < history["outputs"].iloc[0]


def test_repr_opens_with_the_verdict(explanation: ew.Explanation) -> None:
    side = r"{} [\d.e-]+ <= 0.{}"
    move = r"a row moves by [\d.]+ sd \(at most [\d.]+\)"
    pattern = rf"<Explanation: described \(in-sample, 95%\): {move}, {side.format('inputs', 7)}, "
    assert re.fullmatch(pattern + side.format("outputs", 3) + ">", repr(explanation))
    assert "Descriptive" in str(explanation.certificate)


def test_raise_for_status(explanation: ew.Explanation) -> None:
    assert explanation.ok
    assert explanation.raise_for_status() is explanation
    failed = explain(
        bounds=ew.Bounds(outputs=0.01), schema=SCHEMA.only("b"), target=ew.targets.constant(0.95)
    )
    assert not failed.ok
    assert not failed.certificate.outputs.met
    message = "not reached: output distance: at most 0.01 asked, .*binding: outputs, reachable: 0"
    with pytest.raises(NotFeasible, match=message):
        failed.raise_for_status()
    assert repr(failed).startswith("<Explanation: not reached (binding: outputs")
    assert f"> {0.01}" in repr(failed)


def test_changes_says_what_moved(explanation: ew.Explanation) -> None:
    changes = explanation.changes()
    assert set(changes.index) == {"a", "b"}  # the model does not read c
    assert changes["share"].sum() == pytest.approx(1)
    assert changes["share"].is_monotonic_decreasing
    before, after = ROWS, explanation.counterfactual
    for name, row in changes.iterrows():
        assert row["rows_moved"] == (before[name] != after[name]).mean()
        assert row["mean_before"] == pytest.approx(before[name].mean())
        assert row["mean_after"] == pytest.approx(after[name].mean())
        shift = np.quantile(after[name], 0.5) - np.quantile(before[name], 0.5)
        assert row["shift_q50"] == pytest.approx(shift)
        gap = np.sort(after[name]) - np.sort(before[name])
        assert row["distance"] == pytest.approx(np.sqrt(np.mean(gap**2)) / before[name].std())
    assert changes.index[0] == "a"


def test_frozen_features_are_no_change() -> None:
    found = explain(schema=SCHEMA.freeze("c"))
    assert set(found.changes().index) == {"a", "b"}
    assert found.counterfactual["c"].to_numpy().tobytes() == ROWS["c"].to_numpy().tobytes()


# --- every kind of target -------------------------------------------------------------------------

OTHERS = np.random.default_rng(9).beta(3, 2, 40)
KINDS = {
    "sample": (ew.targets.sample(OTHERS), lambda b: np.quantile(OTHERS, b)),
    "group": (ew.targets.group(OTHERS[:23]), None),
    "beta": (ew.targets.distribution(scipy.stats.beta(3, 2)), None),
    "quantile function": (ew.targets.distribution(lambda u: 0.2 + 0.6 * u), None),
    "constant": (ew.targets.constant(0.6), lambda b: np.full_like(b, 0.6)),
    "at_least": (ew.targets.at_least(0.5), lambda b: np.maximum(b, 0.5)),
    "at_most": (ew.targets.at_most(0.2), lambda b: np.minimum(b, 0.2)),
    "shift": (ew.targets.shift(0.25), lambda b: b + 0.25),
    "scale": (ew.targets.scale(0.4, about=0.5), lambda b: 0.4 * b + 0.3),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_target_is_reached(kind: str) -> None:
    target, wanted = KINDS[kind]
    found = explain(target=target, bounds=ew.Bounds(outputs=0.16))
    before = found.history["outputs"].iloc[0]
    assert found.ok, found
    assert found.certificate.outputs.upper_limit <= 0.16
    assert found.certificate.outputs.estimate < before
    if wanted is not None and kind != "sample":
        missed = found.outputs[:, 0] - wanted(score(ROWS).to_numpy())
        assert np.sqrt(np.mean(missed**2)) < 0.25


@pytest.mark.parametrize("kind", ["constant", "sample", "at_least", "shift"])
def test_several_outputs(kind: str) -> None:
    """A classifier of three classes, all its probabilities explained together."""
    labels = np.digitize(ROWS["a"] + 0.3 * ROWS["b"], [-0.5, 0.6])
    model = LogisticRegression().fit(ROWS, labels)
    probabilities = model.predict_proba(ROWS)
    target = {
        "constant": ew.targets.constant([0.2, 0.3, 0.5]),
        "sample": ew.targets.sample(probabilities[probabilities[:, 2] > 0.3]),
        "at_least": ew.targets.at_least([0.0, 0.0, 0.3]),
        "shift": ew.targets.shift([-0.15, 0.0, 0.15]),
    }[kind]
    # Rows are at least there at a distance of 0.11 before they move.
    bounds = ew.Bounds(inputs=0.9, outputs=0.12 if kind == "at_least" else 0.35)
    found = explain(model, target=target, bounds=bounds)
    assert found.outputs.shape == (len(ROWS), 3)
    np.testing.assert_array_equal(found.outputs, model.predict_proba(found.counterfactual))
    assert found.certificate.outputs.estimate < found.history["outputs"].iloc[0]
    assert found.ok
    pd.testing.assert_frame_equal(found.apply(ROWS), found.counterfactual, rtol=0, atol=1e-9)


def test_one_class_is_chosen_by_its_label() -> None:
    labels = np.array(["low", "middle", "high"])[np.digitize(ROWS["a"], [-0.5, 0.6])]
    model = LogisticRegression().fit(ROWS, labels)
    found = explain(ew.models.estimator(model, output="high"))
    column = list(model.classes_).index("high")
    expected = model.predict_proba(found.counterfactual)[:, column]
    np.testing.assert_array_equal(found.outputs[:, 0], expected)
    assert "high" in found.problem.outputs.description


# --- any numeric frame ----------------------------------------------------------------------------

CELLS = {
    "float64": st.floats(-1e3, 1e3),
    "float32": st.floats(-1e3, 1e3, width=32),
    "int64": st.integers(-50, 50),
    "uint8": st.integers(0, 255),
}


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    """Two to twelve rows, one to four columns; ties, constants and missing cells among them."""
    n = draw(st.integers(2, 12))
    columns = {}
    for j in range(draw(st.integers(1, 4))):
        dtype = draw(st.sampled_from(list(CELLS)))
        cells = draw(st.lists(CELLS[dtype], min_size=n, max_size=n))
        column = pd.Series(cells, dtype=dtype)
        if dtype.startswith("float") and draw(st.booleans()):
            column = column.mask(np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n))))
        columns[f"x{j}"] = column
    columns["y"] = pd.Series(np.linspace(-1.0, 1.0, n))
    return pd.DataFrame(columns).set_axis(range(10, 10 + n))


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(frames(), st.booleans(), st.sampled_from(["constant", "at_least", "sample"]))
def test_any_numeric_frame_keeps_its_form(rows: pd.DataFrame, smooth: bool, kind: str) -> None:
    def model(frame: pd.DataFrame) -> np.ndarray:
        z = frame.fillna(0.0).to_numpy(dtype=np.float64)
        z = np.tanh(z / 100.0).sum(axis=1) + frame["y"].to_numpy()
        return z if smooth else np.round(z, 1)

    target = {
        "constant": ew.targets.constant(0.8),
        "at_least": ew.targets.at_least(0.2),
        "sample": ew.targets.sample([0.5, 0.9, 1.0]),
    }[kind]
    found = ew.explain(
        ew.models.function(model, smooth=smooth),
        rows,
        target=target,
        bounds=ew.Bounds(inputs=1.0, outputs=0.5),
        settings=ew.Settings(iterations=3, draws=39, directions=8),
    )
    result = found.counterfactual
    pd.testing.assert_index_equal(result.index, rows.index)
    pd.testing.assert_series_equal(result.dtypes, rows.dtypes)
    pd.testing.assert_frame_equal(result.isna(), rows.isna())
    np.testing.assert_array_equal(found.outputs[:, 0], model(result))
    for name in rows:
        inside = result[name].dropna().between(rows[name].min(), rows[name].max())
        assert inside.all()
        if rows[name].min() == rows[name].max():
            pd.testing.assert_series_equal(result[name], rows[name])
    if kind == "at_least":
        kept = model(rows) >= 0.2
        pd.testing.assert_frame_equal(result[kept], rows[kept])
    pd.testing.assert_frame_equal(found.apply(rows), result, rtol=0, atol=1e-9)
    assert found.ok == found.certificate.met


# --- on the way -----------------------------------------------------------------------------------


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    explain()
    assert capfd.readouterr() == ("", "")


def test_inputs_are_left_as_they_are() -> None:
    rows, background = ROWS.copy(), numbers(90, seed=1)
    untouched = background.copy()
    explain(rows=rows, background=background)
    pd.testing.assert_frame_equal(rows, ROWS)
    pd.testing.assert_frame_equal(background, untouched)


def test_background_gives_scales_and_ranges() -> None:
    background = numbers(200, seed=1) * 5.0
    found = explain(background=background)
    embedded = found.problem.embedding.embed(ROWS.to_numpy())
    expected = (ROWS - background.mean()) / background.std()
    np.testing.assert_allclose(embedded, expected, atol=1e-12)
    assert found.problem.schema["a"].observed[1] >= background["a"].max()


def test_projections_of_the_fit_are_recorded(explanation: ew.Explanation) -> None:
    """The first recorded step sends every factual projection to itself: nothing has moved yet."""
    first = explanation.map.steps[0]
    embedded = explanation.problem.embedding.embed(explanation.problem.factual)
    shift = first.anchors.prepared()(project(embedded, first.directions))
    np.testing.assert_allclose(shift, 0.0, atol=1e-12)


# --- columns --------------------------------------------------------------------------------------


def test_columns_come_in_the_order_of_the_rows() -> None:
    """A model may read them by place: a schema made from another order must not change that."""

    def by_place(frame: pd.DataFrame) -> np.ndarray:
        return sigmoid(frame.to_numpy() @ [1.0, 0.5, -1.0])

    found = explain(by_place, schema=ew.Schema.infer(ROWS[["c", "a", "b"]]).freeze("b"))
    assert list(found.counterfactual.columns) == ["a", "b", "c"]
    np.testing.assert_array_equal(found.factual_outputs[:, 0], by_place(ROWS))
    np.testing.assert_array_equal(found.outputs[:, 0], by_place(found.counterfactual))
    pd.testing.assert_series_equal(found.counterfactual["b"], ROWS["b"], check_exact=True)


@pytest.mark.parametrize("schema", [None, ew.Schema.infer(ROWS)])
def test_a_background_may_hold_the_label(schema: ew.Schema | None) -> None:
    labelled = ROWS.assign(label=1)
    with_label, without = (
        explain(schema=schema, background=background) for background in (labelled, ROWS)
    )
    pd.testing.assert_frame_equal(with_label.counterfactual, without.counterfactual)


@pytest.mark.parametrize(
    ("background", "received"),
    [(ROWS[:0], "no rows"), (ROWS[["a", "b"]], "no column 'c'"), ([1.0], "list")],
)
def test_a_background_that_cannot_serve_is_refused(background: object, received: str) -> None:
    for schema in (None, ew.Schema.infer(ROWS)):
        with pytest.raises(InvalidInput, match=f"background: expected .* received {received}"):
            explain(background=background, schema=schema)


@pytest.mark.parametrize("argument", ["settings", "bounds"])
def test_nothing_is_taken_for_a_default(argument: str) -> None:
    with pytest.raises(InvalidInput, match=f"{argument}: expected elsewise.{argument.title()}"):
        explain(**{argument: {}})


# --- units of the outputs -------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [(None, 0.2), (0.4, None), (0.6, 0.3), (None, None)])
@pytest.mark.parametrize("kind", ["slopes", "steps"])
@pytest.mark.parametrize("unit", [2.0**-30, 2.0**-10, 2.0**20])
def test_units_of_a_score_do_not_matter(
    kind: str, bounds: tuple[float | None, float | None], unit: float
) -> None:
    """Outputs, target and limits in another unit: the same rows, to the last bit."""

    def asked(unit: float) -> ew.Explanation:
        def value(frame: pd.DataFrame) -> pd.Series:
            raw = frame["a"] + np.tanh(frame["b"])
            return unit * (raw if kind == "slopes" else (4.0 * raw).round() / 4.0)

        inputs, outputs = bounds
        return explain(
            ew.models.function(value, smooth=kind == "slopes", probability=False),
            target=ew.targets.shift(0.5 * unit),
            bounds=ew.Bounds(inputs=inputs, outputs=outputs and unit * outputs),
        )

    one, other = asked(1.0), asked(unit)
    assert one.ok
    assert not one.counterfactual.equals(ROWS)
    assert other.status.verdict is one.status.verdict
    pd.testing.assert_frame_equal(other.counterfactual, one.counterfactual, check_exact=True)
    np.testing.assert_array_equal(other.outputs, unit * one.outputs)
    pairs = (one.certificate.outputs, other.certificate.outputs)
    assert pairs[1].at_most == pytest.approx(unit * pairs[0].at_most, rel=1e-9)


@pytest.mark.parametrize("odds", [-3.0, -6.0, -9.0])
def test_rare_events_are_explained_like_common_ones(odds: float) -> None:
    """Probabilities of one in a thousand: what the search reaches does not fall with them."""
    rows = numbers(120)
    model = LogisticRegression().fit(rows, rows["a"] > 0)
    model.coef_, model.intercept_ = np.array([[0.5, 0.4, -0.3]]), np.array([odds])
    before = model.predict_proba(rows)[:, 1]
    wanted = ew.targets.at_most(float(np.quantile(before, 0.4)))
    bound = 0.4 * before.std()
    near = explain(model, rows, target=wanted, bounds=ew.Bounds(outputs=bound))
    assert near.ok
    assert near.certificate.inputs.estimate == pytest.approx(0.14, abs=0.03)
    close = explain(model, rows, target=wanted, bounds=ew.Bounds(inputs=0.3))
    assert close.status.verdict is ew.Verdict.NOT_REACHED
    assert close.status.binding == "inputs"
    assert close.status.reached == pytest.approx(0.87, abs=0.05)


def test_every_purpose_has_its_own_draws_and_they_are_pinned() -> None:
    """A changed stream would change every explanation, so its first numbers are written here."""
    assert generator(0, "split").integers(0, 1000, 4).tolist() == [897, 592, 490, 743]
    assert generator(0, "edits 1").integers(0, 1000, 4).tolist() == [897, 236, 968, 237]
    assert derived_seed(0, "north") == 3992531091
    assert len({derived_seed(seed, name) for seed in (0, 1) for name in ("a", "b")}) == 4


def test_a_sampled_target_says_what_chance_alone_makes() -> None:
    """The noise floor of two samples, beside distances of fresh pairs; none where it is exact."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=100)
    rows = pd.DataFrame({"a": rng.normal(size=120)})
    model = ew.models.function(lambda frame: frame["a"], smooth=True)
    asked = {"certify": "in-sample", "bounds": ew.Bounds(outputs=0.01, trim=0.05)}
    found = ew.explain(model, rows, target=ew.targets.sample(values), **asked)
    (said,) = (note for note in found.status.notices if "by chance alone" in note)
    floor = float(re.search(r"about ([\d.]+) by chance", said)[1])
    pairs = [wasserstein_1d_squared(rng.normal(size=120), rng.normal(size=100)) for _ in range(300)]
    assert floor == pytest.approx(np.sqrt(np.mean(pairs)), rel=0.3)
    assert "can hardly be certified" in said
    exact = ew.explain(model, rows, target=ew.targets.sample(values, exact=True), **asked)
    assert not any("by chance alone" in note for note in exact.status.notices)


def wasserstein_1d_squared(x: np.ndarray, y: np.ndarray) -> float:
    """Mean squared gap of the quantile functions between 5% and 95%, on a fine grid."""
    levels = np.linspace(0.05, 0.95, 2001)
    gaps = [np.quantile(z, levels, method="inverted_cdf") for z in (x, y)]
    return float(np.mean((gaps[0] - gaps[1]) ** 2))
