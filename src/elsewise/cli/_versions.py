"""Versions of what elsewise runs on, to be pasted into a report of a fault."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

REQUIRED = (
    "numpy",
    "scipy",
    "pandas",
    "scikit-learn",
    "array-api-compat",
    "joblib",
    "cloudpickle",
    "tqdm",
    "matplotlib",
    "jinja2",
    "threadpoolctl",
    "typer",
)
OPTIONAL = (
    "openpyxl",
    "pyarrow",
    "torch",
    "xgboost",
    "lightgbm",
    "catboost",
    "statsmodels",
    "dask",
    "distributed",
)


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
    lines |= {name: _version(name) for name in REQUIRED + OPTIONAL}
    width = max(map(len, lines))
    print("\n".join(f"{name:<{width}}  {found}" for name, found in lines.items()))
