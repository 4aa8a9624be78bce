"""Many columns and many levels: bounded blocks, the same answers."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression

import elsewise as ew
from elsewise import transport
from elsewise.models import _differences
from elsewise.models._differences import Differences

WIDE = 1100


def test_directions_of_many_dimensions_are_complete_and_sparse() -> None:
    theta = transport.direction_blocks(WIDE, np.random.default_rng(0))
    assert sparse.issparse(theta)
    assert theta.shape == (WIDE, WIDE)
    assert theta.nnz <= 128 * WIDE
    np.testing.assert_allclose((theta @ theta.T).toarray(), np.eye(WIDE), atol=1e-12)
    packed = transport.pack_directions(theta)
    again = transport.unpack_directions(packed)
    assert (abs(again - theta)).max() == 0.0
    for row in (WIDE, -1):
        packed[3, 5, 1] = row
        with pytest.raises(ValueError, match="indices"):
            transport.unpack_directions(packed)


def test_sparse_directions_do_what_dense_ones_do() -> None:
    rng = np.random.default_rng(1)
    theta = transport.direction_blocks(WIDE, rng)
    dense = theta.toarray()
    x, y = rng.normal(size=(2, 30, WIDE))
    np.testing.assert_allclose(
        transport.project(x, theta), transport.project(x, dense), rtol=0, atol=1e-12
    )
    one = transport.sliced_squared_distance_and_gradient(x, y, theta, 0.05)
    other = transport.sliced_squared_distance_and_gradient(x, y, dense, 0.05)
    assert one[0] == pytest.approx(other[0], rel=1e-12)
    np.testing.assert_allclose(one[1], other[1], rtol=0, atol=1e-12)
    assert transport.sliced_squared_distance(x, y, theta) == pytest.approx(
        transport.sliced_squared_distance(x, y, dense), rel=1e-12
    )


@pytest.mark.parametrize("cells", [1, 40, 10**9])
def test_differences_do_not_depend_on_their_blocks(
    cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(9, 5)), columns=list("abcde"))
    encoder = ew.Schema.infer(frame).freeze("c").encoder(frame)
    codes, asked = encoder.encode(frame), []

    def evaluate(rows: np.ndarray) -> np.ndarray:
        asked.append(rows.size)
        return np.stack([np.sin(rows).sum(axis=1), np.prod(rows, axis=1)], axis=1)

    whole = Differences.of(encoder).slopes(evaluate, codes)
    asked.clear()
    monkeypatch.setattr(_differences, "CELLS", cells)
    np.testing.assert_array_equal(Differences.of(encoder).slopes(evaluate, codes), whole)
    assert max(asked) <= max(cells, 2 * 5)
    moving = [0, 1, 3, 4]
    np.testing.assert_allclose(whole[:, 0, moving], np.cos(codes)[:, moving], atol=2e-3)
    assert (whole[:, :, 2] == 0).all()


def test_a_wide_frame_is_explained_in_bounded_memory(tmp_path: object) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(50, 2500)), columns=[f"x{j}" for j in range(2500)])
    weights = rng.normal(size=2500) / 50
    model = LinearRegression().fit(frame, frame.to_numpy() @ weights)
    asked = {"target": ew.targets.shift(0.5), "bounds": ew.Bounds(inputs=0.5, outputs=0.5)}
    tracemalloc.start()
    found = ew.explain(model, frame, settings=ew.Settings(iterations=3, draws=99), **asked)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300e6  # a decomposition of one draw of directions alone took 150 MB and more
    found.save(tmp_path / "run")
    loaded = ew.load(tmp_path / "run", model=model)
    pd.testing.assert_frame_equal(loaded.apply(frame), found.apply(frame))
