"""Links of the pages that leave the folder docs, as the documentation site needs them.

The pages are read in the repository as well, where they may link to the README, the examples, the
tests. On the site the quick start takes the README's place, the changes have a page of their own,
the examples are copied, and any other file is named without a link. MkDocs calls the functions.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "quickstart.md", "CHANGELOG.md": "changelog.md"}
OUTSIDE = re.compile(r"(?<!!)\[([^\]]+)\]\(\.\./([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the examples to the files of the site."""
    for path in sorted((ROOT / "examples").glob("*.py")):
        files.append(File.generated(config, f"examples/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Rewrite links to ``../``: to what stands in for the file, else to plain text."""

    def rewritten(link: re.Match[str]) -> str:
        text, path = link[1], link[2]
        if path.startswith("examples/"):
            return f"[{text}]({path})"
        return f"[{text}]({PAGES[path]})" if path in PAGES else text

    return OUTSIDE.sub(rewritten, markdown)
