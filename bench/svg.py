"""The little SVG that the plots share: text and lines that read well on light and on dark."""

import math
from collections.abc import Sequence

COLOURS = ("#2f9e44", "#e8590c", "#7048e8", "#1c7ed6")  # readable on white and on near black
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#343a40}.g{stroke:#868e96;stroke-opacity:.35}"
    ".title{font-weight:600}.small{font-size:10px}"
    "@media(prefers-color-scheme:dark){text{fill:#dee2e6}}"
)


def drawing(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    """Return the whole file."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
    return "\n".join((head, f"<title>{title}</title>", f"<style>{_STYLE}</style>", *parts, "</svg>\n"))


def text(x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> str:
    """Write words that start, have their middle or end at `x`; `kind` is a class of the style."""
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{style}>{words}</text>'


def title(x: float, y: float, words: str) -> str:
    return text(x, y, words, kind="title")


def line(x1: float, y1: float, x2: float, y2: float) -> str:
    """Draw a thin line of the grid."""
    return f'<line class="g" x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}"/>'


def place(value: float, low: float, high: float) -> float:
    """Return where a value lies on a logarithmic axis, from 0 to 1."""
    return math.log(min(max(value, low), high) / low) / math.log(high / low)
