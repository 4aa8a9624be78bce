"""Draw the README's picture from the README's own example: docs/images/outputs.png."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

import elsewise as ew

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Run the first Python block of the README and draw the explanation it makes."""
    readme = (ROOT / "README.md").read_text("utf-8")
    block = re.search(r"```python\n(.*?)```", readme, re.DOTALL)
    if block is None:
        raise SystemExit("README.md has no Python block")
    names: dict[str, Any] = {}
    exec(block[1], names)
    explanation = names["explanation"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.0), layout="constrained")
    ew.plots.outputs(explanation, left, label="risk of a bad credit")
    ew.plots.changes(explanation, right)
    place = ROOT / "docs" / "images" / "outputs.png"
    place.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(place, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
