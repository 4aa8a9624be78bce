"""Files of other people are read with care, and our own appear whole or not at all."""

from __future__ import annotations

import ctypes
import errno
import json
import math
import os
import shutil
import stat
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from elsewise.errors import InvalidInput, SavedRunError

# Arrays larger than this many times their file, and than `SMALL`, are refused unread; a run that
# would be is saved without compression.
RATIO = 100
SMALL = 1 << 26
# RENAME_EXCHANGE of Linux's renameat2: two folders trade places at once.
EXCHANGE = 2
AT_CWD = -100


def path_of(given: Any, argument: str = "folder") -> Path:
    """Return a path, or refuse what is none."""
    if not isinstance(given, str | os.PathLike):
        fix = "pass a path, as text or a pathlib.Path"
        raise InvalidInput(argument, expected="a path", received=repr(given), fix=fix)
    return Path(given)


def write_text(text: str, path: str | Path) -> Path:
    """Write a text file that appears whole or not at all."""
    return write_bytes(text.encode("utf-8", "xmlcharrefreplace"), path)


def write_bytes(content: bytes, path: str | Path) -> Path:
    """Write a file that appears whole or not at all."""
    place = path_of(path, "path")
    if place.is_dir():
        received, fix = f"{place}, a folder", "name a file in it"
        raise InvalidInput("path", expected="a file", received=received, fix=fix)
    place.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, because a file is replaced in one go only within one file system.
    handle, fresh = tempfile.mkstemp(prefix=".elsewise-", dir=place.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        # mkstemp makes files that their owner alone can read; a report is to be passed on.
        Path(fresh).chmod(0o644)
        Path(fresh).replace(place)
    except BaseException:
        Path(fresh).unlink(missing_ok=True)
        raise
    return place


@contextmanager
def folder_in_place(
    folder: str | Path, own: Sequence[str], argument: str = "folder"
) -> Iterator[Path]:
    """Give a new folder to fill, and put it in the place of ``folder`` at the end of the block.

    Whatever happens, SIGKILL included, there is the earlier folder or the new one, whole; where the
    system cannot exchange folders, SIGKILL between two renames leaves the earlier one beside its
    place. Files in the earlier folder that are not ours (``own``) are kept; a folder without a file
    of the first of these names, which all of ours have, is not replaced.
    """
    place, fix = path_of(folder, argument).resolve(), "choose another folder"
    taken = place.exists() and not (place / own[0]).is_file()
    if place in (here := Path.cwd(), *here.parents):
        taken, received = True, f"{folder}, which is or holds the current folder"
    else:
        received = f"{folder}, which holds something else"
    if taken and (place.is_file() or any(place.iterdir()) or place == here):
        expected = "a new folder, an empty one or an earlier saved run"
        raise InvalidInput(argument, expected=expected, received=received, fix=fix)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".elsewise-", dir=place.parent))
    except OSError as error:
        expected = "a folder that can be made"
        received = f"{folder} ({error.strerror.lower() if error.strerror else error})"
        raise InvalidInput(argument, expected=expected, received=received, fix=fix) from error
    try:
        fresh = work / "run"
        fresh.mkdir()
        yield fresh
        _put(fresh, place, frozenset(own))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _put(fresh: Path, place: Path, own: frozenset[str]) -> None:
    """Exchange the folders; what was in place is then in ``fresh``, to be removed."""
    for turn in range(1000):
        try:
            if not place.exists():
                fresh.rename(place)
                return
            for item in place.iterdir():
                copy = fresh / item.name
                if item.name in own or os.path.lexists(copy):
                    continue
                if item.is_dir() and not item.is_symlink():
                    shutil.copytree(item, copy, symlinks=True)
                else:
                    shutil.copy2(item, copy, follow_symlinks=False)
            _exchange(fresh, place)
        except OSError as error:
            # Another process came or went between the question and the answer.
            again = error.errno in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST)
            if not again and not isinstance(error, shutil.Error):
                raise
            time.sleep(min(1e-4 * turn, 0.01))
        else:
            return
    raise OSError(errno.EBUSY, "the folder is being written by others", str(place))


def _exchange(fresh: Path, place: Path) -> None:
    """Let two folders trade places at once, or where the system cannot, one after the other."""
    if sys.platform == "linux":
        renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
        if renameat2 is not None:
            paths = os.fsencode(fresh), os.fsencode(place)
            if renameat2(AT_CWD, paths[0], AT_CWD, paths[1], EXCHANGE) == 0:
                return
            code = ctypes.get_errno()
            # Kernels and file systems without the exchange say so by these; anything else is an
            # error.
            if code not in (errno.ENOSYS, errno.EINVAL):
                raise OSError(code, os.strerror(code), str(place))
    # A place of its own at every turn: where another has put its folder in between, the earlier one
    # stays there until the end, and would be in the way of the next turn.
    aside = Path(tempfile.mkdtemp(dir=fresh.parent)) / "earlier"
    place.rename(aside)
    try:
        fresh.rename(place)
    except BaseException:
        aside.rename(place)
        raise


def read_json(path: Path) -> Any:
    """Return what a JSON file holds, or say why it cannot be read."""
    with damaged(path, "cannot be read", FileNotFoundError):
        return json.loads(_content(path).decode("utf-8"))


def write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays as npz without pickle, compressed unless that makes `read_arrays` suspicious."""
    named: dict[str, Any] = dict(arrays)  # NumPy before 2.2 would store allow_pickle= as an array
    np.savez_compressed(path, **named)
    if sum(array.nbytes + 1000 for array in arrays.values()) > _most(path.stat().st_size):
        np.savez(path, **named)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an npz file; sizes are read from headers before anything is unpacked."""
    with damaged(path, "cannot be read", FileNotFoundError):
        stored = BytesIO(_content(path))
        with zipfile.ZipFile(stored) as file:
            _check_sizes(file, _most(stored.getbuffer().nbytes))
        stored.seek(0)
        with np.load(stored, allow_pickle=False) as content:
            return dict(content)


def _most(size: int) -> int:
    return max(SMALL, RATIO * size)


def _check_sizes(file: zipfile.ZipFile, most: int) -> None:
    members = file.infolist()
    # Of two members of one name, the one that is read might not be the one that was checked.
    if len({member.filename for member in members}) < len(members):
        raise ValueError("two arrays of one name")
    total = sum(member.file_size for member in members)
    if total > most:
        raise ValueError(f"arrays of {total:,} bytes, far more than their file")
    for member in members:
        # Other compressions can be far denser, and are not what NumPy writes.
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{member.filename}: a compression that is not ours")
        with file.open(member) as stream:
            if np.lib.format.read_magic(stream) != (1, 0):
                raise ValueError(f"{member.filename}: a header of another version")
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
            if dtype.hasobject or dtype.kind not in "bif":
                raise ValueError(f"{member.filename}: dtype {dtype}, not numbers")
            # A header that promises more than its member holds would make NumPy allocate it first.
            if stream.tell() + math.prod(shape) * dtype.itemsize != member.file_size:
                raise ValueError(f"{member.filename}: {member.file_size} bytes for shape {shape}")


def _content(path: Path) -> bytes:
    """Return all bytes at once, so that what was checked is what is used.

    Pipes and devices, which would be waited for without end, are refused.
    """
    # O_NONBLOCK, or opening a pipe would wait for somebody to write to it.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("not a regular file")
        return file.read()


@contextmanager
def damaged(path: Path, how: str, known: type[Exception] = SavedRunError) -> Iterator[None]:
    """Name the file, and how it is damaged, whatever fails but a ``known`` error.

    The file may be anybody's.
    """
    try:
        yield
    except (SavedRunError, known):
        raise
    except Exception as error:
        said = f"the saved run {how} ({type(error).__name__}: {error})"
        raise SavedRunError(f"{path}: {said}. Fix: save it again.") from error
