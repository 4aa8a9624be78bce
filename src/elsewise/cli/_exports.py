"""What a command writes: a run folder that appears whole or not at all, and exports."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from elsewise._storage import write_bytes
from elsewise.analysis import changes as changes_of
from elsewise.errors import InvalidInput, MissingExtra
from elsewise.report import summary

if TYPE_CHECKING:
    from elsewise.explanation import Explanation


FORMATS = ("csv", "json", "xlsx", "parquet")
# Package, and the extra that installs it.
NEEDED = {"xlsx": ("openpyxl", "excel"), "parquet": ("pyarrow", "parquet")}
# What is exported of each side of a certificate.
COLUMNS = ["estimate", "untrimmed", "upper_limit", "bound", "met", "probability", "method"]
COLUMNS += ["assumption", "directions", "rows_needed"]
FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.,eE+-]*$)")
"""What a spreadsheet takes for a formula; signed numbers are none."""


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
        expected, fix = f"formats among {', '.join(FORMATS)}", "for example --export csv,xlsx"
        raise InvalidInput("--export", expected=expected, received=unknown[0], fix=fix)
    for package, extra in (NEEDED[name] for name in chosen if name in NEEDED):
        if importlib.util.find_spec(package) is None:
            raise MissingExtra(package, extra)
    return chosen


def export(
    explanation: Explanation, folder: Path, formats: Sequence[str], output: str
) -> tuple[list[str], int]:
    """Write counterfactual, changes and certificate in each format.

    Returns
    -------
    tuple of the files' names and int
        How many texts were escaped in CSV files.
    """
    tables = {
        "counterfactual": explanation.frames[1],
        "changes": changes_of(explanation),
        "certificate": certificate_table(explanation),
    }
    written, escaped = [], 0
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
                escaped += write_csv(table, folder / written[-1])
    return written, escaped


def _flat(table: pd.DataFrame, *, index: bool = True) -> pd.DataFrame:
    """Return a table whose index is columns, and whose headers are one cell each."""
    flat = table.reset_index(allow_duplicates=True) if index else table.reset_index(drop=True)
    names = [*(table.index.names if index else []), *table.columns]
    heads = [".".join(map(str, n)) if isinstance(n, tuple) else n for n in names]
    return flat.set_axis(pd.Index(["" if n is None else n for n in heads], dtype=object), axis=1)


def write_csv(table: pd.DataFrame, path: Path, *, index: bool = True) -> int:
    """Write a CSV file in which texts that a spreadsheet would run as formulas begin with '.

    Returns
    -------
    int
        Number of texts escaped, headers and labels included.
    """
    count = 0

    def safe(cell: Any) -> Any:
        nonlocal count
        if not isinstance(cell, str) or not FORMULA.match(cell):
            return cell
        count += 1
        return f"'{cell}"

    flat = _texts_mapped(_flat(table, index=index), safe)
    write_bytes(flat.to_csv(index=False).encode("utf-8", "backslashreplace"), path)
    return count


def _texts_mapped(table: pd.DataFrame, change: Callable[[Any], Any]) -> pd.DataFrame:
    """Return a table with its headers and the columns that can hold texts changed."""
    columns = [
        column.map(change) if getattr(column.dtype, "kind", "O") in "OMm" else column
        for _, column in table.items()
    ]
    heads = pd.Index(map(change, table.columns), dtype=object)
    return pd.DataFrame(dict(enumerate(columns)), index=table.index).set_axis(heads, axis=1)


def certificate_table(explanation: Explanation) -> pd.DataFrame:
    """The certificate as one row per side."""
    certificate = explanation.certificate
    known = {"kind": certificate.kind.value, "confidence": certificate.confidence}
    known |= {"rows": certificate.rows, "verdict": certificate.verdict.value}
    sides = certificate.sides.items()
    rows = [{"side": n} | {c: getattr(s, c) for c in COLUMNS} | known for n, s in sides]
    return pd.DataFrame(rows).set_index("side")


def _write_excel(tables: dict[str, pd.DataFrame], path: Path | BytesIO) -> None:
    """Write one sheet per table; text stays text, even where it looks like a formula."""
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    def legal(value: Any) -> Any:
        plain = isinstance(value, bool | int | float | np.generic)
        if plain or (pd.api.types.is_scalar(value) and pd.isna(value)):
            return value
        return ILLEGAL_CHARACTERS_RE.sub("", str(value))

    with pd.ExcelWriter(path, engine="openpyxl") as book:
        for name, table in tables.items():
            _texts_mapped(_flat(table), legal).to_excel(book, sheet_name=name, index=False)
            for cell in (cell for row in book.sheets[name].iter_rows() for cell in row):
                # openpyxl takes a text that begins with = for a formula, unless its type is set.
                if cell.data_type == "f":
                    cell.data_type = "s"
                if cell.value == "":  # what pandas writes for a missing cell
                    cell.value = None


def write_table(frame: pd.DataFrame, path: Path) -> tuple[Path, int]:
    """Write a frame to a .csv, .parquet or .xlsx file that appears whole or not at all.

    Returns
    -------
    tuple of Path and int
        How many texts were escaped, see `write_csv`.
    """
    if path.suffix not in (".csv", ".parquet", ".xlsx"):
        expected, fix = "a .csv, .parquet or .xlsx file", "choose a name with one of these endings"
        raise InvalidInput("--out", expected=expected, received=str(path), fix=fix)
    check_formats(path.suffix[1:])
    if path.suffix == ".csv":
        return path, write_csv(frame, path, index=False)
    made = BytesIO()
    if path.suffix == ".parquet":
        frame.to_parquet(made)
    else:
        _write_excel({"rows": frame}, made)
    return write_bytes(made.getvalue(), path), 0
