"""The table and the plot, written by hand: Markdown and SVG that read well on light and on dark."""

import math
from collections.abc import Mapping, Sequence

from rig.limits_figures import Figures

Row = tuple[str, str, Figures]  # scenario, client, figures

HEAD = (
    "| limiter | client | goodput % | 429s per 1000 | longest stall s | sent in a pause | Jain "
    "| cancel p99 ms | added wait p99 ms | windows until within 10 % |\n"
    "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"
)
COLOURS = ("#2f9e44", "#e8590c", "#7048e8", "#1c7ed6")  # readable on white and on near black
_ROW, _LEFT, _WIDE, _GAP = 22, 190, 260, 50
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#343a40}.g{stroke:#868e96;stroke-opacity:.35}"
    "@media(prefers-color-scheme:dark){text{fill:#dee2e6}}"
)


def table(rows: Sequence[Row]) -> str:
    return "\n".join([HEAD, *(_line(*row) for row in rows)])


def _line(scenario: str, client: str, one: Figures) -> str:
    numbers = [
        _number(one.goodput, 1),
        _number(one.refused, 1),
        _number(one.stall, 1),
        str(one.inside_pause),
        _number(one.jain, 3),
        _number(one.cancel_p99, 0),
        _number(one.wait_p99, 0),
        _number(one.windows, 0),
    ]
    return f"| {scenario} | {client} | {' | '.join(numbers)} |"


def _number(value: float, digits: int) -> str:
    if math.isnan(value):
        return ""
    return f"{value:.{digits}f}" if math.isfinite(value) else "never"


def plot(rows: Mapping[str, Mapping[str, Figures]]) -> str:
    """Return the SVG: per limiter a dot per client, of its 429s (logarithmic) and its longest stall."""
    height = 70 + _ROW * len(rows)
    width = _LEFT + 2 * _WIDE + _GAP + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        "<title>429s per 1000 accepted requests and longest stall, by limiter and client</title>",
        f"<style>{_STYLE}</style>",
    ]
    clients = list(next(iter(rows.values())))
    for index, client in enumerate(clients):
        x = _LEFT + 140 * index
        parts.append(f'<circle cx="{x}" cy="12" r="5" fill="{COLOURS[index]}"/>')
        parts.append(f'<text x="{x + 10}" y="16">{client}</text>')
    parts += _axis(_LEFT, "429s per 1000 accepted", (0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0), height)
    parts += _axis(_LEFT + _WIDE + _GAP, "longest stall, s", (0.1, 1.0, 10.0, 100.0), height)
    for row, (name, by_client) in enumerate(rows.items()):
        y = 66 + _ROW * row
        parts.append(f'<text x="{_LEFT - 12}" y="{y + 4}" text-anchor="end">{name}</text>')
        for index, one in enumerate(by_client.values()):
            parts.append(_dot(_place(one.refused, 0.1, 10000.0), _LEFT, y, index))
            parts.append(_dot(_place(one.stall, 0.1, 100.0), _LEFT + _WIDE + _GAP, y, index))
    return "\n".join([*parts, "</svg>\n"])


def _axis(left: float, title: str, ticks: Sequence[float], height: int) -> list[str]:
    parts = [f'<text x="{left}" y="36" font-weight="600">{title}</text>']
    for tick in ticks:
        x = left + _WIDE * _place(tick, ticks[0], ticks[-1])
        beyond = {ticks[0]: "≤ ", ticks[-1]: "≥ "}.get(tick, "")
        label = f"{beyond}{tick:g}"
        parts.append(f'<line class="g" x1="{x:.0f}" y1="56" x2="{x:.0f}" y2="{height - 8}"/>')
        parts.append(f'<text x="{x:.0f}" y="51" text-anchor="middle" font-size="10">{label}</text>')
    return parts


def _place(value: float, low: float, high: float) -> float:
    return math.log(min(max(value, low), high) / low) / math.log(high / low)


def _dot(place: float, left: float, y: float, index: int) -> str:
    # Each client a little lower, so that dots in one place all show.
    x, y = left + _WIDE * place, y - 4.5 + 3 * index
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{COLOURS[index]}" fill-opacity=".85"/>'
