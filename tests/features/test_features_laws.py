"""Laws of encoder, embedding and boxes, over generated frames."""

from dataclasses import replace

import array_api_strict
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elsewise._arrays import to_numpy
from elsewise.features import Encoder, Kind, Schema

LAWS = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
FINITE = st.floats(-1e6, 1e6)
TEXT = st.sampled_from(["", "a", "b", "ä", "long text"])


def _missing(values):
    return st.one_of(st.none(), values)


def _series(cells, dtype):
    return st.builds(lambda values: pd.Series(values, dtype=dtype), cells)


def _columns(rows):
    """Strategies of one column each, one per supported dtype."""

    def cells(values, missing=True):
        return st.lists(_missing(values) if missing else values, min_size=rows, max_size=rows)

    days = st.datetimes(pd.Timestamp("1990-01-01"), pd.Timestamp("2030-01-01"))
    levels = ["a", "", "long text", "b", "ä"]
    return {
        "float64": _series(cells(FINITE), "float64"),
        "float32": _series(cells(st.floats(-1e6, 1e6, width=32)), "float32"),
        "int64": _series(cells(st.integers(-(2**53), 2**53), missing=False), "int64"),
        "beyond": _series(cells(st.integers(-(2**63), 2**63 - 1), missing=False), "int64"),
        "int8": _series(cells(st.integers(-128, 127), missing=False), "int8"),
        "bool": _series(cells(st.booleans(), missing=False), "bool"),
        "Int64": _series(cells(st.integers(-(2**63), 2**63 - 1)), "Int64"),
        "boolean": _series(cells(st.booleans()), "boolean"),
        "Float64": _series(cells(FINITE), "Float64"),
        "string": _series(cells(TEXT), "string"),
        "str": _series(cells(TEXT), "str"),
        "object": _series(cells(TEXT), object),
        "flags": _series(cells(st.booleans()), object),
        "category": _series(cells(TEXT), pd.CategoricalDtype(levels)),
        "ordered": _series(cells(TEXT), pd.CategoricalDtype(levels, ordered=True)),
        "datetime": _series(cells(days), "datetime64[ns]"),
        "zoned": _series(cells(days), "datetime64[us, Europe/Berlin]"),
    }


@st.composite
def frames(draw):
    rows = draw(st.integers(2, 6))
    columns = _columns(rows)
    names = draw(st.lists(st.sampled_from(sorted(columns)), min_size=1, max_size=6, unique=True))
    return pd.DataFrame({name: draw(columns[name]) for name in names})


def _same_bits(one, other):
    """Equal dtypes and cells; floats to the last bit, objects to their type."""
    pd.testing.assert_frame_equal(one, other, check_exact=True)
    for name in one:
        if one[name].dtype.kind == "f" and isinstance(one[name].dtype, np.dtype):
            present = one[name].notna().to_numpy()
            left, right = one[name].to_numpy()[present], other[name].to_numpy()[present]
            assert left.tobytes() == right.tobytes()
        if one[name].dtype == object:
            assert [type(cell) for cell in one[name]] == [type(cell) for cell in other[name]]


@LAWS
@given(frames())
def test_decode_inverts_encode(frame):
    encoder = Schema.infer(frame).encoder(frame)
    codes = encoder.encode(frame)
    assert codes.dtype == np.float64
    np.testing.assert_array_equal(np.isnan(codes), frame.isna().to_numpy())
    _same_bits(encoder.decode(codes, index=frame.index), frame)
    np.testing.assert_array_equal(encoder.encode(encoder.decode(codes)), codes)


@LAWS
@given(frames())
def test_saving_keeps_schema_and_encoder(frame):
    schema = Schema.infer(frame)
    assert Schema.from_toml(schema.to_toml()) == schema
    encoder = schema.encoder(frame)
    again = Encoder.from_dict(encoder.to_dict())
    _same_bits(again.decode(encoder.encode(frame)), frame)


@LAWS
@given(frames(), st.randoms(use_true_random=False))
def test_column_order_does_not_matter(frame, random):
    encoder = Schema.infer(frame).encoder(frame)
    names = list(frame.columns)
    random.shuffle(names)
    np.testing.assert_array_equal(encoder.encode(frame[names]), encoder.encode(frame))


@st.composite
def problems(draw):
    """A schema over numbers and categories with choices made, its rows and some codes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(2, 12))
    size = pd.CategoricalDtype(["s", "m", "l"], ordered=True)
    group = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "y": rng.normal(100.0, 30.0, size=n),
            "count": rng.integers(-5, 6, n),
            "color": pd.Categorical(rng.choice(["r", "g", "b"], n), ["r", "g", "b"]),
            "size": pd.Categorical(rng.choice(["s", "m", "l"], n), dtype=size),
            **{f"is{k}": (group == k).astype(int) for k in range(3)},
        }
    )
    frame.loc[rng.random(n) < 0.2, ["x", "color"]] = np.nan
    schema = Schema.infer(frame).one_hot_group("is", ["is0", "is1", "is2"])
    chosen = draw(st.lists(st.sampled_from(["y", "count", "size"]), unique=True))
    for name in chosen:
        if schema[name].can_move:
            move = draw(st.sampled_from(["freeze", "only_increase", "only_decrease"]))
            schema = getattr(schema, move)(name)
    if draw(st.booleans()):
        schema = schema.range("y", upper=frame["y"].median())
    schema = replace(schema, joint=draw(st.booleans())).weight("y", draw(st.floats(0.1, 10)))
    codes = schema.encoder(frame).encode(frame)
    wild = codes + rng.normal(scale=draw(st.sampled_from([0.1, 3.0, 1e4])), size=codes.shape)
    wild[rng.random(codes.shape) < 0.1] = np.nan
    return schema, codes, wild


@LAWS
@given(problems())
def test_legalize_keeps_to_the_box(problem):
    schema, factual, wild = problem
    legal = schema.legal(factual)
    moved = legal.legalize(wild)
    np.testing.assert_array_equal(legal.legalize(moved), moved)
    np.testing.assert_array_equal(legal.legalize(factual), factual)
    np.testing.assert_array_equal(np.isnan(moved), np.isnan(factual))
    for j, feature in enumerate(schema.features):
        cells, own = moved[:, j], factual[:, j]
        seen = ~np.isnan(own)
        if not feature.free:
            assert cells.tobytes() == own.tobytes()
        if feature.kind is not Kind.NUMBER:
            np.testing.assert_array_equal(cells[seen], np.rint(cells[seen]))
        assert (feature.direction * (cells - own)[seen] >= 0).all()
        low, high = feature.declared or feature.observed
        inside = seen & ~legal.broken
        assert ((cells >= low) & (cells <= high))[inside].all()
    assert moved[legal.broken].tobytes() == factual[legal.broken].tobytes()


@LAWS
@given(problems())
def test_boxes_do_not_depend_on_the_batch(problem):
    schema, factual, wild = problem
    rows = np.arange(len(factual))[::-1].repeat(2)
    taken = schema.legal(factual).take(rows)
    fresh = schema.legal(factual[rows])
    for name in ("factual", "lower", "upper", "broken"):
        np.testing.assert_array_equal(getattr(taken, name), getattr(fresh, name))
    embedding = schema.embedding()
    single = np.concatenate([embedding.embed(row[None]) for row in wild])
    assert embedding.embed(wild).tobytes() == single.tobytes()


@LAWS
@given(problems(), st.integers(0, 2**32 - 1))
def test_push_moves_by_the_step(problem, seed):
    schema, codes, _ = problem
    embedding = schema.embedding()
    before = embedding.embed(codes)
    assert before.shape == (len(codes), embedding.size)
    assert len(embedding.labels) == embedding.size
    np.testing.assert_array_equal(embedding.push(codes, np.zeros_like(before)), codes)
    step = np.random.default_rng(seed).normal(size=before.shape)
    pushed = embedding.push(codes, step)
    movable = [f.free and f.numeric for f in schema.features]
    np.testing.assert_array_equal(pushed[:, ~np.array(movable)], codes[:, ~np.array(movable)])
    change = embedding.embed(pushed) - before
    missing = np.isnan(codes)[:, embedding.source]
    np.testing.assert_allclose(change, np.where(embedding.movable & ~missing, step, 0), atol=1e-9)
    # A movable dimension comes before every other one.
    assert (np.diff(embedding.movable.astype(int)) <= 0).all()


@LAWS
@given(problems(), st.integers(0, 2**32 - 1))
def test_pull_is_the_transpose_of_push(problem, seed):
    schema, codes, _ = problem
    embedding = schema.embedding()
    codes = np.nan_to_num(codes)
    rng = np.random.default_rng(seed)
    step = rng.normal(size=(len(codes), embedding.size))
    gradient = rng.normal(size=(len(codes), 2, codes.shape[1]))
    along_codes = np.einsum("nkp,np->nk", gradient, embedding.push(codes, step) - codes)
    along_phi = np.einsum("nkd,nd->nk", embedding.pull(gradient), step)
    np.testing.assert_allclose(along_phi, along_codes, rtol=1e-8, atol=1e-8)


@LAWS
@given(st.floats(0.01, 100), st.integers(2, 6))
def test_a_swap_costs_the_weight(weight, count):
    levels = [f"l{k}" for k in range(count)]
    frame = pd.DataFrame({"c": levels, "o": pd.Categorical(levels, levels, ordered=True)})
    schema = Schema.infer(frame).weight("c", weight).weight("o", weight)
    codes = schema.encoder(frame).encode(frame)
    swaps = schema.only("c").embedding().embed(codes)
    apart = np.linalg.norm(swaps[:, None] - swaps[None], axis=-1)
    np.testing.assert_allclose(apart, weight * (1 - np.eye(count)), atol=1e-12 * weight)
    line = schema.only("o").embedding().embed(codes)
    np.testing.assert_allclose(line[:, 0], weight * np.arange(count) / (count - 1))


LIBRARIES = {
    "torch": lambda array: torch.asarray(array),
    "array_api_strict": lambda array: array_api_strict.asarray(array),
}


@pytest.mark.parametrize("library", LIBRARIES)
@settings(LAWS, max_examples=20)
@given(problem=problems(), seed=st.integers(0, 2**32 - 1))
def test_every_library_gives_the_same(library, problem, seed):
    convert = LIBRARIES[library]
    schema, factual, wild = problem
    rng = np.random.default_rng(seed)
    embedding = schema.embedding()
    step = rng.normal(size=(len(factual), embedding.size))
    gradient = rng.normal(size=(len(factual), 2, factual.shape[1]))
    rows = rng.integers(0, len(factual), 2 * len(factual))
    theirs = embedding.like(convert(factual))
    boxes = schema.legal(convert(factual))
    legal = schema.legal(factual)
    pairs = [
        (theirs.embed(convert(wild)), embedding.embed(wild)),
        (theirs.pull(convert(gradient)), embedding.pull(gradient)),
        (theirs.push(convert(wild), convert(step)), embedding.push(wild, step)),
        (boxes.legalize(convert(wild)), legal.legalize(wild)),
        (legal.like(convert(factual)).legalize(convert(wild)), legal.legalize(wild)),
        (
            boxes.take(convert(rows)).legalize(convert(wild[rows])),
            legal.take(rows).legalize(wild[rows]),
        ),
        (boxes.take(convert(rows)).broken, legal.broken[rows]),
    ]
    for other, ours in pairs:
        assert type(other) is type(convert(wild))
        np.testing.assert_allclose(to_numpy(other), ours, rtol=1e-12, atol=1e-12)
