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
from elsewise.targets import Derived, at_least, from_dict, resolve, share

OUTPUTS = st.lists(st.integers(0, 200), min_size=1, max_size=30).map(
    lambda cells: np.array(cells)[:, None] / 200
)
SHARES = st.floats(0.01, 1.0)


@given(OUTPUTS, SHARES, st.floats(0.1, 0.9))
def test_enough_rows_pass_and_those_that_passed_stay(outputs, value, cutoff):
    wanted = share(value, cutoff=cutoff).resolved(outputs).of(outputs)
    assert np.mean(wanted >= cutoff) >= value - 1e-9
    kept = (wanted == outputs)[:, 0]
    assert kept[outputs[:, 0] >= cutoff].all()
    np.testing.assert_array_equal(wanted[~kept], cutoff + 0.05)


@given(OUTPUTS, SHARES)
def test_the_fewest_rows_are_asked_and_the_nearest_first(outputs, value):
    asked = (share(value).resolved(outputs).of(outputs) != outputs)[:, 0]
    if asked.any():
        lowest = outputs[asked].min()
        assert asked[(outputs[:, 0] >= lowest) & (outputs[:, 0] < 0.5)].all()
        # Without the rows at the lowest asked output there would be too few.
        assert np.sum(outputs > lowest) < value * len(outputs)


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), SHARES, st.integers(0, 2))
def test_a_class_leads_by_the_margin_where_it_is_asked_to(seed, n, value, column):
    outputs = np.random.default_rng(seed).dirichlet([0.5, 1.0, 1.5], n)
    target = share(value, of=column, margin=0.1).resolved(outputs)
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
    assert share(approved=0.6).describe().startswith("at least 60% of rows approved (output at")
    assert "class 2 the most likely" in share(0.6, of=2).describe()
    assert share(0.6).resolved(np.ones((2, 1))).describe() == share(0.6).describe()
    assert resolve(at_least(0.5), np.ones((2, 1))) == at_least(0.5)


REFUSED = {
    "none": (lambda: share(), "one share"),
    "two": (lambda: share(approved=0.5, refused=0.2), "one share"),
    "named twice": (lambda: share(0.5, approved=0.5), "one share"),
    "nothing": (lambda: share(0.0), r"a share in \(0, 1\]"),
    "too much": (lambda: share(approved=1.1), r"a share in \(0, 1\]"),
    "a name alone": (lambda: share(of="approved"), r"a share in \(0, 1\]"),
    "text": (lambda: share("most"), "value: expected finite numbers"),
    "several": (lambda: share([0.5, 0.6]), "one number"),
    "cutoff": (lambda: share(0.5, cutoff=np.nan), "cutoff: expected finite"),
    "margin": (lambda: share(0.5, margin=-0.1), "margin: expected a number >= 0"),
    "class": (lambda: share(0.5, of=(1, 2)), "of: expected the column of a class, or a name"),
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
