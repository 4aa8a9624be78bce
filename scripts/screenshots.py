"""Write the pages of the demo into docs/demo, and pictures of them into docs/images.

    python scripts/screenshots.py

needs Chromium and its driver: `make browser`.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from browsing import browser  # noqa: E402
from elsewise.cli import _demo  # noqa: E402

# Name, width, height and whether it is dark.
SIZES = (
    ("light", 1280, 800, False),
    ("dark", 1280, 800, True),
    ("phone", 390, 844, False),
)


def main() -> None:
    """Explain, write both pages, and shoot each at three sizes."""
    explanation = _demo.more_accepted(progress=False)
    pages = _demo.pages(explanation, ROOT / "docs" / "demo", "elsewise demo --seed 0")
    with browser() as window:
        for page in pages:
            for name, width, height, dark in SIZES:
                window.open(page, width, height, dark=dark)
                window.shoot(ROOT / "docs" / "images" / f"{page.stem}-{name}.png")


if __name__ == "__main__":
    main()
