"""What a command writes: a run folder that appears whole or not at all, and exports."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from elsewise._storage import write_bytes
from elsewise.analysis import changes as changes_of
from elsewise.cli._inputs import names_in, need
from elsewise.errors import InvalidInput
from elsewise.report import summary

if TYPE_CHECKING:
    from elsewise.explanation import Explanation


# The files of each format that can be asked for.
FILES = {
    "csv": ("counterfactual.csv", "changes.csv", "certificate.csv"),
    "json": ("summary.json", "counterfactual.json"),
    "parquet": ("counterfactual.parquet",),
}
# What is exported of each side of a certificate.
COLUMNS = ["estimate", "untrimmed", "upper_limit", "bound", "met", "probability", "method"]
COLUMNS += ["assumption", "directions", "rows_needed"]
FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.,eE+-]*$)")
"""What a spreadsheet takes for a formula; signed numbers are none."""


def check_formats(text: str) -> list[str]:
    """Return the formats in a text such as ``csv,json``; refuse unknown ones and missing extras.

    Examples
    --------
    >>> check_formats("csv,json")
    ['csv', 'json']
    """
    chosen = names_in(text)
    unknown = [name for name in chosen if name not in FILES]
    if unknown:
        expected, fix = f"formats among {', '.join(FILES)}", "for example --export csv,json"
        raise InvalidInput("--export", expected, unknown[0], fix)
    if "parquet" in chosen:
        need("pyarrow", "parquet")
    return chosen


def export(
    explanation: Explanation, folder: Path, formats: Sequence[str], output: str
) -> tuple[list[str], int]:
    """Write counterfactual, changes and certificate in each format that holds them.

    Returns
    -------
    tuple of the files' names and int
        How many texts were escaped in CSV files.
    """
    moved, escaped = explanation.frames[1], 0
    if "csv" in formats:
        tables = moved, changes_of(explanation), certificate_table(explanation)
        for name, table in zip(FILES["csv"], tables, strict=True):
            escaped += write_csv(table, folder / name)
    if "json" in formats:
        text = json.dumps(summary(explanation, output), indent=1, allow_nan=False)
        (folder / "summary.json").write_text(text, encoding="utf-8")
        moved.to_json(folder / "counterfactual.json", orient="split", indent=1)
    if "parquet" in formats:
        moved.to_parquet(folder / "counterfactual.parquet")
    return [name for kind in formats for name in FILES[kind]], escaped


def write_csv(table: pd.DataFrame, path: Path, *, index: bool = True) -> int:
    """Write a CSV file in which texts that a spreadsheet would run as formulas begin with '.

    The index becomes columns, and every header one cell.

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

    names = [*(table.index.names if index else []), *table.columns]
    heads = [".".join(map(str, name)) if isinstance(name, tuple) else name for name in names]
    flat = table.reset_index(allow_duplicates=True) if index else table
    cells = {
        place: column.map(safe) if getattr(column.dtype, "kind", "O") == "O" else column
        for place, (_, column) in enumerate(flat.items())
    }
    shown = pd.Index([safe("" if head is None else head) for head in heads], dtype=object)
    text = pd.DataFrame(cells, index=flat.index).set_axis(shown, axis=1).to_csv(index=False)
    write_bytes(text.encode("utf-8", "backslashreplace"), path)
    return count


def certificate_table(explanation: Explanation) -> pd.DataFrame:
    """The certificate as one row per side."""
    certificate = explanation.certificate
    known = {"kind": certificate.kind.value, "confidence": certificate.confidence}
    known |= {"rows": certificate.rows, "verdict": certificate.verdict.value}
    sides = certificate.sides.items()
    rows = [{"side": n} | {c: getattr(s, c) for c in COLUMNS} | known for n, s in sides]
    return pd.DataFrame(rows).set_index("side")


def write_table(frame: pd.DataFrame, path: Path) -> tuple[Path, int]:
    """Write a frame to a .csv or .parquet file that appears whole or not at all.

    Returns
    -------
    tuple of Path and int
        How many texts were escaped, see `write_csv`.
    """
    if path.suffix == ".csv":
        return path, write_csv(frame, path, index=False)
    if path.suffix != ".parquet":
        raise InvalidInput("--out", "a .csv or .parquet file", path, "choose one of these endings")
    need("pyarrow", "parquet")
    return write_bytes(frame.to_parquet(), path), 0
