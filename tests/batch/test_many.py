"""Many explanations: each as if it were alone, whatever the others do."""

from __future__ import annotations

import os
import pickle
import threading
import time
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from joblib._parallel_backends import ThreadingBackend
from sklearn.linear_model import LogisticRegression

import elsewise as ew
from elsewise.certificate import share_limit
from elsewise.errors import InvalidInput, MissingExtra

FAST = ew.Settings(iterations=3, draws=39)
ASKED = {
    "target": ew.targets.at_least(0.6),
    "bounds": ew.Bounds(inputs=0.7, outputs=0.2),
    "settings": FAST,
}


def people(n: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "income": rng.normal(30.0, 8.0, n),
            "debt": rng.normal(5.0, 2.0, n),
            "home": rng.choice(["own", "rent"], n),
            "region": rng.choice(["north", "south", "west"], n, p=[0.5, 0.3, 0.2]),
        }
    )


FRAME = people()


def score(rows: pd.DataFrame) -> np.ndarray:
    level = 0.1 * (rows["income"] - 30) - 0.3 * (rows["debt"] - 5) + (rows["home"] == "own")
    return np.asarray(1.0 / (1.0 + np.exp(-level)))


# A lambda, which plain pickle would refuse.
MODEL = ew.models.function(lambda rows: score(rows), smooth=True)


def groups(model: object = MODEL, frame: pd.DataFrame = FRAME, **more: object) -> ew.Explanations:
    return ew.explain_groups(model, frame, **({"by": "region"} | ASKED | more))


def saved(explanation: ew.Explanation, folder: Path) -> bytes:
    """Everything an explanation says of itself, with the hashes of its arrays."""
    return (explanation.save(folder) / "explanation.json").read_bytes()


# --- groups = one by one --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def alone() -> dict[str, ew.Explanation]:
    """Each group explained by itself, with the seed the table gave."""
    schema = ew.Schema.infer(FRAME).freeze("region")
    seeds = groups().table["seed"]
    return {
        name: ew.explain(
            MODEL,
            rows,
            schema=schema,
            background=FRAME,
            seed=int(seeds[name]),
            **ASKED,
        )
        for name, rows in FRAME.groupby("region")
    }


@pytest.mark.parametrize("jobs", [1, 2])
def test_groups_are_one_by_one(jobs: int, alone: dict[str, ew.Explanation], tmp_path: Path) -> None:
    found = groups(jobs=jobs)
    assert list(found) == list(alone) == ["north", "south", "west"]
    for name, explanation in found.items():
        expected = alone[name]
        pd.testing.assert_frame_equal(
            explanation.counterfactual, expected.counterfactual, check_exact=True
        )
        pd.testing.assert_frame_equal(explanation.factual, FRAME[FRAME["region"] == name])
        assert saved(explanation, tmp_path / name) == saved(expected, tmp_path / f"{name}-alone")


def test_other_groups_change_nothing(alone: dict[str, ew.Explanation]) -> None:
    two = FRAME[FRAME["region"] != "west"]
    schema = ew.Schema.infer(FRAME)
    found = groups(frame=two, schema=schema, background=FRAME)
    for name in ("north", "south"):
        assert np.array_equal(found[name].rows.codes, alone[name].rows.codes)


def test_seeds_are_of_the_name_and_the_seed() -> None:
    first, second = groups().table["seed"], groups(seed=1).table["seed"]
    assert first.is_unique
    assert set(first).isdisjoint(second)


@pytest.mark.slow
def test_an_explanation_from_a_worker_is_whole(tmp_path: Path) -> None:
    """Its model is the caller's own, and everything can be asked of it."""
    found = groups(jobs=2)
    explanation = found["north"]
    assert explanation.model is MODEL
    assert found["north"] is explanation
    assert "north" in found
    assert next(iter(found.values())).model is MODEL
    fresh = people(130)[120:].assign(region="north")
    assert explanation.apply(fresh).index.equals(fresh.index)
    assert np.array_equal(
        explanation.problem.outputs.values(explanation.problem.factual), explanation.factual_outputs
    )
    assert explanation.report(tmp_path / "one.html").exists()
    loaded = ew.load(explanation.save(tmp_path / "run"), model=MODEL)
    assert loaded.certificate == explanation.certificate


@pytest.mark.slow
def test_estimators_and_networks_travel() -> None:
    import torch  # not above: workers import this file, and torch is slow to load

    numbers = FRAME[["income", "debt"]]
    outcome = score(FRAME) > 0.5
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Sigmoid())
    models = {
        "estimator": LogisticRegression().fit(numbers, outcome),
        "network": ew.models.torch_model(net, prepare=lambda codes: codes / 10),
    }
    task = ew.Request(name="", model=None, rows=numbers, **ASKED)
    near, far = (ew.explain_sweep(task, model=models, jobs=jobs) for jobs in (1, 2))
    assert not far.failures
    for name in models:
        assert np.array_equal(near[name].rows.codes, far[name].rows.codes)
        assert near[name].certificate == far[name].certificate


# --- what groups there are ------------------------------------------------------------------------


def test_simultaneous_groups_share_the_error() -> None:
    """Three groups at 95 % together are three at 98.3 %, and their limits say so."""
    target = ew.targets.share(0.7, above=0.5)
    share = {"target": target, "certify": "held-out", "bounds": None, "frame": people(600)}
    alone, together = groups(**share), groups(**share, simultaneous=True)
    level = 1.0 - 0.05 / 3
    assert alone.table["confidence"].eq(0.95).all()
    np.testing.assert_allclose(together.table["confidence"], level)
    for name, explanation in together.items():
        reached = explanation.certificate.reached
        assert reached is not None
        exact = share_limit(reached.arrived, reached.rows, level)
        assert reached.limit == (1.0 - exact if reached.falling else exact)
        row = together.table.loc[name]
        assert row["asked"] == 0.7
        assert (row["before"], row["reached"]) == (reached.before, reached.reached)
        assert row["limit"] == reached.limit
    # Enough draws for the smaller error, where the settings have too few.
    assert [request.settings.draws for request in together.requests] == [60] * 3


def test_by_several_columns_a_series_and_missing_values() -> None:
    both = groups(by=["home", "region"])
    assert both.table.index.names == ["home", "region"]
    assert len(both.table) == 6
    assert both["own", "north"].factual["home"].eq("own").all()
    assert both.table["rows"].sum() == len(FRAME)

    region = FRAME["region"].where(FRAME["region"] != "west").rename("area")
    outside = groups(by=region, frame=FRAME.drop(columns="region"))
    assert outside.table.index.name == "area"
    assert list(outside) == ["north", "south", "(missing)"]
    assert outside.table["rows"].sum() == len(FRAME)
    assert "region" not in outside["(missing)"].factual


def test_rows_stay_in_their_group() -> None:
    """A model that rewards another region: the column is frozen, the Series is not."""
    model = ew.models.function(lambda rows: 0.9 * (rows["region"] == "north") + 0.05)
    for name, explanation in groups(model).items():
        assert explanation.counterfactual["region"].eq(name).all()
    outside = groups(model, by=FRAME["region"].rename("from"))
    assert outside["south"].counterfactual["region"].eq("north").any()


def test_groups_share_a_background_with_dates_of_its_own() -> None:
    """The model is asked about rows of other groups, whose fixed values a group need not have."""
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(len(FRAME)), "D")
    dated = FRAME.assign(day=days)
    found = groups(frame=dated)
    assert not found.failures
    north = found["north"].counterfactual
    assert north["day"].equals(dated.loc[north.index, "day"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"by": "regoin"}, "by: expected columns of the frame, received 'regoin'"),
        ({"by": ["region", "x"]}, "received 'x'"),
        ({"by": []}, "received no column"),
        ({"by": 3}, "received 3"),
        ({"by": FRAME["region"][:-1]}, "by: expected a Series with the frame's index"),
        ({"seed": -1}, "seed: expected a whole number"),
        ({"seed": "0"}, "seed: expected a whole number"),
        ({"jobs": 0}, "jobs: expected a whole number"),
        ({"frame": FRAME[:0], "schema": ew.Schema.infer(FRAME)}, "requests: expected at least one"),
        ({"frame": FRAME.to_numpy()}, "frame: expected an array .rows, columns. of numbers"),
    ],
)
def test_bad_groups_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        groups(**change)


# --- what fails -----------------------------------------------------------------------------------


def fails_in_the_west(rows: pd.DataFrame) -> np.ndarray:
    if rows["region"].eq("west").all():
        raise ZeroDivisionError("no west")
    return score(rows)


@pytest.mark.parametrize("jobs", [1, 2])
def test_failures_are_rows_of_the_table(jobs: int, tmp_path: Path) -> None:
    lonely = pd.concat([FRAME, FRAME[:1].assign(region="east")], ignore_index=True)
    found = groups(fails_in_the_west, lonely, jobs=jobs)
    assert list(found) == ["north", "south"]
    assert list(found.failures) == ["east", "west"]
    table = found.table
    assert table["status"].tolist() == ["failed", "described", "described", "failed"]
    assert table["ok"].tolist() == [False, True, True, False]
    assert "expected at least 2 rows, received 1" in table.loc["east", "error"]
    assert "ZeroDivisionError: no west" in table.loc["west", "error"]
    assert "fails_in_the_west" in found.failures["west"].traceback
    with pytest.raises(KeyError, match="'west' failed: ModelError"):
        _ = found["west"]
    with pytest.raises(KeyError, match="elsewhere"):
        _ = found["elsewhere"]
    page = found.report(tmp_path / "all.html", title="By region").read_text("utf-8")
    assert "region=north" in page
    assert "region=south" in page


class Locked:
    """A model that cannot be pickled."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self, rows: pd.DataFrame) -> np.ndarray:
        with self.lock:
            return score(rows)


def test_a_model_that_cannot_travel_is_refused_with_the_remedy() -> None:
    with pytest.raises(InvalidInput, match=r"model: expected .* Locked .*jobs=1.*threading"):
        groups(Locked(), jobs=2)
    assert not groups(Locked(), jobs=1).failures
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert not groups(Locked()).failures


class Plain(ThreadingBackend):
    """A backend as a cluster may register it: nothing comes before all is done."""

    supports_return_generator = False
    supports_sharedmem = False


def test_a_backend_of_the_users_own() -> None:
    joblib.register_parallel_backend("plain", Plain)
    with joblib.parallel_config(backend="plain", n_jobs=2):
        assert list(groups()) == ["north", "south", "west"]


def test_ctrl_c_stops() -> None:
    def interrupted(rows: pd.DataFrame) -> np.ndarray:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        groups(interrupted)


def test_refusals_can_be_pickled() -> None:
    for error in (
        InvalidInput("a", expected="b", received=3, fix="c"),
        MissingExtra("dask", "dask"),
    ):
        assert repr(pickle.loads(pickle.dumps(error))) == repr(error)


# --- how it runs ----------------------------------------------------------------------------------


def counts_threads(rows: pd.DataFrame) -> np.ndarray:
    import threadpoolctl

    raise RuntimeError(f"threads {max(p['num_threads'] for p in threadpoolctl.threadpool_info())}")


def test_workers_share_the_cores() -> None:
    cores = joblib.cpu_count()
    found = groups(counts_threads, jobs=2)
    for failure in found.failures.values():
        threads = int(failure.error.partition("threads ")[2].partition(".")[0])
        assert threads <= max(1, cores // 2)


def test_one_bar_for_all(capsys: pytest.CaptureFixture[str]) -> None:
    groups(progress=True)
    shown = capsys.readouterr().err
    assert "3/3" in shown
    assert "iterations" not in shown
    groups(progress=False)
    assert capsys.readouterr().err == ""


# --- sweeps and tasks -----------------------------------------------------------------------------

TASK = ew.Request(name="", model=score, rows=FRAME[:40], **ASKED)


def test_a_sweep_is_every_combination() -> None:
    limits = {"near": ew.Bounds(outputs=0.1), "far": ew.Bounds(outputs=0.3)}
    aims = [ew.targets.at_least(0.6), ew.targets.constant(0.7)]
    found = ew.explain_sweep(TASK, bounds=limits, target=aims, seed=[3, 4])
    assert found.table.index.names == ["bounds", "target", "seed"]
    assert len(found) == 8
    assert list(found)[:2] == [("near", "at_least(0.6)", 3), ("near", "at_least(0.6)", 4)]
    one = found["far", "constant(0.7)", 4]
    assert one.problem.seed == 4
    assert one.problem.bounds == limits["far"]
    assert one.problem.target == aims[1]
    single = ew.explain(
        score, FRAME[:40], target=aims[1], bounds=limits["far"], seed=4, settings=FAST
    )
    assert np.array_equal(one.rows.codes, single.rows.codes)


def test_the_table_says_what_the_explanations_say() -> None:
    found = ew.explain_sweep(TASK, seed=range(2))
    for seed, line in found.table.iterrows():
        explanation = found[seed]
        moved = (explanation.counterfactual != FRAME[:40]).any(axis=1)
        assert line["rows"] == 40
        assert line["inputs_limit"] == explanation.certificate.inputs.upper_limit
        assert line["outputs"] == explanation.certificate.outputs.estimate
        assert line["mean_before"] == pytest.approx(score(FRAME[:40]).mean())
        assert line["mean_after"] == pytest.approx(score(explanation.counterfactual).mean())
        assert line["rows_changed"] == pytest.approx(moved.mean())
        assert line["certificate"] == "in-sample"
        assert line["error"] == ""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ew.explain_sweep(TASK), "choices: expected fields of Request .* received none"),
        (lambda: ew.explain_sweep(TASK, limit=[1]), "choices: .* received 'limit'"),
        (lambda: ew.explain_sweep(TASK, seed=3), "choices: expected a mapping .* received int"),
        (lambda: ew.explain_sweep(TASK, seed=[]), "requests: expected at least one Request"),
        (lambda: ew.explain_many([]), "requests: expected at least one Request, received none"),
        (
            lambda: ew.explain_many([TASK, 3]),
            "requests: expected at least one Request, received int",
        ),
        (lambda: ew.explain_many([TASK, TASK]), "names that differ, also as text, received ''"),
        (lambda: ew.explain_sweep(TASK, seed=[1, "1"]), "received 'seed=1' more than once"),
    ],
)
def test_bad_sweeps_are_refused(call: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call()


def test_answers_come_in_the_order_of_the_tasks() -> None:
    def slow(rows: pd.DataFrame) -> np.ndarray:
        time.sleep(0.02)
        return score(rows)

    tasks = [
        ew.Request(name=("first", 1), model=slow, rows=FRAME[:30], **ASKED),
        ew.Request(name="second", model=score, rows=FRAME[:30], **ASKED),
    ]
    with joblib.parallel_config(backend="threading", n_jobs=2):
        found = ew.explain_many(tasks)
    assert list(found) == [("first", 1), "second"]
    assert found.table.index.tolist() == [("first", 1), "second"]
    assert repr(found) == "<Explanations: 2 requests, 2 as asked for, 0 failed>"


@pytest.mark.slow
def test_a_worker_that_dies_fails_only_its_task() -> None:
    """Last in this file, because it costs the workers that the others share."""
    here = os.getpid()

    def dies_in_the_west(rows: pd.DataFrame) -> np.ndarray:
        if os.getpid() != here and rows["region"].eq("west").all():
            os._exit(1)
        return score(rows)

    found = groups(dies_in_the_west, jobs=2)
    assert list(found) == ["north", "south"]
    assert "TerminatedWorkerError" in found.failures["west"].error
