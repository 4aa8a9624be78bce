"""Any model, legal rows: the same call for every kind of model, and every row could exist."""

from __future__ import annotations

import subprocess
import sys

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
import torch
import xgboost
from catboost import CatBoostClassifier, CatBoostRegressor
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from xgboost import XGBClassifier, XGBRegressor

import elsewise as ew
from elsewise.errors import InvalidInput, ModelError
from elsewise.models import Outputs, bind, estimator, torch_model
from legality import assert_legal, assert_map, assert_outputs, unmoved_cells

FAST = ew.Settings(iterations=4, draws=99)
TREES = {"n_estimators": 20, "n_jobs": 1}
QUIET = {"iterations": 20, "thread_count": 1, "verbose": 0, "allow_writing_files": False}


def explain(model: object, rows: pd.DataFrame, **more: object) -> ew.Explanation:
    asked = {
        "target": ew.targets.at_least(0.6),
        "bounds": ew.Bounds(outputs=0.2),
        "certify": "in-sample",
        "settings": FAST,
    }
    return ew.explain(model, rows, **(asked | more))


def assert_sound(explanation: ew.Explanation, score: object) -> None:
    assert_legal(explanation)
    assert_outputs(explanation, score)
    assert_map(explanation)
    assert not unmoved_cells(explanation).all(), "nothing moved, so nothing was tested"


# --- German Credit from raw strings ---------------------------------------------------------------

CREDIT_MODELS = {
    "logistic regression": LogisticRegression(),
    "random forest": RandomForestClassifier(max_depth=6, random_state=0, **TREES),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=20, random_state=0),
    "XGBoost": XGBClassifier(max_depth=4, **TREES),
    "LightGBM": LGBMClassifier(verbose=-1, **TREES),
    "CatBoost": CatBoostClassifier(**QUIET),
}


def credit_pipeline(model: object) -> Pipeline:
    text = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="none"),
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    )
    amounts = make_pipeline(SimpleImputer(), StandardScaler())
    prepare = ColumnTransformer(
        [
            ("text", text, make_column_selector(dtype_exclude="number")),
            ("amounts", amounts, make_column_selector(dtype_include="number")),
        ]
    )
    return make_pipeline(prepare, model)


@pytest.mark.parametrize("name", CREDIT_MODELS)
def test_german_credit_from_raw_strings(name: str) -> None:
    data = ew.datasets.german_credit()
    frame, good = data.frame, 1 - data.outcome
    model = credit_pipeline(CREDIT_MODELS[name]).fit(frame, good)
    # Rows outside the range would have to stay, and a few can make a limit unreachable.
    refused = frame[(model.predict(frame) == 0) & (frame["Duration"] <= 48)].head(40)
    assert refused.isna().any(axis=None)
    schema = ew.Schema.infer(refused, frame).freeze("Age", "Sex").range("Duration", upper=48)
    explanation = explain(model, refused, schema=schema, background=frame)
    assert explanation.ok
    assert explanation.problem.outputs.description.endswith("class 1 (1)")
    assert_sound(explanation, lambda rows: model.predict_proba(rows)[:, 1])
    known = {column: set(frame[column].dropna()) for column in refused.select_dtypes("str")}
    for column, levels in known.items():
        assert set(explanation.counterfactual[column].dropna()) <= levels


def test_german_credit_prefers_fewer_rows_where_a_share_is_asked_for() -> None:
    data = ew.datasets.german_credit()
    frame = data.frame
    model = credit_pipeline(LogisticRegression()).fit(frame, 1 - data.outcome)
    rows = frame.head(80)
    asked = ew.targets.share(approved=0.95, margin=0.1)
    limits = ew.Bounds(outputs=0.02)
    explanation = explain(model, rows, target=asked, bounds=limits, background=frame)
    before = model.predict_proba(rows)[:, 1]
    assert np.mean(before >= 0.5) < 0.95
    assert np.mean(explanation.outputs >= 0.5) >= 0.95
    assert unmoved_cells(explanation)[before >= 0.5].all()
    asked_rows = ~unmoved_cells(explanation).all(axis=1)
    assert asked_rows.sum() <= np.ceil(0.95 * 80) - np.sum(before >= 0.5)
    assert explanation.problem.target.name == "share(approved=0.95)"


def test_a_share_of_a_class_makes_it_the_most_likely() -> None:
    rows, kind = mixed(90), three_classes(mixed(90))
    model = credit_pipeline(LogisticRegression()).fit(rows, kind)
    explanation = explain(
        model, rows, target=ew.targets.share(0.6, of=2, margin=0.2), bounds=ew.Bounds(outputs=0.03)
    )
    before = np.argmax(explanation.factual_outputs, axis=1) == 2
    after = np.argmax(explanation.outputs, axis=1) == 2
    assert before.mean() < 0.5
    assert after.mean() >= 0.6
    assert unmoved_cells(explanation)[before].all()


# --- other models and outputs ---------------------------------------------------------------------


def mixed(n: int = 60, seed: int = 0) -> pd.DataFrame:
    """Numbers, whole numbers, text, flags and an ordered category, with missing cells."""
    rng = np.random.default_rng(seed)
    size = pd.CategoricalDtype(["small", "medium", "large"], ordered=True)
    frame = pd.DataFrame(
        {
            "income": rng.lognormal(3.0, 0.4, n),
            "open accounts": rng.integers(0, 9, n),
            "job": rng.choice(["clerk", "cook", "judge"], n),
            "owner": rng.random(n) < 0.5,
            "size": pd.Categorical(rng.choice(size.categories, n), dtype=size),
            "rate": rng.normal(size=n).astype("float32"),
        }
    )
    frame.loc[rng.random(n) < 0.15, "income"] = np.nan
    frame.loc[rng.random(n) < 0.15, "job"] = None
    return frame


def wish(frame: pd.DataFrame) -> np.ndarray:
    rank = frame["size"].cat.codes + 2.0 * frame["owner"] - 0.3 * frame["open accounts"]
    return (rank + frame["income"].fillna(20.0) / 20.0 + (frame["job"] == "judge")).to_numpy()


def approved(frame: pd.DataFrame) -> np.ndarray:
    return (wish(frame) > np.median(wish(frame))).astype(int)


def three_classes(frame: pd.DataFrame) -> np.ndarray:
    return np.searchsorted(np.quantile(wish(frame), [0.4, 0.7]), wish(frame))


def amounts(n: int = 60, seed: int = 0) -> pd.DataFrame:
    """Numbers and a category dtype that native boosters read."""
    frame = mixed(n, seed)[["income", "open accounts", "rate", "size"]]
    frame["size"] = pd.Categorical(frame["size"].astype(str), ["small", "medium", "large"])
    return frame


ROWS = amounts()
LABELS = approved(mixed())
CLASSES = three_classes(mixed())
SUM = wish(mixed())


def xgboost_booster(objective: str, label: np.ndarray, **more: object) -> xgboost.Booster:
    data = xgboost.DMatrix(ROWS, label, enable_categorical=True)
    return xgboost.train({"objective": objective, "nthread": 1, **more}, data, 15)


def lightgbm_booster(objective: str, label: np.ndarray, **more: object) -> lightgbm.Booster:
    settings = {"objective": objective, "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5}
    return lightgbm.train(settings | more, lightgbm.Dataset(ROWS, label), 15)


def catboost_model(objective: str, label: np.ndarray) -> catboost.CatBoost:
    return catboost.CatBoost(QUIET | {"loss_function": objective, "cat_features": ["size"]}).fit(
        ROWS, label
    )


def xgboost_scores(model: xgboost.Booster, rows: pd.DataFrame) -> np.ndarray:
    return model.predict(xgboost.DMatrix(rows, enable_categorical=True))


def catboost_probabilities(model: catboost.CatBoost, rows: pd.DataFrame) -> np.ndarray:
    return model.predict(rows, prediction_type="Probability")


NATIVE = {
    "xgboost": (lambda: xgboost_booster("binary:logistic", LABELS), xgboost_scores),
    "lightgbm": (lambda: lightgbm_booster("binary", LABELS), lambda model, r: model.predict(r)),
    "catboost": (
        lambda: catboost_model("Logloss", LABELS),
        lambda model, r: catboost_probabilities(model, r)[:, 1],
    ),
}


@pytest.mark.parametrize("name", NATIVE)
def test_native_boosters(name: str) -> None:
    fit, score = NATIVE[name]
    model = fit()
    explanation = explain(model, ROWS, bounds=ew.Bounds(outputs=0.1))
    outputs = explanation.problem.outputs
    assert outputs.probability
    assert outputs.description.endswith("class 1 (1)")
    assert_sound(explanation, lambda rows: score(model, rows))
    other = bind(model, explanation.encoder, output=0)
    codes = explanation.encoder.encode(ROWS)
    np.testing.assert_allclose(other.values(codes) + outputs.values(codes), 1.0, atol=1e-7)


REGRESSION = {
    "xgboost": (lambda: xgboost_booster("reg:squarederror", SUM), xgboost_scores),
    "lightgbm": (lambda: lightgbm_booster("regression", SUM), lambda m, r: m.predict(r)),
    "catboost": (lambda: catboost_model("RMSE", SUM), lambda m, r: m.predict(r)),
    "CatBoostRegressor": (
        lambda: CatBoostRegressor(**QUIET, cat_features=["size"]).fit(ROWS, SUM),
        lambda m, r: m.predict(r),
    ),
    "XGBRegressor": (
        lambda: XGBRegressor(enable_categorical=True, **TREES).fit(ROWS, SUM),
        lambda m, r: m.predict(r),
    ),
    "LGBMRegressor": (
        lambda: LGBMRegressor(verbose=-1, min_child_samples=5, **TREES).fit(ROWS, SUM),
        lambda m, r: m.predict(r),
    ),
    "scikit-learn": (
        lambda: credit_pipeline(DecisionTreeRegressor(max_depth=5, random_state=0)).fit(ROWS, SUM),
        lambda m, r: m.predict(r),
    ),
}


@pytest.mark.parametrize("name", REGRESSION)
def test_regression(name: str) -> None:
    fit, score = REGRESSION[name]
    model = fit()
    explanation = explain(model, ROWS, target=ew.targets.shift(0.5), bounds=ew.Bounds(outputs=0.3))
    assert not explanation.problem.outputs.probability
    assert_sound(explanation, lambda rows: score(model, rows))


MULTICLASS = {
    "xgboost": (
        lambda: xgboost_booster("multi:softprob", CLASSES, num_class=3),
        xgboost_scores,
    ),
    "lightgbm": (
        lambda: lightgbm_booster("multiclass", CLASSES, num_class=3),
        lambda m, r: m.predict(r),
    ),
    "catboost": (lambda: catboost_model("MultiClass", CLASSES), catboost_probabilities),
    "XGBClassifier": (
        lambda: XGBClassifier(enable_categorical=True, **TREES).fit(ROWS, CLASSES),
        lambda m, r: m.predict_proba(r),
    ),
    "scikit-learn": (
        lambda: credit_pipeline(LogisticRegression()).fit(ROWS, CLASSES),
        lambda m, r: m.predict_proba(r),
    ),
}


@pytest.mark.parametrize("name", MULTICLASS)
def test_multiclass_probability_vectors(name: str) -> None:
    fit, score = MULTICLASS[name]
    model = fit()
    wanted = ew.targets.sample(score(model, ROWS)[CLASSES == 2])
    explanation = explain(model, ROWS, target=wanted, bounds=ew.Bounds(outputs=0.25))
    assert explanation.problem.outputs.columns == 3
    assert explanation.problem.outputs.probability
    assert_sound(explanation, lambda rows: score(model, rows))
    closer = np.mean(explanation.outputs[:, 2]) - np.mean(explanation.factual_outputs[:, 2])
    assert closer > 0


def test_decision_function() -> None:
    model = credit_pipeline(LinearSVC()).fit(mixed(), np.where(approved(mixed()), "yes", "no"))
    explanation = explain(model, mixed(), target=ew.targets.at_least(0.5))
    assert explanation.problem.outputs.description.endswith("class 1 ('yes')")
    assert not explanation.problem.outputs.probability
    assert_sound(explanation, model.decision_function)


def test_frames_with_strings_reach_catboost_as_they_are() -> None:
    rows = mixed().assign(job=mixed()["job"].fillna("none"), size=mixed()["size"].astype(str))
    model = CatBoostClassifier(**QUIET, cat_features=["job", "size", "owner"])
    model.fit(rows, approved(mixed()))
    explanation = explain(model, rows, bounds=ew.Bounds(outputs=0.15))
    assert_sound(explanation, lambda frame: model.predict_proba(frame)[:, 1])


def test_frames_with_missing_categories_reach_histogram_boosting_as_they_are() -> None:
    rows = mixed().astype({"job": "category"})
    model = HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=5)
    model.fit(rows, approved(mixed()))
    assert_sound(explain(model, rows), lambda frame: model.predict_proba(frame)[:, 1])


STATSMODELS = {
    "formula": (
        lambda rows, y: smf.logit(
            "y ~ income + Q('open accounts') + C(job) + owner", rows.assign(y=y)
        ).fit_regularized(disp=0, alpha=1.0),
        "Logit.predict",
    ),
    "binomial GLM": (
        lambda rows, y: smf.glm(
            "y ~ income + C(job)", rows.assign(y=y), family=sm.families.Binomial()
        ).fit(),
        "GLM.predict",
    ),
}


@pytest.mark.parametrize("name", STATSMODELS)
def test_statsmodels_formulas(name: str) -> None:
    fit, description = STATSMODELS[name]
    rows = mixed().dropna()
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(len(rows)) < 0.8, approved(rows), 1 - approved(rows))
    results = fit(rows, noisy)
    explanation = explain(results, rows, bounds=ew.Bounds(outputs=0.1))
    assert explanation.problem.outputs.description == description
    assert explanation.problem.outputs.probability
    assert explanation.problem.outputs.smooth
    assert_sound(explanation, results.predict)


@pytest.mark.parametrize("constant", ["in the frame", "added", "arrays"])
def test_statsmodels_arrays(constant: str) -> None:
    rows = mixed()[["open accounts", "rate"]].astype({"rate": float})
    inputs = sm.add_constant(rows)
    results = sm.OLS(SUM, inputs.to_numpy() if constant == "arrays" else inputs).fit()
    frame = inputs if constant == "in the frame" else rows
    explanation = explain(
        results, frame, target=ew.targets.shift(0.3), bounds=ew.Bounds(outputs=0.1)
    )
    assert not explanation.problem.outputs.probability
    assert_sound(
        explanation,
        lambda part: results.predict(sm.add_constant(part, has_constant="skip")),
    )


def test_statsmodels_multinomial_has_one_output_per_class() -> None:
    rows = mixed()[["open accounts", "rate"]].astype({"rate": float})
    results = sm.MNLogit(CLASSES, sm.add_constant(rows)).fit(disp=0)
    encoder = ew.Schema.infer(rows).encoder(rows)
    outputs = bind(results, encoder)
    assert (outputs.columns, outputs.probability) == (3, True)
    np.testing.assert_array_equal(
        bind(results, encoder, output=1).values(encoder.encode(rows))[:, 0],
        outputs.values(encoder.encode(rows))[:, 1],
    )


def test_torch_reads_categories_as_positions_of_their_levels() -> None:
    torch.manual_seed(0)
    rows = mixed().dropna()[["income", "job", "size"]]
    schema = ew.Schema.infer(rows)
    assert schema["job"].levels == ("clerk", "cook", "judge")

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.jobs = torch.nn.Embedding(3, 2)
            self.head = torch.nn.Linear(4, 1)

        def forward(self, parts: tuple[torch.Tensor, ...]) -> torch.Tensor:
            numbers, job, size = parts
            return torch.sigmoid(self.head(torch.cat([numbers, self.jobs(job), size], dim=1)))

    def prepare(codes: torch.Tensor) -> tuple[torch.Tensor, ...]:
        assert bool((codes[:, 1:] == codes[:, 1:].round()).all())
        return (codes[:, :1] - 20.0) / 10.0, codes[:, 1].long(), codes[:, 2:] / 2.0

    net = Net()
    with torch.no_grad():
        net.jobs.weight.copy_(torch.tensor([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]))
        net.head.weight.copy_(torch.tensor([[0.2, 1.5, 0.0, 1.0]]))
        net.head.bias.fill_(-1.0)
    explanation = explain(torch_model(net, prepare=prepare), rows)
    assert_legal(explanation)
    assert_map(explanation)
    assert not unmoved_cells(explanation)[:, 1].all(), "no job changed"
    after = explanation.counterfactual
    codes = np.column_stack(
        [
            after["income"],
            after["job"].map({"clerk": 0, "cook": 1, "judge": 2}),
            after["size"].cat.codes,
        ]
    )
    with torch.no_grad():
        expected = net(prepare(torch.tensor(codes, dtype=torch.float32))).double().numpy()
    np.testing.assert_array_equal(explanation.outputs, expected)


def test_plain_functions_see_missing_cells_as_they_are() -> None:
    rows = mixed()
    seen: list[pd.DataFrame] = []

    def score(frame: pd.DataFrame) -> pd.Series:
        seen.append(frame)
        points = 0.5 + 0.2 * (frame["job"] == "judge") - 0.3 * frame["job"].isna()
        return (points - 0.02 * frame["open accounts"]).clip(0, 1)

    assert_sound(explain(score, rows), score)
    for frame in seen:
        assert (frame.dtypes == rows.dtypes).all()
    assert seen[0]["income"].isna().any()
    assert seen[0]["job"].isna().any()


# --- boosters in detail ---------------------------------------------------------------------------


def test_lightgbms_split_at_zero_leaves_unmoved_rows_alone() -> None:
    """LightGBM splits beside zero at 1e-35: a rounding error in a cell would flip its rows."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd"))
    rows["zeros"] = np.where(rng.random(200) < 0.7, 0.0, rng.random(200))
    label = (rows["zeros"] > 0) ^ (rows["a"] > 0.5)
    model = LGBMClassifier(verbose=-1, **TREES).fit(rows, label)
    table = model.booster_.trees_to_dataframe()
    splits = table.loc[table["split_feature"] == "zeros", "threshold"]
    assert (splits.abs() < 1e-30).any()
    explanation = explain(model, rows.head(80), background=rows)
    assert_sound(explanation, lambda frame: model.predict_proba(frame)[:, 1])
    before, after = explanation.factual["zeros"], explanation.counterfactual["zeros"]
    assert not ((before != after) & ((before - after).abs() < 1e-9)).any()


@pytest.mark.parametrize("name", ["XGBClassifier", "LGBMClassifier", "CatBoostClassifier"])
@pytest.mark.parametrize("fitted_on", ["frame", "array"])
def test_scikit_learn_faces_of_boosters_read_the_columns_they_know(
    name: str, fitted_on: str
) -> None:
    models = {
        "XGBClassifier": XGBClassifier(**TREES),
        "LGBMClassifier": LGBMClassifier(verbose=-1, **TREES),
        "CatBoostClassifier": CatBoostClassifier(**QUIET),
    }
    rows = ROWS[["income", "open accounts", "rate"]]
    model = models[name].fit(rows if fitted_on == "frame" else rows.to_numpy(), LABELS)
    expected = model.predict_proba(rows if fitted_on == "frame" else rows.to_numpy())[:, 1]
    turned = rows[["rate", "income", "open accounts"]] if fitted_on == "frame" else rows
    encoder = ew.Schema.infer(turned).encoder(turned)
    np.testing.assert_array_equal(
        bind(model, encoder).values(encoder.encode(turned))[:, 0], expected
    )


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
@pytest.mark.parametrize("fitted_on", ["frame", "array"])
def test_native_boosters_read_the_columns_they_know(library: str, fitted_on: str) -> None:
    rows = ROWS[["income", "open accounts", "rate"]]
    inputs = rows if fitted_on == "frame" else rows.to_numpy()
    if library == "xgboost":
        data = xgboost.DMatrix(inputs, LABELS)
        model = xgboost.train({"objective": "reg:logistic", "nthread": 1}, data, 5)
        expected = model.predict(xgboost.DMatrix(inputs))
    elif library == "lightgbm":
        settings = {"objective": "cross_entropy", "verbose": -1, "num_threads": 1}
        model = lightgbm.train(settings, lightgbm.Dataset(inputs, LABELS), 5)
        model = lightgbm.Booster(model_str=model.model_to_string())
        expected = model.predict(inputs)
    else:
        model = catboost.CatBoost(QUIET | {"loss_function": "Logloss"}).fit(inputs, LABELS)
        expected = catboost_probabilities(model, inputs)[:, 1]
    turned = rows[["rate", "income", "open accounts"]] if fitted_on == "frame" else rows
    encoder = ew.Schema.infer(turned).encoder(turned)
    outputs: Outputs = bind(model, encoder)
    assert outputs.probability
    np.testing.assert_array_equal(outputs.values(encoder.encode(turned))[:, 0], expected)
    if library == "xgboost":
        assert model.feature_names == (list(rows) if fitted_on == "frame" else None)


def test_boosters_are_recognised_without_being_imported() -> None:
    source = (
        "import sys, pandas as pd; from elsewise.features import Schema; "
        "from elsewise.models import bind; "
        "frame = pd.DataFrame({'a': [1.0, 2.5]}); "
        "bind(lambda rows: rows['a'], Schema.infer(frame).encoder(frame)); "
        "print([m for m in ('xgboost', 'lightgbm', 'catboost', 'statsmodels', 'torch') "
        "if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


REFUSED_MODELS = {
    "booster of other columns": (
        lambda: (xgboost_booster("binary:logistic", LABELS), mixed()[["income", "rate"]]),
        r"fitted on columns of the frame .*also needs \['open accounts', 'size'\]",
    ),
    "array booster of another width": (
        lambda: (
            lightgbm.train({"verbose": -1}, lightgbm.Dataset(ROWS[["rate"]].to_numpy(), SUM), 1),
            ROWS[["rate", "income"]],
        ),
        "expected a model fitted on the frame's 2 columns, received one fitted on 1 columns",
    ),
    "results of other columns": (
        lambda: (sm.OLS(SUM, mixed()[["open accounts"]]).fit(), ROWS[["rate", "income"]]),
        "also needs \\['open accounts'\\]",
    ),
}


@pytest.mark.parametrize("name", REFUSED_MODELS)
def test_models_of_other_columns_are_refused(name: str) -> None:
    make, message = REFUSED_MODELS[name]
    model, rows = make()
    with pytest.raises(InvalidInput, match=message):
        explain(model, rows)


def test_an_output_a_booster_does_not_have_is_refused() -> None:
    model = estimator(xgboost_booster("binary:logistic", LABELS), output="approved")
    with pytest.raises(InvalidInput, match=r"output: expected one of the classes \[0, 1\]"):
        explain(model, ROWS)


# --- rules, directions, groups, ranges ------------------------------------------------------------


def counts(n: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    total = rng.integers(1, 12, n)
    home = rng.integers(0, 3, n)
    return pd.DataFrame(
        {
            "total": total,
            "unique": np.minimum(rng.integers(0, 12, n), total),
            "own": (home == 0).astype(int),
            "rent": (home == 1).astype(int),
            "free": (home == 2).astype(int),
            "income": rng.normal(30.0, 8.0, n),
        }
    )


def count_score(frame: pd.DataFrame) -> pd.Series:
    z = 0.3 * frame["unique"] - 0.2 * frame["total"] + 1.5 * frame["own"] - frame["free"]
    return 1.0 / (1.0 + np.exp(-(z + 0.05 * (frame["income"] - 35.0))))


def count_schema(frame: pd.DataFrame) -> ew.Schema:
    return (
        ew.Schema.infer(frame)
        .one_hot_group("home", ["own", "rent", "free"])
        .rule(lambda rows: rows["unique"] <= rows["total"], "unique <= total")
    )


@pytest.mark.parametrize("kind", ["smooth", "trees"])
def test_rules_groups_and_directions_hold(kind: str) -> None:
    rows = counts()
    model: object = count_score
    if kind == "trees":
        model = DecisionTreeClassifier(max_depth=6).fit(rows, count_score(rows) > 0.5)
    schema = count_schema(rows).only_increase("income").only_decrease("total")
    explanation = explain(model, rows, schema=schema, target=ew.targets.at_least(0.8))
    score = count_score if kind == "smooth" else lambda frame: model.predict_proba(frame)[:, 1]
    assert_sound(explanation, score)
    moved = ~unmoved_cells(explanation)
    assert moved[:, [2, 3, 4]].any(), "no home changed, so no group was tested"


def test_rows_that_break_a_rule_or_a_range_stay_as_they_are() -> None:
    rows = counts()
    rows.loc[:4, "unique"] = rows.loc[:4, "total"] + 3
    schema = count_schema(rows).range("income", 20.0, 45.0)
    explanation = explain(count_score, rows, schema=schema, target=ew.targets.at_least(0.9))
    assert_sound(explanation, count_score)
    stays = np.arange(len(rows)) <= 4
    stays |= ~rows["income"].between(20.0, 45.0).to_numpy()
    assert stays.sum() > 8
    assert unmoved_cells(explanation)[stays].all()
    assert not unmoved_cells(explanation)[~stays].all()
    assert any(str(stays.sum()) in notice for notice in explanation.status.notices)


def test_a_proposal_that_only_breaks_a_rule_is_rejected_silently() -> None:
    rows = counts()
    schema = ew.Schema.infer(rows).only("income").rule(lambda frame: frame["income"] < 32.0)
    explanation = explain(count_score, rows, schema=schema, target=ew.targets.at_least(0.9))
    assert_legal(explanation)
    assert (explanation.counterfactual["income"][rows["income"] < 32.0] < 32.0).all()


def test_the_status_says_when_nothing_could_move() -> None:
    rows = counts()
    schema = (
        ew.Schema.infer(rows)
        .only("income")
        .rule(lambda frame: frame["income"].isin(rows["income"]), "known incomes")
    )
    schema = schema.range("income", upper=float(rows["income"].min()))
    explanation = explain(count_score, rows, schema=schema, target=ew.targets.at_least(0.9))
    assert unmoved_cells(explanation).all()
    assert explanation.status.verdict is ew.Verdict.NOT_POSSIBLE


# --- bad input ------------------------------------------------------------------------------------


def with_cell(column: str, value: object) -> pd.DataFrame:
    rows = mixed()
    rows[column] = rows[column].astype(object)
    rows.loc[3, column] = value
    return rows


def score(frame: pd.DataFrame) -> pd.Series:
    return 0.5 + 0.2 * (frame["job"] == "judge") - 0.02 * frame["open accounts"]


def fails_on_a_batch(frame: pd.DataFrame) -> pd.Series:
    if len(frame) > len(mixed()):
        raise RuntimeError("out of memory")
    return score(frame)


def strict_pipeline() -> Pipeline:
    prepare = ColumnTransformer([("job", OneHotEncoder(), ["job"])])
    rows = mixed().dropna()
    return make_pipeline(prepare, LogisticRegression()).fit(rows, approved(rows))


BAD = {
    "a category the model never saw": (
        lambda: explain(strict_pipeline(), with_cell("job", "pilot").dropna()),
        ModelError,
        "unknown categories.*pilot",
    ),
    "a category the schema never saw": (
        lambda: explain(score, with_cell("job", "pilot"), schema=ew.Schema.infer(mixed())),
        InvalidInput,
        "'job'.*'pilot'",
    ),
    "a rule no factual row satisfies": (
        lambda: explain(
            score,
            mixed(),
            schema=ew.Schema.infer(mixed()).rule(lambda rows: rows["rate"] > 99.0, "steep"),
        ),
        InvalidInput,
        "'steep'.*no|no.*'steep'",
    ),
    "a rule that fails": (
        lambda: explain(
            score, mixed(), schema=ew.Schema.infer(mixed()).rule(lambda rows: rows["wealth"] > 0)
        ),
        InvalidInput,
        "rule 1.*a function of columns of the frame, received one that reads 'wealth'",
    ),
    "contradictory ranges": (
        lambda: ew.Schema.infer(mixed()).range("rate", 1.0, -1.0),
        InvalidInput,
        "lower <= upper",
    ),
    "a range nobody is in": (
        lambda: ew.Schema.infer(mixed()).range("rate", 50.0, 60.0),
        InvalidInput,
        "meets the observed one",
    ),
    "a schema for other columns": (
        lambda: explain(score, mixed(), schema=ew.Schema.infer(counts())),
        InvalidInput,
        "expected the columns of the schema, received no column 'total'",
    ),
    "object columns of mixed types": (
        lambda: explain(score, with_cell("job", 7)),
        InvalidInput,
        "'job'.*a mixture of int and str",
    ),
    "a model that fails on a batch": (
        lambda: explain(fails_on_a_batch, mixed(), target=ew.targets.shift(0.3)),
        ModelError,
        "expected scores from fails_on_a_batch, received RuntimeError: out of memory",
    ),
    "a share of everything and more": (
        lambda: ew.targets.share(approved=1.2),
        InvalidInput,
        r"a share in \[0, 1\], received 1\.2",
    ),
    "two shares": (
        lambda: ew.targets.share(approved=0.5, refused=0.5),
        InvalidInput,
        "one share",
    ),
    "a share of a class by name": (
        lambda: explain(
            credit_pipeline(LogisticRegression()).fit(mixed(), three_classes(mixed())),
            mixed(),
            target=ew.targets.share(rich=0.6),
        ),
        InvalidInput,
        r"of: expected one of the classes \[0, 1, 2\], received 'rich'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name: str) -> None:
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call()


def test_a_linear_model_of_numbers_needs_no_search_by_trial() -> None:
    rows = counts()[["income", "total"]]
    model = LinearRegression().fit(rows, count_score(counts()))
    explanation = explain(model, rows, target=ew.targets.shift(0.1), bounds=ew.Bounds(outputs=0.05))
    assert explanation.problem.outputs.smooth
    assert_sound(explanation, model.predict)
