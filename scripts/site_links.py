"""Links of the pages that leave the folder docs, as the documentation site needs them.

The pages are read in the repository as well, where they may link to the README, the tests and so
on. On the site the README's place is taken by the quick start, the changes have a page of their
own, and any other file outside docs is named without a link. MkDocs calls `on_page_markdown`.
"""

from __future__ import annotations

import re
from typing import Any

PAGES = {"README.md": "quickstart.md", "CHANGELOG.md": "changelog.md"}
OUTSIDE = re.compile(r"(?<!!)\[([^\]]+)\]\(\.\./([^)#\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Rewrite links to ``../``: to the page that stands in for the file, else to plain text."""

    def rewritten(link: re.Match[str]) -> str:
        text, path = link[1], link[2]
        return f"[{text}]({PAGES[path]})" if path in PAGES else text

    return OUTSIDE.sub(rewritten, markdown)
