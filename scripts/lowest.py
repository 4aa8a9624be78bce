"""Run the core tests on the lowest versions that pyproject.toml allows, in a venv of their own.

    python scripts/lowest.py

Every dependency is pinned to its lower bound; what those need in turn is the newest that fits. The
tests are those that need no extra, and the doctests. Old packages warn about new ones, so warnings
are no errors here. Needs Python 3.11 or 3.12: for later ones the lowest versions have no wheels.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
VENV = ROOT / ".venv-lowest"
TOOLS = ("pytest>=8.3", "hypothesis>=6.120")
TESTS = (
    "src/elsewise/confidence",
    "src/elsewise/features",
    "src/elsewise/targets",
    "src/elsewise/transport",
    "tests/certificate",
    "tests/cli/test_versions.py",
    "tests/confidence/test_coverage.py",
    "tests/datasets",
    "tests/moves",
    "tests/plots",
    "tests/request",
    "tests/search/test_sparse.py",
    "tests/settings",
)


def interpreter() -> str | None:
    """Return the oldest supported Python at hand, if there is one with wheels."""
    for name in ("python3.11", "python3.12", sys.executable):
        found = shutil.which(name)
        code = "import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))"
        if found and subprocess.run([found, "-c", code], capture_output=True).returncode == 0:
            return found
    return None


def lowest_versions() -> list[str]:
    """Return every dependency at its lower bound."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [requirement.replace(">=", "==") for requirement in project["dependencies"]]


def main() -> int:
    """Install what is missing, then test; returns the status of pytest."""
    found = interpreter()
    if found is None:
        print("The lowest versions have wheels for Python 3.11 and 3.12 only: nothing was tested.")
        return 0
    python = str(VENV / "bin" / "python")
    if not Path(python).exists():
        subprocess.run([found, "-m", "venv", str(VENV)], check=True)
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*install, *lowest_versions(), *TOOLS], check=True, cwd=ROOT)
    subprocess.run([*install, "--no-deps", "--force-reinstall", "."], check=True, cwd=ROOT)
    test = [python, "-m", "pytest", "-m", "not slow", "-W", "default", "--disable-warnings"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    done = subprocess.run([*test, "-p", "no:cacheprovider", *TESTS], cwd=ROOT, env=environment)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
