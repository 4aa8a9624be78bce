"""Run the notebooks and write what their cells print, return and draw into them.

    python scripts/run_notebooks.py docs/notebooks/*.ipynb

Cells are run as IPython runs them: in their order, in one namespace, and what the last line of a
cell is worth is shown. That is all these notebooks need, so that no kernel has to be installed.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

DOTS = 90


def outputs_of(code: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run one cell; returns what it printed, the value of its last line and its figure."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    import matplotlib.pyplot as plt

    body = ast.parse(code).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) and code[-1] != ";" else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    found: list[dict[str, Any]] = []
    if text := printed.getvalue():
        found.append({"output_type": "stream", "name": "stdout", "text": lines(text)})
    if plt.get_fignums():
        drawn = io.BytesIO()
        plt.savefig(drawn, dpi=DOTS, bbox_inches="tight", metadata={"Software": None})
        plt.close("all")
        picture = base64.b64encode(drawn.getvalue()).decode()
        data: dict[str, Any] = {"image/png": picture, "text/plain": ["a figure"]}
        found.append({"output_type": "display_data", "metadata": {}, "data": data})
    elif value is not None:
        data = {"text/plain": lines(repr(value))}
        if callable(show := getattr(value, "_repr_html_", None)):
            data["text/html"] = lines(show())
        result = {"output_type": "execute_result", "execution_count": None}
        found.append({**result, "metadata": {}, "data": data})
    return found


def lines(text: str) -> list[str]:
    """Return text as notebooks keep it: in lines, each with its end."""
    return text.splitlines(keepends=True)


def ran(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return a notebook with the outputs of its cells."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = outputs_of("".join(cell["source"]), names)
    return notebook


def main(paths: list[str]) -> None:
    """Refresh the named notebooks."""
    for path in map(Path, paths):
        fresh = ran(json.loads(path.read_text("utf-8")))
        path.write_text(json.dumps(fresh, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
