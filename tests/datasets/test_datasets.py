from __future__ import annotations

import hashlib
import importlib.util
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from elsewise.datasets import Dataset, german_credit
from needs import data_folder

SHA256 = "b94f7dee4366fd0e64fc035c37965a57da12701e67609cdc5fcfb074d9f0a293"
SCRIPT = Path(__file__).parents[2] / "scripts" / "derive_german_credit.py"

# Published counts of the reduced table; None counts the missing cells.
COUNTS = {
    "Sex": {"male": 690, "female": 310},
    "Job": {0: 22, 1: 200, 2: 630, 3: 148},
    "Housing": {"own": 713, "rent": 179, "free": 108},
    "Saving accounts": {"little": 603, "moderate": 103, "quite rich": 63, "rich": 48, None: 183},
    "Checking account": {"little": 274, "moderate": 269, "rich": 63, None: 394},
    "Purpose": {
        "car": 337,
        "radio/TV": 280,
        "furniture/equipment": 181,
        "business": 97,
        "education": 59,
        "repairs": 22,
        "domestic appliances": 12,
        "vacation/others": 12,
    },
}


@pytest.fixture(scope="module")
def data() -> Dataset:
    return german_credit()


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stored() -> bytes:
    return files("elsewise.datasets").joinpath("german_credit.csv").read_bytes()


def test_stored_bytes_are_the_pinned_ones() -> None:
    assert hashlib.sha256(stored()).hexdigest() == SHA256


def test_derivation_reproduces_the_stored_bytes(script: ModuleType) -> None:
    original = data_folder() / "german_credit" / "german.data"
    assert script.derive(original.read_bytes()) == stored()


def test_derivation_refuses_another_original(script: ModuleType) -> None:
    with pytest.raises(ValueError, match="expected sha256 b21f3d81"):
        script.derive(b"A11 6 A34\n")


@pytest.mark.parametrize("column", COUNTS)
def test_counts_are_the_published_ones(data: Dataset, column: str) -> None:
    counts = data.frame[column].value_counts(dropna=False)
    measured = {None if pd.isna(level) else level: count for level, count in counts.items()}
    assert measured == COUNTS[column]


def test_numbers_are_the_published_ones(data: Dataset) -> None:
    means = data.frame[["Age", "Credit amount", "Duration"]].mean()
    np.testing.assert_allclose(means, [35.546, 3271.258, 20.903])
    assert all(
        data.frame[name].dtype == np.int64 for name in ("Age", "Job", "Credit amount", "Duration")
    )


def test_first_row(data: Dataset) -> None:
    row = data.frame.iloc[0]
    assert row.drop("Saving accounts").to_list() == [
        67, "male", 2, "own", "little", 1169, 6, "radio/TV",
    ]  # fmt: skip
    assert pd.isna(row["Saving accounts"])


def test_outcome_is_bad_risk(data: Dataset) -> None:
    assert data.outcome.name == "Risk"
    assert data.outcome.dtype == np.int64
    assert data.outcome.sum() == 300
    assert data.outcome.index.equals(data.frame.index)
    assert "Risk" not in data.frame


def test_schema_reads_every_column(data: Dataset) -> None:
    assert list(data.schema.names) == list(data.frame.columns)
    kinds = {feature.name: str(feature.kind) for feature in data.schema.features}
    assert kinds["Age"] == kinds["Credit amount"] == kinds["Duration"] == "integer"
    assert kinds["Purpose"] == kinds["Saving accounts"] == "category"


def test_attribution_and_harms_are_stated(data: Dataset) -> None:
    assert "doi 10.24432/C5NC77, CC BY 4.0; changes:" in data.source
    assert data.licence == "CC BY 4.0"
    for word in ("Sex", "Age", "1973", "codebook", "Housing"):
        assert word in data.warning


def test_each_call_returns_a_new_frame(data: Dataset) -> None:
    mine = german_credit().frame
    mine["Age"] = 0
    assert german_credit().frame.equals(data.frame)


def test_repr_is_one_line(data: Dataset) -> None:
    assert repr(data) == "<Dataset German Credit: 1000 rows x 9 columns, outcome Risk>"
