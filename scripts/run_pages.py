"""Run the code on pages of the documentation and write what it prints under it.

    python scripts/run_pages.py docs/quickstart.md docs/gallery.md

The Python blocks are run in their order, as one program, in an empty folder: a page may go on where
the page named before it ended. A shell block is run in the folder of the project. A text block that
follows a block of code directly is replaced by what the code printed; the rest stays as it is.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(
    r"^```(python|sh)\n(.*?)^```\n(\n```text\n)?(?(3)(.*?)^```\n)", re.DOTALL | re.MULTILINE
)


def printed_by(kind: str, code: str, names: dict[str, Any]) -> str:
    """Run one block; returns what it printed."""
    if kind == "python":
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, "<page>", "exec"), names)
        return out.getvalue()
    words = [sys.executable if word == "python" else word for word in shlex.split(code)]
    finished = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return finished.stdout


def refreshed(page: str, names: dict[str, Any]) -> str:
    """Return the page with the output of its code; shell blocks without output are not run."""

    def replaced(block: re.Match[str]) -> str:
        kind, code, shows = block[1], block[2], block[3] is not None
        if kind == "sh" and not shows:
            return block[0]
        out = printed_by(kind, code, names)
        lines = [line.rstrip() for line in out.rstrip().splitlines()]
        shown = "\n```text\n" + "\n".join(lines) + "\n```\n" if shows else ""
        return f"```{kind}\n{code}```\n{shown}"

    return BLOCK.sub(replaced, page)


def main(paths: list[str]) -> None:
    """Refresh the named pages."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    sys.path.insert(0, str(ROOT))  # pages may show the benchmarks
    pages = [Path(path).resolve() for path in paths]
    names: dict[str, Any] = {"__name__": "__page__"}
    with tempfile.TemporaryDirectory() as empty, contextlib.chdir(empty):
        for page in pages:
            page.write_text(refreshed(page.read_text("utf-8"), names), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
