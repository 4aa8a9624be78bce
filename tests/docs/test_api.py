"""The API page says what the code says, and every setting and bound is described."""

from __future__ import annotations

import dataclasses
import re
from types import ModuleType

import pytest
from scripts import write_api

import elsewise as ew

pytestmark = pytest.mark.needs("dask")


def test_the_page_is_what_the_code_says() -> None:
    written = write_api.PAGE.read_text("utf-8")
    assert written == write_api.page(), "run: python scripts/write_api.py"


def test_every_name_of_the_package_is_on_the_page() -> None:
    written = write_api.PAGE.read_text("utf-8")
    named = set(re.findall(r"^### (?:ew|elsewise)\.([\w.]+)$", written, re.MULTILINE))
    modules = {name for name in ew.__all__ if isinstance(getattr(ew, name), ModuleType)}
    assert set(ew.__all__) - modules <= named
    for name in ("analysis", "plots", "report", "targets", "models", "datasets"):
        assert any(one.startswith(f"{name}.") for one in named)


@pytest.mark.parametrize("record", [ew.Settings, ew.Bounds, ew.Request])
def test_every_field_is_described_in_words(record: type) -> None:
    texts = write_api.field_texts(record)
    for field in dataclasses.fields(record):
        assert len(texts[field.name].split()) >= 4, field.name
        assert any(line.startswith(f"| `{field.name}` |") for line in write_api.fields(record))


def test_a_name_without_a_sentence_is_refused() -> None:
    def undocumented() -> None:
        pass

    with pytest.raises(SystemExit, match="undocumented has no docstring"):
        write_api.summary(undocumented, "undocumented")
