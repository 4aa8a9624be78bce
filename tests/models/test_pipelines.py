"""Pipelines compiled to tables say what the pipelines say, and are asked instead of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from xgboost import XGBClassifier

import elsewise as ew
from elsewise.models import bind
from elsewise.models._frames import FrameOutputs

ROWS = 120
TEXTS, NUMBERS = ["town", "kind"], ["age", "wage", "days"]
CLASSES = pytest.mark.filterwarnings("ignore::UserWarning")
pytestmark = [CLASSES, pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")]


def people(seed: int = 0, rows: int = ROWS, *, missing: bool = True) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "town": rng.choice(["a", "b", "c", "d"], rows, p=[0.5, 0.3, 0.15, 0.05]),
            "age": rng.integers(18, 80, rows),
            "wage": rng.lognormal(8.0, 1.0, rows),
            "kind": rng.choice(["x", "y"], rows),
            "days": rng.integers(0, 4, rows).astype(float),
            "flag": rng.random(rows) < 0.4,
        }
    )
    if missing:
        frame.loc[rng.random(rows) < 0.1, "wage"] = np.nan
        frame.loc[rng.random(rows) < 0.1, "town"] = None
    return frame


def outcome(frame: pd.DataFrame) -> np.ndarray:
    wage = np.log(frame["wage"].fillna(3000.0))
    score = frame["age"] / 30 + wage - 9.0 + (frame["kind"] == "x") - frame["days"] / 2
    return np.asarray(score > score.median())


def compiled(model: Pipeline, frame: pd.DataFrame) -> tuple[FrameOutputs, np.ndarray, object]:
    """The compiled outputs, codes of rows that differ from those they were compiled with, slow."""
    encoder = ew.Schema.infer(frame).encoder(frame)
    codes = encoder.encode(frame)
    outputs = bind(model, encoder, probe=codes)
    fast = outputs.precise(codes)
    rng = np.random.default_rng(1)
    mixed = np.stack([rng.permutation(column) for column in codes.T], axis=1)
    return fast, mixed, outputs


def assert_same(model: Pipeline, frame: pd.DataFrame) -> FrameOutputs:
    fast, codes, slow = compiled(model, frame)
    assert fast.exact, slow.precise(codes).notice
    wanted = slow.values(codes)
    assert np.abs(fast.values(codes) - wanted).max() <= 1e-12 * max(1.0, np.abs(wanted).max())
    return fast


# --- Random preprocessing ------------------------------------------------------------------------

ENCODERS = [
    OneHotEncoder(handle_unknown="ignore"),
    OneHotEncoder(sparse_output=False, drop="first"),
    OneHotEncoder(min_frequency=20, handle_unknown="infrequent_if_exist"),
    OrdinalEncoder(),
    TargetEncoder(),
    make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), OneHotEncoder()),
    make_pipeline(OrdinalEncoder(), SimpleImputer(strategy="median"), MinMaxScaler()),
    "drop",
]
SCALERS = [
    StandardScaler(),
    make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler()),
    make_pipeline(StandardScaler(), SimpleImputer()),
    make_pipeline(SimpleImputer(), KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf")),
    make_pipeline(
        SimpleImputer(),
        StandardScaler(),
        KBinsDiscretizer(3, encode="ordinal", quantile_method="averaged_inverted_cdf"),
    ),
    make_pipeline(SimpleImputer(), MinMaxScaler(clip=True)),
    make_pipeline(MaxAbsScaler(), RobustScaler(with_centering=False), SimpleImputer()),
    make_pipeline(SimpleImputer(), make_union(StandardScaler(), MinMaxScaler())),
    make_pipeline(SimpleImputer(), PowerTransformer()),
    make_pipeline(QuantileTransformer(n_quantiles=20), SimpleImputer(), StandardScaler()),
    make_pipeline(SimpleImputer(), VarianceThreshold(0.1), PCA(1)),
    make_pipeline(SimpleImputer(), FunctionTransformer(np.log1p), FunctionTransformer()),
    "passthrough",
]
FINALS = {
    "logistic": LogisticRegression(max_iter=200),
    "forest": RandomForestClassifier(5, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=5),
    "XGBoost": XGBClassifier(n_estimators=5, n_jobs=1),
}


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    texts=st.sampled_from(ENCODERS),
    numbers=st.sampled_from(SCALERS),
    days=st.sampled_from([*SCALERS[:4], ENCODERS[0], ENCODERS[4]]),
    flag=st.sampled_from([ENCODERS[0], ENCODERS[3], "passthrough", "drop"]),
    final=st.sampled_from(list(FINALS)),
    order=st.permutations(range(4)),
    seed=st.integers(0, 3),
)
def test_compiled_pipelines_say_the_same(
    texts: object,
    numbers: object,
    days: object,
    flag: object,
    final: str,
    order: list[int],
    seed: int,
) -> None:
    """Law: on rows put together from cells of others, to 1e-12."""
    dense = 0.0 if final == "boosting" else 0.3
    parts = [
        ("texts", texts, TEXTS),
        ("numbers", numbers, ["age", "wage"]),
        ("days", days, ["days"]),
        ("flag", flag, [5]),
    ]
    frame = people(seed)
    if final != "boosting" and final != "XGBoost":
        frame = people(seed, missing=False)
    prepare = ColumnTransformer([parts[k] for k in order], sparse_threshold=dense)
    model = make_pipeline(prepare, FINALS[final]).fit(frame, outcome(frame))
    assert_same(model, frame)


# --- Particular cases ----------------------------------------------------------------------------


def credit(final: object = None, **more: object) -> Pipeline:
    text = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="none"),
        OneHotEncoder(handle_unknown="ignore", **more),
    )
    amounts = make_pipeline(SimpleImputer(), StandardScaler())
    prepare = make_column_transformer(
        (text, make_column_selector(dtype_include=["object", "str", "string"])),
        (amounts, make_column_selector(dtype_include="number")),
    )
    return make_pipeline(prepare, LogisticRegression() if final is None else final)


def test_slopes_of_a_linear_model_are_exact_beside_categories() -> None:
    frame = people()
    model = credit().fit(frame, outcome(frame))
    fast = assert_same(model, frame)
    encoder = fast.model.pipeline.model.encoder
    codes = encoder.encode(frame)
    values, slopes = fast.values_and_gradient(codes)
    scaler = model[0].transformers_[1][1][1]
    names = model[0].transformers_[1][2]
    weights = dict(zip(names, model[1].coef_[0, -len(names) :] / scaler.scale_, strict=True))
    for j, feature in enumerate(encoder.schema.features):
        steep = (values * (1 - values))[:, 0] * weights.get(feature.name, 0.0)
        steep = np.where(np.isnan(codes[:, j]), 0.0, steep)
        np.testing.assert_allclose(slopes[:, 0, j], steep, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("label", [0, 1, 2, None])
def test_several_classes(label: int | None) -> None:
    frame = people(missing=False)
    label_of = pd.qcut(frame["wage"] * (frame["kind"] == "x") + frame["age"], 3, labels=False)
    model = make_pipeline(
        make_column_transformer((TargetEncoder(), TEXTS), remainder="passthrough"),
        LogisticRegression(max_iter=50),
    ).fit(frame, label_of)
    encoder = ew.Schema.infer(frame).encoder(frame)
    codes = encoder.encode(frame)
    slow = bind(model, encoder, output=label, probe=codes)
    fast = slow.precise(codes)
    assert fast.exact
    np.testing.assert_allclose(fast.values(codes), slow.values(codes), rtol=0, atol=1e-12)
    assert fast.values_and_gradient(codes)[1].shape == (ROWS, fast.columns, 6)


@pytest.mark.parametrize(
    "final",
    [
        ExtraTreesClassifier(4, random_state=0),
        RandomForestRegressor(4, random_state=0),
        LinearRegression(),
        MLPClassifier((4,), max_iter=20, random_state=0),
    ],
    ids=lambda final: type(final).__name__,
)
def test_final_estimators(final: object) -> None:
    frame = people()
    assert_same(credit(final).fit(frame, outcome(frame)), frame)


def test_frames_between_the_steps_and_nested_pipelines() -> None:
    frame = people()
    inner = credit(sparse_output=False)[:-1].set_output(transform="pandas")
    model = make_pipeline(
        inner, VarianceThreshold().set_output(transform="pandas"), FINALS["forest"]
    )
    assert_same(model.fit(frame, outcome(frame)), frame)


def test_single_precision_numbers() -> None:
    frame = people(missing=False).astype({"wage": np.float32, "days": np.float32})[["wage", "days"]]
    prepare = make_column_transformer((StandardScaler(), ["wage"]), (RobustScaler(), ["days"]))
    model = make_pipeline(prepare, RandomForestClassifier(5, random_state=0))
    assert_same(model.fit(frame, frame["wage"] > frame["wage"].median()), frame)


def test_levels_the_encoder_refuses_are_left_to_the_pipeline() -> None:
    frame = people(missing=False)
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), TEXTS), remainder="passthrough"),
        LogisticRegression(max_iter=50),
    ).fit(frame, outcome(frame))
    wider = pd.concat([frame, frame.iloc[:1].assign(town="nowhere")], ignore_index=True)
    encoder = ew.Schema.infer(wider).encoder(wider)
    codes = encoder.encode(frame)
    fast = bind(model, encoder, probe=codes).precise(codes)
    assert fast.exact
    with pytest.raises(ew.errors.ModelError, match="unknown categories"):
        fast.values(encoder.encode(wider))


def test_what_cannot_be_read_is_asked_as_it_is_and_said() -> None:
    frame = people(missing=False)

    def crossed(part: pd.DataFrame) -> np.ndarray:
        return np.c_[part["age"] * (part["kind"] == "x"), part["wage"]]

    both = FunctionTransformer(crossed)
    inner = make_pipeline(both, StandardScaler())
    noise = FunctionTransformer(lambda part: part - part.mean(axis=0) * 1e-9)
    asked = {"target": ew.targets.at_least(0.6), "bounds": ew.Bounds(outputs=0.2)}
    few = ew.Settings(iterations=2, draws=99)
    for prepare in (inner, make_pipeline(credit(sparse_output=False)[:-1], noise)):
        model = make_pipeline(prepare, LogisticRegression(max_iter=50)).fit(frame, outcome(frame))
        with np.errstate(all="ignore"):
            found = ew.explain(model, frame, settings=few, **asked)
        said = any("asked as it is" in notice for notice in found.status.notices)
        assert said == (prepare is not inner)


def test_the_search_does_not_ask_the_pipeline() -> None:
    """The pipeline is asked about all rows once, a few of them again, and what is returned."""
    frame = people(rows=300)
    model = credit().fit(frame, outcome(frame))
    asked = []
    transform = model[0].transform
    model[0].transform = lambda rows: asked.append(len(rows)) or transform(rows)
    try:
        found = ew.explain(
            model,
            frame,
            target=ew.targets.at_least(0.6),
            bounds=ew.Bounds(outputs=0.1, inputs=0.5),
            settings=ew.Settings(draws=99),
        )
    finally:
        del model[0].transform
    assert len(found.iterations) > 5
    *bound, returned = asked
    assert bound == [300, 16, 5]  # all rows, some of them again, the levels of the categories
    assert returned <= 300
    assert not any("asked as it is" in notice for notice in found.status.notices)
    np.testing.assert_array_equal(
        found.rows.outputs[:, 0], model.predict_proba(found.counterfactual)[:, 1]
    )
