"""Write docs/api.md: every public name with its signature, what it is for, and its fields.

    python scripts/write_api.py

The page is read in the repository, too, where nothing is built; a test compares it with the code. A
name without a sentence of documentation is an error.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import importlib
import inspect
import itertools
import textwrap
from pathlib import Path
from typing import Any

import elsewise as ew

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
HEAD = """\
# API

Every public name with its signature, its parameters or fields, and its methods; `help(name)` adds
types and examples. Everything is reached from `import elsewise as ew`, but for
`elsewise.confidence`, `elsewise.errors` and `elsewise.batch.dask`, which are imported by name.
"""
SECTIONS = {
    "Explain": ("", "explain frontier Frontier load show_versions"),
    "What may be asked for": ("", "Bounds Settings IntervalNarrowing SetShrinking Schema"),
    "Explain many": (
        "",
        "explain_groups explain_sweep explain_many Request Explanations Failure",
    ),
    "The answer": (
        "",
        "Explanation Status Verdict Certificate certificate.Evidence Stability analysis.Effects",
    ),
    "A few actions": ("", "Policy policy.build_policy"),
    "Compare two samples": ("", "difference Difference"),
    "The loop, for those who want to hold it": ("", "iterate Problem"),
    "elsewise.targets": (
        "targets",
        "share at_most at_least mean quantile label constant shift scale sample group distribution",
    ),
    "elsewise.models": ("models", "bind estimator function torch_model Outputs"),
    "elsewise.analysis": (
        "analysis",
        "changes flows groups Groups Group plausibility effects psi ks from_counterfactuals "
        "BaselineExplanation",
    ),
    "elsewise.plots": (
        "plots",
        "panel outputs projected changes feature features moves flows convergence frontier "
        "comparison policy waterfall",
    ),
    "elsewise.report": (
        "report",
        "render write render_explore write_explore render_comparison render_difference headline "
        "answer change_table summary",
    ),
    "elsewise.datasets": ("datasets", "german_credit Dataset"),
    "elsewise.batch.dask": ("batch.dask", "explain apply infer_schema sample"),
    "elsewise.confidence": (
        "confidence",
        "Method UpperLimit Interval clt_limit bootstrap_limit band_limit normal_limit "
        "rank_shift_limit coupling_limit mean_interval share_interval rows_needed",
    ),
    "elsewise.transport": (
        "transport",
        "sliced_squared_distance sliced_squared_distance_and_gradient sorted_squared_distances "
        "reference Reference rank Ranked project fit_monotone_maps MonotoneMaps lift",
    ),
    "elsewise.errors": (
        "errors",
        "ElsewiseError InvalidInput ModelError NotFeasible SavedRunError MissingExtra",
    ),
}
"""Headings, the module below `elsewise` that the names are of, and the names."""


def find(module: str, name: str) -> Any:
    """Return a public object by its module below elsewise and its name."""
    *path, last = name.split(".")
    place = ".".join(["elsewise", *filter(None, [module]), *path])
    return getattr(importlib.import_module(place), last)


def summary(thing: Any, name: str) -> str:
    """Return the first sentence of what documents a thing, as one line."""
    text = inspect.getdoc(thing)
    if not text:
        raise SystemExit(f"{name} has no docstring")
    return " ".join(text.split("\n\n")[0].split()).replace(":meth:", "")


def signature(thing: Any) -> str:
    """Return the parameters of a call with their defaults, without their types."""
    found = inspect.signature(thing)
    plain = [
        p.replace(annotation=inspect.Parameter.empty)
        for p in found.parameters.values()
        if p.name not in ("self", "cls")
    ]
    return str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def parameters(thing: Any) -> dict[str, str]:
    """Return what the section "Parameters" of a docstring says of each name."""
    found: dict[str, str] = {}
    names: list[str] = []
    section = (inspect.getdoc(thing) or "").partition("Parameters\n----------\n")[2]
    for line in section.splitlines():
        if line.startswith("    "):
            found |= {name: f"{found.get(name, '')} {line.strip()}".strip() for name in names}
        elif line:
            names = line.partition(" : ")[0].split(", ")
        else:  # the section ends
            break
    return found


def field_texts(cls: type) -> dict[str, str]:
    """Return the sentence under each field of a dataclass, or its class's word on it."""
    found = parameters(ew.explain if cls is ew.Request else cls)
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0].body
    for node, after in itertools.pairwise(body):
        said = isinstance(node, ast.AnnAssign) and isinstance(after, ast.Expr)
        if said and isinstance(after.value, ast.Constant):
            found[node.target.id] = " ".join(str(after.value.value).split())
    return found


def fields(cls: type) -> list[str]:
    """Return the fields of a dataclass as a table; a name that says it all stands by its type."""
    texts, rows = field_texts(cls) if dataclasses.is_dataclass(cls) else {}, []
    for field in dataclasses.fields(cls) if texts else ():
        default = "" if field.default is dataclasses.MISSING else f"`{field.default!r}`"
        if field.default_factory is not dataclasses.MISSING:
            default = f"`{field.default_factory()!r}`"
        if not field.name.startswith("_"):
            text = texts.get(field.name, f"`{field.type}`").replace("|", r"\|")
            rows.append(f"| `{field.name}` | {default} | {text} |")
    return ["| field | default | what it is |", "|---|---|---|", *rows] if rows else []


def members(cls: type, name: str) -> list[str]:
    """Return the public methods and properties of a class, one line each."""
    if issubclass(cls, enum.Enum):
        return [f"- `{one.name}`: {one.value}" for one in cls]
    rows = []
    for base in reversed(cls.__mro__):
        if not base.__module__.startswith("elsewise"):
            continue
        for key, raw in vars(base).items():
            function = getattr(raw, "__func__", raw)
            attribute = isinstance(raw, property | functools.cached_property)
            if key.startswith("_") or not (attribute or inspect.isfunction(function)):
                continue
            call = "" if attribute else signature(function)
            rows.append(f"- `{key}{call}`: {summary(raw, f'{name}.{key}')}")
    return list(dict.fromkeys(rows))


def entry(module: str, name: str) -> str:
    """Return what the page says of one name."""
    thing, full = find(module, name), ".".join(filter(None, [module, name]))
    start = "elsewise" if module in ("confidence", "errors", "batch.dask") else "ew"
    parts = [[f"### {start}.{full}"], [summary(thing, full)]]
    if isinstance(thing, type):
        parts += [fields(thing), members(thing, full)]
    else:
        call = textwrap.wrap(f"{name.split('.')[-1]}{signature(thing)}", 96)
        parts.insert(1, ["```text", *call, "```"])
        parts.append([f"- `{key}`: {text}" for key, text in parameters(thing).items()])
    return "\n\n".join("\n".join(part) for part in parts if part)


def page() -> str:
    """Return the whole page."""
    parts = [HEAD]
    for heading, (module, names) in SECTIONS.items():
        parts += [f"## {heading}\n", *(entry(module, name) + "\n" for name in names.split())]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
