"""The layout is enforced: units import from their own layer or a lower one, never in a circle.

Every import of every module under ``src/elsewise`` is read with ``ast``, those inside functions
too. ``python tests/test_architecture.py`` prints the units, the edges between them and the longest
chain of modules.
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

LAYERS = {
    "foundations": {"errors", "_arrays", "_storage", "_resources", "text"},
    "mathematics": {"transport", "confidence", "features", "targets", "models"},
    "method": {"settings", "request", "measure", "moves", "maps", "search", "certificate"},
    "answer": {"_difference", "_explain", "explanation", "analysis", "saving", "policy"},
    "faces": {"plots", "report", "batch", "cli", "datasets", "__main__", "__init__"},
}
"""A unit imports from its own layer and from those above it in this list, and never in a circle."""
ORDER = {unit: place for place, units in enumerate(LAYERS.values()) for unit in units}
MOST_UNITS = 28
LONGEST_CHAIN = 16

# Methods that reach up, each a one-line delegate with its import inside the function.
REACHED = ("analysis", "policy", "plots", "report", "saving")
DELEGATES = {("explanation", part) for part in REACHED}
DELEGATES |= {("certificate", "report"), ("analysis", "plots"), ("policy", "plots")}
DELEGATES |= {("_difference", "plots"), ("_difference", "report")}

MAY_PRINT = {"cli"}
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


def layer_of(unit: str) -> str:
    """Return the name of the layer that a unit is in."""
    return list(LAYERS)[ORDER[unit]]


def violations(name: str, source: str, *, is_package: bool = False) -> list[str]:
    """Return what a module's imports break, as readable lines."""
    part = part_of(name)
    if part not in ORDER:
        return [f"{name}: {part!r} is in no layer; add it to the layout"]
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
        if other == part:
            continue
        if (part, other) in DELEGATES and (inside or typing):
            continue
        if other not in ORDER:
            found.append(f"{where}: {other!r} is no unit of the layout")
        elif ORDER[other] > ORDER[part]:
            found.append(f"{where}: {layer_of(other)} from {layer_of(part)}")
    return found


MODULES = {dotted_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def homes() -> dict[str, dict[str, str]]:
    """For each module, the module in which each name that it holds is defined or re-exported."""
    found: dict[str, dict[str, str]] = {}
    for name, path in MODULES.items():
        tree = ast.parse(path.read_text("utf-8"))
        names: dict[str, str] = {}
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("elsewise."):
                names.update({alias.asname or alias.name: node.module for alias in node.names})
        found[name] = names
    return found


def module_edges() -> dict[str, set[str]]:
    """Modules that each module imports when it is loaded, each name taken where it is defined."""
    known = homes()

    def home(module: str, name: str) -> str:
        if f"{module}.{name}" in MODULES:
            return f"{module}.{name}"
        further = known.get(module, {}).get(name)
        return module if further is None else home(further, name)

    edges: dict[str, set[str]] = {name: set() for name in MODULES}
    for name, path in MODULES.items():
        pending: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
        while pending:
            node = pending.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                continue
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("elsewise"):
                edges[name] |= {home(node.module, alias.name) for alias in node.names} - {name}
            pending.extend(ast.iter_child_nodes(node))
    return edges


def longest_chain() -> list[str]:
    """Return the longest chain of modules, each of which imports the next."""
    edges = module_edges()
    best: dict[str, list[str]] = {}

    def chain(name: str, above: tuple[str, ...]) -> list[str]:
        assert name not in above, f"import cycle: {' -> '.join((*above, name))}"
        if name not in best:
            rest = [chain(other, (*above, name)) for other in sorted(edges[name])]
            best[name] = [name, *max(rest, key=len, default=[])]
        return best[name]

    return max((chain(name, ()) for name in MODULES), key=len)


def unit_edges() -> set[tuple[str, str]]:
    """Pairs of units of which the first imports the second when it is loaded."""
    return {
        (part_of(name), part_of(other))
        for name, others in module_edges().items()
        for other in others
        if part_of(name) != part_of(other)
    } - {("__init__", "__init__")}


def units() -> list[str]:
    """Return the top-level units."""
    return sorted({part_of(name) for name in MODULES} - {"__init__", "__main__"})


def test_units_are_few_and_chains_short() -> None:
    assert len(units()) <= MOST_UNITS
    assert len(longest_chain()) <= LONGEST_CHAIN, longest_chain()


def test_units_are_not_in_circles() -> None:
    pairs = unit_edges()
    remaining = set(units())
    while remaining:
        free = {u for u in remaining if not any(a == u and b in remaining for a, b in pairs)}
        assert free, f"units that import each other: {sorted(remaining)}"
        remaining -= free


def test_no_two_modules_share_a_name() -> None:
    stems = [name for name in MODULES if MODULES[name].stem not in {"__init__", "__main__"}]
    names = [name.rpartition(".")[2].lstrip("_") for name in stems]
    twice = sorted({name for name in names if names.count(name) > 1})
    assert not twice


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
    kernels = ("transport", "moves", "maps", "search")
    assert loaded_by("\n".join(f"import elsewise.{name}" for name in kernels)) == set()


@pytest.mark.parametrize(
    ("name", "source", "message"),
    [
        ("elsewise.features", "import elsewise.search", "method from mathematics"),
        ("elsewise.features._schema", "from elsewise.plots import panel", "faces from mathematics"),
        ("elsewise.search", "def f():\n    import elsewise.saving", "answer from method"),
        ("elsewise.models._x", "from ..search import solve", "method from mathematics"),
        ("elsewise.analysis", "from elsewise import plots", "faces from answer"),
        ("elsewise.search", "from elsewise import explain", "no unit of the layout"),
        ("elsewise.invented", "", "in no layer"),
        ("elsewise.search", "def f():\n    import torch", "belongs in models only"),
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
        ("elsewise.search", "from elsewise.transport import rank"),
        ("elsewise.targets", "from elsewise.errors import InvalidInput"),
        ("elsewise.models._torch", "def f():\n    import torch\n    from ._bind import bind"),
        ("elsewise.models._torch", "if TYPE_CHECKING:\n    import torch"),
        ("elsewise.explanation", "if TYPE_CHECKING:\n    from matplotlib.axes import Axes"),
        ("elsewise.explanation", "class E:\n    def plot(self):\n        import elsewise.plots"),
    ],
)
def test_the_test_allows_what_the_layout_allows(name: str, source: str) -> None:
    assert not violations(name, source)


if __name__ == "__main__":
    for layer, members in LAYERS.items():
        print(f"{layer}: {', '.join(sorted(members & set(units())))}")
    print(f"{len(units())} units, {len(unit_edges())} edges between them")
    print(f"longest chain, {len(longest_chain())} modules: {' > '.join(longest_chain())}")
