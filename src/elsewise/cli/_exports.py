"""What a command writes: a run folder that appears whole or not at all, and exports."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from elsewise.analysis import changes as changes_of
from elsewise.errors import InvalidInput, MissingExtra
from elsewise.report import summary

if TYPE_CHECKING:
    from elsewise.explanation import Explanation

__all__ = ["FORMATS", "check_formats", "export", "folder_in_place", "write_table"]

FORMATS = ("csv", "json", "xlsx", "parquet")
RECORD = "explanation.json"


@contextmanager
def folder_in_place(place: Path) -> Iterator[Path]:
    """Give a new folder to fill, and put it in its place at the end of the block.

    An earlier run is replaced, anything else is refused. Whatever happens before the end, what was
    there stays there.
    """
    if place.is_file() or (
        place.is_dir() and any(place.iterdir()) and not (place / RECORD).is_file()
    ):
        raise InvalidInput(
            "--out",
            expected="a new folder, an empty one or an earlier run",
            received=f"{place}, which holds something else",
            fix="choose another folder",
        )
    place = place.absolute()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    except OSError as error:
        raise InvalidInput(
            "--out",
            expected="a folder that can be made",
            received=f"{place} ({error.strerror.lower() if error.strerror else error})",
            fix="choose another folder",
        ) from error
    try:
        fresh = work / "new"
        fresh.mkdir()
        yield fresh
        old = work / "old"
        if place.exists():
            place.replace(old)
        try:
            fresh.replace(place)
        except BaseException:
            if old.exists():
                old.replace(place)
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def check_formats(text: str) -> tuple[str, ...]:
    """Return the formats in a text such as ``csv,xlsx``; refuse unknown ones and missing extras.

    Examples
    --------
    >>> check_formats("csv,json")
    ('csv', 'json')
    """
    chosen = tuple(part.strip() for part in text.split(",") if part.strip())
    unknown = [name for name in chosen if name not in FORMATS]
    if unknown:
        raise InvalidInput(
            "--export",
            expected=f"formats among {', '.join(FORMATS)}",
            received=unknown[0],
            fix="for example --export csv,xlsx",
        )
    if "xlsx" in chosen:
        _needs("openpyxl", "excel")
    if "parquet" in chosen:
        _needs("pyarrow", "parquet")
    return chosen


def _needs(package: str, extra: str) -> None:
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise MissingExtra(package, extra)


def export(
    explanation: Explanation, folder: Path, formats: Sequence[str], output: str
) -> list[str]:
    """Write counterfactual, changes and certificate in each format; returns the files' names."""
    tables = {
        "counterfactual": explanation.counterfactual,
        "changes": changes_of(explanation),
        "certificate": certificate_table(explanation),
    }
    written = []
    for kind in formats:
        if kind == "xlsx":
            written.append("explanation.xlsx")
            _write_excel(tables, folder / written[-1])
        elif kind == "parquet":
            written.append("counterfactual.parquet")
            tables["counterfactual"].to_parquet(folder / written[-1])
        elif kind == "json":
            written.append("summary.json")
            text = json.dumps(summary(explanation, output), indent=1, allow_nan=False)
            (folder / written[-1]).write_text(text, encoding="utf-8")
            written.append("counterfactual.json")
            tables["counterfactual"].to_json(folder / written[-1], orient="split", indent=1)
        else:
            for name, table in tables.items():
                written.append(f"{name}.csv")
                table.to_csv(folder / written[-1])
    return written


def certificate_table(explanation: Explanation) -> pd.DataFrame:
    """The certificate as one row per side."""
    certificate = explanation.certificate
    columns = (
        "estimate",
        "untrimmed",
        "upper_limit",
        "bound",
        "met",
        "probability",
        "method",
        "assumption",
        "directions",
        "rows_needed",
    )
    rows = {
        name: {column: getattr(side, column) for column in columns}
        for name, side in (("inputs", certificate.inputs), ("outputs", certificate.outputs))
    }
    table = pd.DataFrame.from_dict(rows, orient="index", columns=list(columns))
    table.index.name = "side"
    return table.assign(
        kind=certificate.kind.value,
        confidence=certificate.confidence,
        rows=certificate.rows,
        verdict=certificate.verdict.value,
    )


def _write_excel(tables: dict[str, pd.DataFrame], path: Path) -> None:
    """Write one sheet per table; text stays text, even where it looks like a formula."""
    from openpyxl import Workbook

    book = Workbook()
    book.remove(book.active)
    for name, table in tables.items():
        sheet = book.create_sheet(name)
        flat = table.reset_index()
        rows: list[Sequence[Any]] = [list(flat.columns), *flat.itertuples(index=False, name=None)]
        for i, row in enumerate(rows, start=1):
            for k, value in enumerate(row, start=1):
                _write_cell(sheet.cell(row=i, column=k), value)
    book.save(path)


def _write_cell(cell: Any, value: Any) -> None:
    if pd.isna(value):
        return
    number = isinstance(value, bool | int | float) or hasattr(value, "dtype")
    cell.value = (value.item() if hasattr(value, "item") else value) if number else _legal(value)
    if isinstance(cell.value, str):
        cell.data_type = "s"


def _legal(value: Any) -> str:
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    return str(ILLEGAL_CHARACTERS_RE.sub("", str(value)))


def write_table(frame: pd.DataFrame, path: Path) -> Path:
    """Write a frame to a .csv, .parquet or .xlsx file that appears whole or not at all."""
    if path.suffix not in (".csv", ".parquet", ".xlsx"):
        raise InvalidInput(
            "--out",
            expected="a .csv, .parquet or .xlsx file",
            received=str(path),
            fix="choose a name with one of these endings",
        )
    check_formats(path.suffix[1:])
    place = path.absolute()
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=place.parent) as work:
        fresh = Path(work) / place.name
        if path.suffix == ".parquet":
            frame.to_parquet(fresh)
        elif path.suffix == ".xlsx":
            _write_excel({"rows": frame}, fresh)
        else:
            frame.to_csv(fresh, index=False)
        fresh.replace(place)
    return path
