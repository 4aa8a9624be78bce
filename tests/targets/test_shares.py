"""Laws of a share: enough rows are asked, the cheapest ones, and nobody else."""

from __future__ import annotations

import json

import array_api_strict
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elsewise._arrays import to_numpy
from elsewise.errors import InvalidInput
from elsewise.targets import (
    Derived,
    Wanted,
    at_least,
    at_most,
    constant,
    from_dict,
    label,
    mean,
    quantile,
    question_of,
    resolve,
    share,
    shift,
)

OUTPUTS = st.lists(st.integers(0, 200), min_size=1, max_size=30).map(
    lambda cells: np.array(cells)[:, None] / 200
)
SHARES = st.floats(0.01, 1.0)


@given(OUTPUTS, SHARES, st.floats(0.1, 0.9))
def test_enough_rows_pass_and_those_that_passed_stay(outputs, value, cutoff):
    wanted = share(at_least=value, above=cutoff).resolved(outputs).of(outputs)
    assert np.mean(wanted >= cutoff) >= value - 1e-9
    kept = (wanted == outputs)[:, 0]
    assert kept[outputs[:, 0] >= cutoff].all()
    np.testing.assert_array_equal(wanted[~kept], cutoff + 0.05)


@given(OUTPUTS, SHARES)
def test_the_fewest_rows_are_asked_and_the_nearest_first(outputs, value):
    asked = (share(at_least=value).resolved(outputs).of(outputs) != outputs)[:, 0]
    if asked.any():
        lowest = outputs[asked].min()
        assert asked[(outputs[:, 0] >= lowest) & (outputs[:, 0] < 0.5)].all()
        # Without the rows at the lowest asked output there would be too few.
        assert np.sum(outputs > lowest) < value * len(outputs)


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), SHARES, st.integers(0, 2))
def test_a_class_leads_by_the_margin_where_it_is_asked_to(seed, n, value, column):
    outputs = np.random.default_rng(seed).dirichlet([0.5, 1.0, 1.5], n)
    target = share(at_least=value, of=column, margin=0.1).resolved(outputs)
    wanted = target.of(outputs)
    np.testing.assert_allclose(wanted.sum(axis=1), 1.0)
    assert (wanted >= 0).all()
    assert np.mean(np.argmax(wanted, axis=1) == column) >= value - 1e-9
    moved = (wanted != outputs).any(axis=1)
    assert not moved[np.argmax(outputs, axis=1) == column].any()
    rest = np.delete(wanted, column, axis=1).max(axis=1)
    np.testing.assert_allclose((wanted[:, column] - rest)[moved], 0.1)


@pytest.mark.parametrize("column", [None, 1])
@pytest.mark.parametrize("library", [torch.asarray, array_api_strict.asarray])
def test_libraries_agree(column, library):
    outputs = np.random.default_rng(0).dirichlet([1.0, 1.0, 1.0], 20)
    outputs = outputs[:, :1] if column is None else outputs
    target = share(0.7, of=column).resolved(outputs)
    assert share(0.7, of=column).resolved(library(outputs)) == target
    np.testing.assert_array_equal(to_numpy(target.of(library(outputs))), target.of(outputs))


def test_the_threshold_is_saved_with_the_target():
    outputs = np.linspace(0.0, 0.6, 11)[:, None]
    target = resolve(share(approved=0.5), outputs)
    assert isinstance(target, Derived)
    again = from_dict(json.loads(json.dumps(target.to_dict())))
    assert again == target
    new = np.array([[0.2], [0.33], [0.7]])
    np.testing.assert_array_equal(again.of(new), [[0.2], [0.55], [0.7]])


def test_names_and_words():
    assert share(0.6).name == "share(0.6)"
    assert share(0.6, of=2).name == "share(0.6, of=2)"
    assert share(approved=0.6).name == share(0.6, of="approved").name == "share(approved=0.6)"
    assert share(approved=0.6).describe().startswith("60% of rows approved (output at")
    assert "class 2 the most likely" in share(0.6, of=2).describe()
    assert share(0.6).resolved(np.ones((2, 1))).describe() == share(0.6).describe()
    assert resolve(at_least(0.5), np.ones((2, 1))) == at_least(0.5)


REFUSED = {
    "none": (lambda: share(), "one share"),
    "two": (lambda: share(approved=0.5, refused=0.2), "one share"),
    "named twice": (lambda: share(0.5, approved=0.5), "one share"),
    "less than nothing": (lambda: share(-0.1), r"a share in \[0, 1\]"),
    "too much": (lambda: share(approved=1.1), r"a share in \[0, 1\]"),
    "per cent": (lambda: share(approved=60), "did you mean 0.6"),
    "a name alone": (lambda: share(of="approved"), r"a share in \[0, 1\]"),
    "two directions": (lambda: share(at_least=0.5, at_most=0.6), "one share"),
    "above and below": (lambda: share(0.5, above=1.0, below=2.0), "above= or below="),
    "text": (lambda: share("most"), r"value: expected a share in \[0, 1\], received 'most'"),
    "several": (lambda: share([0.5, 0.6]), r"a share in \[0, 1\]"),
    "cutoff": (lambda: share(0.5, above=np.nan), "cutoff: expected a finite number"),
    "margin": (lambda: share(0.5, margin=-0.1), "margin: expected a number >= 0"),
    "class": (lambda: share(0.5, of=(1, 2)), "of: expected the label or column of a class"),
    "name of a class": (
        lambda: share(rich=0.5).resolved(np.ones((2, 3)) / 3),
        "of: expected the column of a class, 0 to 2",
    ),
    "class too many": (
        lambda: share(0.5, of=3).resolved(np.ones((2, 3)) / 3),
        "of: expected the column of a class, 0 to 2",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    call, message = REFUSED[name]
    with pytest.raises(InvalidInput, match=message):
        call()


@given(OUTPUTS, st.floats(0.0, 1.0), st.floats(0.1, 0.9), st.booleans())
def test_a_share_falls_as_it_rises(outputs, value, cutoff, below):
    """The share above that falls to p is the share below that rises to 1 - p, and the reverse."""
    ends = {"below" if below else "above": cutoff}
    target = share(value, **ends).resolved(outputs)
    after = target.of(outputs)
    passing = (after <= cutoff if below else after >= cutoff)[:, 0]
    count = value * len(outputs)
    if target.falling:
        assert passing.sum() <= np.floor(count + 1e-9)
    else:
        assert passing.sum() >= np.ceil(count - 1e-9)
    question = question_of(target, 1)
    assert question.asked == pytest.approx(value)
    np.testing.assert_array_equal(question.wanted.contains(after) ^ target.falling, passing)


@pytest.mark.parametrize(
    ("target", "inside", "outside"),
    [
        (at_most([0.5, None]), [0.5, 9.0], [0.6, 0.0]),
        (at_least([None, 0.5]), [-9.0, 0.5], [9.0, 0.4]),
        (constant([0.5, None], tolerance=0.1), [0.6, 7.0], [0.61, 0.5]),
        (label(1).resolved(np.eye(2)), [0.4, 0.6], [0.6, 0.4]),
    ],
)
def test_what_counts_as_wanted(target, inside, outside):
    question = question_of(target, 2)
    assert question.kind == "every"
    assert question.wanted.contains(np.array([inside, outside])).tolist() == [True, False]
    again = question_of(from_dict(json.loads(json.dumps(target.to_dict()))), 2)
    assert again == question


def test_a_quantile_is_a_share_in_other_words():
    target = quantile(0.25, 0.4)
    assert (target.value, target.cutoff, target.below) == (0.25, 0.4, True)
    assert target.name == "quantile(0.25, 0.4)"


def test_a_mean_moves_every_output_by_what_it_lacks():
    target = resolve(mean(0.5), np.array([[0.2], [0.4]]))
    np.testing.assert_allclose(target.of(np.array([[0.1]])), [[0.3]])
    question = question_of(target, 1)
    assert (question.kind, question.mean, question.falling) == ("mean", 0.5, False)
    assert from_dict(target.to_dict()) == target


@given(st.integers(0, 2**32 - 1))
def test_margins_tell_inside_from_outside_and_slopes_are_their_derivatives(seed):
    rng = np.random.default_rng(seed)
    outputs = rng.dirichlet([2.0, 2.0, 2.0], 5).clip(0.01, 0.9)
    for wanted in (
        Wanted(lower=(0.3, -np.inf, 0.2)),
        Wanted(upper=(0.4, 0.4, 0.4)).opposite(),
        Wanted(column=1),
    ):
        margins = wanted.margins(outputs, True)
        sure = np.abs(margins) > 1e-9
        np.testing.assert_array_equal((margins > 0)[sure], wanted.contains(outputs)[sure])
        gradient = np.broadcast_to(np.eye(3), (5, 3, 3))
        slopes = wanted.slopes(outputs, gradient, True)
        step = 1e-7 * rng.normal(size=3)
        moved = wanted.margins(outputs + step, True)
        np.testing.assert_allclose((moved - margins), slopes @ step, atol=1e-10, rtol=1e-3)


@pytest.mark.parametrize(
    ("target", "name", "words"),
    [
        (share(0.9, below=0.5), "", "with a predicted probability of at most 50%"),
        (share(0.9, below=0.375), "risk", "with a risk of at most 37.5%"),
        (share(0.9, above=0.5), "output", "with an output of at least 50%"),
        (share(approved=0.9), "score", "approved (score at least 50%)"),
        (label("b"), "", "of class b (predicted probability at least 50%)"),
        (at_most(0.3), "", "with a predicted probability of at most 30%"),
        (constant(0.5, tolerance=0.1), "", "with every output equal to 0.5 within 0.1"),
    ],
)
def test_a_probability_is_said_in_per_cent_and_by_its_name(target, name, words):
    asked = resolve(target, np.array([[0.45], [0.7]]), ["a", "b"])
    assert question_of(asked, 1, probability=True).condition(name) == words


def test_numbers_of_a_question_are_in_its_unit():
    outputs = np.array([[0.2], [0.4]])
    for target, probability, shown in (
        (share(0.9, below=0.5), True, "31.2%"),
        (mean(0.5), False, "0.3125"),
        (mean(0.5), True, "31.2%"),
        (shift(0.1), True, "31.2 points"),
    ):
        question = question_of(resolve(target, outputs), 1, probability=probability)
        assert question.number(0.3125) == shown


def test_a_class_is_called_what_the_model_calls_it() -> None:
    outputs = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]])
    asked = share(0.5, of="red").labelled(["red", "green", "blue"], 3)
    assert asked.of == 0
    assert asked.name == "share(0.5, of=red)"
    assert "class red the most likely" in question_of(asked.resolved(outputs), 3).condition()
    again = from_dict(asked.resolved(outputs).to_dict())
    assert again.name == asked.name
    assert again.describe() == asked.describe()
