"""Where the time of an ordinary question goes: ratios of processor time, old and new in one run.

    python -m benchmarks.speed               # measures, keeps docs/speed.json
    python -m benchmarks.speed readme wide   # only these parts

Every part runs in a process of its own. "Before" is what the library did until 2026-11-18: the
pipeline asked frame by frame (here a function that calls it), ranks sorted by comparison (kept
below), thread pools of BLAS left alone. ``python -m benchmarks.growth`` puts the results on
docs/performance.md.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "speed.json"
NO_AVX512 = {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL"}
RUNS = 3


def processor_time(function: Callable[[], object], runs: int = RUNS) -> float:
    """Return the least processor time of a few runs: other processes only ever add to it."""
    found = []
    for _ in range(runs):
        start = time.process_time()
        function()
        found.append(time.process_time() - start)
    return min(found)


def readme() -> dict[str, float]:
    """The example of the README as of 2026-11-18: 242 rows, strings and numbers, both bounds."""
    import elsewise as ew

    from .fixtures import credit_model

    data = ew.datasets.german_credit()
    past = data.frame[:800]
    model = credit_model(past, data.outcome[:800])
    refused = past[model.predict_proba(past)[:, 1] > 0.4]

    def ask(asked: Any) -> ew.Explanation:
        return ew.explain(
            asked,
            refused,
            target=ew.targets.at_most(0.35),
            bounds=ew.Bounds(inputs=0.25, outputs=0.06),
            schema=ew.Schema.infer(refused, past).freeze("Age", "Sex"),
            background=past,
            seed=0,
        )

    return beside(model, ask, smooth=True)


def beside(model: Any, ask: Callable[[Any], Any], *, smooth: bool) -> dict[str, float]:
    """Return the times of a question with a pipeline compiled and asked as it is."""
    import elsewise as ew

    slow = ew.models.function(
        lambda frame: model.predict_proba(frame)[:, 1], smooth=smooth, probability=True
    )
    notices = ask(model).status.notices
    assert not any("asked as it is" in notice for notice in notices), notices
    new, old = processor_time(lambda: ask(model)), processor_time(lambda: ask(slow))
    return {"before": old, "after": new}


def models() -> dict[str, dict[str, float]]:
    """German Credit from raw strings with the six models of the documentation."""
    from catboost import CatBoostClassifier
    from lightgbm import LGBMClassifier
    from sklearn.compose import ColumnTransformer, make_column_selector
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from xgboost import XGBClassifier

    import elsewise as ew

    finals = {
        "logistic regression": LogisticRegression(),
        "random forest": RandomForestClassifier(20, max_depth=6, random_state=0, n_jobs=1),
        "histogram boosting": HistGradientBoostingClassifier(max_iter=20, random_state=0),
        "XGBoost": XGBClassifier(max_depth=4, n_estimators=20, n_jobs=1),
        "LightGBM": LGBMClassifier(verbose=-1, n_estimators=20, n_jobs=1),
        "CatBoost": CatBoostClassifier(
            iterations=20, thread_count=1, verbose=0, allow_writing_files=False
        ),
    }
    data = ew.datasets.german_credit()
    rows = data.frame[:200]

    def ask(asked: Any) -> ew.Explanation:
        return ew.explain(
            asked,
            rows,
            target=ew.targets.at_most(0.3),
            bounds=ew.Bounds(outputs=0.1),
            background=data.frame,
            certify="in-sample",
        )

    found = {}
    for name, final in finals.items():
        texts = make_pipeline(
            SimpleImputer(strategy="constant", fill_value="none"),
            OneHotEncoder(handle_unknown="ignore", sparse_output=False),
        )
        amounts = make_pipeline(SimpleImputer(), StandardScaler())
        prepare = ColumnTransformer(
            [
                ("texts", texts, make_column_selector(dtype_exclude="number")),
                ("amounts", amounts, make_column_selector(dtype_include="number")),
            ]
        )
        model = make_pipeline(prepare, final).fit(data.frame, data.outcome)
        found[name] = beside(model, ask, smooth=name == "logistic regression")
    return found


def arrays() -> dict[str, float]:
    """A question through a pipeline, and the same one on arrays prepared beforehand."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import elsewise as ew

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(1000, 8)) * 3 + 1, columns=list("abcdefgh"))
    outcome = frame.sum(axis=1) + rng.normal(size=1000) > 8
    prepare = make_column_transformer((StandardScaler(), list("abcdefgh")))
    model = make_pipeline(prepare, LogisticRegression()).fit(frame, outcome)
    prepared = pd.DataFrame(prepare.fit_transform(frame), columns=frame.columns)
    plain = LogisticRegression().fit(prepared, outcome)

    def ask(asked: Any, rows: pd.DataFrame) -> ew.Explanation:
        bounds = ew.Bounds(inputs=0.4, outputs=0.2)
        return ew.explain(asked, rows, target=ew.targets.at_least(0.6), bounds=bounds)

    return {
        "before": processor_time(lambda: ask(plain, prepared)),
        "after": processor_time(lambda: ask(model, frame)),
    }


def _sorted_by_comparison(table: Any, rows: np.ndarray) -> np.ndarray:
    """Return sorted resamples as they were made before."""
    from elsewise._arrays import inverse_permutation

    kind = np.int16 if table.order.shape[-1] <= np.iinfo(np.int16).max else np.int32
    ranks = inverse_permutation(table.order).astype(kind)
    ranks = np.ascontiguousarray(ranks[:, rows].transpose(1, 0, 2))
    ranks.sort(axis=-1)
    count, n = table.order.shape
    return np.asarray(np.take(table.values, ranks + n * np.arange(count)[:, None]))


def certificate() -> dict[str, dict[str, float]]:
    """N = 1000, d = 4, logistic regression, both bounds: in-sample and held-out."""
    from sklearn.linear_model import LogisticRegression

    import elsewise as ew
    from elsewise.confidence import _bootstrap

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(1000, 4)), columns=list("abcd"))
    model = LogisticRegression().fit(frame, frame.sum(axis=1) + rng.normal(size=1000) > 0)
    quick = _bootstrap._resample
    found = {}
    for certify in ("in-sample", "held-out"):

        def ask(certify: str = certify) -> ew.Explanation:
            return ew.explain(
                model,
                frame,
                target=ew.targets.at_least(0.6),
                bounds=ew.Bounds(inputs=0.35, outputs=0.25),
                certify=certify,
            )

        limits: list[float] = []

        def once(ask: Callable[[], Any] = ask, limits: list[float] = limits) -> None:
            limits.append(ask().certificate.inputs.at_most)

        once()
        new = processor_time(once, runs=1)
        try:
            _bootstrap._resample = _sorted_by_comparison
            old = processor_time(once, runs=1)
        finally:
            _bootstrap._resample = quick
        assert len(set(limits)) == 1
        found[certify] = {"before": old, "after": new}
    return found


def wide() -> dict[str, float]:
    """A frame of 50 rows and 5,000 columns, a linear model, both bounds: time and memory."""
    from sklearn.linear_model import LinearRegression

    import elsewise as ew

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(50, 5000)), columns=[f"x{j}" for j in range(5000)])
    model = LinearRegression().fit(frame, frame.to_numpy() @ rng.normal(size=5000) / 70)
    start = time.process_time()
    ew.explain(
        model, frame, target=ew.targets.shift(0.5), bounds=ew.Bounds(inputs=0.5, outputs=0.5)
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": time.process_time() - start, "gigabytes": peak * 1024 / 1e9}


def threads() -> dict[str, dict[str, float]]:
    """20,000 rows, 23 columns, a linear model, no environment variable set."""
    from sklearn.linear_model import LinearRegression

    import elsewise as ew
    from elsewise import _resources

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(20_000, 23)), columns=[f"x{j}" for j in range(23)])
    weights = rng.normal(size=23) / 5
    model = LinearRegression().fit(frame, frame.to_numpy() @ weights)

    def ask(count: int) -> dict[str, float]:
        clock, start = time.perf_counter(), time.process_time()
        ew.explain(
            model,
            frame,
            target=ew.targets.shift(0.5),
            bounds=ew.Bounds(inputs=0.15, outputs=0.45),
            settings=ew.Settings(threads=count),
        )
        used = time.process_time() - start
        return {"clock": time.perf_counter() - clock, "processor": used}

    @contextmanager
    def pools_left_alone() -> Iterator[None]:
        held = _resources._POOLS
        _resources._POOLS = type(
            "Pools", (), {"hold": _nothing, "release": _nothing, "holders": 0}
        )()
        try:
            yield
        finally:
            _resources._POOLS = held

    found = {"one": ask(1), "two": ask(2)}
    with pools_left_alone():
        found |= {"one, before": ask(1), "two, before": ask(2)}
    return found


def _nothing(self: object) -> None:
    """Hold no pool."""


PARTS: dict[str, tuple[Callable[[], Any], dict[str, str]]] = {
    "readme": (readme, {"OMP_NUM_THREADS": "1"}),
    "models": (models, {"OMP_NUM_THREADS": "1"}),
    "arrays": (arrays, {"OMP_NUM_THREADS": "1"}),
    "certificate": (certificate, {"OMP_NUM_THREADS": "1"}),
    "certificate without AVX-512": (certificate, {"OMP_NUM_THREADS": "1"} | NO_AVX512),
    "wide": (wide, {"OMP_NUM_THREADS": "1"}),
    "threads": (threads, {}),
}


def main() -> None:
    """Measure the parts named, or all of them, and keep the results."""
    names = sys.argv[1:]
    if names[:1] == ["--part"]:
        print(json.dumps(PARTS[names[1]][0]()))
        return
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    for name in names or PARTS:
        plain = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.speed", "--part", name],
            cwd=ROOT,
            env=plain | PARTS[name][1],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{name}:\n{done.stderr}")
        results[name] = json.loads(done.stdout.splitlines()[-1])
        results["measured"] = {
            "date": time.strftime("%Y-%m-%d"),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}",
            "load": round(os.getloadavg()[0], 1),
        }
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
        print(name, results[name], flush=True)


if __name__ == "__main__":
    main()
