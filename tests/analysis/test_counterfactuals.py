"""Rows that another method made, as explanations."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from benchmarks.rivals.compare import compare

import elsewise as ew
from elsewise.analysis import from_counterfactuals
from elsewise.errors import InvalidInput


def test_rows_are_taken_as_they_are() -> None:
    rows = pd.DataFrame({"m": [1, 0, 1], "f": [0, 1, 0], "age": [30, 40, 50]})
    schema = ew.Schema.infer(rows).one_hot_group("sex", ["m", "f"])
    after = rows.assign(f=[1, 1, 0], age=[30, 41, 99])
    found = from_counterfactuals(
        lambda frame: frame["age"] / 100, rows, after, method="by hand", schema=schema
    )
    pd.testing.assert_frame_equal(found.counterfactual, after)
    np.testing.assert_array_equal(found.outputs[:, 0], after["age"] / 100)
    assert found.status.notices[0] == "made by by hand"
    # Both sexes at once, and an age nobody has; the second row is legal.
    table = compare([found])
    assert table["illegal"].item() == pytest.approx(2 / 3)


def test_refuses_rows_of_another_table() -> None:
    rows = pd.DataFrame({"a": [0.1, 0.2, 0.4]})
    for other in (rows[:2], rows.rename(columns={"a": "b"}), rows.to_numpy()):
        with pytest.raises(InvalidInput, match="index and the columns of rows"):
            from_counterfactuals(lambda frame: frame["a"], rows, other, method="mine")
