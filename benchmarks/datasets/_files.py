"""Files that are too large, or not free enough, to travel with the repository."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pooch
from tqdm.auto import tqdm

__all__ = ["DataError", "Pinned", "fetch"]


class DataError(RuntimeError):
    """The file behind a dataset cannot be had, or its bytes are not the pinned ones."""


FOLDER = "ELSEWISE_DATA"
"""Environment variable that names a local folder with the files."""
SECONDS = 30
"""How long the server may stay silent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A published file whose every byte is known."""

    place: str
    """Sub-folder and name, in a local folder and in the cache alike."""
    address: str
    """Where it is published, at a fixed revision."""
    sha256: str
    """What its bytes hash to."""


def fetch(file: Pinned) -> Path:
    """Return where ``file`` lies on this machine, downloading it on first use.

    It is looked for in the folder that the environment variable ``ELSEWISE_DATA`` names, and there
    only; without the variable, in the cache of the user. A download appears in the cache whole
    and checked, or not at all.
    """
    folder = os.environ.get(FOLDER)
    if folder:
        return _local(file, Path(folder) / file.place)
    place = Path(pooch.os_cache("elsewise")) / file.place
    # The total is a stand-in until the server says how much there is.
    bar = tqdm(total=1, desc=place.name, unit="B", unit_scale=True, disable=None, leave=False)
    try:
        return Path(
            pooch.retrieve(
                file.address,
                known_hash=f"sha256:{file.sha256}",
                fname=place.name,
                path=place.parent,
                downloader=pooch.HTTPDownloader(progressbar=bar, timeout=SECONDS),
            )
        )
    except OSError as error:  # every error of requests is one
        raise DataError(
            f"{file.address}: the download failed ({type(error).__name__}). Fix: connect to the "
            f"network, or put the file at {place}, or at {file.place} in a folder of yours and set "
            f"{FOLDER} to that folder."
        ) from error
    except ValueError as error:  # raised by pooch for a wrong hash, with the file removed
        raise DataError(
            f"{file.address}: expected bytes with sha256 {file.sha256}, received others. "
            f"Fix: try again, or put the right file at {place}."
        ) from error
    finally:
        bar.close()


def _local(file: Pinned, place: Path) -> Path:
    if not place.is_file():
        raise DataError(
            f"{FOLDER}: expected the file {place}, received none. Fix: put {file.address} there, "
            f"or unset {FOLDER} to download it."
        )
    if pooch.file_hash(str(place), alg="sha256") != file.sha256:
        raise DataError(
            f"{FOLDER}: expected {place} with sha256 {file.sha256}, received other bytes. "
            f"Fix: replace it with {file.address}."
        )
    return place
