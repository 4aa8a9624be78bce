"""What becomes of one attempt, and what must never become of any."""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from elsewise.errors import ElsewiseError

ANSWERED, REFUSED, SLOW = "answered", "refused", "slow"
RAW, WRONG, CODE = "raw exception", "wrong answer", "code executed"
VERDICTS = (ANSWERED, REFUSED, SLOW, RAW, WRONG, CODE)
BAD = (RAW, WRONG, CODE)
SECONDS = 240
EXECUTING = frozenset(
    {"os.system", "os.exec", "os.posix_spawn", "os.spawn", "subprocess.Popen", "pickle.find_class"}
)
_executed: list[str] = []
_listening = [False, False]


class Attempt(NamedTuple):
    """One attempt; the same key is the same attempt, on any machine."""

    key: str
    run: Callable[[], object]
    """Raises AssertionError where the answer is wrong."""


class TooSlow(BaseException):
    """The attempt took longer than `SECONDS`."""


def verdict(attempt: Attempt) -> tuple[str, str]:
    """Run an attempt; return its verdict and what it said."""
    _executed.clear()
    try:
        with warnings.catch_warnings(), _alarm(), _ear():
            warnings.simplefilter("ignore")
            attempt.run()
        found, said = ANSWERED, ""
    except ElsewiseError as error:
        # A refusal is one sentence with a remedy.
        said = f"{type(error).__name__}: {error}"
        found = REFUSED if "Fix:" in said else RAW
    except TooSlow:
        found, said = SLOW, f"over {SECONDS} seconds"
    except AssertionError as error:
        found, said = WRONG, str(error)
    except (Exception, SystemExit) as error:
        found, said = RAW, f"{type(error).__name__}: {error}"
    if _executed:
        found, said = CODE, _executed[0]
    return found, said[:300]


@contextmanager
def _alarm() -> Iterator[None]:
    def late(number: int, frame: Any) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _ear() -> Iterator[None]:
    """Note what is executed; an audit hook stays for good, so there is one."""

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if _listening[1] and event in EXECUTING:
            _executed.append(event)

    if not _listening[0]:
        sys.addaudithook(hear)
        _listening[0] = True
    _listening[1] = True
    try:
        yield
    finally:
        _listening[1] = False
