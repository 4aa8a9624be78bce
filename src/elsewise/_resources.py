"""Threads and memory: how much of the machine a call may use, never what it computes.

Work is cut into the same pieces whatever is allowed, and results are put together in the order of
the pieces, so neither setting changes a single bit of a result.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Any, TypeVar

import numpy as np

from elsewise.errors import InvalidInput

T = TypeVar("T")
R = TypeVar("R")

# Bytes that arrays on the way may take by default, on the host and on an accelerator.
MEMORY, DEVICE_MEMORY = 2 << 30, 16 << 30
# Rows of a block: enough for a model to be worth calling, few enough for the caches.
FEWEST_ROWS, MOST_ROWS, MOST_DEVICE_ROWS = 1 << 10, 1 << 14, 1 << 20
# Bytes of the largest array whose memory is worth keeping.
LARGEST_KEPT = 31 << 20
# Bytes on the way per cell of a block: a few arrays of eight bytes each.
CELL_BYTES = 64
# Rows from which on a model is worth threads of its own.
MODEL_ROWS = 1 << 12
# Modules that bring thread pools with them when they are imported.
POOL_USERS = {"catboost", "lightgbm", "scipy.linalg", "sklearn", "torch", "xgboost"}
UNITS = ["", "K", "M", "G", "T"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a call may use."""

    threads: int
    """Threads of our own; a model may use more."""
    memory: int | None
    """Bytes of the arrays made on the way, besides the rows and the result; None: the default."""

    @classmethod
    def of(cls, threads: int | None, memory: float | str | None) -> Resources:
        """Fill in what is not given.

        Examples
        --------
        >>> Resources.of(2, "1GB")
        Resources(threads=2, memory=1000000000)
        """
        threads = _usual_threads() if threads is None else threads
        return cls(threads=threads, memory=None if memory is None else parse_memory(memory))


class TimeIsUp(Exception):
    """Raised where a search would ask the model after its time is over."""


_current: ContextVar[Resources | None] = ContextVar("resources", default=None)
# Whether time is up, and whether the model may then not be asked any more.
_limit: ContextVar[tuple[Callable[[], bool], bool]] = ContextVar(
    "limit", default=(lambda: False, False)
)
_worker = threading.local()


def current() -> Resources:
    """Return what the running call may use.

    Examples
    --------
    >>> with using(Resources(threads=3, memory=10**6)):
    ...     current().threads
    3
    """
    return _current.get() or Resources.of(None, None)


@contextmanager
def using(resources: Resources) -> Iterator[None]:
    """Let everything called inside use these resources."""
    _keep_freed_memory()
    token = _current.set(resources)
    _POOLS.hold()
    try:
        yield
    finally:
        _POOLS.release()
        _current.reset(token)


@contextmanager
def until(is_over: Callable[[], bool] | None = None, *, interrupt: bool = False) -> Iterator[None]:
    """Let everything called inside know when time is up, and with ``interrupt`` end there.

    Without ``is_over`` time is up when it would be outside.

    Examples
    --------
    >>> with until(lambda: True):
    ...     late()
    True
    """
    token = _limit.set((is_over or _limit.get()[0], interrupt))
    try:
        yield
    finally:
        _limit.reset(token)


def late() -> bool:
    """Tell whether time is up, so that what can be left out is left out."""
    return _limit.get()[0]()


def ask_in_time() -> None:
    """Raise `TimeIsUp` in a search whose time is over; models do so before they are asked."""
    is_over, interrupt = _limit.get()
    if interrupt and is_over():
        raise TimeIsUp


class _Pools:
    """Thread pools of BLAS and OpenMP, held to one thread while our own threads are at work.

    Two kinds of threads on the same cores wait for each other: a linear question of 20,000 rows
    takes twice the processor time.
    """

    def __init__(self) -> None:
        self.lock, self.holders = threading.Lock(), 0
        self.limiter: Any = None

    def hold(self) -> None:
        """Limit the pools, unless that has been done."""
        with self.lock:
            self.holders += 1
            if self.holders == 1:
                users = frozenset(POOL_USERS & sys.modules.keys())
                self.limiter = _pools_loaded(users).limit(limits=1)

    def release(self) -> None:
        """Give the pools their threads back once nobody holds them."""
        with self.lock:
            self.holders -= 1
            if self.holders == 0:
                self.limiter.restore_original_limits()


_POOLS = _Pools()


@contextmanager
def model_threads(rows: int) -> Iterator[None]:
    """Give BLAS and OpenMP their threads back while a model is asked about many rows.

    Examples
    --------
    >>> with model_threads(10**6):
    ...     pass
    """
    pause = rows >= MODEL_ROWS and _POOLS.holders == 1 and not getattr(_worker, "busy", False)
    if pause:
        _POOLS.release()
    try:
        yield
    finally:
        if pause:
            _POOLS.hold()


def block_rows(cells: int, *, device: bool = False) -> int:
    """Return how many rows to handle at once where each takes that many cells on the way.

    A power of two, so that blocks are cut where smaller pieces of work are.

    Examples
    --------
    >>> with using(Resources(threads=1, memory=10**8)):
    ...     block_rows(161)
    8192
    """
    usual, most = (DEVICE_MEMORY, MOST_DEVICE_ROWS) if device else (MEMORY, MOST_ROWS)
    fitting = (current().memory or usual) // (cells * CELL_BYTES)
    return min(most, max(FEWEST_ROWS, 1 << (max(1, fitting).bit_length() - 1)))


def parallel(function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Yield ``function(item)`` for every item, in order, computed by the threads allowed.

    At most one result per thread waits to be taken, so memory stays bounded. A piece of work that
    itself asks for threads gets none.

    Examples
    --------
    >>> list(parallel(lambda x: x * x, range(4)))
    [0, 1, 4, 9]
    """
    work = list(items)
    threads = min(1 if getattr(_worker, "busy", False) else current().threads, len(work))
    if threads <= 1:
        yield from map(function, work)
        return

    def run(item: T) -> R:
        _worker.busy = True
        return function(item)

    pool = _pool(threads)
    waiting: deque[Future[R]] = deque()
    try:
        for item in work:
            if len(waiting) > threads:
                yield waiting.popleft().result()
            waiting.append(pool.submit(run, item))
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def parse_memory(memory: float | str) -> int:
    """Return a number of bytes from a number or a text such as "2GB", "500 MB" or "1GiB".

    Examples
    --------
    >>> parse_memory("2GB"), parse_memory("1 GiB"), parse_memory(1e6)
    (2000000000, 1073741824, 1000000)
    """
    size = None
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?)(i?)B?\s*", memory, re.IGNORECASE)
        if found:
            number, unit, binary = found.groups()
            size = int(float(number) * (1024 if binary else 1000) ** UNITS.index(unit.upper()))
    elif not isinstance(memory, bool) and isfinite(memory) and memory == int(memory):
        size = int(memory)
    if size is None or size <= 0:
        expected = "a positive number of bytes, or a text such as '2GB'"
        fix = "leave it out for 2 GiB"
        raise InvalidInput("settings.memory", expected=expected, received=repr(memory), fix=fix)
    return size


@lru_cache(maxsize=1)
def _keep_freed_memory() -> None:
    """Free one large block, once, so that the allocator keeps smaller ones for the next array.

    The C library of Linux raises its thresholds to the largest block it saw freed (up to 32 MB).
    Until then it gives the memory of every array back to the system, and the pages of the next one
    cost more than the arithmetic on it. The block is never touched: no memory is used.
    """
    np.empty(LARGEST_KEPT, dtype=np.uint8)


def _usual_threads() -> int:
    """Return ELSEWISE_THREADS, else OMP_NUM_THREADS, else the cores this process may use."""
    for name in ("ELSEWISE_THREADS", "OMP_NUM_THREADS"):
        asked = os.environ.get(name, "")
        if asked.isdigit() and int(asked) > 0:
            return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@lru_cache(maxsize=8)
def _pools_loaded(users: frozenset[str]) -> Any:
    """Return the pools that are there once these modules are; looking for them takes a while."""
    from threadpoolctl import ThreadpoolController  # kernels alone do without it

    return ThreadpoolController()


@lru_cache(maxsize=4)
def _pool(threads: int) -> ThreadPoolExecutor:
    """Return the pool of that size, made once."""
    return ThreadPoolExecutor(threads, thread_name_prefix="elsewise")


if hasattr(os, "register_at_fork"):
    # A forked child has none of its parent's threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)
