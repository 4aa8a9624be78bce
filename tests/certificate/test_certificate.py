"""The certificate as a record: what it says, that every place says the same, what it refuses."""

from __future__ import annotations

import dataclasses
import json
import re
from functools import partial
from html import unescape

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

import elsewise as ew
import people
from elsewise import report
from elsewise.certificate import Certificate, probability_text
from elsewise.certificate._certify import _compared_support, certify_moves
from elsewise.confidence import Method
from elsewise.errors import InvalidInput
from elsewise.features import Feature, largest_squared_move
from elsewise.features import Kind as Column
from elsewise.moves import Rows
from elsewise.request import Kind, Verdict, populate, pose
from elsewise.text import format_distinct, percent

FAST = ew.Settings(iterations=5, draws=79, directions=6)


def numbers(n: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])


def level(frame: pd.DataFrame) -> np.ndarray:
    return np.asarray(frame["a"] + 0.5 * frame["b"])


def score(frame: pd.DataFrame) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-level(frame)))


PROBABILITY = ew.models.function(score, smooth=True, probability=True)
PLAIN = ew.models.function(level, smooth=True)


def explain(rows: pd.DataFrame, model: object = PROBABILITY, **asked: object) -> ew.Explanation:
    given = {"target": ew.targets.at_least(0.6), "settings": FAST} | asked
    return ew.explain(model, rows, **given)


@pytest.fixture(scope="module")
def held_out() -> ew.Explanation:
    return explain(numbers(200), bounds=ew.Bounds(inputs=0.6, outputs=0.2))


@pytest.fixture(scope="module")
def whole() -> ew.Explanation:
    return explain(numbers(80), bounds=ew.Bounds(inputs=0.6, outputs=0.1), population="all")


@pytest.fixture(scope="module")
def whole_page(whole: ew.Explanation) -> str:
    return report.render(whole)


@pytest.fixture(scope="module")
def held_out_page(held_out: ew.Explanation) -> str:
    return report.render(held_out)


# The same numbers everywhere


def shown(value: float, digits: int = 4) -> str:
    return f"{value:.{digits}g}"


@pytest.mark.parametrize("name", ["held_out", "whole"])
def test_every_place_says_the_same(name, request, tmp_path):
    explanation = request.getfixturevalue(name)
    certificate = explanation.certificate
    told = explanation.save(tmp_path / "run")
    saved = json.loads((told / "explanation.json").read_text("utf-8"))["certificate"]
    printed = json.loads(json.dumps(report.summary(explanation), allow_nan=False))["certificate"]
    page = unescape(re.sub(r"<[^>]+>", " ", request.getfixturevalue(f"{name}_page")))
    assert saved == printed == json.loads(json.dumps(certificate.to_dict()))
    assert ew.load(told).certificate == certificate == Certificate.from_dict(saved)
    lines = str(certificate).splitlines()
    for side_name, line in zip(("inputs", "outputs"), lines[2:4], strict=True):
        side = getattr(certificate, side_name)
        assert f"{side_name}: distance {shown(side.estimate)}" in line
        for value in (side.estimate, side.untrimmed, side.at_most, side.bound):
            assert shown(value) in line
            assert shown(value) in page
        assert f"{side_name} {shown(side.at_most, 3)} <= {shown(side.bound, 3)}" in (
            repr(explanation)
        )
        assert saved[side_name]["estimate"] == side.estimate
        assert saved[side_name]["upper_limit"] == side.upper_limit
        assert saved[side_name]["met"] is side.met is True
        if side.probability is not None:
            assert f"P {probability_text(side.probability)}" in line
            assert probability_text(side.probability) in page
        assert side.assumption in page
        assert side.assumption in str(certificate)
    for readout in certificate.readouts:
        for interval in (readout.before, readout.after):
            number = partial(percent, fine=True) if readout.in_percent else shown
            words = number(interval.estimate)
            if interval.lower is not None:
                words += f" ({number(interval.lower)} to {number(interval.upper)})"
            assert words in str(certificate)
            assert words in page
    for sentence in certificate.not_claimed:
        assert sentence in page
    assert saved["not_claimed"] == list(certificate.not_claimed)
    assert f"{certificate.kind}" in lines[0]
    assert lines[0].startswith("Certificate (")


def test_limits_with_a_support_are_saved(tmp_path):
    limits = ew.Bounds(support=(-9.0, 9.0), cutoff=0.25, method="finite-sample")
    found = explain(numbers(), PLAIN, target=ew.targets.shift(0.5), bounds=limits)
    assert ew.load(found.save(tmp_path / "run")).problem.bounds == limits
    assert {readout.cutoff for readout in found.certificate.readouts} == {None, 0.25}


def test_numbers_that_round_alike_are_told_apart():
    assert format_distinct(0.2000004, 0.2) == ("0.2000004", "0.2")
    assert format_distinct(0.2, 0.2) == ("0.2", "0.2")
    assert format_distinct(np.nextafter(0.2, 1.0), 0.2) == (
        "0.20000000000000004",
        "0.20000000000000001",
    )
    found = explain(numbers(), bounds=ew.Bounds(outputs=0.1))
    side = dataclasses.replace(found.certificate.outputs, upper_limit=0.10004)
    near = dataclasses.replace(
        found, certificate=dataclasses.replace(found.certificate, outputs=side)
    )
    assert "outputs 0.10004 > 0.1" in repr(near)
    assert "upper limit 0.10004 > bound 0.1" in str(near.certificate)


@given(value=st.floats(1e-6, 1e6), bound=st.floats(1e-6, 1e6))
def test_shown_numbers_are_in_the_order_of_the_real_ones(value, bound):
    first, second = (text.replace(",", "") for text in format_distinct(value, bound))
    assert (float(first) < float(second)) <= (value < bound)
    assert (float(first) > float(second)) <= (value > bound)


# What it speaks of


def test_a_held_out_certificate_says_what_it_stands_on(held_out):
    certificate = held_out.certificate
    assert (certificate.kind, certificate.rows, certificate.verdict) == (
        Kind.HELD_OUT,
        100,
        Verdict.CERTIFIED,
    )
    assert certificate.joint_probability == pytest.approx(
        certificate.inputs.probability + certificate.outputs.probability - 1.0
    )
    mean, share = certificate.readouts
    assert (mean.name, share.name) == ("mean predicted probability", "share at or above 50%")
    for readout, method in ((mean, "betting"), (share, "Clopper-Pearson")):
        for interval in (readout.before, readout.after):
            assert interval.method == method
            assert interval.level == 0.95
            assert 0.0 <= interval.lower <= interval.estimate <= interval.upper <= 1.0
        # Two numbers that are read at once have 2.5 % of error each.
        assert readout.together.level == pytest.approx(0.975)
        assert readout.together.lower < readout.after.lower
        assert readout.after.upper < readout.together.upper
    assert mean.after.estimate > mean.before.estimate
    status, side = held_out.status, certificate.outputs
    assert (status.asked, status.reached, status.limit) == (0.2, side.estimate, side.upper_limit)
    assert f"output distance: at most 0.2 asked, {side.estimate:.3g} reached on 100" in str(status)
    assert any("most extreme 5%" in sentence for sentence in certificate.not_claimed)
    assert any(sentence.startswith("Not causal") for sentence in certificate.not_claimed)


def test_in_sample_is_descriptive_everywhere():
    found = explain(numbers(), bounds=ew.Bounds(outputs=0.1))
    assert found.certificate.kind is Kind.IN_SAMPLE
    assert "in-sample" in repr(found)
    assert any(sentence.startswith("Descriptive") for sentence in found.certificate.not_claimed)
    assert "Descriptive" in str(found.certificate)


def test_a_whole_population_has_no_limit(whole, whole_page):
    certificate = whole.certificate
    assert certificate.kind is Kind.POPULATION
    assert (certificate.confidence, certificate.probability) == (None, None)
    assert certificate.joint_probability is None
    for side in (certificate.inputs, certificate.outputs):
        assert side.upper_limit is None
        assert side.at_most == side.estimate <= side.bound
        assert side.met
        assert side.method == "exact"
    for readout in certificate.readouts:
        assert readout.before.level is None
    outputs = np.asarray(score(whole.counterfactual))
    assert certificate.readouts[0].after.estimate == pytest.approx(outputs.mean())
    assert certificate.readouts[1].after.estimate == np.mean(outputs >= 0.5)
    assert "whole population, exact" in repr(whole)
    assert whole.problem.bounds.method == Method.EXACT
    assert "% band" not in whole_page
    assert "exact" in _certificate_section(whole_page)
    assert "95" not in _certificate_section(whole_page)


def _certificate_section(page: str) -> str:
    return page.partition('id="certificate"')[2].partition("</section>")[0]


def test_a_whole_population_is_steered_by_its_distances():
    # The bound is met by the distance, closely: a limit would have asked for more.
    found = explain(numbers(80), bounds=ew.Bounds(outputs=0.1), population="all")
    side = found.certificate.outputs
    assert found.ok
    assert 0.9 * 0.1 <= side.estimate <= 0.1
    history = found.history
    assert (history["outputs_limit"] == history["outputs"]).all()
    missed = explain(
        numbers(80), bounds=ew.Bounds(inputs=1e-3, outputs=1e-3), population="all", settings=FAST
    )
    assert missed.status.verdict is Verdict.NOT_REACHED
    assert missed.certificate.verdict is Verdict.NOT_REACHED
    assert "the distance itself is" in str(missed.certificate)


# Methods


def test_finite_sample_on_demand():
    limits = ew.Bounds(outputs=0.4, method="finite-sample")
    target = ew.targets.constant(0.8)
    found = explain(numbers(120), target=target, bounds=limits, certify="in-sample")
    certificate = found.certificate
    assert certificate.inputs.method == "coupling + betting"
    assert certificate.outputs.method == "equal-local-level band"
    assert found.ok
    assert "[0, 1]" in certificate.outputs.assumption
    for side in (certificate.inputs, certificate.outputs):
        assert side.assumption.endswith("holds for every number of rows.")


def test_few_movers_ask_for_more_rows():
    rows = numbers(150)
    low = float(np.sort(score(rows))[4])
    limits = ew.Bounds(inputs=0.1, outputs=0.05, trim=0.0)
    found = explain(rows, target=ew.targets.at_least(low), bounds=limits, certify="in-sample")
    certificate = found.certificate
    for side in (certificate.inputs, certificate.outputs):
        assert side.method in ("coupling + betting", "nothing moves")
    assert found.status.verdict is Verdict.REACHED
    assert certificate.verdict is Verdict.REACHED
    assert certificate.rows_needed == found.status.rows_needed > 150
    assert f"needs about {certificate.rows_needed:,} rows" in str(found.status)
    assert "not certifiable with these rows: needs about n =" in str(certificate)
    plain = dataclasses.replace(limits, method="asymptotic")
    other = explain(rows, target=ew.targets.at_least(low), bounds=plain, certify="in-sample")
    assert other.ok
    assert "fewer than ten rows clearly moved" in " ".join(other.status.notices)


def test_a_map_without_steps_moves_nothing():
    found = explain(numbers(150), target=ew.targets.at_least(0.01), bounds=ew.Bounds(outputs=0.2))
    assert found.status.verdict is Verdict.NOTHING_TO_DO
    side = found.certificate.inputs
    assert (side.upper_limit, side.method) == (0.0, "nothing moves")
    assert found.certificate.outputs.upper_limit > 0.0


def test_held_out_rows_count_twice():
    rows = numbers(200)
    limits = ew.Bounds(outputs=0.02, method="finite-sample")
    found = explain(rows, bounds=limits, settings=FAST)
    side = found.certificate.outputs
    assert side.rows_needed > found.certificate.rows == 100
    assert found.certificate.rows_needed == 2 * side.rows_needed


def test_no_number_of_rows_is_said_so():
    rows = numbers(80)
    schema = ew.Schema.infer(rows).freeze("a").range("b", -1.0, 1.0)
    found = explain(rows, schema=schema, bounds=ew.Bounds(outputs=0.05))
    assert found.certificate.verdict is Verdict.NOT_REACHED
    said = "probably no number of rows will do: the distance itself is about"
    assert said in str(found.certificate)


# Caps and supports


@given(seed=st.integers(0, 2**31))
@settings(max_examples=40, deadline=None)
def test_no_legal_move_is_longer_than_the_cap(seed):
    rng = np.random.default_rng(seed)
    own = rng.integers(0, 2, 40)
    rows = people.frame(40).assign(
        own=own,
        rent=1 - own,
        size=pd.Categorical(rng.choice(list("SML"), 40), categories=list("SML"), ordered=True),
    )
    schema = (
        ew.Schema.infer(rows)
        .one_hot_group("house", ["own", "rent"])
        .range("income", 10.0, None)
        .weight("debt", 2.0)
        .weight("own", 3.0)
        .only_increase("cards")
    )
    codes = schema.encoder(rows).encode(rows)
    legal, embedding = schema.legal(codes), schema.embedding()
    wild = codes + rng.normal(scale=50.0, size=codes.shape)
    for j, feature in enumerate(schema.features):
        if feature.kind is Column.CATEGORY:
            wild[:, j] = rng.integers(0, len(feature.levels), len(codes))
    flipped = rng.integers(0, 2, len(codes))
    names = list(schema.names)
    wild[:, names.index("own")], wild[:, names.index("rent")] = flipped, 1 - flipped
    moves = embedding.embed(legal.legalize(wild)) - embedding.embed(codes)
    longest = largest_squared_move(schema.features, codes)
    assert np.max(np.sum(moves**2, axis=1)) <= longest * (1 + 1e-12)


def test_the_longest_move_is_attained():
    features = [
        Feature(name="x", kind=Column.NUMBER, free=True, observed=(-1.0, 2.0), scale=0.5, weight=3),
        Feature(name="y", kind=Column.NUMBER, free=False, observed=(-9.0, 9.0)),
        Feature(
            name="z",
            kind=Column.NUMBER,
            free=True,
            observed=(0.0, 9.0),
            declared=(1.0, float("inf")),
        ),
    ]
    codes = np.array([[0.0, 0.0, np.nan], [2.5, 0.0, 4.0]])
    assert largest_squared_move(features, codes) == pytest.approx((3.5 * 6.0) ** 2 + 8.0**2)


TARGETS = {
    "constant": ew.targets.constant(1.5),
    "at least": ew.targets.at_least(0.7),
    "shift": ew.targets.shift(-0.4),
    "scale": ew.targets.scale(-2.0, about=0.5),
    "share": ew.targets.share(0.8, above=0.98, margin=0.2),
}


@pytest.mark.parametrize("name", TARGETS)
def test_the_support_holds_what_is_and_what_is_wanted(name):
    problem, _ = pose(
        ew.Request(model=PROBABILITY, rows=numbers(), target=TARGETS[name]), ew.Bounds()
    )
    low, high = _compared_support(problem, np.ones((1, 1)))
    values = np.linspace(0.0, 1.0, 101)[:, None]
    wanted = np.asarray(problem.target.of(values))
    assert low[0] <= min(0.0, wanted.min())
    assert high[0] >= max(1.0, wanted.max())


def test_the_support_of_directions_holds_all_projections():
    def classes(frame: pd.DataFrame) -> np.ndarray:
        other = score(frame) / 2.0
        return np.column_stack([other, 0.3 - 0.3 * other, 0.7 - 0.7 * other])

    model = ew.models.function(classes, smooth=True, probability=True)
    problem, _ = pose(
        ew.Request(model=model, rows=numbers(), target=ew.targets.at_least(0.4)), ew.Bounds()
    )
    theta = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    low, high = _compared_support(problem, theta)
    corners = np.random.default_rng(1).integers(0, 2, size=(500, 3)) @ theta
    assert np.all(low <= corners.min(axis=0) + 1e-12)
    assert low == pytest.approx(corners.min(axis=0))
    assert high == pytest.approx(corners.max(axis=0))
    found = explain(numbers(), model, target=ew.targets.at_least(0.4), bounds=ew.Bounds(trim=0.0))
    assert {readout.column for readout in found.certificate.readouts} == {0, 1, 2}
    assert "mean predicted probability, column 3:" in str(found.certificate)


def test_supports_are_known_stated_or_absent():
    def support(model: object, target: object, **limits: object) -> object:
        problem, _ = pose(
            ew.Request(model=model, rows=numbers(), target=target), ew.Bounds(**limits)
        )
        return problem.support, _compared_support(problem, np.ones((1, 1)))

    sample = ew.targets.sample([0.2, 1.4])
    assert support(PROBABILITY, sample) == ((0.0, 1.0), None)
    assert support(PLAIN, sample) == (None, None)
    stated, _ = support(PLAIN, sample, support=(-9, 9))
    assert stated == (-9.0, 9.0)


def test_no_output_limit_is_wider_than_the_support():
    limits = ew.Bounds(outputs=0.2, method="finite-sample")
    found = explain(numbers(4), bounds=limits, certify="in-sample")
    side = found.certificate.outputs
    assert side.estimate < side.upper_limit == 1.0
    wide = ew.Bounds(outputs=0.2, method="finite-sample", support=(-3, 5))
    other = explain(numbers(4), PLAIN, bounds=wide, certify="in-sample").certificate.outputs
    assert other.estimate < other.upper_limit <= 8.0
    sure = ew.Bounds(outputs=1.0, method="finite-sample")
    met = explain(numbers(6), bounds=sure, certify="in-sample").certificate.outputs
    assert met.met
    assert (met.probability, met.rows_needed, met.debiased) == (1.0, None, None)


CUTS = {
    "level": (PLAIN, ew.targets.at_least(0.7), 0.7),
    "constant": (PLAIN, ew.targets.constant(1.5), 1.5),
    "sample": (PLAIN, ew.targets.sample([1.0, 2.0, 4.0]), 2.0),
    "probability": (PROBABILITY, ew.targets.at_least(0.7), 0.5),
    "share": (PROBABILITY, ew.targets.share(0.6, above=0.4), 0.4),
}


@pytest.mark.parametrize("name", CUTS)
def test_cut_offs_are_those_of_the_question(name):
    model, target, expected = CUTS[name]
    problem, _ = pose(ew.Request(model=model, rows=numbers(), target=target), ew.Bounds())
    outputs = np.asarray(problem.outputs.values(problem.factual))
    assert ew.certificate.cutoffs(problem, outputs) == (expected,)


def test_other_cut_offs_are_medians():
    from scipy import stats

    for target in (ew.targets.shift(1.0), ew.targets.distribution(stats.norm(2.0))):
        problem, _ = pose(ew.Request(model=PLAIN, rows=numbers(), target=target), ew.Bounds())
        outputs = np.asarray(problem.outputs.values(problem.factual))
        expected = np.median(outputs) if target.name.startswith("shift") else 2.0
        assert ew.certificate.cutoffs(problem, outputs) == (pytest.approx(expected),)


# Bad input


REFUSED = {
    "unknown method": (lambda: ew.Bounds(method="surely"), "bounds.method: expected 'auto'"),
    "support in reverse": (lambda: ew.Bounds(support=(1, 0)), "bounds.support: expected two"),
    "support without an end": (lambda: ew.Bounds(support=(0, np.inf)), "bounds.support: expected"),
    "cut-off that is text": (lambda: ew.Bounds(cutoff="0.5"), "bounds.cutoff: expected a finite"),
    "unknown population": (lambda: explain(numbers(), population="most"), "population: expected"),
    "held-out population": (
        lambda: explain(numbers(), population="all", certify="held-out"),
        "certify: expected 'auto' where the rows are the whole population",
    ),
    "too few rows to split": (
        lambda: explain(numbers(39), certify="held-out"),
        "certify: expected at least 40 rows to hold out half of them.*in-sample",
    ),
    "target sample of one value": (
        lambda: explain(numbers(), target=ew.targets.sample([0.8])),
        r"target: expected a sample of at least 2 values.*targets\.constant",
    ),
    "finite-sample without support": (
        lambda: explain(numbers(), PLAIN, bounds=ew.Bounds(method="finite-sample")),
        "bounds.support: expected ends that no output and no wanted value leaves",
    ),
    "support that outputs leave": (
        lambda: explain(numbers(), PLAIN, bounds=ew.Bounds(support=(0, 1))),
        "bounds.support: expected ends that no output leaves",
    ),
    "epsilon below zero": (lambda: ew.Settings(epsilon=-0.1), "settings.epsilon: expected"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_with_the_remedy(name):
    ask, message = REFUSED[name]
    with pytest.raises(InvalidInput, match=message) as caught:
        ask()
    assert "Fix: " in str(caught.value)


def test_new_rows_of_another_kind_are_refused():
    found = people.explained()
    rows = people.frame(5)
    with pytest.raises(InvalidInput, match="'home'"):
        found.apply(rows.drop(columns="home"))
    with pytest.raises(InvalidInput, match="extra"):
        found.apply(rows.assign(extra=1.0))
    with pytest.raises(InvalidInput, match=r"'home'.*castle|castle.*'home'"):
        found.apply(rows.assign(home="castle"))


def test_a_target_sample_of_equal_values_is_answered():
    found = explain(numbers(), target=ew.targets.sample([0.7] * 20), bounds=ew.Bounds(outputs=0.3))
    assert found.ok
    assert found.certificate.outputs.upper_limit <= 0.3


def test_heavy_tails_hardly_trimmed_are_noticed():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.standard_t(2.1, 150), "b": rng.standard_t(2.1, 150)})
    for trim, noticed in ((0.01, True), (0.05, False)):
        found = explain(
            rows,
            PLAIN,
            target=ew.targets.shift(0.5),
            bounds=ew.Bounds(outputs=0.3, trim=trim),
        )
        said = " ".join(found.status.notices)
        assert ("outputs: the limit may be too small" in said) == noticed
        assert ("the range of the values is not known" in said) == noticed
        assert ("trim of 0.05 or more" in said) == noticed


@pytest.mark.parametrize(("moved_share", "widest"), [(1.0, 1.15), (0.3, 1.2)])
def test_the_limit_of_the_row_move_covers_and_bounds_the_unsliced_distance(
    moved_share: float, widest: float
) -> None:
    """300 samples of 200 rows: the one-sided 95% limit covers and is near the truth."""
    rng = np.random.default_rng(12)
    limits = []
    for _ in range(300):
        rows = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
        step = np.where(rng.random(200) < moved_share, rng.uniform(0.0, 2.0, 200), 0.0)
        request = ew.Request(model=score, rows=rows, target=ew.targets.shift(0.1))
        problem, _ = pose(request, ew.Bounds())
        population = populate(problem)
        codes = np.asarray(population.codes) + np.stack([step, np.zeros(200)], axis=1)
        found = certify_moves(problem, population, Rows(codes, population.outputs))
        scale = problem.schema["a"].scale
        assert found.estimate == pytest.approx(np.sqrt(np.mean((step / scale) ** 2)))
        limits.append(found.upper * scale)
    truth = np.sqrt(4.0 / 3.0 * moved_share)  # E X^2 of a uniform on (0, 2) is 4/3
    assert np.mean(np.array(limits) >= truth) >= 0.94
    assert np.median(limits) <= widest * truth
    # The coupling by rows costs at least the optimal assignment, in any dimension.
    before, after = np.asarray(population.embedded), problem.embedding.embed(codes)
    plan = linear_sum_assignment(cdist(before, after, "sqeuclidean"))
    optimal = np.sqrt(cdist(before, after, "sqeuclidean")[plan].mean())
    assert optimal <= found.estimate + 1e-12
