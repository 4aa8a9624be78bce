"""What "a row that could exist" means, checked on frames and without the library's own boxes."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pandas as pd

import elsewise as ew
from elsewise.features import Feature, Kind, Rule


def same_cells(one: pd.Series, other: pd.Series) -> np.ndarray:
    """Which cells are identical, bit for bit where they are floats; missing equals missing."""
    missing = one.isna().to_numpy() & other.isna().to_numpy()
    if one.dtype.kind == "f" and isinstance(one.dtype, np.dtype):
        word = f"u{one.dtype.itemsize}"
        equal = one.to_numpy().view(word) == other.to_numpy().view(word)
    else:
        equal = (one.astype(object) == other.astype(object)).to_numpy(dtype=bool, na_value=False)
    return missing | equal


def unmoved_cells(explanation: ew.Explanation) -> np.ndarray:
    """Boolean array (n, p): cells as they were."""
    before, after = explanation.factual, explanation.counterfactual
    return np.column_stack([same_cells(before[name], after[name]) for name in before])


def ranks(feature: Feature, column: pd.Series) -> np.ndarray:
    """A column as numbers in its order: amounts, or positions of levels; missing is NaN."""
    if feature.kind is Kind.CATEGORY:
        places = {level: place for place, level in enumerate(feature.levels)}
        return np.array([np.nan if pd.isna(cell) else places[cell] for cell in column])
    return column.to_numpy(dtype=float, na_value=np.nan)


def outside_ranges(explanation: ew.Explanation) -> np.ndarray:
    """Boolean array (n,): rows that start outside a declared range."""
    out = np.zeros(len(explanation.factual), dtype=bool)
    for feature in explanation.encoder.schema.features:
        if feature.declared is not None:
            cells = ranks(feature, explanation.factual[feature.name])
            out |= (cells < feature.declared[0]) | (cells > feature.declared[1])
    return out


def assert_feature_legal(feature: Feature, before: pd.Series, after: pd.Series) -> None:
    """Every cell of a column that could move is where it may be."""
    same = same_cells(before, after)
    if feature.derived is not None:
        return  # see `assert_derived`
    if not feature.free:
        assert same.all(), feature.name
        return
    old, new = ranks(feature, before)[~same], ranks(feature, after)[~same]
    if feature.kind is Kind.INTEGER or feature.kind is Kind.CATEGORY:
        assert (new == np.rint(new)).all(), feature.name
    if feature.kind is Kind.NUMBER:
        # What counts as moved has moved: rounding on the way is no move.
        assert (np.abs(new - old) > 1e-9 * feature.scale).all(), feature.name
    lower, upper = feature.declared or (-np.inf, np.inf)
    lower = np.where(np.isfinite(lower), lower, np.fmin(feature.observed[0], old))
    upper = np.where(np.isfinite(upper), upper, np.fmax(feature.observed[1], old))
    if before.dtype == np.float32:  # as a comparison with the column itself would read them
        lower, upper = np.float32(lower), np.float32(upper)
    assert ((new >= lower) & (new <= upper)).all(), feature.name
    assert (feature.direction * (new - old) >= 0).all(), feature.name
    if feature.at_most_by is not None:
        digits = 1e-6 if before.dtype == np.float32 else 1e-9
        slack = digits * np.maximum(np.abs(old), feature.at_most_by)
        assert (np.abs(new - old) <= feature.at_most_by + slack).all(), feature.name
    if feature.resolution is not None and feature.kind is Kind.INTEGER:
        assert (new % feature.resolution == 0).all(), feature.name
    elif feature.resolution is not None:
        # The very double, or single, that the decimal is read as.
        step = Fraction(repr(feature.resolution))
        read = [float(round(Fraction(cell) / step) * step) for cell in new.tolist()]
        assert (np.array(read, dtype=before.dtype) == after[~same].to_numpy()).all(), feature.name
    if feature.allowed is not None:
        assert set(after[~same]) <= set(feature.allowed), feature.name


def obeyed(rule: Rule, frame: pd.DataFrame) -> np.ndarray:
    """Which rows keep a rule; its Series may come in any order, and texts are read by pandas."""
    rows = frame.reset_index(drop=True)
    text = isinstance(rule.condition, str)
    answer = rows.eval(rule.condition) if text else rule.condition(rows)
    answer = answer.sort_index() if isinstance(answer, pd.Series) else answer
    return np.asarray(answer, dtype=bool)


def agrees(feature: Feature, frame: pd.DataFrame) -> np.ndarray:
    """Which cells of a derived column are what its formula gives, to six digits."""
    text = isinstance(feature.derived, str)
    wanted = frame.eval(feature.derived) if text else feature.derived(frame)
    if feature.kind is Kind.INTEGER:
        wanted = np.rint(np.asarray(wanted, dtype=float))
    cells, wanted = frame[feature.name].to_numpy(float), np.asarray(wanted, dtype=float)
    both_missing = np.isnan(cells) & np.isnan(wanted)
    return np.isclose(cells, wanted, rtol=1e-6, atol=0.0) | both_missing


def assert_legal(explanation: ew.Explanation) -> None:
    """Same shape, dtypes and missing cells; every column, group, range and rule kept."""
    before, after = explanation.factual, explanation.counterfactual
    schema = explanation.encoder.schema
    assert after.index.equals(before.index)
    assert after.columns.equals(before.columns)
    assert (after.dtypes == before.dtypes).all()
    pd.testing.assert_frame_equal(after.isna(), before.isna())
    for feature in schema.features:
        assert_feature_legal(feature, before[feature.name], after[feature.name])
    for group in {feature.group for feature in schema.features} - {None}:
        members = after[[f.name for f in schema.features if f.group == group]]
        assert members.isin([0, 1]).all(axis=None)
        assert (members.sum(axis=1) == 1).all(), group
    stays = outside_ranges(explanation)
    for feature in schema.features:
        if feature.derived is not None:
            stays |= ~agrees(feature, before)
            assert (agrees(feature, after) | stays).all(), feature.name
    for rule in schema.rules:
        broken = ~obeyed(rule, before)
        assert obeyed(rule, after)[~broken].all(), rule.name
        stays |= broken
    assert unmoved_cells(explanation)[stays].all()


def assert_outputs(explanation: ew.Explanation, score: Callable[[pd.DataFrame], object]) -> None:
    """Stored outputs are the model's on the returned frame; unmoved rows predict as before."""
    after = np.asarray(score(explanation.counterfactual), dtype=float)
    np.testing.assert_array_equal(explanation.outputs, after.reshape(len(after), -1))
    before = np.asarray(score(explanation.factual), dtype=float)
    np.testing.assert_array_equal(explanation.factual_outputs, before.reshape(len(before), -1))
    rest = unmoved_cells(explanation).all(axis=1)
    np.testing.assert_array_equal(explanation.outputs[rest], explanation.factual_outputs[rest])


def assert_map(explanation: ew.Explanation, parts: int = 2) -> None:
    """Replaying the map gives the counterfactual, in one batch, in parts, in any order."""
    rows, expected = explanation.factual, explanation.counterfactual
    pd.testing.assert_frame_equal(explanation.apply(rows), expected, check_exact=True)
    backwards = rows.iloc[::-1]
    for piece in [*(backwards.iloc[part::parts] for part in range(parts)), rows.iloc[:1]]:
        pd.testing.assert_frame_equal(
            explanation.apply(piece), expected.loc[piece.index], check_exact=True
        )
