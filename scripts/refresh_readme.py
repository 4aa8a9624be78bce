"""Run the README's example again; rewrite its printed output and draw docs/images/outputs.png."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

import elsewise as ew

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "images" / "outputs.png"
EXAMPLE = re.compile(r"(```python\n(.*?)```\n\n```text\n)(.*?)(```)", re.DOTALL)


def main() -> None:
    """Bring the README up to date with the code."""
    text = README.read_text("utf-8")
    example = EXAMPLE.search(text)
    if example is None:
        raise SystemExit("README.md has no Python block followed by a text block")
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example[2], "README.md", "exec"), names)
    lines = [line.rstrip() for line in printed.getvalue().splitlines()]
    shown = "\n".join([*lines, ""])
    README.write_text(text[: example.start(3)] + shown + text[example.end(3) :], "utf-8")
    draw(names["explanation"])


def draw(explanation: ew.Explanation) -> None:
    """Draw outputs and changes side by side."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.0), layout="constrained")
    ew.plots.outputs(explanation, left, label="risk of a bad credit")
    ew.plots.changes(explanation, right)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
