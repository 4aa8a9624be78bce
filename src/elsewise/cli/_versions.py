"""Versions of what elsewise runs on, to be pasted into a report of a fault."""

from __future__ import annotations

import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version

# Supported, but asked for by no extra of users.
ALSO = ("distributed", "statsmodels")


def packages() -> list[str]:
    """Return the packages that elsewise needs, then those it can use."""
    lines = requires("elsewise") or []
    kept = [line for line in lines if not re.search(r"extra == .(test|docs|dev)\b", line)]
    return [*(re.split(r"[^\w.-]", line)[0] for line in kept), *ALSO]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def show_versions() -> None:
    """Print the versions of elsewise, Python, the system and every package elsewise can use.

    Versions are read from the installed metadata, so nothing is imported.
    """
    lines = {"elsewise": _version("elsewise"), "python": sys.version.split()[0]}
    lines["system"] = platform.platform()
    lines |= {name: _version(name) for name in packages()}
    width = max(map(len, lines))
    print("\n".join(f"{name:<{width}}  {found}" for name, found in lines.items()))
