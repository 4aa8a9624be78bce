"""Downloaded data: what the loaders make of the pinned files, and how files are fetched."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas as pd
import pytest
from benchmarks.datasets import _cardio, _compas, _files, _heloc
from benchmarks.datasets._files import DataError, Pinned, fetch

from elsewise.datasets import Dataset
from needs import data_folder

# --- downloaded data: what the loaders make of the pinned files -----------------------------------


@pytest.fixture(scope="module")
def heloc() -> Dataset:
    data_folder()
    return _heloc.heloc()


@pytest.fixture(scope="module")
def compas() -> Dataset:
    data_folder()
    return _compas.compas()


@pytest.fixture(scope="module")
def cardio() -> Dataset:
    data_folder()
    return _cardio.cardio()


def test_heloc_is_the_published_one(heloc: Dataset) -> None:
    assert repr(heloc) == "<Dataset HELOC: 9871 rows x 23 columns, outcome RiskPerformance>"
    assert heloc.frame.notna().any(axis=1).all()
    assert heloc.frame.min().min() >= 0
    assert heloc.frame.isna().sum().sum() == 12643
    assert heloc.outcome.sum() == 4735
    assert heloc.frame.index.equals(pd.RangeIndex(9871))
    assert heloc.outcome.index.equals(heloc.frame.index)
    assert {str(feature.kind) for feature in heloc.schema.features} == {"integer"}


def test_compas_is_the_published_one(compas: Dataset) -> None:
    assert repr(compas) == "<Dataset COMPAS: 6172 rows x 6 columns, outcome Status>"
    assert compas.frame["race"].value_counts().to_dict() == {
        "African-American": 3175,
        "Caucasian": 2103,
        "Hispanic": 509,
        "Other": 343,
        "Asian": 31,
        "Native American": 11,
    }
    assert compas.frame["c_charge_degree"].value_counts().to_dict() == {"F": 3970, "M": 2202}
    assert compas.frame["time_served"].agg(["min", "max"]).to_list() == [0, 799]
    assert compas.outcome.mean() == pytest.approx(1 - 0.4551198963)
    assert compas.frame.notna().all(axis=None)
    kinds = {feature.name: str(feature.kind) for feature in compas.schema.features}
    assert kinds["priors_count"] == kinds["time_served"] == "integer"
    assert kinds["race"] == "category"


def test_no_name_or_birth_date_leaves_the_loader(compas: Dataset) -> None:
    assert list(compas.frame.columns) == [
        "sex", "age_cat", "race", "c_charge_degree", "priors_count", "time_served",
    ]  # fmt: skip
    # Whole published rows, so that a value of a dropped column would be found wherever it went.
    original = pd.read_csv(data_folder() / "compas" / "compas-scores-two-years.csv", dtype=str)
    secret = set(original[["name", "first", "last", "dob", "c_case_number"]].to_numpy().ravel())
    shown = set(compas.frame.astype(str).to_numpy().ravel())
    assert not secret & shown


def test_cardio_is_the_published_one(cardio: Dataset) -> None:
    assert repr(cardio) == "<Dataset Cardio: 70000 rows x 11 columns, outcome cardio>"
    assert "id" not in cardio.frame
    assert cardio.outcome.sum() == 34979
    assert cardio.frame["age"].mean() == pytest.approx(19468.865814)
    assert cardio.frame["ap_hi"].agg(["min", "max"]).to_list() == [-150, 16020]


@pytest.mark.parametrize("name", ["heloc", "compas", "cardio"])
def test_source_licence_and_harms_are_stated(name: str, request: pytest.FixtureRequest) -> None:
    loaded: Dataset = request.getfixturevalue(name)
    assert "changes:" in loaded.source
    assert "not to be passed on" in loaded.licence
    assert loaded.warning.startswith("For methods, not for ")


# --- downloads ------------------------------------------------------------------------------------

CONTENT = b"a,b\n" + b"1,2\n" * 5000


class Handler(BaseHTTPRequestHandler):
    """Serves the content whole, corrupted, cut off half way, or not at all."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path == "/missing.csv":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        if self.path == "/broken.csv":
            self.wfile.write(CONTENT[: len(CONTENT) // 2])
            return
        corrupted = self.path == "/corrupted.csv"
        self.wfile.write(b"X" + CONTENT[1:] if corrupted else CONTENT)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A server on this machine, an empty cache, no local folder, no proxy."""
    monkeypatch.delenv("ELSEWISE_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(_files.pooch, "os_cache", lambda name: tmp_path / name)
    Handler.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def pinned(address: str, name: str) -> Pinned:
    return Pinned(
        place=f"set/{name}",
        address=f"{address}/{name}",
        sha256=hashlib.sha256(CONTENT).hexdigest(),
    )


def left_behind(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_file_is_downloaded_once(address: str, tmp_path: Path) -> None:
    place = fetch(pinned(address, "whole.csv"))
    assert place == tmp_path / "elsewise" / "set" / "whole.csv"
    assert place.read_bytes() == CONTENT
    assert fetch(pinned(address, "whole.csv")) == place
    assert Handler.asked == ["/whole.csv"]
    assert left_behind(tmp_path) == [place]


def test_a_damaged_cache_is_downloaded_again(address: str) -> None:
    place = fetch(pinned(address, "whole.csv"))
    place.write_bytes(b"damaged")
    assert fetch(pinned(address, "whole.csv")).read_bytes() == CONTENT
    assert len(Handler.asked) == 2


def test_corrupted_bytes_are_refused(address: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected bytes with sha256 .* received others.*put the"):
        fetch(pinned(address, "corrupted.csv"))
    assert not left_behind(tmp_path)


def test_a_broken_connection_leaves_nothing(address: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"download failed .*put the file at .*broken.csv"):
        fetch(pinned(address, "broken.csv"))
    assert not left_behind(tmp_path)


def test_a_failed_download_keeps_no_damaged_cache(address: str, tmp_path: Path) -> None:
    place = tmp_path / "elsewise" / "set" / "broken.csv"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"old")
    with pytest.raises(DataError, match="download failed"):
        fetch(pinned(address, "broken.csv"))
    assert left_behind(tmp_path) in ([], [place])


def test_a_missing_page_says_where_to_put_the_file(address: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"HTTPError.*set ELSEWISE_DATA to that folder"):
        fetch(pinned(address, "missing.csv"))
    assert not left_behind(tmp_path)


def test_no_network_says_where_to_put_the_file(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*arguments: object, **options: object) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr(_files.pooch.HTTPDownloader, "__call__", unreachable)
    with pytest.raises(DataError, match=r"connect to the network, or put the file at .*whole.csv"):
        fetch(pinned(address, "whole.csv"))
    assert not left_behind(tmp_path)


def test_a_local_folder_is_read_and_nothing_else(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELSEWISE_DATA", str(tmp_path / "mine"))
    place = tmp_path / "mine" / "set" / "whole.csv"
    with pytest.raises(DataError, match=r"expected the file .*whole.csv, received none"):
        fetch(pinned(address, "whole.csv"))
    place.parent.mkdir(parents=True)
    place.write_bytes(b"other")
    with pytest.raises(DataError, match="received other bytes"):
        fetch(pinned(address, "whole.csv"))
    place.write_bytes(CONTENT)
    assert fetch(pinned(address, "whole.csv")) == place
    assert Handler.asked == []
