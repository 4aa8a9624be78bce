"""The answer: what changed, what each attribute accounts for, and how sure that is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from elsewise._difference._matching import EXACT_ROWS, Plan
from elsewise._difference._samples import KINDS, Functional
from elsewise._storage import path_of, read_arrays, write_bytes, write_text
from elsewise.errors import SavedRunError, checked, from_mapping
from elsewise.features import Source, pack_index, unpack_index
from elsewise.text import amount, one_line, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes


TOLD, LEAST = 3, 0.05
"""At most this many attributes are told in a sentence, from this share of the largest part on."""
NOT_CLAIMED = (
    "Parts say which attributes the model's outputs changed through, not what caused them to "
    "change, and hold for rows matched at the least total distance."
)

FORMAT = 2
PLAIN = ["output", "functional", "before", "after", "sizes", "clusters", "confidence", "draws"]
PLAIN += ["seed", "same"]
"""Fields that JSON holds as they are."""
NUMBERS, TEXTS, FLAGS = tuple[float, ...], tuple[str, ...], tuple[bool, ...]
TABLES: dict[str, dict[str, Any]] = {
    "parts": {"kind": TEXTS}
    | dict.fromkeys(("part", "low", "high", "detectable", "own_change"), NUMBERS)
    | {"moved": TEXTS, "named": FLAGS},
    "groups": {"who": TEXTS}
    | dict.fromkeys(("rows_before", "rows_after"), tuple[int, ...])
    | {"before": NUMBERS, "after": NUMBERS, "mostly": TEXTS},
}
"""Columns of the tables of a difference, and what is in them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Difference:
    """The change of a model's outputs from one sample to another, by attribute."""

    output: str
    """What the model's output is called."""
    functional: Functional
    """What of the outputs changed."""
    before: float
    """Its value on the rows before."""
    after: float
    """Its value on the rows after."""
    parts: pd.DataFrame
    """`table`, with the change itself as the last row, whose ``own_change`` is `p_value`."""
    groups: pd.DataFrame
    """Sub-populations by what did not change, in both samples; empty if all moved alike."""
    pairs: Plan
    """Matched rows and their masses."""
    unmatched: tuple[np.ndarray, np.ndarray]
    """Rows of before without a counterpart in after, and the other way round; 1% is usual."""
    sizes: tuple[int, int]
    """Rows before and after."""
    clusters: int
    """Number of clusters; as many as rows if all rows are independent."""
    confidence: float
    """Level of all intervals together."""
    draws: int
    """Random regroupings of the permutation tests."""
    seed: int
    """Seed of the matching and the draws."""
    same: bool
    """Whether both samples are the same rows."""
    source: Source | None = None
    """The kind of frame the samples came in, and that `table` returns; None: pandas."""

    @property
    def change(self) -> float:
        """What the parts sum to."""
        return self.after - self.before

    @property
    def p_value(self) -> float:
        """Exact p-value of "both samples come from one population", by the size of the change."""
        return float(self.parts["own_change"].iloc[-1])

    @property
    def attributes(self) -> pd.DataFrame:
        """`parts` without the change itself."""
        return self.parts.iloc[:-1].copy()

    def table(self) -> Any:
        """Return a row per attribute, largest part first.

        ``part`` with ``low`` and ``high``; ``detectable``, the smallest part that 4 of 5 such
        samples would show; ``own_change``, the p-value that its own distribution is the same;
        ``moved``, how it changed if that is at most 0.05; ``named``, whether the interval leaves
        out 0 and its own distribution changed, so that the part is not that of a mere change of
        how attributes go together.
        """
        return self.attributes if self.source is None else self.source.table(self.attributes)

    @property
    def headline(self) -> str:
        """What changed, and what accounts for it."""
        if self.same:
            return f"Nothing changed: both samples are the same {self.sizes[0]:,} rows."
        kind, at = self.functional
        names = {"mean": "mean score", "quantile": f"{percent(at, exact=True)} quantile of scores"}
        what = names.get(kind, f"share of rows with a score of at least {amount(at)}")
        verb = "rose" if self.change > 0 else "fell"
        moved = f"The {what} {verb} from {self._level(self.before)} to {self._level(self.after)}"
        if not self.change:
            return f"The {what} stayed at {self._level(self.after)}."
        table = self.attributes
        worth = table["named"] & (table["part"].abs() >= LEAST * table["part"].abs().max())
        told = [
            f"{one_line(name)} accounts for {self._part(row)}"
            for name, row in table[worth].iloc[:TOLD].iterrows()
        ]
        if not told and self.p_value > 1.0 - self.confidence:
            return f"{moved}, no more than chance makes of one population (p = {self.p_value:.2g})."
        return f"{moved}; {', '.join(told) or 'no single attribute can be named for it'}."

    def sentences(self) -> list[str]:
        """Return the answer in words, the headline first."""
        if self.same:
            return [self.headline]
        row, level = self.parts.iloc[-1], percent(self.confidence, exact=True)
        rows = f"{self.sizes[0]:,} and {self.sizes[1]:,} rows"
        rows += "" if self.clusters == sum(self.sizes) else f" in {self.clusters:,} clusters"
        said = [
            self.headline,
            f"The change is {self._part(row)}; all intervals hold together at {level}. If "
            "both samples came from one population, a change of at least this size would be seen "
            f"with p = {self.p_value:.2g} (exact, {self.draws:,} random regroupings). With {rows} "
            f"a change of {self._step(row['detectable'])} would be found in 4 of 5 samples.",
        ]
        changed = self.parts["moved"][self.parts["moved"] != ""]
        if len(changed):
            moves = [f"{one_line(name)} ({words})" for name, words in changed.items()]
            said.append(f"Attributes whose own distribution changed: {'; '.join(moves)}.")
        # The last row is the change itself, which is no attribute.
        clear = (self.parts["low"] > 0) | (self.parts["high"] < 0)
        for name in self.parts.index[:-1][(clear & ~self.parts["named"]).iloc[:-1]]:
            said.append(
                f"{one_line(name)} has a part although its own distribution did not change "
                "measurably: what changed is how it goes together with other attributes, which "
                "none of them has to itself, so it is not named."
            )
        for who, one, other, old, new, mostly in self.groups.itertuples(index=False):
            by = f", most of it through {one_line(mostly)}" if mostly else ""
            moved = f"{self._level(old)} to {self._level(new)}"
            said.append(f"Where {who} ({one:,} and {other:,} rows): {moved}{by}.")
        for side, alone, size in zip(("before", "after"), self.unmatched, self.sizes, strict=True):
            # 1% and three standard errors of a binomial count: less is what chance gives.
            if alone.size > 0.01 * size + 3.0 * (0.01 * size) ** 0.5:
                said.append(
                    f"{alone.size:,} of {size:,} rows {side} have no counterpart on the other "
                    "side (1% would be usual)."
                )
        if max(self.sizes) > EXACT_ROWS:
            said.append(f"Beyond {EXACT_ROWS:,} rows a side, rows are matched in random blocks.")
        return [*said, NOT_CLAIMED]

    def _level(self, value: float) -> str:
        return percent(value, fine=True) if self.functional.kind == "share" else amount(value)

    def _step(self, value: float) -> str:
        """A change of the functional; of a share, in percentage points."""
        return f"{amount(100 * value)} points" if self.functional.kind == "share" else amount(value)

    def _part(self, row: pd.Series[Any]) -> str:
        scale = 100 if self.functional.kind == "share" else 1
        ends = f"{amount(scale * row['low'])} to {amount(scale * row['high'])}"
        return f"{self._step(row['part'])} ({ends})"

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        parts = self.parts.reset_index().astype({"attribute": str}).to_dict("records")
        plain = {name: getattr(self, name) for name in ("before", "after", "sizes", "confidence")}
        groups = self.groups.to_dict("records")
        return plain | {"sentences": self.sentences(), "parts": parts, "groups": groups}

    def __str__(self) -> str:
        shown = self.attributes[["part", "low", "high", "own_change", "named"]]
        return "\n".join([*self.sentences(), shown.to_string(float_format=amount)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        words = "".join(f"<p>{escape(line)}</p>" for line in self.sentences())
        return words + self.attributes.to_html(float_format=amount)

    def plot(self, ax: Axes | None = None, most: int = 10) -> Axes:
        """Draw the parts between the value before and the value after: `plots.waterfall`."""
        from elsewise import plots

        return plots.waterfall(self, ax, most)

    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML page."""
        from elsewise import report

        return write_text(report.render_difference(self), path)

    def save(self, path: str | Path) -> Path:
        """Write one .npz file, whole or not at all: a JSON record and arrays, without pickle."""
        record = {name: getattr(self, name) for name in PLAIN}
        record |= {name: getattr(self, name).to_dict("list") for name in TABLES}
        record |= {"format": FORMAT, "elsewise": version("elsewise")}
        text = json.dumps(record | {"attributes": pack_index(self.parts.index)}).encode()
        arrays: dict[str, Any] = self.pairs._asdict()
        arrays["before_only"], arrays["after_only"] = self.unmatched
        np.savez(written := BytesIO(), record=np.frombuffer(text, np.int8), **arrays)
        return write_bytes(written.getvalue(), path)

    @staticmethod
    def load(path: str | Path) -> Difference:
        """Read what `save` wrote; anything else is a `SavedRunError`."""
        try:
            arrays = read_arrays(path_of(path, "path"))
            record = json.loads(arrays["record"].tobytes())
            if record["format"] != FORMAT:
                raise ValueError(f"format {record['format']!r}, made by {record.get('elsewise')}")
            tables = {name: _table(name, record[name]) for name in TABLES}
            tables["parts"].index = unpack_index(record["attributes"]).rename("attribute")
            plan = Plan(*(arrays[name] for name in Plan._fields))
            unmatched = arrays["before_only"], arrays["after_only"]
            content = {name: record[name] for name in PLAIN} | tables
            content |= {"pairs": plan, "unmatched": unmatched}
            found = from_mapping(Difference, content, "difference")
            for rows, size in zip((*plan[:2], *unmatched), found.sizes * 2, strict=True):
                if rows.ndim != 1 or rows.dtype.kind != "i" or np.any((rows < 0) | (rows >= size)):
                    raise ValueError("rows that are in neither sample")
            if not plan.before.shape == plan.after.shape == plan.mass.shape:
                raise ValueError("pairs without a mass")
            known = np.isfinite([found.before, found.after, found.functional.at]).all()
            known &= found.functional.kind in KINDS and len(found.parts) > 0
            if not known or not 0 < found.confidence < 1 or min(*found.sizes, found.clusters) < 1:
                raise ValueError("numbers that no difference has")
            return found
        except Exception as error:
            raise SavedRunError(
                f"{path}: expected what Difference.save wrote (format {FORMAT}), received "
                f"{type(error).__name__}: {error}. Fix: save it again."
            ) from error


def _table(name: str, columns: dict[str, Any]) -> pd.DataFrame:
    """Return one of the tables, with the columns it must have, of finite numbers and texts."""
    kinds = TABLES[name]
    if list(columns) != list(kinds):
        raise ValueError(f"a table of {name} with the columns {', '.join(columns)}")
    content = [checked(f"{name}.{column}", columns[column], kinds[column]) for column in kinds]
    table = pd.DataFrame(list(zip(*content, strict=True)), columns=list(kinds))
    if not np.isfinite(table.select_dtypes("number").to_numpy(dtype=np.float64)).all():
        raise ValueError(f"a table of {name} with missing numbers")
    return table
