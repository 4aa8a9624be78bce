"""``show_versions`` names everything that pyproject.toml asks for on behalf of users."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import elsewise as ew
from elsewise.cli import _versions

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
FOR_USERS = ("parquet", "torch", "boost", "dask")


def names_of(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=]", requirement)[0] for requirement in requirements}


def test_every_dependency_is_shown() -> None:
    project, shown = PROJECT["project"], set(_versions.packages())
    extras = [names_of(project["optional-dependencies"][extra]) for extra in FOR_USERS]
    assert names_of(project["dependencies"]).union(*extras) <= shown
    assert shown.isdisjoint({"pytest", "ruff", "mkdocs"})


def test_show_versions(capsys: pytest.CaptureFixture[str]) -> None:
    ew.show_versions()
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert shown["numpy"] == np.__version__
    assert set(shown) == {"elsewise", "python", "system", *_versions.packages()}


def test_a_package_that_is_missing_is_said_to_be(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_versions, "ALSO", ("no-such-package",))
    ew.show_versions()
    assert re.search(r"^no-such-package +not installed$", capsys.readouterr().out, re.MULTILINE)
