"""Pictures as SVG for a page: real text, colours that follow the page, no two equal ids."""

from __future__ import annotations

import io
import re
import threading
import warnings
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

from elsewise.plots._style import COUNTERFACTUAL, FACTUAL, GRID, INK, INPUTS, OUTPUTS, TARGET
from elsewise.text import visible

# Colours of the visual language and the CSS variables that may replace them.
THEME = {
    FACTUAL: "factual",
    COUNTERFACTUAL: "counterfactual",
    TARGET: "target",
    INPUTS: "inputs",
    OUTPUTS: "outputs",
    INK: "ink",
    GRID: "grid",
}
# Held while matplotlib's settings, which are the whole process's, are those of a page: pictures of
# several threads are drawn one after the other.
DRAWING = threading.Lock()
SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", XLINK)


def to_svg(
    draw: Callable[..., Any],
    *,
    name: str,
    title: str,
    description: str,
    size: tuple[float, float] = (4.7, 3.1),
) -> str:
    """Return what ``draw(ax)`` draws as one SVG element for an HTML page.

    Parameters
    ----------
    draw
        Called with new axes.
    name
        Prefix of every id, so that several pictures share a page.
    title, description
        Read out by screen readers.
    size
        Width and height in inches.

    Examples
    --------
    >>> picture = to_svg(lambda ax: ax.plot([0, 1]), name="a", title="A", description="A line.")
    >>> picture[:9], "<title" in picture
    ('<svg xmln', True)
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    options = {"svg.fonttype": "none", "svg.hashsalt": name, "font.size": 10.5}
    written = io.StringIO()
    with DRAWING, mpl.rc_context(options), warnings.catch_warnings():
        # The page's own font shows what matplotlib's font lacks.
        warnings.filterwarnings("ignore", message=r"(?s).*Glyph.*missing from")
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.add_subplot())
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    root = ElementTree.fromstring(written.getvalue())
    _make_fit(root, name, title, description)
    return ElementTree.tostring(root, encoding="unicode")


def _make_fit(root: ElementTree.Element, name: str, title: str, description: str) -> None:
    """Prepare a drawing of matplotlib for a page."""
    for tag in ("metadata", "defs"):
        for child in root.findall(f"{{{SVG}}}{tag}"):
            if tag == "metadata" or child.find(f"{{{SVG}}}style") is not None:
                root.remove(child)
    for element in root.iter():
        for key, value in list(element.attrib.items()):
            if key == "id":
                element.set(key, f"{name}-{value}")
            elif key == f"{{{XLINK}}}href" and value.startswith("#"):
                element.set(key, f"#{name}-{value[1:]}")
            else:
                element.set(key, _themed(value.replace("url(#", f"url(#{name}-")))
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title {name}-desc")
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": f"{name}-{tag}"})
        element.text = visible(text)
        root.insert(place, element)


def _themed(style: str) -> str:
    """Let the page's colours and font replace the drawing's."""
    style = re.sub(r"font-family: [^;]*(; |$)", "", style)
    # Older versions of matplotlib write one property for size, weight and family.
    style = re.sub(r"\bfont: (?:(bold|\d+) )?([\d.]+px)[^;]*", _font, style)
    for colour, variable in THEME.items():
        style = style.replace(colour, f"var(--{variable}, {colour})")
    return style


def _font(found: re.Match[str]) -> str:
    weight = "" if found[1] is None else "; font-weight: 700"
    return f"font-size: {found[2]}{weight}"
