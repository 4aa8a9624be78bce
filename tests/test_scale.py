"""Speed without a price: the same results in parts, in threads, in less memory and in torch."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
import threadpoolctl
import torch
from sklearn.datasets import make_classification
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import elsewise as ew
from elsewise import measure, search, transport
from elsewise._arrays import double_sums, row_products
from elsewise._resources import (
    MODEL_ROWS,
    Resources,
    block_rows,
    current,
    model_threads,
    parallel,
    parse_memory,
    using,
)
from elsewise.confidence import Comparison, clt_limit
from elsewise.errors import InvalidInput
from elsewise.measure import input_comparison, input_distance
from elsewise.models import bind
from elsewise.models._frames import FrameOutputs
from elsewise.moves._in_turn import MANY_ROWS, _accept_cheapest
from elsewise.moves._steps import Aim, View, gauss_newton_steps, link_steps
from elsewise.request import pose
from elsewise.search import _loop as solver
from elsewise.search import init
from elsewise.search._sides import bounded_sides
from elsewise.settings import Fixed
from elsewise.transport._monotone import at_places, locator

COLUMNS = list("abcd")
MANY = 2 * MANY_ROWS + 200
"""Rows of which each half is moved in turn, in tiles, in threads."""


def frame(rows: int, dtype: type = np.float64) -> pd.DataFrame:
    values = np.random.default_rng(0).normal(size=(rows, len(COLUMNS)))
    return pd.DataFrame(values.astype(dtype), columns=COLUMNS)


def linear_model(rows: pd.DataFrame) -> LogisticRegression:
    noise = np.random.default_rng(1).logistic(size=len(rows))
    return LogisticRegression().fit(rows, rows.sum(axis=1) + noise > 0.5)


def network() -> torch.nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = torch.nn
        return layers.Sequential(
            layers.Linear(4, 8), layers.Tanh(), layers.Linear(8, 1), layers.Sigmoid()
        )


def explained(model: object, rows: pd.DataFrame, **settings: object) -> ew.Explanation:
    return ew.explain(
        model,
        rows,
        target=ew.targets.at_least(0.6),
        bounds=ew.Bounds(outputs=0.1),
        settings=ew.Settings(iterations=3, draws=199, **settings),
    )


def assert_same(one: ew.Explanation, other: ew.Explanation) -> None:
    """Bit for bit, but for the settings themselves."""
    pd.testing.assert_frame_equal(one.counterfactual, other.counterfactual, check_exact=True)
    np.testing.assert_array_equal(one.outputs, other.outputs)
    pd.testing.assert_frame_equal(one.history, other.history, check_exact=True)
    assert one.certificate == other.certificate
    assert one.status == other.status


# --- parts, threads, memory ------------------------------------------------------------------


@pytest.fixture(scope="module")
def many() -> ew.Explanation:
    rows = frame(MANY)
    return explained(linear_model(rows), rows, threads=1)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"threads": 3}, {"threads": 2, "memory": "1MB"}])
def test_threads_and_memory_change_nothing(
    many: ew.Explanation, settings: dict[str, object]
) -> None:
    again = explained(many.model, many.factual, **settings)
    assert_same(many, again)
    fresh = frame(3000)[::-1]
    pd.testing.assert_frame_equal(again.apply(fresh), many.apply(fresh), check_exact=True)


def test_history_says_what_was_computed(many: ew.Explanation) -> None:
    history = many.history
    assert history["inputs_limit"].isna().all()  # no bound, so no limit was needed
    assert (history["outputs_limit"] >= history["outputs"]).all()


@pytest.mark.parametrize("threads", [1, 4])
def test_chunked_kernel_is_the_unchunked(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 5)), rng.normal(size=(200, 5)) + 0.3
    theta = transport.direction_blocks(5, rng)
    whole, slope = transport.sliced_squared_distance_and_gradient(x, y, theta, 0.05)
    compared = Comparison.paired(transport.project(x, theta), transport.project(x**2, theta), 0.05)
    limit = clt_limit(compared)
    monkeypatch.setattr("elsewise.transport._directions.PART", 700)
    monkeypatch.setattr("elsewise.transport._directions.FEWEST", 1)
    assert len(transport.direction_parts(theta, 300)) > 20
    with using(Resources(threads=threads, memory=None)):
        value, gradient = transport.sliced_squared_distance_and_gradient(x, y, theta, 0.05)
        assert transport.sliced_squared_distance(x, y, theta, 0.05) == pytest.approx(whole)
        again = clt_limit(compared)
    assert value == pytest.approx(whole, rel=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=1e-10, atol=1e-15)
    assert again.upper(0.95) == pytest.approx(limit.upper(0.95), rel=1e-12)


def test_parts_depend_on_sizes_alone() -> None:
    theta = np.eye(69)
    with using(Resources(threads=7, memory=10)):
        parts = transport.direction_parts(theta, 50_000)
    assert [p.shape for p in parts] == [p.shape for p in transport.direction_parts(theta, 50_000)]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), theta)


def test_transported_rows_do_not_depend_on_their_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 3))
    theta = transport.direction_blocks(3, rng)
    projected = np.sort(transport.project(x, theta))
    maps = transport.fit_monotone_maps(projected, projected * 1.3)
    whole = transport.transported(maps, x, theta)
    monkeypatch.setattr("elsewise.transport._monotone.TILE", 64 * 66)
    with using(Resources(threads=3, memory=None)):
        tiled = transport.transported(maps, x, theta)
    np.testing.assert_allclose(tiled, whole, rtol=0, atol=1e-13)


def test_steps_in_turn_are_steps_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choosing among steps one after the other gives what choosing among all gives."""
    rows = frame(400)
    in_turn, at_once = [], []
    for seen, fewest in ((in_turn, 1), (at_once, 10**9)):
        monkeypatch.setattr("elsewise.moves._in_turn.MANY_ROWS", fewest)
        found = explained(linear_model(rows), rows)
        seen.append(found)
    pd.testing.assert_frame_equal(
        in_turn[0].counterfactual, at_once[0].counterfactual, rtol=0, atol=1e-9
    )
    assert in_turn[0].certificate.inputs.estimate == pytest.approx(
        at_once[0].certificate.inputs.estimate, rel=1e-9
    )


@pytest.mark.parametrize("how", [{}, {"step": "gradient", "tau": 20.0, "noise": 0.3}])
def test_rules_are_asked_in_turn_too(how: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elsewise.moves._in_turn.MANY_ROWS", 1)
    rows = frame(300)
    schema = ew.Schema.infer(rows).rule(lambda rows: rows["a"] <= rows["b"] + 1.0)
    found = ew.explain(
        linear_model(rows),
        rows,
        target=ew.targets.at_least(0.6),
        bounds=ew.Bounds(outputs=0.2),
        schema=schema,
        settings=ew.Settings(iterations=3, draws=199, **how),
    )
    after, kept = found.counterfactual, rows["a"] <= rows["b"] + 1.0
    assert (after["a"] <= after["b"] + 1.0)[kept].all()
    pd.testing.assert_frame_equal(after[~kept], rows[~kept])


@pytest.mark.parametrize("shape", ["normal", "atoms", "outliers", "constant"])
def test_locator_is_a_search(shape: str) -> None:
    rng = np.random.default_rng(0)
    knots = np.sort(rng.normal(size=(7, 40)))
    if shape == "atoms":
        knots = np.sort(np.round(knots))
    if shape == "outliers":
        knots[:, -1] = 1e9
    if shape == "constant":
        knots = np.ones((7, 40))
    points = np.concatenate([rng.normal(size=(7, 50)), knots, knots - 1e-12], axis=1)
    expected = np.stack([np.searchsorted(knots[k], points[k], side="right") for k in range(7)])
    table = rng.normal(size=(7, 41))
    found = locator(knots)(points)
    np.testing.assert_array_equal(found, expected + 41 * np.arange(7)[:, None])
    values = np.take_along_axis(table, expected, axis=1)
    np.testing.assert_array_equal(at_places(table, found), values)
    tensors = locator(torch.asarray(knots))(torch.asarray(points))
    np.testing.assert_array_equal(tensors.numpy(), expected)
    np.testing.assert_array_equal(at_places(torch.asarray(table), tensors).numpy(), values)


def test_input_distance_is_the_comparisons() -> None:
    rows = frame(200)
    target, limits = ew.targets.at_least(0.6), ew.Bounds()
    problem, _ = pose(ew.Request(model=linear_model(rows), rows=rows, target=target), limits)
    population = init(problem, ew.Settings()).setup.population
    theta = transport.direction_blocks(4, np.random.default_rng(0))
    moved = problem.factual**2
    expected = input_comparison(problem, population, moved, theta).distance
    assert input_distance(problem, population, moved, theta) == pytest.approx(expected, rel=1e-12)


def test_a_look_with_a_limit_sees_what_one_without_sees() -> None:
    rows = frame(200)
    looks = []
    for bounds in (ew.Bounds(inputs=1.0, outputs=1.0), ew.Bounds(outputs=1.0)):
        problem, _ = pose(
            ew.Request(model=linear_model(rows), rows=rows, target=ew.targets.at_least(0.6)), bounds
        )
        population = init(problem, ew.Settings()).setup.population
        theta = transport.direction_blocks(4, np.random.default_rng(0))
        moved = problem.embedding.embed(problem.factual**2)
        looks.append(measure.measure_inputs(problem, population, moved, theta, 1.0))
    bounded, free = looks
    assert free.limit is None
    assert bounded.distance == pytest.approx(free.distance, rel=1e-12)
    np.testing.assert_allclose(bounded.plan.knots, free.plan.knots, atol=1e-12)
    expected = clt_limit(input_comparison(problem, population, problem.factual**2, theta))
    assert bounded.limit.upper(0.9) == pytest.approx(expected.upper(0.9), rel=1e-9)


# --- a sample of many rows -------------------------------------------------------------------


def test_many_rows_are_fitted_to_by_a_sample() -> None:
    rows = frame(3000)
    found = explained(linear_model(rows), rows, fit_rows=400)
    assert found.ok
    assert found.certificate.kind == "held-out"
    assert found.certificate.rows == 2600
    (notice,) = [n for n in found.status.notices if "fit_rows" in n]
    assert notice.startswith("fitted to 400 of 3,000 rows drawn at random and certified on 2,600")
    # What is returned is the map on all rows.
    pd.testing.assert_frame_equal(found.apply(rows), found.counterfactual, rtol=0, atol=1e-9)
    assert not any("fit_rows" in n for n in explained(found.model, rows).status.notices)


def test_a_shorter_way_leads_to_the_same_place() -> None:
    rows = frame(600)
    problem, _ = pose(
        ew.Request(model=linear_model(rows), rows=rows, target=ew.targets.at_least(0.6)),
        ew.Bounds(outputs=0.1),
    )
    settings = ew.Settings(draws=199, slack=0.0)
    solution, _ = search.solve(problem, settings)
    shorter, _ = search.finish(search.iterate(problem, settings, shorter=True))
    (side,) = bounded_sides(problem, settings)
    assert len(shorter.state.map().steps) < len(solution.state.map().steps)
    assert side.met(shorter.state)
    assert side.other(shorter.state) <= 1.01 * side.other(solution.state)


# --- torch -----------------------------------------------------------------------------------

TARGETS = {
    "at least": (ew.targets.at_least(0.6), ew.Bounds(outputs=0.1)),
    "constant": (ew.targets.constant(0.6), ew.Bounds(inputs=0.3)),
    "sample": (
        ew.targets.sample(np.random.default_rng(2).beta(4, 3, size=150)),
        ew.Bounds(inputs=0.6, outputs=0.2),
    ),
}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_torch_tensors_give_what_numpy_gives(
    name: str, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "sample":  # as many rows are moved
        monkeypatch.setattr("elsewise.moves._in_turn.MANY_ROWS", 1)
    target, limits = TARGETS[name]
    module = network().to(torch.float64 if dtype is np.float64 else torch.float32)
    rows = frame(80, dtype)
    found = [
        ew.explain(
            model,
            rows,
            target=target,
            bounds=limits,
            certify="in-sample",
            settings=ew.Settings(iterations=2, draws=99),
        )
        for model in (module, ew.models.torch_model(module, device="cpu"))
    ]
    arrays, tensors = found
    assert isinstance(arrays.rows.codes, np.ndarray)
    assert isinstance(tensors.rows.codes, torch.Tensor)
    assert tensors.rows.codes.dtype == (torch.float64 if dtype is np.float64 else torch.float32)
    assert arrays.counterfactual.dtypes.eq(dtype).all()
    if dtype is np.float64:
        pd.testing.assert_frame_equal(
            tensors.counterfactual, arrays.counterfactual, rtol=0, atol=1e-9
        )
    for side in ("inputs", "outputs"):
        one, other = getattr(arrays.certificate, side), getattr(tensors.certificate, side)
        assert other.estimate == pytest.approx(one.estimate, rel=0.02, abs=1e-4)
    if name == "at least":
        # Rows that need not move are the user's own, bit for bit.
        stay = arrays.factual_outputs[:, 0] >= 0.6
        assert stay.any()
        pd.testing.assert_frame_equal(tensors.counterfactual[stay], rows[stay], check_exact=True)


def test_steps_taken_at_once_are_steps_taken_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    place = "elsewise.moves._in_turn."
    torch.manual_seed(0)
    # Steep: the first step goes too far for many rows, and several shorter ones would do.
    module = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1), torch.nn.Sigmoid()
    ).double()
    with torch.no_grad():
        module[2].weight *= 12.0
    model = ew.models.torch_model(module, device="cpu")
    target = ew.targets.constant(0.6)
    problem, _ = pose(
        ew.Request(model=model, rows=frame(300), target=target), ew.Bounds(outputs=0.1)
    )
    monkeypatch.setattr(place + "MANY_ROWS", 1)
    monkeypatch.setattr(place + "MANY_DEVICE_ROWS", 1)
    rivals: list[int] = []
    winners: set[int] = set()

    def go(problem: Any, aim: Any, here: Any, index: Any, moved: Any, inputs: Any) -> None:
        before = here.codes.clone()
        rows = len(here.costs)
        _accept_cheapest(problem, aim, here, index, moved, inputs)
        if len(inputs) > rows:
            rivals.append(len(index) - len(torch.unique(index % rows)))
            gone = (here.codes != before).any(dim=1)
            taken = (moved == here.codes[index % rows]).all(dim=1) & gone[index % rows]
            winners.update((index[taken] // rows).tolist())

    def moved() -> torch.Tensor:
        state = init(problem, ew.Settings(balance=Fixed(eta=0.95)))
        for _ in range(4):
            codes, outputs = state.rows.codes.clone(), state.rows.outputs.clone()
            after = solver.step(problem, state)
            assert torch.equal(state.rows.codes, codes)
            assert torch.equal(state.rows.outputs, outputs)
            state = after
        return state.rows.codes

    in_turn = moved()
    monkeypatch.setattr(place + "on_device", lambda rows: True)
    monkeypatch.setattr(place + "_accept_cheapest", go)
    at_once = moved()
    assert sum(rivals) > 10
    assert len(winners) > 1
    torch.testing.assert_close(at_once, in_turn, rtol=0, atol=1e-12)
    monkeypatch.setattr(place + "MOST", 2.0)  # never all rows
    torch.testing.assert_close(moved(), in_turn, rtol=0, atol=1e-12)


@pytest.mark.parametrize("device", [False, True])
@pytest.mark.parametrize("shape", [(7, 5), (3, 7, 5)])
def test_products_of_rows(
    shape: tuple[int, ...], device: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    rows, others = rng.normal(size=shape), rng.normal(size=shape)
    expected = np.einsum("...i,...i->...", rows, others)
    monkeypatch.setattr("elsewise._arrays.on_device", lambda array: device)
    np.testing.assert_allclose(row_products(rows, others), expected)
    found = row_products(torch.asarray(rows), torch.asarray(others))
    np.testing.assert_allclose(found.numpy(), expected)


def test_sums_of_singles_have_the_digits_of_doubles() -> None:
    values = np.random.default_rng(0).uniform(size=(3, 300_007)).astype(np.float32)
    exact = [math.fsum(row.tolist()) for row in values]
    for library in (np.asarray, torch.asarray):
        np.testing.assert_allclose(np.asarray(double_sums(library(values))), exact, rtol=1e-7)


def mixed(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    income = rng.normal(size=n)
    income[rng.uniform(size=n) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "income": income,
            "debt": rng.normal(size=n),
            "children": rng.integers(0, 5, size=n),
            "home": rng.choice(["own", "rent", "free"], size=n),
        }
    )


def mixed_model(device: str | None) -> Any:
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(6, 1), torch.nn.Sigmoid()).double()

    def prepare(codes: torch.Tensor) -> torch.Tensor:
        homes = torch.nn.functional.one_hot(codes[:, 3].long(), 3)
        return torch.cat([torch.nan_to_num(codes[:, :3]), homes], dim=1)

    return ew.models.torch_model(layers, prepare, device=device)


@pytest.mark.parametrize("sparse", [False, True])
def test_tensors_of_mixed_columns_give_what_numpy_gives(sparse: bool) -> None:
    rows = mixed(120)
    arrays, tensors = (
        ew.explain(
            mixed_model(device),
            rows,
            target=ew.targets.at_least(0.6),
            bounds=ew.Bounds(outputs=0.1),
            certify="in-sample",
            settings=ew.Settings(iterations=3, draws=99, sparse=sparse),
        )
        for device in (None, "cpu")
    )
    assert isinstance(arrays.rows.codes, np.ndarray)
    assert isinstance(tensors.rows.codes, torch.Tensor)
    assert (arrays.counterfactual["home"] != rows["home"]).any()
    assert arrays.counterfactual["income"].isna().equals(rows["income"].isna())
    pd.testing.assert_frame_equal(tensors.counterfactual, arrays.counterfactual, rtol=0, atol=1e-9)


class WritesOver(torch.nn.Module):
    """Returns the same memory every time, as a module compiled with CUDA graphs does."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(4, 1).double()
        self.memory = torch.zeros(1 << 14, 1).double()

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        scores = torch.sigmoid(self.layer(rows))
        if torch.is_grad_enabled():
            return scores
        self.memory[: len(scores)] = scores
        return self.memory[: len(scores)]


@pytest.mark.parametrize("device", [None, "cpu"])
def test_a_module_may_write_over_its_outputs(device: str | None) -> None:
    module, rows = WritesOver(), frame(100)
    model = ew.models.torch_model(module, device=device, probability=True)
    found = ew.explain(
        model, rows, target=TARGETS["at least"][0], settings=ew.Settings(iterations=3, draws=99)
    )
    for outputs, of in (
        (found.factual_outputs, rows),
        (found.outputs, found.counterfactual),
    ):
        expected = torch.sigmoid(module.layer(torch.tensor(of.to_numpy())))
        np.testing.assert_allclose(outputs, expected.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_step_along_any_slope_is_a_number(dtype: type) -> None:
    sizes = np.array([0.0, 1e-45, 1e-30, 1e-25, 1e-20, 1e-10, 1e-3, 1.0, 1e10, 1e25], dtype=dtype)
    n = len(sizes)
    view = View(
        embedded=np.zeros((n, 2), dtype=dtype),
        outputs=np.full((n, 1), 0.1, dtype=dtype),
        gradient=np.stack([sizes, np.zeros(n, dtype=dtype)], axis=1)[:, None, :],
    )
    aim = Aim(np.full((n, 2), 0.5, dtype=dtype), np.full((n, 1), 0.7, dtype=dtype), eta=0.9)
    with np.errstate(over="ignore"):  # a square overflows
        steps = [*link_steps(aim, view), *gauss_newton_steps(aim, view, damping=1e-3)]
    assert all(np.isfinite(step).all() for step in steps)
    half, full = steps[:2]
    assert (full[1:-1, 0] > 0).all()
    assert not full[:, 1].any()
    np.testing.assert_allclose(half, 0.5 * full)
    usual = 7  # slope 1: the change of the logit over the logit's slope
    change = np.log(0.7 / 0.3) - np.log(0.1 / 0.9)
    assert full[usual, 0] == pytest.approx(change * 0.1 * 0.9, rel=1e-5)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_single_precision_leaves_the_flat_part_of_a_sigmoid(
    missing: bool, many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At such logits a squared slope underflows: no step may be what is not a number."""
    if many:
        monkeypatch.setattr("elsewise.moves._in_turn.MANY_ROWS", 1)
    rows = frame(200, np.float32)
    if missing:
        rows.loc[::10, "c"] = np.nan
    layer = torch.nn.Linear(4, 1)
    with torch.no_grad():
        layer.weight[:] = torch.tensor([[20.0, 0.0, 3.0, 0.0]])
        layer.bias[:] = -46.0
    module = torch.nn.Sequential(layer, torch.nn.Sigmoid())
    found = ew.explain(
        ew.models.torch_model(module, prepare=torch.nan_to_num, device="cpu"),
        rows,
        target=ew.targets.at_least(0.6),
        bounds=ew.Bounds(outputs=0.3),
        certify="in-sample",
        settings=ew.Settings(iterations=10, draws=99),
    )
    assert found.factual_outputs.mean() < 0.01
    assert found.outputs.mean() > 0.1
    assert found.counterfactual.isna().equals(rows.isna())
    assert (found.counterfactual.max() <= rows.max()).all()


def test_a_frame_of_doubles_is_searched_in_double_precision() -> None:
    rows = frame(30)
    encoder = ew.Schema.infer(rows).encoder(rows)
    single = ew.models.torch_model(network(), device="cpu")
    assert bind(single, encoder).place(encoder.encode(rows)).dtype == torch.float64
    small = rows.astype(np.float32)
    encoder = ew.Schema.infer(small).encoder(small)
    assert bind(single, encoder).place(encoder.encode(small)).dtype == torch.float32


def test_a_device_that_is_not_there_is_refused() -> None:
    absent = f"cuda:{torch.cuda.device_count()}"
    with pytest.raises(InvalidInput, match=r"device: expected a device this torch can use"):
        ew.models.torch_model(network(), device=absent)


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("name", TARGETS)
def test_a_device_gives_what_the_host_gives(name: str) -> None:
    target, limits = TARGETS[name]
    rows, settings = frame(MANY, np.float32), ew.Settings(iterations=4, draws=199)
    host = ew.explain(network(), rows, target=target, bounds=limits, settings=settings)
    model = ew.models.torch_model(network(), device="cuda")
    device = ew.explain(model, rows, target=target, bounds=limits, settings=settings)
    assert device.rows.codes.device.type == "cuda"
    for side in ("inputs", "outputs"):
        one, other = getattr(host.certificate, side), getattr(device.certificate, side)
        assert other.estimate == pytest.approx(one.estimate, rel=0.05, abs=1e-3)
    again = device.apply(rows[:500])
    np.testing.assert_allclose(again, device.counterfactual[:500], atol=1e-3)


def check_question_holds_in_every_batch(device: str) -> None:
    """Rows of single precision arrive by more than the last digits, which depend on the batch."""
    rows, settings = frame(150, np.float32), ew.Settings(draws=199)
    model = ew.models.torch_model(network(), device=device)
    before = np.asarray(model.module(torch.tensor(rows.to_numpy(), device=device)).tolist())
    cutoff, asked = float(np.quantile(before, 0.6)), 0.7
    target = ew.targets.share(asked, above=cutoff)
    found = ew.explain(model, rows, target=target, certify="in-sample", settings=settings)
    moved = torch.tensor(found.counterfactual.to_numpy(), device=device)
    with torch.no_grad():
        for size in (1, 7, 150):
            parts = [model.module(moved[k : k + size]).ravel() for k in range(0, 150, size)]
            assert int((torch.cat(parts) >= cutoff).sum()) >= asked * len(rows)
    went = (found.counterfactual.to_numpy() != rows.to_numpy()).any(axis=1)
    assert went.any()
    after = np.asarray(model.module(moved).tolist(), dtype=np.float64).ravel()[went]
    assert after.min() - cutoff > 1e-6  # the batch moves outputs by less
    assert found.status.verdict == "described"


def test_single_precision_arrives_in_every_batch() -> None:
    check_question_holds_in_every_batch("cpu")


@pytest.mark.needs("gpu")
def test_a_question_on_a_device_holds_in_every_batch() -> None:
    check_question_holds_in_every_batch("cuda")


def test_kernels_need_numpy_scipy_pandas_and_the_standard_alone() -> None:
    code = """
import importlib.abc, sys
ALLOWED = {"numpy", "scipy", "pandas", "array_api_compat", "torch", "elsewise",
           "dateutil", "pytz", "tzdata", "six"}
class Only(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        root = name.partition(".")[0]
        if root in BLOCKED:
            raise ImportError(root)
import importlib.metadata
tops = importlib.metadata.packages_distributions()
BLOCKED = set(tops) - ALLOWED - {"_distutils_hack"}
sys.meta_path.insert(0, Only())
for name in [name for name in sys.modules if name.partition(".")[0] in BLOCKED]:
    del sys.modules[name]
for part in ("transport", "moves", "maps", "search"):
    importlib.import_module(f"elsewise.{part}")
print("loaded")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "loaded", done.stderr


# --- linear models without frames in between -------------------------------------------------

ESTIMATORS = [
    LogisticRegression(),
    make_pipeline(StandardScaler(), LogisticRegression()),
    make_pipeline(RobustScaler(), MinMaxScaler(), LogisticRegression()),
    make_pipeline(StandardScaler(with_mean=False), SGDClassifier(loss="log_loss", random_state=0)),
    make_pipeline(MaxAbsScaler(), RidgeClassifier()),
    make_pipeline(StandardScaler(), Ridge()),
    LinearRegression(),
]


# SGDClassifier is binary here: with three classes it is one against the rest, which is no softmax.
@pytest.mark.parametrize(
    ("estimator", "classes"),
    [(e, c) for e in ESTIMATORS for c in (2, 3) if c == 2 or "SGD" not in str(e)],
    ids=lambda value: str(value)[:40],
)
def test_linear_models_are_searched_as_what_they_are(estimator: object, classes: int) -> None:
    x, y = make_classification(
        200, 4, n_informative=4, n_redundant=0, n_classes=classes, random_state=0
    )
    rows = pd.DataFrame(x, columns=COLUMNS)
    outputs = bind(estimator.fit(rows, y), ew.Schema.infer(rows).encoder(rows))
    read = outputs.precise(x)
    assert isinstance(read, FrameOutputs)
    assert read.exact
    assert read.model.linear is not None
    values, slopes = read.values_and_gradient(x)
    for found in (values, read.values(x)):
        np.testing.assert_allclose(found, outputs.values(x), atol=1e-12)
    for j, step in enumerate(1e-5 * np.eye(4)):
        rise = (outputs.values(x + step) - outputs.values(x - step)) / 2e-5
        np.testing.assert_allclose(slopes[:, :, j], rise, atol=1e-8)
    assert (read.columns, read.probability) == (outputs.columns, outputs.probability)


def test_a_model_that_is_not_quite_linear_is_asked_itself() -> None:
    class Rounded(LogisticRegression):
        def predict_proba(self, rows):
            return np.round(super().predict_proba(rows), 1)

    Rounded.__module__ = "sklearn.linear_model"
    Rounded.__name__ = "LogisticRegression"
    rows = frame(100)
    outputs = bind(Rounded().fit(rows, rows["a"] > 0), ew.Schema.infer(rows).encoder(rows))
    assert outputs.precise(rows.to_numpy()) is outputs


# --- resources -------------------------------------------------------------------------------


def test_results_come_in_order_whatever_the_threads() -> None:
    with using(Resources(threads=4, memory=None)):
        assert list(parallel(lambda k: k * k, range(50))) == [k * k for k in range(50)]

        def nested(k: int) -> int:
            return sum(parallel(lambda j: j, range(k)))

        assert list(parallel(nested, range(9))) == [sum(range(k)) for k in range(9)]
        with pytest.raises(ZeroDivisionError):
            list(parallel(lambda k: 1 // k, [1, 0, 2, 3]))


def test_threads_are_those_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert current().threads == 3
    monkeypatch.setenv("ELSEWISE_THREADS", "2")
    assert current().threads == 2
    assert ew.Settings(threads=5).resources.threads == 5
    assert block_rows(1000) == 1 << 14
    with using(Resources(threads=1, memory=10**6)):
        assert block_rows(1000) == 1 << 10


@pytest.mark.parametrize("memory", ["lots", "", "-1GB", 0, 1.5])
def test_memory_that_cannot_be_read_is_refused(memory: object) -> None:
    with pytest.raises(InvalidInput, match=r"settings\.memory: expected a positive number"):
        parse_memory(memory)


@pytest.mark.parametrize(("name", "value"), [("threads", 0), ("fit_rows", 5), ("memory", "a bit")])
def test_settings_are_checked(name: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=f"settings.{name}"):
        ew.Settings(**{name: value})


def test_pools_of_blas_have_one_thread_beside_our_own() -> None:
    """Held inside a call, given back to a model with many rows, and to everybody afterwards."""

    def pools() -> set[int]:
        return {pool["num_threads"] for pool in threadpoolctl.threadpool_info()}

    with threadpoolctl.threadpool_limits(2):
        with using(Resources(threads=2, memory=None)):
            inside = pools()
            with using(Resources(threads=1, memory=None)):
                nested = pools()
            with model_threads(10):
                small = pools()
            with model_threads(MODEL_ROWS):
                large = pools()
            after_model = pools()
        afterwards = pools()
    assert inside == nested == small == after_model == {1}
    assert large == afterwards == {2}
