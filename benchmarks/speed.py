"""Where the time of an ordinary question goes: processor time before and after, in one run.

    python -m benchmarks.speed               # measures every part, keeps docs/speed.json
    python -m benchmarks.speed readme wide   # only these parts

"Before" is the library as it was on 2026-11-18, taken from the repository's history into a
temporary folder. A part asks the same questions there and here, in processes of their own that
take turns, on one thread; the least time of each question counts, because other processes only
ever add to it. ``python -m benchmarks.growth`` puts the results on docs/performance.md.
"""

from __future__ import annotations

import io
import json
import os
import platform
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "speed.json"
BEFORE = "bdd1ac1"
"""The commit measured as before: the same calls as today, none of the work on speed."""
NO_AVX512 = {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL"}
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
RUNS, TURNS = 3, 2
"""Runs of a question in one process, and processes of each side."""

Asked = Callable[[], Any]
Times = dict[str, float]


def processor_time(ask: Asked, runs: int = RUNS) -> float:
    """Return the least processor time of a few runs."""
    found = []
    for _ in range(runs):
        start = time.process_time()
        ask()
        found.append(time.process_time() - start)
    return min(found)


def compiled(ask: Asked) -> Asked:
    """Return the question as it is, once it is known that its pipeline is read into tables."""
    notices = getattr(ask().status, "notices", ())
    assert not any("asked as it is" in notice for notice in notices), notices
    return ask


# --- Questions, asked of the library before and after ---------------------------------------------


def readme() -> Times:
    """The example of the README as of 2026-11-18: 242 rows, strings and numbers, both bounds."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    import elsewise as ew

    data = ew.datasets.german_credit()
    past = data.frame[:800]
    prepare = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        remainder=StandardScaler(),
    )
    model = make_pipeline(prepare, LogisticRegression()).fit(past, data.outcome[:800])
    refused = past[model.predict_proba(past)[:, 1] > 0.4]

    def ask() -> ew.Explanation:
        return ew.explain(
            model,
            refused,
            target=ew.targets.at_most(0.35),
            bounds=ew.Bounds(inputs=0.25, outputs=0.06),
            schema=ew.Schema.infer(refused, past).freeze("Age", "Sex"),
            background=past,
            seed=0,
        )

    return {"README example, 242 rows": processor_time(compiled(ask))}


def german_models() -> dict[str, Any]:
    """Return the six models of the documentation, fitted to German Credit from raw strings."""
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
        found[name] = make_pipeline(prepare, final).fit(data.frame, data.outcome)
    return found


def models() -> Times:
    """The first 200 rows of German Credit, an output bound, with the six models."""
    import elsewise as ew

    background = ew.datasets.german_credit().frame

    def ask(model: Any) -> ew.Explanation:
        return ew.explain(
            model,
            background[:200],
            target=ew.targets.at_most(0.3),
            bounds=ew.Bounds(outputs=0.1),
            background=background,
            certify="in-sample",
        )

    return {
        f"German Credit, 200 rows, {name}": processor_time(compiled(lambda m=model: ask(m)))
        for name, model in german_models().items()
    }


def networks() -> Times:
    """COMPAS under the paper's two networks, an output bound, as in ``make paper``."""
    from benchmarks.paper.questions import ask

    import elsewise as ew

    found = {}
    for name in ("DNN", "RBFNet"):
        question = ask("COMPAS", name)
        found[f"COMPAS, {name}, {len(question.rows)} rows"] = processor_time(
            lambda question=question: ew.explain(
                question.model,
                question.rows,
                target=ew.targets.at_least(0.6),
                bounds=ew.Bounds(outputs=0.1),
                schema=question.schema,
                background=question.experiment.train,
                certify="in-sample",
            )
        )
    return found


def normal_rows(rows: int, columns: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a normal frame and noise."""
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(columns)]
    frame = pd.DataFrame(rng.normal(size=(rows, columns)), columns=names)
    return frame, rng.normal(size=rows)


def asked_of_1000(certify: str) -> Any:
    """Ask 1,000 rows of four columns, a logistic regression, both bounds."""
    from sklearn.linear_model import LogisticRegression

    import elsewise as ew

    frame, noise = normal_rows(1000, 4)
    return ew.explain(
        LogisticRegression().fit(frame, frame.sum(axis=1) + noise > 0),
        frame,
        target=ew.targets.at_least(0.6),
        bounds=ew.Bounds(inputs=0.35, outputs=0.25),
        certify=certify,
    )


def certificate() -> Times:
    """N = 1000, d = 4, logistic regression, both bounds: in-sample and held-out."""
    return {
        f"n = 1,000, d = 4, {kind}": processor_time(lambda kind=kind: asked_of_1000(kind), runs=1)
        for kind in ("in-sample", "held-out")
    }


def report() -> Times:
    """The report about 1,000 rows of German Credit under the pipeline of the README."""
    import elsewise as ew

    data = ew.datasets.german_credit()
    answer = ew.explain(
        german_models()["logistic regression"],
        data.frame,
        target=ew.targets.at_most(0.35),
        bounds=ew.Bounds(outputs=0.1),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        return {"report about 1,000 rows": processor_time(lambda: answer.report(path))}


def threads() -> Times:
    """20,000 rows, 23 columns, a linear model, no environment variable set."""
    from sklearn.linear_model import LinearRegression

    import elsewise as ew

    frame, _ = normal_rows(20_000, 23)
    weights = np.random.default_rng(1).normal(size=23) / 5
    model = LinearRegression().fit(frame, frame.to_numpy() @ weights)
    found = {}
    for count, name in ((1, "one"), (2, "two")):
        clock, start = time.perf_counter(), time.process_time()
        ew.explain(
            model,
            frame,
            target=ew.targets.shift(0.5),
            bounds=ew.Bounds(inputs=0.15, outputs=0.45),
            settings=ew.Settings(threads=count),
        )
        found[f"{name}, processor"] = time.process_time() - start
        found[f"{name}, clock"] = time.perf_counter() - clock
    return found


# --- Questions with a limit of their own, asked of the library as it is ---------------------------


def arrays() -> Times:
    """A question through a pipeline, and the same one on arrays prepared beforehand."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import elsewise as ew

    frame, noise = normal_rows(1000, 8)
    frame = frame * 3 + 1
    outcome = frame.sum(axis=1) + noise > 8
    prepare = make_column_transformer((StandardScaler(), list(frame)))
    model = make_pipeline(prepare, LogisticRegression()).fit(frame, outcome)
    prepared = pd.DataFrame(prepare.fit_transform(frame), columns=frame.columns)
    plain = LogisticRegression().fit(prepared, outcome)

    def ask(asked: Any, rows: pd.DataFrame) -> ew.Explanation:
        bounds = ew.Bounds(inputs=0.4, outputs=0.2)
        return ew.explain(asked, rows, target=ew.targets.at_least(0.6), bounds=bounds)

    return {
        "prepared": processor_time(lambda: ask(plain, prepared)),
        "pipeline": processor_time(lambda: ask(model, frame)),
    }


def used_by(ask: Asked) -> Times:
    """Return the processor time of a question, and the memory of the process at its largest."""
    start = time.process_time()
    ask()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": time.process_time() - start, "gigabytes": peak * 1024 / 1e9}


def wide() -> Times:
    """A frame of 50 rows and 5,000 columns, a linear model, both bounds."""
    from sklearn.linear_model import LinearRegression

    import elsewise as ew

    frame, _ = normal_rows(50, 5000)
    weights = np.random.default_rng(1).normal(size=5000) / 70
    model = LinearRegression().fit(frame, frame.to_numpy() @ weights)
    target, bounds = ew.targets.shift(0.5), ew.Bounds(inputs=0.5, outputs=0.5)
    return used_by(lambda: ew.explain(model, frame, target=target, bounds=bounds))


def levels_of(final: Any) -> Times:
    """300 rows with a free category of 10,000 levels before this estimator, both bounds."""
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    import elsewise as ew

    rng = np.random.default_rng(0)
    places = [f"place {k}" for k in range(10_000)]
    background = pd.DataFrame(
        {"place": [*places, *rng.choice(places, 2000)], "wage": rng.normal(size=12_000)}
    )
    good = rng.normal(size=10_000)[background["place"].str[6:].astype(int)]
    prepare = make_column_transformer((OneHotEncoder(), ["place"]), remainder="passthrough")
    model = make_pipeline(prepare, final).fit(background, good + background["wage"] > 0)
    rows = background.sample(300, random_state=0)
    target, bounds = ew.targets.at_least(0.6), ew.Bounds(inputs=0.5, outputs=0.1)
    return used_by(
        lambda: ew.explain(model, rows, target=target, bounds=bounds, background=background)
    )


def levels() -> Times:
    """A category of 10,000 levels and a logistic regression."""
    from sklearn.linear_model import LogisticRegression

    return levels_of(LogisticRegression())


def levels_of_a_forest() -> Times:
    """A category of 10,000 levels and a random forest, whose rows are 10,001 numbers long."""
    from sklearn.ensemble import RandomForestClassifier

    return levels_of(RandomForestClassifier(20, max_depth=8, random_state=0, n_jobs=1))


def seconds() -> Times:
    """What `Settings(seconds=2)` takes by the clock where each phase alone would take longer."""
    from sklearn.linear_model import LinearRegression

    import elsewise as ew

    def slow(pause: float) -> Any:
        def score(rows: pd.DataFrame) -> np.ndarray:
            time.sleep(pause)
            return np.asarray(1 / (1 + np.exp(-rows.sum(axis=1) / 10)))

        return ew.models.function(score, smooth=True)

    few, _ = normal_rows(300, 20)
    tall, _ = normal_rows(100_000, 20)
    wide, _ = normal_rows(50, 5000)
    linear = LinearRegression().fit(wide, wide.to_numpy() @ np.full(5000, 0.02))
    questions = {
        "a model that takes 0.2 s a call": (slow(0.2), few),
        "a model that takes 1 s a call": (slow(1.0), few),
        "100,000 rows": (slow(0.0), tall),
        "50 rows, 5,000 columns, linear": (linear, wide),
        "50 rows, 5,000 columns, finite differences": (slow(0.0), wide),
    }
    found = {}
    for name, (model, rows) in questions.items():
        start = time.perf_counter()
        ew.explain(
            model,
            rows,
            target=ew.targets.shift(0.1),
            bounds=ew.Bounds(inputs=0.2, outputs=0.05),
            settings=ew.Settings(seconds=2),
        )
        found[name] = time.perf_counter() - start
    return found


class Part(NamedTuple):
    """What is measured together."""

    measure: Callable[[], Times]
    before: bool = True
    """Whether the library before is asked as well."""
    environment: dict[str, str] = ONE_THREAD


PARTS = {
    "readme": Part(readme),
    "models": Part(models),
    "networks": Part(networks),
    "report": Part(report),
    "certificate": Part(certificate),
    "certificate without AVX-512": Part(certificate, environment=ONE_THREAD | NO_AVX512),
    "threads": Part(threads, environment={}),
    "arrays": Part(arrays, before=False),
    "wide": Part(wide, before=False),
    "levels": Part(levels, before=False),
    "levels of a forest": Part(levels_of_a_forest, before=False),
    "seconds": Part(seconds, before=False),
}


def library_before(folder: Path) -> Path:
    """Write the library before, with its benchmarks, to a folder."""
    command = ["git", "archive", BEFORE, "src", "benchmarks"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(
            f"commit {BEFORE}, the library before, is not here: clone the repository with its "
            f"whole history\n{done.stderr.decode()}"
        )
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def in_own_process(name: str, tree: Path) -> Times:
    """Measure a part in a process that imports the library of this tree."""
    plain = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    paths = {"PYTHONPATH": os.pathsep.join([str(tree / "src"), str(tree)])}
    done = subprocess.run(
        [sys.executable, "-P", __file__, "--part", name],
        cwd=tree,
        env=plain | PARTS[name].environment | paths,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{name}:\n{done.stderr}")
    found: Times = json.loads(done.stdout.splitlines()[-1])
    return found


def measured(name: str, before: Path) -> dict[str, Times]:
    """Measure a part, each side in turns."""
    trees = {"before": before, "after": ROOT} if PARTS[name].before else {"after": ROOT}
    turns: dict[str, list[Times]] = {side: [] for side in trees}
    for _ in range(TURNS):
        for side, tree in trees.items():
            turns[side].append(in_own_process(name, tree))
    return {
        side: {key: min(turn[key] for turn in found) for key in found[0]}
        for side, found in turns.items()
    }


def main() -> None:
    """Measure the parts named, or all of them, and keep the results."""
    names = sys.argv[1:]
    if names[:1] == ["--part"]:
        print(json.dumps(PARTS[names[1]].measure()))
        return
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        before = library_before(Path(folder))
        for name in names or PARTS:
            results[name] = measured(name, before) | {
                "date": time.strftime("%Y-%m-%d"),
                "machine": f"{os.cpu_count()} cores, {platform.machine()}",
                "load": round(os.getloadavg()[0], 1),
            }
            RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
            for side in ("before", "after"):
                print(name, side, results[name].get(side, ""), flush=True)


if __name__ == "__main__":
    main()
