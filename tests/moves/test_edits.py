"""Edits: what may move, what is drawn, and how past gains steer the next draw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from elsewise.features import Schema
from elsewise.moves import Edits, Source, Stock, Unit, units
from elsewise.moves._edits import draw_edits, pair_edits, revert_edits

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "income": RNG.normal(30.0, 8.0, 80),
        "home": RNG.choice(["own", "rent", "free"], 80),
        "age": RNG.integers(20, 60, 80),
        "north": np.arange(80) % 2,
        "south": 1 - np.arange(80) % 2,
        "job": RNG.choice(["a", "b", "c"], 80),
    }
)
SCHEMA = (
    Schema.infer(FRAME)
    .freeze("age")
    .one_hot_group("side", ["north", "south"])
    .allowed("job", ["b"])
)
CODES = SCHEMA.encoder(FRAME).encode(FRAME)
OUTPUTS = CODES[:, :1] / 100.0
MOVING = units(SCHEMA, CODES)
FRESH = Stock(
    units=MOVING,
    background=CODES,
    outputs=OUTPUTS,
    smooth=False,
    count=None,
    of_sources=np.zeros(len(Source)),
    of_units=np.zeros(len(MOVING)),
)


def draw(stock: Stock = FRESH, count: int = 400, seed: int = 0) -> Edits:
    return draw_edits(stock, count, np.random.default_rng(seed))


def knowing(sources: np.ndarray, per_unit: np.ndarray) -> Stock:
    return replace(FRESH, of_sources=sources, of_units=per_unit)


def unit_of(name: str) -> Unit:
    column = list(FRAME).index(name)
    (found,) = [unit for unit in MOVING if column in unit.columns]
    return found


def test_a_unit_is_a_number_a_category_or_a_one_hot_group() -> None:
    assert sorted(unit.columns for unit in MOVING) == [(0,), (1,), (3, 4), (5,)]
    assert unit_of("income")[1] is None
    assert unit_of("income").scale == pytest.approx(FRAME["income"].std())
    assert len(unit_of("home")[1]) == 3
    np.testing.assert_array_equal(unit_of("north")[1], np.eye(2))


def test_a_category_moves_to_levels_seen_or_allowed() -> None:
    some = CODES[FRAME["home"] != "free"]
    (home,) = [unit for unit in units(SCHEMA, some) if unit.columns == (1,)]
    assert set(home[1][:, 0]) == set(some[:, 1])
    levels = dict(zip(FRAME["job"], CODES[:, 5], strict=True))
    assert unit_of("job")[1].tolist() == [[levels["b"]]]


def test_only_what_may_move_is_edited() -> None:
    edits = draw()
    changed = edits.sources != Source.KEEP
    assert not changed[:, 2].any()
    assert changed[:, [0, 1, 3, 5]].any(axis=0).all()
    # Columns of a group are edited together.
    np.testing.assert_array_equal(edits.sources[:, 3], edits.sources[:, 4])


def test_values_are_those_seen() -> None:
    edits = draw()
    given = edits.sources == Source.VALUE
    for column in (0, 1, 5):
        assert given[:, column].any()
        assert np.isin(edits.values[given[:, column], column], CODES[:, column]).all()  # noqa: PD011
    sides = edits.values[given[:, 3]][:, [3, 4]]  # noqa: PD011
    assert set(map(tuple, sides)) == {(0.0, 1.0), (1.0, 0.0)}


def test_new_values_touch_one_or_two_units() -> None:
    edits = draw()
    firsts = [unit.columns[0] for unit in MOVING]
    touched = (edits.sources[:, firsts] != Source.KEEP).sum(axis=1)
    new = np.isin(edits.sources, [Source.VALUE, Source.SHIFT]).any(axis=1)
    pure = new & ~np.isin(edits.sources, [Source.FACTUAL, Source.DONOR, Source.ANCHOR]).any(axis=1)
    # An anchor of a category becomes a value, so several units may be touched where one is left.
    numbers = pure & (edits.sources[:, 0] == Source.SHIFT)
    assert set(touched[numbers]) <= {1, 2}


def test_donors_are_rows_of_the_background_with_their_outputs() -> None:
    edits = draw()
    assert len(edits.donors) == 64
    places = [int(np.flatnonzero((donor == CODES).all(axis=1))[0]) for donor in edits.donors]
    assert len(set(places)) == 64
    np.testing.assert_array_equal(edits.donor_outputs, OUTPUTS[places])


def test_the_same_generator_draws_the_same_edits() -> None:
    one, same, other = draw(), draw(), draw(seed=1)
    np.testing.assert_array_equal(one.sources, same.sources)
    np.testing.assert_array_equal(one.values, same.values)
    assert (one.sources != other.sources).any()


def test_a_missing_value_is_not_offered() -> None:
    holes = CODES.copy()
    holes[::2, 0] = np.nan
    edits = draw(replace(FRESH, background=holes))
    assert np.isfinite(edits.values).all()


def test_revert_edits_take_each_unit_back_alone() -> None:
    edits = draw(count=5)
    back = revert_edits(MOVING, edits, np.random.default_rng(0))
    first = back.sources[: len(MOVING)]
    for row, unit in zip(first, MOVING, strict=True):
        expected = np.isin(np.arange(CODES.shape[1]), unit.columns) * Source.FACTUAL
        np.testing.assert_array_equal(row, expected)
    np.testing.assert_array_equal(back.sources[len(MOVING) :], edits.sources)
    np.testing.assert_array_equal(back.values[len(MOVING) :], edits.values)  # noqa: PD011
    assert back.donors is edits.donors


# --- scores ---------------------------------------------------------------------------------------


def test_scores_are_decayed_sums_of_gains() -> None:
    """Each edit's gain counts once for every unit it changes, and for the source of that change."""
    edits = draw(count=50)
    gains = np.random.default_rng(3).exponential(size=50)
    before = knowing(np.arange(float(len(Source))), np.arange(4.0))
    after = before.credited(edits, 80 * gains, 80)
    sources, helped = 0.7 * before.of_sources, 0.7 * before.of_units
    for row, gain in zip(edits.sources, gains, strict=True):
        for place, unit in enumerate(MOVING):
            source = row[unit.columns[0]]
            if source != Source.KEEP:
                sources[source] += gain
                helped[place] += gain
    np.testing.assert_allclose(after.of_units, helped)
    np.testing.assert_allclose(after.of_sources, sources)


def test_without_gains_scores_only_fade() -> None:
    before = knowing(np.full(len(Source), 2.0), np.full(4, 3.0))
    after = before.credited(draw(count=20), np.zeros(20), 80)
    np.testing.assert_allclose(after.of_units, 2.1)
    np.testing.assert_allclose(after.of_sources, 1.4)


def test_what_helped_is_drawn_more_and_the_rest_still_drawn() -> None:
    """With all past success on shifts, 0.7 + 0.3 / 5 of the edits are shifts."""
    only_shifts = np.where(np.arange(len(Source)) == Source.SHIFT, 1.0, 0.0)
    place = MOVING.index(unit_of("income"))
    stock = knowing(only_shifts, np.where(np.arange(4) == place, 1.0, 0.0))
    learned, fresh = draw(stock, 4000), draw(count=4000)
    # The number is drawn first in at least 0.7 + 0.3 / 4 of the edits, else in a quarter or more.
    shifts = (learned.sources[:, 0] == Source.SHIFT).mean()
    assert shifts > 0.76 * 0.775 - 0.03
    assert shifts > 3 * (fresh.sources[:, 0] == Source.SHIFT).mean()
    others = learned.sources[:, [1, 3, 5]] != Source.KEEP
    assert others.any(axis=0).all()
    assert set(np.unique(learned.sources)) == set(Source) - {Source.TOWARDS}


def test_pairs_put_one_more_unit_back() -> None:
    drawn = draw()
    paired = pair_edits(MOVING, drawn, np.random.default_rng(1))
    more = paired.sources != drawn.sources
    assert (drawn.sources[more] == Source.KEEP).all()
    assert (paired.sources[more] == Source.FACTUAL).all()
    per_edit = np.column_stack([more[:, unit.columns].any(axis=1) for unit in MOVING])
    assert per_edit.sum(axis=1).max() == 1
    assert 0.15 < per_edit.any(axis=1).mean() < 0.5
    # A one-hot group goes back as a whole.
    np.testing.assert_array_equal(more[:, 3], more[:, 4])
