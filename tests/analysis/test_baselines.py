"""DiCE and rows of one's own, as explanations."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

import elsewise as ew
from applicants import applicants, refused_of, score
from elsewise import metrics
from elsewise.baselines import DiceSettings, dice, given
from elsewise.errors import InvalidInput, MissingExtra


@pytest.fixture(scope="module")
def background() -> pd.DataFrame:
    return applicants()


@pytest.fixture(scope="module")
def refused(background: pd.DataFrame) -> pd.DataFrame:
    return refused_of(background)


# --- DiCE -----------------------------------------------------------------------------------------


def test_dice_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, refused: pd.DataFrame
) -> None:
    monkeypatch.setitem(sys.modules, "dice_ml", None)
    with pytest.raises(MissingExtra, match=r"pip install 'elsewise\[baselines\]'"):
        dice(score, refused)


def test_dice_stops_at_its_time_cap(refused: pd.DataFrame, background: pd.DataFrame) -> None:
    found = dice(score, refused, background=background, settings=DiceSettings(seconds=1e-3))
    assert not found.found.any()
    pd.testing.assert_frame_equal(found.counterfactual, refused)
    assert found.status.notices[1] == f"0 of {len(refused)} rows found, time cap 0.001 s"


def test_dice_keeps_ranges(refused: pd.DataFrame, background: pd.DataFrame) -> None:
    schema = ew.Schema.infer(refused, background).only("income", "debt").range("debt", 0.0, 9.0)
    rows = refused[refused["debt"].between(0.0, 9.0)].head(3)
    found = dice(score, rows, schema=schema, background=background)
    assert found.found.any()
    assert metrics.compare([found])["illegal"].iloc[0] == 0.0


def test_dice_changes_no_cell_by_rounding(background: pd.DataFrame) -> None:
    frame = background[["income", "debt"]] / 3.0
    rows = frame[frame["income"] < 3.0].head(4)
    found = dice(lambda rows: (rows["income"] >= 3.5) * 1.0, rows, background=frame)
    moved = (found.counterfactual - rows).abs().to_numpy()
    assert found.found.all()
    assert ((moved == 0.0) | (moved > 1e-4)).all()


def test_dice_refuses_settings_without_meaning() -> None:
    with pytest.raises(InvalidInput, match=r"settings.method: expected 'genetic' or 'random'"):
        DiceSettings(method="gradient")
    with pytest.raises(InvalidInput, match=r"settings.seconds: expected a number > 0"):
        DiceSettings(seconds=0.0)


# --- rows of one's own ----------------------------------------------------------------------------


def test_given_rows_are_taken_as_they_are() -> None:
    rows = pd.DataFrame({"m": [1, 0, 1], "f": [0, 1, 0], "age": [30, 40, 50]})
    schema = ew.Schema.infer(rows).one_hot_group("sex", ["m", "f"])
    after = rows.assign(f=[1, 1, 0], age=[30, 41, 99])
    found = given(lambda frame: frame["age"] / 100, rows, after, method="by hand", schema=schema)
    pd.testing.assert_frame_equal(found.counterfactual, after)
    np.testing.assert_array_equal(found.outputs[:, 0], after["age"] / 100)
    assert found.status.notices[0] == "made by by hand"
    # Both sexes at once, and an age nobody has; the second row is legal.
    table = metrics.compare([found])
    assert table["illegal"].item() == pytest.approx(2 / 3)


def test_given_refuses_rows_of_another_table() -> None:
    rows = pd.DataFrame({"a": [0.1, 0.2, 0.4]})
    for other in (rows[:2], rows.rename(columns={"a": "b"}), rows.to_numpy()):
        with pytest.raises(InvalidInput, match="index and the columns of rows"):
            given(lambda frame: frame["a"], rows, other, method="mine")
