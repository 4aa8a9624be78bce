"""Laws of the model adapters: slopes are differences, models stay as found, faults are named."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

from elsewise.errors import InvalidInput, ModelError
from elsewise.features import Encoder, Schema
from elsewise.models import Outputs, bind, estimator, function, torch_model
from elsewise.models._differences import Differences
from elsewise.models._frames import distinct_rows
from elsewise.models._outputs import probe_rows

ROWS = 120
NAMES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def numbers() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        rng.normal(size=(ROWS, 3)) * [1.0, 10.0, 0.1] + [0.0, 50.0, 2.0], columns=NAMES
    )


@pytest.fixture(scope="module")
def binary(numbers: pd.DataFrame) -> np.ndarray:
    score = standardized(numbers) @ [1.0, -1.0, 0.5]
    return np.where(score > 0.3 * np.sin(9 * score), "good", "bad")


@pytest.fixture(scope="module")
def three(numbers: pd.DataFrame) -> np.ndarray:
    score = standardized(numbers)
    return np.argmax(
        score @ np.array([[1.0, 0.0, -1.0], [0.5, -1.0, 0.5], [0.0, 1.0, 0.0]]), axis=1
    )


@pytest.fixture(scope="module")
def amount(numbers: pd.DataFrame) -> np.ndarray:
    return standardized(numbers) @ np.array([2.0, -1.0, 0.5]) + 3.0


@pytest.fixture(scope="module")
def mixed() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 75, ROWS),
            "job": rng.choice(["clerk", "cook", "judge"], ROWS),
            "income": rng.lognormal(3.0, 0.5, ROWS),
            "owner": rng.random(ROWS) < 0.4,
        }
    )


def standardized(frame: pd.DataFrame) -> np.ndarray:
    return ((frame - frame.mean()) / frame.std()).to_numpy()


def encode(frame: pd.DataFrame, *frozen: str) -> tuple[Encoder, np.ndarray]:
    schema = Schema.infer(frame)
    encoder = (schema.freeze(*frozen) if frozen else schema).encoder(frame)
    return encoder, encoder.encode(frame)


def differences(outputs: Outputs, codes: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Plain central differences with a small step, written without the library's own."""
    columns = []
    for j in range(codes.shape[1]):
        step = np.zeros(codes.shape[1])
        step[j] = 1e-5 * scale[j]
        columns.append(
            (outputs.values(codes + step) - outputs.values(codes - step)) / (2 * step[j])
        )
    return np.stack(columns, axis=2)


def assert_slopes(
    outputs: Outputs, codes: np.ndarray, frame: pd.DataFrame, tolerance: float
) -> None:
    scale = frame.std().to_numpy()
    values, gradient = outputs.values_and_gradient(codes)
    np.testing.assert_array_equal(values, outputs.values(codes))
    expected = differences(outputs, codes, scale) * scale
    np.testing.assert_allclose(gradient * scale, expected, atol=tolerance * np.abs(expected).max())


SCALERS = [None, StandardScaler(), StandardScaler(with_std=False), MinMaxScaler(), MaxAbsScaler()]
SCALERS += [RobustScaler(), RobustScaler(with_scaling=False)]
CLASSIFIERS = [
    LogisticRegression(),
    SGDClassifier(loss="log_loss", random_state=0),
    SGDClassifier(loss="hinge", random_state=0),
    LinearSVC(),
    RidgeClassifier(),
    Perceptron(),
]
REGRESSORS = [
    LinearRegression(),
    Ridge(),
    Lasso(alpha=0.01),
    ElasticNet(alpha=0.01),
    SGDRegressor(random_state=0),
    LinearSVR(),
]


def name_of(step: object) -> str:
    return type(step).__name__


class TestLinear:
    @pytest.mark.parametrize("scaler", SCALERS, ids=name_of)
    def test_scalers_chain(self, numbers, binary, scaler):
        steps = [LogisticRegression(max_iter=5000)]
        model = make_pipeline(*([scaler] if scaler else []), *steps).fit(numbers, binary)
        encoder, codes = encode(numbers)
        outputs = bind(model, encoder).precise(codes)
        assert outputs.model.linear is not None  # exact slopes
        assert_slopes(outputs, codes, numbers, 1e-7)

    @pytest.mark.parametrize("target", ["binary", "three"])
    @pytest.mark.parametrize("model", CLASSIFIERS, ids=name_of)
    def test_classifiers(self, request, numbers, model, target):
        fitted = make_pipeline(StandardScaler(), RobustScaler(), model)
        fitted.fit(numbers, request.getfixturevalue(target))
        encoder, codes = encode(numbers)
        outputs = bind(fitted, encoder).precise(codes)
        assert outputs.smooth
        assert outputs.columns == (1 if target == "binary" else 3)
        one_against_rest = name_of(model) == "SGDClassifier" and outputs.probability
        tolerance = 1e-3 if one_against_rest and target == "three" else 1e-7
        assert_slopes(outputs, codes, numbers, tolerance)

    @pytest.mark.parametrize("model", REGRESSORS, ids=name_of)
    def test_regressors(self, numbers, amount, model):
        fitted = make_pipeline(StandardScaler(), model).fit(numbers, amount)
        encoder, codes = encode(numbers)
        outputs = bind(fitted, encoder).precise(codes)
        assert not outputs.probability
        assert_slopes(outputs, codes, numbers, 1e-7)

    def test_several_regressions(self, numbers, amount):
        model = LinearRegression().fit(numbers, np.column_stack([amount, -2 * amount]))
        encoder, codes = encode(numbers)
        assert bind(model, encoder).columns == 2
        second = bind(model, encoder, output=1)
        assert second.description == "LinearRegression.predict, output 1"
        assert_slopes(second.precise(codes), codes, numbers, 1e-7)

    def test_sparse_and_clipped_fall_back_to_differences(self, numbers, binary):
        encoder, codes = encode(numbers)
        sparse = LogisticRegression(max_iter=5000).fit(numbers, binary)
        exact = bind(sparse, encoder).precise(codes).values_and_gradient(codes)[1]
        sparse.sparsify()
        outputs = bind(sparse, encoder).precise(codes)
        assert not hasattr(outputs, "linear")
        np.testing.assert_allclose(outputs.values_and_gradient(codes)[1], exact, atol=1e-3)
        clipped = make_pipeline(MinMaxScaler(clip=True), LogisticRegression()).fit(numbers, binary)
        assert bind(clipped, encoder).precise(codes).model.linear is None

    def test_columns_in_the_order_of_the_fit(self, numbers, amount):
        model = LinearRegression().fit(numbers[["c", "a"]], amount)
        encoder, codes = encode(numbers)
        outputs = bind(model, encoder).precise(codes)
        gradient = outputs.values_and_gradient(codes)[1]
        np.testing.assert_allclose(gradient[0, 0], [model.coef_[1], 0.0, model.coef_[0]])
        np.testing.assert_allclose(outputs.values(codes)[:, 0], model.predict(numbers[["c", "a"]]))

    def test_frozen_columns_have_no_slope(self, numbers, amount):
        encoder, codes = encode(numbers, "b")
        gradient = bind(LinearRegression().fit(numbers, amount), encoder).values_and_gradient(
            codes
        )[1]
        assert (gradient[:, :, 1] == 0).all()
        assert (gradient[:, :, [0, 2]] != 0).all()


class TestEstimators:
    def test_classes(self, numbers, binary):
        model = LogisticRegression(max_iter=5000).fit(numbers, binary)
        encoder, codes = encode(numbers)
        good, bad = bind(model, encoder), bind(model, encoder, output="bad")
        assert good.description == "LogisticRegression.predict_proba, class 1 ('good')"
        assert bad.description == "LogisticRegression.predict_proba, class 0 ('bad')"
        assert good.probability
        assert isinstance(good, Outputs)
        np.testing.assert_allclose(good.values(codes)[:, 0], model.predict_proba(numbers)[:, 1])
        np.testing.assert_allclose(good.values(codes) + bad.values(codes), 1.0)
        np.testing.assert_array_equal(
            bind(estimator(model, output="bad"), encoder).values(codes), bad.values(codes)
        )

    def test_decision_function_of_the_first_class(self, numbers, binary):
        model = LinearSVC().fit(numbers, binary)
        encoder, codes = encode(numbers)
        good, bad = bind(model, encoder), bind(model, encoder, output="bad")
        assert not good.probability
        np.testing.assert_array_equal(good.values(codes), -bad.values(codes))
        assert_slopes(bad, codes, numbers, 1e-7)

    def test_every_class_of_three(self, numbers, three):
        model = RandomForestClassifier(10, random_state=0).fit(numbers, three)
        encoder, codes = encode(numbers)
        outputs = bind(model, encoder)
        assert (outputs.columns, outputs.smooth, outputs.probability) == (3, False, True)
        assert outputs.description == "RandomForestClassifier.predict_proba, classes 0, 1, 2"
        one = bind(model, encoder, output=2)
        np.testing.assert_array_equal(one.values(codes)[:, 0], outputs.values(codes)[:, 2])
        with pytest.raises(NotImplementedError, match="has no slope"):
            one.values_and_gradient(codes)

    def test_unknown_class(self, numbers, binary):
        model = LogisticRegression(max_iter=5000).fit(numbers, binary)
        with pytest.raises(InvalidInput, match=r"output: expected one of the classes \['bad'"):
            bind(model, encode(numbers)[0], output="ugly")

    @pytest.mark.parametrize(
        ("model", "smooth"),
        [
            (SVR(), True),
            (GaussianProcessRegressor(alpha=0.1), True),
            (
                MLPRegressor(
                    hidden_layer_sizes=(8,), activation="tanh", solver="lbfgs", max_iter=40, tol=1.0
                ),
                True,
            ),
            (PoissonRegressor(), True),
            (GradientBoostingRegressor(n_estimators=5), False),
        ],
        ids=lambda value: name_of(value) if not isinstance(value, bool) else "",
    )
    def test_differences_for_the_smooth_ones(self, numbers, amount, model, smooth):
        fitted = make_pipeline(StandardScaler(), model).fit(numbers, np.exp(amount / 5))
        encoder, codes = encode(numbers)
        outputs = bind(fitted, encoder)
        assert outputs.smooth is smooth
        if smooth:
            assert_slopes(outputs, codes, numbers, 2e-3)  # one-sided at the ends of a range

    def test_pipelines_end_decides(self, mixed):
        target = (mixed["income"] > 20).to_numpy()
        words = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
        encoder, codes = encode(mixed)
        smooth = bind(
            make_pipeline(words, LogisticRegression(max_iter=9999)).fit(mixed, target), encoder
        )
        steps = bind(make_pipeline(words, KNeighborsClassifier()).fit(mixed, target), encoder)
        assert smooth.smooth
        assert not steps.smooth
        gradient = smooth.values_and_gradient(codes)[1]
        assert (gradient[:, :, [1, 3]] == 0).all()  # categories do not move by slopes
        assert (gradient[:, :, 2] > 0).any()

    def test_a_subclass_may_do_anything(self, numbers, binary):
        class Own(LogisticRegression):
            def predict_proba(self, frame):
                return np.round(super().predict_proba(frame))

        assert not bind(Own(max_iter=5000).fit(numbers, binary), encode(numbers)[0]).smooth

    def test_search_is_unwrapped(self, numbers, binary):
        search = GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {}, cv=2)
        encoder, codes = encode(numbers)
        outputs = bind(search.fit(numbers, binary), encoder).precise(codes)
        assert outputs.description.startswith("GridSearchCV.predict_proba, class 1")
        assert outputs.model.linear is not None
        assert_slopes(outputs, codes, numbers, 1e-7)

    def test_nonlinear_features_use_differences(self, numbers, amount):
        model = make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge()).fit(numbers, amount)
        encoder, codes = encode(numbers)
        assert_slopes(bind(model, encoder), codes, numbers, 2e-3)

    def test_pairwise_margins_are_chosen_by_position(self, numbers):
        four = pd.qcut(numbers["a"], 4, labels=False)
        model = SVC(decision_function_shape="ovo").fit(numbers, four)
        encoder, _ = encode(numbers)
        assert bind(model, encoder).columns == 6
        assert bind(model, encoder, output=5).columns == 1

    def test_fitted_on_arrays(self, numbers, amount):
        model = LinearRegression().fit(numbers.to_numpy(), amount)
        encoder, codes = encode(numbers)
        np.testing.assert_allclose(
            bind(model, encoder).values(codes)[:, 0], model.predict(numbers.to_numpy())
        )
        with pytest.raises(InvalidInput, match=r"model: .* 2 columns, received one fitted on 3"):
            bind(model, encode(numbers[["a", "b"]])[0])

    def test_without_a_record_of_columns_gets_the_frame(self, numbers):
        class Bare:
            def predict(self, frame):
                return frame["a"] + frame["b"]

        encoder, codes = encode(numbers)
        outputs = bind(Bare(), encoder)
        np.testing.assert_allclose(outputs.values(codes)[:, 0], numbers["a"] + numbers["b"])
        assert not outputs.smooth

    def test_missing_column(self, numbers, amount):
        model = LinearRegression().fit(numbers, amount)
        with pytest.raises(InvalidInput, match=r"model: .*one that also needs \['c'\]"):
            bind(model, encode(numbers[["a", "b"]])[0])

    def test_not_fitted(self, numbers):
        with pytest.raises(ModelError, match=r"received an unfitted LogisticRegression") as e:
            bind(LogisticRegression(), encode(numbers)[0])
        assert isinstance(e.value.__cause__, NotFittedError)

    def test_wrapper_refuses_what_is_no_estimator(self):
        with pytest.raises(InvalidInput, match="estimator: expected a fitted estimator"):
            estimator(LogisticRegression)
        with pytest.raises(InvalidInput, match="estimator: expected a fitted estimator"):
            estimator(3)


class TestFunctions:
    @pytest.mark.parametrize(
        "shape",
        [
            lambda s: s,
            lambda s: s.to_frame(),
            lambda s: s.to_numpy(),
            lambda s: s.tolist(),
            lambda s: torch.tensor(s.to_numpy(), requires_grad=True),
            lambda s: s.astype("Float64"),
            lambda s: s.astype(object),
            lambda s: s.sort_values(),
        ],
        ids=["series", "frame", "array", "list", "tensor", "nullable", "object", "sorted"],
    )
    def test_shapes_of_scores(self, numbers, shape):
        encoder, codes = encode(numbers)
        outputs = bind(lambda frame: shape(frame["a"] * 2), encoder)
        assert outputs.values(codes).dtype == np.float64
        np.testing.assert_array_equal(outputs.values(codes)[:, 0], numbers["a"] * 2)

    def test_several_scores(self, numbers):
        encoder, codes = encode(numbers)
        both = bind(lambda frame: frame[["a", "b"]] ** 2, encoder)
        assert both.columns == 2
        assert both.smooth
        second = bind(lambda frame: frame[["a", "b"]] ** 2, encoder, output=1)
        assert second.description == "<lambda>, output 1"
        gradient = second.values_and_gradient(codes)[1][:, 0]
        np.testing.assert_allclose(gradient[:, 1], 2 * codes[:, 1], rtol=1e-3)
        np.testing.assert_allclose(gradient[:, [0, 2]], 0.0)
        for output in (2, -1, "b", True):
            with pytest.raises(InvalidInput, match="output: expected a column number below 2"):
                bind(lambda frame: frame[["a", "b"]], encoder, output=output)

    @pytest.mark.parametrize(
        "gradient",
        [
            lambda f: np.column_stack([2 * f["age"], np.full(len(f), 3.0)]),
            lambda f: {"age": 2 * f["age"], "income": np.full(len(f), 3.0)},
            lambda f: pd.DataFrame({"income": 3.0, "age": 2 * f["age"]}),
        ],
        ids=["array", "dict", "frame"],
    )
    def test_own_gradient(self, mixed, gradient):
        model = function(lambda f: f["age"] ** 2 + 3 * f["income"], gradient)
        encoder, codes = encode(mixed)
        outputs = bind(model, encoder)
        expected = np.zeros((ROWS, 1, 4))
        expected[:, 0, 0], expected[:, 0, 2] = 2 * mixed["age"], 3.0
        np.testing.assert_array_equal(outputs.values_and_gradient(codes)[1], expected)

    def test_own_gradient_of_several_scores(self, numbers):
        model = function(lambda f: f[["a", "b"]], lambda f: {"a": np.tile([1.0, 0.0], (len(f), 1))})
        encoder, codes = encode(numbers)
        gradient = bind(model, encoder).values_and_gradient(codes)[1]
        np.testing.assert_array_equal(gradient[7], [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        np.testing.assert_array_equal(
            bind(model, encoder, output=1).values_and_gradient(codes)[1], gradient[:, 1:]
        )

    @pytest.mark.parametrize(
        ("gradient", "message"),
        [
            (lambda f: f[["a"]].to_numpy(), r"slopes of shape \(120, 3\) from <lambda>, received"),
            (lambda f: {"z": f["a"]}, "received column 'z'"),
            (lambda f: {"a": f["a"] / 0}, "expected finite slopes"),
            (lambda f: f["z"], "received KeyError"),
            (lambda f: "steep", "expected slopes of shape"),
        ],
    )
    def test_unusable_gradient(self, numbers, gradient, message):
        encoder, codes = encode(numbers)
        with pytest.raises(ModelError, match=message):
            bind(function(lambda f: f["a"], gradient), encoder).values_and_gradient(codes)

    def test_few_of_very_long_rows_tell_of_smoothness(self):
        names = [f"x{j}" for j in range(6000)]
        rows = pd.DataFrame(np.random.default_rng(0).normal(size=(16, len(names))), columns=names)
        asked = []

        def score(frame):
            asked.append(len(frame))
            return np.tanh(frame["x0"])

        encoder, codes = encode(rows)
        assert bind(score, encoder, probe=codes).smooth
        # Two rows: both neighbours of every cell, for one step and for two.
        assert sum(asked) <= 8 * len(names) + 10 * len(rows)

    def test_smoothness_is_found_out(self, numbers, binary, mixed):
        encoder, _ = encode(numbers)
        forest = RandomForestClassifier(30, random_state=0).fit(numbers, binary)
        assert bind(lambda f: np.tanh(f["a"] / 3), encoder).smooth
        assert bind(lambda f: np.tanh(f["a"] / 3).astype(np.float32), encoder).smooth
        assert not bind(lambda f: forest.predict_proba(f)[:, 1], encoder).smooth
        assert not bind(lambda f: np.floor(f["a"]), encoder).smooth
        assert not bind(lambda f: f["a"] * 0.0 + 2.0, encoder).smooth
        assert bind(lambda f: f["age"] / 100.0, encode(mixed)[0]).smooth
        assert not bind(lambda f: f["age"] // 10, encode(mixed)[0]).smooth
        assert bind(function(np.floor, smooth=True), encode(numbers[["a"]])[0]).smooth
        assert not bind(function(lambda f: f["a"], smooth=False), encoder).smooth

    def test_rows_next_door_are_refused(self, numbers):
        seen = []

        def picky(frame):
            seen.append(len(frame))
            if len(seen) > 2:
                raise RuntimeError("closed")
            return frame["a"]

        assert not bind(picky, encode(numbers)[0]).smooth

    def test_probability_is_found_out(self, numbers):
        encoder, _ = encode(numbers)
        assert bind(lambda f: 1 / (1 + np.exp(-f["a"])), encoder).probability
        assert not bind(lambda f: f["a"] > 0, encoder).probability
        assert not bind(lambda f: f["a"], encoder).probability
        assert bind(function(lambda f: f["a"], probability=True), encoder).probability

    def test_wrapper_refusals(self):
        with pytest.raises(InvalidInput, match="values: expected a function"):
            function(3)
        with pytest.raises(InvalidInput, match="gradient: expected a function"):
            function(np.sin, 3)
        with pytest.raises(InvalidInput, match="smooth: expected True or None"):
            function(np.sin, np.cos, smooth=False)

    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (lambda f: f["a"].iloc[:-1], r"one score .* of 32 rows from <lambda>, received shape"),
            (lambda f: 1.0, r"received shape \(\)"),
            (lambda f: np.zeros((len(f), 2, 2)), r"received shape \(32, 2, 2\)"),
            (lambda f: np.zeros((len(f), 0)), r"received shape \(32, 0\)"),
            (lambda f: f["a"].where(f["a"] > 0), "finite numbers .*, received NaN or infinity in"),
            (lambda f: np.full(len(f), np.inf), "in 32 of 32 rows"),
            (lambda f: ["yes"] * len(f), "expected numbers from <lambda>, received list"),
            (lambda f: f["a"].astype(str), "expected numbers"),
            (lambda f: [[1.0], [1.0, 2.0]], "expected numbers from <lambda>, received list"),
            (lambda f: None, r"received shape \(\)"),
            (lambda f: f["z"], "received KeyError: 'z'"),
            (lambda f: f["a"] + 1j, "expected numbers from <lambda>, received .* of complex128"),
            (lambda f: f["a"] - f["a"].mean(), "the same outputs for a row .* 16 of 16 rows"),
            (lambda f: np.random.default_rng().random(len(f)), "the same outputs for a row"),
        ],
    )
    def test_unusable_scores(self, numbers, model, message):
        with pytest.raises(ModelError, match=message):
            bind(model, encode(numbers)[0])

    def test_number_of_scores_may_not_change(self, numbers):
        encoder, codes = encode(numbers)
        outputs = bind(function(lambda f: np.ones((len(f), 2 if len(f) > 100 else 1))), encoder)
        with pytest.raises(ModelError, match=r"1 output column\(s\), as before .*, received 2"):
            outputs.values(codes)

    def test_model_may_spoil_its_frame(self, numbers):
        def rude(frame):
            frame.loc[:, "a"] = 0.0
            return frame["b"]

        encoder, codes = encode(numbers)
        np.testing.assert_array_equal(bind(rude, encoder).values(codes)[:, 0], numbers["b"])
        np.testing.assert_array_equal(codes[:, 0], numbers["a"])


class TestDifferences:
    def test_neighbours_are_rows_the_model_could_meet(self, mixed):
        schema = Schema.infer(mixed).range("income", 5.0, 100.0)
        encoder = schema.encoder(mixed)
        codes = encoder.encode(mixed)
        for factor in (1, 2):
            below, above = Differences.of(encoder).neighbours(codes, factor)
            assert (below[:, 0] == np.rint(below[:, 0])).all()
            assert below[:, 0].min() == mixed["age"].min()
            assert above[:, 0].max() == mixed["age"].max()
            assert (below[:, 1] >= np.minimum(5.0, codes[:, 2])).all()
            assert (above > below).all()

    def test_model_defined_on_a_half_line(self):
        frame = pd.DataFrame({"x": np.linspace(0.0, 3.0, 50) ** 2})
        encoder, codes = encode(frame)
        outputs = bind(function(lambda f: np.sqrt(f["x"]), smooth=True), encoder)
        gradient = outputs.values_and_gradient(codes)[1][1:, 0, 0]
        np.testing.assert_allclose(gradient[5:], 0.5 / np.sqrt(codes[6:, 0]), rtol=1e-3)

    def test_missing_cells_have_no_slope(self, numbers):
        holes = numbers.assign(b=numbers["b"].mask(numbers["a"] > 0))
        encoder, codes = encode(holes)
        outputs = bind(function(lambda f: f["a"] + f["b"].fillna(0), smooth=True), encoder)
        gradient = outputs.values_and_gradient(codes)[1][:, 0]
        np.testing.assert_allclose(gradient[:, 0], 1.0)
        np.testing.assert_allclose(gradient[:, 1], np.where(np.isnan(codes[:, 1]), 0.0, 1.0))

    def test_single_precision_far_from_zero(self):
        x = np.linspace(1e5, 1e5 + 100, 64, dtype=np.float32) + np.float32(0.5)
        encoder, codes = encode(pd.DataFrame({"x": x}))
        outputs = bind(function(lambda f: (f["x"] - np.float32(1e5)) ** 2, smooth=True), encoder)
        gradient = outputs.values_and_gradient(codes)[1][1:-1, 0, 0]
        np.testing.assert_allclose(gradient, 2 * (codes[1:-1, 0] - 1e5), rtol=0.1)

    def test_in_batches(self, numbers, monkeypatch):
        encoder, codes = encode(numbers)
        outputs = bind(function(lambda f: f["a"] * f["b"], smooth=True), encoder)
        whole = outputs.values_and_gradient(codes)[1]
        monkeypatch.setattr("elsewise.models._differences.BATCH", 60)
        np.testing.assert_array_equal(outputs.values_and_gradient(codes)[1], whole)

    def test_nothing_to_move(self, mixed):
        encoder, codes = encode(mixed, "age", "income")
        outputs = bind(function(lambda f: f["income"], smooth=True), encoder)
        assert not outputs.values_and_gradient(codes)[1].any()
        assert not bind(lambda f: f["income"], encoder).smooth

    def test_no_rows(self, numbers):
        outputs = bind(function(lambda f: f["a"], smooth=True), encode(numbers)[0])
        values, gradient = outputs.values_and_gradient(np.zeros((0, 3)))
        assert (values.shape, gradient.shape) == ((0, 1), (0, 1, 3))


class TestRepeats:
    @settings(max_examples=50, deadline=None)
    @given(st.lists(st.tuples(*[st.sampled_from([0.0, -0.0, 1.0, 2.0, np.nan, 1e300])] * 3)))
    def test_distinct_rows_rebuild_the_whole(self, rows):
        codes = np.array(rows, dtype=float).reshape(-1, 3)
        first, which = distinct_rows(codes)
        np.testing.assert_array_equal(codes[first][which], codes)
        assert len(first) == len({(row + 0.0).tobytes() for row in codes})
        assert (np.diff(first) > 0).all()

    def test_same_values_in_other_columns_are_other_rows(self):
        rows = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0]])
        assert len(distinct_rows(rows)[0]) == 3

    def test_shared_hash_is_noticed(self, monkeypatch):
        monkeypatch.setattr(pd.util, "hash_array", lambda a, **_: np.zeros(a.shape, np.uint64))
        first, which = distinct_rows(np.array([[1.0], [2.0], [1.0]]))
        assert first.tolist() == which.tolist() == [0, 1, 2]

    def test_repeated_rows_are_predicted_once(self, numbers):
        seen = []

        def model(frame):
            seen.append(len(frame))
            return frame["a"]

        encoder, codes = encode(numbers)
        outputs = bind(function(model, smooth=False), encoder)
        np.testing.assert_array_equal(
            outputs.values(np.repeat(codes, 3, axis=0))[:, 0], codes[:, 0].repeat(3)
        )
        assert seen[-1] == ROWS


def net(columns: int = 1, *last: torch.nn.Module) -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, columns), *last
    )


def scaled(numbers: pd.DataFrame):
    center, scale = torch.tensor(numbers.mean().to_numpy()), torch.tensor(numbers.std().to_numpy())
    return lambda codes: (codes - center.to(codes)) / scale.to(codes)


class TestTorch:
    @pytest.mark.parametrize("columns", [1, 3])
    def test_slopes(self, numbers, columns):
        encoder, codes = encode(numbers)
        model = torch_model(net(columns, torch.nn.Sigmoid()).double(), scaled(numbers))
        outputs = bind(model, encoder)
        assert (outputs.columns, outputs.smooth, outputs.probability) == (columns, True, True)
        assert outputs.place(codes) is codes
        assert_slopes(outputs, codes, numbers, 1e-6)

    def test_single_precision(self, numbers):
        encoder, codes = encode(numbers)
        single = bind(torch_model(net(), scaled(numbers)), encoder)
        double = bind(torch_model(net().double(), scaled(numbers)), encoder)
        values, gradient = single.values_and_gradient(codes)
        assert values.dtype == gradient.dtype == np.float64
        expected = double.values_and_gradient(codes)
        np.testing.assert_allclose(values, expected[0], atol=1e-5)
        np.testing.assert_allclose(gradient, expected[1], atol=1e-5)

    def test_model_is_left_as_found(self, numbers):
        encoder, codes = encode(numbers)
        model = torch.nn.Sequential(
            net(5), torch.nn.BatchNorm1d(5), torch.nn.Dropout(), torch.nn.Linear(5, 1)
        )
        model.train()
        model[1].eval()
        before = {key: value.clone() for key, value in model.state_dict().items()}
        outputs = bind(model, encoder)
        with torch.inference_mode():
            first = outputs.values_and_gradient(codes)
        second = outputs.values_and_gradient(codes)
        np.testing.assert_array_equal(first[1], second[1])  # dropout is off
        np.testing.assert_array_equal(first[0], outputs.values(codes))
        assert [part.training for part in model] == [True, False, True, True]
        assert all(p.grad is None and p.requires_grad for p in model.parameters())
        assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())

    def test_flags_come_back_after_an_error(self, numbers):
        model = torch.nn.Linear(7, 1).train()
        with pytest.raises(ModelError, match=r"scores from Linear, received RuntimeError"):
            bind(model, encode(numbers)[0])
        assert model.training

    def test_output(self, numbers):
        encoder, codes = encode(numbers)
        model = net(3, torch.nn.Softmax(dim=1))
        everything = bind(model, encoder)
        one = bind(torch_model(model, output=2), encoder)
        assert (one.columns, one.description) == (1, "Sequential, output 2")
        np.testing.assert_array_equal(one.values(codes)[:, 0], everything.values(codes)[:, 2])
        np.testing.assert_array_equal(
            bind(model, encoder, output=0).values_and_gradient(codes)[1],
            everything.values_and_gradient(codes)[1][:, :1],
        )
        with pytest.raises(InvalidInput, match="output: expected a column number below 3"):
            bind(model, encoder, output=3)

    def test_probability_is_read_from_the_last_operation(self, numbers):
        encoder, _ = encode(numbers)

        class Functional(torch.nn.Module):
            def __init__(self, last):
                super().__init__()
                self.body, self.last = net(), last

            def forward(self, codes):
                return self.last(self.body(codes))

        def found(last):
            return bind(Functional(last), encoder).probability

        assert found(lambda score: torch.sigmoid(score).squeeze(-1))
        assert found(lambda score: torch.softmax(torch.cat([score, -score], 1), dim=1)[:, 1])
        assert not found(lambda score: score)
        assert not found(lambda score: torch.exp(-(score**2)))  # a radial basis: in [0, 1], no link
        assert not found(lambda score: torch.log_softmax(torch.cat([score, -score], 1), dim=1))
        stated = torch_model(Functional(lambda score: 1 - torch.sigmoid(score)), probability=True)
        assert bind(stated, encoder).probability

    def test_without_a_slope(self, numbers):
        encoder, codes = encode(numbers)

        class Steps(torch.nn.Module):
            def forward(self, codes):
                return (codes[:, 0] > 0).to(codes) + (codes.sign().sum(dim=1) if self.flat else 0)

        for flat in (False, True):
            model = Steps()
            model.flat = flat
            outputs = bind(model, encoder)
            assert not outputs.smooth
            assert not outputs.values_and_gradient(codes)[1].any()

    def test_kinks_frozen_and_unused_columns(self, numbers):
        class Kinked(torch.nn.Module):
            def forward(self, codes):
                return torch.sqrt(torch.relu(codes[:, 0]))

        encoder, codes = encode(numbers, "b")
        gradient = bind(Kinked(), encoder).values_and_gradient(codes)[1][:, 0]
        assert np.isfinite(gradient).all()
        assert (gradient[codes[:, 0] > 0, 0] > 0).all()
        assert (gradient[:, 1:] == 0).all()
        constant = torch_model(net(), lambda codes: torch.ones_like(codes))
        assert not bind(constant, encoder).smooth

    def test_categories_reach_prepare_as_codes(self, mixed):
        def prepare(codes):
            job = torch.nn.functional.one_hot(codes[:, 1].long(), 3).to(codes)
            return torch.cat([codes[:, [0, 2]] / 50, job], dim=1)

        encoder, codes = encode(mixed)
        outputs = bind(torch_model(torch.nn.Linear(5, 1), prepare), encoder)
        gradient = outputs.values_and_gradient(codes)[1]
        assert (gradient[:, :, [1, 3]] == 0).all()
        assert (gradient[:, :, [0, 2]] != 0).all()

    @pytest.mark.parametrize(
        ("last", "message"),
        [
            (lambda codes: codes[:5, 0], r"shape \(5, 1\)"),
            (lambda codes: codes[:, 0] / 0, "expected finite numbers from Broken"),
            (lambda codes: (codes, codes), "expected a real tensor from Broken, received tuple"),
            (lambda codes: codes.sum(), r"received shape \(\)"),
        ],
    )
    def test_unusable_outputs(self, numbers, last, message):
        class Broken(torch.nn.Module):
            def forward(self, codes):
                return last(codes)

        with pytest.raises(ModelError, match=message):
            bind(Broken(), encode(numbers)[0])

    def test_devices(self, numbers):
        encoder, codes = encode(numbers)
        split = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1, device="meta"))
        with pytest.raises(InvalidInput, match=r"a module on one device, received .* cpu, meta"):
            bind(split, encoder)
        with pytest.raises(
            InvalidInput, match=r"codes: expected codes on cpu.*received codes on meta"
        ):
            bind(net(), encoder).values(torch.zeros(4, 3, device="meta"))
        with pytest.raises(InvalidInput, match="device: expected a device this torch can use"):
            torch_model(net(), device="cuda:99")
        original = net()
        copied = torch_model(original, device="cpu")
        assert copied.module is not original
        np.testing.assert_array_equal(
            bind(copied, encoder).values(codes),
            bind(original, encoder).values(torch.from_numpy(codes)),
        )

    @pytest.mark.needs("gpu")
    def test_on_a_gpu(self, numbers):
        encoder, codes = encode(numbers)
        near = bind(torch_model(net(2, torch.nn.Softmax(dim=1)), scaled(numbers)), encoder)
        far = bind(
            torch_model(net(2, torch.nn.Softmax(dim=1)), scaled(numbers), device="cuda"), encoder
        )
        assert (far.probability, far.smooth, far.columns) == (True, True, 2)
        placed = far.place(codes)
        for there in (placed, placed.to(torch.float32)):
            values, gradient = far.values_and_gradient(there)
            assert values.device == gradient.device == there.device
            assert values.dtype == gradient.dtype == there.dtype
            expected = near.values_and_gradient(codes)
            np.testing.assert_allclose(values.cpu(), expected[0], atol=1e-4)
            np.testing.assert_allclose(gradient.cpu(), expected[1], atol=1e-3)
            assert torch.equal(far.values(there), values)
        with pytest.raises(InvalidInput, match="expected codes on cuda:0"):
            far.values(codes)

    def test_wrapper_refuses_what_is_no_module(self):
        with pytest.raises(InvalidInput, match=r"module: expected a torch.nn.Module, received int"):
            torch_model(3)


class TestBind:
    def test_idempotent(self, numbers):
        encoder, _ = encode(numbers)
        outputs = bind(lambda frame: frame["a"], encoder)
        assert bind(outputs, encoder) is outputs
        assert outputs.place(numbers.to_numpy()).shape == numbers.shape

    @pytest.mark.parametrize("model", [3, "model.pkl", None, LogisticRegression, torch.nn.Linear])
    def test_refuses(self, numbers, model):
        with pytest.raises(
            InvalidInput, match="model: expected a torch module, a fitted estimator"
        ):
            bind(model, encode(numbers)[0])

    def test_probe(self, numbers, mixed):
        frame = mixed.assign(when=pd.date_range("2020-01-01", periods=ROWS), none=np.nan)
        encoder, codes = encode(frame)
        rows = probe_rows(encoder)
        np.testing.assert_array_equal(rows, probe_rows(encoder))
        drawn = encoder.decode(rows)
        assert drawn["age"].between(frame["age"].min(), frame["age"].max()).all()
        assert set(drawn["job"]) == set(frame["job"])
        assert (drawn.dtypes == frame.dtypes).all()
        seen = []
        bind(lambda f: seen.append(f) or f["age"], encoder, probe=codes[:4])
        pd.testing.assert_frame_equal(seen[0], frame.iloc[:4])

    def test_import_is_light(self):
        code = "import sys, elsewise.models; print({'torch', 'sklearn'} & set(sys.modules))"
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() == "set()"
