"""``python -m elsewise`` is the command ``elsewise``."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command; Ctrl-C during its imports, which take a second, ends it without a word."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    from elsewise.cli import main as run

    signal.signal(signal.SIGINT, before)
    run()


if __name__ == "__main__":
    main()
