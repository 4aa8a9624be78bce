"""The layout is enforced: modules import only from strictly lower levels.

Every import of every module under ``src/elsewise`` is read with ``ast``, those inside functions
too. ``errors`` and ``_arrays`` may be imported from anywhere, a package's own modules may import
each other.
"""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1] / "src" / "elsewise"

LEVELS = {
    "errors": 0,
    "_arrays": 0,
    "_resources": 0,
    "tradeoff": 0,
    "transport": 0,
    "features": 0,
    "targets": 0,
    "models": 1,
    "balance": 1,
    "entropic": 1,
    "confidence": 2,
    "settings": 2,
    "problem": 3,
    "posing": 4,
    "proposals": 4,
    "sides": 4,
    "split": 4,
    "edits": 4,
    "offers": 5,
    "plans": 5,
    "maps": 6,
    "certificate": 7,
    "solver": 7,
    "asking": 8,
    "search": 8,
    "explanation": 9,
    "insight": 10,
    "saving": 10,
    "metrics": 10,
    "datasets": 10,
    "baselines": 10,
    "_explain": 11,
    "plots": 11,
    "report": 13,
    "_travel": 12,
    "_frontier": 12,
    "_stability": 12,
    "many": 14,
    "distributed": 14,
    "demo": 14,
    "cli": 15,
    "__main__": 16,
    "__init__": 16,
}
FROM_ANYWHERE = {"errors", "_arrays", "_resources"}

# Methods that reach up, each a one-line delegate with its import inside the function.
REACHED = ("insight", "plots", "report", "saving", "_frontier", "_stability")
DELEGATES = {("explanation", part) for part in REACHED} | {("certificate", "report")}

MAY_PRINT = {"cli", "demo"}
# Frameworks and the only part that may import them, types aside; torch only inside functions.
ONLY_IN = {"torch": "models", "matplotlib": "plots"}
HEAVY = ("torch", "matplotlib", "sklearn")


class Import(NamedTuple):
    """One imported name: ``elsewise.features``, ``torch.nn``, ..."""

    target: str
    line: int
    inside_function: bool
    for_types_only: bool


def dotted_name(path: Path) -> str:
    """Return ``elsewise.models._torch`` for ``src/elsewise/models/_torch.py``."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part_of(name: str) -> str:
    """Return the part of the layout a dotted name of the package belongs to."""
    pieces = name.split(".")
    return pieces[1] if len(pieces) > 1 else "__init__"


def imports_of(tree: ast.Module, package: str) -> Iterator[Import]:
    """Yield every import, with relative ones resolved against ``package``."""
    pending: list[tuple[ast.AST, bool, bool]] = [(tree, False, False)]
    while pending:
        node, inside, typing = pending.pop()
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, inside, typing)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                kept = parents[: len(parents) - node.level + 1]
                base = ".".join([*kept, base] if base else kept)
            for alias in node.names:
                # ``from elsewise import features`` imports the module, not the package.
                target = f"elsewise.{alias.name}" if base == "elsewise" else base
                yield Import(target, node.lineno, inside, typing)
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        typing_block = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        typing = typing or typing_block
        pending.extend((child, inside, typing) for child in ast.iter_child_nodes(node))


def violations(name: str, source: str, *, is_package: bool = False) -> list[str]:
    """Return what a module's imports break, as readable lines."""
    part = part_of(name)
    if part not in LEVELS:
        return [f"{name}: {part!r} has no level; add it to the layout"]
    package = name if is_package else name.rpartition(".")[0]
    found = []
    for target, line, inside, typing in imports_of(ast.parse(source), package):
        where = f"{name}:{line} imports {target}"
        root = target.split(".")[0]
        if root in ONLY_IN and not typing:
            if part != ONLY_IN[root]:
                found.append(f"{where}: {root} belongs in {ONLY_IN[root]} only")
            elif root == "torch" and not inside:
                found.append(f"{where}: torch is imported inside functions only")
        if root != "elsewise":
            continue
        other = part_of(target)
        if other in FROM_ANYWHERE or other == part:
            continue
        if (part, other) in DELEGATES and (inside or typing):
            continue
        if other not in LEVELS:
            found.append(f"{where}: {other!r} is no module of the layout")
        elif LEVELS[other] >= LEVELS[part]:
            found.append(f"{where}: level {LEVELS[other]} from level {LEVELS[part]}")
    return found


MODULES = {dotted_name(path): path for path in sorted(ROOT.rglob("*.py"))}


@pytest.mark.parametrize("name", MODULES)
def test_imports_only_from_lower_levels(name: str) -> None:
    path = MODULES[name]
    assert not violations(name, path.read_text("utf-8"), is_package=path.stem == "__init__")


@pytest.mark.parametrize("name", MODULES)
def test_never_prints(name: str) -> None:
    if part_of(name) in MAY_PRINT:
        return
    calls = [
        f"{name}:{node.lineno}"
        for node in ast.walk(ast.parse(MODULES[name].read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]
    assert not calls


@pytest.mark.parametrize("name", [name for name in MODULES if part_of(name) not in {"__main__"}])
def test_everything_in_all_resolves(name: str) -> None:
    module = importlib.import_module(name)
    listed = getattr(module, "__all__", [])
    assert len(set(listed)) == len(listed)
    for attribute in listed:
        assert getattr(module, attribute) is not None


def test_public_names_are_listed() -> None:
    elsewise = importlib.import_module("elsewise")
    assert elsewise.__all__
    assert set(elsewise.__all__) <= set(dir(elsewise))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = elsewise.no_such_name


def loaded_by(statement: str) -> set[str]:
    """Return the heavy packages that a fresh interpreter holds after ``statement``."""
    code = f"{statement}\nimport sys\nfor name in {HEAVY!r}:\n    print(name, name in sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    pairs = (line.split() for line in answer.stdout.splitlines())
    return {name for name, loaded in pairs if loaded == "True"}


def test_import_is_lazy() -> None:
    assert loaded_by("import elsewise") == set()


def test_kernels_import_without_frameworks() -> None:
    kernels = [name for name in ("transport", "proposals", "maps", "solver") if name_exists(name)]
    assert loaded_by("\n".join(f"import elsewise.{name}" for name in kernels)) == set()


def name_exists(part: str) -> bool:
    return any(part_of(name) == part for name in MODULES)


@pytest.mark.parametrize(
    ("name", "source", "message"),
    [
        ("elsewise.features", "import elsewise.solver", "level 7 from level 0"),
        ("elsewise.features._schema", "from elsewise.targets import sample", "level 0 from level"),
        ("elsewise.solver", "def f():\n    import elsewise.certificate", "level 7 from level 7"),
        ("elsewise.models._x", "from ..solver import solve", "level 7 from level 1"),
        ("elsewise.explanation", "from elsewise import plots", "level 11 from level 9"),
        ("elsewise.solver", "from elsewise import explain", "no module of the layout"),
        ("elsewise.invented", "", "no level"),
        ("elsewise.solver", "def f():\n    import torch", "belongs in models only"),
        ("elsewise.models._torch", "import torch.nn", "inside functions only"),
        ("elsewise.report", "from matplotlib import pyplot", "belongs in plots only"),
    ],
)
def test_the_test_sees_violations(name: str, source: str, message: str) -> None:
    (found,) = violations(name, source)
    assert message in found


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("elsewise.solver", "from elsewise.transport import ranks"),
        ("elsewise.targets", "from elsewise.errors import InvalidInput"),
        ("elsewise.models._torch", "def f():\n    import torch\n    from ._bind import bind"),
        ("elsewise.models._torch", "if TYPE_CHECKING:\n    import torch"),
        ("elsewise.explanation", "if TYPE_CHECKING:\n    from matplotlib.axes import Axes"),
        ("elsewise.explanation", "class E:\n    def plot(self):\n        import elsewise.plots"),
    ],
)
def test_the_test_allows_what_the_layout_allows(name: str, source: str) -> None:
    assert not violations(name, source)
