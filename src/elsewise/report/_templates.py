"""The templates; everything put into them is escaped."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from elsewise.report._pictures import drawing, flow_bands

if TYPE_CHECKING:
    from jinja2 import Environment


NAMES = (
    "page.html",
    "comparison.html",
    "difference.html",
    "parts.html",
    "pictures.html",
    "notebook.html",
)
CITATION = (
    "L. You, L. Cao, M. Nilsson, B. Zhao, L. Lei. Distributional Counterfactual Explanations With "
    "Optimal Transport. AISTATS 2025."
)
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


@cache
def environment() -> Environment:
    """Return the templates, ready to be rendered."""
    from jinja2 import DictLoader, Environment, StrictUndefined

    made = Environment(
        loader=DictLoader({name: read(name) for name in NAMES}),
        autoescape=True,
        finalize=_printable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"drawing": drawing, "flow_bands": flow_bands}
    return made


def _printable(value: Any) -> Any:
    """Replace control characters, which have no place in HTML, in texts but not in pictures."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return CONTROL.sub("\N{REPLACEMENT CHARACTER}", value)
    return value


def fill(name: str, **parts: Any) -> str:
    """Return the template of this name, filled with the parts and the style of all pages."""
    return environment().get_template(name).render(style=read("style.css"), **parts)


@cache
def read(name: str) -> str:
    """Return a file of the folder of templates."""
    return files("elsewise.report").joinpath("templates", name).read_text(encoding="utf-8")
