"""``python -m elsewise`` is the command ``elsewise``."""

from __future__ import annotations

from elsewise.cli import main

if __name__ == "__main__":
    main()
