"""Dask populations: partitions give what the whole gives, and a lost worker loses nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from distributed import Client, LocalCluster

import elsewise as ew
from elsewise.batch.dask import limit_with, random_order, what_more_rows_buy
from elsewise.errors import InvalidInput, MissingExtra

pytestmark = pytest.mark.slow

FAST = ew.Settings(iterations=3, draws=39)
AIM = ew.targets.at_least(0.6)
BOTH = ew.Bounds(inputs=2.0, outputs=0.3)


def people(n: int, seed: int = 0) -> pd.DataFrame:
    """Every kind of column, missing cells and a level that one row in a thousand has."""
    rng = np.random.default_rng(seed)
    levels = ["x", "y", "z"]
    frame = pd.DataFrame(
        {
            "id": np.arange(n),
            "income": rng.normal(30.0, 8.0, n),
            "debt": np.where(rng.random(n) < 0.05, np.nan, rng.normal(5.0, 2.0, n)),
            "cards": rng.integers(0, 6, n).astype(np.int8),
            "member": rng.random(n) < 0.5,
            "class": pd.Categorical(rng.choice(levels, n), [*levels, "unused"]),
            "home": rng.choice(["own", "rent"], n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 99, n), "D"),
        }
    )
    frame.loc[n // 2 :: 1000, "home"] = "boat"
    return frame


def score(rows: pd.DataFrame) -> np.ndarray:
    level = 0.1 * (rows["income"] - 30) - 0.3 * (rows["debt"].fillna(5.0) - 5) - 0.1 * rows["cards"]
    own = np.asarray(rows["home"] == "own", dtype=float)  # Dask turns text into Arrow's strings
    level = level + 0.5 * rows["member"] + (rows["class"] == "x") + own - 1.0
    return np.asarray(1.0 / (1.0 + np.exp(-level)))


PEOPLE = people(500)
SCHEMA = ew.Schema.infer(PEOPLE).freeze("id")


def cut(frame: pd.DataFrame, sizes: list[int]) -> dd.DataFrame:
    """A Dask frame with partitions of these sizes."""
    ends = np.cumsum([0, *sizes])
    assert ends[-1] == len(frame)
    parts = [frame.iloc[a:b] for a, b in pairwise(ends)]
    return dd.from_map(lambda part: part, parts, meta=frame.iloc[:0])


def explained(model: Any = score, **more: Any) -> ew.Explanation:
    asked = {"target": AIM, "bounds": BOTH, "schema": SCHEMA, "settings": FAST} | more
    return ew.explain(model, PEOPLE, **asked)


# --- partitions = whole ---------------------------------------------------------------------------


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("sizes", [[200, 300], [1, 0, 498, 1], [77] * 6 + [38]])
def test_partitions_give_what_the_whole_gives(smooth: bool, sizes: list[int]) -> None:
    explanation = explained(ew.models.function(score, smooth=smooth))
    whole = explanation.apply(PEOPLE)
    moved = ew.batch.dask.apply(explanation, cut(PEOPLE, sizes))
    pd.testing.assert_frame_equal(moved.compute(scheduler="sync"), whole, check_exact=True)
    pd.testing.assert_series_equal(moved.dtypes, whole.dtypes)
    assert not whole.equals(PEOPLE)


def test_nothing_is_read_before_it_is_asked_for() -> None:
    def never(k: int) -> pd.DataFrame:
        raise AssertionError("read")

    lazy = dd.from_map(never, range(3), meta=PEOPLE.iloc[:0])
    moved = ew.batch.dask.apply(explained(), lazy)
    assert list(moved.columns) == list(PEOPLE.columns)
    assert moved["class"].cat.known
    with pytest.raises(AssertionError, match="read"):
        moved.compute(scheduler="sync")


def test_a_loaded_run_moves_partitions(tmp_path: Path) -> None:
    explanation = explained()
    loaded = ew.load(explanation.save(tmp_path / "run"), model=score)
    moved = ew.batch.dask.apply(loaded, cut(PEOPLE, [100, 400])).compute(scheduler="sync")
    assert moved.equals(explanation.apply(PEOPLE))


# --- samples --------------------------------------------------------------------------------------


def test_a_sample_is_uniform_and_does_not_see_partitions() -> None:
    frame = pd.DataFrame({"x": np.arange(400)})
    cuts = [[400], [1, 0, 150, 249], [100] * 4]
    drawn = [ew.batch.dask.sample(cut(frame, sizes), 40, seed=3) for sizes in cuts]
    for sample in drawn:
        pd.testing.assert_frame_equal(sample, drawn[0])
    assert drawn[0]["x"].is_unique
    assert drawn[0]["x"].tolist() == drawn[0].index.tolist()

    counts = np.zeros(400)
    for seed in range(200):
        counts[random_order(400, 40, seed, "rows")] += 1
    # Each row is in a sample with probability 1/10; without replacement the statistic is smaller.
    statistic = float(((counts - 20.0) ** 2 / (20.0 * 0.9)).sum())
    low, high = scipy.stats.chi2(399).ppf([0.001, 0.999])
    assert low < statistic < high


def test_the_schema_is_that_of_all_rows() -> None:
    rows = people(3000)
    rows.loc[1234, "income"] = 500.0
    rows["cards"] = rows["cards"].astype(float)
    rows.loc[17, "cards"] = 2.5  # the only fraction
    found = ew.batch.dask.infer_schema(cut(rows, [1000, 0, 1999, 1]))
    whole = ew.Schema.infer(rows)
    for feature, expected in zip(found.features, whole.features, strict=True):
        for part in ("name", "kind", "free", "observed", "levels", "ordered"):
            assert getattr(feature, part) == getattr(expected, part)
    assert found["debt"].scale == pytest.approx(whole["debt"].scale, rel=0.1)
    assert "boat" in found["home"].levels


# --- explaining -----------------------------------------------------------------------------------


def numbers(n: int) -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(1).normal(size=(n, 3)), columns=["a", "b", "c"])


def chance(rows: pd.DataFrame) -> np.ndarray:
    return np.asarray(1.0 / (1.0 + np.exp(-(rows["a"] + 0.5 * rows["b"] - 1.0))))


SMOOTH = ew.models.function(chance, smooth=True)


def test_the_certificate_speaks_of_the_whole_frame() -> None:
    """Bounds from 800 of 12,000 rows, against the distances of all of them."""
    rows = numbers(12_000)
    asked = {"target": AIM, "bounds": ew.Bounds(outputs=0.12), "settings": FAST, "rows": 800}
    explanation = ew.batch.dask.explain(SMOOTH, cut(rows, [4000, 8000]), **asked)
    certificate = explanation.certificate
    assert certificate.kind.value == "held-out"
    assert certificate.rows == 400
    assert explanation.factual.equals(rows.iloc[explanation.index])

    moved = ew.batch.dask.apply(explanation, cut(rows, [6000, 6000])).compute(scheduler="sync")
    gaps = np.sort(chance(moved)) - np.sort(np.maximum(chance(rows), 0.6))
    truth = float(np.sqrt((gaps[600:-600] ** 2).mean()))  # without 5 % at either end
    assert 0.8 * truth < certificate.outputs.estimate < 1.2 * truth
    assert truth < certificate.outputs.upper_limit

    again = ew.batch.dask.explain(SMOOTH, cut(rows, [5, 11_995]), **asked)
    assert again.certificate == certificate
    assert again.counterfactual.equals(explanation.counterfactual)


def test_the_size_is_what_the_certificate_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ew.batch.dask, "PILOT", 200)
    frame = cut(numbers(3000), [1500, 1500])
    asked = {"target": AIM, "settings": FAST}
    loose, tight = (
        ew.batch.dask.explain(SMOOTH, frame, bounds=limits, **asked)
        for limits in (ew.Bounds(inputs=9.0, outputs=9.0), ew.Bounds(outputs=0.12))
    )
    assert len(loose.index) == 200  # the bounds are far away: the pilot's size is enough
    assert 200 < len(tight.index) <= 2800  # never the pilot's own rows
    said = tight.status.notices[-1]
    assert said.startswith(f"sample: {len(tight.index):,} of 3,000 rows, drawn at random")
    assert "the limits would be about" in said


def test_more_rows_buy_what_is_said() -> None:
    """The inverse of suggested_rows, which finds the rows for a limit."""
    explanation = ew.explain(
        SMOOTH, numbers(500), target=AIM, bounds=BOTH, settings=FAST, certify="held-out"
    )
    side, rows = explanation.certificate.outputs, explanation.certificate.rows
    less = limit_with(side, rows, 4 * rows)
    assert side.estimate < less < side.upper_limit
    needed = ew.confidence.suggested_rows(side.upper_limit, side.estimate, less, rows)
    assert needed == pytest.approx(4 * rows, abs=1)
    said = what_more_rows_buy(explanation, 10_000)
    assert "500 of 10,000 rows, drawn at random, 250 of them certified; with 1,000 the" in said
    assert f"{less:.4g} (outputs, now {side.upper_limit:.4g})" in said
    assert what_more_rows_buy(explanation, 500).endswith("there are no more")


# --- refusals -------------------------------------------------------------------------------------

DASK = cut(PEOPLE, [500])
UNKNOWN = DASK[["class"]].assign(**{"class": DASK["class"].cat.as_unknown()})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ew.batch.dask.explain(score, PEOPLE, target=AIM),
            "frame: expected a Dask DataFrame, received pandas",
        ),
        (
            lambda: ew.batch.dask.explain(score, DASK, target=AIM, rows=0.5),
            "rows: expected a whole number of rows",
        ),
        (
            lambda: ew.batch.dask.explain(score, cut(PEOPLE[:1], [1]), target=AIM),
            "frame: expected at least 2 rows, received 1",
        ),
        (
            lambda: ew.batch.dask.explain(score, DASK, target=AIM, seed=-1),
            "seed: expected a whole number",
        ),
        (
            lambda: ew.batch.dask.apply(explained(), DASK.drop(columns="debt")),
            "no column 'debt'",
        ),
        (lambda: ew.batch.dask.sample(UNKNOWN, 3), r"column 'class'.*frame.categorize"),
    ],
)
def test_bad_input_is_refused(call: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call()


def test_without_dask_the_fix_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dask.dataframe", None)
    with pytest.raises(MissingExtra, match=r"elsewise\[dask\]"):
        ew.batch.dask.sample(DASK, 3)


def test_the_functions_for_dask_need_no_import_of_their_own() -> None:
    code = "import elsewise as ew; ew.batch.dask.explain; ew.batch.nothing"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "module 'elsewise.batch' has no attribute 'nothing'" in done.stderr


def test_the_core_imports_without_dask() -> None:
    code = "import sys; sys.modules['dask'] = None; import elsewise.batch.dask, elsewise.batch"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# --- a real cluster -------------------------------------------------------------------------------


def slow_chance(rows: pd.DataFrame) -> np.ndarray:
    time.sleep(0.01)
    return chance(rows)


def move_rows_and_kill(client: Client, folder: Path) -> None:
    """Kill a worker while it moves rows: every row is written once, as one machine moves it."""
    rows = numbers(240).assign(id=range(240))
    explanation = ew.explain(
        ew.models.function(slow_chance, smooth=True),
        rows,
        target=AIM,
        bounds=BOTH,
        schema=ew.Schema.infer(rows).freeze("id"),
        settings=FAST,
    )
    moved = ew.batch.dask.apply(explanation, cut(rows, [20] * 12))
    pids = client.run(os.getpid)
    future = client.compute(moved.to_parquet(folder, compute=False))
    busy: dict[str, Any] = {}
    while len(list(folder.glob("*.parquet"))) < 2 or not busy:
        assert not future.done()
        time.sleep(0.005)
        busy = {worker: keys for worker, keys in client.processing().items() if keys}
    os.kill(pids[next(iter(busy))], signal.SIGKILL)
    assert not future.done()
    future.result(timeout=120)
    found = pd.read_parquet(folder).sort_values("id", ignore_index=True)
    assert found["id"].tolist() == list(range(240))
    pd.testing.assert_frame_equal(found, explanation.apply(rows), check_exact=True)


def explain_groups_there() -> None:
    """The cluster gives what this process gives."""
    rows = numbers(90).assign(region=["north", "south", "west"] * 30)
    asked = {"by": "region", "target": AIM, "bounds": BOTH, "settings": FAST}
    here = ew.explain_groups(SMOOTH, rows, **asked)
    with joblib.parallel_config(backend="dask"):
        there = ew.explain_groups(SMOOTH, rows, **asked)
    assert list(there) == ["north", "south", "west"]
    for name in here:
        assert np.array_equal(here[name].rows.codes, there[name].rows.codes)


def test_a_cluster_of_processes_one_of_which_is_killed(tmp_path: Path) -> None:
    """One test, because starting three workers costs more than what they do here."""
    cluster = LocalCluster(
        n_workers=3,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        memory_limit=0,
    )
    with cluster, Client(cluster) as client:
        move_rows_and_kill(client, tmp_path / "moved")
        explain_groups_there()
