"""What is checked before any work is done, and what a request becomes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import elsewise as ew
from elsewise.errors import InvalidInput
from elsewise.features import Schema
from elsewise.request import (
    Asked,
    Bounds,
    Kind,
    Request,
    ask,
    check_seed,
    generator,
    halve,
    populate,
)

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(RNG.normal(size=(240, 3)), columns=["a", "b", "c"])


def score(rows: pd.DataFrame) -> np.ndarray:
    return np.asarray(1.0 / (1.0 + np.exp(-rows["a"] - 0.5 * rows["b"])))


MODEL = ew.models.function(score, smooth=True, probability=True)


def request(rows: pd.DataFrame = ROWS, model: object = MODEL, **more: Any) -> Asked:
    given: dict[str, Any] = {"target": ew.targets.constant(0.8)} | more
    return ask(Request(model=model, rows=rows, **given))


# --- what is refused, and with which remedy -------------------------------------------------------

REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "bounds": (lambda: request(bounds=0.2), "bounds: expected elsewise.Bounds, received float"),
    "settings": (lambda: request(settings={"tau": 1}), "settings: expected elsewise.Settings"),
    "schema": (lambda: request(schema={"a": "free"}), "schema: expected elsewise.Schema"),
    "target": (lambda: request(target=0.8), "target: expected a target of elsewise.targets"),
    "certify": (lambda: request(certify="maybe"), "certify: expected 'auto'.*received 'maybe'"),
    "population": (lambda: request(population="some"), "population: expected 'sample' or 'all'"),
    "all and held-out": (
        lambda: request(population="all", certify="held-out"),
        "certify: expected 'auto' where the rows are the whole population",
    ),
    "too few to hold out": (
        lambda: request(rows=ROWS[:39], certify="held-out"),
        "certify: expected at least 40 rows.*received 39 rows",
    ),
    "one wanted value": (
        lambda: request(target=ew.targets.sample([0.5])),
        "target: expected a sample of at least 2 values",
    ),
    "few draws": (
        lambda: request(settings=ew.Settings(draws=18)),
        "settings.draws: expected at least 19",
    ),
    "no support": (
        lambda: request(
            model=ew.models.function(lambda rows: rows["a"], smooth=True),
            bounds=Bounds(method="finite-sample"),
        ),
        "bounds.support: expected ends that no output and no wanted value leaves",
    ),
    "narrow support": (
        lambda: request(bounds=Bounds(support=(0.4, 0.6))),
        "bounds.support: expected ends that no output leaves",
    ),
    "all frozen": (
        lambda: request(schema=Schema.infer(ROWS).freeze("a", "b", "c")),
        "schema: expected at least one feature that may move",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_requests_are_refused(case: str) -> None:
    call, message = REFUSED[case]
    with pytest.raises(InvalidInput, match=message) as refused:
        call()
    assert "Fix: " in str(refused.value)


@pytest.mark.parametrize("seed", [-1, 1.0, "0", None, True])
def test_a_seed_is_a_whole_number(seed: object) -> None:
    with pytest.raises(InvalidInput, match="seed: expected a whole number >= 0"):
        check_seed(seed)


@pytest.mark.parametrize("seed", [0, 7, np.int64(3)])
def test_whole_numbers_are_seeds(seed: object) -> None:
    check_seed(seed)


def test_few_draws_do_for_less_confidence() -> None:
    assert request(settings=ew.Settings(draws=19)).settings.draws == 19
    assert request(settings=ew.Settings(draws=4), bounds=Bounds(confidence=0.8)).settings.draws == 4


def test_the_model_is_not_asked_before_the_request_is_checked() -> None:
    def model(rows: pd.DataFrame) -> np.ndarray:
        raise AssertionError("asked")

    for more in ({"seed": -1}, {"certify": "maybe"}, {"target": 0.8}, {"population": "some"}):
        with pytest.raises(InvalidInput):
            request(model=model, **more)


# --- what a request becomes -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "certify", "population", "kind"),
    [
        (199, "auto", "sample", Kind.IN_SAMPLE),
        (200, "auto", "sample", Kind.HELD_OUT),
        (40, "held-out", "sample", Kind.HELD_OUT),
        (240, "in-sample", "sample", Kind.IN_SAMPLE),
        (240, "auto", "all", Kind.POPULATION),
    ],
)
def test_what_an_answer_may_speak_of(rows: int, certify: str, population: str, kind: Kind) -> None:
    found = request(rows=ROWS[:rows], certify=certify, population=population)
    assert found.kind is kind


def test_defaults_are_those_of_the_records() -> None:
    found = request()
    assert found.settings == ew.Settings()
    assert found.problem.bounds == Bounds()
    assert found.problem.seed == 0
    np.testing.assert_array_equal(found.problem.factual, ROWS.to_numpy())
    np.testing.assert_array_equal(
        found.problem.outputs.values(found.problem.factual)[:, 0], score(ROWS)
    )


def test_each_purpose_has_its_own_randomness() -> None:
    first = generator(0, "split").random(4)
    np.testing.assert_array_equal(first, generator(0, "split").random(4))
    assert (first != generator(0, "directions").random(4)).all()
    assert (first != generator(1, "split").random(4)).all()


@pytest.mark.parametrize("target", ["constant", "sample"])
def test_halves_share_no_row_and_leave_none_out(target: str) -> None:
    values = np.linspace(0.5, 0.9, 101)
    wanted = ew.targets.constant(0.8) if target == "constant" else ew.targets.sample(values)
    problem = request(target=wanted).problem
    halves = halve(problem)
    fitted, tested = halves.fitted.factual, halves.tested.factual
    np.testing.assert_array_equal(tested, problem.factual[halves.unseen])
    together = np.concatenate([fitted, tested])
    np.testing.assert_array_equal(np.unique(together, axis=0), np.unique(problem.factual, axis=0))
    assert len(fitted) == len(tested) == 120
    if target == "sample":
        both = [half.target.values[:, 0] for half in (halves.fitted, halves.tested)]  # noqa: PD011
        np.testing.assert_allclose(np.sort(np.concatenate(both)), values)


def test_which_rows_a_share_asks_to_pass_is_learned_on_the_rows_of_the_fit() -> None:
    share = ew.targets.share(0.9, above=0.5)
    problem = request(target=share, bounds=Bounds(outputs=0.2)).problem
    seen = halve(problem).fitted.precise_outputs
    assert problem.target == share.resolved(seen)
    assert problem.target != share.resolved(problem.precise_outputs)
    described = request(target=share, bounds=Bounds(outputs=0.2), certify="in-sample").problem
    assert described.target == share.resolved(described.precise_outputs)


def test_rows_that_are_as_wanted_or_break_a_rule_stay() -> None:
    schema = Schema.infer(ROWS).rule(lambda rows: rows["a"] < 1.0)
    problem = request(schema=schema, target=ew.targets.at_least(0.5)).problem
    people = populate(problem, problem.factual)
    expected = (score(ROWS) >= 0.5) | (ROWS["a"] >= 1.0).to_numpy()
    np.testing.assert_array_equal(people.pinned, expected)
    np.testing.assert_array_equal(people.wanted[:, 0], np.maximum(score(ROWS), 0.5))
