"""What a test needs beyond the package: a framework, a browser, a GPU, data.

``@pytest.mark.needs("chromium")`` skips a test where it is missing. Where CI promises it, the
test fails instead, so that nothing is left out unnoticed.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

import pytest

BROWSERS = ("chromium", "chromium-browser", "chrome")


def browser() -> str | None:
    """Return the program that opens pages, if one is installed."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def driver() -> str | None:
    """Return the program that drives the browser, if it is installed."""
    return shutil.which("chromedriver")


def data_folder() -> Path:
    """Return the folder with the experiments' data; see `require` for where there is none."""
    require("data")
    return Path(os.environ["ELSEWISE_DATA"])


def has_gpu() -> bool:
    """Tell whether torch is installed and sees a GPU."""
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def require(thing: str) -> None:
    """Skip the test that runs, or fail it where CI promises what is missing.

    Parameters
    ----------
    thing : str
        "chromium" (with its chromedriver), "data", "gpu", or the name of a module to import.
    """
    if thing == "chromium":
        here, promised = None not in (browser(), driver()), os.environ.get("CI") == "true"
    elif thing == "data":
        folder = os.environ.get("ELSEWISE_DATA", "")
        here = bool(folder) and Path(folder).is_dir()
        promised = os.environ.get("ELSEWISE_REQUIRE_DATA") == "1"
    elif thing == "gpu":
        here, promised = has_gpu(), False
    else:
        here, promised = importlib.util.find_spec(thing) is not None, False
    if not here:
        where = " (ELSEWISE_DATA names no folder with it)" if thing == "data" else ""
        (pytest.fail if promised else pytest.skip)(f"needs {thing}{where}")
