"""The same code on an accelerator: ``python -m benchmarks.growth.device --out gpu.json``.

Kernels, whole runs up to ten million rows, and what the loop spends its time on. Needs numpy,
scipy, pandas, scikit-learn, array-api-compat, tqdm and a torch that sees the device.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import array_api_compat.torch as namespace
import numpy as np
import torch

import elsewise as ew
from elsewise import _explain, measure, transport
from elsewise.models._torch import TorchOutputs
from elsewise.moves import _row_step
from elsewise.request import _ask as asking
from elsewise.request import pose
from elsewise.search import _loop as solver
from elsewise.settings import Fixed
from elsewise.transport import _ranking

from .questions import BOUND, DIMENSION, TARGET, explained, frame, network

Times = dict[str, float]


class Clock:
    """Seconds spent inside named functions, the device waited for before and after each."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.seconds: dict[str, float] = defaultdict(float)
        self.inside = 0

    def wait(self) -> None:
        """Wait until the device has done what it was asked."""
        if self.device == "cuda":
            torch.cuda.synchronize()

    @contextmanager
    def watching(self, *places: tuple[Any, str, str], nested: bool = True) -> Iterator[None]:
        """Time (owner, attribute, label); inside one another only the outer one, if not nested."""
        originals = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
        for owner, name, label in places:
            setattr(owner, name, self._timed(getattr(owner, name), label, nested))
        try:
            yield
        finally:
            for owner, name, original in originals:
                setattr(owner, name, original)

    def _timed(self, function: Callable[..., Any], label: str, nested: bool) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            if self.inside and not nested:
                return function(*arguments, **options)
            self.wait()
            start = time.perf_counter()
            self.inside += 1
            try:
                return function(*arguments, **options)
            finally:
                self.inside -= 1
                self.wait()
                self.seconds[label] += time.perf_counter() - start

        return run


def best(clock: Clock, run: Callable[[], object], times: int = 5) -> float:
    """Smallest time of several runs, after one to warm up."""
    run()
    found = []
    for _ in range(times):
        clock.wait()
        start = time.perf_counter()
        run()
        clock.wait()
        found.append(time.perf_counter() - start)
    return min(found)


def kernel(clock: Clock, rows: int) -> Times:
    """Value and gradient in float32 beside a bare argsort."""
    make = torch.Generator(device=clock.device).manual_seed(0)
    x, y = (torch.randn(rows, DIMENSION, device=clock.device, generator=make) for _ in range(2))
    theta = torch.as_tensor(
        transport.direction_blocks(DIMENSION, np.random.default_rng(0)),
        device=clock.device,
        dtype=torch.float32,
    )
    projections = transport.project(x, theta).contiguous()
    return {
        "seconds": best(
            clock, lambda: transport.sliced_squared_distance_and_gradient(x, y + 0.1, theta)
        ),
        "argsort": best(clock, lambda: torch.argsort(projections, dim=-1)),
    }


STAGES = (
    (asking, "pose", "frame to device"),
    (_explain, "_fitted", "fit"),
    (_explain, "apply_map", "map applied to all rows"),
    (_explain, "_returned", "device to frame, and the model once more"),
    (_explain, "certify_rows", "certificate"),
)


def whole(clock: Clock, rows: int, model: Any, **settings: Any) -> dict[str, Any]:
    """One call of explain() on a float32 frame, and its stages."""
    population = frame(rows, dtype=np.float32)
    if clock.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    clock.seconds.clear()
    with clock.watching(*STAGES):
        clock.wait()
        start = time.perf_counter()
        found = explained(model, population, **settings)
        clock.wait()
        seconds = time.perf_counter() - start
    memory = torch.cuda.max_memory_allocated() / 1e9 if clock.device == "cuda" else 0.0
    return {
        "seconds": seconds,
        "stages": dict(clock.seconds),
        "iterations": len(found.iterations),
        "steps": len(found.map.steps),
        "device_gigabytes": memory,
        "outcome": found.status.verdict.value,
        "certified_rows": found.certificate.rows,
    }


def shares(clock: Clock, rows: int, model: Any, steps: int = 6) -> dict[str, Any]:
    """What a step of the loop on so many rows is spent on."""
    problem, _ = pose(
        ew.Request(
            model=model, rows=frame(rows, dtype=np.float32), target=ew.targets.at_least(TARGET)
        ),
        ew.Bounds(outputs=BOUND),
    )
    settings = ew.Settings(balance=Fixed(eta=0.5))
    state = solver.step(problem, solver.init(problem, settings))
    clock.wait()
    plain = time.perf_counter()
    here = state
    for _ in range(steps):
        here = solver.step(problem, here)
    clock.wait()
    plain = (time.perf_counter() - plain) / steps
    found = {}
    for detail, places in PLACES.items():
        clock.seconds.clear()
        with clock.watching(*places, nested=False):
            start = time.perf_counter()
            here = state
            for _ in range(steps):
                here = solver.step(problem, here)
            clock.wait()
            total = time.perf_counter() - start
        found[detail] = {k: v / total for k, v in clock.seconds.items()}
    inside = sum(found["kinds"].values())
    return {"seconds_a_step": plain, "other": 1.0 - inside, **found}


PLACES = {
    "kinds": (
        (namespace, "sort", "sort"),
        (_ranking, "sort_with_order", "sort"),
        (namespace, "matmul", "projection"),
        (TorchOutputs, "values", "model"),
        (TorchOutputs, "values_and_gradient", "model"),
    ),
    "places": (
        (measure, "measure_inputs", "plans of the inputs"),
        (measure, "measure_outputs", "plans of the outputs"),
        (_row_step, "transported", "anchors"),
        (_row_step, "_view", "slope"),
        (_row_step, "smooth_steps", "steps"),
        (_row_step, "steps_in_turn", "choice, and the model"),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth.device", description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sizes", type=float, nargs="*", default=[1e4, 1e5, 1e6, 1e7])
    parser.add_argument("--share-sizes", type=float, nargs="*", default=[2e4, 1e6])
    parser.add_argument("--wide-sizes", type=float, nargs="*", default=[1e6, 1e7])
    parser.add_argument("--widths", type=int, nargs="*", default=[128, 256, 384, 512])
    arguments = parser.parse_args()
    clock = Clock(arguments.device)
    model = ew.models.torch_model(network(), device=arguments.device)
    results: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "device": torch.cuda.get_device_name() if arguments.device == "cuda" else "cpu",
        "versions": f"Python {platform.python_version()}, torch {torch.__version__}, "
        f"numpy {np.__version__}",
        "kernel": {},
        "whole": {},
        "wide": {},
        "shares": {},
    }
    explained(model, frame(1000, dtype=np.float32))

    def note(kind: str, key: str, found: dict[str, Any]) -> None:
        results[kind][key] = found
        arguments.out.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
        print(kind, key, json.dumps(found), flush=True)

    for rows in arguments.sizes:
        note("kernel", f"{rows:.0f}", kernel(clock, int(rows)))
        note("whole", f"{rows:.0f}", whole(clock, int(rows), model))
    for width in arguments.widths:
        model = ew.models.torch_model(network(width=width), device=arguments.device)
        for rows in arguments.share_sizes:
            note("shares", f"{rows:.0f} {width}", shares(clock, int(rows), model))
        for rows in arguments.wide_sizes:
            note("wide", f"{rows:.0f} {width}", whole(clock, int(rows), model))


if __name__ == "__main__":
    main()
