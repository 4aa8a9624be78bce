"""What a command prints, and how it ends when it is interrupted."""

from __future__ import annotations

import json
import signal
import sys
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from elsewise.text import visible


def tell(given: Namespace, words: str, code: int = 0, **record: Any) -> int:
    """Print one JSON object, its words or nothing, as was asked; return ``code``."""
    if getattr(given, "json", False):
        say(json.dumps(record | {"exit_code": code}, allow_nan=False))
    elif not given.quiet:
        say(words)
    return code


def say(text: str, *, err: bool = False) -> None:
    """Print, with control characters as escapes: names in files must not drive a terminal."""
    print(visible(text), file=sys.stderr if err else sys.stdout, flush=True)


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Note the first Ctrl-C instead of raising, so that the search can end with what it has."""
    noted: list[int] = []

    def note(number: int, frame: object) -> None:
        if noted:
            raise KeyboardInterrupt
        noted.append(number)
        say("elsewise: finishing with the best so far; Ctrl-C again to give up", err=True)

    with ended_by(note):
        yield lambda: bool(noted)


def give_up(number: int, frame: object) -> None:
    """Handle a signal as Python does Ctrl-C."""
    raise KeyboardInterrupt


@contextmanager
def ended_by(handler: Callable[[int, Any], None]) -> Iterator[None]:
    """Handle Ctrl-C, a closed terminal and a polite kill alike; what is ignored stays so."""
    names = "SIGINT", "SIGTERM", "SIGHUP"
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # only the main thread may handle signals
    before = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
